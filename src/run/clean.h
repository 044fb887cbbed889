/* The undisturbed part of a test, by both ends' marks. "Near" is the judging end, the client. */
#ifndef NP_RUN_CLEAN_H
#define NP_RUN_CLEAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bag.h"
#include "run/disturbed.h"

/* Successive intervals with the same marks. */
struct np_clean_run {
	double from_s, to_s; /* since the window began */
	uint32_t marks;
};

enum { NP_CLEAN_TEXT = 256 };

struct np_clean {
	double every_s;          /* length of an interval */
	double seconds, clean_s; /* of all intervals, and of those without a mark */
	double reason_s[NP_REASONS];
	double near_s[NP_REASONS], far_s[NP_REASONS]; /* by the end that marked them */
	bool far_reported;                            /* the far end reported its intervals */
	bool by_far;                                  /* work is counted by the far end */
	double rate_ratio; /* rate of the clean part divided by that of all; NAN: no such part */
	const char
	    *switches_why; /* why other programs can't be told from the test; NULL: they can */
	const char *foreign_why; /* why foreign traffic can't be told; NULL: it can */
	size_t runs;
	struct np_clean_run run[NP_DISTURBED_MOST];
};

/*
 * Judge both ends' evidence. far_counts: the result is counted by the far end, so use its counters
 * if it reported any. NULL if this end has no evidence, or memory ran out. To be freed.
 */
struct np_clean *
np_clean_judge(const struct np_bag *near, const struct np_bag *far, bool far_counts);

/* The seconds of each reason, the longest first: "steal:1.2 foreign:0.7" or "none". Returns out. */
char *np_clean_reasons(const double reason_s[NP_REASONS], char out[NP_CLEAN_TEXT]);

#endif
