/*
 * The engine `uring`: requests are queued in a ring; one call per turn submits them and waits for
 * completions (io_uring(7)). A multishot request receives from a connection as long as it lasts,
 * into a ring of buffers; sends follow each step, several at once where steps allow it. Of byte
 * streams only the count is kept; datagrams get their step at once, or wait in their buffers.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench/codec.h"
#include "bench/engine/io.h"
#include "bench/engine/uring_ring.h"
#include "bench/run.h"

enum {
	CHAIN = 16,             /* most sends of one connection in the ring */
	SEND_BUFFERS = 1024,    /* most for the datagrams of all connections */
	BUFFER_MIN = 256,       /* bytes of a receive buffer: several short messages share one */
	BUFFER_MAX = 256 << 10, /* bytes: a longer message comes in parts */
	BUFFERS_MIN = 16,       /* receive buffers of a worker */
	BUFFERS_MAX = 1 << 14,  /* receive buffers of a worker */
	STREAM_BUFFERS = 64,    /* receive buffers of a worker in a stream */
	GROUP = 0,              /* number of the only group of receive buffers */
	PAGE = 4096
};

/* Kind of a completion, in the low bits of its user data; above them the connection. */
enum { RECEIVE, SEND, WAKE, CANCEL, KINDS = 4 };

/* What the engine knows of a connection. */
struct link {
	size_t unread;   /* bytes received that no step has seen */
	uint32_t chunks; /* completions that brought them */
	uint32_t owed;   /* responses that a follower has to send */
	uint32_t flying; /* sends in the ring */
	int error;       /* errno of a receive, for the steps; 0: none */
	bool armed;      /* a receive is in the ring */
	bool at_end;     /* end of data */
};

/* np_worker.engine.state. */
struct uring {
	struct np_worker *w;
	struct np_uring *taken; /* for this worker, by np_uring_take() */
	struct io_uring *ring;
	struct link *link;
	int *socket;        /* descriptors of the connections, then the one that wakes it to stop */
	uint32_t live;      /* connections that are not over */
	uint32_t in_flight; /* requests without a completion so far */
	uint32_t flying;    /* those of them that send */
	uint32_t chain;     /* most sends of a connection in a row */
	uint32_t next;      /* connection that begins when the load allows an operation */
	bool unbounded;     /* byte streams: messages have no bounds */
	bool leaving;       /* received bytes wait until the loop continues */

	struct io_uring_buf_ring *pool; /* of buffers that the kernel fills */
	char *shared; /* the buffer of all entries, if data are not read; NULL: recv_ring's */
	size_t buffer_size;
	uint32_t count;  /* buffers in the pool */
	uint32_t filled; /* of those, put back but not yet announced to the kernel */
};

/* --- requests --------------------------------------------------------------------------------- */

/* The ring failed: end the loop with that errno, and never use the ring again. */
static void
fail(struct uring *u, int error)
{
	if (u->w->error == 0) {
		u->w->error = error;
	}
	u->live = 0;
	u->taken->is_lost = true;
}

/* Submit requests; wait for `wait` completions, or until the load's next operation is due. */
static void
submit(struct uring *u, unsigned wait)
{
	uint64_t until = u->leaving || wait == 0 ? UINT64_MAX : np_load_wake(u->w);
	struct io_uring_cqe *first;
	int rc;

	if (u->filled > 0) {
		io_uring_buf_ring_advance(u->pool, (int)u->filled);
		u->filled = 0;
	}
	u->w->engine.count[NP_E_SUBMISSIONS]++;
	if (until != UINT64_MAX) {
		uint64_t left = np_excess(until, np_now());
		struct __kernel_timespec most = { .tv_sec = (int64_t)(left / NP_SEC),
						  .tv_nsec = (long long)(left % NP_SEC) };

		rc = io_uring_submit_and_wait_timeout(u->ring, &first, wait, &most, NULL);
	} else {
		rc = io_uring_submit_and_wait(u->ring, wait);
	}
	/* EAGAIN, EBUSY: no memory, or too many completions unread: the next turn tries again. */
	if (rc < 0 && rc != -EINTR && rc != -EAGAIN && rc != -EBUSY && rc != -ETIME) {
		fail(u, -rc);
	}
}

