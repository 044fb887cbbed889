/*
 * One port for control and data (--one-port): the daemon passes tests' connections and datagrams on
 * to sessions, which never listen. Clients show a token (wire/token.h), or are known by address;
 * without tokens those of an address take turns: the next test waits until one has its sockets.
 */
#ifndef NETSERVER_ONE_PORT_H
#define NETSERVER_ONE_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "netserver/daemon.h"

/* Set the limit of descriptors in flight, and find out how much one counts in its socket. */
void ns_handovers_begin(struct ns_daemon *d);

/* Count again the descriptors that sessions have not received yet. */
void ns_handovers_count(struct ns_daemon *d);

/* Can this test's sockets be told from others? Ends another's turn if it got none for too long. */
bool ns_handover_make_free(struct ns_daemon *d, const struct ns_session *s);

/* Begin to pass on the test's sockets. *theirs: the session's end, to send and close. NP_ESYS. */
int ns_handover_open(struct ns_session *s, const struct np_handover *asked, int *theirs,
		     struct np_err *err);
/* Pass on no more, as the test is over. Connections that still wait for room are reset. */
void ns_handover_close(struct ns_daemon *d, struct ns_session *s);

/*
 * A test has begun or ended: accept as the present tests need it, blocking or not, and for
 * connection tests with the first bytes, which is fastest (TCP_DEFER_ACCEPT).
 */
void ns_handovers_set_listeners(struct ns_daemon *d);

/* Pass on another port's socket if the named port stays silent. Returns when to call again. */
uint64_t ns_handover_tick(struct ns_daemon *d, struct ns_session *s, uint64_t now_ns);

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
 * over (s is NULL), or wants no more. now_ns is the same in a whole round, which tries a session
 * that was full only once.
 */
enum ns_data ns_data_again(struct ns_daemon *d, struct ns_session *s, int fd, uint64_t now_ns);

/* When a connection that has sent nothing counts as NS_LOOK_QUIET; 0: never. */
uint64_t ns_quiet_until(const struct ns_daemon *d, const struct np_addr *peer, uint64_t now_ns);

/* Open d->datagrams at all listeners' ports. If one fails, UDP tests use their own ports. */
void ns_datagrams_open(struct ns_daemon *d);

/* Read the datagrams that have come. */
void ns_datagrams_receive(struct ns_daemon *d, int fd);

#endif
