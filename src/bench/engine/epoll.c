/*
 * The engine `epoll`: many connections, one call each when the kernel is ready for it
 * (epoll(7), level-triggered). In steady state a transaction costs a receive, a send and its share
 * of a wait; interest is changed only where a send falls short.
 *
 * In connection tests each call is tried at once, and the kernel is asked to tell of a connection
 * only where that blocks: one that is made, or has a request, by then is never waited for.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/engine/calls.h"
#include "bench/engine/engine.h"
#include "bench/engine/io.h"
#include "bench/ramp.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"

enum {
	BATCH = 256,    /* events of one wait */
	TURN = 8,       /* calls in a row for one connection, before others have theirs */
	WAITS = 4096,   /* bytes of a response that a socket surely holds until it is closed */
	NONE = -1,      /* no connection's number */
	COMING = 64,    /* connections of a ramp that are looked at together */
	LOOK_NS = 50000 /* between two looks at those, while others are driven */
};

struct loop {
	struct np_worker *w;
	int fd;
	uint32_t live; /* connections that are not over */
	uint32_t open; /* in connection tests: those that are there */
	const struct np_slot *out, *in;
	bool holds;       /* sends are held back */
	uint64_t held_ns; /* since when they are */
	uint64_t due_ns;  /* when some of those held back may begin; 0: none is held back */
	uint32_t next;    /* whose turn it is then */
	uint64_t look_ns; /* when connections are looked at for those that wait too long */

	enum np_need begins; /* a leader's operations; NP_OVER: it is a follower */
	uint32_t to_read;    /* the event of what a connection has to read */
	bool has_closed;     /* the far end of the connection whose turn it is */
	bool hears_end;      /* a sender that learns here, not from its controller, of a close */
	/* Connections that come by a listener: */
	bool listens;      /* the listener's events are asked for */
	bool accepted_all; /* none was waiting when last looked */
	uint32_t free;     /* the first connection that none has come for; NONE */
	bool ramp_ends;    /* the test is over at the far end: no more come, or are begun */
	/* A ramp's connections that are to come about, which wait for their events apart. */
	int coming_fd;      /* epoll(7), which the other one waits for; -1: none */
	uint32_t coming;    /* how many */
	uint64_t looked_ns; /* when it was looked for their events */
};

