/*
 * Interim results and histograms, letter by letter as netperf 2.7 printed them.
 */

#include "out/format.h"
#include "tests/lib/check.h"

static const struct np_interim second = { .number = 1,
					  .rate = 18311.519,
					  .unit = "Trans",
					  .seconds = 0.2004,
					  .ending_ms = 1795185591127 };

static void
assert_interim(enum np_style style, const struct np_interim *i, const char *want)
{
	FREED_BY(free_memory) char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	np_interim_print(out, style, i);
	/* Flushed: all of it is there before the file is closed. */
	assert_string_equal(text, want);
	fclose(out);
}

TEST(each_style_has_its_interim_results)
{
	assert_interim(NP_STYLE_CLASSIC, &second,
		       "Interim result: 18311.52 Trans/s over 0.200 seconds ending at "
		       "1795185591.127\n");
	assert_interim(NP_STYLE_COLUMNS, &second,
		       "Interim result: 18311.52 Trans/s over 0.200 seconds ending at "
		       "1795185591.127\n");
	assert_interim(NP_STYLE_CSV, &second, "18311.52,Trans/s,0.200,1795185591.127\n");
	assert_interim(NP_STYLE_KEYVAL, &second,
		       "NETPERF_INTERIM_RESULT[1]=18311.52\n"
		       "NETPERF_UNITS[1]=Trans/s\n"
		       "NETPERF_INTERVAL[1]=0.200\n"
		       "NETPERF_ENDING[1]=1795185591.127\n");
}

TEST(small_rates_and_milliseconds_are_padded)
{
	static const struct np_interim small = {
		.rate = 0.32, .unit = "10^6bits", .seconds = 12.5, .ending_ms = 1795185587002
	};

	assert_interim(NP_STYLE_CLASSIC, &small,
		       "Interim result:    0.32 10^6bits/s over 12.500 seconds ending at "
		       "1795185587.002\n");
	assert_interim(NP_STYLE_CSV, &small, "   0.32,10^6bits/s,12.500,1795185587.002\n");
	assert_interim(NP_STYLE_KEYVAL, &small,
		       "NETPERF_INTERIM_RESULT[0]=0.32\n"
		       "NETPERF_UNITS[0]=10^6bits/s\n"
		       "NETPERF_INTERVAL[0]=12.500\n"
		       "NETPERF_ENDING[0]=1795185587.002\n");
}

/* ---- Histograms ---- */

static void
assert_histogram(const struct np_hist *h, const char *want)
{
	assert_writes(out, np_histogram_print(out, h), want);
}

static void
record(struct np_hist *h, uint64_t ns, unsigned times)
{
	while (times-- > 0) {
		np_hist_record(h, ns);
	}
}

#define ZEROS ":    0:    0:    0:    0:    0:    0:    0:    0:    0:    0\n"

/* A recording of TCP_RR. */
TEST(a_histogram_is_netperfs_ten_lines)
{
	static const unsigned tens[] = { 1938, 6, 19, 20, 2, 7, 4, 2, 1 };
	FREED_BY(free_memory) struct np_hist *h = np_hist_new();

	for (unsigned i = 0; i < LEN(tens); i++) {
		record(h, (i + 1) * 10000 + 4711, tens[i]);
	}
	record(h, 123456, 1);
	assert_histogram(
	    h, "UNIT_USEC     " ZEROS
	       "TEN_USEC      :    0: 1938:    6:   19:   20:    2:    7:    4:    2:    1\n"
	       "HUNDRED_USEC  :    0:    1:    0:    0:    0:    0:    0:    0:    0:    0\n"
	       "UNIT_MSEC     " ZEROS "TEN_MSEC      " ZEROS "HUNDRED_MSEC  " ZEROS
	       "UNIT_SEC      " ZEROS "TEN_SEC       " ZEROS ">100_SECS: 0\n"
	       "HIST_TOTAL:      2000\n");
}

TEST(times_fall_into_the_cell_of_their_whole_microseconds)
{
	FREED_BY(free_memory) struct np_hist *h = np_hist_new();

	np_hist_record(h, 0);
	np_hist_record(h, 999);
	np_hist_record(h, 1000);
	record(h, 9999, 142255);
	np_hist_record(h, 10010);
	np_hist_record(h, 99900);
	for (uint64_t unit = 100000, d = 0; d < 6; d++, unit *= 10) {
		record(h, 5 * unit + unit / 2, (unsigned)d + 1);
	}
	assert_histogram(
	    h, "UNIT_USEC     :    2:    1:    0:    0:    0:    0:    0:    0:    0: 142255\n"
	       "TEN_USEC      :    0:    1:    0:    0:    0:    0:    0:    0:    0:    1\n"
	       "HUNDRED_USEC  :    0:    0:    0:    0:    0:    1:    0:    0:    0:    0\n"
	       "UNIT_MSEC     :    0:    0:    0:    0:    0:    2:    0:    0:    0:    0\n"
	       "TEN_MSEC      :    0:    0:    0:    0:    0:    3:    0:    0:    0:    0\n"
	       "HUNDRED_MSEC  :    0:    0:    0:    0:    0:    4:    0:    0:    0:    0\n"
	       "UNIT_SEC      :    0:    0:    0:    0:    0:    5:    0:    0:    0:    0\n"
	       "TEN_SEC       :    0:    0:    0:    0:    0:    6:    0:    0:    0:    0\n"
	       ">100_SECS: 0\n"
	       "HIST_TOTAL:      142281\n");
}

TEST(times_beyond_100_seconds_are_counted_apart)
{
	FREED_BY(free_memory) struct np_hist *h = np_hist_new();

	np_hist_record(h, UINT64_C(99000000000));
	np_hist_record(h, UINT64_C(101000000000));
	np_hist_record(h, UINT64_MAX);
	assert_histogram(
	    h, "UNIT_USEC     " ZEROS "TEN_USEC      " ZEROS "HUNDRED_USEC  " ZEROS
	       "UNIT_MSEC     " ZEROS "TEN_MSEC      " ZEROS "HUNDRED_MSEC  " ZEROS
	       "UNIT_SEC      " ZEROS
	       "TEN_SEC       :    0:    0:    0:    0:    0:    0:    0:    0:    0:    1\n"
	       ">100_SECS: 2\n"
	       "HIST_TOTAL:      3\n");
}

TEST_MAIN()
