#include "bench/run.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/codec.h"
#include "bench/engine/engine.h"
#include "bench/sequence.h"
#include "bench/transport/many.h"

static const struct np_terms no_terms;

static void
buffer_options(const struct np_end *e, struct np_sockopts *o)
{
	if (e->sock.sndbuf >= 0) {
		np_sockopts_add(o, SOL_SOCKET, SO_SNDBUF, "SO_SNDBUF", e->sock.sndbuf);
	}
	if (e->sock.rcvbuf >= 0) {
		np_sockopts_add(o, SOL_SOCKET, SO_RCVBUF, "SO_RCVBUF", e->sock.rcvbuf);
	}
}

/* Socket options that any transport knows, in netperf's order. */
static void
common_options(const struct np_plan *p, const struct np_terms *terms, struct np_sockopts *o)
{
	const struct np_end *e = &p->near;

	o->permit = terms->permit;
	o->permit_ctx = terms->permit_ctx;
	buffer_options(e, o);
	if (p->keepalive) {
		np_sockopts_add(o, SOL_SOCKET, SO_KEEPALIVE, "SO_KEEPALIVE", 1);
		np_sockopts_optional(o);
	}
	if (p->transport->connected) {
		/* Two datagram sockets would share the port, and one get the other's requests. */
		np_sockopts_add(o, SOL_SOCKET, SO_REUSEADDR, "SO_REUSEADDR", 1);
	}
	if (p->no_route) {
		np_sockopts_add(o, SOL_SOCKET, SO_DONTROUTE, "SO_DONTROUTE", 1);
	}
	if (p->debug) {
		np_sockopts_add(o, SOL_SOCKET, SO_DEBUG, "SO_DEBUG", 1);
	}
	if (e->sock.prio >= 0) {
		np_sockopts_add(o, SOL_SOCKET, SO_PRIORITY, "SO_PRIORITY", e->sock.prio);
		np_sockopts_optional(o);
	}
	if (p->transport->ip_protocol == 0) {
		return; /* what is left is of the Internet's */
	}
	if (e->sock.tos > 0 && np_family_version(p->family) == 6) {
		np_sockopts_add(o, IPPROTO_IPV6, IPV6_TCLASS, "IPV6_TCLASS", e->sock.tos);
		np_sockopts_optional(o);
	} else if (e->sock.tos > 0) {
		np_sockopts_add(o, IPPROTO_IP, IP_TOS, "IP_TOS", e->sock.tos);
		np_sockopts_optional(o);
	}
	if (p->no_fragment && np_family_version(p->family) == 4) {
		np_sockopts_add(o, IPPROTO_IP, IP_MTU_DISCOVER, "IP_MTU_DISCOVER", IP_PMTUDISC_DO);
	}
	if (p->pacing > 0) {
		np_sockopts_add(o, SOL_SOCKET, SO_MAX_PACING_RATE, "SO_MAX_PACING_RATE",
				(int)p->pacing);
	}
}

static int
take_memory(struct np_run *run, struct np_err *err)
{
	run->conn = calloc(run->plan->flows, sizeof(*run->conn));
	/* aligned_alloc() for the counters: their cache line is theirs alone. */
	run->worker.count = aligned_alloc(_Alignof(struct np_counters), sizeof(*run->worker.count));
	run->worker.hist = np_hist_new();
	if (run->conn == NULL || run->worker.count == NULL || run->worker.hist == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM,
			       "memory for %u data connections and their counters",
			       run->plan->flows);
	}
	run->conns = run->worker.conns = run->plan->flows;
	run->worker.conn = run->conn;
	for (uint32_t i = 0; i < run->conns; i++) {
		run->conn[i].fd = -1;
	}
	memset(run->worker.count, 0, sizeof(*run->worker.count));
	return NP_OK;
}

