#include "stats/hist.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lines.h"

struct np_hist *
np_hist_new(void)
{
	struct np_hist *h = np_cache_lines_new(1, sizeof(*h));

	if (h != NULL) {
		h->min = UINT64_MAX;
	}
	return h;
}

void
np_hist_clear(struct np_hist *h)
{
	memset(h, 0, sizeof(*h));
	h->min = UINT64_MAX;
}

void
np_hist_merge(struct np_hist *into, const struct np_hist *from)
{
	for (unsigned i = np_hist_next(from, 0); i < NP_HIST_CELLS; i = np_hist_next(from, i + 1)) {
		into->cell[i] += from->cell[i];
	}
	into->sum += from->sum;
	into->min = from->min < into->min ? from->min : into->min;
	into->max = from->max > into->max ? from->max : into->max;
}

void
np_hist_record_never(struct np_hist *h, uint64_t n)
{
	if (n > 0) {
		h->cell[NP_HIST_CELLS - 1] += n;
		h->min = h->min < NP_HIST_NEVER ? h->min : NP_HIST_NEVER;
		h->max = h->max > NP_HIST_NEVER ? h->max : NP_HIST_NEVER;
	}
}

/* The largest time in ns that a cell counts: the inverse of np_hist_cell(). */
static uint64_t
cell_top(unsigned cell)
{
	unsigned shift = cell >> NP_HIST_HALF_BITS;
	uint64_t v; /* the highest bits of its times */

	shift = shift > 0 ? shift - 1 : 0; /* cells below 2048 count one value each */
	v = cell - (shift << NP_HIST_HALF_BITS);
	return ((v + 1) << shift) - 1;
}

uint64_t
np_hist_bottom(unsigned cell)
{
	return cell > 0 ? cell_top(cell - 1) + 1 : 0;
}

double
np_hist_middle(unsigned cell)
{
	return ((double)np_hist_bottom(cell) + (double)cell_top(cell)) / 2;
}

unsigned
np_hist_next(const struct np_hist *h, unsigned cell)
{
	/* In an empty histogram min is above max: the loop does not run. */
	unsigned first = np_hist_cell(h->min), last = np_hist_cell(h->max);

	for (cell = cell > first ? cell : first; cell <= last; cell++) {
		if (h->cell[cell] > 0) {
			return cell;
		}
	}
	return NP_HIST_CELLS;
}

uint64_t
np_hist_count(const struct np_hist *h)
{
	uint64_t n = 0;

	for (unsigned i = np_hist_next(h, 0); i < NP_HIST_CELLS; i = np_hist_next(h, i + 1)) {
		n += h->cell[i];
	}
	return n;
}

/* A time within min..max: the top of a cell may be above the longest time that was recorded. */
static uint64_t
clamp(const struct np_hist *h, uint64_t v)
{
	return v < h->min ? h->min : v > h->max ? h->max : v;
}

uint64_t
np_hist_percentile(const struct np_hist *h, double share)
{
	/* A rounding error above a whole number must not make ceil() take the next record. */
	const double less = 1 - 1e-12;

	return np_hist_ranked(h, (uint64_t)ceil(share * (double)np_hist_count(h) * less));
}

uint64_t
np_hist_ranked(const struct np_hist *h, uint64_t rank)
{
	uint64_t seen = 0;

	for (unsigned i = np_hist_next(h, 0); i < NP_HIST_CELLS; i = np_hist_next(h, i + 1)) {
		seen += h->cell[i];
		if (seen >= rank) {
			return clamp(h, cell_top(i));
		}
	}
	return h->max;
}

double
np_hist_mean_of(const struct np_hist *h, double share)
{
	uint64_t wanted = (uint64_t)ceil(share * (double)np_hist_count(h)), seen = 0; /* records */
	double sum = 0;

	for (unsigned i = np_hist_next(h, 0); i < NP_HIST_CELLS && seen < wanted;
	     i = np_hist_next(h, i + 1)) {
		uint64_t n = h->cell[i] < wanted - seen ? h->cell[i] : wanted - seen;

		if (i == NP_HIST_CELLS - 1) { /* the cell of infinite times */
			return (double)INFINITY;
		}
		sum += (double)n * np_hist_middle(i);
		seen += n;
	}
	return seen > 0 ? sum / (double)seen : (double)NAN;
}

