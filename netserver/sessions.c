#include "netserver/sessions.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/units.h"
#include "bench/engine/uring.h"
#include "bench/transport/unix.h"
#include "net/capture.h"
#include "net/sock.h"
#include "netserver/confine.h"
#include "netserver/launch.h"
#include "netserver/one_port.h"
#include "netserver/passed.h"
#include "netserver/processors.h"
#include "netserver/session.h"

enum {
	/* After a test's length: late connections, the results, data that are received late. */
	GRACE_S = 210,
	BETWEEN_S = 30, /* in addition to the time that a session allows between two requests */
	ROOM_S = 5,     /* to wait for room if an idle session is being ended, */
	SOON_S = 1, /* and if not: others may end by themselves, or the client has closed them */

	TRIES = 8, /* waiting tests that are tried again in one call */

	BYTES_NS = 1250, /* no test moves more in a nanosecond: 10 Tbit/s */

	HANDOVER_S = 30, /* for another client of the same address to make its data connections */
	TERM_MS = 2000   /* for a process to end after SIGTERM */
};

uint64_t
ns_sessions_make_room(struct ns_daemon *d, const struct np_addr *peer, enum ns_refusal what)
{
	uint64_t now = np_now();
	uint64_t soon = ns_guard_has_session(d->sessions, peer) ? SOON_S * NP_SEC : 0;
	enum np_resource resource = ns_resource_of(what);
	struct ns_session *s;
	struct np_event e;

	if (resource == NP_RESOURCES) {
		return soon;
	}
	for (s = d->sessions; s != NULL; s = s->next) {
		if (s->yields) {
			return ROOM_S * NP_SEC; /* one is ending already */
		}
	}
	s = ns_guard_idle(d->sessions, peer, resource, d->rates.seed, now);
	if (s == NULL) {
		return soon;
	}
	if (ns_lines_may(&d->lines, &s->place, d->log)) {
		ns_event_begin(&e, "session-still", &s->peer);
		np_event_number(&e, "process", (uint64_t)s->pid);
		np_event_number(&e, "seconds", (now - s->moved_ns) / NP_SEC);
		np_log_event(d->log, NP_LOG_INFO, &e,
			     "no data move, and other clients wait: it ends now");
	}
	kill(s->pid, SIGTERM);
	s->ending = s->yields = true;
	s->end_ns = now + TERM_MS * NP_MSEC;
	return ROOM_S * NP_SEC;
}

/* If part of a reserve is in use, end an idle session to restore it. */
static void
refill(struct ns_daemon *d, const struct np_addr *peer)
{
	ns_handovers_count(d);
	for (int g = 0; g < NP_RESOURCES; g++) {
		if (ns_guard_scarce(&d->limits, (enum np_resource)g, d->stats.held[g])) {
			ns_sessions_make_room(d, peer, ns_resources[g].why);
		}
	}
}

/* When to end a session if its client starts no test; 0: never. */
static uint64_t
idle_end(const struct ns_daemon *d, uint64_t now_ns)
{
	uint64_t idle_s = d->limits.each.idle_s;

	return idle_s > 0 ? now_ns + (idle_s + BETWEEN_S) * NP_SEC : 0;
}

void
ns_session_takes(const struct ns_daemon *d, const struct ns_caller *c, uint64_t takes[NP_RESOURCES])
{
	memset(takes, 0, NP_RESOURCES * sizeof(takes[0]));
	takes[NP_RES_SESSIONS] = 1;
	takes[NP_RES_MEMORY] = NP_SESSION_BYTES +
			       ((c->filter & NS_FILTER_EVIDENCE) != 0 ? NP_EVIDENCE_BYTES : 0) +
			       d->args.uring * (uint64_t)NP_URING_BYTES;
}

