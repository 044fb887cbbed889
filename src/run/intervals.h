/*
 * A test in intervals: what one end saw in each of them (run/disturbed.h), in a bounded number of
 * rows however long the test is.
 */
#ifndef NP_RUN_INTERVALS_H
#define NP_RUN_INTERVALS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bag.h"

enum np_reason {
	NP_R_STEAL,
	NP_R_PRESSURE,
	NP_R_SWITCHES,
	NP_R_FREQUENCY,
	NP_R_THROTTLING,
	NP_R_IRQ,
	NP_R_SQUEEZED,
	NP_R_FOREIGN,
	NP_R_CLOCK,
	NP_R_STOPPED,
	NP_R_PROCESSOR,
	NP_REASONS,
	NP_R_ANY = NP_REASONS, /* at least one of them */
	NP_MARKS
};

/* "steal" and so on; "marked". */
const char *np_reason_name(enum np_reason r);

enum {
	NP_DISTURBED_MS = 100,  /* between two looks */
	NP_DISTURBED_MOST = 512 /* intervals; when there would be more, two become one */
};

/* An interval, by what this end alone can say. */
struct np_interval {
	uint64_t end_us;              /* since the window began */
	uint64_t work;                /* bytes or transactions */
	uint64_t marked_work;         /* of that, beside any mark */
	uint64_t cpus;                /* processors of the workers: a bit each, modulo 63 */
	uint64_t marked_us[NP_MARKS]; /* by reason, without those that take both ends: pressure,
				       * switches, processor */
	uint64_t waited_us;           /* all workers were ready and waited for a processor */
	uint64_t kept_us;             /* longest wait of a worker for other programs */
	uint64_t short_us; /* of that, what the kernel may have used to handle the packets that woke
			      it */
	uint64_t used_us;  /* of processors, by this process */
	uint64_t stalled_us; /* some thread of this machine waited for a processor */
	uint64_t others_us;  /* a worker's processor ran programs, less this process's part */
};

struct np_intervals {
	uint64_t looks; /* that were kept */
	uint64_t every; /* looks that make an interval; 0: none was kept */
	size_t count;
	struct np_interval interval[NP_DISTURBED_MOST];
};

/* Keep what a look saw. marks: a bit of each reason, for all of the time since the last look. */
void np_intervals_keep(struct np_intervals *all, struct np_interval seen, uint32_t marks);

/* As disturbed.*: a list of each member; of marks those that there are. */
void np_intervals_put(const struct np_intervals *all, struct np_bag *into);

#endif
