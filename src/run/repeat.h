/* Repeating a test until its result is certain enough: confidence intervals (-i, -I), --clean. */
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
	double width;     /* of the whole interval, in percent of the mean */
	bool result_only; /* ignore the confidence of CPU figures */
	int clean_s,
	    at_most_s; /* --clean: undisturbed seconds wanted, and all at most; 0: unused */
};

/* Clean time of all iterations, and the throughput in it. */
struct np_repeat_clean {
	double seconds, clean, throughput; /* throughput: weighted by clean seconds */
	double reason_s[NP_REASONS];
	char reasons[NP_CLEAN_TEXT];
};

/* Figures that are combined over iterations; SD: service demand. */
enum {
	NP_REPEAT_THROUGHPUT,
	NP_REPEAT_LOCAL_CPU,
	NP_REPEAT_REMOTE_CPU,
	NP_REPEAT_LOCAL_SD,
	NP_REPEAT_REMOTE_SD,
	NP_REPEAT_FIGURES
};

/* The iterations so far. Start from a zeroed struct with the plan filled in. */
struct np_repeat {
	struct np_repeat_plan plan;
	unsigned done;
	struct np_series figure[NP_REPEAT_FIGURES];
	bool cut;         /* set by the caller: the last one ended early */
	double elapsed_s; /* of all iterations */
	/* Iterations differ in length with --clean, or if the last one was cut: sums of each figure
	 * times the seconds, and the seconds. */
	double by_time[NP_REPEAT_FIGURES], known_s[NP_REPEAT_FIGURES];
	struct np_hist *hist; /* of all iterations together; NULL before the first */
	struct np_repeat_clean clean;
};

/* Add an iteration's figures, histogram and clean time (NULL: unknown). NP_ESYS: no memory. */
int np_repeat_add(struct np_repeat *r, const struct np_record *record, const struct np_hist *hist,
		  const struct np_clean *clean, struct np_err *err);

/* Is the test to be run again? */
bool np_repeat_more(const struct np_repeat *r);

/* Was the confidence that was asked for not reached? (One iteration has no interval.) */
bool np_repeat_missed(const struct np_repeat *r);

/* With --clean: the length of the next iteration in seconds. */
int np_repeat_next_s(const struct np_repeat *r);

/* With --clean: are there fewer clean seconds than wanted? */
bool np_repeat_unclean(const struct np_repeat *r);

/* Put figures of all iterations into the last one's record: means, widths, and `latency`: times. */
void np_repeat_conclude(struct np_repeat *r, bool latency, struct np_record *record);

void np_repeat_free(struct np_repeat *r);

#endif
