/*
 * Loads: when the next operation of a worker is due. A closed load begins it when the one before is
 * over (with a depth of several, as soon as one of those in flight is). A paced one does a fixed
 * number of operations in each interval (-b and -w). Intervals follow each other without a gap, at
 * exact microseconds from the start of the window. When a burst has taken longer than its interval
 * there is no wait, and the next interval begins there and then: what was missed is never made up
 * for by a faster rate.
 */
#ifndef NP_BENCH_LOAD_H
#define NP_BENCH_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct np_plan;
struct np_worker;

enum { NP_PACE_US = 1000 }; /* an interval, where only a burst was asked for; as netperf */

/* Of one worker, and owned by it, but for `resting`. */
struct np_load {
	uint64_t interval_ns;
	uint64_t due_ns;      /* end of the interval that runs (CLOCK_MONOTONIC) */
	uint32_t burst, left; /* operations of an interval, and those still to come; 0: closed */
	bool is_spent;        /* the burst is over: the next operation is not due before due_ns */
	_Atomic bool resting; /* the worker waits for an interval's end */
};

/* Start the first interval at that time, if the near end is to be paced at all. */
void np_load_begin(struct np_load *l, const struct np_plan *p, uint64_t now_ns);

/* One operation is done. */
static inline void
np_load_done(struct np_load *l)
{
	if (l->burst > 0 && --l->left == 0) {
		l->left = l->burst;
		l->is_spent = true;
	}
}

/* A burst is over. Returns when the next one is due, or 0 where it is at once. */
uint64_t np_load_due(struct np_load *l, uint64_t now_ns);

/*
 * A burst is over: sleep until the next one is due, or the worker is told to stop. w->paced_ns
 * grows by the time. Returns true if there was a wait.
 */
bool np_load_rest(struct np_worker *w);

/* The longest interval that either end pauses for, in ns; 0: neither is paced. */
uint64_t np_load_longest(const struct np_plan *p);

/* Does the worker wait for an interval's end just now? For its controller. */
static inline bool
np_load_resting(const struct np_load *l)
{
	return atomic_load_explicit(&l->resting, memory_order_relaxed);
}

#endif
