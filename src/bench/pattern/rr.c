/*
 * rr: request and response over one connection, or as datagrams. A transaction is timed from before
 * its send to after the last byte of its response, by one clock read: the end of one is the start
 * of the next.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "bench/engine/syscall.h"
#include "bench/ids.h"
#include "bench/pattern/message.h"
#include "bench/pattern/rr.h"
#include "bench/pattern/stream.h"
#include "bench/transport/pktinfo.h"
#include "net/eth.h"

/* Leaving a loop: quietly when told so, else the far end closed before its time. */
static int
left(struct np_flow *f, int rc)
{
	return rc == NP_LEAVE ? (f->hung_up ? -ECONNRESET : 0) : rc;
}

void
np_rr_settle(struct np_flow *f, uint64_t sends, uint64_t receives)
{
	np_show(&f->count->sends, sends);
	np_show(&f->count->receives, receives);
	np_show(&f->count->sent, sends * f->send_size);
	np_show(&f->count->received, np_seen(&f->count->transactions) * f->recv_size);
}

NP_LOOP_BODY int
request_stream(struct np_flow *f, const bool extras)
{
	const struct np_slot *out = f->send_ring.slots, *in = f->recv_ring.slots;
	uint64_t done = 0, more = 0, under_way = 0;
	uint64_t then = f->started_ns;
	int rc = 0;

	while (!np_stopped(f->stop) && done < f->budget) {
		uint64_t now;

		if ((rc = np_message_send(f, &f->fd, out->buf, f->send_size, extras)) != 0) {
			break;
		}
		rc = np_message_recv(f, &f->fd, in->buf, f->recv_size, &more, extras);
		if (rc != 0) {
			under_way = 1; /* its request has been sent */
			break;
		}
		now = np_now();
		np_hist_record(f->hist, now - then);
		then = now;
		np_show(&f->count->transactions, ++done);
		out = out->next;
		in = in->next;
		if (extras && np_pace(f)) {
			then = np_now();
		}
	}
	np_rr_settle(f, done + under_way, done + more);
	return left(f, rc);
}

static int
request_stream_plain(struct np_flow *f)
{
	return request_stream(f, false);
}

static int
request_stream_extras(struct np_flow *f)
{
	np_pace_begin(f);
	return request_stream(f, true);
}

/* When each request in flight was sent, first in first out; one slot more than -b asks for. */
struct in_flight {
	size_t size, head, count;
	uint64_t sent_ns[];
};

static void
in_flight_push(struct in_flight *q, uint64_t now)
{
	size_t at = q->head + q->count++;

	q->sent_ns[at < q->size ? at : at - q->size] = now;
}

static uint64_t
in_flight_pop(struct in_flight *q)
{
	uint64_t then = q->sent_ns[q->head];

	q->head = q->head + 1 < q->size ? q->head + 1 : 0;
	q->count--;
	return then;
}

/* One transaction after another with `burst` more requests in flight. */
NP_LOOP_BODY int
request_burst(struct np_flow *f, const bool extras)
{
	struct in_flight *q = f->state;
	const struct np_slot *out = f->send_ring.slots, *in = f->recv_ring.slots;
	uint64_t done = 0, sends = 0, more = 0;
	uint64_t now = f->started_ns;
	int rc = 0;

	while (!np_stopped(f->stop) && done < f->budget) {
		while (q->count < q->size && sends < f->budget && rc == 0) {
			if ((rc = np_message_send(f, &f->fd, out->buf, f->send_size, extras)) ==
			    0) {
				in_flight_push(q, now);
				sends++;
				out = out->next;
				now = q->count < q->size ? np_now() : now;
			}
		}
		if (rc != 0 ||
		    (rc = np_message_recv(f, &f->fd, in->buf, f->recv_size, &more, extras)) != 0) {
			break;
		}
		now = np_now();
		np_hist_record(f->hist, now - in_flight_pop(q));
		np_show(&f->count->transactions, ++done);
		in = in->next;
		if (extras && np_pace(f)) {
			now = np_now();
		}
	}
	np_rr_settle(f, sends, done + more);
	return left(f, rc);
}

static int
request_burst_plain(struct np_flow *f)
{
	return request_burst(f, false);
}

static int
request_burst_extras(struct np_flow *f)
{
	np_pace_begin(f);
	return request_burst(f, true);
}

/*
 * Late responses must not be taken for answers to what is sent next. One that comes later still is:
 * these responses carry nothing to tell them apart by, so the time-out must be longer than the
 * round trip. What came beyond what was asked for is told in the result.
 */
