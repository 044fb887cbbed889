/*
 * rr: request and response over one connection, or as datagrams. The clock is read once per
 * transaction: when the response is complete, which is also the start of the next one.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench/engine/sync.h"
#include "bench/ids.h"
#include "bench/open.h"
#include "bench/pattern/stream.h"
#include "bench/stamps.h"

enum {
	DRAIN_MS = 100,       /* longest wait for late responses */
	OPEN_DEPTH = 32768,   /* most requests in flight of an open loop, all connections */
	OPEN_DEPTH_LEAST = 64 /* but this many on each, if there are very many */
};

/* Set bytes and totals. sends: whole messages, each taken as a call; also lost requests. */
static void
settle(struct np_worker *w, uint64_t sends)
{
	NP_EACH_CONN (c, w) {
		uint64_t messages = w->depth > 1 ? c->transactions + c->lost + c->ids->in_flight
				    : w->run->plan->role == NP_LEAD ? c->number - c->before
								    : c->transactions;

		if (!w->load.is_open) { /* an open loop has counted c->sent itself */
			c->sent = messages * w->send_size;
		}
		c->received = c->transactions * w->recv_size;
	}
	np_worker_settle(w, sends, np_get(&w->count->transactions) + w->more);
}

/* --- requests --------------------------------------------------------------------------------- */

/* Requests that other connections hold back until the load lets them send. */
static uint64_t
held_by_others(const struct np_worker *w, const struct np_conn *c)
{
	uint64_t held = 0;

	NP_EACH_CONN (other, w) {
		held += other != c && other->need == (NP_SEND | NP_HELD);
	}
	return held;
}

/* Several in flight: send another if there is room, and those begun do not use up the budget. */
static enum np_need
send_more(struct np_worker *w, struct np_conn *c)
{
	uint64_t begun = np_get(&w->count->transactions) + w->in_flight;

	if ((w->codec & NP_C_PACE) != 0 && begun < w->budget && w->budget - begun <= w->conns) {
		begun += held_by_others(w, c);
	}
	return c->ids->in_flight < w->depth && begun < w->budget ? NP_SEND : NP_RECV;
}

/* np_steps.ahead: how many requests may be sent in a row, with the one that is due. */
static uint64_t
request_ahead(const struct np_worker *w, const struct np_conn *c)
{
	uint64_t begun = np_get(&w->count->transactions) + w->in_flight, left, room;

	if ((w->codec & NP_C_MANY) == 0) {
		return 1;
	}
	left = begun < w->budget ? w->budget - begun : 1;
	room = c->ids->in_flight < w->depth ? w->depth - c->ids->in_flight : 1;
	return room < left ? room : left;
}

/* Count a request that was sent where several can be in flight: NP_SEND if another may follow. */
static __attribute__((noinline)) enum np_need
sent_of_many(struct np_worker *w, struct np_conn *c)
{
	enum np_need next;

	w->sends++;
	w->in_flight++;
	np_ids_sent(c->ids, c->since_ns);
	c->number = np_ids_next(c->ids);
	next = send_more(w, c);
	if (next == NP_SEND) {
		c->since_ns = np_now();
	}
	return next;
}

/* np_steps.sent: a whole request. */
NP_LOOP_BODY enum np_need
request_sent(struct np_worker *w, struct np_conn *c, size_t n)
{
	c->number++;
	return __builtin_expect((w->codec & NP_C_MANY) != 0, 0) ? sent_of_many(w, c) : NP_RECV;
}

/* np_steps.ended. An empty datagram is another test's end mark; a short one is no response. */
static enum np_need
request_ended(struct np_worker *w, struct np_conn *c, size_t n)
{
	if (n == 0 && w->run->plan->transport->connected) {
		return np_step_hung_up(w, c, n);
	}
	np_add(&w->count->stray, n > 0);
	return NP_RECV;
}

/*
 * Give up requests that were sent until then; those of a warm-up do not count. Returns the next
 * need: without ids first a purge.
 */