/* An engine that waits for events hears of the end by one, too. */
static int
choose_engine(struct np_run *run, struct np_err *err)
{
	const struct np_engine *engine = np_engine_of(run->plan);
	const char *why = engine->why_not(run->plan);
	int rc = why == NULL && engine->run != NULL ? np_stop_open(run->stop) : 0;

	run->worker.loop = engine->run != NULL ? engine->run : run->side->sync;
	if (why != NULL) {
		return np_fail(err, NP_EUSAGE, EINVAL, "the engine %s can't drive this test: %s",
			       engine->name, why);
	}
	if (rc != 0) {
		return np_fail(err, NP_ESYS, -rc, "make an eventfd to end a worker by");
	}
	return NP_OK;
}

/* What a side's setup finds settled. */
static void
prepare_worker(struct np_run *run)
{
	const struct np_plan *p = run->plan;
	struct np_worker *w = &run->worker;

	w->run = run;
	w->stop = run->stop;
	w->steps = run->side->steps;
	w->budget = p->length < 0 ? (uint64_t)-p->length : UINT64_MAX;
	w->codec = np_codec_of(p);
	w->depth = 1;
	w->file_fd = w->pipe[0] = w->pipe[1] = w->pipe[2] = -1;
}

int
np_run_open(struct np_run *run, const struct np_plan *plan, const struct np_terms *terms,
	    struct np_stop *stop, struct np_err *err)
{
	memset(run, 0, sizeof(*run));
	if (plan->transport->admit == NP_ADMIT_UNSAID) {
		return np_fail(err, NP_EUNSUP, EACCES,
			       "%s does not say whom a data socket of it admits",
			       plan->transport->name);
	}
	run->plan = plan;
	run->terms = terms != NULL ? terms : &no_terms;
	run->stop = stop;
	run->side = plan->pattern->side[plan->role];
	run->end.listen_fd = run->end.held_fd = -1;
	run->closing.mss = run->closing.retrans = -1;
	run->end.prio = run->end.tos = -1;
	prepare_worker(run);
	common_options(plan, run->terms, &run->end.opts);
	if (plan->transport->options != NULL) {
		plan->transport->options(plan, &plan->near, &run->end.opts);
	}
	if (take_memory(run, err) != NP_OK || choose_engine(run, err) != NP_OK ||
	    plan->transport->open(run, err) != NP_OK || np_many_open(run, err) != NP_OK ||
	    (run->side->setup != NULL && run->side->setup(run, err) != NP_OK)) {
		np_run_free(run);
		return err->code;
	}
	return NP_OK;
}

int
np_run_meet(struct np_run *run, struct np_err *err)
{
	const struct np_transport *t = run->plan->transport;

	if (t->meet(run, err) != NP_OK || (run->conn->fd >= 0 && np_many_meet(run, err) != NP_OK)) {
		return err->code;
	}
	for (uint32_t i = 0; i < run->conns && t->upgrade != NULL; i++) {
		if (run->conn[i].fd >= 0 && t->upgrade(run, &run->conn[i], err) != NP_OK) {
			return err->code;
		}
	}
	return NP_OK;
}

int
np_run_upgrade(struct np_run *run, int fd)
{
	const struct np_transport *t = run->plan->transport;
	struct np_conn conn = { .fd = fd };

	if (t->upgrade == NULL || t->upgrade(run, &conn, &run->err) == NP_OK) {
		return 0;
	}
	return run->err.sys > 0 ? -run->err.sys : -EPROTO;
}

void
np_run_look(struct np_run *run)
{
	const struct np_transport *t = run->plan->transport;

	if (run->conn->fd < 0) {
		return;
	}
	run->closing.sndbuf_end = np_sock_int(run->conn->fd, SOL_SOCKET, SO_SNDBUF);
	run->closing.rcvbuf_end = np_sock_int(run->conn->fd, SOL_SOCKET, SO_RCVBUF);
	if (t->look != NULL) {
		t->look(run, run->conn->fd);
	}
}

