/*
 * The engine `epoll`: many connections, one call each when the kernel is ready (epoll(7),
 * level-triggered). In steady state a transaction costs a receive, a send and its share of a wait;
 * registered events change only when a send falls short. In connection tests each call is tried at
 * once, and events are registered only if it would block. The engine `spin` never waits.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "base/clock.h"
#include "base/fds.h"
#include "base/units.h"
#include "bench/engine/calls.h"
#include "bench/engine/engine.h"
#include "bench/engine/io.h"
#include "bench/ids.h"
#include "bench/ramp.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"

enum {
	BATCH = 256,                 /* events of one wait, and accepts in a row */
	CALLS_A_TURN = 8,            /* calls in a row for one connection */
	FITS = 4096,                 /* bytes of a response that fit into any socket buffer */
	NONE = -1,                   /* no connection */
	CONNECTING = 64,             /* connected sockets of a ramp handled in one check */
	CONNECTING_CHECK_NS = 50000, /* between two checks; each is a system call */
	ROUNDS = 64,   /* turns of all connections between two clock reads of `spin` */
	IDLE_MS = 1000 /* idle time before `spin` sleeps at a passive end */
};

struct loop {
	struct np_worker *w;
	int fd;                         /* the epoll set */
	uint32_t live;                  /* connections that are not done; 0 ends the loop */
	uint32_t open;                  /* in connection tests: open ones */
	const struct np_slot *out, *in; /* next buffer to send from, to receive into */
	uint32_t next;                  /* next connection to ask the load (np_io_next_due()) */
	uint64_t timeout_check_ns;      /* next check for requests that timed out */

	enum np_need leads_with; /* first need of a leader; NP_OVER: it follows */
	uint32_t read_event;     /* EPOLLIN, or EPOLLRDHUP to wait for a response and the close */
	bool has_closed;         /* the event being handled is the far end's close */
	bool watches_end;        /* a sender that watches for the far end's close itself */
	/* Accepted connections: */
	bool listens;      /* the epoll set has the listener */
	bool accepted_all; /* the last accept found none */
	uint32_t free;     /* first unused connection, see np_conn.next_free; NONE */
	bool ramp_ends;    /* the far end ended the test: call end_ramp() */
	/* Connecting sockets of a ramp, in a second epoll set: */
	int connecting_fd;              /* that set, a member of the first one; -1: none */
	uint32_t connecting;            /* how many */
	uint64_t connecting_checked_ns; /* last check */
	/* Open loop: */
	int timer_fd;      /* timer for the next operation; -1: none */
	uint64_t timer_ns; /* when it expires */
	bool due_soon;     /* the next operation is due too soon for a sleep */
	bool drains;       /* the test is over: the last answers are awaited */
	/* `spin`: */
	bool spins;
	uint32_t rounds;   /* up to ROUNDS */
	uint64_t moved;    /* np_counters_activity() at the last check */
	uint64_t moved_ns; /* time of the last progress; 0: none yet */
};

/* epoll_ctl(2), tag as in handle_event(). If it fails, the loop ends with that error. */
static void
change_epoll(struct loop *l, int epoll_fd, int op, int fd, uint32_t events, void *tag)
{
	struct epoll_event ev = { .events = events, .data.ptr = tag };

	if (epoll_ctl(epoll_fd, op, fd, &ev) != 0) {
		l->w->error = errno;
		l->live = 0;
	}
}

/* Wait for these events of a connection. `spin` registers nothing. */
static void
wait_for(struct loop *l, struct np_conn *c, uint32_t events)
{
	int op = c->waits_for == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (c->waits_for != events && !l->spins) {
		c->waits_for = events;
		change_epoll(l, l->fd, op, c->fd, events, c);
	}
}

/* A connection is done: take it out of the epoll set. */
static void
remove_conn(struct loop *l, struct np_conn *c)
{
	if (c->waits_for != 0) {
		epoll_ctl(l->fd, EPOLL_CTL_DEL, c->fd, NULL);
		c->waits_for = 0;
	}
	c->need = NP_OVER;
	l->live--;
}

