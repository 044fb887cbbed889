/*
 * Sessions that inherit their confinement. The kernel compiles each filter of system calls, and
 * Linux 6.18 hangs for good when about a thousand compiled ones are freed at once. So sessions have
 * none of their own: a fork server is a child of the daemon that is confined as they are to be. It
 * reads only the daemon's orders, and forks sessions as children of the daemon (CLONE_PARENT),
 * which ends and reaps them as if it had forked them itself.
 */
#ifndef NETSERVER_FORKSERVER_H
#define NETSERVER_FORKSERVER_H

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

/* What all sessions of one fork server have in common. */
struct ns_kin {
	struct ns_daemon *d;
	bool is_here, evidence;
};

/* What a session needs of its caller, beside the connection and the sockets to the daemon. */
struct ns_order {
	pid_t daemon;
	struct np_chan chan;
	struct np_addr peer;
	char text[NP_ADDR_TEXT];
	struct np_err uncaptured, unlinked;
};
enum { NS_ORDER_CONTROL, NS_ORDER_WAY, NS_ORDER_FDS };

/* The answer to the start, and to each order. */
struct ns_fork_answer {
	pid_t pid;     /* of the session; 0: none */
	int error;     /* then: an errno */
	char why[200]; /* the fork server could not start */
};

/* ---- In the daemon ---- */

/* Start one. NP_ESYS if it can't be forked or confined. */
int ns_forkserver_start(struct ns_forkserver *f, const struct ns_kin *k, struct np_err *err);

/*
 * Have it fork a session, which gets copies of the order and the descriptors. NP_ESYS if that
 * failed; a fork server that received the order and did not answer has been ended.
 */
int ns_forkserver_fork(struct ns_forkserver *f, const struct ns_order *order,
		       const int fds[NS_ORDER_FDS], pid_t *pid, struct np_err *err);

/* It has ended, and was reaped: f is as before the start. */
void ns_forkserver_forget(struct ns_forkserver *f);

/* End it. Its sessions go on. */
void ns_forkserver_end(struct ns_forkserver *f);

/* ---- In the fork server (forkserver_run.c) ---- */

/* Confine this process, and take orders from fd until the daemon has gone. */
void __attribute__((noreturn)) ns_forkserver_run(int fd, pid_t daemon, const struct ns_kin *k);

#endif
