/*
 * The engine `epoll`: many connections, one call each when the kernel is ready for it
 * (epoll(7), level-triggered). In steady state a transaction costs a receive, a send and its share
 * of a wait; interest is changed only where a send falls short.
 *
 * The engine `spin` is the same without the waiting.
 *
 * In connection tests each call is tried at once, and the kernel is asked to tell of a connection
 * only where that blocks: one that is made, or has a request, by then is never waited for.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "bench/engine/calls.h"
#include "bench/engine/engine.h"
#include "bench/engine/io.h"
#include "bench/ids.h"
#include "bench/open.h"
#include "bench/ramp.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"

enum {
	BATCH = 256,     /* events of one wait */
	TURN = 8,        /* calls in a row for one connection, before others have theirs */
	WAITS = 4096,    /* bytes of a response that a socket surely holds until it is closed */
	NONE = -1,       /* no connection's number */
	COMING = 64,     /* connections of a ramp that are looked at together */
	LOOK_NS = 50000, /* between two looks at those, while others are driven */
	ROUNDS = 64,     /* of all connections, between two looks at the clock of who never waits */
	IDLE_MS = 1000   /* without a message, before such a thread of a passive end sleeps */
};

struct loop {
	struct np_worker *w;
	int fd;
	uint32_t live; /* connections that are not over */
	uint32_t open; /* in connection tests: those that are there */
	const struct np_slot *out, *in;
	uint32_t next;    /* connection to begin when the load allows an operation */
	uint64_t look_ns; /* when connections are looked at for those that wait too long */

	enum np_need begins; /* a leader's operations; NP_OVER: it is a follower */
	uint32_t to_read;    /* the event of what a connection has to read */
	bool has_closed;     /* the far end of the current connection */
	bool watches_end;    /* a sender that learns here, not from its controller, of a close */
	/* Connections that come by a listener: */
	bool listens;      /* the listener's events are asked for */
	bool accepted_all; /* none was waiting when last looked */
	uint32_t free;     /* the first connection that none has come for; NONE */
	bool ramp_ends;    /* the test is over at the far end: no more come, or are begun */
	/* A ramp's connections that are to come about, which wait for their events apart. */
	int coming_fd;      /* epoll(7), which the other one waits for; -1: none */
	uint32_t coming;    /* how many */
	uint64_t looked_ns; /* when it was looked for their events */
	/* An open loop's: */
	int timer_fd;      /* a clock's, for what is due next; -1: none */
	uint64_t timer_ns; /* when it tells */
	bool is_near;      /* what is due next is not worth a wait */
	bool drains;       /* nothing is due any more */
	/* A thread that never waits: */
	bool spins;
	uint32_t rounds;   /* up to ROUNDS */
	uint64_t moved;    /* bytes and transactions, at the last look */
	uint64_t moved_ns; /* when some had, by the looks; 0: nothing yet */
};

/* Ask for the events of a descriptor, or for others, or no more for any. The kernel may refuse. */
static void
control(struct loop *l, int epoll_fd, int op, int fd, uint32_t events, void *of)
{
	struct epoll_event ev = { .events = events, .data.ptr = of };

	if (epoll_ctl(epoll_fd, op, fd, &ev) != 0) {
		l->w->error = errno;
		l->live = 0;
	}
}

static void
wait_for(struct loop *l, struct np_conn *c, uint32_t events)
{
	int op = c->waits_for == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (c->waits_for != events && !l->spins) {
		c->waits_for = events;
		control(l, l->fd, op, c->fd, events, c);
	}
}

/* One that has nothing to do any more. */
static void
drop_one(struct loop *l, struct np_conn *c)
{
	if (c->waits_for != 0) {
		epoll_ctl(l->fd, EPOLL_CTL_DEL, c->fd, NULL);
		c->waits_for = 0;
	}
	c->need = NP_OVER;
	l->live--;
}

static void
end_one(struct loop *l, struct np_conn *c)
{
	drop_one(l, c);
	l->ramp_ends = l->ramp_ends || c->is_up; /* who ends one of them ends the test */
	if (np_io_ends_all(l->w)) {
		l->live = 0;
	}
}