static enum np_need
give_up(struct np_worker *w, struct np_conn *c, uint64_t sent_until_ns)
{
	uint32_t lost, warm;

	if (w->depth > 1) {
		warm = np_ids_give_up(c->ids, np_min(sent_until_ns, w->began_ns - 1), UINT64_MAX);
		lost = np_ids_give_up(c->ids, sent_until_ns, UINT64_MAX);
		w->in_flight -= warm + lost;
		w->sends -= warm;
	} else {
		warm = c->since_ns < w->began_ns;
		lost = 1 - warm;
		c->before += warm;
		if (c->ids != NULL) { /* one at a time has no slot */
			c->ids->given_up[(c->number - 1) & c->ids->given_up_mask] = c->number;
		}
	}
	c->lost += lost;
	np_add(&w->count->lost, lost);
	if (w->id.width == 0) {
		return NP_PURGE;
	}
	/* Of several connections this one may have had none in flight, and the others enough. */
	return w->depth > 1 ? send_more(w, c) : NP_SEND;
}

/* EINTR is the time-out of a response (w->timeout_ns). SO_RCVTIMEO would arm a timer each time. */
static enum np_need
request_failed(struct np_worker *w, struct np_conn *c, enum np_need need, int error)
{
	enum np_need next;

	if (np_delivers(w->run->plan->transport) || error != EINTR) {
		return np_step_failed(w, c, need, error);
	}
	/* A late signal may hit the next wait, which is too short yet: another will follow. */
	if (need != NP_RECV || np_stopped(&w->stop) || np_now() - c->since_ns < w->timeout_ns) {
		return need;
	}
	next = give_up(w, c, UINT64_MAX);
	c->since_ns = np_now();
	return next;
}

/*
 * After a late answer, double the time-out. A stall makes many answers late: double it once for
 * all, or the loss of a later request would be noticed only at the end of the test.
 */
static void
wait_longer(struct np_worker *w, struct np_ids *ids)
{
	uint64_t now = ids->came_late ? np_now() : 0;

	if (ids->came_late && w->timeout_ns < w->run->plan->silence_s * NP_SEC &&
	    now - w->grew_ns >= w->timeout_ns) {
		w->grew_ns = now;
		w->timeout_ns *= 2;
	}
	ids->came_late = false;
}

/* A duplicate, late or stray message. The controller sees no time-out meanwhile: check it here. */
static __attribute__((noinline)) enum np_need
request_astray(struct np_worker *w, struct np_conn *c, const char *buf, size_t n)
{
	if (w->depth == 1) { /* else np_ids_answers() has counted it */
		c->ids->next = c->number;
		np_ids_astray(c->ids, buf, n);
	}
	wait_longer(w, c->ids);
	return np_now() - c->since_ns >= w->timeout_ns ? request_failed(w, c, NP_RECV, EINTR)
						       : NP_RECV;
}

/* Count a response to the request sent at c->since_ns. True: it was the last one. */
NP_LOOP_BODY bool
answered(struct np_worker *w, struct np_conn *c)
{
	uint64_t now = np_now(), done;

	np_hist_record(w->hist, now - c->since_ns);
	c->since_ns = now;
	done = np_add(&w->count->transactions, 1);
	return __builtin_expect(done >= w->budget, 0);
}

/* A response, with several in flight. The controller sees no time-out meanwhile: check it here. */
static __attribute__((noinline)) enum np_need
answered_of_many(struct np_worker *w, struct np_conn *c, const char *buf, size_t n)
{
	bool is_last;

	if (!np_ids_answers(c->ids, buf, n, &c->since_ns)) {
		/* Without ids it is surplus, received by one call with the last answer. */
		return w->id.width > 0 ? request_astray(w, c, buf, n) : send_more(w, c);
	}
	w->in_flight--;
	c->transactions++;
	is_last = answered(w, c);
	if (w->timeout_ns > 0 && w->id.width > 0 && c->since_ns >= c->timeout_check_ns) {
		give_up(w, c, c->since_ns - w->timeout_ns);
		c->timeout_check_ns = c->since_ns + w->timeout_ns / 8;
	}
	return is_last ? np_io_wait_held(w, c, NP_OVER) : np_paced(w, c, send_more(w, c));
}

