/*
 * Whole numbers in scripts that were written for netperf, which reads an option's argument by
 * atoi(3): "1.0", "1.5", and "0-t", where a blank is missing.
 */
#ifndef NP_OPT_TIDY_H
#define NP_OPT_TIDY_H

#include <stddef.h>

enum np_tidy {
	NP_TIDY_AS_IS,  /* nothing to do: don't use out */
	NP_TIDY_SAME,   /* written differently, 1 for 1.0 */
	NP_TIDY_CUT,    /* a fraction was cut off */
	NP_TIDY_RUN_ON, /* an option without a blank before it was cut off */
};

/*
 * Write a number, or several separated by commas, so that the parsers of base/units.h accept them,
 * and return how that changed them. Two kinds stay as they are, for these parsers to refuse: "1.5K"
 * means different things to people and to netperf, and "0.5" must not become 0.
 */
enum np_tidy np_tidy_numbers(const char *word, char *out, size_t size);

#endif