/* A connection is done, and in some tests all others with it (np_io_ends_all()). */
static void
end_conn(struct loop *l, struct np_conn *c)
{
	remove_conn(l, c);
	l->ramp_ends = l->ramp_ends || c->is_up; /* the end of one ends the test */
	if (np_io_ends_all(l->w)) {
		l->live = 0;
	}
}

/*
 * True: the connection waits until the load allows its next operation (NP_HELD): a leader's for
 * begin_due(), or with `spin` for its turn; a follower sleeps here. calls: made in this turn.
 */
static bool
hold_back(struct loop *l, struct np_conn *c, int calls)
{
	struct np_load *load = &l->w->load;

	if ((c->need & NP_HELD) == 0) {
		return false;
	}
	/* The load allows more, but not in a row (np_paced()): others come first. */
	if (l->leads_with != NP_OVER && calls > 0 && load->allowed > 0 && l->w->conns > 1) {
		if (!l->spins) {
			np_load_block(load, np_now()); /* begin_due() will let it go on */
		}
		return true;
	}
	if (l->leads_with != NP_OVER) {
		return (!l->spins && l->w->load.holds) || !np_io_begins(l->w, c);
	}
	c->need = np_io_wait_held(l->w, c, c->need);
	return (c->need & NP_HELD) != 0;
}

/*
 * Make or accept the next connection: by steps->open, or of a ramp from its listener. False: call
 * again once connected. Only a leader that sends no request waits: to half-close (-N), to read the
 * first one's MSS, or TCP_INFO for evidence. True: go on, also after errors.
 */
