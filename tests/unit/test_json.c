/*
 * Results as JSON and back: what is read is what was written, and what nobody wrote is refused.
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

static json_t *
parsed(const char *text)
{
	json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

	assert_non_null(v);
	return v;
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

TEST(figures_come_back_as_they_were)
{
	static const double reals[] = { 0.1 + 0.2, 1e308, 5e-324, -0.0, 9412.0, 1.0 / 3 };
	struct np_record r, back;
	struct np_err err;
	json_t *v;

	for (size_t i = 0; i < LEN(reals); i++) {
		memset(&r, 0, sizeof(r));
		memset(&back, 0, sizeof(back));
		np_record_real(&r, NP_M_THROUGHPUT, reals[i]);
		np_record_int(&r, NP_M_LSS_SIZE, INT64_MAX - (int64_t)i);
		np_record_char(&r, NP_M_LOCAL_CPU_METHOD, 'S');
		np_record_text(&r, NP_M_PROTOCOL, "TC\"P\n");
		np_record_text(&r, NP_M_OUTPUT_NONE, " ");
		v = through_text(np_json_metrics(&r));
		assert_int_equal(json_object_size(v), NP_METRICS - 2 - withdrawn());
		assert_true(json_is_null(json_object_get(v, "LSR_SIZE")));
		assert_int_equal(np_json_read_metrics(v, &back, &err), NP_OK);
		assert_memory_equal(&back.value[NP_M_THROUGHPUT].r, &reals[i], sizeof(reals[i]));
		assert_int_equal(np_record_get_int(&back, NP_M_LSS_SIZE), INT64_MAX - (int64_t)i);
		assert_int_equal(np_record_get_char(&back, NP_M_LOCAL_CPU_METHOD), 'S');
		assert_string_equal(np_record_get_text(&back, NP_M_PROTOCOL), "TC\"P\n");
		assert_false(np_record_known(&back, NP_M_LSR_SIZE));
		json_decref(v);
	}
}

/* A stock daemon sends such. */
TEST(what_is_no_number_keeps_its_words)
{
	static const struct {
		double v;
		const char *word;
	} odd[] = { { (double)NAN, "nan" },
		    { -(double)NAN, "-nan" },
		    { HUGE_VAL, "inf" },
		    { -HUGE_VAL, "-inf" } };
	struct np_record r, back;
	struct np_err err;

	for (size_t i = 0; i < LEN(odd); i++) {
		json_t *metrics, *words;
		char text[16];

		memset(&r, 0, sizeof(r));
		memset(&back, 0, sizeof(back));
		np_record_real(&r, NP_M_REMOTE_SD, odd[i].v);
		np_record_real(&r, NP_M_LOCAL_SD, 1);
		metrics = through_text(np_json_metrics(&r));
		words = through_text(np_json_oddities(&r));
		assert_true(json_is_null(json_object_get(metrics, "REMOTE_SD")));
		assert_int_equal(json_object_size(words), 1);
		assert_false(np_record_measured(&r, NP_M_REMOTE_SD));
		assert_string_equal(json_string_value(json_object_get(words, "REMOTE_SD")),
				    odd[i].word);
		assert_int_equal(np_json_read_metrics(metrics, &back, &err), NP_OK);
		assert_false(np_record_known(&back, NP_M_REMOTE_SD));
		assert_int_equal(np_json_read_oddities(words, &back, &err), NP_OK);
		np_record_format(&back, NP_M_REMOTE_SD, text, sizeof(text));
		assert_string_equal(text, odd[i].word);
		json_decref(metrics);
		json_decref(words);
	}
}

/* What netperf prints where nothing was measured is no figure, and printed again all the same. */
/* There is no such number: null, whose word lets it be shown again. */
TEST(times_without_an_end_come_back)
{
	struct np_record r = { .value[0].known = false }, back = r;
	json_t *figures, *odd;
	char text[32];

	np_record_us(&r, NP_M_P99_LATENCY, NP_HIST_NEVER);
	np_record_us(&r, NP_M_LOADED_P99_LATENCY, NP_HIST_NEVER);
	figures = through_text(np_json_metrics(&r));
	odd = through_text(np_json_oddities(&r));
	assert_true(json_is_null(json_object_get(figures, "P99_LATENCY")));
	assert_true(json_is_null(json_object_get(figures, "LOADED_P99_LATENCY")));
	assert_int_equal(np_json_read_metrics(figures, &back, NULL), NP_OK);
	assert_int_equal(np_json_read_oddities(odd, &back, NULL), NP_OK);
	assert_int_equal(np_record_format(&back, NP_M_P99_LATENCY, text, sizeof(text)), 3);
	assert_string_equal(text, "inf");
	(void)np_record_format(&back, NP_M_LOADED_P99_LATENCY, text, sizeof(text));
	assert_string_equal(text, "inf");
	json_decref(figures);
	json_decref(odd);
}

