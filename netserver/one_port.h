/*
 * One port for control and data (--one-port): the daemon passes connections and datagrams of tests
 * on to their sessions, which never listen. A client that knows of this sends a token
 * (wire/token.h). One that does not is recognized by its address. Clients of one address without
 * tokens take turns, so as not to be mixed up: the next test waits until one has its sockets.
 */
#ifndef NETSERVER_ONE_PORT_H
#define NETSERVER_ONE_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "netserver/daemon.h"

/* ---- Descriptors in flight ---- */

/* Set the limit of descriptors in flight, and find out how much one counts in its socket. */
void ns_handovers_begin(struct ns_daemon *d);

/* Count again the descriptors that sessions have not received yet. */
void ns_handovers_count(struct ns_daemon *d);

/* ---- Tests ---- */

/*
 * Can the sockets of that session's test be told from those of all other tests now? Frees what
 * another session of the same address has held for too long.
 */
bool ns_handover_make_free(struct ns_daemon *d, const struct ns_session *s);

/* Pass on a test's sockets. *theirs: the session's end, for the caller to close. NP_ESYS. */
int ns_handover_open(struct ns_session *s, const struct np_handover *asked, int *theirs,
		     struct np_err *err);
/* Pass on no more, as the test is over. Connections that still wait for room are reset. */
void ns_handover_close(struct ns_daemon *d, struct ns_session *s);

/*
 * A test has begun or ended: accept connections in the way that suits the present tests. Connection
 * tests are fastest if each connection is accepted with its first bytes (TCP_DEFER_ACCEPT), and
 * blocking or not as its session wants it.
 */
void ns_handovers_set_listeners(struct ns_daemon *d);

/*
 * If the test has waited long enough for datagrams from the port that its client named, pass on the
 * socket for another port. Returns when to call again.
 */
uint64_t ns_handover_tick(struct ns_daemon *d, struct ns_session *s, uint64_t now_ns);

/* ---- Connections ---- */

enum ns_data {
	NS_DATA_NONE,   /* a control connection, or one that was closed too early */
	NS_DATA_MORE,   /* not known yet: more has to come */
	NS_DATA_PASSED, /* passed on to its session: close the descriptor */
	NS_DATA_FULL,   /* belongs to a session, but too many descriptors are in flight */
	NS_DATA_UNKNOWN /* belongs to no test here; the client was told: close the descriptor */
};

/* What is known about a connection's past. */
enum ns_look {
	NS_LOOK_NEW,  /* just accepted, with d->accepts */
	NS_LOOK_LATE, /* it has been a caller (caller.h) for a while */
	NS_LOOK_QUIET /* it has sent nothing for ns_quiet_until() */
};

/* What kind of connection is it, by what it has sent? *owner: for NS_DATA_FULL, its session. */
enum ns_data ns_data_look(struct ns_daemon *d, int fd, const struct np_addr *peer,
			  enum ns_look when, struct ns_session **owner);

/*
 * Pass on a connection that was NS_DATA_FULL, if there is room now. NS_DATA_UNKNOWN: its test is
 * over (s is NULL), or wants no more. now_ns: the same for a round, which checks each session once.
 */
enum ns_data ns_data_again(struct ns_daemon *d, struct ns_session *s, int fd, uint64_t now_ns);

/* When a connection that has sent nothing counts as NS_LOOK_QUIET; 0: never. */
uint64_t ns_quiet_until(const struct ns_daemon *d, const struct np_addr *peer, uint64_t now_ns);

/* ---- Datagrams ---- */

/*
 * Open sockets for datagrams at the ports of all listeners: d->datagrams. If one can't be opened,
 * tests of UDP use their own ports.
 */
void ns_datagrams_open(struct ns_daemon *d);

/* Read the datagrams that have come. */
void ns_datagrams_receive(struct ns_daemon *d, int fd);

#endif