static bool
open_conn(struct loop *l, struct np_conn *c)
{
	struct np_worker *w = l->w;
	bool is_new = c->fd < 0;

	if (is_new) {
		int fd;

		if (l->leads_with == NP_OPEN &&
		    np_get(&w->count->transactions) + l->open >= w->budget) {
			c->need = NP_OVER; /* the open ones use up the budget */
			return true;
		}
		if (w->steps->open != NULL) {
			fd = w->steps->open(w, SOCK_NONBLOCK);
		} else if ((fd = np_endpoint_take(w->run, SOCK_NONBLOCK)) < 0) {
			/* A ramp's. EINVAL: another worker has shut down the listener, as the test
			 * is over. ECONNABORTED: try again. */
			fd = errno == EINVAL ? -EAGAIN : errno == ECONNABORTED ? -EINTR : -errno;
		}
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
	if (is_new && l->leads_with == NP_OPEN && w->send_size == 0 &&
	    (c->transactions == 0 || w->run->plan->no_control || w->run->plan->sequence)) {
		return false;
	}
	if (w->steps->open == NULL) { /* accepted for a ramp */
		np_ramp_up(w, c);
	} else {
		c->need = w->steps->opened(w, c);
	}
	return true;
}

/* A call of a connection test other than sending and receiving. True: try the next call at once. */
static bool
connection_call(struct loop *l, struct np_conn *c)
{
	switch ((int)c->need) {
	case NP_OPEN:
		return open_conn(l, c);
	case NP_SHUT:
		shutdown(c->fd, SHUT_WR); /* then wait for the far end's close to arrive */
		c->need = NP_AWAIT;
		return false;
	case NP_AWAIT: /* has_closed saves the call that would find out */
		c->need = l->has_closed ? NP_CLOSE : np_io_await_close(l->w, c);
		return true;
	default:
		np_sys_close(c->fd); /* NP_CLOSE; it also removes it from the epoll set */
		c->fd = -1;
		c->waits_for = 0;
		l->open--;
		l->has_closed = false;
		c->need = l->w->steps->closed(l->w, c);
		return !l->w->load.is_open; /* in an open loop the next one has a schedule */
	}
}

/* Resume a send that was set aside (np_io_put_aside()), unless half a response is received. */
static void
resume_send(struct np_conn *c)
{
	if (!c->is_aside || (c->need & NP_PART) != 0) {
		return;
	}
	c->is_aside = false;
	if (c->need != NP_OVER) {
		/* NP_HELD: the load may delay this message, unless part of it was sent. */
		c->need = NP_SEND | (c->aside_part > 0 ? (unsigned)NP_PART : c->need & NP_HELD);
		c->part = c->aside_part;
		c->since_ns = c->aside_since_ns;
	}
}

/*
 * The last call would block. With `spin` or an open loop, a connection that can't send receives
 * instead, if responses are due. One that can't receive resumes the send set aside, if any, in its
 * next turn, unless half a response is here. Other loops wait for events. True: receive now.
 */
static __attribute__((noinline)) bool
switch_call(const struct loop *l, struct np_conn *c)
{
	c->need &= ~(unsigned)NP_BLOCKED;
	if (!l->spins && !l->w->load.is_open) {
		return false;
	}
	l->w->engine.count[NP_E_BLOCKED]++;
	if ((c->need & NP_SEND) != 0) { /* no other need with that bit can block */
		/* Receive meanwhile: a peer that can't send its responses reads no requests. */
		bool may_receive =
		    (l->w->codec & NP_C_MANY) != 0 && c->ids->in_flight > 0 && !c->is_aside;

		if (may_receive) {
			np_io_put_aside(c, 0);
		}
		return may_receive;
	}
	resume_send(c);
	return false;
}

/* Serve a need of np_io_other(). True: try the next call at once. */
static __attribute__((noinline)) bool
rare_call(struct loop *l, struct np_conn *c)
{
	enum np_need need = c->need;

	c->need = np_io_other(l->w, c, need, (need & NP_SEND) != 0 ? l->out : l->in);
	if ((need & NP_RECV) != 0 && (c->need & NP_BLOCKED) == 0) {
		resume_send(c);
	}
	return c->need != NP_RECV; /* a response takes a while */
}

/* One call. False: wait for an event, as another call would most likely block. */
static bool
one_call(struct loop *l, struct np_conn *c)
{
	struct np_worker *w = l->w;
	enum np_need need = c->need;
	ssize_t n;

	if (w->calls != NULL && (need == NP_SEND || need == NP_RECV)) {
		c->need = need == NP_SEND ? w->calls->send(w, c) : w->calls->recv(w, c);
		return need == NP_RECV || c->need != NP_RECV; /* receives set NP_BLOCKED */
	}
	if (need == NP_SEND) {
		n = np_io_send(w, c, l->out->buf);
		l->out = l->out->next;
		c->need = np_io_sent(w, c, w->steps, n);
		return c->need != NP_RECV; /* a response takes a while */
	}
	if (need == NP_RECV) {
		n = np_io_recv(w, c, l->in->buf, w->steps->answers);
		c->need = np_io_received(w, c, w->steps, l->in->buf, n);
		l->in = l->in->next;
		if (__builtin_expect(c->is_aside, 0) && n >= 0) {
			resume_send(c);
		}
		/* Fewer bytes than recv_size: the socket is empty. */
		return c->need != NP_RECV || n == (ssize_t)w->recv_size;
	}
	return need >= NP_OPEN && need <= NP_CLOSE ? connection_call(l, c) : rare_call(l, c);
}

/* The events to wait for before a connection's next call. */
static uint32_t
events_of(const struct loop *l, const struct np_conn *c)
{
	if (c->waits_release) { /* the kernel reports a release in the error queue */
		return l->watches_end ? EPOLLERR | EPOLLRDHUP : EPOLLERR;
	}
	switch ((int)(c->need & ~(unsigned)NP_PART)) {
	case NP_RECV:
	case NP_AWAIT:
		return l->read_event;
	default: /* it sends, or is connecting */
		if (l->w->load.is_open) {
			return EPOLLIN | EPOLLOUT; /* for either, see switch_call() */
		}
		return l->watches_end ? EPOLLOUT | EPOLLRDHUP : EPOLLOUT;
	}
}

/* Watch the listener, or not. EPOLLEXCLUSIVE wakes one worker; such an entry can't be changed. */
static void
listen_to(struct loop *l, bool wanted)
{
	int op = wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL;

	if (l->listens != wanted) {
		l->listens = wanted;
		change_epoll(l, l->fd, op, l->w->run->end.listen_fd, EPOLLIN | EPOLLEXCLUSIVE, l);
	}
}

/* A free slot waits on the listener. */
static void
wait_for_accept(struct loop *l, struct np_conn *c)
{
	c->next_free = l->free;
	l->free = (uint32_t)(c - l->w->conn);
	listen_to(l, true);
}

/* May a leader make this closed connection again at once? An open loop has a schedule. */
static bool
may_reconnect(const struct loop *l, const struct np_conn *c)
{
	return c->fd < 0 && l->leads_with == NP_OPEN && !l->w->load.is_open &&
	       !np_stopped(&l->w->stop);
}

static bool
is_turn_over(const struct loop *l, const struct np_conn *c, int calls)
{
	const struct np_worker *w = l->w;

	if (calls >= CALLS_A_TURN) {
		/* The next receive overwrites the source address, so answer the datagram first. */
		bool owes_answer = c->need == NP_SEND && w->steps->answers && w->from != NULL;

		return !may_reconnect(l, c) && (!owes_answer || np_stopped(&w->stop));
	}
	/* Accept only when epoll has reported a connection. */
	return calls > 0 && c->need == NP_OPEN && c->fd < 0 && l->leads_with != NP_OPEN;
}

/* Make calls for a connection until one would block, its turn is over or it is done. */
static void
advance(struct loop *l, struct np_conn *c)
{
	for (int calls = 0; c->need != NP_OVER && !is_turn_over(l, c, calls); calls++) {
		if (hold_back(l, c, calls)) {
			/* No events but a close or an error, and those once, not over and over. */
			if (c->fd >= 0) {
				wait_for(l, c, EPOLLONESHOT);
			}
			return;
		}
		bool may_go_on = one_call(l, c);

		if ((c->need & NP_BLOCKED) != 0) {
			may_go_on = switch_call(l, c);
		}
		if (!may_go_on) {
			break;
		}
	}
	if (c->need == NP_OVER) {
		end_conn(l, c);
		return;
	}
	if (l->spins) {
		return;
	}
	if (c->fd >= 0) {
		wait_for(l, c, events_of(l, c));
	} else if (l->leads_with != NP_OPEN) {
		wait_for_accept(l, c);
	}
}

/* Accept waiting connections while slots are free: all workers together have enough. */
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
		listen_to(l, false); /* the kernel then wakes a worker with free slots */
	}
}

