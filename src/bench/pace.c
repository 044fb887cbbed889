#include "bench/pace.h"

#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "bench/run.h"

static uint64_t
interval_ns(const struct np_end *e)
{
	uint64_t us = e->interval_us > 0 ? e->interval_us : NP_PACE_US;

	return e->interval_burst > 0 ? us * 1000 : 0;
}

void
np_pace_begin(struct np_run *run)
{
	struct np_pace *p = &run->worker.pace;

	p->interval_ns = interval_ns(&run->plan->near);
	p->burst = p->left = run->plan->near.interval_burst;
	p->due_ns = run->window.started_ns + p->interval_ns;
	if (p->burst > 0) {
		/* This thread's sleeps may not be lumped together with others' (50 us are usual).
		 */
		prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	}
}

/* Whatever interrupts the sleep but the stop is not meant for it. */
static void
sleep_until(struct np_run *run, uint64_t due_ns)
{
	struct timespec due = { .tv_sec = (time_t)(due_ns / NP_SEC),
				.tv_nsec = (long)(due_ns % NP_SEC) };

	atomic_store_explicit(&run->worker.pace.resting, true, memory_order_relaxed);
	while (!np_stopped(run->stop) &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) != 0) {
	}
	atomic_store_explicit(&run->worker.pace.resting, false, memory_order_relaxed);
}

bool
np_pace(struct np_run *run)
{
	struct np_pace *p = &run->worker.pace;
	uint64_t now;

	if (p->burst == 0 || --p->left > 0) {
		return false;
	}
	p->left = p->burst;
	now = np_now();
	if (now >= p->due_ns) {
		p->due_ns = now + p->interval_ns;
		return false;
	}
	sleep_until(run, p->due_ns);
	run->worker.paced_ns += np_now() - now;
	p->due_ns += p->interval_ns;
	return true;
}

uint64_t
np_pace_longest(const struct np_plan *p)
{
	uint64_t near = interval_ns(&p->near), far = interval_ns(&p->far);

	return near > far ? near : far;
}

bool
np_pace_resting(const struct np_run *run)
{
	return atomic_load_explicit(&run->worker.pace.resting, memory_order_relaxed);
}
