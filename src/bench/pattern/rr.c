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
left(struct np_run *run, int rc)
{
	return rc == NP_LEAVE ? (run->hung_up ? -ECONNRESET : 0) : rc;
}

void
np_rr_settle(struct np_run *run, uint64_t sends, uint64_t receives)
{
	np_show(&run->worker.count->sends, sends);
	np_show(&run->worker.count->receives, receives);
	np_show(&run->worker.count->sent, sends * run->worker.send_size);
	np_show(&run->worker.count->received,
		np_seen(&run->worker.count->transactions) * run->worker.recv_size);
}

NP_LOOP_BODY int
request_stream(struct np_run *run, const bool extras)
{
	const struct np_slot *out = run->worker.send_ring.slots, *in = run->worker.recv_ring.slots;
	uint64_t done = 0, more = 0, under_way = 0;
	uint64_t then = run->window.started_ns;
	int rc = 0;

	while (!np_stopped(run->stop) && done < run->worker.budget) {
		uint64_t now;

		if ((rc = np_message_send(run, &run->conn->fd, out->buf, run->worker.send_size,
					  extras)) != 0) {
			break;
		}
		rc = np_message_recv(run, &run->conn->fd, in->buf, run->worker.recv_size, &more,
				     extras);
		if (rc != 0) {
			under_way = 1; /* its request has been sent */
			break;
		}
		now = np_now();
		np_hist_record(run->worker.hist, now - then);
		then = now;
		np_show(&run->worker.count->transactions, ++done);
		out = out->next;
		in = in->next;
		if (extras && np_pace(run)) {
			then = np_now();
		}
	}
	np_rr_settle(run, done + under_way, done + more);
	return left(run, rc);
}

static int
request_stream_plain(struct np_run *run)
{
	return request_stream(run, false);
}