static int
add(const struct loop *l, int fd, uint32_t events, void *of)
{
	struct epoll_event ev = { .events = events, .data.ptr = of };

	return epoll_ctl(l->fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

static void
wait_for(struct loop *l, struct np_conn *c, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = c };
	int op = c->waits_for == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (c->waits_for == events) {
		return;
	}
	c->waits_for = events;
	if (epoll_ctl(l->fd, op, c->fd, &ev) != 0) {
		l->w->error = errno;
		l->live = 0;
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

/* A burst is over: nothing is sent before the next one is due. Who receives waits with all. */
static void
rest(struct loop *l, struct np_conn *c)
{
	struct np_worker *w = l->w;
	uint64_t now, due;

	if ((c->need & ~(unsigned)NP_REST) != l->begins) {
		np_io_rest(w, c);
		return;
	}
	now = np_now();
	due = np_load_due(&w->load, now);
	l->held_ns = l->holds ? l->held_ns : now;
	l->holds = l->holds || due != 0;
	l->due_ns = due != 0 ? due : l->due_ns;
}

static bool
is_held(struct loop *l, struct np_conn *c)
{
	if ((c->need & NP_REST) != 0 && l->w->load.is_spent) {
		rest(l, c);
	}
	c->need &= ~(unsigned)NP_REST;
	if (c->need != l->begins || !l->holds) {
		return false;
	}
	c->need |= NP_REST;
	return true;
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
		fd = w->steps->open(w, SOCK_NONBLOCK);
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
	c->need = w->steps->opened(w, c);
	return true;
}

static bool
close_one(struct loop *l, struct np_conn *c)
{
	np_sys_close(c->fd); /* which takes it out of the set, too */
	c->fd = -1;
	c->waits_for = 0;
	l->open--;
	l->has_closed = false;
	c->need = l->w->steps->closed(l->w, c);
	return true;
}

/* The next connection of a ramp that is waiting. */
static bool
take_next(struct loop *l, struct np_conn *c)
{
	struct np_worker *w = l->w;
	int fd = np_endpoint_take(w->run, SOCK_NONBLOCK);

	if (fd >= 0) {
		c->fd = fd;
		c->waits_for = 0;
		np_ramp_up(w, c);
		return true;
	}
	/* Another worker has closed the listener (EINVAL), where the test is over. */
	l->accepted_all = errno == EAGAIN || errno == EINVAL;
	if (!l->accepted_all && errno != EINTR && errno != ECONNABORTED) {
		w->error = errno;
		l->live = 0;
	}
	c->need = NP_OPEN | NP_BLOCKED;
	return true;
}

/* What only connection tests need, and a ramp. */
static bool
connection_call(struct loop *l, struct np_conn *c)
{
	char byte;
	ssize_t n;

	switch ((int)c->need) {
	case NP_OPEN:
		return l->w->steps->open != NULL ? open_next(l, c) : take_next(l, c);
	case NP_SHUT:
		shutdown(c->fd, SHUT_WR);
		c->need = NP_AWAIT;
		return false;
	case NP_AWAIT:
		n = l->has_closed ? 0 : np_sys_recv(c->fd, &byte, 1);
		c->need = n == 0 ? NP_CLOSE : n > 0 ? NP_AWAIT : np_io_failed(l->w, c, NP_AWAIT);
		return true;
	default:
		return close_one(l, c);
	}
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
		n = np_io_send(w, c, l->out->buf, w->steps->sends_file);
		l->out = l->out->next;
		c->need = n >= 0 ? w->steps->sent(w, c, (size_t)n) : np_io_failed(w, c, need);
		return c->need != NP_RECV;
	}
	if (need == NP_RECV) {
		n = np_io_recv(w, c, l->in->buf, w->steps->answers);
		c->need = n >= 0 ? w->steps->arrived(w, c, l->in->buf, (size_t)n)
				 : np_io_failed(w, c, need);
		l->in = l->in->next;
		return c->need != NP_RECV || n == (ssize_t)w->recv_size;
	}
	if (need >= NP_OPEN && need <= NP_CLOSE) {
		return connection_call(l, c);
	}
	c->need = np_io_other(w, c, need, (need & NP_SEND) != 0 ? l->out : l->in);
	return c->need != NP_RECV;
}

/* The events that a connection waits for. */
static uint32_t
events_of(const struct loop *l, const struct np_conn *c)
{
	if (c->waits_release) {
		return l->hears_end ? EPOLLERR | EPOLLRDHUP : EPOLLERR;
	}
	switch ((int)(c->need & ~(unsigned)NP_PART)) {
	case NP_RECV:
	case NP_AWAIT:
		return l->to_read;
	default:
		return l->hears_end ? EPOLLOUT | EPOLLRDHUP : EPOLLOUT;
	}
}

/* Of several workers one is woken for a connection. Such an entry can't be changed but removed. */
static void
listen_to(struct loop *l, bool wanted)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLEXCLUSIVE, .data.ptr = l };
	int op = wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;

	if (l->listens == wanted) {
		return;
	}
	l->listens = wanted;
	if (epoll_ctl(l->fd, op, l->w->run->end.listen_fd, &ev) != 0) {
		l->w->error = errno;
		l->live = 0;
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
	return c->fd < 0 && l->begins == NP_OPEN && !np_stopped(&l->w->stop);
}

/* Is it another's turn after `calls` calls? The next wait tells whether one is to be accepted. */
static bool
has_had_its_turn(const struct loop *l, const struct np_conn *c, int calls)
{
	return calls >= TURN ? !is_due(l, c)
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
		if (!one_call(l, c) || (c->need & NP_BLOCKED) != 0) {
			break;
		}
	}
	c->need &= ~(unsigned)NP_BLOCKED;
	if (c->need == NP_OVER) {
		end_one(l, c);
		return;
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
	if (l->coming_fd >= 0) {
		close(l->coming_fd);
	}
	l->coming_fd = -1;
	l->coming = 0;
}

static void
begin_coming(struct loop *l)
{
	int rc;

	l->coming_fd = l->w->ramp != NULL ? epoll_create1(EPOLL_CLOEXEC) : -1;
	if (l->w->ramp == NULL) {
		return;
	}
	rc = l->coming_fd >= 0 ? add(l, l->coming_fd, EPOLLIN, &l->coming_fd) : -errno;
	if (rc != 0) {
		l->w->error = -rc;
		l->live = 0;
	}
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

/* One that has begun to come about. */
static void
await_one(struct loop *l, struct np_conn *c)
{
	struct epoll_event ev = { .events = EPOLLOUT, .data.ptr = c };

	if (c->need == NP_OVER) {
		drop_one(l, c);
	} else if (epoll_ctl(l->coming_fd, EPOLL_CTL_ADD, c->fd, &ev) == 0) {
		l->coming++;
	} else {
		l->w->error = errno;
		l->live = 0;
	}
}

/* The kernel knows what has become of one. */
static void
take_one(struct loop *l, struct np_conn *c)
{
	epoll_ctl(l->coming_fd, EPOLL_CTL_DEL, c->fd, NULL);
	l->coming--;
	np_ramp_decided(l->w, c);
	if (c->need == NP_OVER) {
		drop_one(l, c);
	} else {
		advance(l, c);
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
		await_one(l, c);
	}
	if (l->coming > 0 && now - l->looked_ns >= LOOK_NS) {
		l->looked_ns = now;
		n = epoll_wait(l->coming_fd, events, COMING, 0);
	}
	for (int i = 0; i < n && l->live > 0; i++) {
		take_one(l, events[i].data.ptr);
	}
	if (l->coming == 0 && np_ramp_due(l->w) == UINT64_MAX) {
		end_coming(l);
	}
}

/*
 * A burst may begin: some of those that were held back, each in its turn. The wait is no part of
 * what they do.
 */
static void
resume(struct loop *l, uint64_t now)
{
	struct np_worker *w = l->w;
	uint32_t left = w->load.burst;

	w->paced_ns += l->holds ? now - l->held_ns : 0;
	l->holds = false;
	l->due_ns = 0;
	for (uint32_t i = 0; i < w->conns && !l->holds && l->live > 0; i++) {
		struct np_conn *c = &w->conn[l->next];

		if ((c->need & NP_REST) != 0 && left-- == 0) {
			l->due_ns = w->load.due_ns; /* the others wait for the next one */
			return;
		}
		l->next = l->next + 1 < w->conns ? l->next + 1 : 0;
		if ((c->need & NP_REST) != 0) {
			c->need &= ~(unsigned)NP_REST;
			c->since_ns = now;
			advance(l, c);
		}
	}
}

/* Nobody interrupts a wait here: what has not been answered in time is lost. */
static void
look_for_late(struct loop *l, uint64_t now)
{
	struct np_worker *w = l->w;

	l->look_ns = now + w->patience_ns / 8;
	for (uint32_t i = 0; i < w->conns && l->live > 0; i++) {
		struct np_conn *c = &w->conn[i];

		/* Some may have been sent since `now`. */
		if (c->need == NP_RECV && now >= c->since_ns + w->patience_ns) {
			c->need = w->steps->failed(w, c, NP_RECV, EINTR);
			advance(l, c);
		}
	}
}

/* Milliseconds until something is to be done that no event tells of; -1: nothing is. */
static int
time_left(const struct loop *l, uint64_t now)
{
	uint64_t next = l->due_ns != 0 ? l->due_ns : UINT64_MAX;

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
	} else if (c != NULL && l->hears_end && (event->events & EPOLLRDHUP) != 0) {
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
	bool timed = l->due_ns != 0 || l->w->patience_ns > 0 || np_ramp_due(l->w) != UINT64_MAX;
	uint64_t now = timed ? np_now() : 0;
	int n = epoll_wait(l->fd, events, BATCH, time_left(l, now));

	for (int i = 0; i < n && l->live > 0; i++) {
		take_event(l, &events[i]);
		if (l->coming_fd >= 0) {
			keep_ramp(l);
		}
	}
	if (!timed) {
		return;
	}
	if (n <= 0 && l->coming_fd >= 0) {
		keep_ramp(l);
	}
	now = np_now();
	if (l->due_ns != 0 && now >= l->due_ns) {
		resume(l, now);
	}
	if (l->w->patience_ns > 0 && now >= l->look_ns) {
		look_for_late(l, now);
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
	np_sock_unblock(c->fd);
	if ((c->need & NP_REST) != 0) {
		wait_for(l, c, EPOLLONESHOT);
	} else if (c->need == NP_SEND && l->w->steps->arrived != NULL) {
		wait_for(l, c, EPOLLIN); /* for the response: its turn comes at once */
	} else {
		wait_for(l, c, events_of(l, c));
	}
}

/* What a connection needs when the window opens. */
static enum np_need
first_need(const struct np_worker *w, uint32_t number)
{
	const struct np_plan *p = w->run->plan;
	enum np_need first = np_io_first_need(w, number);
	bool rests = p->role == NP_LEAD && w->load.burst > 0 && first != NP_OVER;

	if (p->ramp > 0) {
		return p->active ? NP_CONNECT : NP_OPEN;
	}
	return rests ? first | NP_REST : first;
}

/* All that is asked of the kernel, as it is before the first turn. */
static int
begin(struct loop *l)
{
	struct np_worker *w = l->w;
	bool paced = l->begins != NP_OVER && w->load.burst > 0;
	int rc = add(l, w->stop.wake_fd, EPOLLIN, NULL);

	begin_coming(l);
	if (l->begins != NP_OPEN && (w->steps->open != NULL || w->run->plan->ramp > 0) &&
	    w->run->end.listen_fd >= 0) {
		np_sock_unblock(w->run->end.listen_fd);
	}
	/* Of those that wait in a line the first one is the last to join. */
	for (uint32_t i = w->conns; i-- > 0 && rc == 0 && w->error == 0;) {
		if (!w->goes_on) {
			w->conn[i].need = first_need(w, i);
		}
		begin_one(l, &w->conn[i]);
	}
	l->due_ns = paced ? 1 : 0; /* the first burst is */
	return rc;
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
}

/* The controller can't watch connections that come while it waits. */
static bool
hears_end(const struct np_worker *w)
{
	const struct np_run *run = w->run;

	return run->plan->ramp > 0 && !run->plan->active && run->side->ends_on_hangup;
}

static int
epoll_run(struct np_worker *w)
{
	struct loop l = { .w = w,
			  .fd = epoll_create1(EPOLL_CLOEXEC),
			  .out = w->send_ring.slots,
			  .in = w->recv_ring.slots,
			  .look_ns = np_now() + w->patience_ns / 8,
			  .begins = w->run->plan->role == NP_LEAD ? w->steps->first : NP_OVER,
			  .to_read = to_read(w),
			  .hears_end = hears_end(w),
			  .coming_fd = -1,
			  .free = (uint32_t)NONE };
	int rc = l.fd >= 0 ? begin(&l) : -errno;

	if (rc == 0) {
		start(&l);
	}
	while (rc == 0 && l.live > 0 && !np_stopped(&w->stop)) {
		turn(&l);
		if (l.ramp_ends) {
			end_ramp(&l);
		}
		if (np_sampler_is_asked(&w->sampler)) {
			np_sampler_answer(w);
		}
	}
	end_coming(&l);
	if (l.fd >= 0) {
		close(l.fd);
	}
	return rc != 0 ? rc : -w->error;
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
	.run = epoll_run,
};
