/*
 * What output selectors name: rows of the metric table and percentiles.
 */
#include "stats/record.h"

#include "out/select.h"
#include "tests/lib/check.h"

TEST(rows_are_figures)
{
	char text[NP_FIGURE_NAME];

	for (int id = 0; id < NP_METRICS; id++) {
		const struct np_metric *m = &np_metrics[id];

		assert_int_equal(np_figure_find(m->name), id);
		assert_false(np_figure_is_percentile(id));
		assert_string_equal(np_figure_name(id, text), m->name);
		assert_int_equal(np_figure_collect(id), m->collect);
		for (int h = 0; h < 4; h++) {
			assert_string_equal(np_figure_head(id, h, text), m->head[h]);
		}
	}
}

/* Each name that is understood is read back as the same figure. */
TEST(percentiles_have_one_name_each)
{
	static const struct {
		const char *said, *name, *head;
	} names[] = {
		{ "P99.9_LATENCY", "P99.9_LATENCY", "99.9th" },
		{ "p99.90_latency", "P99.9_LATENCY", "99.9th" },
		{ "P95_Latency", "P95_LATENCY", "95th" },
		{ "P1.0_LATENCY", "P1_LATENCY", "1st" },
		{ "P11_LATENCY", "P11_LATENCY", "11th" },
		{ "P22_LATENCY", "P22_LATENCY", "22nd" },
		{ "P03_LATENCY", "P3_LATENCY", "3rd" },
		{ "P50.0_LATENCY", "P50.0_LATENCY", "50th" },
		{ "P100_LATENCY", "P100_LATENCY", "100th" },
		{ "P99.999999_LATENCY", "P99.999999_LATENCY", "99.999999th" },
		{ "P0.000001_LATENCY", "P0.000001_LATENCY", "0.000001th" },
		{ "CONNECT_P99.9", "CONNECT_P99.9", "99.9th" },
		{ "connect_p99.0", "CONNECT_P99.0", "99th" },
	};
	char text[NP_FIGURE_NAME];

	for (size_t i = 0; i < LEN(names); i++) {
		int id = np_figure_find(names[i].said);
		bool connects = strncmp(names[i].name, "CONNECT", 7) == 0;

		assert_true(np_figure_is_percentile(id));
		assert_string_equal(np_figure_name(id, text), names[i].name);
		assert_int_equal(np_figure_find(names[i].name), id);
		assert_string_equal(np_figure_head(id, 0, text), names[i].head);
		assert_string_equal(np_figure_head(id, 2, text),
				    connects ? "Connect Time" : "Latency");
		assert_int_equal(np_figure_collect(id),
				 connects ? NP_COLLECT_NONE : NP_COLLECT_LATENCY);
	}
}

TEST(other_names_are_none)
{
	static const char *const names[] = {
		"P0_LATENCY",
		"P0.0_LATENCY",
		"P101_LATENCY",
		"P100.000001_LATENCY",
		"P_LATENCY",
		"P.5_LATENCY",
		"P99._LATENCY",
		"P99.1234567_LATENCY",
		"P99,9_LATENCY",
		"P-1_LATENCY",
		"P99.9",
		"P99.9_LATENCYX",
		"CONNECT_P",
		"CONNECT_P0",
		"CONNECT_P101",
		"CONNECT_P99_LATENCY",
		"P1e1_LATENCY",
		"P 99_LATENCY",
		"",
		"P99999999999999999_LATENCY",
	};

	for (size_t i = 0; i < LEN(names); i++) {
		assert_int_equal(np_figure_find(names[i]), -1);
	}
}

static void
assert_value(const struct np_figures *f, const char *name, const char *want)
{
	char text[64];
	size_t n = np_figure_format(f, np_figure_find(name), text, sizeof(text));

	assert_string_equal(text, want);
	assert_int_equal(n, strlen(want));
}

/* 10,000 times of 1 to 10,000 us: the rank is exact, the time to the width of its cell. */
TEST(percentiles_come_from_the_times)
{
	struct np_record r = { .value[0].known = false };
	struct np_figures f = { .record = &r };
	FREED_BY(free_memory) struct np_hist *h = np_hist_new(), *connect = np_hist_new();

	assert_true(h != NULL && connect != NULL);
	assert_value(&f, "P99.9_LATENCY", "-1");
	f.latency = h;
	f.connect = connect;
	assert_value(&f, "P99.9_LATENCY", "-1"); /* none was recorded */
	for (uint64_t i = 1; i <= 10000; i++) {
		np_hist_record(h, i * 1000);
	}
	np_hist_record(connect, 777);
	assert_value(&f, "P100_LATENCY", "10000");
	assert_value(&f, "P0.01_LATENCY", "1.000");
	assert_value(&f, "P0.02_LATENCY", "2.000");
	assert_value(&f, "P0.03_LATENCY", "3.00");
	assert_value(&f, "P0.5_LATENCY", "50.0");
	assert_value(&f, "P5_LATENCY", "500");
	assert_value(&f, "CONNECT_P99.9", "0.777");
	assert_true(np_figure_percentile(&f, np_figure_find("P99.99_LATENCY")) <= 9999 * 1001);
	assert_value(&f, "P99_LATENCY", "-1"); /* netperf's own is a row */
	np_record_int(&r, NP_M_P99_LATENCY, 9900);
	assert_value(&f, "P99_LATENCY", "9900");
	assert_value(&f, "P99.0_LATENCY", "9900");
}

/* No more digits than the histogram keeps of a time, and never fewer than three that count. */
TEST(times_have_true_digits)
{
	static const struct {
		double ns;
		const char *text;
	} times[] = {
		{ 0, "0.000" },     { 1, "0.001" },         { 2047, "2.047" },
		{ 2048, "2.05" },   { 12343, "12.34" },     { 123456, "123.5" },
		{ 131072, "131" },  { 1234567, "1230" },    { 10000000, "10000" },
		{ 1e9, "1000000" }, { 1e12, "1000000000" },
	};
	char text[64];

	for (size_t i = 0; i < LEN(times); i++) {
		np_hist_us(times[i].ns, text, sizeof(text));
		assert_string_equal(text, times[i].text);
	}
}

TEST(selections_take_percentiles)
{
	struct np_selection sel;
	struct np_err err;

	assert_int_equal(np_selection_parse("P99.9_LATENCY", &sel, &err), NP_OK);
	assert_int_equal(sel.count[0], 1);
	assert_true(sel.latency && !sel.evidence && !sel.congestion);
	assert_int_equal(
	    np_selection_parse("THROUGHPUT,p95_latency;CONNECT_P99.9,P101_LATENCY", &sel, &err),
	    NP_OK);
	assert_int_equal(sel.id[0][1], np_figure_find("P95_LATENCY"));
	assert_int_equal(sel.id[1][0], np_figure_find("CONNECT_P99.9"));
	assert_int_equal(sel.id[1][1], NP_SELECT_UNKNOWN);
	assert_int_equal(np_selection_parse("CONNECT_P99.9,", &sel, &err), NP_OK);
	assert_false(sel.latency);
}

TEST_MAIN()