TEST(marks_are_null_and_come_back)
{
	static const struct {
		enum np_metric_id id;
		int64_t i;
		bool word; /* else it is what a figure without a value shows */
	} ints[] = {
		{ NP_M_REMOTE_TRANSPORT_RETRANS, -2, true },
		{ NP_M_LSS_SIZE_REQ, -1, false },
		{ NP_M_RSS_SIZE, 0, true },
	};
	static const enum np_metric_id marked[] = { NP_M_RSS_SIZE, NP_M_LOCAL_CPU_PERCENT_USER,
						    NP_M_OUTPUT_END };
	struct np_record r = { .value[0].known = false }, back = { .value[0].known = false };
	struct np_err err;
	json_t *metrics, *words;

	for (size_t i = 0; i < LEN(ints); i++) {
		np_record_int(&r, ints[i].id, ints[i].i);
	}
	np_record_real(&r, NP_M_LOCAL_CPU_PERCENT_USER, 0);
	np_record_real(&r, NP_M_LOCAL_CPU_UTIL, -1);
	np_record_char(&r, NP_M_REMOTE_CPU_METHOD, '\0');
	np_record_char(&r, NP_M_LOCAL_CPU_METHOD, 'U');
	np_record_text(&r, NP_M_LOCAL_FILL_FILE, "");
	np_record_int(&r, NP_M_FLOWS, 0); /* counted */
	np_record_mark(&r, marked);
	metrics = through_text(np_json_metrics(&r));
	words = through_text(np_json_oddities(&r));
	assert_int_equal(np_json_read_metrics(metrics, &back, &err), NP_OK);
	for (int id = 0; id < NP_METRICS; id++) {
		assert_int_equal(np_record_known(&back, (enum np_metric_id)id),
				 id == NP_M_FLOWS || id == NP_M_OUTPUT_NONE);
	}
	assert_int_equal(np_json_read_oddities(words, &back, &err), NP_OK);
	assert_int_equal(json_object_size(words), 5);
	for (int id = 0; id < NP_METRICS; id++) {
		char was[64], is[64];

		np_record_format(&r, (enum np_metric_id)id, was, sizeof(was));
		np_record_format(&back, (enum np_metric_id)id, is, sizeof(is));
		assert_string_equal(is, was);
		assert_int_equal(np_record_measured(&back, (enum np_metric_id)id),
				 id == NP_M_FLOWS || id == NP_M_OUTPUT_NONE);
	}
	assert_true(np_record_known(&back, NP_M_LOCAL_FILL_FILE));
	json_decref(metrics);
	json_decref(words);
}

static void
assert_words_refused(const char *text)
{
	struct np_record r = { .value[0].known = false };
	struct np_err err = { .code = NP_OK };
	json_t *v = parsed(text);

	assert_int_equal(np_json_read_oddities(v, &r, &err), NP_EUSAGE);
	json_decref(v);
}

TEST(words_that_no_figure_shows_are_refused)
{
	assert_words_refused("[]");
	assert_words_refused("{\"LSS_SIZE\":1}");
	assert_words_refused("{\"LSS_SIZE\":\"one\"}");
	assert_words_refused("{\"LSS_SIZE\":\"\"}");
	assert_words_refused("{\"LSS_SIZE\":\"99999999999999999999\"}");
	assert_words_refused("{\"THROUGHPUT\":\"1,5\"}");
	assert_words_refused("{\"LOCAL_CPU_METHOD\":\"S\"}");
}

static void
assert_metrics_refused(const char *text)
{
	struct np_record r = { .value[0].known = false };
	struct np_err err = { .code = NP_OK };
	json_t *v = parsed(text);

	assert_int_equal(np_json_read_metrics(v, &r, &err), NP_EUSAGE);
	assert_int_equal(err.code, NP_EUSAGE);
	json_decref(v);
}

