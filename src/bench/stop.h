/*
 * How a controller ends a worker's loop: a flag tested by the loop, and an eventfd(2) for workers
 * that wait for events. A worker that blocks in a call is interrupted by signals (run/drive.c)
 * until it answers, so no wake-up is lost.
 */
#ifndef NP_BENCH_STOP_H
#define NP_BENCH_STOP_H

#include <stdatomic.h>
#include <stdbool.h>

enum { NP_MARK = -1 };

struct np_stop {
	/* 0: run, 1: leave the loop, 2: stop draining, too; NP_MARK: leave it for a moment */
	_Atomic int level;
	int wake_fd; /* eventfd(2) of a worker that waits for events; 0: none */
};

static inline bool
np_stopped(const struct np_stop *s)
{
	return atomic_load_explicit(&s->level, memory_order_relaxed) != 0;
}

/* For good? */
static inline bool
np_told_to_leave(const struct np_stop *s)
{
	return atomic_load_explicit(&s->level, memory_order_relaxed) > 0;
}

static inline bool
np_abandoned(const struct np_stop *s)
{
	return atomic_load_explicit(&s->level, memory_order_relaxed) > 1;
}

/* The level only rises. */
void np_stop(struct np_stop *s, int level);

/*
 * Have a worker leave its loop to record where it is, and go on; not if it is to stop. The worker
 * takes the mark by np_stop_take_mark(), which is false if it was told to stop meanwhile.
 */
void np_stop_mark(struct np_stop *s);
bool np_stop_take_mark(struct np_stop *s);

/* Make the eventfd. Returns 0 or -errno. */
int np_stop_open(struct np_stop *s);
void np_stop_close(struct np_stop *s);

#endif