/* A free entry of the submission queue; if it is full, submit it first. NULL: the ring failed. */
static struct io_uring_sqe *
request(struct uring *u)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(u->ring);

	if (sqe == NULL) {
		submit(u, 0);
		sqe = io_uring_get_sqe(u->ring);
	}
	if (sqe == NULL) {
		fail(u, EBUSY);
		return NULL;
	}
	u->in_flight++;
	return sqe;
}

/* Name the connection and the kind of a request: its completion carries both. */
static void
label(struct io_uring_sqe *sqe, uint32_t conn, unsigned kind)
{
	io_uring_sqe_set_data64(sqe, (uint64_t)conn * KINDS + kind);
}

/* Have the ring receive from a connection until the data end, into buffers of the pool. */
static void
arm(struct uring *u, uint32_t conn)
{
	struct io_uring_sqe *sqe = request(u);

	if (sqe != NULL) {
		io_uring_prep_recv_multishot(sqe, (int)conn, NULL, 0, 0);
		sqe->flags = IOSQE_FIXED_FILE | IOSQE_BUFFER_SELECT;
		sqe->buf_group = GROUP;
		label(sqe, conn, RECEIVE);
		u->link[conn].armed = true;
	}
}

/* Queue sends of `count` messages, of which the first may be partly sent (c->part bytes). */
static void
put_sends(struct uring *u, struct np_conn *c, uint32_t conn, uint32_t count)
{
	struct np_worker *w = u->w;
	uint64_t number = c->number, now = (w->codec & NP_C_NUMBER) != 0 ? np_now() : 0;
	/* The contents of datagrams may differ, so each one in the ring has its own buffer. */
	uint32_t first = u->unbounded ? 0 : conn * u->chain;

	if (io_uring_sq_space_left(u->ring) < count) { /* a chain must not be split */
		submit(u, 0);
	}
	for (uint32_t i = 0; i < count; i++, number++) {
		struct io_uring_sqe *sqe = request(u);
		char *buf = w->send_ring.slots[(first + i) % w->send_ring.width].buf;
		size_t part = i == 0 ? c->part : 0;

		if (sqe == NULL) {
			return;
		}
		if (__builtin_expect(w->codec != 0, 0) && part == 0) {
			np_codec_prepare(w, buf, number, now);
		}
		io_uring_prep_send(sqe, (int)conn, buf + part, w->send_size - part,
				   MSG_NOSIGNAL | (u->unbounded ? MSG_WAITALL : 0));
		if (w->to != NULL) {
			io_uring_prep_send_set_addr(sqe, w->to, (uint16_t)w->to_len);
		}
		sqe->flags = IOSQE_FIXED_FILE;
		if (!u->unbounded && i + 1 < count) {
			sqe->flags |= IOSQE_IO_LINK; /* in order; those of streams are all alike */
		}
		label(sqe, conn, SEND);
		u->link[conn].flying++;
		u->flying++;
	}
}

/* --- steps ------------------------------------------------------------------------------------ */

/* A connection is done, and in some tests all others with it (np_io_ends_all()). */
static void
end_conn(struct uring *u)
{
	u->live -= u->live > 0;
	if (np_io_ends_all(u->w)) {
		u->live = 0;
	}
}

/*
 * How many more messages the budget allows, beside those in the ring, which no step has seen. No
 * limit here with one request in flight, which the steps count, and in an open loop, which has a
 * schedule.
 */
static uint64_t
budget_left(const struct uring *u)
{
	const struct np_worker *w = u->w;
	bool bytes = !w->run->plan->pattern->transactions; /* of a stream */
	uint64_t size = bytes ? w->send_size : 1, begun = u->flying * size;

	if ((!bytes && (w->codec & NP_C_MANY) == 0) || w->budget == UINT64_MAX || w->load.is_open) {
		return UINT64_MAX;
	}
	begun += bytes ? np_get(&w->count->sent) : np_get(&w->count->transactions) + w->in_flight;
	return (np_excess(w->budget, begun) + size - 1) / size;
}