/*
 * Does the load hold its next operation? A leader's connections wait for their turn, behind those
 * that wait already; who never waits gives each of them its turn anyway. A follower sleeps with all
 * of them.
 */
static bool
is_held(struct loop *l, struct np_conn *c)
{
	if ((c->need & NP_REST) == 0) {
		return false;
	}
	if (l->begins != NP_OVER) {
		return (!l->spins && l->w->load.holds) || !np_io_begins(l->w, c);
	}
	c->need = np_io_rest(l->w, c, c->need);
	return (c->need & NP_REST) != 0;
}

/*
 * The next connection of a ramp that is waiting, as np_steps.open. Another worker has closed the
 * listener (EINVAL), where the test is over.
 */
static int
take_next(const struct loop *l)
{
	int fd = np_endpoint_take(l->w->run, SOCK_NONBLOCK);

	if (fd >= 0) {
		return fd;
	}
	return errno == EINVAL ? -EAGAIN : errno == ECONNABORTED ? -EINTR : -errno;
}

/*
 * The next connection of a test of them, or the next that is waiting. What it needs then is tried
 * at once; but the first one is looked at, and a sending half closed, when it has come about.
 */
static bool
open_next(struct loop *l, struct np_conn *c)
{
	struct np_worker *w = l->w;
	bool is_new = c->fd < 0;

	if (is_new) {
		int fd;

		if (l->begins == NP_OPEN &&
		    np_seen(&w->count->transactions) + l->open >= w->budget) {
			c->need = NP_OVER; /* those that are under way are the last ones */
			return true;
		}
		fd = w->steps->open != NULL ? w->steps->open(w, SOCK_NONBLOCK) : take_next(l);
		if (fd < 0) {
			l->accepted_all = fd == -EAGAIN;
			errno = -fd;
			c->need = np_io_failed(w, c, NP_OPEN);
			return true;
		}
		c->fd = fd;
		c->waits_for = 0;
		l->open++;
	}
	if (is_new && l->begins == NP_OPEN && w->send_size == 0 &&
	    (c->transactions == 0 || w->run->plan->no_control)) {
		return false;
	}
	if (w->steps->open == NULL) {
		np_ramp_up(w, c);
	} else {
		c->need = w->steps->opened(w, c);
	}
	return true;
}

/* What only connection tests need, and a ramp. */
static bool
connection_call(struct loop *l, struct np_conn *c)
{
	switch ((int)c->need) {
	case NP_OPEN:
		return open_next(l, c);
	case NP_SHUT:
		shutdown(c->fd, SHUT_WR);
		c->need = NP_AWAIT;
		return false;
	case NP_AWAIT:
		c->need = l->has_closed ? NP_CLOSE : np_io_await_close(l->w, c);
		return true;
	default:
		np_sys_close(c->fd); /* which removes it from the epoll set */
		c->fd = -1;
		c->waits_for = 0;
		l->open--;
		l->has_closed = false;
		c->need = l->w->steps->closed(l->w, c);
		return l->w->open == NULL; /* an open loop's next one is due by the clock */
	}
}

static uint64_t
in_flight(const struct np_worker *w, const struct np_conn *c)
{
	return (w->codec & NP_C_MANY) != 0 ? c->ids->in_flight : 0;
}

/* Back to what was put aside, unless a response is there in part. */
static void
take_back(struct np_conn *c)
{
	if (!c->is_aside || (c->need & NP_PART) != 0) {
		return;
	}
	c->is_aside = false;
	if (c->need != NP_OVER) {
		/* What has been begun is not held. */
		c->need = NP_SEND | (c->aside_part > 0 ? (unsigned)NP_PART : c->need & NP_REST);
		c->part = c->aside_part;
		c->since_ns = c->aside_since_ns;
	}
}

/* The kernel is not ready for the last call. Returns true if another one may do. */
static __attribute__((noinline)) bool
is_blocked(const struct loop *l, struct np_conn *c)
{
	c->need &= ~(unsigned)NP_BLOCKED;
	if (!l->spins && l->w->open == NULL) {
		return false;
	}
	l->w->engine_count[NP_E_BLOCKED]++;
	if ((c->need & NP_SEND) != 0) {
		/* Receive responses in flight meanwhile: a peer that cannot send reads nothing. */
		bool may_receive = in_flight(l->w, c) > 0 && !c->is_aside;

		if (may_receive) {
			np_io_put_aside(c, 0);
		}
		return may_receive;
	}
	take_back(c);
	return false;
}