/* Set what it holds: without a test, and for one (NULL: none). If less, waiting tests retry. */
static void
set_holds(struct ns_daemon *d, struct ns_session *s, const uint64_t test[NP_RESOURCES])
{
	bool frees = false;

	for (int i = 0; i < NP_RESOURCES; i++) {
		uint64_t holds = s->idle_holds[i] + (test != NULL ? test[i] : 0);

		d->stats.held[i] += holds - s->holds[i];
		frees = frees || holds < s->holds[i];
		s->holds[i] = holds;
	}
	d->freed += frees;
}

int
ns_session_start(struct ns_daemon *d, struct ns_caller *c, struct np_err *err)
{
	struct ns_session *s = calloc(1, sizeof(*s));
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = s };
	uint64_t takes[NP_RESOURCES];
	enum ns_refusal why;
	int pair[2], rc;

	if (s == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
		free(s);
		return np_fail(err, NP_ESYS, errno, "no descriptors for a session");
	}
	s->kind = NS_SESSION;
	ns_processors_share(d, &c->peer, NULL);
	c->uncaptured.code = NP_OK;
	ns_session_takes(d, c, s->idle_holds);
	/* c->uncaptured says why a capture that was asked for is not granted. */
	if (d->args.allow_raw && !d->args.no_evidence && ns_wants_capture(c)) {
		memcpy(takes, s->idle_holds, sizeof(takes));
		takes[NP_RES_CAPTURES] = 1;
		takes[NP_RES_MEMORY] += NP_CAPTURE_BYTES;
		s->idle_holds[NP_RES_CAPTURES] =
		    ns_guard_session(&d->limits, d->sessions, &c->peer, takes, &why,
				     &c->uncaptured) == NP_OK;
		d->stats.refused[NS_CAPTURED] += c->uncaptured.code != NP_OK;
	}
	ns_launch_choose(d, c, s);
	s->idle_holds[NP_RES_MEMORY] += s->idle_holds[NP_RES_CAPTURES] * NP_CAPTURE_BYTES;
	ns_passed_refuse(pair[0]);
	rc = ns_launch(d, c, s, pair[1], err);
	close(pair[1]);
	if (rc == NP_OK && epoll_ctl(d->epoll, EPOLL_CTL_ADD, pair[0], &ev) != 0) {
		rc = np_fail(err, NP_ESYS, errno, "no process for a session");
	}
	if (rc != NP_OK) {
		ns_passed_close(pair[0]); /* a process that was started gets no test now */
		free(s);
		return rc;
	}
	(void)setpgid(s->pid, s->pid); /* setpriority(2) finds all threads of a group */
	s->fd = pair[0];
	s->peer = c->peer;
	s->place = c->place;
	s->began_ns = np_now();
	s->moved_ns = s->began_ns;
	s->end_ns = idle_end(d, s->began_ns);
	s->next = d->sessions;
	d->sessions = s;
	d->stats.sessions++;
	set_holds(d, s, NULL);
	refill(d, &s->peer);
	return NP_OK;
}

/* Answer NS_ASK: NS_GRANT, with data_fd or 0, or NS_REFUSE with error and text. False: not sent. */
static bool
answer(struct ns_session *s, enum ns_message_type type, int error, const char *text, int data_fd)
{
	struct ns_message reply;

	memset(&reply, 0, sizeof(reply));
	reply.type = type;
	reply.error = error;
	reply.wish = s->wish;
	reply.wish.token = s->handover.token;
	snprintf(reply.text, sizeof(reply.text), "%.*s", (int)sizeof(reply.text) - 1, text);
	return np_fds_pass(s->fd, &reply, sizeof(reply), &data_fd, data_fd > 0);
}

/* The session no longer waits for its turn (--exclusive), or for room, if it did. */
static void
leave_queue(struct ns_daemon *d, struct ns_session *s)
{
	s->room_until_ns = 0;
	if (s->waiting_ns != 0) {
		s->waiting_ns = 0;
		d->stats.waiting_now--;
	}
}

