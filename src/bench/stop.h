/*
 * How a controller ends a worker's loop: a flag that the loop tests, and signals (run/drive.c) that
 * get it out of a system call. No lost wake-up: the signals go on until the worker answers.
 */
#ifndef NP_BENCH_STOP_H
#define NP_BENCH_STOP_H

#include <stdatomic.h>
#include <stdbool.h>

struct np_stop {
	_Atomic int level; /* 0 go on, 1 leave the loop, 2 leave the draining, too */
};

static inline bool
np_stopped(const struct np_stop *s)
{
	return atomic_load_explicit(&s->level, memory_order_relaxed) != 0;
}

static inline bool
np_abandoned(const struct np_stop *s)
{
	return atomic_load_explicit(&s->level, memory_order_relaxed) > 1;
}

static inline void
np_stop(struct np_stop *s, int level)
{
	if (atomic_load_explicit(&s->level, memory_order_relaxed) < level) {
		atomic_store_explicit(&s->level, level, memory_order_relaxed);
	}
}

#endif
