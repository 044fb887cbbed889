#include "bench/load.h"

#include <math.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench/run.h"

/* By which the kernel may extend sleeps of a thread (default: 50 us): as little as possible. */
static const unsigned long TIMER_SLACK_NS = 1;

/*
 * Set due_ns by the number of the operation in the run, a->place. Poisson processes of the workers
 * add up to the whole rate. Other times are multiples of the interval: no rounding errors add up.
 */
static void
set_due(struct np_arrivals *a)
{
	uint64_t first, z;

	if (a->how == NP_ARRIVE_POISSON) {
		/* A random number in (0, 1], by splitmix64. */
		z = a->seed += UINT64_C(0x9e3779b97f4a7c15);
		z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
		z ^= z >> 31;
		a->at -= log(((double)(z >> 11) + 1) / (double)(UINT64_C(1) << 53)) * 1e9 *
			 a->workers / a->rate;
		a->due_ns = a->start_ns + (uint64_t)a->at;
		return;
	}
	first = a->place - a->place % a->how; /* of its burst */
	a->due_ns = a->start_ns + (uint64_t)((double)first * 1e9 / a->rate);
}

void
np_arrivals_next(struct np_arrivals *a)
{
	a->place += a->workers;
	set_due(a);
}

const char *
np_arrivals_text(uint32_t arrivals, char text[NP_ARRIVALS_TEXT])
{
	if (arrivals > NP_ARRIVE_EVENLY) {
		snprintf(text, NP_ARRIVALS_TEXT, "burst:%u", arrivals);
		return text;
	}
	return arrivals == NP_ARRIVE_POISSON ? "poisson" : "constant";
}

/* --- Kinds: how many operations may begin now --- */

static uint32_t
closed_more(struct np_load *l, uint64_t now_ns)
{
	return UINT32_MAX; /* responses and full socket buffers limit the rate */
}

/* A burst for each interval: from the last one's end if operations were held till it, else now. */
static uint32_t
paced_more(struct np_load *l, uint64_t now_ns)
{
	if (now_ns >= l->until_ns) { /* a receiver drains its queue without pauses */
		return UINT32_MAX;
	}
	if (now_ns >= l->closes_ns) {
		l->due_ns = UINT64_MAX;
		return 0;
	}
	if (now_ns < l->end_ns) {
		l->due_ns = np_min(l->end_ns, l->until_ns);
		return 0;
	}
	/* If they were held only for others' turn (np_load_block()), due_ns is earlier. */
	l->end_ns = (l->holds && l->due_ns == l->end_ns ? l->end_ns : now_ns) + l->interval_ns;
	return l->burst;
}

uint32_t
np_load_next_due(struct np_load *l, uint64_t now_ns)
{
	l->due_ns = l->arrivals.due_ns;
	if (now_ns < l->due_ns) {
		return 0;
	}
	np_arrivals_next(&l->arrivals);
	return 1;
}

/* A connection more than NP_RAMP_LATE_NS late puts off all later ones. */
static uint32_t
ramp_more(struct np_load *l, uint64_t now_ns)
{
	if (now_ns > l->arrivals.due_ns + NP_RAMP_LATE_NS) {
		l->arrivals.start_ns += now_ns - l->arrivals.due_ns;
	}
	return np_load_next_due(l, now_ns);
}

/* All messages that are due, but not too many at a time. */
static uint32_t
offered_more(struct np_load *l, uint64_t now_ns)
{
	uint32_t due = 0;

	while (due < NP_LOAD_DUE_MOST && l->arrivals.due_ns <= now_ns &&
	       l->arrivals.due_ns < l->until_ns) {
		np_arrivals_next(&l->arrivals);
		due++;
	}
	l->due_ns = l->arrivals.due_ns < l->until_ns ? l->arrivals.due_ns : UINT64_MAX;
	return due;
}

const struct np_load_kind np_load_offered = { .more = offered_more };
const struct np_load_kind np_load_closed = { .more = closed_more };
const struct np_load_kind np_load_paced = { .more = paced_more };
const struct np_load_kind np_load_ramp = { .more = ramp_more };

const struct np_load_kind *
np_load_of(const struct np_end *e)
{
	return e->call.interval_burst > 0 ? &np_load_paced : &np_load_closed;
}

