/*
 * The table of latencies (--latency).
 */

#include "out/format.h"
#include "tests/lib/check.h"

static void
assert_table(const struct np_hist *h, bool headers, const char *want)
{
	assert_writes(out, np_times_print(out, h, headers), want);
}

#define HEADS "    Count  Min/us Mean/us  P50/us  P90/us  P99/us P99.9/us   Max/us Stddev/us\n"

TEST(times_are_a_line_below_their_heads)
{
	static const char row[] =
	    "     1000   1.000     501     500     900     990        -     1000       289\n";
	FREED_BY(free_memory) struct np_hist *h = np_hist_new();

	assert_non_null(h);
	for (uint64_t i = 1; i <= 1000; i++) {
		np_hist_record(h, i * 1000);
	}
	assert_table(h, false, row);
	assert_table(
	    h, true,
	    HEADS "     1000   1.000     501     500     900     990        -     1000       289\n"
		  " 95% from                     469     881     983        -\n"
		  "       to                     532     919     997        -\n"
		  "not enough operations for P99.9\n");
}

TEST(no_times_are_dashes)
{
	static const char row[] =
	    "        -       -       -       -       -       -        -        -         -\n";
	FREED_BY(free_memory) struct np_hist *h = np_hist_new();

	assert_non_null(h);
	assert_table(h, false, row);
	assert_table(NULL, false, row);
	assert_table(
	    NULL, true,
	    HEADS
	    "        -       -       -       -       -       -        -        -         -\n");
}

/* Values are words of their own however long the test was. */
TEST(long_times_stay_apart)
{
	FREED_BY(free_memory) struct np_hist *h = np_hist_new();

	assert_non_null(h);
	h->cell[np_hist_cell(3600000000000)] = 12345678901;
	h->min = h->max = 3600000000000;
	h->sum = 0;
	assert_table(h, true,
		     HEADS
		     "12345678901 3600000000   0.000 3600000000 3600000000 3600000000 "
		     "3600000000 3600000000     0.000\n"
		     " 95% from                 3600000000 3600000000 3600000000 3600000000\n"
		     "       to                 3600000000 3600000000 3600000000 3600000000\n");
}

TEST_MAIN()
