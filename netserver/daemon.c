#include "netserver/daemon.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/addr.h"
#include "net/sock.h"
#include "run/server.h"
#include "sys/affinity.h"

enum {
	BACKLOG = 1024,
	TERM_MS = 2000, /* for the sessions to end by themselves when the daemon is ended */
	PAUSE_MS = 100  /* after an accept() that failed for want of descriptors or memory */
};

static void
add_listeners(struct ns_daemon *d, const struct np_addrs *addrs, struct np_err *first)
{
	for (size_t i = 0; i < addrs->count && d->listener_count < NS_LISTENERS; i++) {
		struct np_err err = { .code = NP_OK };
		int fd = np_sock_listen(&addrs->at[i], BACKLOG, &err);

		if (fd >= 0) {
			d->listeners[d->listener_count++] = fd;
		} else if (first->code == NP_OK) {
			*first = err;
		}
	}
}

/* A family's addresses; a failure is only worth a word when no listener comes about at all. */
static void
listen_family(struct ns_daemon *d, const char *host, const char *port, int family,
	      struct np_err *first)
{
	struct np_err err = { .code = NP_OK };
	struct np_addrs addrs;

	if (np_resolve(host, port, family, SOCK_STREAM, &addrs, &err) == NP_OK) {
		add_listeners(d, &addrs, first);
	} else if (first->code == NP_OK) {
		*first = err;
	}
}

int
ns_daemon_listen(struct ns_daemon *d, const char *host, const char *port, int family,
		 struct np_err *err)
{
	struct np_err first = { .code = NP_OK };

	d->listener_count = 0;
	if (host == NULL && family == AF_UNSPEC) {
		/* The IPv6 socket mostly covers IPv4; then the second bind fails, rightly. */
		listen_family(d, NULL, port, AF_INET6, &first);
		if (first.sys != EADDRINUSE) { /* half of a port would surprise */
			listen_family(d, NULL, port, AF_INET, &first);
		}
	} else {
		listen_family(d, host, port, family, &first);
	}
	if (d->listener_count == 0) {
		*err = first;
		return err->code;
	}
	return NP_OK;
}

static void
close_listeners(struct ns_daemon *d)
{
	while (d->listener_count > 0) {
		close(d->listeners[--d->listener_count]);
	}
}

void
ns_daemon_serve(struct ns_daemon *d, int fd)
{
	struct np_addr peer = { .len = sizeof(peer.sa) };
	char text[NP_ADDR_TEXT] = "a client";
	struct np_server server = {
		.log = d->log,
		.peer = text,
		.quiet = d->quiet,
		.passphrase = d->passphrase,
		.fill_dir = d->fill_dir,
		.signals = d->signals,
	};
	struct np_err err = { .code = NP_OK };
	enum np_log_level level = d->log->level;

	if (getpeername(fd, (struct sockaddr *)&peer.sa, &peer.len) == 0 &&
	    peer.sa.ss_family != AF_UNIX) {
		np_addr_unmap(&peer);
		np_addr_text(&peer, text);
	}
	np_log(d->log, NP_LOG_DEBUG, "%s: session begins", text);
	if (np_server_serve(&server, fd, &err) != NP_OK) {
		np_log(d->log, NP_LOG_INFO, "%s: session ended: %s", text, err.msg);
	} else {
		np_log(d->log, NP_LOG_DEBUG, "%s: session ends", text);
	}
	d->log->level = level;
}

/* The session's process: it ends with its daemon, whatever becomes of that. */
static void
run_child(struct ns_daemon *d, int fd, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent) {
		_exit(0); /* the daemon died before the call took effect */
	}
	close_listeners(d);
	ns_daemon_serve(d, fd);
	_exit(0);
}

/* Room in the list for one more child; without it there must be none. */
static bool
make_room(struct ns_daemon *d)
{
	size_t room = d->session_room > 0 ? 2 * d->session_room : 64;
	pid_t *list;

	if (d->session_count < d->session_room) {
		return true;
	}
	list = realloc(d->sessions, room * sizeof(*list));
	if (list != NULL) {
		d->sessions = list;
		d->session_room = room;
	}
	return list != NULL;
}

static void
start_session(struct ns_daemon *d, int fd)
{
	pid_t self = getpid(), pid;

	if (d->no_fork) {
		struct np_cpus cpus;

		/* What one client asks for must not stay for the next. */
		np_cpus_save(&cpus);
		ns_daemon_serve(d, fd);
		np_cpus_restore(&cpus);
		return;
	}
	pid = make_room(d) ? fork() : -1;
	if (pid == 0) {
		run_child(d, fd, self);
	}
	if (pid < 0) {
		np_log(d->log, NP_LOG_ERROR, "no process for a session: %s", strerror(errno));
	} else {
		d->sessions[d->session_count++] = pid;
	}
	close(fd);
}

static void
forget(struct ns_daemon *d, pid_t pid)
{
	for (size_t i = 0; i < d->session_count; i++) {
		if (d->sessions[i] == pid) {
			d->sessions[i] = d->sessions[--d->session_count];
			return;
		}
	}
}

static void
reap(struct ns_daemon *d)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		forget(d, pid);
		if (WIFSIGNALED(status)) {
			np_log(d->log, NP_LOG_ERROR, "session process %ld was ended by signal %d",
			       (long)pid, WTERMSIG(status));
		}
	}
}

static void
accept_one(struct ns_daemon *d, int listener)
{
	struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd >= 0) {
		start_session(d, fd);
		return;
	}
	switch (errno) {
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		/* The connection stays in the queue: try again when there may be room. */
		np_log(d->log, NP_LOG_ERROR, "accept a connection: %s", strerror(errno));
		ppoll(NULL, 0, &pause, d->signals.let_in);
		break;
	default:
		break; /* the client is gone already, or another one was faster */
	}
}

static void
signal_sessions(const struct ns_daemon *d, int sig)
{
	for (size_t i = 0; i < d->session_count; i++) {
		kill(d->sessions[i], sig);
	}
}

static void
await_sessions(struct ns_daemon *d)
{
	uint64_t until = np_deadline(TERM_MS * NP_MSEC);
	struct timespec left;

	reap(d);
	while (d->session_count > 0 && np_now() < until) {
		ppoll(NULL, 0, np_left(until, &left), d->signals.let_in);
		reap(d);
	}
}

/* Tell every session to end, wait, and end those that do not. */
static void
end_sessions(struct ns_daemon *d)
{
	if (d->session_count > 0) {
		np_log(d->log, NP_LOG_INFO, "ending %zu sessions", d->session_count);
		signal_sessions(d, SIGTERM);
		await_sessions(d);
		signal_sessions(d, SIGKILL);
		await_sessions(d);
	}
	free(d->sessions);
	d->sessions = NULL;
	d->session_room = d->session_count = 0;
}

void
ns_daemon_run(struct ns_daemon *d)
{
	struct pollfd p[NS_LISTENERS];

	for (size_t i = 0; i < d->listener_count; i++) {
		p[i].fd = d->listeners[i];
		p[i].events = POLLIN;
	}
	while (np_signalled(&d->signals) == 0) {
		int n = ppoll(p, d->listener_count, NULL, d->signals.let_in);

		reap(d);
		for (size_t i = 0; n > 0 && i < d->listener_count; i++) {
			if (p[i].revents != 0) {
				accept_one(d, p[i].fd);
			}
		}
	}
	close_listeners(d);
	end_sessions(d);
}
