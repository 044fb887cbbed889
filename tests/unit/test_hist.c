/*
 * The latency histogram against the exact figures of the same records.
 */
#include "stats/hist.h"

#include "base/clock.h"
#include "tests/lib/check.h"

enum { RECORDS = 20001 };

static const uint64_t cap = (UINT64_C(1) << NP_HIST_TOP_BITS) - 1;

static struct np_hist *
hist(void)
{
	struct np_hist *h = np_hist_new();

	assert_non_null(h);
	return h;
}

/* A value of up to `bits` bits. */
static uint64_t
random_ns(uint64_t *seed, unsigned bits)
{
	return next_random(seed) >> (64 - 1 - next_random(seed) % bits);
}

static int
compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* ---- Cells ---- */

TEST(cells_are_in_order_and_narrow)
{
	uint64_t first = 0;
	unsigned cell = 0, cells = 1;

	assert_int_equal(np_hist_cell(0), 0);
	/* From one value to the next, by at most a quarter of a cell: none is missed. */
	for (uint64_t v = 1; v <= cap; v += 1 + (v >> 12)) {
		unsigned now = np_hist_cell(v);

		if (now == cell) {
			assert_true((double)(v - first) < (double)first / 1000);
			continue;
		}
		assert_int_equal(now, cell + 1);
		cell = now;
		cells++;
		first = v;
	}
	assert_int_equal(cells, NP_HIST_CELLS);
}

TEST(the_edges_of_a_power_of_two_are_cells_of_their_own)
{
	for (unsigned bit = 1; bit < NP_HIST_TOP_BITS; bit++) {
		uint64_t v = UINT64_C(1) << bit;

		assert_int_equal(np_hist_cell(v), np_hist_cell(v - 1) + 1);
	}
}

TEST(times_beyond_the_range_fall_into_the_last_cell)
{
	assert_int_equal(np_hist_cell(cap), NP_HIST_CELLS - 1);
	assert_int_equal(np_hist_cell(cap + 1), NP_HIST_CELLS - 1);
	assert_int_equal(np_hist_cell(UINT64_MAX), NP_HIST_CELLS - 1);
}

/* ---- Figures ---- */

TEST(an_empty_histogram_has_only_zeros)
{
	static const struct np_hist_summary zeros;
	struct np_hist_summary s;
	FREED_BY(free_memory) struct np_hist *h = hist();

	memset(&s, 0xa5, sizeof(s));
	np_hist_summarise(h, &s);
	assert_memory_equal(&s, &zeros, sizeof(s));
	assert_int_equal(np_hist_percentile(h, 0.5), 0);
	np_hist_record(h, 5);
	np_hist_clear(h);
	np_hist_summarise(h, &s);
	assert_memory_equal(&s, &zeros, sizeof(s));
}

TEST(a_single_record_is_every_figure)
{
	static const uint64_t values[] = { 0,
					   1,
					   1023,
					   1024,
					   2047,
					   2049,
					   777,
					   1000001,
					   3600 * NP_SEC,
					   UINT64_C(1) << 46,
					   UINT64_C(1) << 47,
					   UINT64_MAX };

	for (size_t i = 0; i < LEN(values); i++) {
		FREED_BY(free_memory) struct np_hist *h = hist();
		struct np_hist_summary s;

		np_hist_record(h, values[i]);
		np_hist_summarise(h, &s);
		assert_int_equal(s.count, 1);
		assert_int_equal(s.min, values[i]);
		assert_int_equal(s.max, values[i]);
		assert_int_equal(s.p50, values[i]);
		assert_int_equal(s.p99, values[i]);
		if (values[i] < NP_HIST_NEVER) {
			assert_close(s.mean, (double)values[i], 0);
		} else {
			assert_true(isnan(s.mean));
		}
	}
}

/* Percentiles, mean and deviation of random records. */
static void
compare_with_exact(unsigned bits, uint64_t seed)
{
	static const double shares[] = { 0.0001, 0.01, 0.5, 0.9, 0.99, 0.999, 1 };
	FREED_BY(free_memory) uint64_t *v = calloc(RECORDS, sizeof(*v));
	FREED_BY(free_memory) struct np_hist *h = hist();
	struct np_hist_summary s;
	double sum = 0, squares = 0;

	assert_non_null(v);
	for (size_t i = 0; i < RECORDS; i++) {
		v[i] = random_ns(&seed, bits);
		np_hist_record(h, v[i]);
		sum += (double)v[i];
	}
	for (size_t i = 0; i < RECORDS; i++) {
		squares += ((double)v[i] - sum / RECORDS) * ((double)v[i] - sum / RECORDS);
	}
	qsort(v, RECORDS, sizeof(*v), compare);
	for (size_t i = 0; i < LEN(shares); i++) {
		size_t rank = (size_t)ceil(shares[i] * RECORDS);

		assert_close((double)np_hist_percentile(h, shares[i]), (double)v[rank - 1], 0.001);
	}
	np_hist_summarise(h, &s);
	assert_int_equal(s.count, RECORDS);
	assert_int_equal(s.min, v[0]);
	assert_int_equal(s.max, v[RECORDS - 1]);
	assert_int_equal(s.p50, np_hist_percentile(h, 0.5));
	assert_int_equal(s.p99, np_hist_percentile(h, 0.99));
	assert_close(s.mean, sum / RECORDS, 1e-12);
	assert_close(s.stddev, sqrt(squares / RECORDS), 0.001);
}