/* The address to answer is lost when something else is received. */
static bool
keeps_asker(const struct np_worker *w, enum np_need need)
{
	return need == NP_SEND && w->steps->answers && w->from != NULL;
}

/* Needs that are rarely had. */
static __attribute__((noinline)) bool
other_call(struct loop *l, struct np_conn *c)
{
	enum np_need need = c->need;

	c->need = np_io_other(l->w, c, need, (need & NP_SEND) != 0 ? l->out : l->in);
	if ((need & NP_RECV) != 0 && (c->need & NP_BLOCKED) == 0) {
		take_back(c);
	}
	return c->need != NP_RECV;
}

/* One call. Returns false when the kernel, or the far end, is to be waited for. */
static bool
one_call(struct loop *l, struct np_conn *c)
{
	struct np_worker *w = l->w;
	enum np_need need = c->need;
	ssize_t n;

	if (w->calls != NULL && (need == NP_SEND || need == NP_RECV)) {
		c->need = need == NP_SEND ? w->calls->send(w, c) : w->calls->recv(w, c);
		return need == NP_RECV || c->need != NP_RECV;
	}
	if (need == NP_SEND) {
		n = np_io_send(w, c, l->out->buf);
		l->out = l->out->next;
		c->need = np_io_sent(w, c, w->steps, n);
		return c->need != NP_RECV;
	}
	if (need == NP_RECV) {
		n = np_io_recv(w, c, l->in->buf, w->steps->answers);
		c->need = np_io_received(w, c, w->steps, l->in->buf, n);
		l->in = l->in->next;
		if (__builtin_expect(c->is_aside, 0) && n >= 0) {
			take_back(c);
		}
		return c->need != NP_RECV || n == (ssize_t)w->recv_size;
	}
	return need >= NP_OPEN && need <= NP_CLOSE ? connection_call(l, c) : other_call(l, c);
}

/* The events that a connection waits for. */
static uint32_t
events_of(const struct loop *l, const struct np_conn *c)
{
	if (c->waits_release) {
		return l->watches_end ? EPOLLERR | EPOLLRDHUP : EPOLLERR;
	}
	switch ((int)(c->need & ~(unsigned)NP_PART)) {
	case NP_RECV:
	case NP_AWAIT:
		return l->to_read;
	default:
		if (l->w->open != NULL) {
			return EPOLLIN | EPOLLOUT;
		}
		return l->watches_end ? EPOLLOUT | EPOLLRDHUP : EPOLLOUT;
	}
}

/* Of several workers one is woken for a connection. Such an entry can't be changed but removed. */
static void
listen_to(struct loop *l, bool wanted)
{
	int op = wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;

	if (l->listens != wanted) {
		l->listens = wanted;
		control(l, l->fd, op, l->w->run->end.listen_fd, EPOLLIN | EPOLLEXCLUSIVE, l);
	}
}

/* No connection has come for it: the listener's events are its. */
static void
wait_in_line(struct loop *l, struct np_conn *c)
{
	c->next_free = l->free;
	l->free = (uint32_t)(c - l->w->conn);
	listen_to(l, true);
}

/* A leader's connection that is closed has nothing to wait for before the next one is made. */
static bool
is_due(const struct loop *l, const struct np_conn *c)
{
	return c->fd < 0 && l->begins == NP_OPEN && l->w->open == NULL && !np_stopped(&l->w->stop);
}

/* Is it another's turn after `calls` calls? The next wait tells whether one is to be accepted. */
static bool
has_had_its_turn(const struct loop *l, const struct np_conn *c, int calls)
{
	return calls >= TURN
		   ? !is_due(l, c) && (!keeps_asker(l->w, c->need) || np_stopped(&l->w->stop))
		   : calls > 0 && c->need == NP_OPEN && c->fd < 0 && l->begins != NP_OPEN;
}

