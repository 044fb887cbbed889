#include "netserver/session.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/sanitized.h"
#include "bench/bench.h"
#include "bench/engine/uring.h"
#include "bench/lacks.h"
#include "net/capture.h"
#include "net/eth.h"
#include "net/sock.h"
#include "netserver/confine.h"
#include "sys/cpu.h"
#include "sys/host.h"

/* The ctx of the functions of np_admission. */
struct to_daemon {
	int fd;
	const struct np_signals *signals;
};

/* False, with errno: it was not sent. flags: MSG_DONTWAIT, or 0. */
static bool
send_message(const struct to_daemon *to, const struct ns_message *m, int flags)
{
	return send(to->fd, m, sizeof(*m), flags | MSG_NOSIGNAL) == (ssize_t)sizeof(*m);
}

/* sys: the errno. */
static int
fail_waiting(int sys, struct np_err *err)
{
	return np_fail(err, NP_ESYS, sys, "wait for permission to begin the test");
}

/* np_admission.ask: ask the daemon, and wait for its answer. */
static int
ask(void *ctx, struct np_wish *wish, int control_fd, struct np_err *err)
{
	const struct to_daemon *to = ctx;
	struct ns_message m = { .type = NS_ASK, .wish = *wish };
	struct pollfd p[2] = { { .fd = to->fd, .events = POLLIN },
			       { .fd = control_fd, .events = POLLRDHUP } };
	int data_fd; /* -1: the daemon passed none */

	if (!send_message(to, &m, 0)) {
		return fail_waiting(errno, err);
	}
	/* Until the daemon answers, the client goes, or a signal comes. */
	while (p[0].revents == 0) {
		int n = ppoll(p, 2, NULL, to->signals->let_in);

		if (n < 0 && (errno != EINTR || np_signalled(to->signals))) {
			return fail_waiting(errno, err);
		}
		if (n > 0 && p[0].revents == 0 && p[1].revents != 0) {
			return np_fail(err, NP_EPEER, ECONNRESET, "the client has disconnected");
		}
	}
	if (np_fds_receive(to->fd, &m, sizeof(m), &data_fd, 1, 0) != (ssize_t)sizeof(m)) {
		return fail_waiting(ECANCELED, err); /* the daemon has closed its end */
	}
	if (m.type == NS_GRANT) {
		*wish = m.wish;
		wish->data_fd = data_fd;
		return NP_OK;
	}
	return np_fail_verbatim(err, NP_EUNSUP, m.error, "%s", m.text);
}

/*
 * np_admission.tell: data move (NULL), which does not block, as another message follows if one is
 * lost; or a test has ended. If the daemon has gone, a signal ends this process.
 */
static void
tell(void *ctx, const struct np_served *served)
{
	struct ns_message m = { .type = served != NULL ? NS_DONE : NS_MOVED };

	if (served != NULL) {
		m.served = *served;
	}
	(void)send_message(ctx, &m, served != NULL ? 0 : MSG_DONTWAIT);
}

/*
 * Wipe passphrases, keys and tokens: this process does not need them, and reads what strangers
 * send. c: the session's caller; NULL: none.
 */
static void
forget_secrets(struct ns_daemon *d, struct ns_caller *c)
{
	explicit_bzero(d->args.passphrase, sizeof(d->args.passphrase));
	explicit_bzero(&d->args.key, sizeof(d->args.key));
	if (c != NULL) {
		explicit_bzero(&c->admit, sizeof(c->admit));
	}
	for (struct ns_session *s = d->sessions; s != NULL; s = s->next) {
		explicit_bzero(&s->handover.token, sizeof(s->handover.token));
		explicit_bzero(&s->wish.token, sizeof(s->wish.token));
	}
	for (struct ns_caller *other = d->callers; other != NULL; other = other->next) {
		/* Most have sent nothing: do not copy their pages. */
		if (other != c && other->chan.have > 0) {
			explicit_bzero(other->chan.in, sizeof(other->chan.in));
		}
	}
}

