/*
 * Latency histogram in ns, log-linear as HdrHistogram: 1024 cells per power of two, for better than
 * 0.1 %, from 1 ns to 39 hours. np_hist_new() takes all memory; recording does not branch on the
 * range. One writer, without locks: other threads read and merge after it has ended.
 */
#ifndef NP_STATS_HIST_H
#define NP_STATS_HIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NP_HIST_HALF_BITS = 10, /* 2^10 cells for each power of two */
	NP_HIST_TOP_BITS = 47,  /* longer times count as 2^47 - 1 ns; max keeps them exactly */
	NP_HIST_CELLS = (NP_HIST_TOP_BITS - NP_HIST_HALF_BITS + 1) << NP_HIST_HALF_BITS
};

struct np_hist {
	uint64_t sum, min, max;       /* ns; exact. Empty: min is UINT64_MAX, max is 0 */
	uint64_t cell[NP_HIST_CELLS]; /* how many times were recorded in each */
};

/* An empty histogram with its pages touched, or NULL without memory. Release with free(). */
struct np_hist *np_hist_new(void);

/* Make it empty again, as at the end of the warm-up. */
void np_hist_clear(struct np_hist *h);

/* The cell that counts a time: all times with the same highest 11 bits, or one below 2048 ns. */
static inline unsigned
np_hist_cell(uint64_t ns)
{
	uint64_t v = ns >> NP_HIST_TOP_BITS ? (UINT64_C(1) << NP_HIST_TOP_BITS) - 1 : ns;
	/* | 1024: small values get a shift of 0 without a branch, and clz() is never given 0. */
	unsigned top = 63U - (unsigned)__builtin_clzll(v | (UINT64_C(1) << NP_HIST_HALF_BITS));
	unsigned shift = top - NP_HIST_HALF_BITS;

	return (shift << NP_HIST_HALF_BITS) + (unsigned)(v >> shift);
}

/* Record one time. Only for the writer. */
static inline void
np_hist_record(struct np_hist *h, uint64_t ns)
{
	h->cell[np_hist_cell(ns)]++;
	h->sum += ns;
	if (ns < h->min) {
		h->min = ns;
	}
	if (ns > h->max) {
		h->max = ns;
	}
}

/* Record `n` requests without a response as infinite times: in the top cell, but not in `sum`. */
#define NP_HIST_NEVER ((UINT64_C(1) << NP_HIST_TOP_BITS) - 1)
void np_hist_record_never(struct np_hist *h, uint64_t n);

/* The middle of the times that a cell counts, in ns. */
double np_hist_middle(unsigned cell);

/* The smallest time that a cell counts, in ns. */
uint64_t np_hist_bottom(unsigned cell);

/* The first cell from `cell` on that is not empty; NP_HIST_CELLS: there is none. */
unsigned np_hist_next(const struct np_hist *h, unsigned cell);

/* The number of records. */
uint64_t np_hist_count(const struct np_hist *h);

/* Add all of `from` to `into`. */
void np_hist_merge(struct np_hist *into, const struct np_hist *from);

/* A summary in ns; all 0 for an empty histogram. mean and stddev are NAN if a time is infinite. */
struct np_hist_summary {
	uint64_t count, min, max, p50, p99;
	double mean, stddev;
};

void np_hist_summarise(const struct np_hist *h, struct np_hist_summary *out);

/*
 * The percentile: the smallest value that at least `share` (0..1) of the records do not exceed, to
 * the resolution of its cell and within the exact extremes. 0 for an empty histogram.
 */
uint64_t np_hist_percentile(const struct np_hist *h, double share);

/* The record of that rank, from 1, in sorted order, to the same resolution; none: the largest. */
uint64_t np_hist_ranked(const struct np_hist *h, uint64_t rank);

/* The mean of the smallest `share` (0..1) of all records; INFINITY if one is; NAN: no records. */
double np_hist_mean_of(const struct np_hist *h, double share);

/*
 * The percentile by time: records of at least this value make up `share` of all recorded time. With
 * 0.01, a random moment is in such a record with a chance of 1 %. 0 for an empty histogram.
 */
uint64_t np_hist_by_time(const struct np_hist *h, double share);

/*
 * The 95 % confidence interval, *low to *high ns, of a percentile, for independent records (David,
 * Nagaraja: Order Statistics, 3rd edition, 7.1). False: there are too few records.
 */
bool np_hist_interval(const struct np_hist *h, double share, uint64_t *low, uint64_t *high);

/* Write ns as microseconds with 3 or 4 digits; "never": infinite, "-": NAN. As snprintf(3). */
size_t np_hist_us(double ns, char *out, size_t size);

#endif