/* As many calls as can be made now, and are this connection's turn. */
static void
advance(struct loop *l, struct np_conn *c)
{
	for (int calls = 0; c->need != NP_OVER && !has_had_its_turn(l, c, calls); calls++) {
		if (is_held(l, c)) {
			/* Otherwise epoll reports a far end that has closed again and again. */
			if (c->fd >= 0) {
				wait_for(l, c, EPOLLONESHOT);
			}
			return;
		}
		bool may_go_on = one_call(l, c);

		if ((c->need & NP_BLOCKED) != 0) {
			may_go_on = is_blocked(l, c);
		}
		if (!may_go_on) {
			break;
		}
	}
	if (c->need == NP_OVER) {
		end_one(l, c);
		return;
	}
	if (l->spins) {
		return; /* until its next turn */
	}
	if (c->fd >= 0) {
		wait_for(l, c, events_of(l, c));
	} else if (l->begins != NP_OPEN) {
		wait_in_line(l, c);
	}
}

/*
 * Connections are waiting. While all of this worker's are in use they are others' to take: there
 * are as many in all as the far end has.
 */
static void
accept_some(struct loop *l)
{
	if (l->free == (uint32_t)NONE) {
		listen_to(l, false);
		return;
	}
	l->accepted_all = false;
	for (int i = 0; i < BATCH && l->free != (uint32_t)NONE && !l->accepted_all; i++) {
		struct np_conn *c = &l->w->conn[l->free];

		l->free = c->next_free;
		advance(l, c);
	}
	if (l->free == (uint32_t)NONE && l->w->run->workers > 1) {
		listen_to(l, false); /* who waits for events is the one that is woken */
	}
}

static void
end_coming(struct loop *l)
{
	np_fds_close(l->coming_fd);
	l->coming_fd = -1;
	l->coming = 0;
}

/*
 * The far end's test is over: what waits to be accepted is a part of it, but nothing comes behind
 * that. Other workers hear of it by the listener, which is closed for them, too, or by connections
 * of their own.
 */
static void
end_ramp(struct loop *l)
{
	struct np_worker *w = l->w;
	bool is_last;

	l->ramp_ends = false;
	l->accepted_all = false;
	if (w->run->end.listen_fd >= 0 && l->live > 0) {
		accept_some(l);
	}
	/* A worker that has no room for more leaves them to the others. */
	is_last = l->accepted_all || w->run->workers == 1;
	end_coming(l);
	for (uint32_t i = 0; i < w->conns && l->live > 0; i++) {
		struct np_conn *c = &w->conn[i];

		if (c->need == NP_OPEN || c->need == NP_CONNECT || c->need == NP_COME) {
			drop_one(l, c);
		}
	}
	if (w->ramp != NULL) {
		w->ramp->begun = w->conns;
	}
	l->free = (uint32_t)NONE;
	if (w->run->end.listen_fd >= 0) {
		listen_to(l, false);
		if (is_last) {
			shutdown(w->run->end.listen_fd, SHUT_RDWR);
		}
	}
}

/*
 * Begin the connections that are due, and take those that have come about: between the turns of
 * others, too, for which neither the rate nor the times are to wait.
 */
static void
keep_ramp(struct loop *l)
{
	struct epoll_event events[COMING];
	uint64_t now = np_now();
	struct np_conn *c;
	int n = 0;

	while (l->live > 0 && (c = np_ramp_begin(l->w, now)) != NULL) {
		if (c->need == NP_OVER) {
			drop_one(l, c);
		} else {
			l->coming++;
			control(l, l->coming_fd, EPOLL_CTL_ADD, c->fd, EPOLLOUT, c);
		}
	}
	if (l->coming > 0 && now - l->looked_ns >= LOOK_NS) {
		l->looked_ns = now;
		n = epoll_wait(l->coming_fd, events, COMING, 0);
	}
	for (int i = 0; i < n && l->live > 0; i++) {
		c = events[i].data.ptr;
		epoll_ctl(l->coming_fd, EPOLL_CTL_DEL, c->fd, NULL);
		l->coming--;
		np_ramp_decided(l->w, c);
		if (c->need == NP_OVER) {
			drop_one(l, c);
		} else {
			advance(l, c);
		}
	}
	if (l->coming == 0 && np_ramp_due(l->w) == UINT64_MAX) {
		end_coming(l);
	}
}