static void
discard_late(struct np_flow *f)
{
	uint64_t surplus = np_seen(&f->count->surplus);
	ssize_t n;

	while (!np_stopped(f->stop) &&
	       (n = recv(f->fd, f->recv_ring.slots->buf, f->recv_size, MSG_DONTWAIT)) >= 0) {
		surplus += n > 0;
	}
	np_show(&f->count->surplus, surplus);
}

/*
 * Give up the requests in flight, count them, and start afresh. The controller interrupts a wait
 * that has lasted f->patience_ns: a time-out of the socket's own (SO_RCVTIMEO) would arm a timer
 * for every transaction. A connected socket may also bring the news of an ICMP message. Returns 0
 * or -errno.
 */
static int
give_up(struct np_flow *f, uint64_t in_flight, uint64_t *lost)
{
	if (errno != EINTR && errno != ECONNREFUSED) {
		return -errno;
	}
	if (!np_stopped(f->stop)) {
		*lost += in_flight;
		np_show(&f->count->lost, *lost);
		discard_late(f);
	}
	return 0;
}

NP_LOOP_BODY ssize_t
send_request(struct np_flow *f, char *buf, const void *to, socklen_t to_len, const bool extras)
{
	return extras ? np_extra_send(f, f->fd, buf, f->send_size, to, to_len)
		      : np_sys_sendto(f->fd, buf, f->send_size, to, to_len);
}

NP_LOOP_BODY int
request_datagrams(struct np_flow *f, const void *to, socklen_t to_len, const bool extras)
{
	const struct np_slot *out = f->send_ring.slots, *in = f->recv_ring.slots;
	uint64_t done = 0, sends = 0, lost = 0;
	uint64_t then = f->started_ns;
	int rc = 0;

	while (!np_stopped(f->stop) && done < f->budget) {
		if (send_request(f, out->buf, to, to_len, extras) < 0) {
			if ((rc = give_up(f, 0, &lost)) != 0) {
				break;
			}
			continue;
		}
		sends++;
		if (__builtin_expect(np_rr_recv_response(f, in->buf, extras) > 0, 1)) {
			uint64_t now = np_now();

			np_hist_record(f->hist, now - then);
			then = now;
			np_show(&f->count->transactions, ++done);
			out = out->next;
			in = in->next;
			if (extras && np_pace(f)) {
				then = np_now();
			}
			continue;
		}
		if ((rc = give_up(f, 1, &lost)) != 0) {
			break;
		}
		then = np_now();
	}
	np_rr_settle(f, sends, done);
	return rc;
}

static int
request_connected(struct np_flow *f)
{
	return request_datagrams(f, NULL, 0, false);
}

static int
request_to(struct np_flow *f)
{
	return request_datagrams(f, &f->peer.sa, f->peer.len, false);
}

static int
request_datagrams_extras(struct np_flow *f)
{
	bool named = !np_flow_connected(f);

	np_pace_begin(f);
	return request_datagrams(f, named ? &f->peer.sa : NULL, named ? f->peer.len : 0, true);
}

/* Datagrams with several requests in flight: a time-out gives up all of them. */
NP_LOOP_BODY int
request_datagram_burst(struct np_flow *f, const bool extras)
{
	struct in_flight *q = f->state;
	const void *to = np_flow_connected(f) ? NULL : &f->peer.sa;
	socklen_t to_len = np_flow_connected(f) ? 0 : f->peer.len;
	uint64_t done = 0, sends = 0, lost = 0;
	int rc = 0;

	while (!np_stopped(f->stop) && done < f->budget && rc == 0) {
		while (q->count < q->size && done + q->count < f->budget &&
		       send_request(f, f->send_ring.slots->buf, to, to_len, extras) >= 0) {
			in_flight_push(q, np_now());
			sends++;
		}
		if (q->count > 0 && np_rr_recv_response(f, f->recv_ring.slots->buf, extras) > 0) {
			np_hist_record(f->hist, np_now() - in_flight_pop(q));
			np_show(&f->count->transactions, ++done);
			if (extras) {
				np_pace(f);
			}
			continue;
		}
		rc = give_up(f, q->count, &lost);
		q->count = 0;
	}
	np_rr_settle(f, sends, done);
	return rc;
}

static int
request_datagram_burst_plain(struct np_flow *f)
{
	return request_datagram_burst(f, false);
}

static int
request_datagram_burst_extras(struct np_flow *f)
{
	np_pace_begin(f);
	return request_datagram_burst(f, true);
}

