#include "bench/sampler.h"

#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "bench/run.h"
#include "bench/worker.h"
#include "net/sock.h"

void
np_sample_add(struct np_sample *s, const struct np_plan *p, const struct np_conn *conn,
	      uint32_t conns)
{
	uint32_t step = (conns + NP_SAMPLER_MOST - 1) / NP_SAMPLER_MOST;
	bool datagrams = p->transport->ip_protocol != 0 && !np_delivers(p->transport);

	for (uint32_t i = 0; i < conns; i += step) {
		if (p->ramp > 0 && !conn[i].is_up) {
			continue; /* not connected yet */
		}
		np_tcp_sum_add(&s->tcp, conn[i].fd);
		/* SIOCINQ has only the first datagram; this has all, with the kernel's overhead. */
		s->queued_in += datagrams ? (int)np_sock_memory(conn[i].fd, SK_MEMINFO_RMEM_ALLOC)
					  : np_sock_queued(conn[i].fd, SIOCINQ);
		s->queued_out += np_sock_queued(conn[i].fd, SIOCOUTQ);
		s->looked++;
	}
	s->at_ns = np_now();
}

/* An acquire: the other thread is done with the sample. */
static int
state_of(const struct np_sampler *s)
{
	return atomic_load_explicit(&s->state, memory_order_acquire);
}

void
np_sampler_answer(struct np_worker *w)
{
	struct np_sample *s = &w->sampler.sample;

	memset(s, 0, sizeof(*s));
	np_sample_add(s, w->run->plan, w->conn, w->conns);
	s->bytes = np_get(&w->count->sent) + np_get(&w->count->received);
	s->transactions = np_get(&w->count->transactions);
	atomic_store_explicit(&w->sampler.state, NP_SAMPLER_READY, memory_order_release);
}

bool
np_sampler_take(struct np_run *run, struct np_sample *out)
{
	bool all = true;

	memset(out, 0, sizeof(*out));
	NP_EACH_WORKER (w, run) {
		if (state_of(&w->sampler) == NP_SAMPLER_IDLE) {
			atomic_store_explicit(&w->sampler.state, NP_SAMPLER_REQUESTED,
					      memory_order_release);
		}
		all = all && state_of(&w->sampler) == NP_SAMPLER_READY;
	}
	for (uint32_t i = 0; all && i < run->workers; i++) {
		struct np_sampler *s = &run->worker[i].sampler;

		np_tcp_sum_join(&out->tcp, &s->sample.tcp);
		out->queued_in += s->sample.queued_in;
		out->queued_out += s->sample.queued_out;
		out->looked += s->sample.looked;
		out->at_ns += s->sample.at_ns / run->workers;
		out->bytes += s->sample.bytes;
		out->transactions += s->sample.transactions;
		atomic_store_explicit(&s->state, NP_SAMPLER_REQUESTED, memory_order_release);
	}
	return all;
}
