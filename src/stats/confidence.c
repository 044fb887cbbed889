#include "stats/confidence.h"

#include <math.h>
#include <stdlib.h>

enum { DEGREES = 30 }; /* of freedom, in the tables below */

void
np_series_add(struct np_series *s, double value)
{
	double off = value - s->mean;

	s->count++;
	s->mean += off / s->count;
	s->squares += off * (value - s->mean);
}

double
np_series_width(const struct np_series *s, int level)
{
	double n = s->count, width;

	if (s->count < 2) {
		return HUGE_VAL;
	}
	if (s->squares == 0) {
		return 0;
	}
	width =
	    2 * np_student_t(level, s->count - 1) * sqrt(s->squares / n / (n - 1)) / fabs(s->mean);
	return isnan(width) ? HUGE_VAL : width;
}

double
np_student_t(int level, unsigned degrees)
{
	static const double t95[DEGREES] = {
		12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
		2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
		2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
	};
	static const double t99[DEGREES] = {
		63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169,
		3.106,  3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845,
		2.831,  2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
	};

	if (degrees == 0) {
		return HUGE_VAL;
	}
	if (degrees > DEGREES) {
		degrees = DEGREES;
	}
	return level == 95 ? t95[degrees - 1] : t99[degrees - 1];
}

double
np_jain_index(double sum, double squares, double n)
{
	/* Rounding may make the index of equal rates greater than 1. */
	return squares > 0 ? fmin(sum * sum / (n * squares), 1) : (double)NAN;
}

int
np_by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
np_fit_p(double *x, size_t n)
{
	/* Their adinf(): coefficients of the powers of z, for z below 2 and above. */
	static const double below[] = { 2.00012,   0.247105,   -0.0649821,
					0.0347962, -0.0116720, 0.00168691 };
	static const double above[] = {
		1.0776, -2.30695, 0.43424, -0.082433, 0.008056, -0.0003146
	};
	const double least = 1e-15; /* instead of 0, which has no logarithm */
	double sum = 0, power = 0, z;

	if (n < NP_FIT_LEAST) {
		return (double)NAN;
	}
	qsort(x, n, sizeof(*x), np_by_size);
	for (size_t i = 0; i < n; i++) {
		/* Logarithms of the distribution below this value, and above its counterpart. */
		sum += (double)(2 * i + 1) * (log(fmax(-expm1(-x[i]), least)) - x[n - 1 - i]);
	}
	/* The statistic, and its distribution by the cited approximation for many values. */
	z = fmax(-(double)n - sum / (double)n, 1e-3);
	for (int i = 5; i >= 0; i--) {
		power = power * z + (z < 2 ? below[i] : above[i]);
	}
	return 1 - (z < 2 ? exp(-1.2337141 / z) / sqrt(z) * power : exp(-exp(power)));
}