/* A session in its process, and what it has: what a confined process can't open or look up. */
struct serving {
	struct ns_daemon *d;
	struct ns_caller *c;
	struct np_admission admission; /* without functions: everything is granted */
	struct ns_permit permit;
	struct np_bag *lasting;     /* facts of the host; NULL: none */
	struct np_cgroup *cgroup;   /* open files; NULL: none */
	struct np_capture *capture; /* that the greeting asked for; NULL: none */
	struct np_eth eth;          /* for the tests of the link layer that it asked for */
	bool linked;                /* eth is open */
};

static bool
has_evidence(const struct serving *s)
{
	return (s->c->filter & NS_FILTER_EVIDENCE) != 0;
}

/* Fill *s, but for what open_raw() opens. s->c->filter is set. */
static void
begin(struct serving *s, struct ns_daemon *d, struct ns_caller *c)
{
	*s = (struct serving){ .d = d, .c = c };
	ns_permit_init(&s->permit);
	if (has_evidence(s)) {
		s->lasting = np_bag_new();
		np_host_lasting(s->lasting);
		s->cgroup = np_cgroup_open("", &d->cgroups);
	}
}

/* Free what it has. */
static void
end(struct serving *s)
{
	np_bag_free(s->lasting);
	np_cgroup_close(s->cgroup);
	np_capture_free(s->capture);
	if (s->linked) {
		np_eth_close(&s->eth);
	}
}

/* Does the client want a capture, and may it have one? uncaptured: the daemon has refused it. */
static bool
gets_capture(const struct serving *s)
{
	return has_evidence(s) && s->c->uncaptured.code == NP_OK && ns_wants_capture(s->c);
}

/* For ns_with_raw(): open packet sockets. If one fails, c->uncaptured or c->unlinked says why. */
static void
open_raw(void *ctx)
{
	struct serving *s = ctx;
	struct ns_caller *c = s->c;
	struct np_hello_message hello;
	struct np_addr near;
	bool has_near = np_sock_local(c->chan.fd, &near, NULL) == NP_OK;

	if (gets_capture(s) && has_near) {
		/* Only of packets between these two hosts; the lock keeps it so. */
		const struct np_capture_place place = { .near = near,
							.far = c->peer,
							.lock = true };

		(void)np_capture_open(&s->capture, &place, &c->uncaptured);
	}
	if (ns_greeting_asks(c, NP_CAP_LINK, &hello)) {
		/* Without LLC in the kernel, a socket would load its module. */
		bool connects = (hello.caps & NP_CAP_LLC) != 0 &&
				!np_lacks(s->d->limits.each.lacks, &np_transport_llc, AF_UNSPEC);

		/* If it names no interface, take the one that it came by. */
		if (hello.device[0] == '\0' && has_near) {
			(void)np_addr_device(&near, hello.device);
		}
		s->linked = np_eth_open(&s->eth, hello.device, &c->unlinked) == NP_OK;
		if (s->linked && connects && np_llc_listen(&s->eth, &c->unlinked) != NP_OK) {
			np_eth_close(&s->eth);
			s->linked = false;
		}
	}
}

/* Why a session that lacks a capture, or tests of the link layer, lacks them. */
static const char *
why_none(const struct ns_daemon *d, const struct np_err *failed)
{
	return !d->args.allow_raw      ? "netserver was not started with --allow-raw"
	       : failed->code != NP_OK ? failed->msg
	       : d->args.no_fork       ? "netserver -f does not support it"
				       : "the client must request it when it connects";
}

/* What all sessions with that filter may have. */
static struct ns_sandbox
sandbox_of(const struct ns_daemon *d, unsigned filter)
{
	return (struct ns_sandbox){
		.fill_dir = d->fill_dir,
		.filter = filter,
		.limits = d->limits.each,
	};
}

/* Open the packet sockets that the client wants and may have, then confine this process. */
static int
confine(struct serving *s, bool alone, struct np_err *err)
{
	const struct ns_daemon *d = s->d;
	struct ns_sandbox box = sandbox_of(d, s->c->filter);
	struct np_hello_message hello;
	struct np_err lack;
	bool wants_raw = gets_capture(s) || ns_greeting_asks(s->c, NP_CAP_LINK, &hello);

	/* Also drops CAP_NET_RAW if nothing is wanted. */
	if (d->args.allow_raw && ns_with_raw(wants_raw, open_raw, s, err) != NP_OK) {
		return err->code;
	}
	box.alone = alone;
	box.capture_fd = s->capture != NULL ? np_capture_fd(s->capture) : 0;
	box.link_fd = s->linked ? s->eth.fd : 0;
	/* A ring could send by a packet socket, which the filter forbids but can't see there. */
	box.urings = box.capture_fd > 0 || box.link_fd > 0 ? 0 : d->args.uring;
	if (np_urings_prepare(box.urings, &lack) != NP_OK) {
		np_log(d->log, NP_LOG_INFO, "%s", lack.msg);
	}
	return d->args.no_sandbox ? NP_OK : ns_confine_session(&box, err);
}

