/* The buffers of a worker: how many, how large, and how much memory they take (np_run_bytes()). */
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "base/ring.h"
#include "base/units.h"
#include "bench/engine/engine.h"
#include "bench/run.h"
#include "bench/sequence.h"
#include "bench/stamps.h"
#include "bench/transport/endpoint.h"

enum { DATAGRAM_MAX = 65536 };

/* A ring of `width` buffers of `size` bytes, and the bytes of a call that uses one of them. */
struct shape {
	size_t width, size, call, align, offset;
};

/*
 * The size of a call is what was asked for, but at least the transport's minimum; else the socket
 * buffer's size, within limits. A ring is as wide as -W says, else one buffer; that of a stream,
 * as in netperf, one more than fill the socket buffer, at least two. An engine may need more. By
 * default, a receiver truncates no datagram that the far end can send (netperf does). If an engine
 * needs many buffers, none is larger than a datagram of IP, even if a call is.
 */
static struct shape
shape_of(const struct np_plan *p, const struct np_terms *terms, bool sends, int32_t asked,
	 int sockbuf, bool stream)
{
	const struct np_transport *t = p->transport;
	const struct np_engine *e = np_engine_of(p);
	const struct np_call_plan *c = &p->near.call;
	uint32_t width = sends ? c->send_width : c->recv_width;
	uint32_t least = e->width != NULL ? e->width(p) : 1; /* buffers */
	int32_t full = !sends && sockbuf < t->message.max ? t->message.max : sockbuf;
	size_t call = full > 0 ? (size_t)full : 4096; /* 4096: as in netperf */
	size_t limit = sends ? (size_t)t->message.max : 0;
	bool capped = !sends && e->width != NULL && t->bounded && t->ip_protocol != 0;

	if (asked > 0) { /* by -m, -M, -r */
		call = (size_t)(asked < t->message.min ? t->message.min : asked);
	} else {
		call = limit > 0 ? np_min(call, limit) : call;
		call = terms->call_max > 0 ? np_min(call, terms->call_max) : call;
	}
	if (width == 0) {
		width = stream && sockbuf > 0 ? (uint32_t)((size_t)sockbuf / call + 1) : 1;
	}
	least = stream && least < 2 ? 2 : least;
	return (struct shape){ .width = np_max(width, least),
			       .size = capped ? np_min(call, DATAGRAM_MAX) : call,
			       .call = call,
			       .align = sends ? c->send_align : c->recv_align,
			       .offset = sends ? c->send_offset : c->recv_offset };
}

int
np_worker_send_ring(struct np_worker *w, int32_t size, bool stream, struct np_err *err)
{
	const struct np_run *run = w->run;
	const struct np_call_plan *call = &run->plan->near.call;
	struct shape s = shape_of(run->plan, run->terms, true, size, run->end.sndbuf, stream);
	int rc = np_ring_make(&w->send_ring, s.width, s.size, s.align, s.offset, err);

	w->send_size = s.call;
	if (rc == NP_OK && np_fills_zeros(call)) {
		const char *why = np_plan_no_zeros(run->plan); /* a client has checked it before */

		return why == NULL
			   ? np_ring_zero(&w->send_ring, s.align, s.offset, err)
			   : np_fail(err, NP_EUNSUP, EINVAL, "-F %s: %s", NP_FILL_ZEROS, why);
	}
	if (rc == NP_OK && call->fill_file != NULL) {
		rc = np_ring_fill(&w->send_ring, run->terms->fill_dir, call->fill_file, err);
	}
	return rc;
}

int
np_worker_recv_ring(struct np_worker *w, int32_t size, bool stream, struct np_err *err)
{
	const struct np_run *run = w->run;
	struct shape s = shape_of(run->plan, run->terms, false, size, run->end.rcvbuf, stream);

	w->recv_size = w->whole = s.call;
	return np_ring_make(&w->recv_ring, s.width, s.size, s.align, s.offset, err);
}

static uint64_t
bytes_of(struct shape s)
{
	return np_ring_bytes(s.width, s.size, s.align, s.offset);
}

/* a + b, at most UINT64_MAX. */
static uint64_t
sum(uint64_t a, uint64_t b)
{
	return a + np_min(b, UINT64_MAX - a);
}

/* Find the sizes that the socket buffers will have, by a socket with the same options. */
static int
try_buffers(const struct np_plan *p, const struct np_terms *terms, int *sndbuf, int *rcvbuf,
	    struct np_err *err)
{
	const struct np_transport *t = p->transport;
	struct np_sockopts opts = { .count = 0 };
	int fd;

	np_endpoint_ask_buffers(p, &opts);
	if (terms->eth != NULL) { /* this process may not open another one */
		if (np_sockopts_apply(&opts, terms->eth->fd, err) != NP_OK) {
			return err->code;
		}
		np_endpoint_buffers(t, terms->eth->fd, sndbuf, rcvbuf);
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

/* Bytes of one worker's rings, and of what a receiver knows of numbered datagrams. */
static int
ring_bytes(const struct np_plan *plan, const struct np_terms *terms, uint64_t *bytes,
	   struct np_err *err)
{
	const struct np_pattern *pattern = plan->pattern;
	int sndbuf = 0, rcvbuf = 0;
	bool leads = plan->role == NP_LEAD;

	*bytes = 0;
	if (pattern->sized) {
		int32_t out = leads ? plan->request : plan->response;
		int32_t in = leads ? plan->response : plan->request;

		*bytes = sum(bytes_of(shape_of(plan, terms, true, out, 0, false)),
			     bytes_of(shape_of(plan, terms, false, in, 0, false)));
		*bytes = sum(*bytes, plan->stations > 0 ? sizeof(struct np_stamps) : 0);
		return NP_OK;
	}
	if (pattern->transactions) {
		return NP_OK; /* connections without data */
	}
	if (try_buffers(plan, terms, &sndbuf, &rcvbuf, err) != NP_OK) {
		return err->code;
	}
	*bytes =
	    bytes_of(leads ? shape_of(plan, terms, true, plan->near.call.send_size, sndbuf, true)
			   : shape_of(plan, terms, false, plan->near.call.recv_size, rcvbuf, true));
	if (!leads && np_sequence_wanted(plan)) {
		*bytes = sum(*bytes, np_plan_worker_flows(plan) * np_sequence_bytes(plan));
	}
	return NP_OK;
}

int
np_run_bytes(const struct np_plan *plan, const struct np_terms *terms, uint64_t *bytes,
	     struct np_err *err)
{
	/* Memory of a further worker beside its rings, with the stack of its thread. */
	uint64_t each = sizeof(struct np_worker) + sizeof(struct np_hist) + (512 << 10), conns;
	const struct np_engine *e = np_engine_of(plan);

	if (ring_bytes(plan, terms, bytes, err) != NP_OK) {
		return err->code;
	}
	*bytes = sum(*bytes, e->bytes != NULL ? e->bytes(plan) : 0);
	conns = sizeof(struct np_conn) + (plan->warm_up_ms > 0 ? sizeof(struct np_tcp_brief) : 0);
	conns *= plan->flows;
	/* The first worker, but for its rings, is part of what any session needs. */
	if (__builtin_mul_overflow(*bytes, np_plan_workers(plan), bytes)) {
		*bytes = UINT64_MAX;
	}
	*bytes = sum(*bytes, conns + each * (np_plan_workers(plan) - 1));
	return NP_OK;
}
