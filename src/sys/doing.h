/* What a thread of ours is doing (proc_pid_stat(5), proc_pid_syscall(5), proc_pid_wchan(5)). */
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
