/*
 * What a controller is witness to while the window is open: when it did not get to look itself,
 * which says that the process stood still, and what its workers were doing when it looked.
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
	uint64_t every_ns;            /* how often it was to look; 0: nobody looks */
	uint64_t looks;               /* how often it did */
	uint64_t held_up;             /* of these: late, and it had not waited for a processor */
	uint64_t last_ns;             /* when it did last; 0: never */
	uint64_t threads_ns;          /* when threads were looked at last; 0: never */
	uint64_t longest_ns, late_ns; /* between two looks; beyond what is to be expected */
	int64_t delay_ns;             /* np_thread_run_delay() when that was asked last */
	uint64_t asked_ns;            /* which was then */
	uint64_t waited_ns;           /* of late_ns what it waited for a processor */
	struct np_doing thread[NP_WITNESS_THREADS];
};

/* Open what threads are looked at by, where that has not been done. The workers are there. */
void np_witness_open(struct np_witness *w, const struct np_run *run);

/*
 * A zeroed one with `root` and `every_ns` set is ready. The window is open, and this is a look that
 * was due then.
 */
void
np_witness_look(struct np_witness *w, const struct np_run *run, uint64_t due_ns, uint64_t now_ns);

/*
 * The window is over: put sampler.*, and thread.seen_* of that worker. Closes what the looks have
 * opened.
 */
void np_witness_end(struct np_witness *w, const struct np_run *run, const struct np_worker *worker,
		    struct np_bag *into);

#endif