/* The next request, unless those in flight on other connections complete the count. */
static __attribute__((noinline)) enum np_need
next_of_share(struct np_worker *w, struct np_conn *c)
{
	uint64_t done = np_get(&w->count->transactions);

	/* in_flight still has this connection's next one. */
	if ((w->codec & NP_C_SHARE) != 0 && done + w->in_flight > w->budget) {
		w->in_flight--;
		return np_paced(w, c, NP_OVER);
	}
	return np_paced(w, c, NP_SEND);
}

/* np_steps.arrived: a response; with ids perhaps a message that answers no request. */
NP_LOOP_BODY enum np_need
request_arrived(struct np_worker *w, struct np_conn *c, const char *buf, size_t n)
{
	if (__builtin_expect((w->codec & NP_C_ID) != 0, 0)) {
		if (!np_id_is(w->id, c->number - 1, buf)) {
			return request_astray(w, c, buf, n);
		}
	} else if (__builtin_expect((w->codec & NP_C_MANY) != 0, 0)) {
		return answered_of_many(w, c, buf, n);
	}
	if (answered(w, c)) { /* wait here: what others have in flight does not count */
		return np_io_wait_held(w, c, NP_OVER);
	}
	return __builtin_expect((w->codec & (NP_C_PACE | NP_C_SHARE)) != 0, 0) ? next_of_share(w, c)
									       : NP_SEND;
}

static const struct np_steps request_steps = {
	.first = NP_SEND,
	.ahead = request_ahead,
	.sent = request_sent,
	.arrived = request_arrived,
	.ended = request_ended,
	.failed = request_failed,
};

NP_SYNC_LOOP(request_sync, request_steps)

/* --- requests of an open loop ----------------------------------------------------------------- */

/* np_steps.sent. No step of an open loop leads to a request: the engine sends what is due. */
static enum np_need
open_sent(struct np_worker *w, struct np_conn *c, size_t n)
{
	if (np_open_is_counted(w, c->since_ns)) {
		w->sends++;
		c->sent += w->send_size;
	}
	w->in_flight++;
	np_ids_sent(c->ids, c->since_ns);
	c->number = np_ids_next(c->ids);
	return NP_RECV;
}

/* np_steps.arrived: count it if it answers a request in flight. */
static enum np_need
open_arrived(struct np_worker *w, struct np_conn *c, const char *buf, size_t n)
{
	uint64_t due_ns;

	if (np_ids_answers(c->ids, buf, n, &due_ns)) {
		(void)np_open_answered(w, c, due_ns, np_now());
	} else {
		wait_longer(w, c->ids);
	}
	return NP_RECV;
}

/* Give up the requests that were sent until then. Returns how many: not those of the warm-up. */
static uint32_t
open_give_up(struct np_worker *w, struct np_conn *c, uint64_t sent_until_ns)
{
	uint32_t lost;

	w->in_flight -= np_ids_give_up(c->ids, w->open->opens_ns - 1, sent_until_ns);
	lost = np_ids_give_up(c->ids, UINT64_MAX, sent_until_ns);
	w->in_flight -= lost;
	c->lost += lost;
	np_add(&w->count->lost, lost);
	return lost;
}

/* np_steps.failed. EINTR is the time-out: give up the requests that were sent too long ago. */
static enum np_need
open_failed(struct np_worker *w, struct np_conn *c, enum np_need need, int error)
{
	if (np_delivers(w->run->plan->transport) || error != EINTR) {
		return np_step_failed(w, c, need, error);
	}
	if (need == NP_RECV && !np_stopped(&w->stop)) {
		np_open_lost(w, open_give_up(w, c, np_now() - w->timeout_ns));
	}
	return need;
}

static const struct np_steps open_steps = {
	.first = NP_RECV,
	.sent = open_sent,
	.arrived = open_arrived,
	.ended = request_ended,
	.failed = open_failed,
};