/* No connection of the ramp is connecting, or none matters any more: close their epoll set. */
static void
close_connecting(struct loop *l)
{
	np_fds_close(l->connecting_fd);
	l->connecting_fd = -1;
	l->connecting = 0;
}

/* The far end has ended the test: accept what is queued, then no more. */
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
	is_last = l->accepted_all || w->run->workers == 1; /* nothing is left for others */
	close_connecting(l);
	for (uint32_t i = 0; i < w->conns && l->live > 0; i++) {
		struct np_conn *c = &w->conn[i];

		if (c->need == NP_OPEN || c->need == NP_CONNECT || c->need == NP_CONNECTING) {
			remove_conn(l, c);
		}
	}
	if (w->ramp != NULL) {
		w->ramp->begun = w->conns; /* so that np_ramp_begin() begins no more */
	}
	l->free = (uint32_t)NONE;
	if (w->run->end.listen_fd >= 0) {
		listen_to(l, false);
		if (is_last) {
			shutdown(w->run->end.listen_fd, SHUT_RDWR); /* tells the other workers */
		}
	}
}

/*
 * Start the connections that are due, and handle those that are up. Called after each event too, so
 * that traffic delays neither the rate of the ramp nor the times measured to connect.
 */
static void
advance_ramp(struct loop *l)
{
	struct epoll_event events[CONNECTING];
	uint64_t now = np_now();
	struct np_conn *c;
	int n = 0;

	while (l->live > 0 && (c = np_ramp_begin(l->w, now)) != NULL) {
		if (c->need == NP_OVER) {
			remove_conn(l, c);
		} else {
			l->connecting++;
			change_epoll(l, l->connecting_fd, EPOLL_CTL_ADD, c->fd, EPOLLOUT, c);
		}
	}
	if (l->connecting > 0 && now - l->connecting_checked_ns >= CONNECTING_CHECK_NS) {
		l->connecting_checked_ns = now;
		n = epoll_wait(l->connecting_fd, events, CONNECTING, 0);
	}
	for (int i = 0; i < n && l->live > 0; i++) {
		c = events[i].data.ptr;
		epoll_ctl(l->connecting_fd, EPOLL_CTL_DEL, c->fd, NULL);
		l->connecting--;
		np_ramp_connect_done(l->w, c);
		if (c->need == NP_OVER) {
			remove_conn(l, c);
		} else {
			advance(l, c);
		}
	}
	if (l->connecting == 0 && np_ramp_due(l->w) == UINT64_MAX) {
		close_connecting(l); /* all are done: turn() need not call this any more */
	}
}

