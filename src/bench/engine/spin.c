/*
 * The engine `spin`: never asleep. Calls do not block, and one for which the kernel is not ready is
 * made again: at once for one connection, in its turn among many. No wake-up stands between a
 * message and whoever waits for it; the price is a whole processor for each thread.
 *
 * The end that waits to be connected to serves strangers. It sleeps until the first message, and
 * when nothing has moved for IDLE_MS.
 *
 * Nothing here may rely on speed: there may be fewer processors than threads that spin.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/bag.h"
#include "base/clock.h"
#include "bench/engine/engine.h"
#include "bench/engine/io.h"
#include "bench/ids.h"
#include "bench/run.h"
#include "net/sock.h"
#include "sys/affinity.h"

#ifndef SO_INCOMING_NAPI_ID
#define SO_INCOMING_NAPI_ID 56
#endif
#ifndef SO_PREFER_BUSY_POLL
#define SO_PREFER_BUSY_POLL 69
#endif

enum {
	TURN = 8,          /* calls in a row for one connection, before others have theirs */
	LOOK = 64,         /* rounds between two looks at the clock */
	BUSY_POLL_US = 50, /* a call that does not block polls once, however many */
	OPTIONS = 2,       /* of sockets, for polling */
	IDLE_MS = 1000     /* without a message, before a passive end sleeps */
};

/* A request for which there is no room, while responses are taken. */
struct aside {
	enum np_need need; /* NP_OVER: there is none */
	size_t part;
	uint64_t since_ns;
};

/* A worker's; a mark (np_worker_mark()) leaves all as it is. */
struct spin {
	struct np_worker *w;
	uint32_t live; /* connections that are not over */
	uint32_t at;   /* whose turn it is */
	const struct np_slot *out, *in;
	bool keeps_asker;     /* whom to answer is forgotten when something else is received */
	bool leads_paced;     /* the beginnings of operations are counted */
	bool holds;           /* none may begin before due_ns */
	uint32_t may_begin;   /* how many more may, before the load is asked */
	uint32_t rounds;      /* up to LOOK */
	uint64_t held_ns;     /* since when it holds */
	uint64_t due_ns;      /* until when */
	uint64_t look_ns;     /* when connections are looked at for those that wait too long */
	bool sleeps;          /* a passive end */
	bool moved;           /* something has, since the last look */
	uint64_t moved_ns;    /* when something had, by the looks; 0: nothing yet */
	struct pollfd *polls; /* one for each connection, and the stop's */
	/* Of the first connection: does a receive queue that can be polled bring its packets? */
	bool is_brought;
	int set[OPTIONS], refused[OPTIONS]; /* as the kernel says; errno, of any connection */
	struct aside aside[];               /* of each connection */
};

/* --- busy polling ----------------------------------------------------------------------------- */

static const struct {
	const char *name; /* in the evidence */
	int option, value;
} polling[OPTIONS] = {
	{ "engine.busy_poll_us", SO_BUSY_POLL, BUSY_POLL_US },
	{ "engine.prefer_busy_poll", SO_PREFER_BUSY_POLL, 1 }, /* to interrupts */
};

/*
 * Where packets come by a receive queue that can be polled, receiving is to poll it: without
 * CAP_NET_ADMIN some kernels allow the first option, and none the other. Of a socket without a
 * connection nobody knows yet where its packets will come from.
 */
static void
poll_one(struct spin *s, int fd)
{
	const struct np_transport *t = s->w->run->plan->transport;

	if (t->ip_protocol == 0 ||
	    (t->connected && np_sock_int(fd, SOL_SOCKET, SO_INCOMING_NAPI_ID) <= 0)) {
		return;
	}
	for (int i = 0; i < OPTIONS; i++) {
		/* net.core.busy_read may have done it. */
		if (np_sock_int(fd, SOL_SOCKET, polling[i].option) <= 0 &&
		    setsockopt(fd, SOL_SOCKET, polling[i].option, &polling[i].value,
			       sizeof(polling[i].value)) != 0) {
			s->refused[i] = errno;
		}
	}
}

/* What has come of it at the first connection, for the evidence. */
static void
note_polling(struct spin *s)
{
	int fd = s->w->conn->fd;

	s->is_brought = np_sock_int(fd, SOL_SOCKET, SO_INCOMING_NAPI_ID) > 0;
	for (int i = 0; i < OPTIONS; i++) {
		s->set[i] = np_sock_int(fd, SOL_SOCKET, polling[i].option);
	}
}

