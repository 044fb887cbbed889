/*
 * Results as JSON.
 */
#include "out/json.h"

#include "tests/lib/bags.h"
#include "tests/lib/check.h"

/* A value, which is freed, is this text; with ' for ". */
static void
assert_json(json_t *v, const char *want)
{
	FREED_BY(free_memory) char *text = json_dumps(v, NP_JSON_FLAGS | JSON_ENCODE_ANY);

	assert_non_null(text);
	for (char *at = text; (at = strchr(at, '"')) != NULL;) {
		*at = '\'';
	}
	assert_string_equal(text, want);
	json_decref(v);
}

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
	assert_json(np_json_text(NULL), "null");
	assert_text("", "");
	assert_text("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
	assert_text("\xff", "\xef\xbf\xbd");
	assert_text("a\xc3", "a\xef\xbf\xbd");
	assert_text("a\xe2\x82z", "a\xef\xbf\xbd\xef\xbf\xbdz");
	assert_text("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* a surrogate */
	assert_text("\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd");                 /* too long */
	/* for any terminal */
	assert_json(np_json_text("\xc4\x9b\xf0\x9f\x98\x80"), "'\\u011B\\uD83D\\uDE00'");
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
	/* Latencies without an end are null. */
	assert_json(np_json_metrics(&r),
		    "{'P99_LATENCY':null,'FLOWS':0,'LOADED_P99_LATENCY':null}");
}

/* netperf cuts them off. */
TEST(times_have_their_fractions)
{
	struct np_record r = { .value[0].known = false };

	np_record_us(&r, NP_M_P50_LATENCY, 7500);
	np_record_us(&r, NP_M_P90_LATENCY, 8000);
	assert_json(np_json_metrics(&r), "{'P50_LATENCY':7.5,'P90_LATENCY':8}");
	assert_int_equal(np_record_get_int(&r, NP_M_P50_LATENCY), 7);
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
	} some = { true, 5, 7, 1500, UINT64_MAX, 500, "abc", "/x", NULL },
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
	assert_json(
	    o,
	    "{'flag':true,'signed':5,'count':7,'choice':7,'us':1.5,'s':0.0015,'wide':1500,"
	    "'count64':9223372036854775807,'real':500.0,'real_us':0.5,'text':'abc','path':'/x'}");
	o = json_object();
	assert_int_equal(np_json_members(o, members, LEN(members), &none), 0);
	assert_json(o, "{'flag':false,'count':0,'count64':0}"); /* the flag and the counts */
}

TEST(histograms_are_whole)
{
	FREED_BY(free_memory) struct np_hist *h = np_hist_new();

	assert_json(np_json_hist(h), "null");
	np_hist_record(h, 5);
	np_hist_record(h, 2049); /* within the cell that begins at 2048 */
	np_hist_record(h, 2048);
	assert_json(np_json_hist(h), "{'sum':4102,'min':5,'max':2049,'cells':[-5,1,-2042,2]}");
}

TEST(bags_keep_their_kinds)
{
	static const int64_t ints[] = { 1, INT64_MAX, -7 };
	FREED_BY(free_bag)
	struct np_bag *b = bag_of("tcp.rtt_us=-3 thread.cpu_share=0.5 host.nic.name='eth0' "
				  "tcp.samples.t_s=[0.5,2,-0.25]");

	assert_json(np_json_bag(NULL), "null");
	np_bag_ints(b, ints, LEN(ints), "tcp.samples.cwnd");
	np_bag_ints(b, ints, 0, "tcp.samples.none");
	put_bag(b, "tcp.rtt_us.x=1 tcp.samples=2 host.nic.firmware=?");
	/* A stranger's names, each of which begins with all of another one, stay as they are. */
	assert_json(np_json_bag(b),
		    "{'tcp':{'rtt_us':-3,'samples':{'t_s':[0.5,2.0,-0.25],"
		    "'cwnd':[1,9223372036854775807,-7],'none':[]}},'thread':{'cpu_share':0.5},"
		    "'host':{'nic':{'name':'eth0'}},'tcp.rtt_us.x':1,'tcp.samples':2,"
		    "'unread':{'host.nic.firmware':'Permission denied'}}");
}

TEST_MAIN()