/*
 * Begin what the load lets begin. An open loop's next operation has a timer, as timerfd(2) has no
 * slack.
 */
static void
resume(struct loop *l)
{
	struct np_worker *w = l->w;
	struct itimerspec at = { .it_value.tv_sec = 0 };
	struct np_conn *c;
	uint64_t wake;

	for (uint32_t i = 0; l->live > 0 && (c = np_io_next_due(w, &l->next, &i)) != NULL;) {
		advance(l, c);
	}
	if (w->open == NULL) {
		return;
	}
	wake = np_open_wake(w);
	l->is_near = wake <= w->open->looked_ns;
	if (l->timer_fd >= 0 && !l->is_near && wake != l->timer_ns) {
		l->timer_ns = wake;
		wake = wake != UINT64_MAX ? wake : 0; /* never */
		at.it_value.tv_sec = (time_t)(wake / NP_SEC);
		at.it_value.tv_nsec = (long)(wake % NP_SEC);
		timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
	}
}

/* Waits are not interrupted here: what has not been answered in time is lost. */
static void
look_for_late(struct loop *l, uint64_t now)
{
	struct np_worker *w = l->w;

	l->look_ns = now + w->patience_ns / 8;
	for (uint32_t i = 0; i < w->conns && l->live > 0; i++) {
		struct np_conn *c = &w->conn[i];

		/* Some may have been sent since `now`. */
		if (c->need == NP_RECV && !c->is_aside &&
		    (w->open != NULL || now >= c->since_ns + w->patience_ns)) {
			c->need = w->steps->failed(w, c, NP_RECV, EINTR);
			advance(l, c);
		}
	}
}

/* Milliseconds until something is to be done that no event tells of; -1: nothing is. */
static int
time_left(const struct loop *l, uint64_t now)
{
	uint64_t next = l->w->load.holds ? l->w->load.due_ns : UINT64_MAX;

	if (l->w->patience_ns > 0 && l->look_ns < next) {
		next = l->look_ns;
	}
	if (np_ramp_due(l->w) < next) {
		next = np_ramp_due(l->w);
	}
	if (next == UINT64_MAX) {
		return -1;
	}
	return next <= now ? 0 : (int)((next - now + NP_MSEC - 1) / NP_MSEC);
}

static void
take_event(struct loop *l, const struct epoll_event *event)
{
	struct np_conn *c = event->data.ptr;

	if (event->data.ptr == l) {
		accept_some(l);
		/* Only another worker's end of a ramp closes it. */
		l->ramp_ends = l->ramp_ends || (event->events & EPOLLHUP) != 0;
	} else if (event->data.ptr == &l->coming_fd) {
		l->looked_ns = 0; /* keep_ramp() comes next */
	} else if (c != NULL && l->watches_end && (event->events & EPOLLRDHUP) != 0) {
		l->w->hung_up = true;
		end_one(l, c);
	} else if (c != NULL && c->need != NP_OVER) {
		l->has_closed = (event->events & (EPOLLRDHUP | EPOLLERR)) == EPOLLRDHUP;
		advance(l, c);
		l->has_closed = false;
	}
}

static void
turn(struct loop *l)
{
	struct epoll_event events[BATCH];
	bool timed = l->w->load.holds || l->w->patience_ns > 0 || np_ramp_due(l->w) != UINT64_MAX;
	uint64_t now = timed ? np_now() : 0;
	int n = epoll_wait(l->fd, events, BATCH,
			   l->is_near  ? 0
			   : l->drains ? 1
				       : time_left(l, now));

	for (int i = 0; i < n && l->live > 0; i++) {
		take_event(l, &events[i]);
		if (l->coming_fd >= 0) {
			keep_ramp(l);
		}
	}
	if (l->w->open != NULL) {
		resume(l);
	}
	if (!timed) {
		return;
	}
	if (n <= 0 && l->coming_fd >= 0) {
		keep_ramp(l);
	}
	now = np_now();
	if (l->w->load.holds && now >= l->w->load.due_ns) {
		resume(l);
	}
	if (l->w->patience_ns > 0 && now >= l->look_ns && !l->drains) {
		look_for_late(l, now);
	}
}

