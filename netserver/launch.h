/*
 * The processes of sessions, as the daemon starts them: it has a fork server make one that inherits
 * its confinement, or forks it itself.
 */
#ifndef NETSERVER_LAUNCH_H
#define NETSERVER_LAUNCH_H

#include "netserver/caller.h"

/* Before the first one: what all of them have in common is done once. */
void ns_launch_prepare(struct ns_daemon *d);

/*
 * Settle which process the session is to have: one that inherits its filter of system calls, or one
 * with a filter of its own (s->bare says so), if it may have that. Else it does without what takes
 * it, and the caller knows why.
 */
void ns_launch_settle(struct ns_daemon *d, struct ns_caller *c, struct ns_session *s);

/* Start it: s->pid. way: its end of the way to the daemon. NP_ESYS when there is none. */
int ns_launch(struct ns_daemon *d, struct ns_caller *c, struct ns_session *s, int way,
	      struct np_err *err);

/* Was the process that has ended a fork server? The next session has another one started. */
bool ns_launch_lost(struct ns_daemon *d, pid_t pid);

#endif
