/*
 * Sessions that inherit their confinement. The kernel makes a program of each filter of system
 * calls, and Linux 6.18 hangs for good when about a thousand of them are freed at once. So sessions
 * have none of their own: a fork server is a child of the daemon that was confined as they are to
 * be. It reads nothing but the daemon's orders, and forks sessions as children of the daemon
 * (CLONE_PARENT), which tells them to end and reaps them as if it had forked them itself.
 */
#ifndef NETSERVER_FORKSERVER_H
#define NETSERVER_FORKSERVER_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "netserver/confine.h"

enum { NS_ORDER_FDS = 2, NS_ORDER_MAX = 8192 };

/* What ps(1) calls one, to tell it from sessions. */
#define NS_FORKSERVER_NAME "netserver-fork"

struct ns_forkserver {
	pid_t pid; /* 0: it was not started */
	int fd;    /* a pair of SOCK_SEQPACKET */
};

/* What its processes do. Those of sessions have the order's descriptors, and never return. */
struct ns_forkwork {
	int (*confine)(void *ctx, int fd, struct ns_seal *seal, struct np_err *err);
	void (*session)(void *ctx, const void *order, const int fds[NS_ORDER_FDS],
			struct ns_seal *seal);
	void *ctx;
};

/*
 * Start one. work->confine() runs in the new process, which needs nothing but descriptor fd.
 * NP_ESYS when there is none to be had, or it can't be confined.
 */
int
ns_forkserver_start(struct ns_forkserver *f, const struct ns_forkwork *work, struct np_err *err);

/*
 * Have it fork a session, which gets copies of the order and the descriptors. NP_ESYS when there is
 * no process for it; where the fork server itself is at fault, that has been ended.
 */
int ns_forkserver_fork(struct ns_forkserver *f, void *order, size_t size,
		       const int fds[NS_ORDER_FDS], pid_t *pid, struct np_err *err);

/* It is dead, and reaped: f is as before the start. */
void ns_forkserver_forget(struct ns_forkserver *f);

/* End it. Its sessions go on. */
void ns_forkserver_end(struct ns_forkserver *f);

#endif
