#include "netserver/launch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "netserver/confine.h"
#include "netserver/filter.h"
#include "netserver/passed.h"
#include "netserver/session.h"

/* Close the socket to a fork server that was reaped. */
static void
forget(struct ns_forkserver *f)
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
		forget(f);
	}
}

/* A fork server never waits for a client: an answer takes as long as a fork on a busy machine. */
enum { ANSWER_S = 5 };

/* False: it does not answer, or has ended. */
static bool
receive_answer(const struct ns_forkserver *f, struct ns_fork_answer *a)
{
	struct pollfd p = { .fd = f->fd, .events = POLLIN };

	return poll(&p, 1, ANSWER_S * 1000) == 1 &&
	       recv(f->fd, a, sizeof(*a), MSG_DONTWAIT) == (ssize_t)sizeof(*a);
}

/* Start a fork server for sessions with that filter. NP_ESYS: it cannot be forked or confined. */
static int
start(struct ns_daemon *d, struct ns_forkserver *f, unsigned filter, struct np_err *err)
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
		ns_forkserver_run(d, filter, pair[1], self);
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
	if (!receive_answer(f, &ready)) {
		ns_forkserver_end(f);
		return np_fail(err, NP_ESYS, 0, "the process for sessions does not answer");
	}
	if (ready.err.code != NP_OK) {
		ns_forkserver_end(f);
		*err = ready.err;
	}
	return ready.err.code;
}

int
ns_forkserver_fork(struct ns_forkserver *f, const struct ns_caller *c, int session_fd, pid_t *pid,
		   struct np_err *err)
{
	const int fds[NS_FORK_FDS] = {
		[NS_FORK_CONTROL] = c->chan.fd, [NS_FORK_DAEMON] = session_fd
	};
	struct ns_caller request = *c;
	struct ns_fork_answer a;

	explicit_bzero(&request.admit, sizeof(request.admit)); /* no session needs it */
	/* If it has ended (EPIPE, ECONNRESET), receive_answer() fails, and cleans up below. */
	if (!np_fds_pass(f->fd, &request, sizeof(request), fds, NS_FORK_FDS) && errno != EPIPE &&
	    errno != ECONNRESET) {
		return np_fail(err, NP_ESYS, errno, "no process for a session: request one");
	}
	if (!receive_answer(f, &a)) {
		np_fail(err, NP_ESYS, 0,
			"no process for a session: its fork server does not answer");
		ns_forkserver_end(f);
		return err->code;
	}
	if (a.err.code != NP_OK) {
		*err = a.err;
	}
	*pid = a.pid;
	return a.err.code;
}

/* Do sessions have a filter of system calls? Most inherit it from a fork server; others make it. */
static bool
has_filter(const struct ns_daemon *d)
{
	return !d->args.no_sandbox && ns_filter_lacks() == NULL;
}

/* The fork server of that filter, started if need be; NULL, with err, if that fails. */
static struct ns_forkserver *
forkserver_of(struct ns_daemon *d, unsigned filter, struct np_err *err)
{
	struct ns_forkserver *f = &d->forkserver[filter];

	return f->pid != 0 || start(d, f, filter, err) == NP_OK ? f : NULL;
}

void
ns_launch_prepare(struct ns_daemon *d)
{
	struct np_err err = { .code = NP_OK };

	for (unsigned filter = 0; filter < NS_FORKSERVERS; filter++) {
		bool is_used = has_filter(d) && !d->args.no_fork &&
			       !((filter & NS_FILTER_EVIDENCE) != 0 && d->args.no_evidence);

		if (is_used && forkserver_of(d, filter, &err) == NULL) {
			np_log(d->log, NP_LOG_ERROR, "%s", err.msg); /* tried again */
		}
	}
}

/* Packet sockets and rings are opened before the filter, which names them: it is not inherited. */
void
ns_launch_choose(struct ns_daemon *d, struct ns_caller *c, struct ns_session *s)
{
	struct np_hello_message hello;
	bool links = d->args.allow_raw && ns_greeting_asks(c, NP_CAP_LINK, &hello);
	struct np_err err = { .code = NP_OK };

	c->unlinked.code = NP_OK;
	if (!has_filter(d) ||
	    (s->idle_holds[NP_RES_CAPTURES] == 0 && !links && d->args.uring == 0)) {
		return;
	}
	if (ns_guard_filter(&d->limits, d->sessions, &c->peer, &d->rates, np_now(), &err) ==
	    NP_OK) {
		s->idle_holds[NP_RES_FILTERS] = 1;
		return;
	}
	d->stats.refused[NS_FILTERED]++;
	if (s->idle_holds[NP_RES_CAPTURES] > 0) {
		c->uncaptured = err;
	}
	if (links) {
		c->unlinked = err;
	}
	s->idle_holds[NP_RES_CAPTURES] = 0;
}

bool
ns_launch_reaped(struct ns_daemon *d, pid_t pid)
{
	for (size_t i = 0; i < NS_FORKSERVERS; i++) {
		if (d->forkserver[i].pid == pid) {
			forget(&d->forkserver[i]);
			if (ns_lines_may(&d->lines, NULL, d->log)) {
				np_log(d->log, NP_LOG_ERROR,
				       "process %ld, which forks sessions, has ended", (long)pid);
			}
			return true;
		}
	}
	return false;
}

int
ns_launch(struct ns_daemon *d, struct ns_caller *c, struct ns_session *s, int session_fd,
	  struct np_err *err)
{
	struct ns_forkserver *f;
	pid_t self = getpid();

	if (!has_filter(d) || s->idle_holds[NP_RES_FILTERS] != 0) {
		s->pid = fork();
		if (s->pid == 0) {
			ns_session_run(d, c, session_fd, self, NULL);
		}
		return s->pid > 0 ? NP_OK
				  : np_fail(err, NP_ESYS, errno, "no process for a session");
	}
	/* Let a fork server fork it, so that it inherits the filter. */
	f = forkserver_of(d, c->filter, err);
	return f != NULL ? ns_forkserver_fork(f, c, session_fd, &s->pid, err) : (int)err->code;
}
