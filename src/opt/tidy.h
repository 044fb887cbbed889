/*
 * Whole numbers as scripts write them that were made for netperf, which reads an option's argument
 * by atoi(3): "1.0", "1.5", and "0-t", two words run together.
 */
#ifndef NP_OPT_TIDY_H
#define NP_OPT_TIDY_H

#include <stddef.h>

enum np_tidy {
	NP_TIDY_AS_IS,  /* nothing to do: out is not filled */
	NP_TIDY_SAME,   /* out says the same in other characters, as 1 does for 1.0 */
	NP_TIDY_CUT,    /* a fraction was cut off */
	NP_TIDY_RUN_ON, /* so was an option that a blank should stand before */
};

/*
 * Make a number, or several with commas between them, such that the parsers of base/units.h take
 * them, and say what that did to them. What has no plain meaning stays as it is, for these parsers
 * to refuse: a fraction of a multiple ("1.5K") is one thing to people and another one to netperf,
 * and nothing should be left of less than one.
 */
enum np_tidy np_tidy_numbers(const char *word, char *out, size_t size);

#endif