/* Count as lost the requests that the drain awaited for a time-out; the histograms have them. */
static void
open_settle(struct np_worker *w)
{
	bool waited = w->open->until_ns >= w->ended_ns + w->timeout_ns;
	uint64_t until_ns = waited ? UINT64_MAX : np_excess(np_now(), w->timeout_ns);

	NP_EACH_CONN (c, w) {
		(void)open_give_up(w, c, until_ns);
	}
}

/* Set what the loop did not count: with one in flight, sends and transactions. */
static void
request_settle(struct np_worker *w)
{
	uint64_t sends = w->sends;

	if (w->open != NULL && w->timeout_ns > 0) {
		open_settle(w);
	}
	NP_EACH_CONN (c, w) {
		bool is_in_flight = (c->need & ~(unsigned)NP_PART) == NP_RECV;

		if (w->depth > 1) {
			continue;
		}
		/* All but the last are answered or given up; the drain needs its number. */
		sends += c->number - c->before;
		c->transactions = c->number - c->before - c->lost - is_in_flight;
		if (c->ids != NULL) {
			c->ids->next = c->number;
		}
		if (c->ids != NULL && is_in_flight) {
			c->ids->slots[(c->number - 1) & c->ids->slot_mask].number_plus_1 =
			    c->number;
		}
	}
	settle(w, sends);
	np_stamps_end(w);
}

/* np_side.setup: ids, the requests in flight, the time-out of a response, and the rings. */
static int
request_setup(struct np_worker *w, struct np_err *err)
{
	const struct np_plan *p = w->run->plan;
	bool many = p->burst > 0 || p->rate > 0;

	w->depth = p->burst + 1;
	if (p->rate > 0) { /* requests beyond this depth wait until there is room */
		w->depth = np_id_place(p).width == 1
			       ? NP_IDS_NARROW_DEPTH
			       : (uint32_t)np_max(OPEN_DEPTH / p->flows, OPEN_DEPTH_LEAST);
	}
	w->steps = p->rate > 0 ? &open_steps : w->steps;
	if (np_ids_used(p)) {
		w->id = np_id_place(p);
		w->codec |= many ? NP_C_MANY_IDS : NP_C_ID;
	}
	for (uint32_t i = 0; i < w->conns && (np_ids_used(p) || many); i++) {
		w->conn[i].ids = np_ids_new(w->id, w->depth, w->run->conns, w->count, err);
		if (w->conn[i].ids == NULL) {
			return err->code;
		}
	}
	if (np_stamps_make(w, err) != NP_OK) {
		return err->code;
	}
	w->codec |= many ? NP_C_MANY : w->conns > 1 && w->budget != UINT64_MAX ? NP_C_SHARE : 0u;
	w->timeout_ns = !np_delivers(p->transport) ? p->timeout_ms * NP_MSEC : 0;
	if (np_worker_send_ring(w, p->request, false, err) != NP_OK ||
	    np_worker_recv_ring(w, p->response, false, err) != NP_OK) {
		return err->code;
	}
	/* A datagram is a response if it has room for the id; without ids, if it is not empty. */
	w->whole = w->id.width > 0              ? w->id.at + w->id.width
		   : !np_delivers(p->transport) ? 1
						: w->recv_size;
	return NP_OK;
}

/* np_side.granted: do without ids if the far end sends none back. */
static void
request_granted(struct np_worker *w, bool ids)
{
	if (ids || w->id.width == 0) {
		return;
	}
	w->codec &= ~(unsigned)(NP_C_ID | NP_C_MANY_IDS);
	w->whole = 1; /* any datagram is a response */
	w->id.width = 0;
	for (uint32_t i = 0; i < w->conns && w->conn[i].ids != NULL; i++) {
		w->conn[i].ids->place.width = 0;
	}
}