/* How many messages the connection can send in a row; 0: those in the ring use up the budget. */
static uint32_t
sends_in_row(const struct uring *u, const struct np_conn *c, const struct link *k)
{
	const struct np_worker *w = u->w;
	uint64_t most = w->steps->answers          ? k->owed
			: (c->need & NP_PART) != 0 ? 1
			: w->steps->ahead != NULL  ? w->steps->ahead(w, c)
						   : 1;

	most = most < 1 ? 1 : most < u->chain ? most : u->chain; /* 1: c->need is a send */
	if ((w->codec & NP_C_PACE) != 0 && w->conns > 1) {
		most = 1; /* all share what the load allows, which counts sends when done */
	}
	if ((c->need & NP_PART) == 0 && budget_left(u) < most) {
		most = budget_left(u);
	}
	return (uint32_t)most;
}

/* How many received messages may be passed to the steps before the next send. */
static uint32_t
receives_in_row(const struct uring *u)
{
	const struct np_worker *w = u->w;
	uint64_t left;

	if ((w->codec & (NP_C_ID | NP_C_MANY_IDS | NP_C_PACE)) != 0) {
		return 1; /* an answer needs the id of its request; each paced one asks the load */
	}
	if (!w->steps->answers) { /* a requester */
		return (w->codec & NP_C_MANY) != 0 ? UINT32_MAX : 1;
	}
	left = w->budget - np_get(&w->count->transactions);
	return left < u->chain ? (uint32_t)left : u->chain;
}

/* Pass complete messages of a byte stream to the steps, without their data. */
static enum np_need
take_messages(struct uring *u, struct np_conn *c, struct link *k)
{
	struct np_worker *w = u->w;
	uint32_t most = receives_in_row(u), taken = 0;
	enum np_need need;
	bool sends = false;

	do {
		k->unread -= w->recv_size;
		need = w->steps->arrived(w, c, w->recv_ring.slots->buf, w->recv_size);
		sends = sends || need == NP_SEND;
		taken++;
	} while (need != NP_OVER && taken < most && k->unread >= w->recv_size);
	k->owed = w->steps->answers ? taken : 0;
	w->more += k->chunks > taken ? k->chunks - taken : 0;
	k->chunks = 0;
	return sends && need != NP_OVER ? NP_SEND : need;
}

/* Pass what was received, an error or the end of data to the steps. False: there is too little. */
static bool
take_bytes(struct uring *u, struct np_conn *c, struct link *k)
{
	struct np_worker *w = u->w;
	bool whole = w->run->plan->pattern->transactions;

	if (whole && k->unread >= w->recv_size) {
		c->need = take_messages(u, c, k);
	} else if (!whole && k->unread > 0) {
		size_t n = k->unread;

		k->unread = 0;
		c->need = w->steps->arrived(w, c, w->recv_ring.slots->buf, n);
	} else if (k->error != 0) {
		errno = k->error;
		k->error = 0;
		c->need = np_io_failed(w, c, NP_RECV);
	} else if (k->at_end) {
		c->need = w->steps->ended(w, c, 0);
	} else {
		return false;
	}
	return true;
}

/* Take steps until the connection needs a send, which is queued, or more data. */
static void
advance(struct uring *u, struct np_conn *c, uint32_t conn)
{
	struct link *k = &u->link[conn];

	while (c->need != NP_OVER && u->live > 0) {
		c->need &= ~(unsigned)NP_BLOCKED;
		if (k->flying > 0) {
			return; /* sent() comes back when they are done */
		}
		if ((c->need & NP_HELD) != 0) {
			if (u->w->load.holds || !np_io_begins(u->w, c)) {
				return; /* uring_run() comes back when the load allows it */
			}
			continue;
		}
		if ((c->need & ~(unsigned)NP_PART) == NP_SEND) {
			uint32_t count = sends_in_row(u, c, k);

			if (count > 0) {
				put_sends(u, c, conn, count);
				return;
			}
			c->need = NP_RECV;
		}
		if (!u->unbounded || !take_bytes(u, c, k)) {
			break; /* received() has taken the steps of datagrams */
		}
	}
	if (c->need == NP_OVER) {
		end_conn(u);
	}
}

/* Does the connection need a new request to receive? Datagrams may come even after an error. */
static bool
must_arm(const struct uring *u, const struct np_conn *c, const struct link *k)
{
	return u->w->steps->arrived != NULL && c->need != NP_OVER && !k->armed &&
	       (!u->unbounded || (!k->at_end && k->error == 0)) && u->live > 0 && !u->leaving;
}

/* --- completions ------------------------------------------------------------------------------ */

