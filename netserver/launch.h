/*
 * How the daemon starts the processes of sessions.
 *
 * Most inherit their confinement, as doc/architecture.md explains: a fork server, a child of the
 * daemon, is confined once, and reads only requests of the daemon, which is the parent of its
 * sessions (CLONE_PARENT). Those with their own filter are forked by the daemon.
 */
#ifndef NETSERVER_LAUNCH_H
#define NETSERVER_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* What ps(1) calls one, to tell it from sessions. */
#define NS_FORKSERVER_NAME "netserver-fork"

struct ns_forkserver {
	pid_t pid; /* 0: it was not started */
	int fd;    /* the daemon's end of a pair of SOCK_SEQPACKET */
};

struct ns_daemon;
struct ns_caller;
struct ns_session;

/* Descriptors that a session gets. */
enum { NS_FORK_CONTROL, NS_FORK_DAEMON, NS_FORK_FDS }; /* to the client, to the daemon */

/* The fork server's first message, and its answer to each request. */
struct ns_fork_answer {
	pid_t pid; /* of the session; only if err.code is NP_OK */
	struct np_err err;
};

/* Start the fork servers, before the first session. */
void ns_launch_prepare(struct ns_daemon *d);

/*
 * Let the session inherit a filter or, if the limits allow it, have its own (in s->idle_holds).
 * Else it has no packet sockets or rings, and c->uncaptured or c->unlinked says why.
 */
void ns_launch_choose(struct ns_daemon *d, struct ns_caller *c, struct ns_session *s);

/* Start the session's process: sets s->pid. session_fd: its end of the pair. NP_ESYS. */
int ns_launch(struct ns_daemon *d, struct ns_caller *c, struct ns_session *s, int session_fd,
	      struct np_err *err);

/* Was the process that has ended a fork server? The next session starts another one. */
bool ns_launch_reaped(struct ns_daemon *d, pid_t pid);

/* Have f fork the caller's session. NP_ESYS: it failed; without an answer f is ended. */
int ns_forkserver_fork(struct ns_forkserver *f, const struct ns_caller *c, int session_fd,
		       pid_t *pid, struct np_err *err);

/* End a fork server. Its sessions continue. */
void ns_forkserver_end(struct ns_forkserver *f);

/*
 * Confine this process, a fork server for sessions with these NS_FILTER_*, and serve requests from
 * fd until the daemon has gone.
 */
void __attribute__((noreturn))
ns_forkserver_run(struct ns_daemon *d, unsigned filter, int fd, pid_t daemon);

#endif
