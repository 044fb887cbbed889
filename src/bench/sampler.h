/*
 * What the kernel knows of a worker's connections while the window is open. A worker that waits for
 * events looks between two turns, when its controller has asked: no other thread reads its
 * descriptors, and the controller never waits.
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

/* The most connections of a worker that one sample reads, evenly chosen. */
enum { NP_SAMPLER_MOST = 64 };

/* Sums over those connections. */
struct np_sample {
	struct np_tcp_sum tcp; /* TCP_INFO, of those that have it */
	int64_t queued_in,
	    queued_out;  /* bytes not read yet (UDP: with what keeps them), not sent yet */
	uint32_t looked; /* how many they were */
	uint64_t at_ns;  /* when they were looked at; 0: they were not */
	uint64_t bytes, transactions; /* moved by then, where the worker itself has looked */
};

/* Between a worker and its controller. A zeroed one is idle. */
struct np_sampler {
	_Atomic int state;       /* 0 idle, 1 a sample is wanted, 2 it is there */
	struct np_sample sample; /* the worker's in state 1, the controller's in 2 */
};

static inline bool
np_sampler_is_asked(const struct np_sampler *s)
{
	return atomic_load_explicit(&s->state, memory_order_relaxed) == 1;
}

/*
 * Add what the kernel knows of some connections; of a ramp of those that have come about. Their
 * workers may be in calls on them.
 */
void np_sample_add(struct np_sample *s, const struct np_plan *p, const struct np_conn *conn,
		   uint32_t conns);

/* The worker's: look, and answer. */
void np_sampler_answer(struct np_worker *w);

/*
 * The controller's: take the samples that all workers were asked for the last time, and ask for the
 * next ones. False when one of them is not there yet.
 */
bool np_sampler_take(struct np_run *run, struct np_sample *out);

#endif