void
np_run_hang_up(struct np_run *run)
{
	if (run->hung_up && run->conn->fd >= 0 && !run->plan->active &&
	    run->plan->transport->connected) {
		np_run_look(run);
		np_run_shut(run);
	}
}

void
np_run_shut(struct np_run *run)
{
	for (uint32_t i = 0; i < run->conns; i++) {
		shutdown(run->conn[i].fd, SHUT_WR);
	}
}

void
np_run_close(struct np_run *run)
{
	if (run->conn->fd >= 0) {
		np_run_look(run);
	}
	for (uint32_t i = 0; i < run->conns; i++) {
		if (run->conn[i].fd >= 0 && !run->end.lent) {
			close(run->conn[i].fd);
		}
		run->conn[i].fd = -1;
	}
	if (run->end.listen_fd >= 0) {
		close(run->end.listen_fd);
		run->end.listen_fd = -1;
	}
	if (run->plan->transport->close != NULL) {
		run->plan->transport->close(run);
	}
	if (run->stop != NULL) {
		np_stop_close(run->stop);
	}
}

void
np_run_free(struct np_run *run)
{
	if (run->plan == NULL) {
		return;
	}
	if (run->conns > 0) {
		np_run_close(run);
	}
	if (run->side->release != NULL) {
		run->side->release(run);
	}
	np_ring_free(&run->worker.send_ring);
	np_ring_free(&run->worker.recv_ring);
	free(run->worker.count);
	free(run->worker.hist);
	free(run->conn);
	run->conn = run->worker.conn = NULL;
	run->conns = 0;
	run->worker.count = NULL;
	run->worker.hist = NULL;
	run->plan = NULL;
}

/* netperf's rule: as many buffers as fill the socket buffer and one more, at least two. */
static size_t
ring_width(uint32_t asked, int sockbuf, size_t size, bool stream)
{
	if (asked == 0) {
		asked = stream && sockbuf > 0 ? (uint32_t)((size_t)sockbuf / size + 1) : 1;
	}
	return stream && asked < 2 ? 2 : asked;
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

static size_t
send_call(const struct np_plan *p, const struct np_terms *terms, int32_t size, int sndbuf)
{
	return call_size(p->transport, size, sndbuf, (size_t)p->transport->max_message,
			 terms->call_max);
}

static size_t
recv_call(const struct np_plan *p, const struct np_terms *terms, int32_t size, int rcvbuf)
{
	return call_size(p->transport, size, rcvbuf, 0, terms->call_max);
}

int
np_run_send_ring(struct np_run *run, int32_t size, bool stream, struct np_err *err)
{
	const struct np_end *e = &run->plan->near;
	size_t bytes = send_call(run->plan, run->terms, size, run->end.sndbuf);
	int rc = np_ring_make(&run->worker.send_ring,
			      ring_width(e->call.send_width, run->end.sndbuf, bytes, stream), bytes,
			      e->call.send_align, e->call.send_offset, err);

	run->worker.send_size = bytes;
	if (rc == NP_OK && e->call.fill_file[0] != '\0') {
		rc = run->terms->fill_dir > 0
			 ? np_ring_fill_at(&run->worker.send_ring, run->terms->fill_dir,
					   e->call.fill_file, err)
			 : np_ring_fill(&run->worker.send_ring, e->call.fill_file, err);
	}
	return rc;
}

int
np_run_recv_ring(struct np_run *run, int32_t size, bool stream, struct np_err *err)
{
	const struct np_end *e = &run->plan->near;
	size_t bytes = recv_call(run->plan, run->terms, size, run->end.rcvbuf);

	run->worker.recv_size = run->worker.whole = bytes;
	return np_ring_make(&run->worker.recv_ring,
			    ring_width(e->call.recv_width, run->end.rcvbuf, bytes, stream), bytes,
			    e->call.recv_align, e->call.recv_offset, err);
}

static uint64_t
send_ring_bytes(const struct np_plan *p, const struct np_terms *terms, int32_t size, int sndbuf,
		bool stream)
{
	const struct np_end *e = &p->near;
	size_t bytes = send_call(p, terms, size, sndbuf);

	return np_ring_bytes(ring_width(e->call.send_width, sndbuf, bytes, stream), bytes,
			     e->call.send_align, e->call.send_offset);
}

static uint64_t
recv_ring_bytes(const struct np_plan *p, const struct np_terms *terms, int32_t size, int rcvbuf,
		bool stream)
{
	const struct np_end *e = &p->near;
	size_t bytes = recv_call(p, terms, size, rcvbuf);

	return np_ring_bytes(ring_width(e->call.recv_width, rcvbuf, bytes, stream), bytes,
			     e->call.recv_align, e->call.recv_offset);
}

/* The sizes that the socket buffers would have. */
static int
try_buffers(const struct np_plan *p, const struct np_terms *terms, int *sndbuf, int *rcvbuf,
	    struct np_err *err)
{
	const struct np_transport *t = p->transport;
	struct np_sockopts opts = { .count = 0 };
	int fd;

	buffer_options(&p->near, &opts);
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
		return err->code;
	}
	*sndbuf = np_sock_int(fd, SOL_SOCKET, SO_SNDBUF);
	*rcvbuf = np_sock_int(fd, SOL_SOCKET, SO_RCVBUF);
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
	terms = terms != NULL ? terms : &no_terms;
	if (t->sized) {
		in = recv_ring_bytes(
		    plan, terms, plan->role == NP_LEAD ? plan->response : plan->request, 0, false);
		*bytes = send_ring_bytes(
		    plan, terms, plan->role == NP_LEAD ? plan->request : plan->response, 0, false);
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
	    __builtin_add_overflow(*bytes, sizeof(struct np_sequence), bytes)) {
		*bytes = UINT64_MAX;
	}
	return NP_OK;
}

