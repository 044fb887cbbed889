#include "netserver/caller.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/units.h"
#include "net/sock.h"
#include "netserver/one_port.h"
#include "netserver/proxied.h"
#include "netserver/session.h"
#include "netserver/sessions.h"

enum {
	AT_ONCE = 256,  /* connections accepted in one call */
	PAUSE_MS = 100, /* after accept() has run out of descriptors or memory */
	EVENTS = EPOLLIN | EPOLLRDHUP,
	QUEUE_S = 60,   /* in the queue for a session: many clients of a busy machine need that */
	SCARCE_S = 60,  /* between two log lines about scarce resources */
	FULL_MS = 1,    /* before a data connection is passed on again */
	NUDGE_MS = 100, /* between two attempts to make room for data connections */
	OWN_FILES = 16, /* of the daemon, beside its listeners */
	BEGIN = 8       /* sessions started in one call */
};

/* Forget a caller, and close its connection: a session has its own copy, or has closed this one. */
static void
drop(struct ns_daemon *d, struct ns_caller *c)
{
	for (struct ns_caller **at = &d->callers; *at != NULL; at = &(*at)->next) {
		if (*at == c) {
			*at = c->next;
			if (c->next == NULL) {
				d->callers_end = at;
			}
			break;
		}
	}
	d->stats.silent_now--;
	if (c->session != NULL) {
		c->session->handover.waiting--;
	}
	/* close(2) does not remove it from the set while a session has it open, too. */
	epoll_ctl(d->epoll, EPOLL_CTL_DEL, c->chan.fd, NULL);
	np_fds_close(c->chan.fd);
	/* Events that epoll has returned already may still point to it. */
	explicit_bzero(&c->chan, sizeof(c->chan)); /* a passphrase may have come */
	c->kind = NS_DROPPED;
	c->next = d->dropped;
	d->dropped = c;
}

/* Send a reply. All input was read, so a close(2) sends no reset, which could discard the reply. */
static void
answer(const struct ns_caller *c, const uint8_t frame[NP_FRAME_SIZE])
{
	/* Does not block: little or nothing was sent before, so the buffer has room. */
	(void)!send(c->chan.fd, frame, c->chan.size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/*
 * Count a refusal, and log it unless there were too many, which could fill the disk. Close the
 * connection. replies: the caller has asked, so it is told.
 */
static void
refuse(struct ns_daemon *d, struct ns_caller *c, enum ns_refusal why, const char *words,
       bool replies)
{
	enum np_log_level level = why == NS_SILENT ? NP_LOG_DEBUG : NP_LOG_INFO;
	struct np_event e;

	if (replies) {
		struct np_head asked = np_frame_head(c->chan.in);
		struct np_head head = { .code = ns_reply_code(asked.code),
					.word = ns_refusals[why].sys };
		struct np_why body = { .magic = NP_WHY_MAGIC };
		uint8_t frame[NP_FRAME_SIZE];

		snprintf(body.text, sizeof(body.text), "%.*s", (int)sizeof(body.text) - 1, words);
		np_frame_put(frame, &head, np_why_layout, &body);
		answer(c, frame);
	}
	d->stats.refused[why]++;
	if (level != NP_LOG_INFO || ns_lines_may(&d->lines, &c->place, d->log)) {
		ns_event_begin(&e, "refused", &c->peer);
		np_event_text(&e, "reason", ns_refusals[why].name);
		np_log_event(d->log, level, &e, "%s", words);
	}
	drop(d, c);
}

/* Drop the oldest caller (not `except`) of the address with most, in the network with most. */
static bool
evict(struct ns_daemon *d, const struct ns_caller *except)
{
	struct ns_weights w = { .net = { 0 } };
	struct ns_caller *found = NULL;

	for (const struct ns_caller *c = d->callers; c != NULL; c = c->next) {
		ns_weights_add(&w, c->place, c != except);
	}
	for (struct ns_caller *c = d->callers; c != NULL; c = c->next) {
		if (c != except && (found == NULL || ns_holds_more(&w, c->place, found->place))) {
			found = c;
		}
	}
	if (found != NULL) {
		refuse(d, found, NS_SILENT, "pushed out by another caller (netserver --max-silent)",
		       found->queued);
	}
	return found != NULL;
}

/* Does that address have to send a client's address first (--proxy-protocol)? */
static bool
is_proxy(const struct ns_daemon *d, const struct np_addr *peer)
{
	return d->args.proxies.allows > 0 && ns_access_admits(&d->args.proxies, peer);
}

/* Set the client's address, its text, the groups that share limits with it, and quiet_ns. */
static void
note_peer(const struct ns_daemon *d, struct ns_caller *c, const struct np_addr *peer)
{
	c->peer = *peer;
	np_addr_unmap(&c->peer);
	np_addr_text(&c->peer, c->text);
	c->place = ns_place_of(&c->peer, d->rates.seed);
	c->quiet_ns = d->args.one_port && !c->proxied ? ns_quiet_until(d, &c->peer, np_now()) : 0;
}

/* Do the rules deny the client? They may have changed since it connected: checked at each step. */
static bool
is_denied(const struct ns_daemon *d, const struct ns_caller *c)
{
	return !ns_access_admits(&d->access, &c->peer);
}

/* Make a caller; NULL: failed, and fd is closed. peer: getpeername(2) fails after a reset. */
static struct ns_caller *
add(struct ns_daemon *d, int fd, const struct np_addr *peer, uint64_t now_ns)
{
	struct ns_caller *c = calloc(1, sizeof(*c));
	struct epoll_event ev = { .events = EVENTS, .data.ptr = c };
	struct np_err err = { .code = NP_OK };

	d->stats.connections++;
	if (c == NULL) {
		close(fd);
		return NULL;
	}
	c->kind = NS_CALLER;
	c->proxied = is_proxy(d, peer);
	note_peer(d, c, peer);
	c->deadline_ns = ns_hello_until(fd, now_ns);
	c->admit = ns_admission_of(d, fd);
	if (np_chan_open(&c->chan, fd, c->text, &err) != NP_OK ||
	    epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &ev) != 0) {
		close(fd);
		free(c);
		return NULL;
	}
	c->chan.may_be_old = true;
	if (d->callers == NULL) {
		d->callers_end = &d->callers;
	}
	*d->callers_end = c;
	d->callers_end = &c->next;
	d->stats.silent_now++;
	return c;
}

/* Wait for these events of a caller from now on; 0: only for a reset, which is always reported. */
static void
watch(struct ns_daemon *d, struct ns_caller *c, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = c };

	epoll_ctl(d->epoll, EPOLL_CTL_MOD, c->chan.fd, &ev);
}

