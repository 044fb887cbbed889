/*
 * How a controller ends a worker's loop: a flag, an eventfd(2) for workers that wait for events,
 * and signals to one that blocks in a call, until it has left its loop (run/drive.c): none is lost.
 */
#ifndef NP_BENCH_STOP_H
#define NP_BENCH_STOP_H

#include <stdatomic.h>
#include <stdbool.h>

enum np_stop_level {
	NP_MARK = -1, /* the end of the warm-up: leave the loop, then go on */
	NP_LEAVE = 1, /* leave the loop */
	NP_HURRY,     /* the user interrupts: do not wait for a path that is silent, either */
	NP_ABANDON    /* nor drain */
};

struct np_stop {
	_Atomic int level; /* enum np_stop_level; 0: run */
	int wake_fd;       /* eventfd(2) of a worker that waits for events; 0: none */
};

/* Told to leave the loop, for good or for a mark? */
static inline bool
np_stopped(const struct np_stop *s)
{
	return atomic_load_explicit(&s->level, memory_order_relaxed) != 0;
}

/* Told to leave the loop for good, not only for a mark? */
static inline bool
np_told_to_leave(const struct np_stop *s)
{
	return atomic_load_explicit(&s->level, memory_order_relaxed) > 0;
}

static inline bool
np_hurried(const struct np_stop *s)
{
	return atomic_load_explicit(&s->level, memory_order_relaxed) >= NP_HURRY;
}

static inline bool
np_abandoned(const struct np_stop *s)
{
	return atomic_load_explicit(&s->level, memory_order_relaxed) >= NP_ABANDON;
}

/* Controller: raise the level. The worker itself only takes back NP_MARK. */
void np_stop(struct np_stop *s, int level);

/* Controller: have a worker leave its loop, and go on. No effect once it was told to leave. */
void np_stop_mark(struct np_stop *s);

/* Worker: take back NP_MARK, to go on. False: no mark, or told to leave for good. */
bool np_stop_take_mark(struct np_stop *s);

#endif
