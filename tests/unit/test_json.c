/*
 * Results as JSON.
 */
#include "out/json.h"

#include <math.h>
#include <stdlib.h>

#include "tests/lib/check.h"

/* A value as its text reads it back; both are the caller's. */
static json_t *
through_text(json_t *v)
{
	char *text = json_dumps(v, NP_JSON_FLAGS | JSON_ENCODE_ANY);
	json_t *back;

	assert_non_null(text);
	back = json_loads(text, JSON_DECODE_ANY, NULL);
	assert_non_null(back);
	free(text);
	json_decref(v);
	return back;
}

static void
assert_text(const char *text, const char *want)
{
	json_t *v = np_json_text(text);

	assert_string_equal(json_string_value(v), want);
	json_decref(v);
}

TEST(texts_become_utf8)
{
	json_t *v = np_json_text(NULL);
	char *written;

	assert_true(json_is_null(v));
	assert_text("", "");
	assert_text("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
	assert_text("\xff", "\xef\xbf\xbd");
	assert_text("a\xc3", "a\xef\xbf\xbd");
	assert_text("a\xe2\x82z", "a\xef\xbf\xbd\xef\xbf\xbdz");
	assert_text("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* a surrogate */
	assert_text("\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd");                 /* too long */
	v = np_json_text("\xc4\x9b\xf0\x9f\x98\x80");
	written = json_dumps(v, NP_JSON_FLAGS | JSON_ENCODE_ANY);
	assert_string_equal(written, "\"\\u011B\\uD83D\\uDE00\""); /* for any terminal */
	free(written);
	json_decref(v);
}

/* How many rows netperf has given up. */
static size_t
withdrawn(void)
{
	size_t n = 0;

	for (int id = 0; id < NP_METRICS; id++) {
		n += np_metric_withdrawn((enum np_metric_id)id);
	}
	return n;
}

TEST(figures_keep_every_bit)
{
	static const double reals[] = { 0.1 + 0.2, 1e308, 5e-324, -0.0, 9412.0, 1.0 / 3 };

	for (size_t i = 0; i < LEN(reals); i++) {
		struct np_record r = { .value[0].known = false };
		double back;
		json_t *v;

		np_record_real(&r, NP_M_THROUGHPUT, reals[i]);
		np_record_int(&r, NP_M_LSS_SIZE, INT64_MAX - (int64_t)i);
		np_record_char(&r, NP_M_LOCAL_CPU_METHOD, 'S');
		np_record_text(&r, NP_M_PROTOCOL, "TC\"P\n");
		np_record_text(&r, NP_M_OUTPUT_NONE, " ");
		v = through_text(np_json_metrics(&r));
		assert_int_equal(json_object_size(v), NP_METRICS - 2 - withdrawn());
		assert_true(json_is_null(json_object_get(v, "LSR_SIZE")));
		back = json_real_value(json_object_get(v, "THROUGHPUT"));
		assert_memory_equal(&back, &reals[i], sizeof(back));
		assert_int_equal(json_integer_value(json_object_get(v, "LSS_SIZE")),
				 INT64_MAX - (int64_t)i);
		assert_string_equal(json_string_value(json_object_get(v, "LOCAL_CPU_METHOD")), "S");
		assert_string_equal(json_string_value(json_object_get(v, "PROTOCOL")), "TC\"P\n");
		json_decref(v);
	}
}

/* What netperf prints where nothing was measured, and what a stock daemon sends: no numbers. */
TEST(what_was_not_measured_is_null)
{
	static const enum np_metric_id marked[] = { NP_M_RSS_SIZE, NP_M_LOCAL_CPU_PERCENT_USER,
						    NP_M_OUTPUT_END };
	struct np_record r = { .value[0].known = false };
	json_t *v, *one;
	const char *name;

	np_record_int(&r, NP_M_REMOTE_TRANSPORT_RETRANS, -2);
	np_record_int(&r, NP_M_LSS_SIZE_REQ, -1);
	np_record_int(&r, NP_M_RSS_SIZE, 0);
	np_record_real(&r, NP_M_LOCAL_CPU_PERCENT_USER, 0);
	np_record_real(&r, NP_M_LOCAL_CPU_UTIL, -1);
	np_record_real(&r, NP_M_REMOTE_SD, (double)NAN);
	np_record_real(&r, NP_M_LOCAL_SD, HUGE_VAL);
	np_record_char(&r, NP_M_REMOTE_CPU_METHOD, '\0');
	np_record_char(&r, NP_M_LOCAL_CPU_METHOD, 'U');
	np_record_text(&r, NP_M_LOCAL_FILL_FILE, "");
	np_record_us(&r, NP_M_P99_LATENCY, NP_HIST_NEVER);
	np_record_us(&r, NP_M_LOADED_P99_LATENCY, NP_HIST_NEVER);
	np_record_int(&r, NP_M_FLOWS, 0); /* counted */
	np_record_mark(&r, marked);
	v = through_text(np_json_metrics(&r));
	json_object_foreach(v, name, one)
	{
		assert_true(json_is_null(one) == (strcmp(name, "FLOWS") != 0));
	}
	json_decref(v);
}

TEST(histograms_are_whole)
{
	struct np_hist *h = np_hist_new();
	json_t *v = np_json_hist(h), *cells;

	assert_true(json_is_null(v));
	np_hist_record(h, 5);
	np_hist_record(h, 2049); /* within the cell that begins at 2048 */
	np_hist_record(h, 2048);
	v = through_text(np_json_hist(h));
	cells = json_object_get(v, "cells");
	assert_int_equal(json_integer_value(json_object_get(v, "count")), 3);
	assert_int_equal(json_integer_value(json_object_get(v, "sum")), 4102);
	assert_int_equal(json_integer_value(json_object_get(v, "min")), 5);
	assert_int_equal(json_integer_value(json_object_get(v, "max")), 2049);
	assert_int_equal(json_array_size(cells), 2);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(cells, 1), 0)), 2048);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(cells, 1), 1)), 2);
	json_decref(v);
	free(h);
}