/* Read the responses that are in the sockets. Returns how many. */
static uint64_t
read_left(struct np_worker *w, uint64_t until)
{
	uint64_t responses = 0;

	NP_EACH_CONN (c, w) {
		uint64_t sent_ns;
		char *buf;
		ssize_t n;

		/* 0 bytes: a connection is closed; a datagram is an end mark. */
		while (np_now() < until && (n = np_io_left(w, c, &buf)) >= 0 &&
		       (n > 0 || !w->run->plan->transport->connected)) {
			if (n > 0 && w->id.width > 0) {
				np_ids_answers(c->ids, buf, (size_t)n, &sent_ns);
			}
			responses += n > 0;
		}
	}
	return responses;
}

/*
 * Count surplus responses that are still in the sockets. The far end has sent its results, so it
 * has sent all its responses; those to requests in flight at the end are not surplus. Without ids
 * the oldest of several requests gets each response: those still without one then were lost.
 */
static void
request_drain(struct np_worker *w)
{
	struct np_counters *count = w->count;
	const struct np_run *run = w->run;
	uint64_t done = np_get(&count->transactions), ms = 0;
	uint64_t in_flight = np_get(&count->sends) - done - np_get(&count->lost);
	uint64_t responses = np_get(&count->surplus);
	struct pollfd more = { .fd = w->conn->fd, .events = POLLIN };
	bool guesses =
	    w->id.width == 0 && w->depth > 1 && !run->plan->no_control && !np_abandoned(&w->stop);

	if (np_delivers(w->run->plan->transport) || w->conn->fd < 0) {
		return;
	}
	/* Without a control connection, wait for a response as long as two took on average. */
	if (run->plan->no_control && done > 0) {
		ms =
		    np_min(2 * (run->window.ended_ns - run->window.started_ns) / done / NP_MSEC + 1,
			   DRAIN_MS);
	}
	poll(&more, 1, (int)ms);
	responses += read_left(w, np_deadline(DRAIN_MS * NP_MSEC));
	if (guesses && responses < in_flight) { /* the last may come a little behind the results */
		poll(NULL, 0, DRAIN_MS / 2);
		responses += read_left(w, np_deadline(DRAIN_MS * NP_MSEC));
	}
	if (w->id.width == 0) {
		np_set(&count->surplus, np_excess(responses, in_flight));
		np_add(&count->lost, guesses ? np_excess(in_flight, responses) : 0);
	}
}

/* np_side.nudge. Unread responses in UNIX datagrams block the far end in a send: discard them. */
static void
request_nudge(struct np_run *run)
{
	const struct np_transport *t = run->plan->transport;

	for (uint32_t i = 0; i < run->conns && t->reliable && !t->connected; i++) {
		np_sock_forget(run->conn[i].fd);
	}
	np_stream_nudge(run);
}

/* --- responses -------------------------------------------------------------------------------- */

/* np_steps.arrived: a request. Its response goes to its source, with its id. */
NP_LOOP_BODY enum np_need
respond_arrived(struct np_worker *w, struct np_conn *c, const char *buf, size_t n)
{
	w->to_len = w->from_len;
	if (w->id.width > 0) {
		c->number = np_id_read(w->id, buf);
	}
	return NP_SEND;
}

/* np_steps.sent: a response, which completes a transaction. */
NP_LOOP_BODY enum np_need
respond_sent(struct np_worker *w, struct np_conn *c, size_t n)
{
	uint64_t done = np_add(&w->count->transactions, 1);

	c->transactions++;
	return np_paced(w, c, __builtin_expect(done < w->budget, 1) ? NP_RECV : NP_OVER);
}

/* A refused response datagram is lost, which the requester notices; one too long is an error. */
static enum np_need
respond_failed(struct np_worker *w, struct np_conn *c, enum np_need need, int error)
{
	bool datagram = !w->run->plan->transport->connected;

	if (datagram && need == NP_SEND && error != EMSGSIZE && error != EINTR) {
		return NP_RECV;
	}
	return np_step_failed(w, c, need, error);
}

static const struct np_steps respond_steps = {
	.first = NP_RECV,
	.answers = true,
	.sent = respond_sent,
	.arrived = respond_arrived,
	.ended = np_step_hung_up,
	.failed = respond_failed,
};

NP_SYNC_LOOP(respond_sync, respond_steps)