static void
spin_put(const struct np_run *run, struct np_bag *into)
{
	const struct spin *s = run->worker->engine_own;

	np_bag_int(into, np_cpus_usable(), "engine.processors");
	for (int i = 0; i < OPTIONS && run->plan->transport->ip_protocol != 0; i++) {
		if (!s->is_brought) {
			np_bag_unread(into,
				      "the packets come from no receive queue that can be polled",
				      "%s", polling[i].name);
		} else if (s->set[i] > 0) {
			np_bag_int(into, s->set[i], "%s", polling[i].name);
		} else {
			np_bag_unread(into,
				      s->refused[i] != 0 ? strerror(s->refused[i]) : "not set",
				      "%s", polling[i].name);
		}
	}
}

/* --- when operations may begin ---------------------------------------------------------------- */

/*
 * May a connection send, by the load? Who may not is marked by NP_REST, as the wait is no part of
 * its operation.
 */
static bool
may_send(struct spin *s, struct np_conn *c)
{
	struct np_worker *w = s->w;

	if (s->may_begin == 0 && !s->holds) {
		uint64_t now = np_now(), due = np_load_due(&w->load, now);

		s->may_begin = due == 0 ? w->load.burst : 0;
		s->holds = due != 0;
		s->held_ns = now;
		s->due_ns = due;
	}
	if (s->holds) {
		c->need |= NP_REST;
		return false;
	}
	if ((c->need & NP_REST) != 0) {
		c->need &= ~(unsigned)NP_REST;
		c->since_ns = np_now();
	}
	return true;
}

static void
end_hold(struct spin *s, uint64_t now)
{
	if (now >= s->due_ns) {
		s->w->paced_ns += now - s->held_ns;
		s->holds = false;
		s->may_begin = s->w->load.burst;
	}
}

/* Sleep until then, or until something happens at the first `count` of the polls. */
static void
sleep_until(struct spin *s, uint32_t count, uint64_t until_ns)
{
	struct timespec left;

	s->polls[count] = (struct pollfd){ .fd = s->w->stop.wake_fd, .events = POLLIN };
	ppoll(s->polls, count + 1, np_left(until_ns, &left), NULL);
}

