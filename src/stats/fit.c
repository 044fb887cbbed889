#include "stats/fit.h"

#include <math.h>
#include <stdlib.h>

#include "stats/confidence.h"

/* How likely a statistic is at most z, of many values. */
static double
at_most(double z)
{
	static const double below[] = { 2.00012,   0.247105,   -0.0649821,
					0.0347962, -0.0116720, 0.00168691 };
	static const double above[] = {
		1.0776, -2.30695, 0.43424, -0.082433, 0.008056, -0.0003146
	};
	const double *of = z < 2 ? below : above;
	double sum = 0;

	for (int i = 5; i >= 0; i--) {
		sum = sum * z + of[i];
	}
	return z < 2 ? exp(-1.2337141 / z) / sqrt(z) * sum : exp(-exp(sum));
}

double
np_fit_p(double *x, size_t n)
{
	const double least = 1e-15; /* a place of a sample is never beyond it */
	double sum = 0;

	if (n < NP_FIT_LEAST) {
		return (double)NAN;
	}
	qsort(x, n, sizeof(*x), np_by_size);
	for (size_t i = 0; i < n; i++) {
		/* Logarithms of what lies below this one, and above its counterpart. */
		sum += (double)(2 * i + 1) * (log(fmax(-expm1(-x[i]), least)) - x[n - 1 - i]);
	}
	return 1 - at_most(fmax(-(double)n - sum / (double)n, 1e-3));
}
