/*
 * Results as JSON.
 */
#include "out/json.h"

#include "tests/lib/bags.h"
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
		assert_int_equal(json_object_size(v), 4); /* and no marks */
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
TEST(what_was_not_measured_is_absent)
{
	static const enum np_metric_id marked[] = { NP_M_RSS_SIZE, NP_M_LOCAL_CPU_PERCENT_USER,
						    NP_M_OUTPUT_END };
	struct np_record r = { .value[0].known = false };
	json_t *v;

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
	assert_int_equal(json_integer_value(json_object_get(v, "FLOWS")), 0);
	assert_true(json_is_null(json_object_get(v, "P99_LATENCY"))); /* without an end */
	assert_true(json_is_null(json_object_get(v, "LOADED_P99_LATENCY")));
	assert_int_equal(json_object_size(v), 3);
	json_decref(v);
}

/* netperf cuts them off. */
TEST(times_have_their_fractions)
{
	struct np_record r = { .value[0].known = false };
	json_t *v;

	np_record_us(&r, NP_M_P50_LATENCY, 7471);
	np_record_us(&r, NP_M_P90_LATENCY, 8000);
	v = through_text(np_json_metrics(&r));
	assert_true(json_real_value(json_object_get(v, "P50_LATENCY")) == 7.471);
	assert_int_equal(json_integer_value(json_object_get(v, "P90_LATENCY")), 8);
	assert_int_equal(np_record_get_int(&r, NP_M_P50_LATENCY), 7);
	json_decref(v);
}

/* One of each kind, and what stands for no value. */
TEST(members_are_read_by_their_kind)
{
	static const struct all {
		bool flag;
		int32_t i32;
		uint32_t u32;
		int64_t ns;
		uint64_t u64;
		double real;
		char text[4];
		const char *path;
		const struct np_hist *hist;
	} some = { true, 5, 7, 1500, UINT64_MAX, 0.5, "abc", "/x", NULL },
	  none = { false, -1, 0, -1, 0, (double)NAN, "", NULL, NULL };
#define AT(name, kind, member)                                                                     \
	{                                                                                          \
		name, NP_JSON_##kind, offsetof(struct all, member)                                 \
	}
	static const struct np_json_member members[] = {
		AT("flag", FLAG, flag),
		AT("signed", SIGNED, i32),
		AT("count", COUNT, u32),
		AT("choice", CHOICE, u32),
		AT(NULL, PORT, u32),
		AT("us", NS, ns),
		AT("s", US, ns),
		AT("wide", SIGNED64, ns),
		AT("count64", COUNT64, u64),
		AT("real", REAL, real),
		AT("real_us", REAL_NS, real),
		AT("text", TEXT, text),
		AT("path", STRING, path),
		AT("hist", HIST, hist),
	};
	json_t *o = json_object();

	assert_int_equal(np_json_members(o, members, LEN(members), &some), 0);
	o = through_text(o);
	assert_int_equal(json_object_size(o), LEN(members) - 2);
	assert_true(json_is_true(json_object_get(o, "flag")));
	assert_int_equal(json_integer_value(json_object_get(o, "signed")), 5);
	assert_int_equal(json_integer_value(json_object_get(o, "choice")), 7);
	assert_true(json_real_value(json_object_get(o, "us")) == 1.5);
	assert_true(json_real_value(json_object_get(o, "s")) == 0.0015);
	assert_int_equal(json_integer_value(json_object_get(o, "count64")), INT64_MAX);
	assert_true(json_real_value(json_object_get(o, "real_us")) == 0.0005);
	assert_string_equal(json_string_value(json_object_get(o, "text")), "abc");
	assert_string_equal(json_string_value(json_object_get(o, "path")), "/x");
	json_decref(o);
	o = json_object();
	assert_int_equal(np_json_members(o, members, LEN(members), &none), 0);
	assert_int_equal(json_object_size(o), 3); /* the flag and the counts */
	json_decref(o);
}

TEST(histograms_are_whole)
{
	static const int want[] = { -5, 1, -2042, 2 };
	FREED_BY(free_memory) struct np_hist *h = np_hist_new();
	json_t *v = np_json_hist(h), *cells;

	assert_true(json_is_null(v));
	np_hist_record(h, 5);
	np_hist_record(h, 2049); /* within the cell that begins at 2048 */
	np_hist_record(h, 2048);
	v = through_text(np_json_hist(h));
	cells = json_object_get(v, "cells");
	assert_int_equal(json_integer_value(json_object_get(v, "sum")), 4102);
	assert_int_equal(json_integer_value(json_object_get(v, "min")), 5);
	assert_int_equal(json_integer_value(json_object_get(v, "max")), 2049);
	assert_int_equal(json_array_size(cells), 4);
	for (size_t i = 0; i < LEN(want); i++) {
		assert_int_equal(json_integer_value(json_array_get(cells, i)), want[i]);
	}
	json_decref(v);
}

TEST(bags_keep_their_kinds)
{
	static const double reals[] = { 0.1, 2, -3.5e300 };
	static const int64_t ints[] = { 1, INT64_MAX, -7 };
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	json_t *v = np_json_bag(NULL), *list, *tcp, *nic, *samples;

	assert_true(json_is_null(v));
	np_bag_int(b, -3, "tcp.rtt_us");
	np_bag_real(b, 0.1, "thread.cpu_share");
	np_bag_text(b, "eth0", "host.nic.name");
	np_bag_reals(b, reals, LEN(reals), "tcp.samples.t_s");
	np_bag_ints(b, ints, LEN(ints), "tcp.samples.cwnd");
	np_bag_ints(b, ints, 0, "tcp.samples.none");
	np_bag_int(b, 1, "tcp.rtt_us.x");
	np_bag_int(b, 2, "tcp.samples");
	np_bag_unread(b, "Permission denied", "host.nic.firmware");
	v = through_text(np_json_bag(b));
	tcp = json_object_get(v, "tcp");
	nic = json_object_get(json_object_get(v, "host"), "nic");
	samples = json_object_get(tcp, "samples");
	assert_int_equal(json_object_size(v), 6);
	assert_int_equal(json_integer_value(json_object_get(tcp, "rtt_us")), -3);
	assert_true(json_real_value(json_object_get(json_object_get(v, "thread"), "cpu_share")) ==
		    0.1);
	assert_string_equal(json_string_value(json_object_get(nic, "name")), "eth0");
	list = json_object_get(samples, "t_s");
	assert_true(json_real_value(json_array_get(list, 2)) == reals[2]);
	list = json_object_get(samples, "cwnd");
	assert_int_equal(json_integer_value(json_array_get(list, 1)), INT64_MAX);
	/* A stranger's, each of which begins with all of another one. */
	assert_int_equal(json_integer_value(json_object_get(v, "tcp.rtt_us.x")), 1);
	assert_int_equal(json_integer_value(json_object_get(v, "tcp.samples")), 2);
	list = json_object_get(v, "unread");
	assert_string_equal(json_string_value(json_object_get(list, "host.nic.firmware")),
			    "Permission denied");
	json_decref(v);
}

TEST_MAIN()
