#include "netserver/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/units.h"
#include "net/addr.h"
#include "net/sock.h"
#include "netserver/caller.h"
#include "netserver/confine.h"
#include "netserver/launch.h"
#include "netserver/notify.h"
#include "netserver/one_port.h"
#include "netserver/passed.h"
#include "netserver/processors.h"
#include "netserver/sessions.h"
#include "netserver/status.h"
#include "wire/plan.h"

enum {
	BACKLOG = 1024,
	EVENTS = 256,      /* of one epoll_wait(2) */
	METRICS_S = 10,    /* between two files of --metrics-file */
	MANY_EVENTS = 32,  /* with more than these, sessions are started one at a time */
	BUSY = 8,          /* let signals in after this many waits that returned at once */
	CALLER_FDS = 4,    /* of epoll, a caller, and the pair between a session and the daemon */
	ENOUGH_FDS = 1024, /* with this limit the open ones need not be counted */
	SPARE = 16,        /* a sixteenth of the descriptors is kept for sessions */
	SESSION_FDS = 20   /* of a session with evidence, at most */
};

/* epoll's data for the daemon's own descriptors: smaller than any pointer. */
enum {
	TAG_LISTENER = 1,
	TAG_DATAGRAMS = TAG_LISTENER + NS_LISTENERS,
	TAG_STATUS = TAG_DATAGRAMS + NS_LISTENERS,
	TAGS
};

/* Add listeners for a family's addresses. An error goes to *first, unless one is there already. */
static void
listen_family(struct ns_daemon *d, const char *host, const char *port, int family,
	      struct np_err *first)
{
	struct np_err err = { .code = NP_OK };
	struct np_addrs addrs;

	if (np_resolve(host, port, family, SOCK_STREAM, &addrs, &err) == NP_OK) {
		for (size_t i = 0; i < addrs.count && d->listener_count < NS_LISTENERS; i++) {
			int fd = np_sock_listen(&addrs.at[i], BACKLOG, &err);

			if (fd >= 0) {
				d->listeners[d->listener_count++] = fd;
			} else if (first->code == NP_OK) {
				*first = err;
			}
		}
	} else if (first->code == NP_OK) {
		*first = err;
	}
}

int
ns_daemon_listen(struct ns_daemon *d, const char *host, const char *port, int family,
		 struct np_err *err)
{
	*err = (struct np_err){ .code = NP_OK };
	d->listener_count = 0;
	if (host == NULL && np_family_or(family, 0) == 0) { /* all addresses of both */
		/* The IPv6 socket usually covers IPv4; then the second bind has to fail. */
		listen_family(d, NULL, port, AF_INET6, err);
		if (err->sys != EADDRINUSE) { /* do not take the port for IPv4 only */
			listen_family(d, NULL, port, AF_INET, err);
		}
	} else {
		listen_family(d, host, port, family, err);
	}
	return d->listener_count > 0 ? NP_OK : (int)err->code;
}

int
ns_daemon_read_rules(struct ns_daemon *d, struct np_err *err)
{
	struct ns_access fresh = d->args.rules;

	if (d->access_file[0] != '\0' && ns_access_read(&fresh, d->access_file, err) != NP_OK) {
		return err->code;
	}
	d->access = fresh;
	return NP_OK;
}

/* Write the metrics file if that is due, or `now`. Returns when to call again. */
static uint64_t
renew_metrics(struct ns_daemon *d, bool now)
{
	struct np_err err = { .code = NP_OK };

	if (d->metrics_dir <= 0) {
		return NP_NEVER;
	}
	if (now || np_now() >= d->metrics_ns) {
		d->metrics_ns = np_deadline(METRICS_S * NP_SEC);
		ns_handovers_count(d); /* sessions receive descriptors without telling the daemon */
		if (ns_metrics_write(d, &err) != NP_OK && !d->metrics_failed) {
			np_log(d->log, NP_LOG_ERROR, "--metrics-file: %s", err.msg);
		}
		d->metrics_failed = err.code != NP_OK; /* once is enough */
		d->stats.metrics_lost += d->metrics_failed;
	}
	return d->metrics_ns;
}

/* epoll_ctl(2) for a descriptor of the daemon's own: `op` with these events. */
static int
watch(const struct ns_daemon *d, int fd, uint64_t tag, uint32_t events, int op)
{
	struct epoll_event ev = { .events = events, .data.u64 = tag };

	return epoll_ctl(d->epoll, op, fd, &ev);
}