/* Refuse the test that a session asks for, or that waits. text: the reason, for the client. */
static void
refuse_test(struct ns_daemon *d, struct ns_session *s, enum ns_refusal why, const char *text)
{
	leave_queue(d, s);
	d->stats.refused[why]++;
	if (!answer(s, NS_REFUSE, ns_refusals[why].sys, text, 0)) {
		s->end_ns = np_now(); /* end it: it would wait for an answer forever */
	}
}

/* Let the test wait until then, with attempts when something was released, and at again_ns. */
static void
wait_until(const struct ns_daemon *d, struct ns_session *s, uint64_t until_ns, uint64_t again_ns)
{
	s->room_until_ns = until_ns;
	s->end_ns = until_ns + BETWEEN_S * NP_SEC; /* the session outlives the wait */
	s->room_tried = d->freed + 1;
	s->room_again_ns = again_ns;
}

/* Too little is free: let the test wait, if it may (else false). --exclusive: it waited already. */
static bool
wait_for_room(struct ns_daemon *d, struct ns_session *s, enum ns_refusal what)
{
	uint64_t now = np_now(), until;
	struct np_wish alone = s->wish;
	enum ns_refusal why;

	if (d->args.exclusive || /* or it would not fit if no other session held anything */
	    ns_guard_test(&d->limits, NULL, s, &alone, &why, NULL) != NP_OK ||
	    (s->room_until_ns != 0 && now >= s->room_until_ns)) {
		return false;
	}
	s->lacks_ns = s->room_until_ns == 0 ? now : s->lacks_ns; /* since the first attempt */
	until = np_max(s->room_until_ns, s->lacks_ns + ns_sessions_make_room(d, &s->peer, what));
	wait_until(d, s, until, until);
	return true;
}

/* Without tokens, clients of one address take turns: let the test wait, for at most HANDOVER_S. */
static void
defer_handover(struct ns_daemon *d, struct ns_session *s)
{
	uint64_t now = np_now();
	uint64_t until = s->room_until_ns != 0 ? s->room_until_ns : now + HANDOVER_S * NP_SEC;

	if (now >= until) {
		refuse_test(d, s, NS_OTHER,
			    "another client of this address makes data connections all the time "
			    "(netserver --one-port; clients of Plumbline show a token)");
		return;
	}
	/* The turn of a session that makes no connections ends without an event. */
	wait_until(d, s, until, np_min(until, now + NP_SEC));
}

/* UDP sockets at the one port are limited: a session gets no more than were counted for it. */
static void
limit_handover(const struct ns_daemon *d, struct np_wish *granted)
{
	struct np_handover *handover = &granted->handover;

	handover->wanted = handover->wanted && d->args.one_port;
	if (handover->datagrams) {
		handover->many = false;
		handover->count = (uint32_t)granted->takes[NP_RES_DATAGRAMS];
	}
}