/* Begin what is due. Then set an open loop's timerfd(2), more exact than epoll_wait(2) is. */
static void
begin_due(struct loop *l)
{
	struct np_worker *w = l->w;
	struct itimerspec at = { .it_value.tv_sec = 0 };
	struct np_conn *c;
	uint64_t wake;

	for (uint32_t begun = 0;
	     l->live > 0 && (c = np_io_next_due(w, &l->next, &begun)) != NULL;) {
		advance(l, c);
	}
	if (!w->load.is_open) {
		return;
	}
	wake = np_load_wake(w);
	l->due_soon = wake == 0;
	if (l->timer_fd >= 0 && !l->due_soon && wake != l->timer_ns) {
		l->timer_ns = wake;
		wake = wake != UINT64_MAX ? wake : 0; /* 0 disarms the timer */
		at.it_value.tv_sec = (time_t)(wake / NP_SEC);
		at.it_value.tv_nsec = (long)(wake % NP_SEC);
		timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
	}
}

/* Give up requests that timed out (np_steps.failed with EINTR). Called 8 times in that time. */
static void
expire_requests(struct loop *l, uint64_t now)
{
	struct np_worker *w = l->w;

	l->timeout_check_ns = now + w->timeout_ns / 8;
	for (uint32_t i = 0; i < w->conns && l->live > 0; i++) {
		struct np_conn *c = &w->conn[i];

		/* In an open loop the step knows when each request was sent. A sum, not a
		 * difference: since_ns may be later than `now`. */
		if (c->need == NP_RECV && !c->is_aside &&
		    (w->load.is_open || now >= c->since_ns + w->timeout_ns)) {
			c->need = w->steps->failed(w, c, NP_RECV, EINTR);
			advance(l, c);
		}
	}
}

/* Time-out for epoll_wait(2): milliseconds until something is due; -1: nothing is. */
static int
wait_ms(const struct loop *l, uint64_t now)
{
	uint64_t next = np_ramp_due(l->w);

	next = l->w->load.holds ? np_min(next, l->w->load.due_ns) : next;
	next = l->w->timeout_ns > 0 ? np_min(next, l->timeout_check_ns) : next;
	return next == UINT64_MAX ? -1 : (int)((np_excess(next, now) + NP_MSEC - 1) / NP_MSEC);
}

/* data.ptr is the connection; l: the listener; &l->connecting_fd: that set; NULL: a wake-up. */
static void
handle_event(struct loop *l, const struct epoll_event *event)
{
	struct np_conn *c = event->data.ptr;

	if (event->data.ptr == l) {
		accept_some(l);
		/* Another worker has shut it down, at the end of a ramp. */
		l->ramp_ends = l->ramp_ends || (event->events & EPOLLHUP) != 0;
	} else if (event->data.ptr == &l->connecting_fd) {
		l->connecting_checked_ns = 0; /* advance_ramp() comes next, and checks */
	} else if (c != NULL && l->watches_end && (event->events & EPOLLRDHUP) != 0) {
		l->w->hung_up = true;
		end_conn(l, c);
	} else if (c != NULL && c->need != NP_OVER) {
		/* After an error (EPOLLERR), only a call gets its errno. */
		l->has_closed = (event->events & (EPOLLRDHUP | EPOLLERR)) == EPOLLRDHUP;
		advance(l, c);
		l->has_closed = false;
	}
}

