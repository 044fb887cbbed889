/*
 * Repeating a test until its result is sure enough: netperf's confidence intervals (-i, -I).
 */
#ifndef NP_RUN_REPEAT_H
#define NP_RUN_REPEAT_H

#include <stdbool.h>

#include "base/err.h"
#include "run/clean.h"
#include "stats/confidence.h"
#include "stats/hist.h"
#include "stats/record.h"

struct np_repeat_plan {
	int max, min;     /* iterations */
	int level;        /* 95 or 99 percent; 0: no confidence is asked for */
	double width;     /* percent: the whole interval */
	bool result_only; /* the CPU figures may be as unsure as they like */
	int clean_s,
	    at_most_s; /* undisturbed seconds there are to be, and all at most; 0: no matter */
};

/* What all iterations have of clean time, and carried in it. */
struct np_repeat_clean {
	double seconds, clean, throughput; /* the last: the mean by clean seconds */
	double reason_s[NP_REASONS];
	char reasons[NP_CLEAN_TEXT];
};

enum { NP_REPEAT_FIGURES = 5 }; /* of each iteration: a rate, and what it cost at both ends */

/* What came of it so far. Start from a zeroed struct with the plan filled in. */
struct np_repeat {
	struct np_repeat_plan plan;
	unsigned done;
	struct np_series throughput, elapsed, local_cpu, remote_cpu, local_sd, remote_sd;
	double elapsed_s; /* of all iterations */
	/* Where clean seconds are asked for iterations are as long as it takes: the figures above
	 * times each one's seconds. */
	double by_time[NP_REPEAT_FIGURES];
	struct np_hist *hist; /* of all iterations together; NULL before the first */
	struct np_repeat_clean clean;
};

/* Take one iteration's figures and its histogram. NP_ESYS without memory. */
int np_repeat_add(struct np_repeat *r, const struct np_record *record, const struct np_hist *hist,
		  struct np_err *err);

/* Take what of that iteration was clean; NULL: it is not known. */
void np_repeat_add_clean(struct np_repeat *r, const struct np_record *record,
			 const struct np_clean *clean);

/* Is the test to be run again? */
bool np_repeat_more(const struct np_repeat *r);

/* Was the confidence that was asked for not reached? */
bool np_repeat_missed(const struct np_repeat *r);

/*
 * Where clean seconds are asked for: how many the next iteration is to last. What this came to is
 * in r->clean.
 */
int np_repeat_next_s(const struct np_repeat *r);

/* Are there fewer clean seconds than were asked for? */
bool np_repeat_unclean(const struct np_repeat *r);

/* Put what all iterations together say into the last one's record: means, widths, latencies. */
void np_repeat_conclude(struct np_repeat *r, bool latency, struct np_record *record);

void np_repeat_free(struct np_repeat *r);

#endif
