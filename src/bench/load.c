#include "bench/load.h"

#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "bench/run.h"

static uint64_t
interval_ns(const struct np_end *e)
{
	uint64_t us = e->call.interval_us > 0 ? e->call.interval_us : NP_PACE_US;

	return e->call.interval_burst > 0 ? us * 1000 : 0;
}

void
np_load_begin(struct np_load *l, const struct np_plan *p, uint64_t now_ns)
{
	l->interval_ns = interval_ns(&p->near);
	l->burst = l->left = p->near.call.interval_burst;
	l->due_ns = now_ns + l->interval_ns;
	l->is_spent = false;
	if (l->burst > 0) {
		/* This thread's sleeps may not be lumped together with others' (50 us are usual).
		 */
		prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	}
}

uint64_t
np_load_due(struct np_load *l, uint64_t now_ns)
{
	uint64_t due = l->due_ns;

	l->is_spent = false;
	if (now_ns >= due) {
		l->due_ns = now_ns + l->interval_ns;
		return 0;
	}
	l->due_ns += l->interval_ns;
	return due;
}

bool
np_load_rest(struct np_worker *w)
{
	uint64_t now = np_now(), at = np_load_due(&w->load, now);
	struct timespec due = { .tv_sec = (time_t)(at / NP_SEC), .tv_nsec = (long)(at % NP_SEC) };

	if (at == 0) {
		return false;
	}
	atomic_store_explicit(&w->load.resting, true, memory_order_relaxed);
	/* Whatever interrupts the sleep but the stop is not meant for it. */
	while (!np_stopped(&w->stop) &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) != 0) {
	}
	atomic_store_explicit(&w->load.resting, false, memory_order_relaxed);
	w->paced_ns += np_now() - now;
	return true;
}

uint64_t
np_load_longest(const struct np_plan *p)
{
	uint64_t near = interval_ns(&p->near), far = interval_ns(&p->far);

	return near > far ? near : far;
}
