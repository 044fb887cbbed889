/*
 * Means over repeated measurements and how sure they are: netperf's formulas, so that the same runs
 * stop after the same number of iterations.
 */
#ifndef NP_STATS_CONFIDENCE_H
#define NP_STATS_CONFIDENCE_H

#include <stddef.h>

/*
 * One figure over iterations. Start from a zeroed struct. Not sums of values and squares:
 * their difference loses all digits when figures of 10^10 differ by little. Welford's method (Note
 * on a method for calculating corrected sums of squares and products, Technometrics 4, 1962).
 */
struct np_series {
	unsigned count;
	double mean, squares; /* 0 without values; the sum of squares of what the values differ from
				 the mean */
};

void np_series_add(struct np_series *s, double value);

/*
 * The full width of the confidence interval as a fraction of the mean: 2 t(level, n - 1)
 * sqrt(v / (n - 1)) / mean with v the mean of squares less the square of the mean. level is 95 or
 * 99 (percent). 0 when all values were the same; HUGE_VAL for fewer than two values, a mean of 0
 * over values that differ, or values that are no finite numbers.
 */
double np_series_width(const struct np_series *s, int level);

/*
 * Student's two-sided quantile, three decimals as in the usual tables. level is 95 or 99; any other
 * means 99. degrees is 1 to 30; above, that of 30, and HUGE_VAL for 0.
 */
double np_student_t(int level, unsigned degrees);

/*
 * Jain's index of n rates by their sum and the sum of their squares: 1 where all are alike, which
 * no rounding exceeds; NAN where all are 0.
 */
double np_jain_index(double sum, double squares, double n);

/* For qsort() of doubles. */
int np_by_size(const void *a, const void *b);

/*
 * Does a sample fit what it was to be drawn from? How likely it is at least that far from the
 * exponential distribution with mean 1, 0 to 1, by the test of Anderson and Darling, with no
 * parameter estimated: it weighs the ends as much as the middle. Its distribution by Marsaglia and
 * Marsaglia, "Evaluating the Anderson-Darling Distribution", 2004. NAN: there are less than
 * NP_FIT_LEAST. x is sorted.
 */
enum { NP_FIT_LEAST = 30 };
double np_fit_p(double *x, size_t n);

#endif
