/* What a controller sees in the window: how late and long its looks were, what workers did. */
#ifndef NP_RUN_WITNESS_H
#define NP_RUN_WITNESS_H

#include <stdint.h>

#include "base/bag.h"
#include "bench/run.h"
#include "sys/thread.h"

enum { NP_WITNESS_THREADS = 8 }; /* the first ones; each takes two descriptors */

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
	struct np_doing thread[NP_WITNESS_THREADS];
};

/* Open the files of threads, unless they are open. */
void np_witness_open(struct np_witness *w, const struct np_run *run);

/* To be called before and after each look for samples or disturbances; due_ns: when it was due. */
void np_witness_begin(struct np_witness *w, uint64_t due_ns, uint64_t now_ns);
void np_witness_done(struct np_witness *w, uint64_t now_ns);

/* A look during the window. Before the first one, set root and every_ns, and zero the rest. */
void np_witness_look(struct np_witness *w, const struct np_run *run, uint64_t now_ns);

/* When the last look was due: not after the test's length, though its last call may end later. */
uint64_t np_witness_last_due(const struct np_run *run);

/* After the window: put sampler.*, put thread.seen_* of `worker`, and close the files of all. */
void np_witness_end(struct np_witness *w, const struct np_run *run, const struct np_worker *worker,
		    struct np_bag *into);

#endif
