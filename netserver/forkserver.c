#include "netserver/forkserver.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "netserver/filter.h"
#include "netserver/passed.h"

/* It waits for nobody: an answer takes as long as a fork, on a busy machine, too. */
enum { ANSWER_S = 5 };

/* To the start, and to each order. */
struct answer {
	pid_t pid;     /* of the session; 0: none */
	int error;     /* an errno, if there is none */
	char why[200]; /* it could not start */
};

/* ---- In the fork server ---- */

static ssize_t
take_order(int fd, void *order, size_t size, int fds[NS_ORDER_FDS])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(NS_ORDER_FDS * sizeof(int))];
	} passed;
	struct iovec part = { .iov_base = order, .iov_len = size };
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = &passed,
			    .msg_controllen = sizeof(passed) };
	ssize_t n;

	do {
		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0 || m.msg_controllen < CMSG_LEN(NS_ORDER_FDS * sizeof(int))) {
		return -1; /* the daemon has gone */
	}
	memcpy(fds, CMSG_DATA(&passed.head), NS_ORDER_FDS * sizeof(int));
	return n;
}

/* fork(2), but of a child of the parent's; libc has no use for the seal. */
static pid_t
fork_sealed(const struct ns_seal *seal)
{
#if defined(__s390__)
	return (pid_t)ns_sealed(seal, SYS_clone, 0, NS_FORK, 0, 0);
#else
	return (pid_t)ns_sealed(seal, SYS_clone, NS_FORK, 0, 0, 0);
#endif
}

static void
serve_orders(int fd, const char *name, const struct ns_forkwork *work, struct ns_seal *seal)
{
	_Alignas(max_align_t) uint8_t order[NS_ORDER_MAX];
	int fds[NS_ORDER_FDS];

	while (take_order(fd, order, sizeof(order), fds) >= 0) {
		struct answer a = { .pid = fork_sealed(seal) };

		if (a.pid == 0) {
			prctl(PR_SET_NAME, name);
			close(fd);
			work->session(work->ctx, order, fds, seal);
			_exit(1);
		}
		if (a.pid < 0) {
			a = (struct answer){ .error = errno };
		}
		for (size_t i = 0; i < NS_ORDER_FDS; i++) {
			close(fds[i]);
		}
		if (send(fd, &a, sizeof(a), MSG_NOSIGNAL) != (ssize_t)sizeof(a)) {
			break;
		}
	}
}

static void
run(int fd, pid_t daemon, const struct ns_forkwork *work)
{
	struct np_err err = { .code = NP_OK };
	struct answer ready = { .pid = 0 };
	struct ns_seal seal = { .word = { 0 } };
	char name[16] = ""; /* PR_GET_NAME of prctl(2) */

	prctl(PR_GET_NAME, name);
	prctl(PR_SET_NAME, NS_FORKSERVER_NAME);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != daemon) {
		_exit(0);
	}
	if (work->confine(work->ctx, fd, &seal, &err) != NP_OK) {
		ready.error = err.sys != 0 ? err.sys : EIO;
		snprintf(ready.why, sizeof(ready.why), "%.*s", (int)sizeof(ready.why) - 1, err.msg);
	}
	if (send(fd, &ready, sizeof(ready), MSG_NOSIGNAL) == (ssize_t)sizeof(ready) &&
	    ready.error == 0) {
		serve_orders(fd, name, work, &seal);
	}
	_exit(0);
}

/* ---- In the daemon ---- */

static bool
hear(const struct ns_forkserver *f, struct answer *a)
{
	struct pollfd p = { .fd = f->fd, .events = POLLIN };

	return poll(&p, 1, ANSWER_S * 1000) == 1 &&
	       recv(f->fd, a, sizeof(*a), MSG_DONTWAIT) == (ssize_t)sizeof(*a);
}

int
ns_forkserver_start(struct ns_forkserver *f, const struct ns_forkwork *work, struct np_err *err)
{
	struct answer ready;
	pid_t self = getpid();
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		return np_fail(err, NP_ESYS, errno, "no descriptors for sessions");
	}
	ns_passed_refuse(pair[0]);
	f->pid = fork();
	if (f->pid == 0) {
		run(pair[1], self, work);
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

static bool
give_order(const struct ns_forkserver *f, void *order, size_t size, const int fds[NS_ORDER_FDS])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(NS_ORDER_FDS * sizeof(int))];
	} passed;
	struct iovec part = { .iov_base = order, .iov_len = size };
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = &passed,
			    .msg_controllen = sizeof(passed) };

	memset(&passed, 0, sizeof(passed));
	passed.head.cmsg_level = SOL_SOCKET;
	passed.head.cmsg_type = SCM_RIGHTS;
	passed.head.cmsg_len = CMSG_LEN(NS_ORDER_FDS * sizeof(int));
	memcpy(CMSG_DATA(&passed.head), fds, NS_ORDER_FDS * sizeof(int));
	return sendmsg(f->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size;
}

int
ns_forkserver_fork(struct ns_forkserver *f, void *order, size_t size, const int fds[NS_ORDER_FDS],
		   pid_t *pid, struct np_err *err)
{
	struct answer a;

	if (!give_order(f, order, size, fds) || !hear(f, &a)) {
		ns_forkserver_end(f);
		return np_fail(err, NP_ESYS, errno,
			       "no process for a session: that which forks them does not answer");
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
