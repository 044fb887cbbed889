/*
 * Samples of what a thread of this process does: it runs or is ready to run; it is blocked in
 * sending, in receiving or in a pause; it is stopped (proc_pid_stat(5), proc_pid_syscall(5),
 * proc_pid_wchan(5)).
 */
#ifndef NP_SYS_DOING_H
#define NP_SYS_DOING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"
#include "sys/thread.h"

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
	int why;                        /* errno, if it can't be sampled; 0 */
	int time_fd, stat_fd, where_fd; /* files of the thread's; negative: not open */
	bool by_call; /* the last names a system call, else a place in the kernel */
	uint64_t looks, seen[NP_DOING_KINDS];
	int cpu; /* at the last np_doing_did(); -1 */
	struct np_thread_time time;
};

/* For that thread (gettid(2)). root: the directory above proc; "" except in tests. */
void np_doing_open(struct np_doing *d, const char *root, int thread);

/* Take a sample. blocked: what to count if the kernel tells only that the thread is blocked. */
void np_doing_look(struct np_doing *d, enum np_doing_what blocked);

/*
 * Its processor time since the last call; d->cpu is where it runs now, or ran last. False: that is
 * not known, or it is not open.
 */
bool np_doing_did(struct np_doing *d, struct np_thread_time *did);

/* As thread.looks and thread.seen_*: nothing where there were no looks. */
void np_doing_put(const struct np_doing *d, struct np_bag *into);

/* A zeroed one is ignored. */
void np_doing_close(struct np_doing *d);

#endif