/* Call watch() for all listeners. Returns 0, or -1 with errno. */
static int
watch_listeners(const struct ns_daemon *d, uint32_t events, int op)
{
	for (size_t i = 0; i < d->listener_count; i++) {
		if (watch(d, d->listeners[i], TAG_LISTENER + i, events, op) != 0) {
			return -1;
		}
	}
	return 0;
}

int
ns_daemon_descriptors(const struct ns_daemon *d, struct np_err *err)
{
	uint64_t wanted =
	    (uint64_t)d->limits.silent + d->limits.all[NP_RES_SESSIONS] * ns_fds_each(d);
	uint32_t flows = d->limits.each.flows;
	bool unlimited = d->limits.all[NP_RES_SESSIONS] == 0 || d->limits.silent == 0;
	rlim_t needed = CALLER_FDS + NS_FORKSERVERS, least;
	struct rlimit has;

	/* As many as the limits may need. Sessions inherit this. */
	wanted =
	    np_max(wanted, NS_THREAD_FDS * NP_THREADS_MAX + (flows != 0 ? flows : NP_FLOWS_MAX));
	(void)np_fds_raise_limit(unlimited ? UINT_MAX : (unsigned)np_min(wanted, UINT_MAX));
	if (getrlimit(RLIMIT_NOFILE, &has) != 0 || has.rlim_cur >= ENOUGH_FDS) {
		return NP_OK;
	}
	for (int fd = 0; (rlim_t)fd < has.rlim_cur; fd++) {
		needed += fcntl(fd, F_GETFD) >= 0; /* open already */
	}
	least = needed > SESSION_FDS ? needed : SESSION_FDS; /* a session closes the daemon's */
	if (has.rlim_cur < least) {
		return np_fail(err, NP_EUNSUP, 0,
			       "this process may open %llu descriptors, and a session needs %llu "
			       "(try ulimit -n, or LimitNOFILE= of systemd)",
			       (unsigned long long)has.rlim_cur, (unsigned long long)least);
	}
	return NP_OK;
}

/* Set aside descriptors for sessions, set up epoll with all listeners, start the fork servers. */
static int
start_serving(struct ns_daemon *d, struct np_err *err)
{
	struct rlimit files = { .rlim_cur = RLIM_INFINITY };

	getrlimit(RLIMIT_NOFILE, &files);
	d->callers_files = files.rlim_cur - files.rlim_cur / SPARE;
	/* Early in the boot there may be no random bytes: not worth waiting for. */
	(void)!getrandom(&d->rates.seed, sizeof(d->rates.seed), GRND_NONBLOCK);
	ns_passed_begin();
	d->epoll = d->epoll > 0 ? d->epoll : epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll < 0 || watch_listeners(d, EPOLLIN, EPOLL_CTL_ADD) != 0 ||
	    (d->status_fd > 0 && watch(d, d->status_fd, TAG_STATUS, EPOLLIN, EPOLL_CTL_ADD) != 0)) {
		return np_fail(err, NP_ESYS, errno, "wait for callers");
	}
	d->limits.each.one_port = d->args.one_port;
	ns_handovers_set_listeners(d); /* also without --one-port: flags of accept4(2) */
	if (d->args.one_port) {
		ns_handovers_begin(d);
		ns_datagrams_open(d);
	}
	for (size_t i = 0; i < d->listener_count; i++) {
		if (d->datagrams[i] > 0 &&
		    watch(d, d->datagrams[i], TAG_DATAGRAMS + i, EPOLLIN, EPOLL_CTL_ADD) != 0) {
			return np_fail(err, NP_ESYS, errno, "wait for datagrams");
		}
	}
	if (!d->args.no_fork) { /* the daemon should answer soon, beside sessions that are busy */
		ns_processors_set_slice(0, NS_SLICE_SHORT);
	}
	ns_launch_prepare(d);
	return NP_OK;
}

