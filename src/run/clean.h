/*
 * How much of a test was undisturbed: the marks of both ends (run/disturbed.h), compared with each
 * other, and how much was carried in the clean part.
 */
#ifndef NP_RUN_CLEAN_H
#define NP_RUN_CLEAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bag.h"
#include "run/disturbed.h"

/* A time with the same marks: throughout, or in each of the intervals that were joined. */
struct np_clean_run {
	double from_s, to_s; /* since the window began */
	uint32_t marks;
};

enum { NP_CLEAN_TEXT = 256 };

struct np_clean {
	double every_s;        /* length of an interval */
	double seconds, clean; /* all of them, and those without a mark */
	double reason_s[NP_REASONS];
	double near_s[NP_REASONS], far_s[NP_REASONS]; /* by the end that marked them */
	bool far_told;                                /* the far end did look */
	bool by_far;                                  /* its counters tell what was carried */
	double times; /* rate of the clean part divided by that of the whole; NAN: there is no clean
			 part */
	const char *switches_why; /* why what others ran can't be told; NULL: it can */
	const char *foreign_why;  /* the same of what others sent */
	size_t runs;
	struct np_clean_run run[NP_DISTURBED_MOST];
};

/*
 * Judge both ends' evidence. far_counts: the result is counted by the far end, so its counters are
 * used where it sent any. NULL when this end has no evidence, or without memory; the caller frees
 * it.
 */
struct np_clean *
np_clean_judge(const struct np_bag *near, const struct np_bag *far, bool far_counts);

/* The seconds of each reason, the longest first: "steal:1.2 foreign:0.7" or "none". Returns out. */
char *np_clean_reasons(const double reason_s[NP_REASONS], char out[NP_CLEAN_TEXT]);

#endif
