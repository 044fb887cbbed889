/*
 * What disturbed a test: ten times a second the controller looks at the machine, its threads and
 * the interface, and marks the interval with reasons. run/clean.h compares the marks of both ends.
 */
#ifndef NP_RUN_DISTURBED_H
#define NP_RUN_DISTURBED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"
#include "bench/run.h"
#include "run/intervals.h"
#include "sys/meters.h"
#include "sys/thread.h"

/* From when on an interval counts as disturbed, as in doc/evidence.md (see tests/e2e/doc.py). */
#define NP_D_STEAL 0.15   /* share of a processor's time that the hypervisor gave to others */
#define NP_D_WAITED 0.06  /* share of the time that a worker waited while others ran */
#define NP_D_TOUCHED 0.03 /* the same if it ran for less, or if many threads compete */
#define NP_D_SHORT_US 40  /* us of each wait: the kernel still handles the packets that woke it */
#define NP_D_STALLED 0.3  /* share of the time that threads of others waited for a processor */
#define NP_D_OTHERS 0.3   /* share of a worker's processor used by programs outside the test */
#define NP_D_SLOW 0.8     /* of the highest frequency so far: a busy processor below it is slowed */
#define NP_D_SLOW_BUSY 0.5    /* share of its time from which on a processor is busy */
#define NP_D_SQUEEZED 10      /* softirqs cut short in an interval that may be the test's own */
#define NP_D_SQUEEZED_TIMES 4 /* times the mean so far: more than that is not the test's own */
#define NP_D_FOREIGN 0.05     /* share of the interface's bytes that may be headers, or read late */
#define NP_D_FOREIGN_BYTES 20000 /* an interval: ARP, a shell and the like do not disturb */
#define NP_D_CLOCK_S 0.001  /* s: a step of the wall clock; slewing moves it by 0.00005 in 0.1 s */
#define NP_D_STOPPED_S 0.02 /* s in an interval in which the process stood still */

enum { NP_WITNESS_THREADS = 8 }; /* the first ones; each takes two descriptors */

/* What a controller sees in the window: how late and long its looks were, what workers did. */
struct np_witness {
	const char *root;             /* of proc, for tests; else "" */
	uint64_t every_ns;            /* intended time between looks; 0: none */
	uint64_t looks;               /* so far */
	uint64_t last_ns;             /* time of the last one; 0: none */
	uint64_t threads_ns;          /* when threads were last looked at; 0: never */
	uint64_t longest_ns;          /* between two looks */
	uint64_t began_ns, looked_ns; /* when the last look of any kind began, and ended */
	uint64_t late_ns,
	    looking_ns;      /* how late looks came, and how long they took, in an interval */
	uint64_t stopped_ns; /* how long the process stood still */
	uint32_t threads;    /* that are looked at; 0: not open */
	struct np_doing thread[NP_WITNESS_THREADS];
};

/* What the test's connections have carried. */
struct np_carried {
	bool knows_out, knows_in;
	uint64_t out, in;                 /* bytes without headers */
	uint64_t out_packets, in_packets; /* at most */
	uint64_t waiting;                 /* bytes in receive queues, not counted yet, at most */
};

struct np_disturbed {
	const struct np_run *run;
	struct np_meters meters;
	uint64_t looks;
	uint64_t last_ns;             /* when the last look began */
	int self_fd;                  /* the controller's schedstat, or a negative errno */
	struct np_thread_time self;   /* of the controller, at the last look */
	uint64_t process_ns, user_ns; /* processor time of this process; in user mode */
	uint64_t cpus, work; /* bits of processors that workers were on; np_interval.work so far */
	struct np_carried own;
	double squeezed; /* softirqs cut short so far (np_meters_seen) */
	/* Of each meters.cpu: highest frequency so far; times it was throttled, plus 1, or 0. */
	uint64_t top_khz[NP_METERS_NEAR], throttled[NP_METERS_NEAR];
	uint64_t ahead; /* bytes sent that the interface has not counted yet, at most */
	/* The last interval, which the next look may unmark, and the foreign bytes found in it. */
	struct np_interval held;
	uint32_t held_marks; /* bits of NP_R_* */
	uint64_t owed_out, owed_in;
	bool peer_here;          /* the far end's address is this machine's */
	const char *foreign_why; /* why foreign bytes can't be known; NULL: they can */
	struct np_intervals intervals;
};

/* To be called before and after each look for samples or disturbances; due_ns: when it was due. */
void np_witness_begin(struct np_witness *w, uint64_t due_ns, uint64_t now_ns);
void np_witness_done(struct np_witness *w, uint64_t now_ns);

/* A look during the window. Before the first one, set root and every_ns, and zero the rest. */
void np_witness_look(struct np_witness *w, const struct np_run *run, uint64_t now_ns);

/* After the window: put sampler.*, put thread.seen_* of `worker`, and close the files of all. */
void np_witness_end(struct np_witness *w, const struct np_run *run, const struct np_worker *worker,
		    struct np_bag *into);

/* Open the files. The run's endpoint must exist. root, of proc and sys, must outlive *d. */
void np_disturbed_begin(struct np_disturbed *d, const char *root, const char *device,
			const struct np_run *run);

/* Judge the interval since the last look; the first look is due when the window opens. */
void np_disturbed_look(struct np_disturbed *d, struct np_witness *w, uint64_t now_ns);

/* After the window: put disturbed.*, and close the files. */
void np_disturbed_end(struct np_disturbed *d, struct np_witness *w, struct np_bag *into);

#endif