/* Grant the test that a session asks for, refuse it, or let it wait for room or its turn. */
static void
grant_test(struct ns_daemon *d, struct ns_session *s)
{
	uint64_t limit_s = d->limits.each.seconds;
	uint64_t seconds = s->wish.seconds > 0 ? s->wish.seconds : limit_s;
	struct np_wish granted = s->wish;
	struct np_err err = { .code = NP_OK };
	enum ns_refusal why;
	int data_fd = 0;

	if (!ns_access_admits(&d->access, &s->peer)) {
		refuse_test(d, s, NS_DENIED, NS_DENIED_WORDS);
		return;
	}
	if (ns_guard_test(&d->limits, d->sessions, s, &granted, &why, &err) != NP_OK) {
		if (!wait_for_room(d, s, why)) {
			refuse_test(d, s, why, err.msg);
		}
		return;
	}
	limit_handover(d, &granted);
	if (granted.handover.wanted && !ns_handover_make_free(d, s)) {
		defer_handover(d, s);
		return;
	}
	if (granted.handover.wanted &&
	    ns_handover_open(s, &granted.handover, &data_fd, &err) != NP_OK) {
		refuse_test(d, s, NS_OTHER, err.msg);
		return;
	}
	s->wish = granted; /* which answer() sends */
	if (!d->args.no_sandbox) {
		ns_confine_descriptors(s->pid, granted.takes[NP_RES_THREADS] + d->args.uring,
				       granted.takes[NP_RES_FLOWS]);
	}
	/* Before the answer: then its first connection may come. */
	ns_handovers_set_listeners(d);
	if (!answer(s, NS_GRANT, 0, "", data_fd)) {
		char words[100];

		snprintf(words, sizeof(words), "no descriptor can be passed to a session: %s",
			 strerror(errno));
		np_fds_close(data_fd > 0 ? data_fd : -1);
		ns_handover_close(d, s);
		ns_handovers_set_listeners(d);
		refuse_test(d, s, NS_PROCESS, words);
		return;
	}
	np_fds_close(data_fd > 0 ? data_fd : -1); /* the session has its copy */
	leave_queue(d, s);
	set_holds(d, s, s->wish.takes);
	ns_processors_share(d, &s->peer, s);
	s->test_ns = s->moved_ns = np_now();
	ns_turns_take(&d->turns, s->place, s->test_ns);
	/* The session checks the length, too, but it may have been compromised. */
	seconds = limit_s > 0 && seconds > limit_s ? limit_s : seconds;
	s->end_ns = seconds > 0 ? s->test_ns + (seconds + GRACE_S) * NP_SEC : 0;
	refill(d, &s->peer);
}

/* Does any session have a test? */
static bool
test_runs(const struct ns_daemon *d)
{
	for (const struct ns_session *s = d->sessions; s != NULL; s = s->next) {
		if (s->test_ns != 0) {
			return true;
		}
	}
	return false;
}

/* --exclusive: let the next test begin, if none runs; if it is refused, the one after it. */
static void
grant_next(struct ns_daemon *d)
{
	while (d->stats.waiting_now > 0 && !test_runs(d)) {
		struct ns_session *first = NULL;

		for (struct ns_session *s = d->sessions; s != NULL; s = s->next) {
			/* Networks, and their addresses, take turns: not sessions. */
			if (s->waiting_ns != 0 &&
			    (first == NULL || ns_turns_before(&d->turns, s->place, first->place) ||
			     (!ns_turns_before(&d->turns, first->place, s->place) &&
			      s->waiting_ns < first->waiting_ns))) {
				first = s;
			}
		}
		if (first == NULL) {
			return;
		}
		grant_test(d, first);
	}
}

/* The test of a session, if it has one, is over: release what it held. */
static void
end_test(struct ns_daemon *d, struct ns_session *s)
{
	if (s->test_ns == 0) {
		return;
	}
	s->test_ns = 0;
	ns_handover_close(d, s);
	ns_handovers_set_listeners(d);
	s->tests++;
	d->stats.tests++;
	s->moved_ns = np_now();
	s->end_ns = s->ending ? s->end_ns : idle_end(d, s->moved_ns);
	set_holds(d, s, NULL);
}

/* Under which reason to count a refusal by the session itself, by its errno. */
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

/* Add what an ended test says it moved, at most what it can have. */
static void
count_served(struct ns_stats *stats, const struct np_served *served, uint64_t since_ns)
{
	uint64_t most = (np_now() - since_ns) * BYTES_NS;

	/* Read as a byte: a compromised session may send another value than 0 or 1. */
	stats->tests_failed += *(const unsigned char *)&served->failed != 0;
	stats->received_bytes += np_min(served->received, most);
	stats->sent_bytes += np_min(served->sent, most);
	stats->transactions += np_min(served->transactions, most);
}