/* Wait once, and handle the events; then what is due by time. */
static void
turn(struct loop *l)
{
	struct epoll_event events[BATCH];
	bool timed = l->w->load.holds || l->w->timeout_ns > 0 || np_ramp_due(l->w) != UINT64_MAX;
	uint64_t now = timed ? np_now() : 0;
	/* While it drains, run() checks every millisecond whether answers are still to come. */
	int n = epoll_wait(l->fd, events, BATCH, l->due_soon ? 0 : l->drains ? 1 : wait_ms(l, now));

	for (int i = 0; i < n && l->live > 0 && (l->drains || !np_stopped(&l->w->stop)); i++) {
		handle_event(l, &events[i]);
		if (l->connecting_fd >= 0) {
			advance_ramp(l);
		}
	}
	if (l->w->load.is_open) {
		begin_due(l);
	}
	if (!timed) {
		return;
	}
	if (n <= 0 && l->connecting_fd >= 0) { /* else called after each event */
		advance_ramp(l);
	}
	now = np_now();
	if (l->w->load.holds && now >= l->w->load.due_ns) {
		begin_due(l);
	}
	/* While it drains, np_open_settle() will count what is missing. */
	if (l->w->timeout_ns > 0 && now >= l->timeout_check_ns && !l->drains) {
		expire_requests(l, now);
	}
}

/*
 * `spin` is idle: release the CPU. Its connections are in no epoll set, so all are added for this
 * wait. It ends up to a millisecond early; the loop spins until the next operation is due.
 */
static void
sleep_idle(struct loop *l)
{
	struct np_worker *w = l->w;
	int due_ms = wait_ms(l, np_now());
	struct epoll_event event;

	for (uint32_t i = 0; i < w->conns && l->live > 0; i++) {
		struct np_conn *c = &w->conn[i];
		bool is_held = (c->need & NP_HELD) != 0; /* the load delays it: errors only */

		if (c->need != NP_OVER) {
			change_epoll(l, l->fd, EPOLL_CTL_ADD, c->fd,
				     is_held ? EPOLLONESHOT : events_of(l, c), c);
		}
	}
	epoll_wait(l->fd, &event, 1, due_ms > 0 ? due_ms - 1 : due_ms);
	NP_EACH_CONN (c, w) {
		epoll_ctl(l->fd, EPOLL_CTL_DEL, c->fd, NULL); /* fails for those done */
	}
	l->moved_ns = np_now(); /* spin for IDLE_MS again */
}

/* A round of `spin`. An idle passive end sleeps: no client can hold its CPUs without sending. */
static void
spin(struct loop *l)
{
	struct np_worker *w = l->w;
	bool is_passive = !w->run->plan->active;
	uint64_t now, moved;

	for (uint32_t i = 0; i < w->conns && l->live > 0 && !np_stopped(&w->stop); i++) {
		if (w->conn[i].need != NP_OVER) {
			advance(l, &w->conn[i]);
		}
	}
	if (w->load.is_open) {
		begin_due(l);
	}
	if (++l->rounds < ROUNDS) {
		return;
	}
	/* Checks that need the time, so not in every round. */
	l->rounds = 0;
	if (!is_passive && w->timeout_ns == 0) {
		return;
	}
	now = np_now();
	moved = np_counters_activity(w->count);
	if (l->moved != moved) {
		l->moved = moved;
		l->moved_ns = now;
	} else if (is_passive && now - l->moved_ns >= IDLE_MS * NP_MSEC && l->live > 0) {
		sleep_idle(l);
	}
	if (w->timeout_ns > 0 && now >= l->timeout_check_ns) {
		expire_requests(l, now);
	}
}

/* Count a connection as live, if it is, and register its first events. */
static void
begin_conn(struct loop *l, struct np_conn *c)
{
	c->waits_for = 0;
	l->live += c->need != NP_OVER;
	if (c->need == NP_CONNECT) {
		return; /* np_ramp_begin() starts it when it is due */
	}
	l->open += c->fd >= 0; /* after a warm-up some are */
	if (c->fd < 0 && l->leads_with != NP_OPEN && c->need != NP_OVER) {
		wait_for_accept(l, c);
	}
	if (c->fd < 0 || c->need == NP_OVER) {
		return;
	}
	np_sock_block(c->fd, false);
	if ((c->need & NP_HELD) != 0) {
		wait_for(l, c, EPOLLONESHOT);
	} else if (c->need == NP_SEND && l->w->steps->arrived != NULL) {
		wait_for(l, c, EPOLLIN); /* run() sends at once, then a response comes */
	} else {
		wait_for(l, c, events_of(l, c));
	}
}