/* What a connection of a thread that falls asleep waits for. */
static uint32_t
events_asleep(const struct loop *l, const struct np_conn *c)
{
	if ((c->need & NP_REST) != 0) {
		return EPOLLONESHOT; /* until it is due */
	}
	if ((c->need & NP_SEND) != 0) {
		return in_flight(l->w, c) > 0 ? EPOLLIN | EPOLLOUT : EPOLLOUT;
	}
	return c->is_aside ? EPOLLIN | EPOLLOUT : EPOLLIN;
}

/*
 * Idle: release the CPU. It is awake again in the millisecond before something is due.
 */
static void
fall_asleep(struct loop *l)
{
	struct np_worker *w = l->w;
	int left_ms = time_left(l, np_now());
	struct epoll_event event;

	for (uint32_t i = 0; i < w->conns && l->live > 0; i++) {
		struct np_conn *c = &w->conn[i];

		if (c->need != NP_OVER) {
			control(l, l->fd, EPOLL_CTL_ADD, c->fd, events_asleep(l, c), c);
		}
	}
	epoll_wait(l->fd, &event, 1, left_ms > 0 ? left_ms - 1 : left_ms);
	for (uint32_t i = 0; i < w->conns; i++) {
		epoll_ctl(l->fd, EPOLL_CTL_DEL, w->conn[i].fd, NULL);
	}
	l->moved_ns = np_now();
}

/* What is to be looked at, but not in each round of a thread that never waits. */
static void
look(struct loop *l)
{
	struct np_worker *w = l->w;
	bool is_passive = !w->run->plan->active;
	uint64_t now, moved;

	l->rounds = 0;
	if (!is_passive && w->patience_ns == 0) {
		return;
	}
	now = np_now();
	moved = np_seen(&w->count->sent) + np_seen(&w->count->received) +
		np_seen(&w->count->transactions);
	if (l->moved != moved) {
		l->moved = moved;
		l->moved_ns = now;
	} else if (is_passive && now - l->moved_ns >= IDLE_MS * NP_MSEC && l->live > 0) {
		fall_asleep(l);
	}
	if (w->patience_ns > 0 && now >= l->look_ns) {
		look_for_late(l, now);
	}
}

/*
 * A round of a thread that never waits: all connections try. The passive end serves strangers, so
 * it sleeps until the first message, and when nothing has moved for IDLE_MS. There may be fewer
 * processors than such threads.
 */
static void
spin(struct loop *l)
{
	struct np_worker *w = l->w;

	for (uint32_t i = 0; i < w->conns && l->live > 0 && !np_stopped(&w->stop); i++) {
		if (w->conn[i].need != NP_OVER) {
			advance(l, &w->conn[i]);
		}
	}
	if (w->open != NULL) {
		resume(l);
	}
	if (++l->rounds == ROUNDS) {
		look(l);
	}
}

/*
 * The far end of a connection test closes when its response has left: a leader is woken once for
 * both, where a response has room in the socket.
 */
static uint32_t
to_read(const struct np_worker *w)
{
	const struct np_plan *p = w->run->plan;
	bool both = p->pattern->connection_test && p->role == NP_LEAD && !p->no_control;

	return both && w->recv_size <= WAITS && p->near.sock.rcvbuf < 0 ? EPOLLRDHUP : EPOLLIN;
}

/* A connection as it is before the first turn. */
static void
begin_one(struct loop *l, struct np_conn *c)
{
	c->waits_for = 0;
	l->live += c->need != NP_OVER;
	if (c->need == NP_CONNECT) {
		return; /* until it is due */
	}
	l->open += c->fd >= 0;
	if (c->fd < 0 && l->begins != NP_OPEN && c->need != NP_OVER) {
		wait_in_line(l, c);
	}
	if (c->fd < 0 || c->need == NP_OVER) {
		return;
	}
	np_sock_block(c->fd, false);
	if ((c->need & NP_REST) != 0) {
		wait_for(l, c, EPOLLONESHOT);
	} else if (c->need == NP_SEND && l->w->steps->arrived != NULL) {
		wait_for(l, c, EPOLLIN); /* for the response: its turn comes at once */
	} else {
		wait_for(l, c, events_of(l, c));
	}
}