uint64_t
np_load_pause_of(const struct np_end *e)
{
	uint64_t us = e->call.interval_us > 0 ? e->call.interval_us : NP_PACE_US;

	return e->call.interval_burst > 0 ? us * 1000 : 0;
}

uint64_t
np_load_pause(const struct np_plan *p)
{
	return np_max(np_load_pause_of(&p->near), np_load_pause_of(&p->far));
}

void
np_load_add(struct np_load *l, const struct np_end *e, uint32_t conns, bool begun)
{
	uint64_t more = (uint64_t)e->call.interval_burst * conns;

	l->burst = (uint32_t)np_min(l->burst + more, UINT32_MAX);
	l->allowed = (uint32_t)np_min(l->allowed + np_excess(more, begun ? conns : 0), UINT32_MAX);
}

void
np_load_begin(struct np_load *l, const struct np_end *e, uint64_t now_ns)
{
	*l = (struct np_load){ .kind = np_load_of(e),
			       .until_ns = UINT64_MAX,
			       .closes_ns = UINT64_MAX };
	if (l->kind == &np_load_closed) {
		return;
	}
	l->row = (uint32_t)np_min(e->call.interval_burst, UINT16_MAX); /* as np_conn.in_row */
	l->interval_ns = np_load_pause_of(e);
	l->end_ns = now_ns + l->interval_ns;
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0UL, 0UL, 0UL);
}

void
np_load_begin_due(struct np_load *l, const struct np_load_kind *kind, double rate,
		  uint32_t arrivals, uint32_t worker, uint32_t workers, uint64_t start_ns)
{
	*l =
	    (struct np_load){ .kind = kind, .is_open = kind->next != NULL, .until_ns = UINT64_MAX };
	l->arrivals = (struct np_arrivals){ .start_ns = start_ns,
					    .place = worker,
					    .rate = rate,
					    .workers = workers,
					    .how = arrivals,
					    .seed = start_ns * workers + worker };
	set_due(&l->arrivals);
	if (kind == &np_load_offered) { /* only it sleeps in np_load_wait() */
		prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0UL, 0UL, 0UL);
	}
}

void
np_load_count_held(struct np_load *l, uint64_t now_ns)
{
	if (l->holds && now_ns > l->held_ns) {
		l->paced_ns += now_ns - l->held_ns;
		l->held_ns = now_ns;
	}
}

void
np_load_unblock(struct np_load *l, uint64_t now_ns)
{
	np_load_count_held(l, now_ns);
	l->holds = false;
}

void
np_load_block(struct np_load *l, uint64_t now_ns)
{
	if (!l->holds) {
		l->holds = true;
		l->held_ns = l->due_ns = now_ns;
	}
}

bool
np_load_may(struct np_load *l, uint64_t now_ns)
{
	if (l->allowed == 0) {
		if (l->holds && now_ns < l->due_ns) {
			return false;
		}
		l->allowed = l->kind->more(l, now_ns);
		if (l->allowed == 0) {
			l->held_ns = l->holds ? l->held_ns : now_ns;
			l->holds = true;
			return false;
		}
		np_load_unblock(l, now_ns);
	}
	l->allowed--;
	return true;
}

uint64_t
np_load_wake(struct np_worker *w)
{
	return w->load.is_open ? w->load.kind->wake(w)
	       : w->load.holds ? w->load.due_ns
			       : UINT64_MAX;
}

bool
np_load_wait(struct np_worker *w)
{
	struct np_load *l = &w->load;
	bool others_wait = l->holds, may = false; /* others: further connections of the worker */
	uint64_t now;

	atomic_store_explicit(&l->waiting, true, memory_order_relaxed);
	/* A signal interrupts the sleep, but only the stop flag ends it. */
	while (!np_stopped(&w->stop) && !(may = np_load_may(l, np_now()))) {
		struct timespec due = { .tv_sec = (time_t)(l->due_ns / NP_SEC),
					.tv_nsec = (long)(l->due_ns % NP_SEC) };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
	}
	atomic_store_explicit(&l->waiting, false, memory_order_relaxed);
	now = np_now();
	np_load_unblock(l, now);
	if (others_wait) { /* this connection's hold is over, theirs is not */
		np_load_block(l, now);
	}
	return may;
}