TEST(bags_keep_their_kinds)
{
	static const double reals[] = { 0.1, 2, -3.5e300 };
	static const int64_t ints[] = { 1, INT64_MAX, -7 };
	struct np_bag *b = np_bag_new();
	json_t *v = np_json_bag(NULL), *list;

	assert_true(json_is_null(v));
	np_bag_int(b, -3, "tcp.rtt_us");
	np_bag_real(b, 0.1, "thread.cpu_share");
	np_bag_text(b, "eth0", "host.nic.name");
	np_bag_reals(b, reals, LEN(reals), "tcp.samples.t_s");
	np_bag_ints(b, ints, LEN(ints), "tcp.samples.cwnd");
	np_bag_ints(b, ints, 0, "tcp.samples.none");
	np_bag_unread(b, "Permission denied", "host.nic.firmware");
	v = through_text(np_json_bag(b));
	assert_int_equal(json_object_size(v), 7);
	assert_int_equal(json_integer_value(json_object_get(v, "tcp.rtt_us")), -3);
	assert_true(json_real_value(json_object_get(v, "thread.cpu_share")) == 0.1);
	assert_string_equal(json_string_value(json_object_get(v, "host.nic.name")), "eth0");
	list = json_object_get(v, "tcp.samples.t_s");
	assert_true(json_real_value(json_array_get(list, 2)) == reals[2]);
	list = json_object_get(v, "tcp.samples.cwnd");
	assert_int_equal(json_integer_value(json_array_get(list, 1)), INT64_MAX);
	list = json_object_get(v, "unread");
	assert_string_equal(json_string_value(json_object_get(list, "host.nic.firmware")),
			    "Permission denied");
	json_decref(v);
	np_bag_free(b);
}

TEST_MAIN()
