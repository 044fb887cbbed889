#include "bench/engine/io.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "bench/engine/calls.h"
#include "bench/run.h"
#include "bench/stamps.h"

ssize_t
np_io_left(struct np_worker *w, struct np_conn *c, char **buf)
{
	ssize_t n;

	do {
		if (w->calls != NULL) {
			n = w->calls->left(w, c, buf);
		} else {
			*buf = w->recv_ring.slots->buf;
			n = np_codec_left(w, c, *buf);
		}
	} while (n < 0 && np_io_note_icmp(w, c, NP_RECV, errno)); /* reading it clears the error */
	return n;
}

/* If a test by count has fewer transactions than connections, some have nothing to do. */
enum np_need
np_io_first_need(const struct np_worker *w, uint32_t number)
{
	const struct np_plan *p = w->run->plan;
	bool leads = p->role == NP_LEAD;

	if (leads && p->pattern->transactions && number >= w->budget) {
		return NP_OVER;
	}
	return leads && (w->codec & NP_C_PACE) != 0 ? w->steps->first | NP_HELD : w->steps->first;
}

/*
 * An error ends all, and so does the end of one connection at the sender of a stream. Transactions
 * end by their count; other connections of a follower end one by one.
 */
bool
np_io_ends_all(const struct np_worker *w)
{
	const struct np_plan *p = w->run->plan;

	if (w->error != 0 || (p->role == NP_LEAD && !p->pattern->transactions)) {
		return true;
	}
	return (p->role == NP_LEAD || p->pattern->connection_test) &&
	       np_get(&w->count->transactions) >= w->budget;
}

bool
np_io_note_icmp(const struct np_worker *w, struct np_conn *c, enum np_need need, int error)
{
	/* Errors from ICMP, see ip(7) and ipv6(7); EMSGSIZE: path MTU. */
	static const int icmp_errors[] = { ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, ENOPROTOOPT,
					   EHOSTDOWN,    ENONET,       EACCES,      EOPNOTSUPP,
					   EPROTO,       EMSGSIZE };
	enum { MOST = 16 }; /* consecutive sends: more are no ICMP errors for earlier ones */
	const struct np_plan *p = w->run->plan;
	uint64_t sent = c->number + c->transactions; /* requests or, of a responder, responses */
	bool may_be = false;

	for (size_t i = 0; i < sizeof(icmp_errors) / sizeof(icmp_errors[0]); i++) {
		may_be = may_be || error == icmp_errors[i];
	}
	/*
	 * Only of datagrams over IP (NP_ADMIT_IP), and not at a client that only sends: it has no
	 * other way to learn that its peer is not there.
	 */
	if (!may_be || p->transport->connected || p->transport->admit != NP_ADMIT_IP ||
	    (p->active && p->role == NP_LEAD && !p->pattern->transactions)) {
		return false;
	}
	c->icmp_fails = need == NP_SEND && c->icmp_at == sent ? c->icmp_fails + 1 : 1;
	c->icmp_at = sent;
	return need != NP_SEND || c->icmp_fails <= MOST;
}

enum np_need
np_io_failed(struct np_worker *w, struct np_conn *c, enum np_need need)
{
	const struct np_transport *t = w->run->plan->transport;
	enum np_need call; /* without flags */
	int error = errno;

	if (need == NP_SEND && error == EAGAIN && w->steps->answers && w->from != NULL) {
		/* Wait for room: the next receive would overwrite the address to answer. */
		struct pollfd p[2] = {
			{ .fd = c->fd, .events = POLLOUT },
			{ .fd = w->stop.wake_fd > 0 ? w->stop.wake_fd : -1, .events = POLLIN },
		};

		poll(p, 2, -1);
		return need;
	}
	if (error == EAGAIN) {
		return need | NP_BLOCKED;
	}
	call = need & ~(unsigned)NP_PART;
	if (np_io_note_icmp(w, c, call, error)) {
		return need;
	}
	/* A requester or sender of datagrams goes on in an outage of the path, to measure it. */
	if (!np_delivers(t) && w->steps->sent != NULL && !w->steps->answers &&
	    np_worker_route_is_lost(w, error)) {
		if (need != NP_SEND) {
			return need; /* receive again: the time-out will count the loss */
		}
		/* Count the datagram as sent and lost, as if the route ended beyond this host. */
		np_add(&w->count->failed, 1);
		if (!w->run->plan->pattern->transactions && (w->codec & NP_C_PACE) == 0) {
			poll(NULL, 0, 1); /* nothing else delays the next one */
		}
		return w->steps->sent(w, c, w->send_size);
	}
	if ((call == NP_RECV || call == NP_AWAIT) && np_run_has_ended(w->run, c->fd, error)) {
		return call == NP_AWAIT ? NP_CLOSE : w->steps->ended(w, c, 0);
	}
	if (call == NP_SEND && t->sends_again != NULL && t->sends_again(c->fd, error)) {
		return need;
	}
	return w->steps->failed != NULL ? w->steps->failed(w, c, need, error)
					: np_step_failed(w, c, need, error);
}