static void
choose_request_loop(struct np_flow *f)
{
	const struct np_params *p = f->par;
	bool datagram = p->transport->datagram, extras = np_extra_wanted(f);

	if (f->ids != NULL) {
		np_rr_choose_ids_loop(f, extras);
	} else if (p->burst > 0 && datagram) {
		f->loop = extras ? request_datagram_burst_extras : request_datagram_burst_plain;
	} else if (p->burst > 0) {
		f->loop = extras ? request_burst_extras : request_burst_plain;
	} else if (datagram && extras) {
		f->loop = request_datagrams_extras;
	} else if (datagram) {
		f->loop = np_flow_connected(f) ? request_connected : request_to;
	} else {
		f->loop = extras ? request_stream_extras : request_stream_plain;
	}
}

/* Ids, and what stands in for them where the far end has none: for a burst the times of its
 * requests. */
static int
request_state(struct np_flow *f, struct np_err *err)
{
	const struct np_params *p = f->par;
	struct in_flight *q;

	if (np_ids_used(p)) {
		f->ids = np_ids_new(np_id_place(p), p->burst + 1, err);
		if (f->ids == NULL) {
			return err->code;
		}
	}
	if (p->burst > 0) {
		q = calloc(1, sizeof(*q) + (p->burst + 1) * sizeof(q->sent_ns[0]));
		if (q == NULL) {
			return np_fail(err, NP_ESYS, ENOMEM, "a burst of %u requests", p->burst);
		}
		q->size = p->burst + 1;
		f->state = q;
	}
	return NP_OK;
}

static int
request_setup(struct np_flow *f, struct np_err *err)
{
	const struct np_params *p = f->par;

	if (request_state(f, err) != NP_OK) {
		return err->code;
	}
	choose_request_loop(f);
	f->patience_ns = p->transport->datagram ? p->timeout_ms * NP_MSEC : 0;
	if (np_flow_send_ring(f, p->request, false, err) != NP_OK) {
		return err->code;
	}
	return np_flow_recv_ring(f, p->response, false, err);
}

static void
request_without_ids(struct np_flow *f)
{
	free(f->ids);
	f->ids = NULL;
	choose_request_loop(f);
}

static void
request_release(struct np_flow *f)
{
	free(f->state);
	free(f->ids);
	f->state = NULL;
	f->ids = NULL;
}

NP_LOOP_BODY int
respond_stream(struct np_flow *f, const bool extras)
{
	const struct np_slot *out = f->send_ring.slots, *in = f->recv_ring.slots;
	uint64_t done = 0, more = 0;
	int rc = 0;

	while (!np_stopped(f->stop) && done < f->budget) {
		if ((rc = np_message_recv(f, &f->fd, in->buf, f->recv_size, &more, extras)) != 0 ||
		    (rc = np_message_send(f, &f->fd, out->buf, f->send_size, extras)) != 0) {
			break;
		}
		np_show(&f->count->transactions, ++done);
		out = out->next;
		in = in->next;
		if (extras) {
			np_pace(f);
		}
	}
	np_rr_settle(f, done, done + more);
	return rc == NP_LEAVE ? 0 : rc;
}

static int
respond_stream_plain(struct np_flow *f)
{
	return respond_stream(f, false);
}

static int
respond_stream_extras(struct np_flow *f)
{
	np_pace_begin(f);
	return respond_stream(f, true);
}

/*
 * One datagram is one request, whatever its size; an empty one ends the test. An addressed one is
 * answered from where it was sent to.
 */
NP_LOOP_BODY ssize_t
recv_request(struct np_flow *f, char *buf, struct np_pktinfo *info, const bool addressed,
	     const bool extras, const bool framed)
{
	ssize_t n;

	if (extras) {
		np_extra_touch(f, buf, f->recv_size);
	}
	if (addressed) {
		return np_pktinfo_recv(f, buf, f->recv_size, info);
	}
	info->from_len = sizeof(f->peer.sa);
	n = np_sys_recvfrom(f->fd, buf, f->recv_size, &f->peer.sa, &info->from_len);
	return framed && n > 0 && np_eth_is_end(buf) ? 0 : n;
}

/* The response's id, where there is one, is its request's. */
NP_LOOP_BODY ssize_t
send_response(struct np_flow *f, const char *request, char *buf, struct np_pktinfo *info,
	      const bool addressed, const bool extras)
{
	if (extras) {
		np_extra_touch(f, buf, f->send_size);
	}
	if (f->id.width > 0) {
		np_id_copy(f->id, request, buf);
	}
	if (addressed) {
		return np_pktinfo_send(f, buf, f->send_size, info);
	}
	return extras ? np_extra_put(f, f->fd, buf, f->send_size, &f->peer.sa, info->from_len)
		      : np_sys_sendto(f->fd, buf, f->send_size, &f->peer.sa, info->from_len);
}

