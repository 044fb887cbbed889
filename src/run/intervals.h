/* A test in intervals: what one end saw in each (run/disturbed.h), in a bounded number of rows. */
#ifndef NP_RUN_INTERVALS_H
#define NP_RUN_INTERVALS_H

#include <stddef.h>
#include <stdint.h>

#include "base/bag.h"

/* Why an interval is marked as disturbed: doc/evidence.md; from when on: run/disturbed.h. */
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

/* The reason's name in evidence, as in disturbed.steal_us; of NP_R_ANY "marked". */
const char *np_reason_name(enum np_reason r);

enum {
	NP_DISTURBED_MS = 100,  /* between two looks of the controller */
	NP_DISTURBED_MOST = 512 /* intervals; when there would be more, two become one */
};

/* What this end knows about an interval. */
struct np_interval {
	uint64_t end_us;              /* since the window began */
	uint64_t work;                /* bytes or transactions */
	uint64_t marked_work;         /* the part of it in marked time */
	uint64_t cpus;                /* bits of the workers' processors, modulo 63 */
	uint64_t marked_us[NP_MARKS]; /* by reason, except for pressure, switches and processor,
				       * which need both ends */
	uint64_t waited_us;           /* for a processor: sum of all workers */
	uint64_t kept_us;             /* longest wait of a worker because of other programs */
	uint64_t short_us;            /* of that, time for the packets that woke it */
	uint64_t used_us;             /* processor time of this process */
	uint64_t stalled_us; /* in which any thread of this machine waited for a processor */
	uint64_t others_us;  /* for which other programs ran on a worker's processor */
};

struct np_intervals {
	uint64_t looks; /* so far */
	uint64_t every; /* looks in an interval; 0: there was none */
	size_t count;
	struct np_interval interval[NP_DISTURBED_MOST];
};

/* Keep what a look saw. marks: bits of its reasons, by which marked_us and marked_work are set. */
void np_intervals_keep(struct np_intervals *all, struct np_interval seen, uint32_t marks);

/* Put disturbed.*: a list for each member, and for each reason that occurred. */
void np_intervals_put(const struct np_intervals *all, struct np_bag *into);

#endif
