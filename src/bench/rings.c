/*
 * The buffers of a worker: how many, how large, and what memory they take (np_run_bytes()).
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/ring.h"
#include "bench/engine/engine.h"
#include "bench/run.h"
#include "bench/sequence.h"
#include "bench/stamps.h"
#include "bench/transport/endpoint.h"

enum { DATAGRAM_MAX = 65536 };

/*
 * netperf's rule: as many buffers as fill the socket buffer and one more, at least two. An engine
 * may need more.
 */
static size_t
ring_width(const struct np_plan *p, uint32_t asked, int sockbuf, size_t size, bool stream)
{
	const struct np_engine *e = np_engine_of(p);
	uint32_t least = e->width != NULL ? e->width(p) : 1;

	if (asked == 0) {
		asked = stream && sockbuf > 0 ? (uint32_t)((size_t)sockbuf / size + 1) : 1;
	}
	least = stream && least < 2 ? 2 : least;
	return asked < least ? least : asked;
}

/*
 * Bytes of one call: what was asked for, and is no less than the transport's least, else the socket
 * buffer's size up to the limits, 0: none.
 */
static size_t
call_size(const struct np_transport *t, int32_t asked, int sockbuf, size_t limit,
	  size_t other_limit)
{
	size_t size = sockbuf > 0 ? (size_t)sockbuf : 4096;

	if (asked > 0) {
		return (size_t)(asked < t->min_message ? t->min_message : asked);
	}
	size = limit > 0 && size > limit ? limit : size;
	return other_limit > 0 && size > other_limit ? other_limit : size;
}

/* A ring, and the bytes of a call that goes by its buffers. */
struct shape {
	size_t width, size, call;
};

static struct shape
send_shape(const struct np_plan *p, const struct np_terms *terms, int32_t asked, int sndbuf,
	   bool stream)
{
	size_t call = call_size(p->transport, asked, sndbuf, (size_t)p->transport->max_message,
				terms->call_max);

	return (struct shape){ ring_width(p, p->near.call.send_width, sndbuf, call, stream), call,
			       call };
}

/*
 * Unless the user says less, no datagram is cut that the far end can send: netperf receives by the
 * socket buffer's size, and has cut ones count as what is left of them. Of many buffers none is
 * larger than a datagram of the Internet can be.
 */
static struct shape
recv_shape(const struct np_plan *p, const struct np_terms *terms, int32_t asked, int rcvbuf,
	   bool stream)
{
	const struct np_transport *t = p->transport;
	bool many = np_engine_of(p)->width != NULL && t->bounded && t->ip_protocol != 0;
	size_t call = call_size(t, asked, rcvbuf > t->max_message ? rcvbuf : t->max_message, 0,
				terms->call_max);

	return (struct shape){ ring_width(p, p->near.call.recv_width, rcvbuf, call, stream),
			       many && call > DATAGRAM_MAX ? DATAGRAM_MAX : call, call };
}

int
np_worker_send_ring(struct np_worker *w, int32_t size, bool stream, struct np_err *err)
{
	const struct np_run *run = w->run;
	const struct np_call_plan *call = &run->plan->near.call;
	struct shape s = send_shape(run->plan, run->terms, size, run->end.sndbuf, stream);
	int rc =
	    np_ring_make(&w->send_ring, s.width, s.size, call->send_align, call->send_offset, err);

	w->send_size = s.call;
	if (rc == NP_OK && call->fill_file != NULL) {
		rc = run->terms->fill_dir > 0 ? np_ring_fill_at(&w->send_ring, run->terms->fill_dir,
								call->fill_file, err)
					      : np_ring_fill(&w->send_ring, call->fill_file, err);
	}
	return rc;
}

int
np_worker_recv_ring(struct np_worker *w, int32_t size, bool stream, struct np_err *err)
{
	const struct np_run *run = w->run;
	const struct np_call_plan *call = &run->plan->near.call;
	struct shape s = recv_shape(run->plan, run->terms, size, run->end.rcvbuf, stream);

	w->recv_size = w->whole = s.call;
	return np_ring_make(&w->recv_ring, s.width, s.size, call->recv_align, call->recv_offset,
			    err);
}

static uint64_t
send_ring_bytes(const struct np_plan *p, const struct np_terms *terms, int32_t size, int sndbuf,
		bool stream)
{
	struct shape s = send_shape(p, terms, size, sndbuf, stream);

	return np_ring_bytes(s.width, s.size, p->near.call.send_align, p->near.call.send_offset);
}