/* On a reliable transport the rest of the message follows; 0 bytes: the end of data. */
enum np_need
np_io_no_message(struct np_worker *w, struct np_conn *c)
{
	size_t n = c->part;

	if (n == 0 || !np_delivers(w->run->plan->transport)) {
		c->part = 0;
		return w->steps->ended(w, c, n);
	}
	return NP_RECV | NP_PART;
}

/*
 * Discard late responses: without ids they would be taken for answers to the next request. Works
 * only if the time-out is longer than the round trip; surplus responses are reported.
 */
static enum np_need
purge(struct np_worker *w, struct np_conn *c)
{
	char *buf;
	ssize_t n;

	while (!np_stopped(&w->stop) && (n = np_io_left(w, c, &buf)) >= 0) {
		np_add(&w->count->surplus, n > 0);
		if (n == 0 && w->run->plan->transport->connected) {
			break; /* closed: the next call reports it */
		}
	}
	return NP_SEND;
}

/* Send the rest of a message: c->part bytes are sent. Only on connections: no address. */
static enum np_need
send_rest(struct np_worker *w, struct np_conn *c, char *buf)
{
	size_t left = w->send_size - c->part;
	ssize_t n = (w->codec & NP_C_WRITE) != 0
			? np_sys_write(c->fd, buf + c->part, left)
			: np_sys_sendto(c->fd, buf + c->part, left, NULL, 0);

	if (n < 0) {
		return np_io_failed(w, c, NP_SEND | NP_PART);
	}
	c->part += (size_t)n;
	if (c->part < w->send_size) {
		return NP_SEND | NP_PART;
	}
	c->part = 0;
	return w->steps->sent(w, c, w->send_size);
}

/* Receive the rest of a message: c->part bytes are received. */
static enum np_need
recv_rest(struct np_worker *w, struct np_conn *c, char *buf)
{
	size_t size = w->recv_size - c->part;
	ssize_t n = (w->codec & NP_C_STAMPS) != 0 ? np_stamps_recv_rest(w, c, buf + c->part, size)
						  : np_sys_recv(c->fd, buf + c->part, size, 0);

	if (n < 0) {
		return np_io_failed(w, c, NP_RECV | NP_PART);
	}
	if (n == 0) {
		return w->steps->ended(w, c, 0);
	}
	w->more++;
	c->part += (size_t)n;
	if (c->part < w->whole) {
		return NP_RECV | NP_PART;
	}
	c->part = 0;
	return w->steps->arrived(w, c, buf, w->whole);
}

/* Begin an operation; give it back for NP_OVER, which only waited for its last interval. */
static enum np_need
begin(struct np_worker *w, struct np_conn *c, enum np_need need, uint64_t now)
{
	need &= ~(unsigned)NP_HELD;
	w->load.allowed += need == NP_OVER;
	c->since_ns = now;
	return need;
}

enum np_need
np_io_wait_held(struct np_worker *w, struct np_conn *c, enum np_need need)
{
	return np_load_wait(w) ? begin(w, c, need, np_now()) : need;
}

bool
np_io_begins(struct np_worker *w, struct np_conn *c)
{
	uint64_t now = np_now();

	if (!np_load_may(&w->load, now)) {
		return false;
	}
	c->need = begin(w, c, c->need, now);
	return true;
}

struct np_conn *
np_io_next_due(struct np_worker *w, uint32_t *turn, uint32_t *begun)
{
	enum { OPEN_MOST = 64 }; /* operations of an open loop that one call begins */

	if (w->load.is_open) {
		return ++*begun > OPEN_MOST ? NULL : w->load.kind->next(w, turn);
	}
	if (++*begun > w->conns + 1) { /* more than one each: handle events first */
		np_load_block(&w->load, np_now());
		return NULL;
	}
	for (uint32_t i = 0; i < w->conns; i++) {
		struct np_conn *c = &w->conn[*turn];
		bool is_held = (c->need & NP_HELD) != 0;

		if (is_held && !np_io_begins(w, c)) {
			return NULL;
		}
		*turn = *turn + 1 < w->conns ? *turn + 1 : 0;
		if (is_held) {
			return c;
		}
	}
	np_load_unblock(&w->load, np_now()); /* no connection waits for the load */
	return NULL;
}

enum np_need
np_io_other(struct np_worker *w, struct np_conn *c, enum np_need need, const struct np_slot *slot)
{
	if ((need & NP_HELD) != 0) {
		return np_io_wait_held(w, c, need);
	}
	if ((need & NP_BLOCKED) != 0) {
		w->error = EAGAIN; /* a blocking call must not return this */
		return NP_OVER;
	}
	switch ((int)need) {
	case NP_SEND | NP_PART:
		return send_rest(w, c, slot->buf);
	case NP_RECV | NP_PART:
		return recv_rest(w, c, slot->buf);
	case NP_PURGE:
		return purge(w, c);
	default:
		return NP_OVER;
	}
}
