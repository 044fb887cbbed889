/*
 * One port for control and data (--one-port): connections and datagrams that come to the daemon's
 * port and are a test's are handed to its session, which never listens. A client that knows of this
 * shows a token (wire/token.h). One that does not is known by its address, and clients of one
 * address that show none have their turns: each test's sockets are there before the next one's may
 * come, so that none gets another one's.
 */
#ifndef NETSERVER_ONE_PORT_H
#define NETSERVER_ONE_PORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netserver/daemon.h"

/* ---- Descriptors in flight ---- */

/* Set their limit, which is a part of RLIMIT_NOFILE. */
void ns_ways_begin(struct ns_daemon *d);

/* Count again those that sessions have not received yet. */
void ns_ways_count(struct ns_daemon *d);

/* ---- Tests ---- */

/* May the sockets of that session's test be waited for now, beside all others? */
bool ns_way_is_free(struct ns_daemon *d, const struct ns_session *s);

/*
 * From now on they are handed over. *theirs: the session's end, which the caller closes. NP_ESYS.
 */
int ns_way_open(struct ns_session *s, const struct np_way *asked, int *theirs, struct np_err *err);
void ns_way_close(struct ns_daemon *d, struct ns_session *s);

/* Has it waited long enough for its client's own port? Returns when it will have. */
uint64_t ns_way_tick(struct ns_daemon *d, struct ns_session *s, uint64_t now_ns);

/* ---- Connections ---- */

enum ns_data {
	NS_DATA_NONE,   /* a control connection */
	NS_DATA_MORE,   /* not known yet: more has to come */
	NS_DATA_HANDED, /* a session has it: the descriptor is to be closed */
	NS_DATA_FULL,   /* it is a session's, for which too many are in flight now */
	NS_DATA_UNKNOWN /* it is data of no test here, was told so, and is to be closed */
};

/*
 * What has come by a connection? quiet: nothing will, before data of ours do. *of: for FULL, whose
 * it is.
 */
enum ns_data ns_data_look(struct ns_daemon *d, int fd, const struct np_addr *peer, bool quiet,
			  struct ns_session **of);

/*
 * Is there room for one that was FULL? NS_DATA_UNKNOWN: its test is over (NULL), or wants no more.
 * now_ns: of one round, in which a session without room is looked at once.
 */
enum ns_data ns_data_again(struct ns_daemon *d, struct ns_session *s, int fd, uint64_t now_ns);

/* When a connection by which nothing has come may be such a quiet one; 0: it is none. */
uint64_t ns_quiet_until(const struct ns_daemon *d, const struct np_addr *peer, uint64_t now_ns);

/* ---- Datagrams ---- */

/*
 * Hear datagrams at the ports of all listeners: d->datagrams. Where one can't be had, the tests of
 * UDP have ports of their own.
 */
void ns_datagrams_open(struct ns_daemon *d);

/* Something has come. */
void ns_datagrams_hear(struct ns_daemon *d, int fd);

#endif