static uint64_t
recv_ring_bytes(const struct np_plan *p, const struct np_terms *terms, int32_t size, int rcvbuf,
		bool stream)
{
	struct shape s = recv_shape(p, terms, size, rcvbuf, stream);

	return np_ring_bytes(s.width, s.size, p->near.call.recv_align, p->near.call.recv_offset);
}

/* The sizes that the socket buffers would have. */
static int
try_buffers(const struct np_plan *p, const struct np_terms *terms, int *sndbuf, int *rcvbuf,
	    struct np_err *err)
{
	const struct np_transport *t = p->transport;
	struct np_sockopts opts = { .count = 0 };
	int fd;

	np_endpoint_ask_buffers(p, &opts);
	if (terms->eth != NULL) { /* another one may not be had any more */
		if (np_sockopts_apply(&opts, terms->eth->fd, err) != NP_OK) {
			return err->code;
		}
		*sndbuf = np_sock_int(terms->eth->fd, SOL_SOCKET, SO_SNDBUF);
		*rcvbuf = np_sock_int(terms->eth->fd, SOL_SOCKET, SO_RCVBUF);
		return NP_OK;
	}
	fd = np_sock_open(np_plan_family(p), t->socktype, t->protocol, &opts, NULL, err);
	if (fd < 0) {
		np_endpoint_say_missing(t, err);
		return err->code;
	}
	np_endpoint_buffers(t, fd, sndbuf, rcvbuf);
	close(fd);
	return NP_OK;
}

/* Of the rings. */
static int
ring_bytes(const struct np_plan *plan, const struct np_terms *terms, uint64_t *bytes,
	   struct np_err *err)
{
	const struct np_pattern *t = plan->pattern;
	int sndbuf = 0, rcvbuf = 0;
	uint64_t in;

	*bytes = 0;
	if (t->sized) {
		in = recv_ring_bytes(
		    plan, terms, plan->role == NP_LEAD ? plan->response : plan->request, 0, false);
		*bytes = send_ring_bytes(
		    plan, terms, plan->role == NP_LEAD ? plan->request : plan->response, 0, false);
		in += plan->stations > 0 ? sizeof(struct np_stamps) : 0;
		*bytes = in > UINT64_MAX - *bytes ? UINT64_MAX : in + *bytes;
		return NP_OK;
	}
	if (t->transactions) {
		return NP_OK; /* connections alone, that carry nothing */
	}
	if (try_buffers(plan, terms, &sndbuf, &rcvbuf, err) != NP_OK) {
		return err->code;
	}
	if (plan->role == NP_LEAD) {
		*bytes = send_ring_bytes(plan, terms, plan->near.call.send_size, sndbuf, true);
		return NP_OK;
	}
	*bytes = recv_ring_bytes(plan, terms, plan->near.call.recv_size, rcvbuf, true);
	if (np_sequence_wanted(plan) &&
	    __builtin_add_overflow(*bytes, np_plan_worker_flows(plan) * np_sequence_bytes(plan),
				   bytes)) {
		*bytes = UINT64_MAX;
	}
	return NP_OK;
}

int
np_run_bytes(const struct np_plan *plan, const struct np_terms *terms, uint64_t *bytes,
	     struct np_err *err)
{
	static const struct np_terms no_terms;
	/* A thread's stack, too, as sessions have them. */
	uint64_t each = sizeof(struct np_worker) + sizeof(struct np_hist) + (512 << 10), conns;
	const struct np_engine *e = np_engine_of(plan);

	if (ring_bytes(plan, terms != NULL ? terms : &no_terms, bytes, err) != NP_OK) {
		return err->code;
	}
	if (e->bytes != NULL && __builtin_add_overflow(*bytes, e->bytes(plan), bytes)) {
		*bytes = UINT64_MAX;
	}
	conns = sizeof(struct np_conn) * (uint64_t)plan->flows;
	/* What one worker has beside its rings a session takes anyhow. */
	if (__builtin_mul_overflow(*bytes, np_plan_workers(plan), bytes) ||
	    __builtin_add_overflow(*bytes, conns + each * (np_plan_workers(plan) - 1), bytes)) {
		*bytes = UINT64_MAX;
	}
	return NP_OK;
}