int
np_run_bytes(const struct np_plan *plan, const struct np_terms *terms, uint64_t *bytes,
	     struct np_err *err)
{
	if (ring_bytes(plan, terms, bytes, err) != NP_OK) {
		return err->code;
	}
	if (__builtin_add_overflow(*bytes, sizeof(struct np_conn) * (uint64_t)plan->flows, bytes)) {
		*bytes = UINT64_MAX;
	}
	return NP_OK;
}

/* Bytes that the kernel has not got rid of yet: the connections share a way, and wait in turns. */
static int64_t
unsent(const struct np_run *run)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < run->conns; i++) {
		sum += np_sock_queued(run->conn[i].fd, SIOCOUTQ);
	}
	return sum;
}

/* Wait for the far end's close of one connection, which has `until` moved as long as it moves. */
static int
part_one(struct np_run *run, int fd, uint64_t *until)
{
	int64_t queued = -1;
	char sink[4096];

	while (!np_abandoned(run->stop) && np_now() < *until) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t now_queued;

		if (poll(&p, 1, 100) > 0) {
			ssize_t n = recv(fd, sink, sizeof(sink), MSG_DONTWAIT);

			if (n == 0) {
				return 0;
			}
			if (n < 0 && errno != EAGAIN && errno != EINTR) {
				return -errno;
			}
			*until = np_deadline(NP_PART_S * NP_SEC);
			continue;
		}
		now_queued = unsent(run);
		if (now_queued != queued) {
			queued = now_queued;
			*until = np_deadline(NP_PART_S * NP_SEC);
		}
	}
	return -ETIMEDOUT;
}

int
np_run_part(struct np_run *run)
{
	uint64_t until = np_deadline(NP_PART_S * NP_SEC);
	int rc = 0;

	np_run_look(run);
	np_run_shut(run);
	for (uint32_t i = 0; i < run->conns && rc != -ETIMEDOUT; i++) {
		int one = part_one(run, run->conn[i].fd, &until);

		rc = one != 0 ? one : rc;
	}
	return rc;
}
