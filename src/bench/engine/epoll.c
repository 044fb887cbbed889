/*
 * The engine `epoll`: many connections, one call each when the kernel is ready for it
 * (epoll(7), level-triggered). In steady state a transaction costs a receive, a send and its share
 * of a wait; interest is changed only where a send falls short.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/engine/engine.h"
#include "bench/engine/io.h"
#include "bench/run.h"

enum {
	BATCH = 256, /* events of one wait */
	TURN = 8     /* calls in a row for one connection, before others have theirs */
};

struct loop {
	struct np_worker *w;
	int fd;
	uint32_t live; /* connections that are not over */
	const struct np_slot *out, *in;
	bool holds;       /* sends are held back */
	uint64_t held_ns; /* since when they are */
	uint64_t due_ns;  /* when some of those held back may begin; 0: none is held back */
	uint32_t next;    /* whose turn it is then */
	uint64_t look_ns; /* when connections are looked at for those that wait too long */
};

static int
add(const struct loop *l, int fd, uint32_t events, void *of)
{
	struct epoll_event ev = { .events = events, .data.ptr = of };

	return epoll_ctl(l->fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

static void
wait_for(const struct loop *l, struct np_conn *c, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = c };

	if (c->waits_for != events) {
		c->waits_for = events;
		epoll_ctl(l->fd, EPOLL_CTL_MOD, c->fd, &ev);
	}
}

/* The far end of all of a leader's connections is one test: its count is reached, or it broke. */
static bool
ends_all(const struct np_worker *w)
{
	const struct np_plan *p = w->run->plan;

	return w->error != 0 ||
	       (p->role == NP_LEAD &&
		(!p->pattern->transactions || np_seen(&w->count->transactions) >= w->budget));
}

static void
end_one(struct loop *l, struct np_conn *c)
{
	epoll_ctl(l->fd, EPOLL_CTL_DEL, c->fd, NULL);
	l->live--;
	if (ends_all(l->w)) {
		l->live = 0;
	}
}

/* A burst is over: nothing is sent before the next one is due. Who receives waits with all. */
static void
rest(struct loop *l, struct np_conn *c)
{
	struct np_worker *w = l->w;
	uint64_t now, due;

	if ((c->need & ~(unsigned)NP_REST) != NP_SEND) {
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
	if (c->need != NP_SEND || !l->holds) {
		return false;
	}
	c->need |= NP_REST;
	return true;
}

/* One call. Returns false when the kernel, or the far end, is to be waited for. */
static bool
one_call(struct loop *l, struct np_conn *c)
{
	struct np_worker *w = l->w;
	enum np_need need = c->need;
	ssize_t n;

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
	c->need = np_io_other(w, c, need, (need & NP_SEND) != 0 ? l->out : l->in);
	return c->need != NP_RECV;
}

/* As many calls as can be made now, and are this connection's turn. */
static void
advance(struct loop *l, struct np_conn *c)
{
	for (int calls = 0; calls < TURN && c->need != NP_OVER; calls++) {
		if (is_held(l, c)) {
			/* A far end that has closed is told of all the time, but for this. */
			wait_for(l, c, EPOLLONESHOT);
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
	wait_for(l, c, (c->need & NP_SEND) != 0 ? EPOLLOUT : EPOLLIN);
}

/*
 * A burst may begin: so many of those that were held back, each in its turn. The wait is no part of
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

		if (c->need == NP_RECV && now - c->since_ns >= w->patience_ns) {
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
	if (next == UINT64_MAX) {
		return -1;
	}
	return next <= now ? 0 : (int)((next - now + NP_MSEC - 1) / NP_MSEC);
}

static void
turn(struct loop *l)
{
	struct epoll_event events[BATCH];
	bool timed = l->due_ns != 0 || l->w->patience_ns > 0;
	uint64_t now = timed ? np_now() : 0;
	int n = epoll_wait(l->fd, events, BATCH, time_left(l, now));

	for (int i = 0; i < n && l->live > 0; i++) {
		struct np_conn *c = events[i].data.ptr;

		if (c != NULL && c->need != NP_OVER) {
			advance(l, c);
		}
	}
	if (!timed) {
		return;
	}
	now = np_now();
	if (l->due_ns != 0 && now >= l->due_ns) {
		resume(l, now);
	}
	if (l->w->patience_ns > 0 && now >= l->look_ns) {
		look_for_late(l, now);
	}
}

/* What is to be sent at once is not waited for. */
static int
add_one(struct loop *l, struct np_conn *c)
{
	bool transmits = (c->need & NP_SEND) != 0 && l->w->steps->arrived == NULL;

	np_sock_unblock(c->fd);
	c->waits_for = (c->need & NP_REST) != 0                      ? EPOLLONESHOT
		       : transmits || c->need == (NP_SEND | NP_PART) ? EPOLLOUT
								     : EPOLLIN;
	l->live++;
	return add(l, c->fd, c->waits_for, c);
}

/* The connections, as they are before the first turn. */
static int
begin(struct loop *l)
{
	struct np_worker *w = l->w;
	const struct np_plan *p = w->run->plan;
	bool paced = w->steps->first == NP_SEND && w->load.burst > 0;
	/* A count of less than one a connection is for some of them. */
	bool few = p->role == NP_LEAD && p->pattern->transactions && w->budget < w->conns;
	int rc = add(l, w->stop.wake_fd, EPOLLIN, NULL);

	for (uint32_t i = 0; i < w->conns && rc == 0; i++) {
		struct np_conn *c = &w->conn[i];

		if (!w->goes_on) {
			c->need = few && i >= w->budget ? NP_OVER
				  : paced               ? NP_SEND | NP_REST
							: w->steps->first;
		}
		if (c->need != NP_OVER) {
			rc = add_one(l, c);
		}
	}
	l->due_ns = paced ? 1 : 0; /* the first burst is */
	return rc;
}

static int
epoll_run(struct np_worker *w)
{
	struct loop l = { .w = w,
			  .fd = epoll_create1(EPOLL_CLOEXEC),
			  .out = w->send_ring.slots,
			  .in = w->recv_ring.slots,
			  .look_ns = np_now() + w->patience_ns / 8 };
	int rc = l.fd >= 0 ? begin(&l) : -errno;

	for (uint32_t i = 0; i < w->conns && rc == 0 && l.live > 0 && !np_stopped(&w->stop); i++) {
		if (w->conn[i].need == NP_SEND) {
			advance(&l, &w->conn[i]);
		}
	}
	while (rc == 0 && l.live > 0 && !np_stopped(&w->stop)) {
		turn(&l);
		if (np_sampler_is_asked(&w->sampler)) {
			np_sampler_answer(w);
		}
	}
	if (l.fd >= 0) {
		close(l.fd);
	}
	return rc != 0 ? rc : -w->error;
}

static const char *
why_not(const struct np_plan *p)
{
	if (p->pattern->connection_test || p->pattern->probe) {
		return "it makes connections of their own";
	}
	return p->transport->header > 0 ? "its socket is lent" : NULL;
}

const struct np_engine np_engine_epoll = {
	.name = "epoll",
	.help = "waits for events, for many connections a worker",
	.why_not = why_not,
	.run = epoll_run,
};
