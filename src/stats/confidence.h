/* Means and confidence intervals by netperf's formulas, to need as many iterations as it does. */
#ifndef NP_STATS_CONFIDENCE_H
#define NP_STATS_CONFIDENCE_H

#include <stddef.h>

/*
 * One figure over iterations; zeroed at first. By Welford's method (Technometrics 4, 1962), because
 * the difference of sums of values and of squares loses all digits when large values differ little.
 */
struct np_series {
	unsigned count;
	double mean, squares; /* sum of squared deviations from the mean */
};

void np_series_add(struct np_series *s, double value);

/*
 * The full width of the confidence interval as a fraction of the mean: 2 t(level, n - 1)
 * sqrt(v / (n - 1)) / mean with v the mean of squares less the square of the mean. level is 95 or
 * 99 (percent). 0 when all values were the same; HUGE_VAL for fewer than two values, a mean of 0
 * over values that differ, or values that are not finite.
 */
double np_series_width(const struct np_series *s, int level);

/*
 * Student's two-sided quantile, three decimals as in the usual tables. level is 95 or 99; any other
 * means 99. degrees is 1 to 30; above, that of 30, and HUGE_VAL for 0.
 */
double np_student_t(int level, unsigned degrees);

/* Jain's index of n rates by their sum and sum of squares: 1 if all are equal; NAN if all are 0. */
double np_jain_index(double sum, double squares, double n);

/* Compare two doubles in ascending order, for qsort(). */
int np_by_size(const void *a, const void *b);

/*
 * The p-value of the Anderson-Darling test that a sample, such as gaps between sends relative to
 * their mean, is from the exponential distribution with mean 1 (Marsaglia and Marsaglia,
 * "Evaluating the Anderson-Darling Distribution", 2004). Sorts x. NAN: n < NP_FIT_LEAST.
 */
enum { NP_FIT_LEAST = 30 };
double np_fit_p(double *x, size_t n);

#endif
