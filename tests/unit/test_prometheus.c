/*
 * The text format that Prometheus scrapes.
 */
#include "out/prometheus.h"

#include <math.h>
#include <stdlib.h>

#include "tests/lib/check.h"

static char *
printed(const struct np_label *labels, size_t count, const struct np_record *r,
	const struct np_hist *hist)
{
	return WRITTEN(out, np_prometheus_print(out, labels, count, r, hist));
}

TEST(known_numbers_are_gauges)
{
	static const struct np_label labels[] = { { "test", "TCP_STREAM" },
						  { "brand", NULL },
						  { "host", "a\"b\\c\nd" } };
	struct np_record r = { .value[0].known = false };
	char *text;

	np_record_real(&r, NP_M_THROUGHPUT, 0.1);
	np_record_text(&r, NP_M_THROUGHPUT_UNITS, "10^6bits");
	np_record_int(&r, NP_M_LSS_SIZE, 16384);
	np_record_real(&r, NP_M_LOCAL_CPU_UTIL, -1);
	text = printed(labels, LEN(labels), &r, NULL);
	assert_string_equal(
	    text, "# HELP netperf_throughput Throughput\n"
		  "# TYPE netperf_throughput gauge\n"
		  "netperf_throughput{test=\"TCP_STREAM\",host=\"a\\\"b\\\\c\\nd\","
		  "unit=\"10^6bits/s\"} 0.10000000000000001\n"
		  "# HELP netperf_lss_size Local Send Socket Size Initial\n"
		  "# TYPE netperf_lss_size gauge\n"
		  "netperf_lss_size{test=\"TCP_STREAM\",host=\"a\\\"b\\\\c\\nd\"} 16384\n");
	free(text);
}

TEST(rates_of_one_end_are_of_bytes)
{
	struct np_record r = { .value[0].known = false };
	char *text;

	np_record_text(&r, NP_M_THROUGHPUT_UNITS, "Trans");
	np_record_real(&r, NP_M_THROUGHPUT, 5);
	np_record_real(&r, NP_M_LOCAL_SEND_THROUGHPUT, (double)NAN);
	text = printed(NULL, 0, &r, NULL);
	assert_has(text, "\nnetperf_throughput{unit=\"Trans/s\"} 5\n");
	assert_has(text, "\nnetperf_local_send_throughput{unit=\"10^6bits/s\"} NaN\n");
	free(text);
}

TEST(times_are_a_summary_in_seconds)
{
	static const struct np_label label = { "test", "TCP_RR" };
	struct np_record r = { .value[0].known = false };
	struct np_hist *h = np_hist_new();
	char *text;

	text = printed(&label, 1, &r, h);
	assert_string_equal(text, "");
	free(text);
	np_hist_record(h, 1000000000);
	np_hist_record(h, 1000000000);
	text = printed(&label, 1, &r, h);
	assert_has(text, "# TYPE netperf_latency_seconds summary\n"
			 "netperf_latency_seconds{test=\"TCP_RR\",quantile=\"0.5\"} 1\n");
	assert_has(text, "netperf_latency_seconds{test=\"TCP_RR\",quantile=\"0.999\"} 1\n"
			 "netperf_latency_seconds_sum{test=\"TCP_RR\"} 2\n"
			 "netperf_latency_seconds_count{test=\"TCP_RR\"} 2\n");
	free(text);
	free(h);
}

TEST(what_was_never_answered_is_infinite)
{
	struct np_record r = { .value[0].known = false };
	struct np_hist *h = np_hist_new();
	char *text;

	np_hist_record(h, 1000000000);
	np_hist_record_never(h, 2);
	np_record_us(&r, NP_M_P50_LATENCY, np_hist_percentile(h, 0.5));
	np_record_us(&r, NP_M_MIN_LATENCY, h->min);
	np_record_us(&r, NP_M_LOADED_P99_LATENCY, np_hist_percentile(h, 0.99));
	text = printed(NULL, 0, &r, h);
	assert_has(text, "\nnetperf_p50_latency +Inf\n");
	assert_has(text, "\nnetperf_min_latency 1000000\n");
	assert_has(text, "\nnetperf_loaded_p99_latency +Inf\n");
	assert_has(text, "\nnetperf_latency_seconds{quantile=\"0.99\"} +Inf\n");
	assert_has(text, "\nnetperf_latency_seconds_sum +Inf\n");
	assert_has(text, "\nnetperf_latency_seconds_count 3\n");
	free(text);
	free(h);
}

TEST_MAIN()
