/* Threads: their processor time, and what they are doing. */
#ifndef NP_SYS_THREAD_H
#define NP_SYS_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"

/* Counts a thread's cycles and instructions (perf_event_open(2)), in the kernel too if allowed. */
enum { NP_PERF_EVENTS = 2 };

/* Events of linux/perf_event.h that are counted at the same time. */
struct np_perf_events {
	uint32_t type;
	uint64_t config[NP_PERF_EVENTS];
};

/* Cycles and instructions. */
extern const struct np_perf_events np_perf_processor;

struct np_perf {
	bool is_open, user_only; /* user_only: without the kernel's part */
	int error;               /* errno of opening or reading them; 0: none */
	bool never;              /* other programs used the processor's counters all the time */
	int fd[NP_PERF_EVENTS];
	/* The time asked for, and the time counted; until np_perf_end() those at the beginning. */
	uint64_t enabled_ns, running_ns;
	/* Values at the start; after np_perf_end() the differences, scaled if counted in part. */
	uint64_t value[NP_PERF_EVENTS];
};

/* Open counters for the calling thread. If that fails, `error` says why. */
void np_perf_open(struct np_perf *p, const struct np_perf_events *e);

/* Count from now on. May be called again. */
void np_perf_begin(struct np_perf *p);

/* Set `value` and the times to what was counted since np_perf_begin(). */
void np_perf_end(struct np_perf *p);

/* Close them, in the thread that opened them. May be called twice. The values are kept. */
void np_perf_close(struct np_perf *p);

/* Why there are no values, in words; NULL: there are. */
const char *np_perf_why_not(const struct np_perf *p);

/* The calling thread's use: getrusage(2), /proc/thread-self/schedstat (proc(5)). */
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

/* What a thread of ours is doing (proc_pid_stat(5), proc_pid_syscall(5), proc_pid_wchan(5)). */
enum np_doing_what {
	NP_DOING_RUNS,
	NP_DOING_SENDS,
	NP_DOING_RECEIVES,
	NP_DOING_PAUSES,
	NP_DOING_STOPPED,
	NP_DOING_WAITS, /* blocked, in something unknown */
	NP_DOING_KINDS
};

struct np_doing {
	bool is_open;
	int why;                        /* errno of the last sample that failed; 0: none did */
	int time_fd, stat_fd, where_fd; /* the thread's files in /proc; negative: not open */
	bool by_call; /* where_fd names a system call, else a function of the kernel */
	uint64_t looks, seen[NP_DOING_KINDS];
	int cpu;                    /* at the last np_doing_did(); -1: not known */
	struct np_thread_time time; /* at the last np_doing_did() */
};

/* Open the files of a thread (gettid(2)). root: the directory above proc; "" except in tests. */
void np_doing_open(struct np_doing *d, const char *root, int thread);

/* Take a sample. Of a blocked thread, count `blocked` if it is not known in what it waits. */
void np_doing_look(struct np_doing *d, enum np_doing_what blocked);

/* The thread's time since the last call, and d->cpu: where it ran last. False: not known. */
bool np_doing_did(struct np_doing *d, struct np_thread_time *did);

/* Put thread.looks and thread.seen_*; if no sample succeeded, why; if none was tried, nothing. */
void np_doing_put(const struct np_doing *d, struct np_bag *into);

/* Close the files. A zeroed struct is ignored. */
void np_doing_close(struct np_doing *d);

#endif