static int
request_stream_extras(struct np_run *run)
{
	np_pace_begin(run);
	return request_stream(run, true);
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
request_burst(struct np_run *run, const bool extras)
{
	struct in_flight *q = run->worker.state;
	const struct np_slot *out = run->worker.send_ring.slots, *in = run->worker.recv_ring.slots;
	uint64_t done = 0, sends = 0, more = 0;
	uint64_t now = run->window.started_ns;
	int rc = 0;

	while (!np_stopped(run->stop) && done < run->worker.budget) {
		while (q->count < q->size && sends < run->worker.budget && rc == 0) {
			if ((rc = np_message_send(run, &run->conn->fd, out->buf,
						  run->worker.send_size, extras)) == 0) {
				in_flight_push(q, now);
				sends++;
				out = out->next;
				now = q->count < q->size ? np_now() : now;
			}
		}
		if (rc != 0 || (rc = np_message_recv(run, &run->conn->fd, in->buf,
						     run->worker.recv_size, &more, extras)) != 0) {
			break;
		}
		now = np_now();
		np_hist_record(run->worker.hist, now - in_flight_pop(q));
		np_show(&run->worker.count->transactions, ++done);
		in = in->next;
		if (extras && np_pace(run)) {
			now = np_now();
		}
	}
	np_rr_settle(run, sends, done + more);
	return left(run, rc);
}

static int
request_burst_plain(struct np_run *run)
{
	return request_burst(run, false);
}

static int
request_burst_extras(struct np_run *run)
{
	np_pace_begin(run);
	return request_burst(run, true);
}

/*
 * Late responses must not be taken for answers to what is sent next. One that comes later still is:
 * these responses carry nothing to tell them apart by, so the time-out must be longer than the
 * round trip. What came beyond what was asked for is told in the result.
 */
static void
discard_late(struct np_run *run)
{
	uint64_t surplus = np_seen(&run->worker.count->surplus);
	ssize_t n;

	while (!np_stopped(run->stop) && (n = recv(run->conn->fd, run->worker.recv_ring.slots->buf,
						   run->worker.recv_size, MSG_DONTWAIT)) >= 0) {
		surplus += n > 0;
	}
	np_show(&run->worker.count->surplus, surplus);
}

/*
 * Give up the requests in flight, count them, and start afresh. The controller interrupts a wait
 * that has lasted run->worker.patience_ns: a time-out of the socket's own (SO_RCVTIMEO) would arm a
 * timer for every transaction. A connected socket may also bring the news of an ICMP message.
 * Returns 0 or -errno.
 */
static int
give_up(struct np_run *run, uint64_t in_flight, uint64_t *lost)
{
	if (errno != EINTR && errno != ECONNREFUSED) {
		return -errno;
	}
	if (!np_stopped(run->stop)) {
		*lost += in_flight;
		np_show(&run->worker.count->lost, *lost);
		discard_late(run);
	}
	return 0;
}

NP_LOOP_BODY ssize_t
send_request(struct np_run *run, char *buf, const void *to, socklen_t to_len, const bool extras)
{
	return extras ? np_extra_send(run, run->conn->fd, buf, run->worker.send_size, to, to_len)
		      : np_sys_sendto(run->conn->fd, buf, run->worker.send_size, to, to_len);
}

NP_LOOP_BODY int
request_datagrams(struct np_run *run, const void *to, socklen_t to_len, const bool extras)
{
	const struct np_slot *out = run->worker.send_ring.slots, *in = run->worker.recv_ring.slots;
	uint64_t done = 0, sends = 0, lost = 0;
	uint64_t then = run->window.started_ns;
	int rc = 0;

	while (!np_stopped(run->stop) && done < run->worker.budget) {
		if (send_request(run, out->buf, to, to_len, extras) < 0) {
			if ((rc = give_up(run, 0, &lost)) != 0) {
				break;
			}
			continue;
		}
		sends++;
		if (__builtin_expect(np_rr_recv_response(run, in->buf, extras) > 0, 1)) {
			uint64_t now = np_now();

			np_hist_record(run->worker.hist, now - then);
			then = now;
			np_show(&run->worker.count->transactions, ++done);
			out = out->next;
			in = in->next;
			if (extras && np_pace(run)) {
				then = np_now();
			}
			continue;
		}
		if ((rc = give_up(run, 1, &lost)) != 0) {
			break;
		}
		then = np_now();
	}
	np_rr_settle(run, sends, done);
	return rc;
}

static int
request_connected(struct np_run *run)
{
	return request_datagrams(run, NULL, 0, false);
}

static int
request_to(struct np_run *run)
{
	return request_datagrams(run, &run->end.peer.sa, run->end.peer.len, false);
}

static int
request_datagrams_extras(struct np_run *run)
{
	bool named = !np_run_connected(run);

	np_pace_begin(run);
	return request_datagrams(run, named ? &run->end.peer.sa : NULL,
				 named ? run->end.peer.len : 0, true);
}

/* Datagrams with several requests in flight: a time-out gives up all of them. */
NP_LOOP_BODY int
request_datagram_burst(struct np_run *run, const bool extras)
{
	struct in_flight *q = run->worker.state;
	const void *to = np_run_connected(run) ? NULL : &run->end.peer.sa;
	socklen_t to_len = np_run_connected(run) ? 0 : run->end.peer.len;
	uint64_t done = 0, sends = 0, lost = 0;
	int rc = 0;

	while (!np_stopped(run->stop) && done < run->worker.budget && rc == 0) {
		while (q->count < q->size && done + q->count < run->worker.budget &&
		       send_request(run, run->worker.send_ring.slots->buf, to, to_len, extras) >=
			   0) {
			in_flight_push(q, np_now());
			sends++;
		}
		if (q->count > 0 &&
		    np_rr_recv_response(run, run->worker.recv_ring.slots->buf, extras) > 0) {
			np_hist_record(run->worker.hist, np_now() - in_flight_pop(q));
			np_show(&run->worker.count->transactions, ++done);
			if (extras) {
				np_pace(run);
			}
			continue;
		}
		rc = give_up(run, q->count, &lost);
		q->count = 0;
	}
	np_rr_settle(run, sends, done);
	return rc;
}

static int
request_datagram_burst_plain(struct np_run *run)
{
	return request_datagram_burst(run, false);
}

static int
request_datagram_burst_extras(struct np_run *run)
{
	np_pace_begin(run);
	return request_datagram_burst(run, true);
}

static void
choose_request_loop(struct np_run *run)
{
	const struct np_plan *p = run->plan;
	bool datagram = !p->transport->connected, extras = np_extra_wanted(run);

	if (run->worker.ids != NULL) {
		np_rr_choose_ids_loop(run, extras);
	} else if (p->burst > 0 && datagram) {
		run->worker.loop =
		    extras ? request_datagram_burst_extras : request_datagram_burst_plain;
	} else if (p->burst > 0) {
		run->worker.loop = extras ? request_burst_extras : request_burst_plain;
	} else if (datagram && extras) {
		run->worker.loop = request_datagrams_extras;
	} else if (datagram) {
		run->worker.loop = np_run_connected(run) ? request_connected : request_to;
	} else {
		run->worker.loop = extras ? request_stream_extras : request_stream_plain;
	}
}

/* Ids, and what stands in for them where the far end has none: for a burst the times of its
 * requests. */
static int
request_state(struct np_run *run, struct np_err *err)
{
	const struct np_plan *p = run->plan;
	struct in_flight *q;

	if (np_ids_used(p)) {
		run->worker.ids = np_ids_new(np_id_place(p), p->burst + 1, err);
		if (run->worker.ids == NULL) {
			return err->code;
		}
	}
	if (p->burst > 0) {
		q = calloc(1, sizeof(*q) + (p->burst + 1) * sizeof(q->sent_ns[0]));
		if (q == NULL) {
			return np_fail(err, NP_ESYS, ENOMEM, "a burst of %u requests", p->burst);
		}
		q->size = p->burst + 1;
		run->worker.state = q;
	}
	return NP_OK;
}

static int
request_setup(struct np_run *run, struct np_err *err)
{
	const struct np_plan *p = run->plan;

	if (request_state(run, err) != NP_OK) {
		return err->code;
	}
	choose_request_loop(run);
	run->worker.patience_ns = !p->transport->connected ? p->timeout_ms * NP_MSEC : 0;
	if (np_run_send_ring(run, p->request, false, err) != NP_OK) {
		return err->code;
	}
	return np_run_recv_ring(run, p->response, false, err);
}

static void
request_without_ids(struct np_run *run)
{
	free(run->worker.ids);
	run->worker.ids = NULL;
	choose_request_loop(run);
}

static void
request_release(struct np_run *run)
{
	free(run->worker.state);
	free(run->worker.ids);
	run->worker.state = NULL;
	run->worker.ids = NULL;
}

NP_LOOP_BODY int
respond_stream(struct np_run *run, const bool extras)
{
	const struct np_slot *out = run->worker.send_ring.slots, *in = run->worker.recv_ring.slots;
	uint64_t done = 0, more = 0;
	int rc = 0;

	while (!np_stopped(run->stop) && done < run->worker.budget) {
		if ((rc = np_message_recv(run, &run->conn->fd, in->buf, run->worker.recv_size,
					  &more, extras)) != 0 ||
		    (rc = np_message_send(run, &run->conn->fd, out->buf, run->worker.send_size,
					  extras)) != 0) {
			break;
		}
		np_show(&run->worker.count->transactions, ++done);
		out = out->next;
		in = in->next;
		if (extras) {
			np_pace(run);
		}
	}
	np_rr_settle(run, done, done + more);
	return rc == NP_LEAVE ? 0 : rc;
}

static int
respond_stream_plain(struct np_run *run)
{
	return respond_stream(run, false);
}

static int
respond_stream_extras(struct np_run *run)
{
	np_pace_begin(run);
	return respond_stream(run, true);
}

/*
 * One datagram is one request, whatever its size; an empty one ends the test. An addressed one is
 * answered from where it was sent to.
 */
NP_LOOP_BODY ssize_t
recv_request(struct np_run *run, char *buf, struct np_pktinfo *info, const bool addressed,
	     const bool extras, const bool framed)
{
	ssize_t n;

	if (extras) {
		np_extra_touch(run, buf, run->worker.recv_size);
	}
	if (addressed) {
		return np_pktinfo_recv(run, buf, run->worker.recv_size, info);
	}
	info->from_len = sizeof(run->end.peer.sa);
	n = np_sys_recvfrom(run->conn->fd, buf, run->worker.recv_size, &run->end.peer.sa,
			    &info->from_len);
	return framed && n > 0 && np_eth_is_end(buf) ? 0 : n;
}

/* The response's id, where there is one, is its request's. */
NP_LOOP_BODY ssize_t
send_response(struct np_run *run, const char *request, char *buf, struct np_pktinfo *info,
	      const bool addressed, const bool extras)
{
	if (extras) {
		np_extra_touch(run, buf, run->worker.send_size);
	}
	if (run->worker.id.width > 0) {
		np_id_copy(run->worker.id, request, buf);
	}
	if (addressed) {
		return np_pktinfo_send(run, buf, run->worker.send_size, info);
	}
	return extras ? np_extra_put(run, run->conn->fd, buf, run->worker.send_size,
				     &run->end.peer.sa, info->from_len)
		      : np_sys_sendto(run->conn->fd, buf, run->worker.send_size, &run->end.peer.sa,
				      info->from_len);
}

NP_LOOP_BODY int
respond_datagrams(struct np_run *run, const bool addressed, const bool extras, const bool framed,
		  const bool counted)
{
	const struct np_slot *out = run->worker.send_ring.slots, *in = run->worker.recv_ring.slots;
	struct np_pktinfo info;
	uint64_t done = 0;
	int rc = 0;

	while (!np_stopped(run->stop) && !(counted && done == run->worker.budget)) {
		ssize_t n = recv_request(run, in->buf, &info, addressed, extras, framed);

		if (n > 0) {
			n = send_response(run, in->buf, out->buf, &info, addressed, extras);
			if (n < 0 && errno == EMSGSIZE) {
				rc = -errno;
				break;
			}
			/* Any other refusal is a lost response: the requester will notice. */
			done += n > 0;
			np_show(&run->worker.count->transactions, done);
			out = out->next;
			in = in->next;
			if (extras) {
				np_pace(run);
			}
		} else if (n == 0) {
			run->hung_up = true;
			break;
		} else if (errno != EINTR && errno != ECONNREFUSED) {
			rc = -errno;
			break;
		}
	}
	np_rr_settle(run, done, done);
	return rc;
}

static int
respond_datagrams_plain(struct np_run *run)
{
	return respond_datagrams(run, false, false, false, false);
}

static int
respond_datagrams_extras(struct np_run *run)
{
	np_pace_begin(run);
	return respond_datagrams(run, false, true, false, false);
}

static int
respond_addressed(struct np_run *run)
{
	np_pace_begin(run);
	return respond_datagrams(run, true, true, false, false);
}

static int
respond_frames(struct np_run *run)
{
	return respond_datagrams(run, false, false, true, false);
}

static int
respond_frames_extras(struct np_run *run)
{
	np_pace_begin(run);
	return respond_datagrams(run, false, true, true, false);
}

/* Is the count of requests all that tells the end of the test? */
static bool
ends_at_count(const struct np_run *run)
{
	return run->plan->no_end_mark && run->worker.budget != UINT64_MAX;
}

static int
respond_counted(struct np_run *run)
{
	np_pace_begin(run);
	return respond_datagrams(run, false, true, false, true);
}

/*
 * After the last response of a test that its count ends: a client that did not get it asks again.
 * Returns when no request has come for a moment, or one that does not end has asked for long
 * enough. The answers are not counted, nor is the wait.
 */
static void
answer_repeats(struct np_run *run)
{
	enum { MOMENT_MS = 500 };
	uint64_t until = np_deadline(run->side->pad_ns);
	struct pollfd p = { .fd = run->conn->fd, .events = POLLIN };
	char *in = run->worker.recv_ring.slots->buf, *out = run->worker.send_ring.slots->buf;

	if (!ends_at_count(run) || np_seen(&run->worker.count->transactions) < run->worker.budget) {
		return;
	}
	while (!np_stopped(run->stop) && np_now() < until && poll(&p, 1, MOMENT_MS) > 0) {
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);

		if (recvfrom(run->conn->fd, in, run->worker.recv_size, MSG_DONTWAIT,
			     (struct sockaddr *)&from, &len) > 0) {
			np_sys_sendto(run->conn->fd, out, run->worker.send_size, &from, len);
		}
	}
}

static int
respond_setup(struct np_run *run, struct np_err *err)
{
	bool extras = np_extra_wanted(run);

	run->worker.id = np_id_place(run->plan);
	if (ends_at_count(run)) {
		run->worker.loop = respond_counted;
	} else if (run->plan->transport->header > 0) {
		run->worker.loop = extras ? respond_frames_extras : respond_frames;
	} else if (!run->plan->transport->connected && run->plan->packet_info) {
		run->worker.loop = respond_addressed;
	} else if (!run->plan->transport->connected) {
		run->worker.loop = extras ? respond_datagrams_extras : respond_datagrams_plain;
	} else {
		run->worker.loop = extras ? respond_stream_extras : respond_stream_plain;
	}
	if (np_run_recv_ring(run, run->plan->request, false, err) != NP_OK) {
		return err->code;
	}
	return np_run_send_ring(run, run->plan->response, false, err);
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
	.ids = true,
	.speaks_first = true,
};
