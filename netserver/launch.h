/*
 * How the daemon starts the processes of sessions.
 *
 * Most of them inherit their confinement. The kernel compiles each filter of system calls, and
 * Linux 6.18 hangs for good when about a thousand compiled ones are freed at once. So a fork
 * server, a child of the daemon, is confined once, as sessions are to be. It reads only the
 * daemon's requests, and forks sessions as children of the daemon (CLONE_PARENT), which ends and
 * reaps them as its own. Sessions that need their own filter are forked by the daemon.
 */
#ifndef NETSERVER_LAUNCH_H
#define NETSERVER_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "net/addr.h"
#include "wire/chan.h"

/* What ps(1) calls one, to tell it from sessions. */
#define NS_FORKSERVER_NAME "netserver-fork"

struct ns_forkserver {
	pid_t pid; /* 0: it was not started */
	int fd;    /* a pair of SOCK_SEQPACKET */
};

struct ns_daemon;
struct ns_caller;
struct ns_session;

/* What all sessions of one fork server have in common. */
struct ns_session_kind {
	struct ns_daemon *d;
	bool is_here, evidence; /* clients of this machine; evidence may be gathered */
};

/* What a session needs, beside two descriptors: its caller, in part. */
struct ns_fork_request {
	pid_t daemon;
	struct np_chan chan;
	struct np_addr peer;
	char text[NP_ADDR_TEXT];
	struct np_err uncaptured, unlinked;
};
enum { NS_FORK_CONTROL, NS_FORK_DAEMON, NS_FORK_FDS };

/* The fork server's first message, and its answer to each request. */
struct ns_fork_answer {
	pid_t pid;     /* of the session; 0: none */
	int error;     /* then: an errno */
	char why[200]; /* if the fork server could not start: a message */
};

/* ---- In the daemon ---- */

/* Start the fork servers, before the first session. */
void ns_launch_prepare(struct ns_daemon *d);

/*
 * Choose the session's kind of process: one that inherits its filter of system calls or, if the
 * limits allow it, one with its own filter (counted in s->idle_holds). If they do not, the
 * session has no packet sockets or rings, and c->uncaptured or c->unlinked says why.
 */
void ns_launch_choose(struct ns_daemon *d, struct ns_caller *c, struct ns_session *s);

/* Start the session's process: sets s->pid. session_fd: its end of the pair. NP_ESYS. */
int ns_launch(struct ns_daemon *d, struct ns_caller *c, struct ns_session *s, int session_fd,
	      struct np_err *err);

/* Was the process that has ended a fork server? The next session starts another one. */
bool ns_launch_reaped(struct ns_daemon *d, pid_t pid);

/*
 * Have a fork server fork a session, which gets copies of the request and the descriptors. NP_ESYS
 * if that failed; a fork server that received the request and did not answer has been ended.
 */
int ns_forkserver_fork(struct ns_forkserver *f, const struct ns_fork_request *request,
		       const int fds[NS_FORK_FDS], pid_t *pid, struct np_err *err);

/* End a fork server. Its sessions continue. */
void ns_forkserver_end(struct ns_forkserver *f);

/* ---- In the fork server (forkserver.c) ---- */

/* Confine this process, and serve requests from fd until the daemon has gone. */
void __attribute__((noreturn))
ns_forkserver_run(int fd, pid_t daemon, const struct ns_session_kind *k);

#endif