/* Serve the client to its end. */
static void
serve(struct serving *s)
{
	struct ns_daemon *d = s->d;
	struct ns_caller *c = s->c;
	struct np_server server = {
		.log = d->log,
		.peer = c->text,
		.client = np_family_of(&c->peer)->is_here ? NULL : &c->peer,
		.is_here = (c->filter & NS_FILTER_UNIX) != 0,
		.quiet = d->args.quiet,
		.limits = d->limits.each,
		.admission = s->admission,
		.terms = { .permit = ns_permit,
			   .permit_ctx = &s->permit,
			   .eth = s->linked ? &s->eth : NULL,
			   .fill_dir = d->fill_dir },
		.signals = d->signals,
		.caps = NP_CAP_PLAN,
		.capture_why_not = why_none(d, &c->uncaptured),
		.collect.capture = s->capture,
		.collect.lasting = s->lasting,
		.collect.cgroup = s->cgroup,
		.link_why_not = why_none(d, &c->unlinked),
	};
	struct np_addr *near = &server.collect.near;
	enum np_log_level level = d->log->level;
	struct np_err err = { .code = NP_OK };
	struct np_event e;
	int rc;

	server.caps |= has_evidence(s) ? NP_CAP_TEST | NP_CAP_HOST | NP_CAP_SEQUENCE : 0;
	server.caps |= s->capture != NULL ? NP_CAP_WIRE : 0;
	server.caps |= s->linked ? NP_CAP_LINK : 0;
	if (np_sock_local(c->chan.fd, near, NULL) != NP_OK || np_family_of(near)->is_here) {
		near->len = 0; /* not over an interface */
	} else {
		np_addr_unmap(near);
	}
	ns_event_begin(&e, "session-begin", &c->peer);
	np_log_event(d->log, NP_LOG_DEBUG, &e, NULL);
	rc = np_server_serve(&server, &c->chan, &err);
	ns_event_begin(&e, "session-end", &c->peer);
	np_event_text(&e, "result", rc == NP_OK ? "ok" : "failed");
	if (rc != NP_OK) {
		np_event_text(&e, "why", err.msg);
	}
	np_log_event(d->log, rc == NP_OK ? NP_LOG_DEBUG : NP_LOG_INFO, &e, NULL);
	d->log->level = level; /* a client may have raised it */
}

/* Drop secrets, and all descriptors but fd, c's (NULL: none) and those of directories. */
static int
shed(struct ns_daemon *d, struct ns_caller *c, int fd, struct np_err *err)
{
	int keep[] = { c != NULL ? c->chan.fd : -1, fd, d->fill_dir, d->cgroups.quota.fd,
		       d->cgroups.other.fd };

	forget_secrets(d, c);
	np_fds_close_except(keep, sizeof(keep) / sizeof(keep[0]));
	/* stderr is shared. Sanitizers report on it. */
	if (!NP_SANITIZED && np_fds_to_null() != 0) {
		return np_fail(err, NP_ESYS, errno, "open /dev/null");
	}
	return ns_confine_die_first(err);
}