TEST(figures_are_those_of_the_sorted_records)
{
	compare_with_exact(8, 1);
	compare_with_exact(14, 2);
	compare_with_exact(20, 3);
	compare_with_exact(34, 4);
	compare_with_exact(47, 5);
}

TEST(equal_records_do_not_deviate)
{
	static const uint64_t times[] = { 1000, 4359390 };

	for (size_t t = 0; t < LEN(times); t++) {
		FREED_BY(free_memory) struct np_hist *h = hist();
		struct np_hist_summary s;

		for (int i = 0; i < 1000; i++) {
			np_hist_record(h, times[t]);
		}
		np_hist_summarise(h, &s);
		assert_close(s.mean, (double)times[t], 0);
		assert_true(s.stddev < 1e-9);
	}
}

TEST(percentiles_stay_within_the_extremes)
{
	FREED_BY(free_memory) struct np_hist *h = hist();

	np_hist_record(h, 1000000);
	np_hist_record(h, 1000001);
	assert_int_equal(np_hist_percentile(h, 0), 1000001);
	assert_int_equal(np_hist_percentile(h, 1), 1000001);
	np_hist_clear(h);
	np_hist_record(h, 5);
	np_hist_record(h, 500);
	np_hist_record(h, 50000);
	assert_int_equal(np_hist_percentile(h, 0), 5);
	assert_int_equal(np_hist_percentile(h, 1.0 / 3), 5);
	assert_int_equal(np_hist_percentile(h, 0.34), 500);
	assert_int_equal(np_hist_percentile(h, 1), 50000);
}

/* In how many of 1,000 trials the intervals of some percentiles hold their true values. */
static void
count_held(int *held, unsigned times, const double *shares, size_t count, bool log_normal)
{
	FREED_BY(free_memory) struct np_hist *h = np_hist_new();
	uint64_t seed = times, low, high;

	memset(held, 0, count * sizeof(*held));
	for (int trial = 0; trial < 1000; trial++) {
		np_hist_clear(h);
		for (unsigned i = 0; i < times; i++) {
			double a = ((double)(next_random(&seed) >> 11) + 1) / 9007199254740993.0;
			double b = (double)(next_random(&seed) >> 11) / 9007199254740992.0;

			np_hist_record(h, (uint64_t)(1e5 * (log_normal ? exp(sqrt(-2 * log(a)) *
									     cos(2 * M_PI * b))
								       : -log(a))));
		}
		for (size_t i = 0; i < count; i++) {
			double truth = log_normal ? 1e5 : -1e5 * log(1 - shares[i]);

			assert_true(np_hist_interval(h, shares[i], &low, &high));
			held[i] += (double)low <= truth && truth <= (double)high;
		}
	}
}

TEST(intervals_hold_the_percentile)
{
	static const double shares[] = { 0.5, 0.9, 0.99, 0.999 };
	int held[LEN(shares)];

	count_held(held, 200, shares, 1, true); /* whose median is known */
	assert_in_range(held[0], 930, 1000);
	count_held(held, 200, &shares[1], 1, false);
	assert_in_range(held[0], 930, 1000);
	count_held(held, 500, &shares[2], 1, false);
	assert_in_range(held[0], 930, 1000);
	count_held(held, 4000, shares, LEN(shares), false);
	assert_in_range(held[0], 930, 975);
	assert_in_range(held[2], 930, 985);
	assert_in_range(held[3], 930, 1000);
}

TEST(few_times_have_no_interval)
{
	static const struct {
		double share;
		unsigned least;
	} rows[] = { { 0.5, 6 }, { 0.9, 36 }, { 0.99, 368 }, { 0.999, 3688 } };

	for (size_t i = 0; i < LEN(rows); i++) {
		FREED_BY(free_memory) struct np_hist *h = np_hist_new();
		uint64_t low, high;

		assert_false(np_hist_interval(h, rows[i].share, &low, &high));
		for (unsigned n = 1; n < rows[i].least; n++) {
			np_hist_record(h, n);
		}
		assert_false(np_hist_interval(h, rows[i].share, &low, &high));
		np_hist_record(h, rows[i].least);
		assert_true(np_hist_interval(h, rows[i].share, &low, &high));
		assert_int_equal(high, rows[i].least);
		assert_true(low < high);
	}
}

