#include "bench/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/units.h"
#include "net/sock.h"
#include "stats/confidence.h"

struct np_counts
np_counts_of(const struct np_run *run)
{
	struct np_counts sum = { .sent = 0 };

	NP_EACH_WORKER (w, run) {
		np_counts_read(&sum, w->count);
	}
	return sum;
}

struct np_counts
np_counts_arrived(const struct np_run *run)
{
	struct np_counts c = np_counts_of(run);
	const struct np_plan *p = run->plan;
	uint64_t acked = 0, before = 0, queued = 0;

	NP_EACH_WORKER (w, run) {
		acked += np_worker_acked(w);
		before += w->acked_before;
	}
	/* TLS, UNIX, VSOCK report no ACKs: use what send buffers hold. Others may be closed. */
	for (uint32_t i = 0;
	     i < run->conns && acked == 0 && np_delivers(p->transport) && np_plan_streams(p); i++) {
		queued += np_conn_queued(&run->conn[i]);
	}
	/* acked == before: nothing since the window opened. */
	c.sent = acked > before ? acked - before : acked > 0 ? 0 : c.sent - np_min(queued, c.sent);
	return c;
}

/* Read a value that another thread writes with plain moves: where it takes two, until stable. */
__attribute__((no_sanitize("thread"))) static uint64_t
peek(const volatile uint64_t *at)
{
	uint64_t value;

	do {
		value = *at;
	} while (sizeof(long) < sizeof(value) && value != *at);
	return value;
}

struct np_counts
np_counts_of_flow(const struct np_run *run, uint32_t flow)
{
	const struct np_conn *c = &run->conn[flow];
	const struct np_plan *p = run->plan;
	/* With one request in flight, the loop only counts requests. */
	bool by_number = p->pattern->transactions && !p->pattern->connection_test &&
			 p->role == NP_LEAD && run->worker->depth == 1;
	uint64_t sent = peek(&c->sent), left = 0;

	if (p->role == NP_LEAD && np_plan_may_reset(p) && c->fd >= 0) {
		left = np_conn_queued(c); /* has not arrived yet */
	}
	return (struct np_counts){
		.sent = np_excess(sent, left),
		.received = peek(&c->received),
		.transactions =
		    by_number ? peek(&c->number) - peek(&c->before) : peek(&c->transactions),
	};
}

/* Growth of a count since the warm-up; -1: one is unknown, or it shrank (another connection). */
static int64_t
growth(int64_t before, int64_t count)
{
	return before < 0 || count < before ? -1 : count - before;
}

/* Fill in what the kernel knows of a connection; -1: not known, also if it is closed. */
static void
read_kernel(const struct np_run *run, const struct np_conn *c, int fd, struct np_flow_result *row)
{
	const struct np_transport *t = run->plan->transport;
	struct np_addr local, peer = { .len = sizeof(peer.sa) };
	struct np_err unknown;

	row->cpu = row->napi_id = row->local_port = row->remote_port = -1;
	if (np_tcp_read(t->tcp_info ? fd : -1, &row->tcp, NULL) && run->before != NULL) {
		const struct np_tcp_brief *before = &run->before[c - run->conn];

		row->tcp.data_segments = growth(before->data_segments, row->tcp.data_segments);
		row->tcp.retransmitted_segments =
		    growth(before->retransmitted_segments, row->tcp.retransmitted_segments);
		row->tcp.rwnd_limited_us =
		    growth(before->rwnd_limited_us, row->tcp.rwnd_limited_us);
	}
	if (fd >= 0 && t->ip_protocol != 0) {
		if (np_sock_local(fd, &local, &unknown) == NP_OK) {
			row->local_port = np_addr_port(&local);
		}
		/* getpeername(2) fails for a TCP connection that is closed. */
		row->remote_port = np_addr_port(
		    getpeername(fd, (struct sockaddr *)&peer.sa, &peer.len) == 0 ? &peer
										 : &run->end.peer);
		row->cpu = np_sock_int(fd, SOL_SOCKET, SO_INCOMING_CPU);
		/* 0: the interface has none, or no packet has arrived. */
		row->napi_id = np_sock_int(fd, SOL_SOCKET, SO_INCOMING_NAPI_ID);
		row->napi_id = row->napi_id > 0 ? row->napi_id : -1;
	}
}