static int
new_epoll(struct loop *l)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0) {
		l->w->error = errno;
	}
	return fd;
}

/* All that is asked of the kernel, as it is before the first turn. */
static void
begin(struct loop *l)
{
	struct np_worker *w = l->w;

	l->fd = new_epoll(l);
	l->coming_fd = w->ramp != NULL ? new_epoll(l) : -1;
	if (w->error == 0 && !l->drains) {
		control(l, l->fd, EPOLL_CTL_ADD, w->stop.wake_fd, EPOLLIN, NULL);
	}
	if (w->error == 0 && l->coming_fd >= 0) {
		control(l, l->fd, EPOLL_CTL_ADD, l->coming_fd, EPOLLIN, &l->coming_fd);
	}
	if (w->error == 0 && w->open != NULL && !l->spins) {
		l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
		if (l->timer_fd < 0) {
			w->error = errno;
		} else {
			control(l, l->fd, EPOLL_CTL_ADD, l->timer_fd, EPOLLIN, NULL);
		}
	}
	if (l->begins != NP_OPEN && (w->steps->open != NULL || w->run->plan->ramp > 0) &&
	    w->run->end.listen_fd >= 0) {
		np_sock_block(w->run->end.listen_fd, false);
	}
	/* Of those that wait in a line the first one is the last to join. */
	for (uint32_t i = w->conns; i-- > 0 && w->error == 0;) {
		if (!w->goes_on) {
			w->conn[i].need = w->run->plan->ramp == 0 ? np_io_first_need(w, i)
					  : w->run->plan->active  ? NP_CONNECT
								  : NP_OPEN;
		}
		begin_one(l, &w->conn[i]);
	}
	l->live = w->error == 0 ? l->live : 0;
}

/* The turns of those that need not wait. */
static void
start(struct loop *l)
{
	struct np_worker *w = l->w;

	for (uint32_t i = 0; i < w->conns && l->live > 0 && !np_stopped(&w->stop); i++) {
		struct np_conn *c = &w->conn[i];

		if (c->need == NP_SEND || (c->need == NP_OPEN && is_due(l, c))) {
			advance(l, c);
		}
	}
	resume(l);
}

static int
run(struct np_worker *w)
{
	const struct np_run *run = w->run;
	bool drains = w->open != NULL && w->open->until_ns != 0;
	/* The controller can't watch connections that come while it waits. */
	bool watches_end = run->plan->ramp > 0 && !run->plan->active && run->side->ends_on_hangup;
	struct loop l = { .w = w,
			  .drains = drains,
			  .spins = run->engine->spins && !drains,
			  .moved_ns = w->goes_on ? np_now() : 0,
			  .out = w->send_ring.slots,
			  .in = w->recv_ring.slots,
			  .look_ns = np_now() + w->patience_ns / 8,
			  .begins = w->run->plan->role == NP_LEAD ? w->steps->first : NP_OVER,
			  .to_read = to_read(w),
			  .watches_end = watches_end,
			  .timer_fd = -1,
			  .free = (uint32_t)NONE };

	begin(&l);
	start(&l);
	while (l.live > 0 && (drains ? np_open_waits(w) : !np_stopped(&w->stop))) {
		if (l.spins) {
			spin(&l);
		} else {
			turn(&l);
		}
		if (l.ramp_ends) {
			end_ramp(&l);
		}
		if (np_sampler_is_asked(&w->sampler)) {
			np_sampler_answer(w);
		}
	}
	np_load_pause(&w->load, np_now());
	end_coming(&l);
	np_fds_close(l.timer_fd);
	np_fds_close(l.fd);
	return -w->error;
}

static const char *
why_not(const struct np_plan *p)
{
	if (p->pattern->probe) {
		return "the test makes its own connection";
	}
	if (p->pattern->connection_test && p->transport->upgrade != NULL) {
		return "each connection is prepared by calls that block";
	}
	return p->transport->header > 0 ? "its socket belongs to the daemon" : NULL;
}

const struct np_engine np_engine_epoll = {
	.name = "epoll",
	.help = "waits for events; many connections for each worker",
	.compares = true,
	.why_not = why_not,
	.run = run,
};
