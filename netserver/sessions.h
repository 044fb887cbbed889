/* The daemon's side of sessions: starts them (launch.h), accounts for them, answers requests. */
#ifndef NETSERVER_SESSIONS_H
#define NETSERVER_SESSIONS_H

#include "netserver/caller.h"

/* What the caller's session holds without a test: more for one that gathers evidence. */
void ns_session_takes(const struct ns_daemon *d, const struct ns_caller *c,
		      uint64_t takes[NP_RESOURCES]);

/* Start a process that serves the caller. The daemon has to close its copy afterwards. NP_ESYS. */
int ns_session_start(struct ns_daemon *d, struct ns_caller *c, struct np_err *err);

/* It has sent something, or hung up. Reads at most `most` messages: others must not wait. */
enum { NS_MESSAGES = 16 };
void ns_session_receive(struct ns_daemon *d, struct ns_session *s, int most);

/* Reap child processes that ended, and remove their sessions. */
void ns_sessions_reap(struct ns_daemon *d);

/* Retry waiting tests, refuse late ones, end late sessions. When to call again, or NP_NEVER. */
uint64_t ns_sessions_tick(struct ns_daemon *d, uint64_t now_ns);

/*
 * The peer lacks the resource of that refusal, or may soon: end an idle session, unless one is
 * ending already. How long to wait for room since it was lacking, in ns; 0: not at all.
 */
uint64_t
ns_sessions_make_room(struct ns_daemon *d, const struct np_addr *peer, enum ns_refusal what);

/* Tell every session to end, wait a while, and end those that do not. */
void ns_sessions_end(struct ns_daemon *d);

#endif