/* Too many descriptors are in flight: let the data connection of that session wait. */
static void
await_room(struct ns_daemon *d, struct ns_caller *c, struct ns_session *session)
{
	c->full = true;
	c->session = session;
	c->quiet_ns = 0;
	c->again_ns = np_now() + FULL_MS * NP_MSEC;
	session->handover.waiting++;
	watch(d, c, 0);
}

/* Pass on a data connection, close fd. False: it is none, not known yet, or *owner has no room. */
static bool
pass_if_data(struct ns_daemon *d, int fd, const struct np_addr *from, struct ns_session **owner)
{
	struct np_addr peer = *from;
	enum ns_data kind;

	if (is_proxy(d, from)) {
		return false;
	}
	np_addr_unmap(&peer);
	kind = ns_data_look(d, fd, &peer, NS_LOOK_NEW, owner);
	if (kind == NS_DATA_NONE || kind == NS_DATA_MORE || kind == NS_DATA_FULL) {
		return false;
	}
	*owner = NULL;
	d->stats.connections++;
	d->stats.refused[NS_GARBAGE] += kind == NS_DATA_UNKNOWN;
	close(fd);
	return true;
}

/* Log a lack of resources, once in SCARCE_S. */
static void
log_scarce(struct ns_daemon *d, const char *what, const char *why)
{
	if (ns_bucket_take(&d->scarce, SCARCE_S * NP_SEC, 0, np_now())) {
		np_log(d->log, NP_LOG_ERROR, "%s: %s", what, why);
	}
}

/* Are there too many callers: --max-silent, or a quarter of the descriptors if few are left? */
static bool
is_crowded(const struct ns_daemon *d)
{
	uint64_t silent = d->stats.silent_now;
	uint64_t others = (d->stats.held[NP_RES_SESSIONS] + d->listener_count) * ns_fds_each(d);

	return (d->limits.silent > 0 && silent >= (uint64_t)d->limits.silent) ||
	       (silent >= d->callers_files / 4 && silent + others + OWN_FILES >= d->callers_files);
}