/* Make an epoll set. Returns its descriptor, or -1 with w->error. */
static int
new_epoll(struct loop *l)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0) {
		l->w->error = errno;
	}
	return fd;
}

/* Set up the epoll sets, the timer and all connections. On failure w->error is set, and live 0. */
static void
begin(struct loop *l)
{
	struct np_worker *w = l->w;

	l->fd = new_epoll(l);
	l->connecting_fd = w->ramp != NULL ? new_epoll(l) : -1;
	if (w->error == 0 && !l->drains) { /* while it drains, it would wake each wait */
		change_epoll(l, l->fd, EPOLL_CTL_ADD, w->stop.wake_fd, EPOLLIN, NULL);
	}
	if (w->error == 0 && l->connecting_fd >= 0) {
		change_epoll(l, l->fd, EPOLL_CTL_ADD, l->connecting_fd, EPOLLIN, &l->connecting_fd);
	}
	if (w->error == 0 && w->load.is_open && !l->spins) {
		l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
		if (l->timer_fd < 0) {
			w->error = errno;
		} else {
			change_epoll(l, l->fd, EPOLL_CTL_ADD, l->timer_fd, EPOLLIN, NULL);
		}
	}
	if (l->leads_with != NP_OPEN && (w->steps->open != NULL || w->run->plan->ramp > 0) &&
	    w->run->end.listen_fd >= 0) {
		np_sock_block(w->run->end.listen_fd, false);
	}
	/* Backwards, so that the list of free slots begins with the first. */
	for (uint32_t i = w->conns; i-- > 0 && w->error == 0;) {
		if (!w->goes_on) {
			w->conn[i].need = w->run->plan->ramp == 0 ? np_io_first_need(w, i)
					  : w->run->plan->active  ? NP_CONNECT
								  : NP_OPEN;
		}
		begin_conn(l, &w->conn[i]);
	}
	l->live = w->error == 0 ? l->live : 0;
}

/* np_engine.run: until the stop or, if the load drains, the last responses. */
static int
run(struct np_worker *w)
{
	const struct np_run *run = w->run;
	bool drains = w->load.drains;
	/* A sender ends when the far end closes. The controller watches for that, except on the
	 * connections of a ramp, which are accepted during the test. */
	bool watches_end = run->plan->ramp > 0 && !run->plan->active && run->side->ends_on_hangup;
	/*
	 * A leader of a connection test waits for the close: one wake-up then serves response and
	 * close, if the response fits into the socket buffer. With -N our close comes first.
	 */
	bool gets_close = run->plan->pattern->connection_test && run->plan->role == NP_LEAD &&
			  !run->plan->no_control && w->recv_size <= FITS &&
			  run->plan->near.sock.rcvbuf < 0;
	struct loop l = { .w = w,
			  .drains = drains,
			  .spins = run->engine->spins && !drains,
			  .moved_ns = w->goes_on ? np_now() : 0, /* 0: sleep first */
			  .out = w->send_ring.slots,
			  .in = w->recv_ring.slots,
			  .timeout_check_ns = np_now() + w->timeout_ns / 8,
			  .leads_with = w->run->plan->role == NP_LEAD ? w->steps->first : NP_OVER,
			  .read_event = gets_close ? EPOLLRDHUP : EPOLLIN,
			  .watches_end = watches_end,
			  .timer_fd = -1,
			  .free = (uint32_t)NONE };

	begin(&l);
	/* The first turns of connections that need not wait for an event. */
	for (uint32_t i = 0; i < w->conns && l.live > 0 && (drains || !np_stopped(&w->stop)); i++) {
		struct np_conn *c = &w->conn[i];

		if (c->need == NP_SEND || (c->need == NP_OPEN && may_reconnect(&l, c))) {
			advance(&l, c);
		}
	}
	begin_due(&l);
	while (l.live > 0 && (drains ? w->load.kind->waits(w) : !np_stopped(&w->stop))) {
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
	np_load_count_held(&w->load, np_now());
	close_connecting(&l);
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
