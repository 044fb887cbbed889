/*
 * The processor time of the calling thread between two moments: getrusage(2),
 * /proc/thread-self/schedstat (proc(5)).
 */
#ifndef NP_SYS_THREAD_H
#define NP_SYS_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"
#include "sys/perf.h"

struct np_thread_use {
	const char *root; /* the directory above proc; "" except in tests */
	uint64_t began_ns, ended_ns;
	int64_t user_us, system_us, voluntary,
	    involuntary;                     /* before np_thread_end(): at the beginning */
	int thread;                          /* its number, gettid(2); 0 before np_thread_open() */
	int64_t run_delay_ns;                /* ready, but waiting for a processor; -1: not told */
	int cpu;                             /* at the end */
	int error;                           /* errno of getrusage(2), 0 */
	const struct np_perf_events *counts; /* what its processor is to count; NULL: nothing */
	struct np_perf perf;
};

/*
 * Once, before np_thread_begin(), in the thread itself: note its id, which other threads may read
 * from then on, and open the processor's counters, if they are asked for (np_perf_close()).
 */
void np_thread_open(struct np_thread_use *u);

/* Begin. May be called again. root must be set. */
void np_thread_begin(struct np_thread_use *u);

/* End: the members become differences. */
void np_thread_end(struct np_thread_use *u);

/* As thread.* */
void np_thread_put(const struct np_thread_use *u, struct np_bag *into);

/* A thread's processor time so far (/proc/PID/schedstat, which a kernel may lack). */
struct np_thread_time {
	uint64_t ran_ns, waited_ns; /* while it was ready to run */
	uint64_t turns;             /* how often it got a processor */
};

/* By its open file schedstat. False: there is none, or the thread is gone. */
bool np_thread_time(int fd, struct np_thread_time *t);

#endif