/* A row for each flow; of a ramp only for those that were established. A single one has t->only. */
static int
take_flows(const struct np_run *run, struct np_tally *t, struct np_err *err)
{
	struct np_flow_result *row;
	int64_t retransmitted = 0;

	if (t->flows < 2) {
		t->only = (struct np_flow_result){ .sent = t->end.count.sent,
						   .received = t->end.count.received,
						   .transactions = t->end.count.transactions };
		read_kernel(run, run->conn, np_run_lasting_fd(run), &t->only);
		return NP_OK;
	}
	t->flow = row = calloc(t->flows, sizeof(*t->flow));
	if (t->flow == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for the figures of %u flows",
			       t->flows);
	}
	NP_EACH_WORKER (w, run) {
		NP_EACH_CONN (c, w) {
			if (run->plan->ramp == 0 || c->is_up) {
				row->sent = c->sent;
				row->received = c->received;
				row->transactions = c->transactions;
				row->worker = (uint32_t)(w - run->worker);
				read_kernel(run, c, c->fd, row++);
			}
		}
	}
	/* The sum of all flows; -1 if one is not known, as a partial sum would be too small. */
	for (uint32_t i = 0; i < t->flows && retransmitted >= 0; i++) {
		int64_t one = t->flow[i].tcp.retransmitted_segments;

		retransmitted = one < 0 ? -1 : retransmitted + one;
	}
	if (!run->plan->pattern->connection_test) { /* its sides sum up all connections */
		t->end.closing.retrans =
		    (int)(retransmitted < INT32_MAX ? retransmitted : INT32_MAX);
	}
	return NP_OK;
}

static void
take_skew(struct np_tally *t)
{
	uint64_t first = UINT64_MAX, last = 0; /* the first and the last begin, and end */
	uint64_t first_end = UINT64_MAX, last_end = 0;

	for (const struct np_worker_result *w = t->worker; w < t->worker + t->workers; w++) {
		if (w->ended_ns != 0) {
			first = np_min(w->began_ns, first);
			last = np_max(w->began_ns, last);
			first_end = np_min(w->ended_ns, first_end);
			last_end = np_max(w->ended_ns, last_end);
		}
	}
	t->end.skew = (struct np_skew){ .begin_ns = (int64_t)np_excess(last, first),
					.end_ns = (int64_t)np_excess(last_end, first_end) };
}

static int
take_workers(const struct np_run *run, struct np_tally *t, struct np_err *err)
{
	uint64_t start_ns = run->window.opened_ns; /* 0: the window never opened */
	struct np_worker_result *row = calloc(run->workers, sizeof(*row));

	t->worker = row;
	if (row == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for the figures of %u threads",
			       run->workers);
	}
	NP_EACH_WORKER (w, run) {
		bool known = w->use.root != NULL && w->use.ended_ns != 0;

		*row++ = (struct np_worker_result){
			.flows = w->conns,
			.sent = np_get(&w->count->sent),
			.received = np_get(&w->count->received),
			.transactions = np_get(&w->count->transactions),
			.began_ns = start_ns != 0 ? np_max(w->began_ns, start_ns) : 0,
			.ended_ns = start_ns != 0 ? w->left_ns : 0,
			.user_us = known ? w->use.user_us : -1,
			.system_us = known ? w->use.system_us : -1,
			.cpu = known ? w->use.cpu : -1,
			.bound = w->bound,
		};
	}
	take_skew(t);
	return NP_OK;
}

/* Merge a histogram into another one; if there is none yet, move it there. */
static void
merge(struct np_hist **into, struct np_hist **from)
{
	if (*into != NULL && *from != NULL) {
		np_hist_merge(*into, *from);
	} else if (*into == NULL) {
		*into = *from;
		*from = NULL;
	}
}

