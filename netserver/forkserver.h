/*
 * Sessions that inherit their confinement. The kernel makes a program of each filter of system
 * calls, and Linux 6.18 hangs for good when about a thousand of them are freed at once. So sessions
 * have none of their own: a fork server is a child of the daemon that was confined as they are to
 * be. It reads nothing but the daemon's orders, and forks sessions as children of the daemon
 * (CLONE_PARENT), which tells them to end and reaps them as if it had forked them itself.
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

/* What all sessions of one have in common. */
struct ns_kin {
	struct ns_daemon *d;
	bool is_here, evidence;
};

/* What a session needs of its caller, beside the connection and the way to the daemon. */
struct ns_order {
	pid_t daemon;
	struct np_chan chan;
	struct np_addr peer;
	char text[NP_ADDR_TEXT];
	struct np_err uncaptured, unlinked;
};
enum { NS_ORDER_CONTROL, NS_ORDER_WAY, NS_ORDER_FDS };

/* To the start, and to each order. */
struct ns_fork_answer {
	pid_t pid;     /* of the session; 0: none */
	int error;     /* an errno, if there is none */
	char why[200]; /* it could not start */
};

/* ---- In the daemon ---- */

/* Start one. NP_ESYS when there is none to be had, or it can't be confined. */
int ns_forkserver_start(struct ns_forkserver *f, const struct ns_kin *k, struct np_err *err);

/*
 * Have it fork a session, which gets copies of the order and the descriptors. NP_ESYS when there is
 * no process for it. A fork server that has taken the order and does not answer has been ended; one
 * that the kernel did not pass it to stays.
 */
int ns_forkserver_fork(struct ns_forkserver *f, const struct ns_order *order,
		       const int fds[NS_ORDER_FDS], pid_t *pid, struct np_err *err);

/* It is dead, and reaped: f is as before the start. */
void ns_forkserver_forget(struct ns_forkserver *f);

/* End it. Its sessions go on. */
void ns_forkserver_end(struct ns_forkserver *f);

/* ---- In the fork server (forkserver_run.c) ---- */

/* Confine this process, and take orders from fd until the daemon has gone. */
void __attribute__((noreturn)) ns_forkserver_run(int fd, pid_t daemon, const struct ns_kin *k);

#endif