TEST(figures_of_other_types_are_refused)
{
	static const char newer[] = "{\"A_FIGURE_OF_TOMORROW\":[],\"LSS_SIZE\":1}";
	struct np_record r = { .value[0].known = false };
	struct np_err err;
	json_t *v = parsed(newer);

	assert_int_equal(np_json_read_metrics(v, &r, &err), NP_OK);
	json_decref(v);
	assert_metrics_refused("[]");
	assert_metrics_refused("{\"THROUGHPUT\":\"9\"}");
	assert_metrics_refused("{\"LSS_SIZE\":1.5}");
	assert_metrics_refused("{\"PROTOCOL\":4}");
	assert_metrics_refused("{\"LOCAL_CPU_METHOD\":\"SS\"}");
}

static struct np_hist *
some_times(uint64_t seed, unsigned count)
{
	struct np_hist *h = np_hist_new();

	assert_non_null(h);
	for (unsigned i = 0; i < count; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		np_hist_record(h, seed >> (20 + seed % 40));
	}
	return h;
}

/* Two that are read into one are what was recorded in both. */
TEST(histograms_are_merged_by_reading)
{
	struct np_hist *a = some_times(1, 3000), *b = some_times(2, 500), *back = np_hist_new();
	json_t *first = through_text(np_json_hist(a)), *second = through_text(np_json_hist(b));
	struct np_err err;
	json_t *empty;

	assert_int_equal(json_integer_value(json_object_get(first, "count")), 3000);
	assert_int_equal(np_json_read_hist(first, back, &err), NP_OK);
	assert_memory_equal(back, a, sizeof(*a));
	assert_int_equal(np_json_read_hist(second, back, &err), NP_OK);
	np_hist_merge(a, b);
	assert_memory_equal(back, a, sizeof(*a));
	np_hist_clear(a);
	empty = np_json_hist(a);
	assert_true(json_is_null(empty));
	assert_int_equal(np_json_read_hist(empty, back, &err), NP_OK);
	json_decref(empty);
	json_decref(first);
	json_decref(second);
	free(a);
	free(b);
	free(back);
}

static void
assert_hist_refused(const char *cells, const char *rest)
{
	struct np_err err = { .code = NP_OK };
	struct np_hist *h = np_hist_new();
	char text[256];
	json_t *v;

	snprintf(text, sizeof(text), "{\"half_bits\":10,\"top_bits\":47,\"sum\":9,\"cells\":%s,%s}",
		 cells, rest);
	v = parsed(text);
	assert_int_equal(np_json_read_hist(v, h, &err), NP_EUSAGE);
	json_decref(v);
	free(h);
}

TEST(damaged_histograms_are_refused)
{
	static const char good[] = "\"min\":1,\"max\":2";

	assert_hist_refused("[[1,1]]", "\"min\":3,\"max\":2");
	assert_hist_refused("[[1,1]]", "\"min\":3");
	assert_hist_refused("7", good);
	assert_hist_refused("[1]", good);
	assert_hist_refused("[[1]]", good);
	assert_hist_refused("[[1,-1]]", good);
	assert_hist_refused("[[-1,1]]", good);
	assert_hist_refused("[[1,1.5]]", good);
	assert_hist_refused("[[2049,1]]", good); /* within a cell, not its bottom */
	assert_hist_refused("[[1,9223372036854775807],[2,1]]", good);
}

TEST(bags_come_back_as_they_were)
{
	static const double reals[] = { 0.1, 2, -3.5e300 };
	static const int64_t ints[] = { 1, INT64_MAX, -7 };
	struct np_bag *b = np_bag_new(), *back = np_bag_new();
	struct np_bag_item it;
	struct np_err err;
	json_t *v;

	np_bag_int(b, -3, "tcp.rtt_us");
	np_bag_real(b, 0.1, "thread.cpu_share");
	np_bag_text(b, "eth0", "host.nic.name");
	np_bag_reals(b, reals, LEN(reals), "tcp.samples.t_s");
	np_bag_ints(b, ints, LEN(ints), "tcp.samples.cwnd");
	np_bag_ints(b, ints, 0, "tcp.samples.none");
	np_bag_unread(b, "Permission denied", "host.nic.firmware");
	v = through_text(np_json_bag(b));
	assert_int_equal(json_object_size(v), 7);
	assert_int_equal(np_json_read_bag(v, back, &err), NP_OK);
	assert_int_equal(np_bag_count(back), np_bag_count(b));
	assert_int_equal(np_bag_left_out(back), 0);
	assert_true(np_bag_number(back, "tcp.rtt_us") == -3);
	assert_true(np_bag_number(back, "thread.cpu_share") == 0.1);
	assert_string_equal(np_bag_string(back, "host.nic.name"), "eth0");
	assert_true(np_bag_find(back, "tcp.samples.t_s", &it) && it.kind == NP_BAG_REALS);
	assert_memory_equal(it.reals, reals, sizeof(reals));
	assert_true(np_bag_find(back, "tcp.samples.cwnd", &it) && it.kind == NP_BAG_INTS);
	assert_memory_equal(it.ints, ints, sizeof(ints));
	assert_true(np_bag_find(back, "host.nic.firmware", &it) && it.kind == NP_BAG_UNREAD);
	assert_string_equal(it.text, "Permission denied");
	json_decref(v);
	v = np_json_bag(NULL);
	assert_true(json_is_null(v));
	assert_int_equal(np_json_read_bag(v, back, &err), NP_EUSAGE);
	v = parsed("{\"a\":[1,\"x\"]}");
	assert_int_equal(np_json_read_bag(v, back, &err), NP_EUSAGE);
	json_decref(v);
	v = parsed("{\"a\":{}}");
	assert_int_equal(np_json_read_bag(v, back, &err), NP_EUSAGE);
	json_decref(v);
	np_bag_free(b);
	np_bag_free(back);
}