void
ns_front_accept(struct ns_daemon *d, int listener)
{
	uint64_t now = np_now();

	for (int i = 0; i < AT_ONCE && now >= d->accept_ns; i++) {
		struct ns_session *owner = NULL;
		struct ns_caller *c;
		struct np_addr peer = { .len = sizeof(peer.sa) };
		int fd = accept4(listener, (struct sockaddr *)&peer.sa, &peer.len, d->accepts);

		if (fd < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
			log_scarce(d, "accept a connection", strerror(errno));
			if (!evict(d, NULL)) {
				/* The connection stays in the listener's backlog. */
				d->accept_ns = now + PAUSE_MS * NP_MSEC;
			}
			continue;
		}
		if (fd < 0) {
			return; /* no more connections, or the client is gone already */
		}
		d->accept_ns = 0;
		while (is_crowded(d) && evict(d, NULL)) { /* makes place for this one */
		}
		if (d->args.one_port && pass_if_data(d, fd, &peer, &owner)) {
			return; /* epoll reports the next one, if there is any: saves a call */
		}
		c = add(d, fd, &peer, now);
		if (c != NULL && owner != NULL) {
			await_room(d, c, owner);
		}
	}
}

/* Start a session. It takes two descriptors: if there are none left, close silent connections. */
static int
start(struct ns_daemon *d, struct ns_caller *c, struct np_err *err)
{
	int rc = ns_session_start(d, c, err);

	while (rc != NP_OK && err->sys == EMFILE && evict(d, c)) {
		rc = ns_session_start(d, c, err);
	}
	if (rc != NP_OK) {
		log_scarce(d, c->text, err->msg);
	}
	return rc;
}

/* Does the limit *why leave no room for the caller's session? */
static bool
lacks_room(const struct ns_daemon *d, const struct ns_caller *c, enum ns_refusal *why,
	   struct np_err *err)
{
	uint64_t takes[NP_RESOURCES];

	ns_session_takes(d, c, takes);
	return ns_guard_session(&d->limits, d->sessions, &c->peer, takes, why, err) != NP_OK;
}

/* It is the caller's turn: start its session, or let it wait until another session has ended. */
static void
begin_session(struct ns_daemon *d, struct ns_caller *c)
{
	struct np_err err = { .code = NP_OK };
	enum ns_refusal why;

	if (is_denied(d, c)) {
		refuse(d, c, NS_DENIED, NS_DENIED_WORDS, true);
		return;
	}
	if (lacks_room(d, c, &why, &err)) {
		uint64_t wait_ns = ns_sessions_make_room(d, &c->peer, why);

		if (wait_ns == 0) {
			refuse(d, c, why, err.msg, true);
			return;
		}
		if (c->room_tried == 0) {
			c->lacks_ns = np_now();
		}
		c->deadline_ns = c->lacks_ns + wait_ns;
		c->room_tried = d->ended + 1;
		return;
	}
	ns_guard_begin(&d->limits, &d->rates, c->place, np_now());
	if (d->args.no_fork) {
		uint64_t before = np_now();

		ns_session_serve_here(d, c); /* closes the connection */
		drop(d, c);
		/* Others were not read meanwhile, so their deadlines are extended. */
		for (c = d->callers; c != NULL; c = c->next) {
			c->deadline_ns += np_now() - before;
		}
	} else if (start(d, c, &err) != NP_OK) {
		refuse(d, c, NS_PROCESS, err.msg, true);
	} else {
		drop(d, c); /* the session has its copy of the connection */
	}
}

uint64_t
ns_front_begin(struct ns_daemon *d, bool many_events, uint64_t now_ns)
{
	uint64_t when = now_ns;
	bool began = false;

	for (int i = many_events ? BEGIN - 1 : 0; i < BEGIN; i++) {
		struct ns_caller *first = NULL;

		when = NP_NEVER;
		for (struct ns_caller *c = d->callers; c != NULL; c = c->next) {
			uint64_t at;

			if (!c->queued || c->room_tried == d->ended + 1) {
				continue; /* no request yet, or it waits until a session ends */
			}
			at = ns_guard_when(&d->limits, &d->rates, c->place, now_ns);
			when = at < when ? at : when;
			if (at <= now_ns &&
			    (first == NULL ||
			     ns_turns_before(&d->rates.turns, c->place, first->place))) {
				first = c;
			}
		}
		if (first == NULL) {
			break;
		}
		begin_session(d, first);
		began = true;
	}
	/* It may have set a deadline that tick() has looked for already. */
	return began ? now_ns : when;
}

/* After too many wrong secrets from its address, delay the check of this one. False: no need to. */
static bool
delay_check(struct ns_daemon *d, struct ns_caller *c)
{
	uint64_t now = np_now(), when = ns_guard_try(&d->tries, &c->peer, now);

	/* A denied client is refused at once; other messages than secrets need no check. */
	if (is_denied(d, c) || when <= now || !ns_admit_tries(&c->admit, c->chan.in)) {
		return false;
	}
	if (c->held_ns == 0) {
		c->deadline_ns = now + NS_HELLO_S * NP_SEC;
		watch(d, c, 0);
	}
	c->held_ns = when;
	return true;
}