/* Who receives, or answers, waits with all of its connections. */
static void
rest(struct spin *s, struct np_conn *c)
{
	struct np_worker *w = s->w;
	uint64_t now = np_now(), due = np_load_due(&w->load, now), began = now;

	if (s->sleeps && due > now + IDLE_MS * NP_MSEC) {
		sleep_until(s, 0, due);
	}
	while (now < due && !np_stopped(&w->stop)) {
		now = np_now();
	}
	w->paced_ns += now - began;
	c->since_ns = due != 0 ? now : c->since_ns;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* The steps say when a burst is over; a leader's beginnings are counted here. */
static enum np_need
rested(struct spin *s, struct np_conn *c, enum np_need need)
{
	if (!s->leads_paced) {
		rest(s, c);
	}
	return need & ~(unsigned)NP_REST;
}

static uint64_t
in_flight(const struct np_worker *w, const struct np_conn *c)
{
	if ((w->codec & NP_C_MANY) == 0) {
		return 0;
	}
	return c->ids != NULL ? c->ids->in_flight : c->in_flight->count;
}

/*
 * A send has found no room. While responses are under way they are received: a far end that can't
 * get rid of one would never make room. Returns true if there may be one.
 */
static bool
put_aside(struct spin *s, struct np_conn *c)
{
	struct aside *a = &s->aside[c - s->w->conn];

	if (in_flight(s->w, c) == 0 || a->need != NP_OVER) {
		return false;
	}
	*a = (struct aside){ .need = c->need, .part = c->part, .since_ns = c->since_ns };
	c->need = NP_RECV;
	c->part = 0;
	return true;
}

/* Back to what was put aside, unless a response is there in part. */
static void
take_back(struct spin *s, struct np_conn *c)
{
	struct aside *a = &s->aside[c - s->w->conn];

	if (a->need == NP_OVER || (c->need & NP_PART) != 0) {
		return;
	}
	if (c->need != NP_OVER) {
		c->need = a->need;
		c->part = a->part;
		c->since_ns = a->since_ns;
	}
	a->need = NP_OVER;
}

/* The kernel is not ready for that call. */
static __attribute__((noinline)) bool
is_empty(struct spin *s, struct np_conn *c, enum np_need need)
{
	s->w->engine_count[NP_E_BLOCKED]++;
	if ((need & NP_SEND) != 0) {
		return put_aside(s, c);
	}
	take_back(s, c);
	return false;
}

static __attribute__((noinline)) bool
failed(struct spin *s, struct np_conn *c, enum np_need need)
{
	if (errno == EAGAIN) {
		return is_empty(s, c, need);
	}
	c->need = np_io_failed(s->w, c, need);
	return true;
}

/* Needs that are rarely had. */
static __attribute__((noinline)) bool
other_call(struct spin *s, struct np_conn *c)
{
	enum np_need need = c->need;

	c->need = np_io_other(s->w, c, need, (need & NP_SEND) != 0 ? s->out : s->in);
	if ((c->need & NP_BLOCKED) != 0) {
		c->need &= ~(unsigned)NP_BLOCKED;
		return is_empty(s, c, need);
	}
	return true;
}

/* One call and its step. Returns false where the kernel is not ready for it. */
NP_LOOP_BODY bool
one_call(struct spin *s, struct np_conn *c)
{
	struct np_worker *w = s->w;
	const struct np_steps *steps = w->steps;
	enum np_need need = c->need;
	ssize_t n;

	if (need == NP_RECV) {
		n = np_io_recv(w, c, s->in->buf, steps->answers);
		if (n < 0) {
			return failed(s, c, need);
		}
		c->need = steps->arrived(w, c, s->in->buf, (size_t)n);
		s->in = s->in->next;
	} else if (need == NP_SEND) {
		n = np_io_send(w, c, s->out->buf, steps->sends_file);
		if (n < 0) {
			return failed(s, c, need);
		}
		s->may_begin--;
		c->need = steps->sent(w, c, (size_t)n);
		s->out = s->out->next;
	} else if (!other_call(s, c)) {
		return false;
	}
	s->moved = true;
	if (__builtin_expect((c->need & NP_REST) != 0, 0)) {
		c->need = rested(s, c, c->need);
	}
	if ((need & NP_RECV) != 0 && s->aside[c - w->conn].need != NP_OVER) {
		take_back(s, c);
	}
	return true;
}

/* One that has nothing to do any more. */
static void
end_one(struct spin *s)
{
	s->live--;
	if (np_io_ends_all(s->w)) {
		s->live = 0;
	}
}

/* Calls for one connection, as long as the kernel is ready for them. */
NP_LOOP_BODY void
turn(struct spin *s, struct np_conn *c)
{
	for (int calls = 0; calls < TURN; calls++) {
		if (__builtin_expect(s->leads_paced, 0) &&
		    (c->need & ~(unsigned)NP_REST) == NP_SEND && !may_send(s, c)) {
			return;
		}
		if (!one_call(s, c)) {
			return;
		}
		if (c->need == NP_OVER) {
			end_one(s);
			return;
		}
	}
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* Nobody interrupts a wait here: what has not been answered in time is lost. */
static void
look_for_late(struct spin *s, uint64_t now)
{
	struct np_worker *w = s->w;

	s->look_ns = now + w->patience_ns / 8;
	for (uint32_t i = 0; i < w->conns && s->live > 0; i++) {
		struct np_conn *c = &w->conn[i];

		if (c->need == NP_RECV && s->aside[i].need == NP_OVER &&
		    now - c->since_ns >= w->patience_ns) {
			c->need = w->steps->failed(w, c, NP_RECV, EINTR);
			if (c->need == NP_OVER) {
				end_one(s);
			}
		}
	}
}

/* What a connection waits for. */
static short
events_of(const struct spin *s, const struct np_conn *c)
{
	bool is_aside = s->aside[c - s->w->conn].need != NP_OVER;

	if ((c->need & NP_REST) != 0) {
		return 0; /* until it is due */
	}
	if ((c->need & NP_SEND) != 0) {
		return in_flight(s->w, c) > 0 ? POLLIN | POLLOUT : POLLOUT;
	}
	return is_aside ? POLLIN | POLLOUT : POLLIN;
}

/* Nothing has moved for a while: whose time that is may be anybody's. */
static void
fall_asleep(struct spin *s)
{
	uint64_t until = s->holds ? s->due_ns : NP_NEVER;
	struct np_worker *w = s->w;

	if (w->patience_ns > 0 && s->look_ns < until) {
		until = s->look_ns;
	}
	for (uint32_t i = 0; i < w->conns; i++) {
		const struct np_conn *c = &w->conn[i];

		s->polls[i] = (struct pollfd){ .fd = c->need == NP_OVER ? -1 : c->fd,
					       .events = events_of(s, c) };
	}
	sleep_until(s, w->conns, until);
}

/* Does the processor go to others? */
static void
look_for_work(struct spin *s, uint64_t now)
{
	if (s->moved) {
		s->moved = false;
		s->moved_ns = now;
	} else if (now - s->moved_ns >= IDLE_MS * NP_MSEC && s->live > 0) {
		fall_asleep(s);
		s->moved_ns = np_now();
	}
}

/* What is to be looked at, but not at each call. */
static void
look(struct spin *s)
{
	uint64_t now;

	s->rounds = 0;
	if (!s->holds && s->w->patience_ns == 0 && !s->sleeps) {
		return;
	}
	now = np_now();
	if (s->sleeps) {
		look_for_work(s, now);
	}
	if (s->holds) {
		end_hold(s, now);
	}
	if (s->w->patience_ns > 0 && now >= s->look_ns) {
		look_for_late(s, now);
	}
}

/* All connections as they are before the first turn. */
static void
begin(struct spin *s)
{
	struct np_worker *w = s->w;

	s->out = w->send_ring.slots;
	s->in = w->recv_ring.slots;
	s->keeps_asker = w->steps->answers && w->from != NULL;
	s->leads_paced = w->run->plan->role == NP_LEAD && w->load.burst > 0;
	s->may_begin = w->load.burst;
	s->sleeps = !w->run->plan->active;
	for (uint32_t i = 0; i < w->conns; i++) {
		struct np_conn *c = &w->conn[i];

		poll_one(s, c->fd);
		np_sock_unblock(c->fd);
		c->need = np_io_first_need(w, i);
		s->live += c->need != NP_OVER;
	}
}

/* The connection whose turn it was has had it; who is asked something answers first. */
NP_LOOP_BODY bool
round_is_over(struct spin *s, const struct np_conn *c)
{
	if (s->keeps_asker && c->need == NP_SEND) {
		return false;
	}
	s->at = s->at + 1 < s->w->conns ? s->at + 1 : 0;
	return s->at == 0;
}

static int
spin_run(struct np_worker *w)
{
	struct spin *s = w->engine_own;
	uint64_t now = np_now();

	s->w = w;
	s->look_ns = now + w->patience_ns / 8;
	s->held_ns = now; /* a mark: what was waited before it is no part of the window */
	if (!w->goes_on) {
		begin(s);
	}
	while (s->live > 0 && !np_stopped(&w->stop)) {
		struct np_conn *c = &w->conn[s->at];

		if (c->need != NP_OVER) {
			turn(s, c);
		}
		if (!round_is_over(s, c)) {
			continue;
		}
		if (++s->rounds == LOOK || s->holds) {
			look(s);
		}
		if (np_sampler_is_asked(&w->sampler)) {
			np_sampler_answer(w);
		}
	}
	note_polling(s);
	return -w->error;
}

/* --- the row ---------------------------------------------------------------------------------- */

static const char *
spin_why_not(const struct np_plan *p)
{
	if (p->pattern->probe) {
		return "the test makes its own connection";
	}
	if (p->pattern->connection_test) {
		return "it drives only connections that exist before the test";
	}
	if (p->ramp > 0) {
		return "it drives only connections that exist before the test, and a ramp makes "
		       "them during the test";
	}
	return p->transport->header > 0 ? "its socket belongs to the daemon" : NULL;
}

static size_t
size_for(uint32_t conns)
{
	return sizeof(struct spin) + conns * sizeof(struct aside) +
	       (conns + 1) * sizeof(struct pollfd);
}

static uint64_t
spin_bytes(const struct np_plan *p)
{
	return size_for(p->flows / np_plan_workers(p) + 1);
}

static int
spin_open(struct np_worker *w, struct np_err *err)
{
	struct spin *s = calloc(1, size_for(w->conns));

	if (s == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for a thread that never sleeps");
	}
	s->polls = (struct pollfd *)&s->aside[w->conns];
	w->engine_own = s;
	return NP_OK;
}

static void
spin_close(struct np_worker *w)
{
	free(w->engine_own);
	w->engine_own = NULL;
}

const struct np_engine np_engine_spin = {
	.name = "spin",
	.help = "never sleeps: tries again at once (each thread takes a whole processor)",
	.spins = true,
	.compares = true,
	.why_not = spin_why_not,
	.bytes = spin_bytes,
	.open = spin_open,
	.close = spin_close,
	.run = spin_run,
	.put = spin_put,
};