/* Handle a session's message, trusted about itself only. False: no correct session sends that. */
static bool
handle(struct ns_daemon *d, struct ns_session *s, const struct ns_message *m)
{
	switch (m->type) {
	case NS_ASK:
		if (s->ending || s->test_ns != 0 || s->waiting_ns != 0 || s->room_until_ns != 0 ||
		    !ns_guard_plausible(&d->limits, &m->wish) ||
		    np_sock_queued(s->fd, SIOCOUTQ) > 0) { /* has yet to receive an answer */
			return false;
		}
		s->wish = m->wish;
		s->wish.test[sizeof(s->wish.test) - 1] = '\0';
		if (d->args.exclusive && test_runs(d)) {
			s->waiting_ns = np_now();
			s->end_ns =
			    s->waiting_ns + ((uint64_t)d->args.exclusive_s + BETWEEN_S) * NP_SEC;
			d->stats.waiting_now++;
		} else {
			grant_test(d, s);
		}
		return true;
	case NS_MOVED:
		s->moved_ns = np_now();
		return true;
	case NS_DONE:
		if (m->served.refused != 0) {
			d->stats.refused[reason_of(m->served.refused)]++;
			return true;
		}
		if (s->test_ns == 0) {
			return false;
		}
		count_served(&d->stats, &m->served, s->test_ns);
		end_test(d, s);
		grant_next(d);
		return true;
	default:
		return false;
	}
}

/* Close the sockets to a session that has ended, or has to end: its test is over. */
static void
hang_up(struct ns_daemon *d, struct ns_session *s)
{
	if (s->fd >= 0) {
		/* A process that was just forked may still have it open: close(2) is not enough. */
		epoll_ctl(d->epoll, EPOLL_CTL_DEL, s->fd, NULL);
		ns_passed_close(s->fd);
		s->fd = -1;
		leave_queue(d, s);
		d->stats.tests_failed += s->test_ns != 0;
		end_test(d, s);
		s->end_ns = np_now() + TERM_MS * NP_MSEC; /* if it still runs then: end_overrun() */
		grant_next(d);
	}
}

void
ns_session_receive(struct ns_daemon *d, struct ns_session *s, int most)
{
	union ns_packet p;

	while (s->fd >= 0 && most-- > 0) {
		bool more;
		ssize_t n = ns_passed_recv(s->fd, &p, sizeof(p), &more);

		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			return;
		}
		if (n == (ssize_t)sizeof(p.line) && p.line.type == NS_LOG_LINE && !more) {
			ns_relay_write(d->log, &d->session_lines, s, &p.line, d->args.quiet);
		} else if (n != (ssize_t)sizeof(p.message) || more || !handle(d, s, &p.message)) {
			hang_up(d, s);
		}
	}
}

/* The process has ended, or is given up: release what the session held, and free it. */
static void
remove_session(struct ns_daemon *d, struct ns_session *ended)
{
	for (struct ns_session **at = &d->sessions; *at != NULL; at = &(*at)->next) {
		if (*at == ended) {
			*at = ended->next;
			break;
		}
	}
	memset(ended->idle_holds, 0, sizeof(ended->idle_holds));
	set_holds(d, ended, NULL);
	d->ended++;
	free(ended);
}

