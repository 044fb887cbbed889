/*
 * Kernel figures of connections while the window is open. A worker that waits for events takes them
 * between turns, when the controller asks for them: no other thread reads its descriptors.
 */
#ifndef NP_BENCH_SAMPLER_H
#define NP_BENCH_SAMPLER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/tcpinfo.h"

struct np_conn;
struct np_plan;
struct np_run;
struct np_worker;

/* Connections per sample, evenly chosen. */
enum { NP_SAMPLER_MOST = 64 };

/* Sums over those connections. */
struct np_sample {
	struct np_tcp_sum tcp;         /* TCP_INFO, where there is one */
	int64_t queued_in, queued_out; /* bytes not read yet (UDP: with overhead), not sent yet */
	uint32_t looked;               /* how many connections */
	uint64_t at_ns;                /* time of the sample; 0: none */
	uint64_t bytes, transactions;  /* moved by then, if the worker took the sample */
};

enum { NP_SAMPLER_IDLE, NP_SAMPLER_REQUESTED, NP_SAMPLER_READY };

/* Between a worker and its controller. A zeroed one is idle. */
struct np_sampler {
	_Atomic int state;
	struct np_sample sample; /* REQUESTED: owned by the worker; READY: by the controller */
};

/* Between two turns: is the controller done with the last sample, and asks for another one? */
static inline bool
np_sampler_is_asked(const struct np_sampler *s)
{
	return atomic_load_explicit(&s->state, memory_order_acquire) == NP_SAMPLER_REQUESTED;
}

/* Add figures of connections that are up, NP_SAMPLER_MOST at most, while workers may use them. */
void np_sample_add(struct np_sample *s, const struct np_plan *p, const struct np_conn *conn,
		   uint32_t conns);

/* Worker: take the sample that it is asked for. */
void np_sampler_answer(struct np_worker *w);

/* Controller: sum up all workers' samples (at_ns: mean), request new ones. False: some missing. */
bool np_sampler_take(struct np_run *run, struct np_sample *out);

#endif
