#include "netserver/sessions.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/secret.h"
#include "bench/engine/uring.h"
#include "bench/transport/unix.h"
#include "net/capture.h"
#include "net/llc.h"
#include "net/sock.h"
#include "netserver/confine.h"
#include "netserver/filter.h"
#include "netserver/passed.h"
#include "netserver/relay.h"
#include "run/server.h"
#include "sys/affinity.h"
#include "sys/host.h"
#include "wire/ext.h"

enum {
	/* Beside a test's length: for the client to come with its data connection, which it may put
	 * off, for what is on its way at the end, and for the results to be taken. */
	GRACE_S = 150,
	BETWEEN_S = 30, /* beside what a session lets its client think between two requests */
	ROOM_S = 5,     /* for one that is ended to give back what it has */
	SOON_S = 1,     /* for others to end by themselves */
	AT_ONCE = 16,   /* words of a session */
	TERM_MS = 2000  /* to end by itself when told to */
};

void
ns_event_begin(struct np_event *e, const char *name, const struct np_addr *peer)
{
	char host[NP_ADDR_TEXT];

	np_event_begin(e, name);
	if (np_addr_size(peer) > 0) {
		np_event_text(e, "peer", np_addr_host(peer, host));
		np_event_number(e, "port", np_addr_port(peer));
	}
}

/* ---- What the two say to each other ---- */

enum ns_verb { NS_ASK, NS_MOVED, NS_DONE, NS_REFUSED, NS_GRANT, NS_REFUSE, NS_TELL };

/* One packet each; both ends are of one program. */
struct ns_word {
	enum ns_verb verb;
	int error; /* NS_REFUSE, NS_REFUSED: an errno */
	struct np_wish wish;
	struct np_served served;
	char text[200]; /* why not */
};

/* What a session may send. */
union packet {
	struct ns_word word;
	struct ns_line line; /* of NS_TELL */
};

static bool
say(int fd, const struct ns_word *w)
{
	return send(fd, w, sizeof(*w), MSG_NOSIGNAL) == (ssize_t)sizeof(*w);
}

/* ---- In the session's process ---- */

struct leave {
	int fd; /* to the daemon */
	const struct np_signals *signals;
};

static int
gone(int sys, struct np_err *err)
{
	return np_fail(err, NP_ESYS, sys, "wait for permission to begin the test");
}

/* Until the daemon answers, the client goes, or a signal comes. */
static int
await_answer(const struct leave *l, int control_fd, struct np_err *err)
{
	struct pollfd p[2] = { { .fd = l->fd, .events = POLLIN },
			       { .fd = control_fd, .events = POLLRDHUP } };

	for (;;) {
		int n = ppoll(p, 2, NULL, l->signals->let_in);

		if (n < 0 && (errno != EINTR || np_signalled(l->signals))) {
			return gone(errno, err);
		}
		if (n > 0 && p[0].revents != 0) {
			return NP_OK;
		}
		if (n > 0 && p[1].revents != 0) {
			return np_fail(err, NP_EPEER, ECONNRESET, "the client has disconnected");
		}
	}
}

static int
ask(void *ctx, struct np_wish *wish, int control_fd, struct np_err *err)
{
	const struct leave *l = ctx;
	struct ns_word w;

	memset(&w, 0, sizeof(w));
	w.verb = NS_ASK;
	w.wish = *wish;
	if (!say(l->fd, &w)) {
		return gone(errno, err);
	}
	if (await_answer(l, control_fd, err) != NP_OK) {
		return err->code;
	}
	if (recv(l->fd, &w, sizeof(w), 0) != (ssize_t)sizeof(w)) {
		return gone(ECANCELED, err);
	}
	if (w.verb == NS_GRANT) {
		*wish = w.wish;
		return NP_OK;
	}
	np_fail(err, NP_EUNSUP, 0, "%s", w.text);
	err->sys = w.error;
	return err->code;
}

