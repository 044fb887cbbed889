#include "bench/tally.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

struct np_counts
np_counts_of(const struct np_run *run)
{
	struct np_counts sum = { .sent = 0 };

	for
		NP_EACH_WORKER(w, run)
		{
			const struct np_counters *c = w->count;

			sum.sent += np_seen(&c->sent);
			sum.sends += np_seen(&c->sends);
			sum.received += np_seen(&c->received);
			sum.receives += np_seen(&c->receives);
			sum.transactions += np_seen(&c->transactions);
			sum.failed += np_seen(&c->failed);
			sum.lost += np_seen(&c->lost);
			sum.duplicated += np_seen(&c->duplicated);
			sum.late += np_seen(&c->late);
			sum.stray += np_seen(&c->stray);
			sum.surplus += np_seen(&c->surplus);
		}
	return sum;
}

/* What the kernel knows of a connection: the socket is open still, and one of TCP. */
static void
look(int fd, const struct np_transport *t, struct np_flow_result *row)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	row->retrans = row->rtt_us = -1;
	if (fd >= 0 && t->tcp_info && getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0) {
		row->retrans = info.tcpi_total_retrans;
		row->rtt_us = info.tcpi_rtt;
	}
}

/* The figure is of all flows, or of none: a sum with gaps would pass for less than there was. */
static int
sum_retrans(const struct np_tally *t)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < t->flows; i++) {
		if (t->flow[i].retrans < 0) {
			return -1;
		}
		sum += t->flow[i].retrans;
	}
	return sum < INT32_MAX ? (int)sum : INT32_MAX;
}

static int
take_flows(const struct np_run *run, struct np_tally *t, struct np_err *err)
{
	if (run->conns < 2) {
		return NP_OK;
	}
	t->flow = calloc(run->conns, sizeof(*t->flow));
	if (t->flow == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for the figures of %u flows",
			       run->conns);
	}
	for (uint32_t i = 0; i < run->conns; i++) {
		const struct np_conn *c = &run->conn[i];

		t->flow[i].sent = c->sent;
		t->flow[i].received = c->received;
		t->flow[i].transactions = c->transactions;
		look(c->fd, run->plan->transport, &t->flow[i]);
	}
	t->closing.retrans = sum_retrans(t);
	return NP_OK;
}

/* What the workers beside the first one have recorded. */
static void
join_workers(const struct np_run *run, struct np_tally *t)
{
	for
		NP_EACH_WORKER(w, run)
		{
			if (w->hist != NULL) {
				np_hist_merge(t->hist, w->hist);
				t->paced_ns += w->paced_ns;
			}
		}
}

int
np_tally_take(struct np_run *run, struct np_tally *t, struct np_err *err)
{
	struct np_worker *w = run->worker;

	np_run_look(run);
	*t = (struct np_tally){
		.plan = run->plan,
		.started_ns = run->window.started_ns,
		.ended_ns = run->window.ended_ns,
		.count = np_counts_of(run),
		.paced_ns = w->paced_ns,
		.hist = w->hist,
		.local = run->end.local,
		.peer = run->end.peer,
		.sndbuf = run->end.sndbuf,
		.rcvbuf = run->end.rcvbuf,
		.prio = run->end.prio,
		.tos = run->end.tos,
		.closing = run->closing,
		.send_size = w->send_size,
		.recv_size = w->recv_size,
		.send_width = w->send_ring.width,
		.recv_width = w->recv_ring.width,
		.flows = run->conns,
	};
	w->hist = NULL;
	join_workers(run, t);
	return take_flows(run, t, err);
}

void
np_tally_free(struct np_tally *t)
{
	free(t->hist);
	free(t->flow);
	t->hist = NULL;
	t->flow = NULL;
}