/* Handle a whole message. False: read no more from the caller now. */
static bool
step(struct ns_daemon *d, struct ns_caller *c)
{
	struct np_err refusal = { .code = NP_OK };
	enum ns_admission admission;

	c->has_asked = true;
	if (np_frame_is_text(c->chan.in, c->chan.have)) {
		refuse(d, c, NS_GARBAGE, "the client sent something else than a netperf message",
		       false);
		return false;
	}
	if (delay_check(d, c)) {
		return false;
	}
	admission = ns_admit_step(&c->admit, c->chan.in, &refusal);
	/* A denied client is told so even if it has not shown the secret. */
	if (admission == NS_ADMIT_IN || is_denied(d, c)) {
		uint64_t now = np_now();

		if (is_denied(d, c)) {
			refuse(d, c, NS_DENIED, NS_DENIED_WORDS, true);
		} else if (ns_guard_rate(&d->limits, &c->peer, &d->rates, now, &refusal) != NP_OK) {
			refuse(d, c, NS_RATE, refusal.msg, true);
		} else {
			c->queued = true;
			c->filter = ns_filter_of(d, c);
			c->deadline_ns = now + QUEUE_S * NP_SEC;
			watch(d, c, 0);
		}
		return false;
	}
	if (c->admit.wrong) { /* it is refused below, so this is counted once */
		ns_guard_wrong(&d->tries, &c->peer, np_now());
	}
	explicit_bzero(c->chan.in, sizeof(c->chan.in)); /* it may hold a passphrase */
	if (c->admit.has_reply) {
		answer(c, c->admit.reply);
	}
	if (admission == NS_ADMIT_REFUSED) {
		refuse(d, c, NS_SECRET, refusal.msg, false);
		return false;
	}
	c->deadline_ns = ns_hello_until(c->chan.fd, np_now());
	return true;
}

/* Read the client's address from the proxy. False: not complete yet, or the caller was dropped. */
static bool
read_proxy_header(struct ns_daemon *d, struct ns_caller *c)
{
	struct np_addr peer = c->peer;

	switch (ns_proxied_read(c->chan.fd, &peer)) {
	case NS_PROXIED_DONE:
		c->proxied = false;
		note_peer(d, c, &peer);
		return true;
	case NS_PROXIED_WRONG:
		refuse(d, c, NS_GARBAGE, "the proxy did not send the client's address", false);
		return false;
	case NS_PROXIED_MORE:
		break;
	}
	return false;
}

static const char stray_words[] = "a data connection of no test here";

/* Is it a control connection? If not: a data connection, taken care of here, or not known yet. */
static bool
is_caller(struct ns_daemon *d, struct ns_caller *c, enum ns_look when)
{
	struct ns_session *owner = NULL;
	enum ns_data kind =
	    d->args.one_port ? ns_data_look(d, c->chan.fd, &c->peer, when, &owner) : NS_DATA_NONE;

	if (kind == NS_DATA_FULL) {
		await_room(d, c, owner);
	} else if (kind == NS_DATA_PASSED) {
		drop(d, c); /* a session has a copy */
	} else if (kind == NS_DATA_UNKNOWN) {
		refuse(d, c, NS_GARBAGE, stray_words, false);
	}
	return kind == NS_DATA_NONE;
}

