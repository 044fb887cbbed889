/*
 * Pacing: so many operations an interval (-b and -w). A loop that is paced calls np_pace() after
 * every operation; at the end of a burst that sleeps until the interval is over. Intervals follow
 * each other without a gap, at exact microseconds from the start of the measured part. When a burst
 * has taken longer than its interval there is no wait, and the next interval begins there and then:
 * what was missed is never made up for by a faster rate.
 */
#ifndef NP_BENCH_PACE_H
#define NP_BENCH_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct np_run;
struct np_plan;

enum { NP_PACE_US = 1000 }; /* an interval, where only a burst was asked for; as netperf */

/* Of one flow; owned by its worker, but for `resting`. */
struct np_pace {
	uint64_t interval_ns;
	uint64_t due_ns;      /* end of the interval that runs (CLOCK_MONOTONIC) */
	uint32_t burst, left; /* operations of an interval, and those still to come; 0: no pacing */
	_Atomic bool resting; /* the worker waits for an interval's end */
};

/* Start the first interval at run->window.started_ns, if the near end is to be paced at all. */
void np_pace_begin(struct np_run *run);

/*
 * One operation is done. Returns true if that ended a burst and the rest of its interval has been
 * waited for, or the loop was stopped meanwhile; run->worker.paced_ns has grown by the time.
 */
bool np_pace(struct np_run *run);

/* The longest interval that either end pauses for, in ns; 0: neither is paced. */
uint64_t np_pace_longest(const struct np_plan *p);

/* Does the worker wait for an interval's end just now? For its controller. */
bool np_pace_resting(const struct np_run *run);

#endif
