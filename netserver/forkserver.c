#include "netserver/forkserver.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fds.h"
#include "netserver/passed.h"

/* A fork server never waits for a client: an answer takes as long as a fork on a busy machine. */
enum { ANSWER_S = 5 };

static bool
hear(const struct ns_forkserver *f, struct ns_fork_answer *a)
{
	struct pollfd p = { .fd = f->fd, .events = POLLIN };

	return poll(&p, 1, ANSWER_S * 1000) == 1 &&
	       recv(f->fd, a, sizeof(*a), MSG_DONTWAIT) == (ssize_t)sizeof(*a);
}

int
ns_forkserver_start(struct ns_forkserver *f, const struct ns_kin *k, struct np_err *err)
{
	struct ns_fork_answer ready;
	pid_t self = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		return np_fail(err, NP_ESYS, errno, "no descriptors for sessions");
	}
	ns_passed_refuse(pair[0]);
	f->pid = fork();
	if (f->pid == 0) {
		ns_forkserver_run(pair[1], self, k);
	}
	if (f->pid < 0) {
		np_fail(err, NP_ESYS, errno, "no process for sessions");
		close(pair[0]);
		close(pair[1]);
		f->pid = 0;
		return err->code;
	}
	close(pair[1]);
	f->fd = pair[0];
	if (!hear(f, &ready)) {
		ns_forkserver_end(f);
		return np_fail(err, NP_ESYS, 0, "the process for sessions does not answer");
	}
	if (ready.error != 0) {
		ns_forkserver_end(f);
		return np_fail(err, NP_ESYS, 0, "%.*s", (int)sizeof(ready.why) - 1, ready.why);
	}
	return NP_OK;
}

int
ns_forkserver_fork(struct ns_forkserver *f, const struct ns_order *order,
		   const int fds[NS_ORDER_FDS], pid_t *pid, struct np_err *err)
{
	struct ns_fork_answer a;

	if (!np_fds_pass(f->fd, order, sizeof(*order), fds, NS_ORDER_FDS, MSG_DONTWAIT) &&
	    errno != EPIPE && errno != ECONNRESET) {
		return np_fail(err, NP_ESYS, errno, "no process for a session: order one");
	}
	if (!hear(f, &a)) {
		np_fail(err, NP_ESYS, errno,
			"no process for a session: that which forks them does not answer");
		ns_forkserver_end(f);
		return err->code;
	}
	if (a.error != 0) {
		return np_fail(err, NP_ESYS, a.error, "no process for a session");
	}
	*pid = a.pid;
	return NP_OK;
}

void
ns_forkserver_forget(struct ns_forkserver *f)
{
	ns_passed_close(f->fd);
	*f = (struct ns_forkserver){ .pid = 0 };
}

void
ns_forkserver_end(struct ns_forkserver *f)
{
	if (f->pid > 0) {
		kill(f->pid, SIGKILL);
		(void)waitpid(f->pid, NULL, 0);
		ns_forkserver_forget(f);
	}
}
