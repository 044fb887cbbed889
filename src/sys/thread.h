/* The calling thread's processor time: getrusage(2), /proc/thread-self/schedstat (proc(5)). */
#ifndef NP_SYS_THREAD_H
#define NP_SYS_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"
#include "sys/perf.h"

struct np_thread_use {
	const char *root; /* the directory above proc; "" except in tests */
	uint64_t began_ns, ended_ns;
	/* Before np_thread_end(), these are values at the beginning: */
	int64_t user_us, system_us, voluntary, involuntary; /* the last two: context switches */
	int64_t run_delay_ns; /* time ready, but waiting for a processor; -1: not known */
	int thread;           /* its number, gettid(2); 0 before np_thread_open() */
	int cpu;              /* where it ran at the end */
	const struct np_perf_events *counts; /* what the processor is to count; NULL: nothing */
	struct np_perf perf;
};

/*
 * Call it once in the thread, before np_thread_begin(). Sets u->thread, which others may then read,
 * and opens the processor's counters that u->counts asks for (close: np_perf_close()).
 */
void np_thread_open(struct np_thread_use *u);

/* Begin to measure. May be called again. root must be set. */
void np_thread_begin(struct np_thread_use *u);

/* End: the members become differences. */
void np_thread_end(struct np_thread_use *u);

/* Put thread.* */
void np_thread_put(const struct np_thread_use *u, struct np_bag *into);

/* A thread's processor time so far (/proc/PID/schedstat, which a kernel may lack). */
struct np_thread_time {
	uint64_t ran_ns, waited_ns; /* waited: ready to run, but without a processor */
	uint64_t turns;             /* how often it got a processor */
};

/* Read it from an open file schedstat. False: there is none, or the thread has ended. */
bool np_thread_time(int fd, struct np_thread_time *t);

#endif