uint64_t
np_hist_by_time(const struct np_hist *h, double share)
{
	double left = share * (double)h->sum; /* ns still to be found, from the longest time down */

	for (unsigned i = np_hist_cell(h->max) + 1; i-- > np_hist_cell(h->min);) {
		left -= (double)h->cell[i] * np_hist_middle(i);
		if (left <= 0 && h->cell[i] > 0) {
			return clamp(h, cell_top(i));
		}
	}
	return 0;
}

/*
 * The number of records above a percentile is binomial. At most `few` are above it with a
 * probability of `tail` (-1: no number is so rare), and `many` or more with the same. If its
 * variance is above `exact`, by the normal distribution with its quantile z.
 */
bool
np_hist_interval(const struct np_hist *h, double share, uint64_t *low, uint64_t *high)
{
	const double tail = 0.025, z = 1.959964, exact = 400;
	double n = (double)np_hist_count(h), p = 1 - share, few = -1, many = 0;
	double variance = n * p * (1 - p), sum = 0;

	if (variance > exact) {
		few = floor(n * p - z * sqrt(variance) - 0.5);
		many = ceil(n * p + z * sqrt(variance) + 0.5);
	} else {
		while (many <= n && sum < 1 - tail) {
			/* The probability that `many` of n records are above it. */
			sum += exp(lgamma(n + 1) - lgamma(many + 1) - lgamma(n - many + 1) +
				   many * log(p) + (n - many) * log1p(-p));
			few = sum <= tail ? many : few;
			many += 1;
		}
	}
	if (few < 0 || many > n) {
		return false;
	}
	*low = np_hist_ranked(h, (uint64_t)(n - many + 1));
	*high = np_hist_ranked(h, (uint64_t)(n - few));
	return true;
}

size_t
np_hist_us(double ns, char *out, size_t size)
{
	/* fmin() makes NAN 1e18: the cast needs a number that fits. */
	unsigned cell = np_hist_cell(ns < 1 ? 1 : (uint64_t)fmin(ns, 1e18));
	/* unit: ns, the power of ten to which the time is rounded: at least the cell's width. */
	double unit = 1, width = (double)(cell_top(cell) - np_hist_bottom(cell) + 1);
	int digits = 3, n; /* decimals of a microsecond */

	while (unit < width) {
		unit *= 10;
		digits--;
	}
	if (isnan(ns) || ns >= (double)NP_HIST_NEVER) {
		return (size_t)snprintf(out, size, "%s", isnan(ns) ? "-" : "never");
	}
	n = snprintf(out, size, "%.*f", digits > 0 ? digits : 0, round(ns / unit) * unit / 1000);
	return n > 0 ? (size_t)n : 0;
}

void
np_hist_summarise(const struct np_hist *h, struct np_hist_summary *out)
{
	double squares = 0;

	memset(out, 0, sizeof(*out));
	out->count = np_hist_count(h);
	if (out->count == 0) {
		return;
	}
	out->min = h->min;
	out->max = h->max;
	out->p50 = np_hist_percentile(h, 0.50);
	out->p99 = np_hist_percentile(h, 0.99);
	if (h->max >= NP_HIST_NEVER) {
		out->mean = out->stddev = (double)NAN;
		return;
	}
	out->mean = (double)h->sum / (double)out->count;
	/* Each record is taken at the middle of its cell. */
	for (unsigned i = np_hist_next(h, 0); i < NP_HIST_CELLS; i = np_hist_next(h, i + 1)) {
		double off = np_hist_middle(i) - out->mean;

		squares += off * off * (double)h->cell[i];
	}
	/* Equal times have none, though they may lie off the middle of their cell. */
	out->stddev = h->min == h->max ? 0 : sqrt(squares / (double)out->count);
}
