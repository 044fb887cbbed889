/*
 * Does a sample fit what it was to be drawn from? The test of Anderson and Darling, with no
 * parameter estimated: it weighs the ends as much as the middle. Its distribution by Marsaglia and
 * Marsaglia, "Evaluating the Anderson-Darling Distribution", 2004.
 */
#ifndef NP_STATS_FIT_H
#define NP_STATS_FIT_H

#include <stddef.h>

/* Fewer than that say nothing. */
enum { NP_FIT_LEAST = 30 };

/*
 * How likely a sample is at least that far from the exponential distribution with mean 1: 0 to 1.
 * NAN: there are less than NP_FIT_LEAST. x is sorted.
 */
double np_fit_p(double *x, size_t n);

#endif