/* If there was a ramp: connections asked for and established, failures, times of connect(2). */
static void
take_ramp(struct np_run *run, struct np_tally *t)
{
	if (run->plan->ramp == 0) {
		return;
	}
	t->ramp.rate = run->plan->ramp;
	t->ramp.asked = run->conns;
	t->flows = 0;
	NP_EACH_CONN (c, run) {
		t->flows += c->is_up;
	}
	t->ramp.established = t->flows;
	NP_EACH_WORKER (w, run) {
		if (w->ramp == NULL || w->ramp->hist == NULL) {
			continue;
		}
		np_ramp_join(&t->ramp.failed, &w->ramp->failed);
		merge(&t->ramp.hist, &w->ramp->hist);
	}
}

/* If there was a rate, sum up the open loops of all workers, and judge the generator. */
static void
take_open(struct np_run *run, struct np_tally *t)
{
	struct np_open_counts *n = &t->open.count;
	double all_ns = 0, ran_us = 0, waited_ns = 0, *gap;
	bool ran = true, waited = true; /* are the times known that threads ran, or waited? */
	size_t gaps = 0;

	t->open.rate = run->plan->rate;
	t->open.answered = t->end.count.transactions;
	if (run->worker->open == NULL) {
		return;
	}
	gap = malloc(run->workers * sizeof(run->worker->open->gap));
	NP_EACH_WORKER (w, run) {
		struct np_open *o = w->open;

		n->due += o->count.due;
		n->begun += o->count.begun;
		n->late += o->count.late;
		n->held += o->count.held;
		t->open.depth = w->depth;
		if (o->outage.ns > t->open.outage.ns) {
			t->open.outage = o->outage;
		}
		merge(&t->open.sent, &o->sent);
		merge(&t->open.lateness, &o->lateness);
		t->open.spin_ns = o->spin_ns;
		if (gap != NULL) {
			memcpy(gap + gaps, o->gap, o->gaps * sizeof(*gap));
			gaps += o->gaps;
		}
		all_ns += (double)(w->left_ns - w->began_ns);
		ran = ran && w->use.ended_ns != 0;
		waited = waited && ran && w->use.run_delay_ns >= 0;
		ran_us += (double)(w->use.user_us + w->use.system_us);
		waited_ns += (double)w->use.run_delay_ns;
	}
	t->open.fit = np_fit_p(gap, gaps);
	free(gap);
	t->open.ran = ran && all_ns > 0 ? 1e3 * ran_us / all_ns : -1;
	t->open.waited = waited && all_ns > 0 ? waited_ns / all_ns : -1;
	if (t->hist != NULL) {
		np_open_judge(&t->open, t->hist);
	}
}

int
np_tally_take(struct np_run *run, struct np_tally *t, struct np_err *err)
{
	struct np_worker *w = run->worker;
	int fd = run->conn != NULL ? np_run_lasting_fd(run) : -1;
	struct np_addr local;
	struct np_err ignored;

	np_run_read_closing(run);
	*t = (struct np_tally){
		.plan = run->plan,
		.engine = run->engine,
		.end = {
			.sndbuf = run->end.sndbuf,
			.rcvbuf = run->end.rcvbuf,
			.prio = run->end.prio,
			.tos = run->end.tos,
			.send_size = (int)w->send_size,
			.recv_size = (int)w->recv_size,
			.send_width = (int)w->send_ring.width,
			.recv_width = (int)w->recv_ring.width,
			.count = np_counts_of(run),
			.closing = run->closing,
		},
		.paced_ns = w->load.paced_ns,
		.hist = w->hist,
		.local = run->end.local,
		.peer = run->end.peer,
		.flows = run->conns,
		.established = w->began_ns != 0,
		.workers = run->workers,
		.spread = run->spread,
	};
	w->hist = NULL;
	t->end.closing.retrans = (int)growth(run->retrans_before, t->end.closing.retrans);
	if (run->window.started_ns != 0) {
		t->started_ns = run->window.opened_ns;
		t->ended_ns = np_max(run->window.ended_ns, t->started_ns);
		*(run->plan->role == NP_LEAD ? &t->led_ns : &t->followed_ns) =
		    t->ended_ns - t->started_ns;
	}
	/* A client's socket got its port only when it connected. */
	if (run->plan->active && fd >= 0 && np_sock_local(fd, &local, &ignored) == NP_OK &&
	    np_addr_port(&local) != 0) {
		t->local = local;
	}
	for (uint32_t i = 1; i < run->workers; i++) {
		np_hist_merge(t->hist, w[i].hist);
		t->paced_ns += w[i].load.paced_ns;
	}
	t->paced_ns /= run->workers;
	take_ramp(run, t);
	take_open(run, t);
	return take_flows(run, t, err) == NP_OK ? take_workers(run, t, err) : (int)err->code;
}