NP_LOOP_BODY int
respond_datagrams(struct np_flow *f, const bool addressed, const bool extras, const bool framed,
		  const bool counted)
{
	const struct np_slot *out = f->send_ring.slots, *in = f->recv_ring.slots;
	struct np_pktinfo info;
	uint64_t done = 0;
	int rc = 0;

	while (!np_stopped(f->stop) && !(counted && done == f->budget)) {
		ssize_t n = recv_request(f, in->buf, &info, addressed, extras, framed);

		if (n > 0) {
			n = send_response(f, in->buf, out->buf, &info, addressed, extras);
			if (n < 0 && errno == EMSGSIZE) {
				rc = -errno;
				break;
			}
			/* Any other refusal is a lost response: the requester will notice. */
			done += n > 0;
			np_show(&f->count->transactions, done);
			out = out->next;
			in = in->next;
			if (extras) {
				np_pace(f);
			}
		} else if (n == 0) {
			f->hung_up = true;
			break;
		} else if (errno != EINTR && errno != ECONNREFUSED) {
			rc = -errno;
			break;
		}
	}
	np_rr_settle(f, done, done);
	return rc;
}

static int
respond_datagrams_plain(struct np_flow *f)
{
	return respond_datagrams(f, false, false, false, false);
}

static int
respond_datagrams_extras(struct np_flow *f)
{
	np_pace_begin(f);
	return respond_datagrams(f, false, true, false, false);
}

static int
respond_addressed(struct np_flow *f)
{
	np_pace_begin(f);
	return respond_datagrams(f, true, true, false, false);
}

static int
respond_frames(struct np_flow *f)
{
	return respond_datagrams(f, false, false, true, false);
}

static int
respond_frames_extras(struct np_flow *f)
{
	np_pace_begin(f);
	return respond_datagrams(f, false, true, true, false);
}

/* Is the count of requests all that tells the end of the test? */
static bool
ends_at_count(const struct np_flow *f)
{
	return f->par->no_end_mark && f->budget != UINT64_MAX;
}

static int
respond_counted(struct np_flow *f)
{
	np_pace_begin(f);
	return respond_datagrams(f, false, true, false, true);
}

/*
 * After the last response of a test that its count ends: a client that did not get it asks again.
 * Returns when no request has come for a moment, or one that does not end has asked for long
 * enough. The answers are not counted, nor is the wait.
 */
static void
answer_repeats(struct np_flow *f)
{
	enum { MOMENT_MS = 500 };
	uint64_t until = np_deadline(f->side->pad_ns);
	struct pollfd p = { .fd = f->fd, .events = POLLIN };
	char *in = f->recv_ring.slots->buf, *out = f->send_ring.slots->buf;

	if (!ends_at_count(f) || np_seen(&f->count->transactions) < f->budget) {
		return;
	}
	while (!np_stopped(f->stop) && np_now() < until && poll(&p, 1, MOMENT_MS) > 0) {
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);

		if (recvfrom(f->fd, in, f->recv_size, MSG_DONTWAIT, (struct sockaddr *)&from,
			     &len) > 0) {
			np_sys_sendto(f->fd, out, f->send_size, &from, len);
		}
	}
}

static int
respond_setup(struct np_flow *f, struct np_err *err)
{
	bool extras = np_extra_wanted(f);

	f->id = np_id_place(f->par);
	if (ends_at_count(f)) {
		f->loop = respond_counted;
	} else if (f->par->transport->header > 0) {
		f->loop = extras ? respond_frames_extras : respond_frames;
	} else if (f->par->transport->datagram && f->par->packet_info) {
		f->loop = respond_addressed;
	} else if (f->par->transport->datagram) {
		f->loop = extras ? respond_datagrams_extras : respond_datagrams_plain;
	} else {
		f->loop = extras ? respond_stream_extras : respond_stream_plain;
	}
	if (np_flow_recv_ring(f, f->par->request, false, err) != NP_OK) {
		return err->code;
	}
	return np_flow_send_ring(f, f->par->response, false, err);
}

static const struct np_side request = {
	.setup = request_setup,
	.finish = np_stream_transmit_finish,
	.nudge = np_stream_nudge,
	.without_ids = request_without_ids,
	.drain = np_rr_drain,
	.release = request_release,
};

static const struct np_side respond = {
	.setup = respond_setup,
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
};