/* Where the kernel has put the data of the receive buffer with that number. */
static char *
buffer(const struct uring *u, uint16_t number)
{
	const struct np_ring *ring = &u->w->recv_ring;

	return u->shared != NULL ? u->shared : ring->slots[number % ring->width].buf;
}

/* Return a receive buffer to the pool; submit() announces it to the kernel. */
static void
give_back(struct uring *u, uint16_t number)
{
	io_uring_buf_ring_add(u->pool, buffer(u, number), (unsigned)u->buffer_size, number,
			      io_uring_buf_ring_mask(u->count), (int)u->filled);
	u->filled++;
}

/* Errors after which a request is simply made again. ENOBUFS: no receive buffer was free. */
static bool
is_harmless(int error)
{
	return error == ECANCELED || error == EINTR || error == EAGAIN || error == ENOBUFS;
}

/* A completed receive: a datagram, bytes of a stream, its end, or an error. */
static void
received(struct uring *u, uint32_t conn, const struct io_uring_cqe *cqe)
{
	struct np_conn *c = &u->w->conn[conn];
	struct link *k = &u->link[conn];

	if ((cqe->flags & IORING_CQE_F_MORE) == 0) {
		k->armed = false; /* the multishot request has ended */
	}
	if (cqe->res >= 0 && !u->unbounded) { /* a datagram, or a flow's end mark of no bytes */
		uint16_t number = (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
		enum np_need need =
		    np_io_received(u->w, c, u->w->steps, buffer(u, number), cqe->res);

		if (__builtin_expect((u->w->codec & NP_C_TOUCH) != 0, 0)) {
			np_codec_touch(u->w, buffer(u, number), (size_t)cqe->res);
		}
		if ((cqe->flags & IORING_CQE_F_BUFFER) != 0) {
			give_back(u, number);
		}
		if (c->need != NP_OVER) { /* else the step only counted it */
			c->need = need;
			if (need == NP_OVER) {
				end_conn(u);
			}
		}
	} else if (cqe->res > 0) {
		uint16_t number = (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);
		size_t n = (size_t)cqe->res;

		k->unread += n;
		k->chunks++;
		if (__builtin_expect((u->w->codec & NP_C_TOUCH) != 0, 0)) {
			np_codec_touch(u->w, buffer(u, number), n);
		}
		give_back(u, number);
	} else if (cqe->res == 0) {
		k->at_end = true;
	} else if (!is_harmless(-cqe->res) && !np_io_note_icmp(u->w, c, NP_RECV, -cqe->res)) {
		if (u->unbounded) {
			k->error = -cqe->res;
		} else {
			errno = -cqe->res;
			c->need = np_io_failed(u->w, c, NP_RECV) & ~(unsigned)NP_BLOCKED;
			if (c->need == NP_OVER) {
				end_conn(u);
			}
		}
	}
	if (!u->leaving && u->unbounded) {
		advance(u, c, conn);
	}
	if (__builtin_expect(!k->armed, 0) && must_arm(u, c, k)) {
		arm(u, conn);
	}
}

/* n bytes were sent: take the step once a message is complete. Returns what is needed next. */
static enum np_need
take_sent(struct uring *u, struct np_conn *c, struct link *k, size_t n)
{
	struct np_worker *w = u->w;
	enum np_need need;

	if (!w->run->plan->pattern->transactions) {
		return w->steps->sent(w, c, n);
	}
	c->part += n; /* of several sends, each of which may be short */
	if (c->part < w->send_size) {
		return NP_SEND | NP_PART;
	}
	c->part -= w->send_size;
	k->owed -= k->owed > 0; /* 0 at a requester */
	need = w->steps->sent(w, c, w->send_size);
	if (c->part > 0 && need != NP_OVER) { /* of the next message */
		return NP_SEND | NP_PART;
	}
	return k->owed > 0 && need != NP_OVER ? NP_SEND : need;
}

/* A completed send, which may have been cut short by a cancellation, or failed. */
static void
sent(struct uring *u, uint32_t conn, const struct io_uring_cqe *cqe)
{
	struct np_conn *c = &u->w->conn[conn];
	struct link *k = &u->link[conn];

	k->flying--;
	u->flying--;
	if (cqe->res >= 0) {
		c->need = take_sent(u, c, k, (size_t)cqe->res);
	} else if (!is_harmless(-cqe->res) || (cqe->res == -ENOBUFS && !u->unbounded)) {
		errno = -cqe->res; /* ENOBUFS: no room for a datagram, which steps count */
		c->need = np_io_failed(u->w, c, NP_SEND) & ~(unsigned)NP_BLOCKED;
	}
	if (k->flying == 0 && !u->leaving) {
		advance(u, c, conn);
	}
}

/* Submit what is queued, wait for a completion, and handle all that are there. */
static void
turn(struct uring *u)
{
	struct io_uring_cqe *cqe;
	unsigned head, count = 0;

	submit(u, 1);
	io_uring_for_each_cqe(u->ring, head, cqe)
	{
		uint32_t conn = (uint32_t)(cqe->user_data / KINDS);
		int kind = (int)(cqe->user_data % KINDS);

		if ((cqe->flags & IORING_CQE_F_MORE) == 0) {
			u->in_flight--;
		}
		if (kind == RECEIVE) {
			received(u, conn, cqe);
		} else if (kind == SEND) {
			sent(u, conn, cqe);
		} /* else CANCEL, or WAKE: the loop checks the stop flag */
		count++;
	}
	io_uring_cq_advance(u->ring, count);
	u->w->engine.count[NP_E_COMPLETIONS] += count;
}

/* --- the loop --------------------------------------------------------------------------------- */

/* Register the sockets, and queue the first requests. Returns 0 or -errno. */
static int
begin(struct uring *u)
{
	struct np_worker *w = u->w;
	struct io_uring_sqe *sqe;
	int rc;

	/* Requests name sockets by index: the connections, then the one that wakes it to stop. */
	for (uint32_t i = 0; i < w->conns; i++) {
		u->socket[i] = w->conn[i].fd;
	}
	u->socket[w->conns] = w->stop.wake_fd;
	rc = io_uring_register_files(u->ring, u->socket, w->conns + 1);
	if (rc < 0) {
		return rc;
	}
	u->leaving = false;
	u->live = 0;
	for (uint32_t i = 0; i < w->conns; i++) {
		w->conn[i].need = w->goes_on ? w->conn[i].need : np_io_first_need(w, i);
		u->live += w->conn[i].need != NP_OVER;
	}
	sqe = request(u);
	if (sqe != NULL) {
		io_uring_prep_poll_add(sqe, (int)u->w->conns, POLLIN);
		sqe->flags = IOSQE_FIXED_FILE;
		label(sqe, u->w->conns, WAKE);
	}
	for (uint32_t i = 0; i < w->conns && u->live > 0; i++) {
		if (must_arm(u, &w->conn[i], &u->link[i])) {
			arm(u, i);
		}
		if (w->conn[i].need != NP_OVER) {
			advance(u, &w->conn[i], i);
		}
	}
	return 0;
}

/* Queue a request that cancels all those of a connection of that kind. */
static void
cancel(struct uring *u, uint32_t conn, unsigned kind)
{
	struct io_uring_sqe *sqe = request(u);

	if (sqe != NULL) {
		io_uring_prep_cancel64(sqe, (uint64_t)conn * KINDS + kind, IORING_ASYNC_CANCEL_ALL);
		sqe->flags = IOSQE_FIXED_FILE; /* restricted rings require it, though unused */
		label(sqe, conn, CANCEL);
	}
}

/* Cancel receives and sends one by one: IORING_ASYNC_CANCEL_ANY searches all anew after each. */
static void
cancel_all(struct uring *u)
{
	for (uint32_t i = 0; i < u->w->conns; i++) {
		if (u->link[i].armed) {
			cancel(u, i, RECEIVE);
		}
		if (u->link[i].flying > 0) {
			cancel(u, i, SEND);
		}
	}
}

/* How many receives and sends are in the ring. */
static uint32_t
transfers(const struct uring *u)
{
	uint32_t count = u->flying;

	for (uint32_t i = 0; i < u->w->conns; i++) {
		count += u->link[i].armed;
	}
	return count;
}

/*
 * Cancel all requests, so that later data stay in the sockets. Cancelled sends say how much was
 * sent. A cancellation misses a request in execution, and its chain: repeat all after a turn in
 * which no transfer ended. No turn waits for long: the request that cancels WAKE completes in each.
 */
static void
leave(struct uring *u)
{
	uint32_t left = 0;

	u->leaving = true;
	while (u->in_flight > 0 && !u->taken->is_lost) {
		uint32_t before = left;

		left = transfers(u);
		if (left >= before) {
			cancel_all(u);
		}
		cancel(u, u->w->conns, WAKE);
		turn(u);
	}
	(void)io_uring_unregister_files(u->ring);
}

/* The engine `epoll` will wait for the last answers of an open loop: prepare the state it needs. */
static void
hand_over(struct uring *u)
{
	for (uint32_t i = 0; i < u->w->conns; i++) {
		struct np_conn *c = &u->w->conn[i];
		struct link *k = &u->link[i];

		while (k->unread >= u->w->recv_size && c->need != NP_OVER) {
			(void)take_messages(u, c, k);
		}
		if (k->unread > 0 && c->need == NP_RECV) { /* part of a response */
			c->need |= NP_PART;
			c->part = k->unread;
		} else if (k->unread > 0 && c->need != NP_OVER) { /* and a send to finish */
			np_io_put_aside(c, k->unread);
		}
	}
}

/* np_engine.run: when it returns, no request is left in the ring. */
static int
uring_run(struct np_worker *w)
{
	struct uring *u = w->engine.state;
	int rc = begin(u);

	if (rc != 0) {
		return rc;
	}
	while (u->live > 0 && !np_stopped(&w->stop)) {
		turn(u);
		if (__builtin_expect(w->load.is_open, 0) ||
		    (__builtin_expect(w->load.holds, 0) && np_now() >= w->load.due_ns)) {
			uint32_t begun = 0;
			struct np_conn *c;

			while (u->live > 0 && (c = np_io_next_due(w, &u->next, &begun)) != NULL) {
				advance(u, c, (uint32_t)(c - w->conn));
			}
		}
		if (np_sampler_is_asked(&w->sampler)) {
			np_sampler_answer(w);
		}
	}
	np_load_count_held(&w->load, np_now());
	if (w->load.is_open && np_told_to_leave(&w->stop)) {
		w->left_ns = np_now(); /* what is due during leave() does not count */
		leave(u);
		hand_over(u);
	} else {
		leave(u);
	}
	return -w->error;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* How many receive buffers: a message of each connection may wait; more would fill the cache. */
static uint32_t
buffers_of(const struct np_plan *p)
{
	uint64_t wanted =
	    p->pattern->transactions ? 2 * (uint64_t)np_plan_worker_flows(p) : STREAM_BUFFERS;
	uint32_t count = BUFFERS_MIN; /* a power of two */

	while (count < BUFFERS_MAX && 2 * (uint64_t)count <= wanted) {
		count *= 2;
	}
	return count;
}

/* Most sends of a connection in a row. */
static uint32_t
chain_length(const struct np_plan *p)
{
	uint32_t each = SEND_BUFFERS / np_plan_worker_flows(p);

	if (!p->transport->bounded) {
		/* One in a stream: each release of buffer space would wake all that wait for it. */
		return p->pattern->transactions ? CHAIN : 1;
	}
	return each > CHAIN ? CHAIN : each > 0 ? each : 1;
}

/* Take everything but the ring from `room`, or add up its size. message: bytes of a receive. */
static struct uring
lay_out(const struct np_plan *p, size_t message, struct np_room *room)
{
	uint32_t conns = np_plan_worker_flows(p);
	size_t size = message < BUFFER_MAX ? message : BUFFER_MAX; /* of a receive buffer */
	struct uring u = {
		.unbounded = !p->transport->bounded,
		.chain = chain_length(p),
		.count = buffers_of(p),
		.buffer_size = p->pattern->transactions && size < BUFFER_MIN ? BUFFER_MIN : size,
		.link = np_room_take(room, conns, sizeof(struct link)),
		.socket = np_room_take(room, conns + 1, sizeof(int)),
	};
	char *pool; /* with room to begin at a page, as the kernel demands */

	if (p->pattern->transactions) {
		u.shared = np_room_take(room, 1, u.buffer_size);
	}
	pool = np_room_take(room, 1, u.count * sizeof(struct io_uring_buf) + PAGE);
	u.pool = pool != NULL ? (void *)(pool + (PAGE - (uintptr_t)pool % PAGE)) : NULL;
	return u;
}

/* np_engine.close: the pool is set if its buffers are registered. */
static void
uring_close(struct np_worker *w)
{
	struct uring *u = w->engine.state;

	if (u->pool != NULL) {
		(void)io_uring_unregister_buf_ring(u->ring, GROUP);
	}
	if (u->taken != NULL) {
		np_uring_give(u->taken);
	}
	w->engine.fd = -1;
}

/* np_engine.open: take a ring, and register the buffers to receive into. */
static int
uring_open(struct np_worker *w, struct np_err *err)
{
	struct np_room room = { .at = w->engine.state, .used = sizeof(struct uring) };
	struct uring *u = w->engine.state;
	struct io_uring_buf_reg reg = { .bgid = GROUP };
	struct io_uring_buf_ring *pool;
	int rc;

	*u = lay_out(w->run->plan, w->recv_ring.size, &room);
	u->w = w;
	pool = w->steps->arrived != NULL ? u->pool : NULL; /* only if it receives */
	u->pool = NULL;                                    /* not registered yet */
	u->taken = np_uring_take(err);
	if (u->taken == NULL) {
		return err->code;
	}
	u->ring = &u->taken->ring;
	if (pool != NULL) {
		io_uring_buf_ring_init(pool);
		reg.ring_addr = (uintptr_t)pool;
		reg.ring_entries = u->count;
		rc = io_uring_register_buf_ring(u->ring, &reg, 0);
		if (rc != 0) {
			return np_fail(err, NP_ESYS, -rc, "buffers for a ring");
		}
		u->pool = pool;
		for (uint32_t i = 0; i < u->count; i++) {
			give_back(u, (uint16_t)i);
		}
	}
	w->engine.fd = u->ring->ring_fd;
	return NP_OK;
}

static const char *
why_not(const struct np_plan *p)
{
	if (p->pattern->probe || p->pattern->connection_test) {
		return "it drives only connections that exist before the test";
	}
	if (p->ramp > 0) {
		return "it drives only connections that exist before the measured part begins";
	}
	if (p->transport->family != 0 || p->transport->header > 0) {
		return "it is for TCP and UDP only";
	}
	if (p->transport->encrypts && (p->role == NP_LEAD || p->pattern->transactions)) {
		return "the kernel that encrypts does not take its sends";
	}
	if (p->transport->upgrade != NULL && !p->transport->encrypts) {
		return "it works on plain sockets only";
	}
	if (p->transport->bounded && p->pattern->transactions) {
		return "its receives do not give the address to answer";
	}
	if (p->pattern->sends_file && p->role == NP_LEAD) {
		return "io_uring has no sendfile(2)";
	}
	if (p->role == NP_FOLLOW && np_load_of(&p->near) != &np_load_closed) {
		return "it receives as soon as data arrive, and cannot be paced";
	}
	if (p->use_write || p->copy_avoidance) {
		return "it sends and receives, and has no write(2) and no splice(2)";
	}
	if (p->time_calls && !p->pattern->transactions) {
		return "it knows the time of a turn, and not of each message in it";
	}
	return NULL;
}

/* np_engine.width: a datagram needs its own buffer; the bytes of streams are not looked at. */
static uint32_t
uring_width(const struct np_plan *p)
{
	return !p->transport->bounded ? 1
	       : p->role == NP_LEAD   ? chain_length(p) * np_plan_worker_flows(p)
				      : buffers_of(p);
}

/* np_engine.bytes: without the kernel's memory for a ring (NP_URING_BYTES). */
static uint64_t
uring_bytes(const struct np_plan *p)
{
	int32_t asked = p->role == NP_LEAD ? p->response : p->request;
	struct np_room room = { .used = sizeof(struct uring) };

	(void)lay_out(p, asked > 0 ? (size_t)asked : BUFFER_MAX, &room); /* else not known yet */
	return room.used;
}

const struct np_engine np_engine_uring = {
	.name = "uring",
	.help = "one call submits and waits; receives stay armed (io_uring)",
	.why_not = why_not,
	.lacks = np_urings_lack,
	.width = uring_width,
	.most = np_urings_unused,
	.bytes = uring_bytes,
	.open = uring_open,
	.close = uring_close,
	.run = uring_run,
};