void
ns_sessions_reap(struct ns_daemon *d)
{
	siginfo_t end = { .si_pid = 0 };

	/* WNOWAIT: the number is not reused before the session is forgotten. */
	for (; waitid(P_ALL, 0, &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid > 0;
	     waitpid(end.si_pid, NULL, 0), end.si_pid = 0) {
		struct ns_session *s = d->sessions;

		if (ns_launch_reaped(d, end.si_pid)) {
			continue;
		}
		while (s != NULL && s->pid != end.si_pid) {
			s = s->next;
		}
		if (end.si_code != CLD_EXITED) {
			if (ns_lines_may(&d->lines, s != NULL ? &s->place : NULL, d->log)) {
				np_log(d->log, NP_LOG_ERROR,
				       "session process %ld was ended by signal %d%s",
				       (long)end.si_pid, end.si_status,
				       end.si_status == SIGSYS
					   ? ": it made a system call that no test needs"
					   : "");
			}
			d->stats.killed += s == NULL || !s->ending; /* not by the daemon */
			np_unix_sweep(end.si_pid); /* it did not remove its sockets itself */
		}
		if (s != NULL) {
			ns_session_receive(d, s, INT_MAX); /* what it sent before its end */
			hang_up(d, s);
			remove_session(d, s);
		}
	}
}

/* End a session that took too long: by SIGTERM, the next time by SIGKILL. */
static void
end_overrun(struct ns_daemon *d, struct ns_session *s, uint64_t now_ns)
{
	struct np_event e;

	if (!s->ending && s->fd >= 0) { /* the first signal, and not after hang_up() */
		d->stats.killed++;
		if (ns_lines_may(&d->lines, &s->place, d->log)) {
			ns_event_begin(&e, "session-overrun", &s->peer);
			np_event_number(&e, "process", (uint64_t)s->pid);
			np_log_event(d->log, NP_LOG_ERROR, &e, "its time is over: it ends now");
		}
	}
	kill(s->pid, s->ending ? SIGKILL : SIGTERM);
	s->ending = true;
	s->end_ns = now_ns + TERM_MS * NP_MSEC;
}

/* Retry the few tests not tried for longest: each looks at all sessions. When to call again. */
static uint64_t
try_again(struct ns_daemon *d, uint64_t now_ns)
{
	for (int i = 0; i < TRIES; i++) {
		struct ns_session *first = NULL;
		uint64_t next = NP_NEVER;

		for (struct ns_session *s = d->sessions; s != NULL; s = s->next) {
			if (s->room_until_ns == 0) {
				continue;
			}
			if (s->room_tried == d->freed + 1 && s->room_again_ns > now_ns) {
				/* Nothing was released since then. */
				next = np_min(next, s->room_again_ns);
			} else if (first == NULL || s->room_tried < first->room_tried) {
				first = s;
			}
		}
		if (first == NULL) {
			return next;
		}
		grant_test(d, first);
	}
	return now_ns;
}

uint64_t
ns_sessions_tick(struct ns_daemon *d, uint64_t now_ns)
{
	uint64_t next = try_again(d, now_ns);

	for (struct ns_session *s = d->sessions; s != NULL; s = s->next) {
		uint64_t turn_until = s->waiting_ns + (uint64_t)d->args.exclusive_s * NP_SEC;

		if (s->waiting_ns != 0 && turn_until <= now_ns) {
			refuse_test(d, s, NS_LINE,
				    "other tests ran all the time (netserver --exclusive)");
		} else if (s->waiting_ns != 0 && turn_until < next) {
			next = turn_until;
		}
		if (s->handover.other_ns != 0) { /* a socket is held: pass it on when due */
			uint64_t due = ns_handover_tick(d, s, now_ns);

			next = due < next ? due : next;
		}
		if (s->end_ns != 0 && s->end_ns <= now_ns) {
			end_overrun(d, s, now_ns);
		}
		if (s->end_ns != 0 && s->end_ns < next) {
			next = s->end_ns;
		}
	}
	return next;
}

void
ns_sessions_end(struct ns_daemon *d)
{
	static const int signals[] = { SIGTERM, SIGKILL };
	struct timespec left;

	for (size_t i = 0; i < NS_FORKSERVERS; i++) {
		ns_forkserver_end(&d->forkserver[i]);
	}
	if (d->sessions == NULL) {
		return;
	}
	np_log(d->log, NP_LOG_INFO, "ending %llu sessions",
	       (unsigned long long)d->stats.held[NP_RES_SESSIONS]);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		uint64_t until = np_deadline(TERM_MS * NP_MSEC);

		for (const struct ns_session *s = d->sessions; s != NULL; s = s->next) {
			kill(s->pid, signals[i]);
		}
		ns_sessions_reap(d);
		while (d->sessions != NULL && np_now() < until) {
			ppoll(NULL, 0, np_left(until, &left), d->signals.let_in);
			ns_sessions_reap(d);
		}
	}
	while (d->sessions != NULL) {
		remove_session(d, d->sessions);
	}
}