/* It is no matter whether one of these gets lost. */
static void
moved(void *ctx)
{
	const struct leave *l = ctx;
	struct ns_word w;

	memset(&w, 0, sizeof(w));
	w.verb = NS_MOVED;
	(void)!send(l->fd, &w, sizeof(w), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
done(void *ctx, const struct np_served *served)
{
	const struct leave *l = ctx;
	struct ns_word w;

	memset(&w, 0, sizeof(w));
	w.verb = NS_DONE;
	w.served = *served;
	(void)say(l->fd, &w);
}

static void
refused(void *ctx, int error)
{
	const struct leave *l = ctx;
	struct ns_word w;

	memset(&w, 0, sizeof(w));
	w.verb = NS_REFUSED;
	w.error = error;
	(void)say(l->fd, &w);
}

/*
 * What lets clients in is of no more use in this process, which strangers' bytes come to. c: whose
 * session it is; NULL: anybody's.
 */
static void
forget_secrets(struct ns_daemon *d, struct ns_caller *c)
{
	if (d->passphrase != NULL) {
		np_secret_wipe(d->passphrase, strlen(d->passphrase));
	}
	if (d->key != NULL) {
		np_secret_wipe(d->key, sizeof(*d->key));
	}
	if (c != NULL) {
		np_secret_wipe(&c->admit, sizeof(c->admit));
	}
	for (struct ns_caller *other = d->callers; other != NULL; other = other->next) {
		/* Most are silent: their pages stay the daemon's. */
		if (other != c && other->chan.have > 0) {
			np_secret_wipe(other->chan.in, sizeof(other->chan.in));
		}
	}
}

/* Does the client's first message, if it is a greeting, want a capture? */
static bool
wants_capture(const struct ns_caller *c)
{
	struct np_hello hello;
	struct np_err ignored;

	return !np_addr_is_local_only(&c->peer) && c->chan.have == NP_FRAME_SIZE &&
	       np_frame_head(c->chan.in).code == NP_EXT_HELLO &&
	       np_hello_get(c->chan.in, &hello, &ignored) == NP_OK &&
	       (hello.caps & NP_CAP_WIRE) != 0;
}

/* Of what goes between the two hosts, and nothing else ever. */
static void
open_capture(struct ns_caller *c)
{
	struct np_capture_place place = { .far = c->peer, .lock = true };

	place.near.len = sizeof(place.near.sa);
	if (getsockname(c->chan.fd, (struct sockaddr *)&place.near.sa, &place.near.len) == 0) {
		(void)np_capture_open(&c->capture, &place, &c->uncaptured);
	}
}

/* The interface that the first message names for tests of the link layer, if it wants them. */
static bool
wants_link(const struct ns_caller *c, char device[NP_EXT_DEVICE], bool *connects)
{
	struct np_hello hello;
	struct np_err ignored;
	bool wants =
	    c->chan.have == NP_FRAME_SIZE && np_frame_head(c->chan.in).code == NP_EXT_HELLO &&
	    np_hello_get(c->chan.in, &hello, &ignored) == NP_OK && (hello.caps & NP_CAP_LINK) != 0;

	snprintf(device, NP_EXT_DEVICE, "%s", wants ? hello.device : "");
	*connects = wants && (hello.caps & NP_CAP_LLC) != 0;
	return wants;
}

/* Where it names none, that by which it came. */
static void
open_link(struct ns_caller *c, char device[NP_EXT_DEVICE], bool connects)
{
	struct np_addr near = { .len = sizeof(near.sa) };

	if (device[0] == '\0' &&
	    getsockname(c->chan.fd, (struct sockaddr *)&near.sa, &near.len) == 0) {
		np_addr_unmap(&near);
		(void)np_host_device((const struct sockaddr *)&near.sa, device);
	}
	c->linked = np_eth_open(&c->eth, device, &c->unlinked) == NP_OK;
	if (c->linked && connects && np_llc_listen(&c->eth, &c->unlinked) != NP_OK) {
		np_eth_close(&c->eth);
		c->linked = false;
	}
}

/* What takes CAP_NET_RAW. */
struct raw {
	struct ns_caller *caller;
	bool capture, link;         /* what is wanted */
	bool connects;              /* by the link, with connections */
	char device[NP_EXT_DEVICE]; /* of the link; empty: by address */
};

static void
open_raw(void *ctx)
{
	struct raw *raw = ctx;

	if (raw->capture) {
		open_capture(raw->caller);
	}
	if (raw->link) {
		open_link(raw->caller, raw->device, raw->connects);
	}
}

static const char *
why_no_link(const struct ns_daemon *d, const struct ns_caller *c)
{
	return !d->allow_raw               ? "netserver was not started with --allow-raw"
	       : c->unlinked.code != NP_OK ? c->unlinked.msg
	       : d->no_fork                ? "netserver -f does not support it"
					   : "the client must request it when it connects";
}

static const char *
why_no_capture(const struct ns_daemon *d, const struct ns_caller *c)
{
	return !d->allow_raw                 ? "netserver was not started with --allow-raw"
	       : c->uncaptured.code != NP_OK ? c->uncaptured.msg
	       : d->no_fork                  ? "netserver -f does not support captures"
					     : "the client must request it when it connects";
}

/* What all sessions of a kind may have. */
static struct ns_sandbox
sandbox_of(const struct ns_daemon *d, bool is_here, bool evidence)
{
	return (struct ns_sandbox){
		.prepared = d->prepared,
		.fill_dir = d->fill_dir,
		.unix_tests = is_here,
		.evidence = evidence,
		.bytes = d->limits.each.bytes,
		.flows = d->limits.each.flows,
	};
}

/*
 * Confine this process to what the client may have, beside a capture, which has to be opened
 * before. The interfaces are asked for before, too.
 */
static int
confine(const struct ns_daemon *d, struct ns_caller *c, bool is_here, bool evidence,
	struct np_err *err)
{
	struct ns_sandbox box = sandbox_of(d, is_here, evidence);
	struct np_err lack;
	struct raw raw = {
		.caller = c,
		.capture = evidence && c->uncaptured.code == NP_OK && wants_capture(c),
	};

	raw.link = wants_link(c, raw.device, &raw.connects);
	if (d->allow_raw && ns_with_raw(raw.capture || raw.link, open_raw, &raw, err) != NP_OK) {
		return err->code;
	}
	box.capture_fd = c->capture != NULL ? np_capture_fd(c->capture) : 0;
	box.link_fd = c->linked ? c->eth.fd : 0;
	/* The filter can't see what a ring sends by a packet socket that is not to send. */
	box.urings = box.capture_fd > 0 || box.link_fd > 0 ? 0 : d->urings;
	if (np_urings_lend(box.urings, &lack) != NP_OK) {
		np_log(d->log, NP_LOG_INFO, "%s", lack.msg);
	}
	return d->sandbox ? ns_confine_session(&box, err) : NP_OK;
}

/*
 * Does the caller's first message, which has come already, greet us, and may it? Only then its
 * session may read what evidence takes. Who does not say so at once can't have it later.
 */
static bool
gathers_evidence(const struct ns_daemon *d, const struct ns_caller *c)
{
	return d->evidence && np_frame_head(c->chan.in).code == NP_EXT_HELLO;
}

/* What kinds of service differ in. */
struct means {
	bool evidence;
	struct np_bag *lasting;   /* facts of the host, read before it was confined; NULL: none */
	struct np_cgroup *cgroup; /* files that were opened then; NULL: none */
	struct ns_permit permit;  /* read then */
	const struct np_leave *leave; /* NULL: everything is granted */
};

/* What a confined session can't look up: facts of the host, and files that it may go on to read. */
static void
look_up(struct ns_daemon *d, struct means *by)
{
	by->lasting = np_bag_new();
	np_host_lasting("", by->lasting);
	by->cgroup = np_cgroup_open("", &d->cgroups);
}

static void
drop_means(struct means *by)
{
	np_bag_free(by->lasting);
	np_cgroup_close(by->cgroup);
}

/* Their common end. */
static void
serve(struct ns_daemon *d, struct ns_caller *c, bool is_here, struct means *by)
{
	struct np_server server = {
		.log = d->log,
		.peer = c->text,
		.is_here = is_here,
		.quiet = d->quiet,
		.fill_dir = d->fill_dir,
		.limits = d->limits.each,
		.permit = ns_permit,
		.permit_ctx = &by->permit,
		.signals = d->signals,
		.caps = NP_CAP_PLAN | NP_CAP_ENGINES | NP_CAP_FRACTION,
		.capture_why_not = why_no_capture(d, c),
		.collect.capture = c->capture,
		.collect.lasting = by->lasting,
		.collect.cgroup = by->cgroup,
		.eth = c->linked ? &c->eth : NULL,
		.link_why_not = why_no_link(d, c),
	};
	struct np_addr *near = &server.collect.near;
	enum np_log_level level = d->log->level;
	struct np_err err = { .code = NP_OK };
	struct np_event e;
	int rc;

	if (by->leave != NULL) {
		server.leave = *by->leave;
	}
	server.caps |= by->evidence ? NP_CAP_TEST | NP_CAP_HOST | NP_CAP_SEQUENCE : 0;
	server.caps |= by->evidence && c->capture != NULL ? NP_CAP_WIRE : 0;
	server.caps |= c->linked ? NP_CAP_LINK : 0;
	near->len = sizeof(near->sa);
	if (getsockname(c->chan.fd, (struct sockaddr *)&near->sa, &near->len) != 0 ||
	    np_addr_is_local_only(near)) {
		near->len = 0;
	} else {
		np_addr_unmap(near);
	}
	np_sock_watch_peer(c->chan.fd);
	ns_event_begin(&e, "session-begin", &c->peer);
	np_log_event(d->log, NP_LOG_DEBUG, &e, NULL);
	rc = np_server_serve(&server, &c->chan, &err);
	np_capture_free(c->capture);
	c->capture = NULL;
	if (c->linked) {
		np_eth_close(&c->eth);
		c->linked = false;
	}
	ns_event_begin(&e, "session-end", &c->peer);
	np_event_text(&e, "result", rc == NP_OK ? "ok" : "failed");
	if (rc != NP_OK) {
		np_event_text(&e, "why", err.msg);
	}
	np_log_event(d->log, rc == NP_OK ? NP_LOG_DEBUG : NP_LOG_INFO, &e, NULL);
	d->log->level = level;
}

/* Nobody knows whose standard error that is, and who else writes there. */
static int
drop_descriptors(int *keep, size_t count, struct np_err *err)
{
	np_fds_drop_but(keep, count);
	return NS_SANITIZED || np_fds_empty() == 0 ? NP_OK
						   : np_fail(err, NP_ESYS, errno, "open /dev/null");
}

/*
 * A session's process, which ends with its daemon, whatever becomes of that. fd: to the daemon.
 * seal: of the fork server that forked it confined, but for its files; NULL: the daemon did, and it
 * has all that the daemon had.
 */
static void __attribute__((noreturn))
run_session(struct ns_daemon *d, struct ns_caller *c, bool is_here, int fd, pid_t daemon,
	    struct ns_seal *seal)
{
	int keep[] = { c->chan.fd, fd, d->fill_dir, d->cgroups.quota.fd, d->cgroups.other.fd };
	struct ns_relay relay = { .fd = fd, .verb = NS_TELL };
	struct leave l = { .fd = fd, .signals = &d->signals };
	const struct np_leave leave = {
		.ask = ask, .moved = moved, .done = done, .refused = refused, .ctx = &l
	};
	struct means by = { .evidence = gathers_evidence(d, c), .leave = &leave };
	const struct ns_sandbox box = sandbox_of(d, is_here, by.evidence);
	struct np_err err = { .code = NP_OK };
	int rc = NP_OK;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != daemon) {
		_exit(0); /* it died before the call took effect */
	}
	d->log->sink = d->log->sink != NULL ? ns_relay_sink : NULL;
	d->log->ctx = &relay;
	np_drive_prepare();
	if (seal == NULL) {
		rc = drop_descriptors(keep, sizeof(keep) / sizeof(keep[0]), &err);
		forget_secrets(d, c);
	}
	if (rc == NP_OK) {
		ns_permit_init(&by.permit);
	}
	if (rc == NP_OK && by.evidence) {
		look_up(d, &by);
	}
	np_cgroup_forget(&d->cgroups);
	if (rc == NP_OK) {
		rc = seal != NULL ? ns_confine_own(&box, seal, &err)
				  : confine(d, c, is_here, by.evidence, &err);
	}
	if (rc != NP_OK) {
		np_log(d->log, NP_LOG_ERROR, "%s: session refused: %s", c->text, err.msg);
		_exit(1);
	}
	serve(d, c, is_here, &by);
	_exit(0);
}

/* ---- In a fork server, and in the processes that it forks ---- */

/* What a fork server needs of a caller. */
struct order {
	pid_t daemon;
	struct np_chan chan;
	struct np_addr peer;
	char text[NP_ADDR_TEXT];
	struct np_err uncaptured, unlinked;
};
enum { CONTROL, WAY, ORDER_FDS }; /* and its descriptors: the connection, the way to the daemon */
_Static_assert(ORDER_FDS == (int)NS_ORDER_FDS, "descriptors of an order");
_Static_assert(sizeof(struct order) <= NS_ORDER_MAX, "size of an order");

/* What a fork server works with. */
struct kind {
	struct ns_daemon *d;
	bool is_here, evidence; /* of its sessions */
};

static int
confine_all(void *ctx, int fd, struct ns_seal *seal, struct np_err *err)
{
	const struct kind *k = ctx;
	struct ns_daemon *d = k->d;
	int keep[] = { fd, d->fill_dir, d->cgroups.quota.fd, d->cgroups.other.fd };
	const struct ns_sandbox box = sandbox_of(d, k->is_here, k->evidence);

	if (drop_descriptors(keep, sizeof(keep) / sizeof(keep[0]), err) != NP_OK) {
		return err->code;
	}
	forget_secrets(d, NULL);
	if (np_urings_lend(0, err) != NP_OK ||
	    (d->allow_raw && ns_with_raw(false, NULL, NULL, err) != NP_OK)) {
		return err->code;
	}
	return ns_confine_shared(&box, seal, err);
}

static void
run_forked(void *ctx, const void *bytes, const int fds[NS_ORDER_FDS], struct ns_seal *seal)
{
	const struct kind *k = ctx;
	const struct order *o = bytes;
	struct ns_caller c = { .kind = NS_CALLER,
			       .chan = o->chan,
			       .peer = o->peer,
			       .uncaptured = o->uncaptured,
			       .unlinked = o->unlinked };

	memcpy(c.text, o->text, sizeof(c.text));
	c.chan.fd = fds[CONTROL];
	c.chan.peer = c.text;
	run_session(k->d, &c, k->is_here, fds[WAY], o->daemon, seal);
}

/* ---- Without a process for each ---- */

void
ns_session_serve_here(struct ns_daemon *d, struct ns_caller *c)
{
	struct means by = { .evidence = d->evidence };
	const struct np_log log = *d->log;
	struct ns_limited limited;
	struct np_cpus cpus;

	/* What one client asks for must not stay for the next. */
	np_cpus_save(&cpus);
	ns_permit_init(&by.permit);
	d->stats.sessions++;
	ns_limit_log(&limited, d->log, d->session_lines);
	by.cgroup = by.evidence ? np_cgroup_open("", &d->cgroups) : NULL;
	serve(d, c, np_addr_is_here(&c->peer), &by);
	np_cgroup_close(by.cgroup);
	*d->log = log;
	np_cpus_restore(&cpus);
}

/* The first message for a session, in the time that a caller has for it. */
static int
await_first(const struct ns_daemon *d, struct ns_caller *c, struct np_err *err)
{
	enum ns_admission got = NS_ADMIT_MORE;
	uint8_t frame[NP_FRAME_SIZE];

	while (got == NS_ADMIT_MORE) {
		uint64_t deadline = np_deadline(NS_HELLO_S * NP_SEC);
		bool has_reply = false;
		int rc;

		do {
			rc = np_chan_recv(&c->chan, "a request", deadline, d->signals.let_in, err);
		} while (rc == NP_ESYS && err->sys == EINTR && !np_signalled(&d->signals));
		if (rc != NP_OK) {
			return rc;
		}
		got = ns_admit_step(&c->admit, c->chan.in, frame, &has_reply, err);
		if (has_reply && np_chan_send(&c->chan, frame, deadline, err) != NP_OK) {
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

	if (getpeername(fd, (struct sockaddr *)&c.peer.sa, &c.peer.len) == 0 &&
	    !np_addr_is_local_only(&c.peer)) {
		np_addr_unmap(&c.peer);
		np_addr_text(&c.peer, c.text);
	}
	c.admit = ns_admission_of(d, fd);
	if (np_chan_open(&c.chan, fd, c.text, &err) == NP_OK) {
		c.chan.may_be_old = true;
		if (!ns_access_lets(&d->access, &c.peer)) {
			np_fail(&err, NP_EPEER, 0, "this address is not allowed");
		} else if (await_first(d, &c, &err) == NP_OK) {
			bool is_here = np_addr_is_here(&c.peer);
			struct means by = { .evidence = gathers_evidence(d, &c) };

			if (by.evidence) {
				look_up(d, &by);
			}
			np_cgroup_forget(&d->cgroups);
			forget_secrets(d, &c);
			ns_permit_init(&by.permit);
			if (confine(d, &c, is_here, by.evidence, &err) == NP_OK) {
				serve(d, &c, is_here, &by);
				drop_means(&by);
				return;
			}
			drop_means(&by);
		}
	}
	np_log(d->log, NP_LOG_INFO, "%s: refused: %s", c.text, err.msg);
	close(fd);
}

/* ---- In the daemon ---- */

/* One that moves nothing ends for another one: as if it had to for its time. */
static void
yield_place(struct ns_daemon *d, struct ns_session *s, uint64_t now_ns)
{
	struct np_event e;

	if (ns_lines_may(&d->lines, d->log)) {
		ns_event_begin(&e, "session-still", &s->peer);
		np_event_number(&e, "process", (uint64_t)s->pid);
		np_event_number(&e, "seconds", (now_ns - s->moved_ns) / NP_SEC);
		np_log_event(d->log, NP_LOG_INFO, &e,
			     "no data move, and other clients wait: it ends now");
	}
	kill(s->pid, SIGTERM);
	s->told = s->yields = true;
	s->end_ns = now_ns + TERM_MS * NP_MSEC;
}

bool
ns_sessions_make_room(struct ns_daemon *d, const struct np_addr *peer, enum ns_refusal what)
{
	uint64_t now = np_now();
	enum np_good good = ns_good_of(what);
	struct ns_session *s;

	if (good == NP_GOODS) {
		return false;
	}
	for (s = d->sessions; s != NULL; s = s->next) {
		if (s->yields) {
			return true; /* it will be gone in a moment */
		}
	}
	s = ns_guard_still(d->sessions, peer, good, d->rates.seed, now);
	if (s != NULL) {
		yield_place(d, s, now);
	}
	return s != NULL;
}

/* Somebody got a part of what is kept for those who have nothing: there should be more for others.
 */
static void
refill(struct ns_daemon *d, const struct np_addr *peer)
{
	for (int g = 0; g < NP_GOODS; g++) {
		if (ns_guard_scarce(&d->limits, d->sessions, (enum np_good)g)) {
			ns_sessions_make_room(d, peer, ns_good((enum np_good)g)->why);
		}
	}
}

/* When a session whose client has yet to ask for a test is ended. */
static uint64_t
end_of_idling(const struct ns_daemon *d, uint64_t now_ns)
{
	uint64_t idle_s = d->limits.each.idle_s;

	return idle_s > 0 ? now_ns + (idle_s + BETWEEN_S) * NP_SEC : 0;
}

void
ns_session_takes(const struct ns_daemon *d, const struct ns_caller *c, uint64_t takes[NP_GOODS])
{
	memset(takes, 0, NP_GOODS * sizeof(takes[0]));
	takes[NP_G_SESSIONS] = 1;
	takes[NP_G_MEMORY] = NP_SESSION_BYTES + (gathers_evidence(d, c) ? NP_EVIDENCE_BYTES : 0) +
			     d->urings * (uint64_t)NP_URING_BYTES;
}

/* What it holds from now on: what it has without a test, and what one takes; NULL: there is none.
 */
static void
set_holds(struct ns_daemon *d, struct ns_session *s, const uint64_t test[NP_GOODS])
{
	bool frees = false;

	for (int g = 0; g < NP_GOODS; g++) {
		uint64_t holds = s->bare[g] + (test != NULL ? test[g] : 0);

		d->stats.held[g] += holds - s->holds[g];
		frees = frees || holds < s->holds[g];
		s->holds[g] = holds;
	}
	d->freed += frees;
}

/* Is there a filter of system calls that a process can inherit? */
static bool
has_filter(const struct ns_daemon *d)
{
	return d->sandbox && !NS_SANITIZED && ns_filter_lacks() == NULL;
}

static struct ns_forkserver *
forkserver_of(struct ns_daemon *d, bool is_here, bool evidence)
{
	return &d->forkserver[(is_here ? NS_FILTER_UNIX : 0) | (evidence ? NS_FILTER_EVIDENCE : 0)];
}

static int
start_forkserver(struct ns_daemon *d, bool is_here, bool evidence, struct np_err *err)
{
	struct kind k = { .d = d, .is_here = is_here, .evidence = evidence };
	const struct ns_forkwork work = { .confine = confine_all,
					  .session = run_forked,
					  .ctx = &k };
	struct ns_forkserver *f = forkserver_of(d, is_here, evidence);

	return f->pid != 0 ? NP_OK : ns_forkserver_start(f, &work, err);
}

void
ns_sessions_prepare(struct ns_daemon *d)
{
	struct np_err err = { .code = NP_OK };

	for (int evidence = 0; evidence <= d->evidence && has_filter(d) && !d->no_fork;
	     evidence++) {
		for (int is_here = 0; is_here <= 1; is_here++) {
			if (start_forkserver(d, is_here != 0, evidence != 0, &err) != NP_OK) {
				np_log(d->log, NP_LOG_ERROR, "%s", err.msg); /* tried again */
			}
		}
	}
}

/*
 * A session with packet sockets or rings can't inherit its filter: these are opened before, with
 * rights that no fork server has, and the filter names them. It does without them where it may not
 * have one of its own.
 */
static void
settle_filter(struct ns_daemon *d, struct ns_caller *c, struct ns_session *s)
{
	char device[NP_EXT_DEVICE];
	bool connects, links = d->allow_raw && wants_link(c, device, &connects);
	struct np_err err = { .code = NP_OK };

	c->unlinked.code = NP_OK;
	if (!has_filter(d) || (!s->captures && !links && d->urings == 0)) {
		return;
	}
	if (ns_guard_filter(&d->limits, d->sessions, &c->peer, &d->filters, np_now(), &err) ==
	    NP_OK) {
		s->bare[NP_G_FILTERS] = 1;
		return;
	}
	d->stats.refused[NS_FILTERED]++;
	if (s->captures) {
		c->uncaptured = err;
	}
	if (links) {
		c->unlinked = err;
	}
	s->captures = false;
}

static int
fork_inheriting(struct ns_daemon *d, const struct ns_caller *c, struct ns_session *s, int way,
		struct np_err *err)
{
	bool is_here = np_addr_is_here(&c->peer);
	const int fds[NS_ORDER_FDS] = { [CONTROL] = c->chan.fd, [WAY] = way };
	struct order o;

	if (start_forkserver(d, is_here, s->gathers, err) != NP_OK) {
		return err->code;
	}
	memset(&o, 0, sizeof(o));
	o.daemon = getpid();
	o.chan = c->chan;
	o.peer = c->peer;
	memcpy(o.text, c->text, sizeof(o.text));
	o.uncaptured = c->uncaptured;
	o.unlinked = c->unlinked;
	return ns_forkserver_fork(forkserver_of(d, is_here, s->gathers), &o, sizeof(o), fds,
				  &s->pid, err);
}

static int
fork_alone(struct ns_daemon *d, struct ns_caller *c, struct ns_session *s, int way,
	   struct np_err *err)
{
	pid_t self = getpid();

	s->pid = fork();
	if (s->pid == 0) {
		run_session(d, c, np_addr_is_here(&c->peer), way, self, NULL);
	}
	return s->pid > 0 ? NP_OK : np_fail(err, NP_ESYS, errno, "no process for a session");
}

int
ns_session_start(struct ns_daemon *d, struct ns_caller *c, struct np_err *err)
{
	struct ns_session *s = calloc(1, sizeof(*s));
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = s };
	int pair[2], rc;

	if (s == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		free(s);
		return np_fail(err, NP_ESYS, errno, "no descriptors for a session");
	}
	s->kind = NS_SESSION;
	c->uncaptured.code = NP_OK;
	ns_session_takes(d, c, s->bare);
	s->captures =
	    d->allow_raw && d->evidence && wants_capture(c) &&
	    ns_guard_capture(&d->limits, d->sessions, &c->peer, s->bare, &c->uncaptured) == NP_OK;
	settle_filter(d, c, s);
	s->bare[NP_G_MEMORY] += s->captures ? NP_CAPTURE_BYTES : 0;
	s->gathers = gathers_evidence(d, c);
	ns_passed_refuse(pair[0]);
	rc = has_filter(d) && s->bare[NP_G_FILTERS] == 0 ? fork_inheriting(d, c, s, pair[1], err)
							 : fork_alone(d, c, s, pair[1], err);
	close(pair[1]);
	if (rc == NP_OK && epoll_ctl(d->epoll, EPOLL_CTL_ADD, pair[0], &ev) != 0) {
		rc = np_fail(err, NP_ESYS, errno, "no process for a session");
	}
	if (rc != NP_OK) {
		ns_passed_close(pair[0]); /* which ends it, if there is one */
		free(s);
		return rc;
	}
	s->fd = pair[0];
	s->peer = c->peer;
	s->began_ns = np_now();
	s->moved_ns = s->began_ns;
	s->end_ns = end_of_idling(d, s->began_ns);
	s->next = d->sessions;
	d->sessions = s;
	d->stats.sessions++;
	set_holds(d, s, NULL);
	refill(d, &s->peer);
	return NP_OK;
}

static void
answer(struct ns_session *s, enum ns_verb verb, int error, const char *text)
{
	struct ns_word w;

	memset(&w, 0, sizeof(w));
	w.verb = verb;
	w.error = error;
	w.wish = s->wish;
	snprintf(w.text, sizeof(w.text), "%.*s", (int)sizeof(w.text) - 1, text);
	(void)!send(s->fd, &w, sizeof(w), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void
leave_line(struct ns_daemon *d, struct ns_session *s)
{
	if (s->waiting_ns != 0) {
		s->waiting_ns = 0;
		d->stats.waiting_now--;
	}
}

static void
turn_down(struct ns_daemon *d, struct ns_session *s, enum ns_refusal why, const char *text)
{
	leave_line(d, s);
	s->short_ns = 0;
	d->stats.refused[why]++;
	answer(s, NS_REFUSE, ns_refusal_errno(why), text);
}

/*
 * Too little is free: one may be on its way out that has some, and if it is the client's own test
 * before this one. Where tests take turns all wait anyway.
 */
static bool
waits_for_room(struct ns_daemon *d, struct ns_session *s, enum ns_refusal what)
{
	uint64_t now = np_now();
	bool is_made;

	if (d->exclusive || !ns_guard_could(&d->limits, s, &s->wish) ||
	    (s->short_ns != 0 && now >= s->short_ns)) {
		return false;
	}
	is_made = ns_sessions_make_room(d, &s->peer, what);
	if (s->short_ns == 0) {
		s->short_ns = now + (is_made ? ROOM_S : SOON_S) * NP_SEC;
		s->end_ns = s->short_ns + BETWEEN_S * NP_SEC;
	}
	s->short_of = d->freed + 1;
	return true;
}

static void
let_begin(struct ns_daemon *d, struct ns_session *s)
{
	uint32_t most = d->limits.each.seconds;
	uint64_t seconds = s->wish.seconds > 0 ? s->wish.seconds : most;
	struct np_wish granted = s->wish;
	struct np_err err = { .code = NP_OK };
	enum ns_refusal why;

	if (ns_guard_test(&d->limits, d->sessions, s, &granted, &why, &err) != NP_OK) {
		if (!waits_for_room(d, s, why)) {
			turn_down(d, s, why, err.msg);
		}
		return;
	}
	s->wish = granted;
	leave_line(d, s);
	s->short_ns = 0;
	set_holds(d, s, s->wish.takes);
	s->test_ns = s->moved_ns = np_now();
	d->turn_ns[ns_group_of(&s->peer, d->rates.seed)] = s->test_ns;
	/* The session has looked at the length, but what if it is not itself any more? */
	seconds = most > 0 && seconds > most ? most : seconds;
	s->end_ns = seconds > 0 ? s->test_ns + (seconds + GRACE_S) * NP_SEC : 0;
	answer(s, NS_GRANT, 0, "");
	refill(d, &s->peer);
}

static bool
one_runs(const struct ns_daemon *d)
{
	for (const struct ns_session *s = d->sessions; s != NULL; s = s->next) {
		if (s->test_ns != 0) {
			return true;
		}
	}
	return false;
}

/* Addresses take turns, and the sessions of each in their order: a crowd is one among others. */
static bool
goes_before(const struct ns_daemon *d, const struct ns_session *a, const struct ns_session *b)
{
	uint64_t turn_a = d->turn_ns[ns_group_of(&a->peer, d->rates.seed)];
	uint64_t turn_b = d->turn_ns[ns_group_of(&b->peer, d->rates.seed)];

	return turn_a != turn_b ? turn_a < turn_b : a->waiting_ns < b->waiting_ns;
}

/* Whose turn it is, if it is anybody's. */
static void
next_in_line(struct ns_daemon *d)
{
	while (d->stats.waiting_now > 0 && !one_runs(d)) {
		struct ns_session *first = NULL;

		for (struct ns_session *s = d->sessions; s != NULL; s = s->next) {
			if (s->waiting_ns != 0 && (first == NULL || goes_before(d, s, first))) {
				first = s;
			}
		}
		if (first == NULL) {
			return;
		}
		let_begin(d, first);
	}
}

static void
end_test(struct ns_daemon *d, struct ns_session *s)
{
	if (s->test_ns == 0) {
		return;
	}
	s->test_ns = 0;
	s->tests++;
	d->stats.tests++;
	s->moved_ns = np_now();
	s->end_ns = end_of_idling(d, s->moved_ns);
	set_holds(d, s, NULL);
}

static enum ns_refusal
reason_of(int error)
{
	switch (error) {
	case ENOMEM:
		return NS_MEMORY;
	case EMSGSIZE:
		return NS_MESSAGE;
	case ERANGE:
		return NS_LENGTH;
	case EMFILE:
		return NS_FLOWS;
	default:
		return NS_OTHER;
	}
}

/* A session has strangers' bytes in its process: its word is only believed about itself. */
static bool
obey(struct ns_daemon *d, struct ns_session *s, const struct ns_word *w)
{
	switch (w->verb) {
	case NS_ASK:
		if (s->test_ns != 0 || s->waiting_ns != 0 || s->short_ns != 0 ||
		    !ns_guard_believes(&d->limits, &w->wish)) {
			return false;
		}
		s->wish = w->wish;
		s->wish.test[sizeof(s->wish.test) - 1] = '\0';
		if (d->exclusive && one_runs(d)) {
			s->waiting_ns = np_now();
			s->end_ns = s->waiting_ns + ((uint64_t)d->line_s + BETWEEN_S) * NP_SEC;
			d->stats.waiting_now++;
		} else {
			let_begin(d, s);
		}
		return true;
	case NS_MOVED:
		s->moved_ns = np_now();
		return true;
	case NS_DONE:
		if (s->test_ns == 0) {
			return false;
		}
		d->stats.tests_failed += w->served.failed;
		d->stats.received_bytes += w->served.received;
		d->stats.sent_bytes += w->served.sent;
		d->stats.transactions += w->served.transactions;
		end_test(d, s);
		next_in_line(d);
		return true;
	case NS_REFUSED:
		d->stats.refused[reason_of(w->error)]++;
		return true;
	default:
		return false;
	}
}

/* The pair is of no more use: what the session held is free for others. */
static void
hang_up(struct ns_daemon *d, struct ns_session *s)
{
	if (s->fd >= 0) {
		/* A process that was just forked may have it still. */
		epoll_ctl(d->epoll, EPOLL_CTL_DEL, s->fd, NULL);
		ns_passed_close(s->fd);
		s->fd = -1;
		leave_line(d, s);
		s->short_ns = 0;
		d->stats.tests_failed += s->test_ns != 0;
		end_test(d, s);
		s->end_ns = np_now() + TERM_MS * NP_MSEC;
		next_in_line(d);
	}
}

/* Read up to `words` messages before others have their turn: one session must not keep out the
 * rest.
 */
static void
hear(struct ns_daemon *d, struct ns_session *s, int words)
{
	union packet p;

	while (s->fd >= 0 && words-- > 0) {
		bool more;
		ssize_t n = ns_passed_recv(s->fd, &p, sizeof(p), &more);

		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			return;
		}
		if (n == (ssize_t)sizeof(p.line) && p.line.verb == NS_TELL && !more) {
			ns_relay_write(d->log, &d->relayed, &s->lines, &p.line, s->pid, d->quiet);
		} else if (n != (ssize_t)sizeof(p.word) || more || !obey(d, s, &p.word)) {
			hang_up(d, s);
		}
	}
}

void
ns_session_hear(struct ns_daemon *d, struct ns_session *s)
{
	hear(d, s, AT_ONCE);
}

static void
forget(struct ns_daemon *d, struct ns_session *gone_one)
{
	for (struct ns_session **at = &d->sessions; *at != NULL; at = &(*at)->next) {
		if (*at == gone_one) {
			*at = gone_one->next;
			break;
		}
	}
	memset(gone_one->bare, 0, sizeof(gone_one->bare));
	set_holds(d, gone_one, NULL);
	free(gone_one);
}

static void
note_killed(struct ns_daemon *d, pid_t pid, int sig)
{
	if (ns_lines_may(&d->lines, d->log)) {
		np_log(d->log, NP_LOG_ERROR, "session process %ld was ended by signal %d%s",
		       (long)pid, sig,
		       sig == SIGSYS ? ": it made a system call that no test needs" : "");
	}
}

/* Was it one? The next session has another one started. */
static bool
lose_forkserver(struct ns_daemon *d, pid_t pid)
{
	for (size_t i = 0; i < NS_FORKSERVERS; i++) {
		if (d->forkserver[i].pid == pid) {
			ns_forkserver_forget(&d->forkserver[i]);
			if (ns_lines_may(&d->lines, d->log)) {
				np_log(d->log, NP_LOG_ERROR,
				       "process %ld, which forks sessions, has ended", (long)pid);
			}
			return true;
		}
	}
	return false;
}

void
ns_sessions_reap(struct ns_daemon *d)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct ns_session *s = d->sessions;

		if (lose_forkserver(d, pid)) {
			continue;
		}
		while (s != NULL && s->pid != pid) {
			s = s->next;
		}
		if (WIFSIGNALED(status)) {
			note_killed(d, pid, WTERMSIG(status));
			d->stats.killed += s == NULL || !s->told;
			np_unix_sweep(pid);
		}
		if (s != NULL) {
			hear(d, s, INT_MAX); /* its last words, and no more */
			hang_up(d, s);
			forget(d, s);
		}
	}
}

/* Its time is over: it is told to end, then ended. */
static void
overrun(struct ns_daemon *d, struct ns_session *s, uint64_t now_ns)
{
	struct np_event e;

	if (!s->told && s->fd >= 0) {
		d->stats.killed++;
		if (ns_lines_may(&d->lines, d->log)) {
			ns_event_begin(&e, "session-overrun", &s->peer);
			np_event_number(&e, "process", (uint64_t)s->pid);
			np_log_event(d->log, NP_LOG_ERROR, &e, "its time is over: it ends now");
		}
	}
	kill(s->pid, s->told ? SIGKILL : SIGTERM);
	s->told = true;
	s->end_ns = now_ns + TERM_MS * NP_MSEC;
}

/* Its test waits for room: is there some now? Returns when its patience is over. */
static uint64_t
ask_again(struct ns_daemon *d, struct ns_session *s, uint64_t now_ns)
{
	if (s->short_of != d->freed + 1 || s->short_ns <= now_ns) {
		let_begin(d, s);
	}
	return s->short_ns != 0 ? s->short_ns : NP_NEVER;
}

uint64_t
ns_sessions_tick(struct ns_daemon *d, uint64_t now_ns)
{
	uint64_t next = NP_NEVER;

	for (struct ns_session *s = d->sessions; s != NULL; s = s->next) {
		uint64_t patience = s->waiting_ns + (uint64_t)d->line_s * NP_SEC;

		if (s->waiting_ns != 0 && patience <= now_ns) {
			turn_down(d, s, NS_LINE,
				  "other tests ran all the time (netserver --exclusive)");
		} else if (s->waiting_ns != 0 && patience < next) {
			next = patience;
		}
		if (s->short_ns != 0) {
			uint64_t due = ask_again(d, s, now_ns);

			next = due < next ? due : next;
		}
		if (s->end_ns != 0 && s->end_ns <= now_ns) {
			overrun(d, s, now_ns);
		}
		if (s->end_ns != 0 && s->end_ns < next) {
			next = s->end_ns;
		}
	}
	return next;
}

static void
signal_all(const struct ns_daemon *d, int sig)
{
	for (const struct ns_session *s = d->sessions; s != NULL; s = s->next) {
		kill(s->pid, sig);
	}
}

static void
await_all(struct ns_daemon *d)
{
	uint64_t until = np_deadline(TERM_MS * NP_MSEC);
	struct timespec left;

	ns_sessions_reap(d);
	while (d->sessions != NULL && np_now() < until) {
		ppoll(NULL, 0, np_left(until, &left), d->signals.let_in);
		ns_sessions_reap(d);
	}
}

void
ns_sessions_end(struct ns_daemon *d)
{
	for (size_t i = 0; i < NS_FORKSERVERS; i++) {
		ns_forkserver_end(&d->forkserver[i]);
	}
	if (d->sessions == NULL) {
		return;
	}
	np_log(d->log, NP_LOG_INFO, "ending %llu sessions",
	       (unsigned long long)d->stats.held[NP_G_SESSIONS]);
	signal_all(d, SIGTERM);
	await_all(d);
	signal_all(d, SIGKILL);
	await_all(d);
	while (d->sessions != NULL) {
		forget(d, d->sessions);
	}
}