/* Bottom and count of each cell in use are enough to make the histogram again. */
TEST(cells_in_use_are_found_by_their_bottoms)
{
	static const uint64_t times[] = { 0, 1, 1023, 1024, 5000, 1000000007, UINT64_MAX };
	FREED_BY(free_memory) struct np_hist *h = np_hist_new();
	unsigned cell = 0, found = 0;

	for (size_t i = 0; i < LEN(times); i++) {
		np_hist_record(h, times[i]);
		np_hist_record(h, times[i]);
	}
	for (cell = np_hist_next(h, 0); cell < NP_HIST_CELLS; cell = np_hist_next(h, cell + 1)) {
		assert_int_equal(cell, np_hist_cell(times[found]));
		assert_int_equal(np_hist_cell(np_hist_bottom(cell)), cell);
		assert_int_equal(h->cell[cell], 2);
		found++;
	}
	assert_int_equal(found, LEN(times));
	assert_int_equal(np_hist_count(h), 2 * LEN(times));
	for (cell = 1; cell < NP_HIST_CELLS; cell++) {
		assert_int_equal(np_hist_cell(np_hist_bottom(cell) - 1), cell - 1);
	}
}

TEST(merging_is_recording_all_in_one)
{
	FREED_BY(free_memory)
	struct np_hist *a = hist(), *b = hist(), *all = hist(), *empty = hist();
	uint64_t seed = 9;

	for (int i = 0; i < 1000; i++) {
		uint64_t v = random_ns(&seed, 40);

		np_hist_record(i % 3 == 0 ? a : b, v);
		np_hist_record(all, v);
	}
	np_hist_merge(a, b);
	assert_memory_equal(a, all, sizeof(*all));
	np_hist_merge(a, empty);
	assert_memory_equal(a, all, sizeof(*all));
	np_hist_merge(empty, all);
	assert_memory_equal(empty, all, sizeof(*all));
}

TEST(a_mean_leaves_out_the_longest)
{
	FREED_BY(free_memory) struct np_hist *h = np_hist_new();

	assert_true(isnan(np_hist_mean_of(h, 0.95)));
	for (uint64_t i = 1; i <= 100; i++) {
		np_hist_record(h, 10 * i); /* to the nanosecond up to 1024 */
	}
	assert_in_range((uint64_t)np_hist_mean_of(h, 1), 505 - 1, 505 + 1);
	assert_in_range((uint64_t)np_hist_mean_of(h, 0.95), 480 - 1, 480 + 1);
	np_hist_record_never(h, 5);
	assert_in_range((uint64_t)np_hist_mean_of(h, 0.95), 505 - 1, 505 + 1);
	np_hist_record_never(h, 2);
	assert_true(isinf(np_hist_mean_of(h, 0.95)));
}

TEST(time_is_in_the_longest)
{
	FREED_BY(free_memory) struct np_hist *h = np_hist_new();

	assert_int_equal(np_hist_by_time(h, 0.01), 0);
	for (int i = 0; i < 1000; i++) {
		np_hist_record(h, 100);
	}
	np_hist_record(h, 1000); /* 1 of 101 parts of the time */
	assert_int_equal(np_hist_by_time(h, 0.005), 1000);
	assert_int_equal(np_hist_by_time(h, 0.02), 100);
	assert_int_equal(np_hist_by_time(h, 1), 100);
}

TEST(what_has_no_end_is_at_the_top)
{
	FREED_BY(free_memory) struct np_hist *h = np_hist_new(), *more = np_hist_new();
	struct np_hist_summary s;
	char text[20];

	np_hist_record_never(h, 0);
	assert_int_equal(np_hist_count(h), 0);
	for (int i = 0; i < 990; i++) {
		np_hist_record(h, 1000);
	}
	np_hist_record_never(h, 10);
	assert_int_equal(np_hist_count(h), 1000);
	assert_int_equal(np_hist_percentile(h, 0.99), 1000);
	assert_int_equal(np_hist_percentile(h, 0.991), NP_HIST_NEVER);
	assert_int_equal(h->max, NP_HIST_NEVER);
	assert_int_equal(h->sum, 990 * 1000);
	np_hist_summarise(h, &s);
	assert_true(isnan(s.mean) && isnan(s.stddev));
	np_hist_us((double)s.max, text, sizeof(text));
	assert_string_equal(text, "never");
	np_hist_us(s.mean, text, sizeof(text));
	assert_string_equal(text, "-");
	np_hist_record_never(more, 1000000);
	assert_int_equal(more->min, NP_HIST_NEVER);
	np_hist_merge(h, more);
	assert_int_equal(np_hist_percentile(h, 0.5), NP_HIST_NEVER);
}

TEST_MAIN()