static void
make_look(struct np_look *l)
{
	struct np_err err;

	memset(l, 0, sizeof(*l));
	l->style = NP_STYLE_KEYVAL;
	l->classic.layout = "udp_rr";
	l->classic.unit = np_unit('g');
	l->classic.verbosity = 2;
	l->classic.headers = true;
	l->classic.remote_cpu = true;
	l->classic.brand = "mine";
	l->histogram_of = "send";
	l->missed = l->latency = true;
	assert_int_equal(np_selection_parse("THROUGHPUT,NO_SUCH;P50_LATENCY", &l->list, &err),
			 NP_OK);
}

TEST(looks_come_back_as_they_were)
{
	struct np_look l, back;
	struct np_err err;
	json_t *v;

	make_look(&l);
	v = through_text(np_json_look(&l));
	assert_int_equal(np_json_read_look(v, &back, &err), NP_OK);
	assert_string_equal(back.classic.layout, "udp_rr");
	assert_string_equal(back.classic.brand, "mine");
	assert_string_equal(back.histogram_of, "send");
	assert_ptr_equal(back.classic.unit, l.classic.unit);
	assert_int_equal(back.style, l.style);
	assert_int_equal(back.classic.verbosity, 2);
	assert_true(back.classic.headers && back.classic.remote_cpu && back.missed);
	assert_false(back.classic.local_cpu || back.histogram || back.average || back.congestion);
	assert_int_equal(back.list.count[0], 2);
	assert_int_equal(back.list.id[0][0], NP_M_THROUGHPUT);
	assert_int_equal(back.list.id[0][1], NP_SELECT_UNKNOWN);
	assert_int_equal(back.list.id[1][0], NP_M_P50_LATENCY);
	json_decref(v);
}

/* Whether a test counts transactions is told by its unit there. */
TEST(looks_of_older_documents_count_transactions)
{
	struct np_look l, back;
	struct np_err err;

	for (int transactions = 0; transactions < 2; transactions++) {
		json_t *v;

		make_look(&l);
		l.classic.unit = np_unit(transactions != 0 ? 'x' : 'g');
		v = np_json_look(&l);
		json_object_del(v, "transactions");
		assert_int_equal(np_json_read_look(v, &back, &err), NP_OK);
		assert_int_equal(back.transactions, transactions);
		json_decref(v);
	}
}

static void
assert_look_refused(const char *name, const char *value)
{
	struct np_look l, back;
	struct np_err err;
	json_t *v;

	make_look(&l);
	v = np_json_look(&l);
	json_object_set_new(v, name, parsed(value));
	assert_int_equal(np_json_read_look(v, &back, &err), NP_EUSAGE);
	assert_has(err.msg, "display");
	json_decref(v);
}

TEST(damaged_looks_are_refused)
{
	assert_look_refused("style", "\"baroque\"");
	assert_look_refused("style", "4");
	assert_look_refused("layout", "\"no such\"");
	assert_look_refused("layout", "null");
	assert_look_refused("unit", "\"q\"");
	assert_look_refused("unit", "\"\"");
	assert_look_refused("verbosity", "\"2\"");
	assert_look_refused("headers", "1");
	assert_look_refused("brand", "5");
	assert_look_refused("figures", "[]");
	assert_look_refused("figures", "[[],[],[],[7]]");
	assert_look_refused("figures", "[[],[],[],7]");
	assert_look_refused("histogram_of", "null");
}

TEST_MAIN()