/* Handle an event of epoll, by its tag or the caller or session that it points to. */
static void
handle(struct ns_daemon *d, const struct epoll_event *ev)
{
	if (ev->data.u64 >= TAGS) {
		/* Callers and sessions begin with it. NS_DROPPED: by an earlier event. */
		enum ns_kind kind = *(const enum ns_kind *)ev->data.ptr;

		if (kind == NS_CALLER) {
			ns_front_receive(d, ev->data.ptr);
		} else if (kind == NS_SESSION) {
			ns_session_receive(d, ev->data.ptr, NS_MESSAGES);
		}
	} else if (ev->data.u64 == TAG_STATUS) {
		ns_handovers_count(d); /* as for the metrics */
		ns_status_answer(d);
	} else if (ev->data.u64 >= TAG_DATAGRAMS) {
		ns_datagrams_receive(d, d->datagrams[ev->data.u64 - TAG_DATAGRAMS]);
	} else {
		ns_front_accept(d, d->listeners[ev->data.u64 - TAG_LISTENER]);
	}
}

/* Do what is due after a round of events, many or few. Returns when to call again at the latest. */
static uint64_t
tick(struct ns_daemon *d, bool many_events, bool was_interrupted)
{
	uint64_t now = np_now(), next, sessions, begin, metrics;
	bool pause = now < d->accept_ns;
	struct np_err err = { .code = NP_OK };

	ns_front_free_dropped(d);
	if (was_interrupted) {
		ns_sessions_reap(d);
	}
	if (d->reloads != NULL && *d->reloads != d->reloads_done) {
		d->reloads_done = *d->reloads;
		ns_notify_reloading();
		if (ns_daemon_read_rules(d, &err) != NP_OK) {
			np_log(d->log, NP_LOG_ERROR, "the old rules stay in force: %s", err.msg);
		} else {
			np_log(d->log, NP_LOG_INFO, "rules read again: %zu allow, %zu deny",
			       d->access.allows, d->access.denies);
		}
		ns_notify("READY=1");
	}
	next = ns_front_tick(d, now);
	sessions = ns_sessions_tick(d, now);
	begin = ns_front_begin(d, many_events, np_now());
	metrics = renew_metrics(d, false);
	if (pause != d->accept_paused) {
		/* Without free descriptors a ready listener would make the loop spin. */
		d->accept_paused = pause;
		watch_listeners(d, pause ? 0 : EPOLLIN, EPOLL_CTL_MOD);
	}
	return np_min(np_min(next, sessions), np_min(begin, metrics));
}

/* Wait for events (their number), a signal (-1) or the time `next` (0), up to 1 ms longer. */
static int
await(const struct ns_daemon *d, struct epoll_event *events, uint64_t next)
{
	uint64_t left_ms = (np_excess(next, np_now()) + NP_MSEC - 1) / NP_MSEC;

	return epoll_pwait(d->epoll, events, EVENTS,
			   next == NP_NEVER ? -1 : (int)np_min(left_ms, INT_MAX),
			   d->signals.let_in);
}

int
ns_daemon_run(struct ns_daemon *d, struct np_err *err)
{
	struct epoll_event events[EVENTS];
	static const struct timespec none;
	bool was_interrupted = true; /* a child may have ended already */
	unsigned busy = 0;
	int rc = start_serving(d, err), n = 0;

	while (rc == NP_OK && np_signalled(&d->signals) == 0) {
		uint64_t next = tick(d, n > MANY_EVENTS, was_interrupted);

		if (np_signalled(&d->signals) != 0) {
			break; /* it came while tick() served a session in this process */
		}
		n = await(d, events, next);
		was_interrupted = n < 0;
		for (int i = 0; i < n; i++) {
			handle(d, &events[i]);
		}
		if (n >= 0 && ++busy % BUSY == 0) {
			/* Waits that return at once, as in a flood or with no time left, deliver no
			 * signal. */
			was_interrupted =
			    ppoll(NULL, 0, &none, d->signals.let_in) < 0 || was_interrupted;
		}
	}
	ns_notify("STOPPING=1");
	while (d->listener_count > 0) {
		close(d->listeners[--d->listener_count]);
		if (d->datagrams[d->listener_count] > 0) {
			close(d->datagrams[d->listener_count]);
		}
	}
	if (d->status_fd > 0) {
		ns_passed_close(d->status_fd); /* descriptors may wait in its backlog */
		d->status_fd = 0;
	}
	ns_front_close(d);
	ns_sessions_end(d);
	renew_metrics(d, true);
	np_fds_close(d->epoll);
	return rc;
}
