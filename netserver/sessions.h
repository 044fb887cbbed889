/*
 * Sessions, as the daemon knows them: it has a process started for each client (launch.h), keeps
 * the books about it, and answers what it asks.
 */
#ifndef NETSERVER_SESSIONS_H
#define NETSERVER_SESSIONS_H

#include "netserver/caller.h"

/* What the caller's session takes without a test: more for one that gathers evidence. */
void ns_session_takes(const struct ns_daemon *d, const struct ns_caller *c,
		      uint64_t takes[NP_RESOURCES]);

/*
 * Start a process that serves the caller from its first message on; the caller stays the daemon's
 * own to close. NP_ESYS when there is none to be had.
 */
int ns_session_start(struct ns_daemon *d, struct ns_caller *c, struct np_err *err);

/* The session has said something, or closed its end. */
void ns_session_hear(struct ns_daemon *d, struct ns_session *s);

/* Reap those that ended. */
void ns_sessions_reap(struct ns_daemon *d);

/* End those that overran, refuse who waited too long. Returns when to call again, NP_NEVER. */
uint64_t ns_sessions_tick(struct ns_daemon *d, uint64_t now_ns);

/*
 * That address needs what is scarce: NS_SESSIONS or NS_MEMORY. A session with an idle test is ended
 * for it, if there is one. False: there is none.
 */
bool ns_sessions_make_room(struct ns_daemon *d, const struct np_addr *peer, enum ns_refusal what);

/* Tell every session to end, wait a while, and end those that do not. */
void ns_sessions_end(struct ns_daemon *d);

#endif
