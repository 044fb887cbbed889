#include "stats/fit.h"

#include <math.h>
#include <stdlib.h>

#include "stats/confidence.h"

double
np_fit_p(double *x, size_t n)
{
	static const double below[] = { 2.00012,   0.247105,   -0.0649821,
					0.0347962, -0.0116720, 0.00168691 };
	static const double above[] = {
		1.0776, -2.30695, 0.43424, -0.082433, 0.008056, -0.0003146
	};
	const double least = 1e-15; /* a place of a sample is never beyond it */
	double sum = 0, power = 0, z;

	if (n < NP_FIT_LEAST) {
		return (double)NAN;
	}
	qsort(x, n, sizeof(*x), np_by_size);
	for (size_t i = 0; i < n; i++) {
		/* Logarithms of what lies below this one, and above its counterpart. */
		sum += (double)(2 * i + 1) * (log(fmax(-expm1(-x[i]), least)) - x[n - 1 - i]);
	}
	/* How likely a statistic of many values is at most z. */
	z = fmax(-(double)n - sum / (double)n, 1e-3);
	for (int i = 5; i >= 0; i--) {
		power = power * z + (z < 2 ? below[i] : above[i]);
	}
	return 1 - (z < 2 ? exp(-1.2337141 / z) / sqrt(z) * power : exp(-exp(power)));
}
