/*
 * How the daemon starts the processes of sessions: a fork server forks one that inherits its
 * confinement, or the daemon forks it.
 */
#ifndef NETSERVER_LAUNCH_H
#define NETSERVER_LAUNCH_H

#include "netserver/caller.h"

/* Before the first one: do once what all of them need. */
void ns_launch_prepare(struct ns_daemon *d);

/*
 * Choose the session's kind of process: one that inherits its filter of system calls or, if that is
 * granted, one with a filter of its own (in s->bare). If it is not granted, the session does
 * without what needs it, and c->uncaptured or c->unlinked tells the caller why.
 */
void ns_launch_settle(struct ns_daemon *d, struct ns_caller *c, struct ns_session *s);

/* Start it: sets s->pid. way: its end of the sockets to the daemon. NP_ESYS. */
int ns_launch(struct ns_daemon *d, struct ns_caller *c, struct ns_session *s, int way,
	      struct np_err *err);

/* Was the process that has ended a fork server? The next session starts another one. */
bool ns_launch_lost(struct ns_daemon *d, pid_t pid);

#endif
