/*
 * What a controller observes while the window is open: how late its looks were and how long they
 * took, from which run/disturbed.h judges whether the process stood still, and what its workers
 * were doing.
 */
#ifndef NP_RUN_WITNESS_H
#define NP_RUN_WITNESS_H

#include <stdint.h>

#include "base/bag.h"
#include "bench/run.h"
#include "sys/doing.h"

enum { NP_WITNESS_THREADS = 8 }; /* the first ones; each takes two descriptors */

struct np_witness {
	const char *root;             /* of proc, "" in earnest */
	uint64_t every_ns;            /* how often it was to look; 0: never */
	uint64_t looks;               /* how often it did */
	uint64_t last_ns;             /* when it did last; 0: never */
	uint64_t threads_ns;          /* when threads were looked at last; 0: never */
	uint64_t longest_ns;          /* between two looks */
	uint64_t began_ns, looked_ns; /* when the last look of any kind began, and ended */
	uint64_t late_ns, looking_ns; /* by which looks came late, and took, in an interval */
	uint64_t stopped_ns;          /* the process stood still */
	struct np_doing thread[NP_WITNESS_THREADS];
};

/* Open the files by which threads are looked at, unless they are open. */
void np_witness_open(struct np_witness *w, const struct np_run *run);

/* Call both around each look of any kind; due_ns: when it should have begun. */
void np_witness_begin(struct np_witness *w, uint64_t due_ns, uint64_t now_ns);
void np_witness_done(struct np_witness *w, uint64_t now_ns);

/* A zeroed one with `root` and `every_ns` set is ready. The window is open, and this is a look. */
void np_witness_look(struct np_witness *w, const struct np_run *run, uint64_t now_ns);

/* When the last look was due: within the test's time, though the last call may end later. */
uint64_t np_witness_last_due(const struct np_run *run);

/* The window is over: put sampler.*, and thread.seen_* of that worker, and close the files. */
void np_witness_end(struct np_witness *w, const struct np_run *run, const struct np_worker *worker,
		    struct np_bag *into);

#endif