void
ns_session_run(struct ns_daemon *d, struct ns_caller *c, int fd, pid_t daemon, struct ns_seal *seal)
{
	struct ns_relay relay = { .fd = fd, .type = NS_LOG_LINE };
	struct to_daemon to = { .fd = fd, .signals = &d->signals };
	const struct ns_sandbox box = sandbox_of(d, c->filter);
	struct np_err err = { .code = NP_OK };
	struct serving s;
	int rc = NP_OK;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != daemon) {
		_exit(0); /* it died before the call took effect */
	}
	d->log->sink = d->log->sink != NULL ? ns_relay_sink : NULL;
	d->log->ctx = &relay;
	np_drive_prepare();
	if (seal == NULL) { /* else ns_session_confine() has done that in the fork server */
		rc = shed(d, c, fd, &err);
	}
	if (rc == NP_OK) {
		begin(&s, d, c);
		s.admission = (struct np_admission){ .ask = ask, .tell = tell, .ctx = &to };
		np_cgroup_forget(&d->cgroups); /* begin() has opened what is needed */
		rc = seal != NULL ? ns_confine_own(&box, seal, &err) : confine(&s, false, &err);
	}
	if (rc != NP_OK) {
		np_log(d->log, NP_LOG_ERROR, "%s: session refused: %s", c->text, err.msg);
		_exit(1);
	}
	serve(&s);
	_exit(0);
}

int
ns_session_confine(struct ns_daemon *d, unsigned filter, int fd, struct ns_seal *seal,
		   struct np_err *err)
{
	const struct ns_sandbox box = sandbox_of(d, filter);

	/* Sessions with rings or packet sockets are not forked here. */
	if (shed(d, NULL, fd, err) != NP_OK || np_urings_prepare(0, err) != NP_OK ||
	    (d->args.allow_raw && ns_with_raw(false, NULL, NULL, err) != NP_OK)) {
		return err->code;
	}
	return ns_confine_shared(&box, seal, err);
}

void
ns_session_serve_here(struct ns_daemon *d, struct ns_caller *c)
{
	const struct np_log log = *d->log;
	struct ns_limited limited;
	struct np_cpulist cpus;
	struct serving s;

	/* One client's settings must not remain for the next one. */
	np_cpus_save(&cpus);
	begin(&s, d, c);
	d->stats.sessions++;
	ns_limit_log(&limited, d->log, &d->session_lines);
	serve(&s);
	end(&s);
	*d->log = log;
	np_cpus_restore(&cpus);
}

/* Receive until c->chan.in is for the session: secrets may come first. Each has a time-out. */
static int
await_admission(const struct ns_daemon *d, struct ns_caller *c, struct np_err *err)
{
	enum ns_admission got = NS_ADMIT_MORE;

	while (got == NS_ADMIT_MORE) {
		uint64_t deadline = ns_hello_until(c->chan.fd, np_now());
		int rc;

		do {
			rc = np_chan_recv(&c->chan, "a request", deadline, d->signals.let_in, err);
		} while (rc == NP_ESYS && err->sys == EINTR && !np_signalled(&d->signals));
		if (rc != NP_OK) {
			return rc;
		}
		got = ns_admit_step(&c->admit, c->chan.in, err);
		if (c->admit.has_reply &&
		    np_chan_send(&c->chan, c->admit.reply, deadline, err) != NP_OK) {
			return err->code;
		}
	}
	return got == NS_ADMIT_IN ? NP_OK : err->code;
}

void
ns_session_serve_alone(struct ns_daemon *d, int fd)
{
	struct ns_caller c = { .peer = { .len = sizeof(c.peer.sa) }, .text = "a client" };
	struct np_err err = { .code = NP_OK };
	struct serving s;

	if (getpeername(fd, (struct sockaddr *)&c.peer.sa, &c.peer.len) == 0 &&
	    !np_family_of(&c.peer)->is_here) {
		np_addr_unmap(&c.peer);
		np_addr_text(&c.peer, c.text);
	}
	c.admit = ns_admission_of(d, fd);
	if (np_chan_open(&c.chan, fd, c.text, &err) == NP_OK) {
		c.chan.may_be_old = true;
		if (!ns_access_admits(&d->access, &c.peer)) {
			np_fail(&err, NP_EPEER, 0, "this address is not allowed");
		} else if (await_admission(d, &c, &err) == NP_OK) {
			c.filter = ns_filter_of(d, &c);
			begin(&s, d, &c);
			np_cgroup_forget(&d->cgroups);
			forget_secrets(d, &c);
			if (confine(&s, true, &err) == NP_OK) {
				serve(&s);
				end(&s);
				return;
			}
			end(&s);
		}
	}
	np_log(d->log, NP_LOG_INFO, "%s: refused: %s", c.text, err.msg);
	close(fd);
}