/* Try again to pass on a data connection; reset it if its time, or its test, is over. */
static void
pass_again(struct ns_daemon *d, struct ns_caller *c, uint64_t now_ns)
{
	static const struct linger reset = { .l_onoff = 1 };
	enum ns_data kind = ns_data_again(d, c->session, c->chan.fd, now_ns);

	if (kind == NS_DATA_PASSED) {
		drop(d, c);
		return;
	}
	if (kind == NS_DATA_FULL && c->deadline_ns > now_ns) {
		c->again_ns = now_ns + FULL_MS * NP_MSEC;
		if (c->session->handover.daemon_full &&
		    ns_bucket_take(&d->room, NUDGE_MS * NP_MSEC, 0, now_ns)) {
			(void)ns_sessions_make_room(d, &c->session->peer, NS_PASSED);
		}
		return;
	}
	setsockopt(c->chan.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	if (kind == NS_DATA_FULL) {
		char words[160];

		snprintf(
		    words, sizeof(words),
		    "%llu of %llu descriptors in flight are in use, %llu of them to this "
		    "test, which did not accept its connections in time (netserver --one-port)",
		    (unsigned long long)d->stats.held[NP_RES_PASSED],
		    (unsigned long long)d->limits.all[NP_RES_PASSED],
		    (unsigned long long)c->session->holds[NP_RES_PASSED]);
		refuse(d, c, NS_PASSED, words, false);
	} else {
		refuse(d, c, NS_GARBAGE, stray_words, false);
	}
}

void
ns_front_receive(struct ns_daemon *d, struct ns_caller *c)
{
	struct np_err err = { .code = NP_OK };

	if (c->queued || c->held_ns != 0 || c->full) {
		drop(d, c); /* it has reset the connection */
		return;
	}
	if (c->proxied && !read_proxy_header(d, c)) {
		return;
	}
	/* As long as nothing was read, it may be a data connection. */
	if (!c->has_asked && c->chan.have == 0 && !is_caller(d, c, NS_LOOK_LATE)) {
		return;
	}
	for (;;) {
		switch (np_chan_read(&c->chan, "a message", &err)) {
		case NP_CHAN_MORE:
			return;
		case NP_CHAN_WHOLE:
			if (!step(d, c)) {
				return;
			}
			break;
		case NP_CHAN_BROKEN:
			if (c->chan.have > 0) {
				refuse(d, c, NS_GARBAGE, err.msg, false);
			} else { /* only a reset came */
				drop(d, c);
			}
			return;
		case NP_CHAN_CLOSED:
			drop(d, c);
			return;
		}
	}
}

/* The caller's deadline, or the time that again_at() returned, has come: do what is due. */
static void
check_deadlines(struct ns_daemon *d, struct ns_caller *c, uint64_t now_ns)
{
	if (c->full) {
		pass_again(d, c, now_ns);
	} else if (c->held_ns != 0 && c->deadline_ns > now_ns) {
		/* Check its secret now, unless another wrong one came first. */
		if (!delay_check(d, c)) {
			c->held_ns = 0;
			watch(d, c, EVENTS);
			if (step(d, c)) {
				ns_front_receive(d, c);
			}
		}
	} else if (c->held_ns != 0) {
		/* A passphrase gets no reply, as in netperf. */
		refuse(d, c, NS_TRIES,
		       "too many wrong attempts came from this address, or its network, "
		       "try again later",
		       c->admit.key != NULL);
	} else if (c->quiet_ns != 0 && c->quiet_ns <= now_ns && c->deadline_ns > now_ns) {
		c->quiet_ns = 0;
		if (!c->has_asked && c->chan.have == 0) {
			(void)is_caller(d, c, NS_LOOK_QUIET);
		}
	} else if (c->queued) { /* for room, or QUEUE_S */
		struct np_err err;
		enum ns_refusal why;

		if (lacks_room(d, c, &why, &err)) {
			refuse(d, c, why, err.msg, true);
		} else if (c->room_tried != 0) { /* now it waits for its turn */
			c->room_tried = 0;
			c->deadline_ns = now_ns + QUEUE_S * NP_SEC;
		} else {
			refuse(d, c, NS_RATE,
			       "too many sessions began in a short time (netserver --max-rate)",
			       true);
		}
	} else {
		/* Read once more: perhaps this process was late, and not the caller. */
		ns_front_receive(d, c);
		if (c->kind == NS_CALLER && !c->queued && c->deadline_ns <= now_ns) {
			refuse(d, c, NS_SILENT, "no whole message in time", false);
		}
	}
}

/* When to look at a caller without an event: to retry, or to take an old client's short message. */
static uint64_t
again_at(const struct ns_caller *c)
{
	uint64_t next_ns = c->full           ? c->again_ns
			   : c->held_ns != 0 ? c->held_ns
					     : np_chan_again(&c->chan);

	return c->quiet_ns != 0 ? np_min(c->quiet_ns, next_ns) : next_ns;
}

uint64_t
ns_front_tick(struct ns_daemon *d, uint64_t now_ns)
{
	uint64_t next = d->accept_ns > now_ns ? d->accept_ns : NP_NEVER;
	struct ns_caller *c, *following;

	for (c = d->callers; c != NULL; c = following) {
		following = c->next;
		if (again_at(c) <= now_ns || c->deadline_ns <= now_ns) {
			check_deadlines(d, c, now_ns);
		}
		if (c->kind == NS_CALLER) { /* it was not dropped */
			next = np_min(next, np_min(again_at(c), c->deadline_ns));
		}
	}
	return next;
}

void
ns_front_free_dropped(struct ns_daemon *d)
{
	while (d->dropped != NULL) {
		struct ns_caller *c = d->dropped;

		d->dropped = c->next;
		free(c);
	}
}

void
ns_front_close(struct ns_daemon *d)
{
	while (d->callers != NULL) {
		drop(d, d->callers);
	}
	ns_front_free_dropped(d);
}