/* Append the flows of `from`, whose workers are numbered after those of `into`. */
static int
join_flows(struct np_tally *into, const struct np_tally *from, struct np_err *err)
{
	uint32_t flows = into->flows + from->flows;
	struct np_flow_result *row = realloc(into->flow, flows * sizeof(*row));

	if (row == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for the figures of %u flows", flows);
	}
	if (into->flow == NULL) {
		row[0] = into->only;
	}
	if (from->flow == NULL) {
		row[into->flows] = from->only;
	} else {
		memcpy(row + into->flows, from->flow, from->flows * sizeof(*row));
	}
	for (uint32_t i = into->flows; i < flows; i++) {
		row[i].worker += into->workers;
	}
	into->flow = row;
	into->flows = flows;
	return NP_OK;
}

/* Start of the first window; 0: none has begun. */
static uint64_t
first_start(const struct np_tally *a, const struct np_tally *b)
{
	bool is_a = b->started_ns == 0 || (a->started_ns != 0 && a->started_ns < b->started_ns);

	return is_a ? a->started_ns : b->started_ns;
}

static int
join_workers_of(struct np_tally *into, const struct np_tally *from, struct np_err *err)
{
	uint32_t workers = into->workers + from->workers;
	struct np_worker_result *row = realloc(into->worker, workers * sizeof(*row));

	if (row == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for the figures of %u threads",
			       workers);
	}
	memcpy(row + into->workers, from->worker, from->workers * sizeof(*row));
	into->worker = row;
	into->workers = workers;
	take_skew(into);
	return NP_OK;
}

/* A sum with -1, not known, is not known. */
static uint64_t
sum_of(uint64_t a, uint64_t b)
{
	return (int64_t)a < 0 || (int64_t)b < 0 ? UINT64_MAX : a + b;
}

void
np_result_add(struct np_result *sum, const struct np_result *one)
{
	/* In a test both ways one session sends and one receives. */
	if (sum->send_size <= 0) {
		sum->send_size = one->send_size;
		sum->send_width = one->send_width;
	}
	if (sum->recv_size <= 0) {
		sum->recv_size = one->recv_size;
		sum->recv_width = one->recv_width;
	}
#define NP_COUNTER(name) sum->count.name = sum_of(sum->count.name, one->count.name);
	NP_COUNTERS(NP_COUNTER)
#undef NP_COUNTER
	if (sum->closing.retrans < 0 || one->closing.retrans < 0) {
		sum->closing.retrans = -1;
	} else if (__builtin_add_overflow(sum->closing.retrans, one->closing.retrans,
					  &sum->closing.retrans)) {
		sum->closing.retrans = INT32_MAX;
	}
	sum->skew = (struct np_skew){ .begin_ns = -1, .end_ns = -1 };
}

int
np_tally_join(struct np_tally *into, struct np_tally *from, struct np_err *err)
{
	int rc = NP_OK;

	if (from->flows > 0 && into->flows > 0) { /* else none was established */
		rc = join_flows(into, from, err);
	}
	np_result_add(&into->end, &from->end);
	if (rc == NP_OK && into->worker != NULL && from->worker != NULL) {
		rc = join_workers_of(into, from, err);
	}
	into->started_ns = first_start(into, from);
	into->ended_ns = np_max(into->ended_ns, from->ended_ns);
	into->led_ns = np_max(into->led_ns, from->led_ns);
	into->followed_ns = np_max(into->followed_ns, from->followed_ns);
	into->paced_ns += from->paced_ns;
	if (into->hist != NULL && from->hist != NULL) {
		np_hist_merge(into->hist, from->hist);
	}
	np_tally_free(from);
	return rc;
}

void
np_tally_free(struct np_tally *t)
{
	free(t->hist);
	free(t->ramp.hist);
	free(t->open.sent);
	free(t->open.lateness);
	free(t->flow);
	free(t->worker);
	memset(t, 0, sizeof(*t));
}