/* np_side.settle: each transaction was one send. */
static void
respond_settle(struct np_worker *w)
{
	settle(w, np_get(&w->count->transactions));
	np_stamps_end(w);
}

/* Does only the count of requests end the test, as the client sends no end mark? */
static bool
ends_at_count(const struct np_plan *p)
{
	return p->no_end_mark && p->length < 0;
}

/*
 * The last response of a test by count may be lost; then the client repeats its request. Answer,
 * but not count, until no request has arrived for MOMENT_MS, at most for pad_ns.
 */
static void
answer_repeats(struct np_worker *w)
{
	enum { MOMENT_MS = 500 };
	uint64_t until = np_deadline(w->run->side->pad_ns);
	struct pollfd p = { .fd = w->conn->fd, .events = POLLIN };
	char *in = w->recv_ring.slots->buf, *out = w->send_ring.slots->buf;

	if (!ends_at_count(w->run->plan) || np_get(&w->count->transactions) < w->budget) {
		return;
	}
	while (!np_stopped(&w->stop) && np_now() < until && poll(&p, 1, MOMENT_MS) > 0) {
		struct np_addr from = { .len = sizeof(from.sa) };

		if (recvfrom(p.fd, in, w->recv_size, MSG_DONTWAIT, (struct sockaddr *)&from.sa,
			     &from.len) > 0 &&
		    np_run_accepts_from(w->run, &from)) {
			np_sys_sendto(p.fd, out, w->send_size, &from.sa, from.len);
		}
	}
}

/* np_side.setup: the address to answer, ids, the rings, and whether a count ends the test. */
static int
respond_setup(struct np_worker *w, struct np_err *err)
{
	const struct np_plan *p = w->run->plan;
	/* Where the source is received: reports have that of the first worker. */
	struct np_addr *peer = w == w->run->worker ? &w->run->end.peer : &w->peer;
	bool datagram = !p->transport->connected, lossy = !np_delivers(p->transport);

	w->id = np_id_place(p);
	w->codec |= w->id.width > 0 ? NP_C_ID : 0u;
	w->codec |= p->transport->header > 0 ? NP_C_FRAME : 0u;
	w->codec |= datagram && p->packet_info ? NP_C_PKTINFO : 0u;
	if (datagram) {
		w->to = (const struct sockaddr *)&peer->sa;
		w->from = (struct sockaddr *)&peer->sa;
	}
	if (lossy) { /* requests may be lost: an end mark ends the test, if the client sends one */
		w->budget = ends_at_count(p) ? w->budget : UINT64_MAX;
	}
	if (np_worker_recv_ring(w, p->request, false, err) != NP_OK ||
	    np_worker_send_ring(w, p->response, false, err) != NP_OK ||
	    np_stamps_make(w, err) != NP_OK) {
		return err->code;
	}
	/* One datagram is one request, whatever its size; an empty one ends the test. */
	w->whole = lossy ? 1 : w->recv_size;
	return NP_OK;
}

static const struct np_side request = {
	.setup = request_setup,
	.steps = &request_steps,
	.sync = request_sync,
	.settle = request_settle,
	.finish = np_stream_transmit_finish,
	.nudge = request_nudge,
	.granted = request_granted,
	.drain = request_drain,
};

static const struct np_side respond = {
	.setup = respond_setup,
	.steps = &respond_steps,
	.sync = respond_sync,
	.settle = respond_settle,
	.finish = answer_repeats,
	.pad_ns = 4 * NP_SEC,
};

const struct np_pattern np_pattern_rr = {
	.name = "rr",
	.words = { [NP_LEAD] = { "Send|Recv", "both", "request/response", "request" },
		   [NP_FOLLOW] = { "Send|Recv", "both", "request/response", "respond" } },
	.side = { [NP_LEAD] = &request, [NP_FOLLOW] = &respond },
	.lead_direction = NP_WD_BOTH,
	.transactions = true,
	.sized = true,
	.several = true,
	.ramps = true,
	.ids = true,
	.speaks_first = true,
};
