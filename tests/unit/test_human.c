/*
 * The table of --human.
 */
#include "out/format.h"

#include "out/explain.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/records.h"

/* Of a human h, in the unit of that letter. */
#define LOOK(letter) .human = &h, .classic = { .layout = "", .unit = np_unit(letter) }

static char *
printed(const struct np_look *l, const struct np_figures *f)
{
	return WRITTEN(out, np_human_print(out, l, f));
}

static void
assert_human(const struct np_look *l, const struct np_figures *f, const char *want)
{
	FREED_BY(free_memory) char *text = printed(l, f);

	assert_string_equal(text, want);
}

/* A stream with all that there may be. */
static void
fill_stream(struct np_record *r)
{
	memset(r, 0, sizeof(*r));
	np_record_text(r, NP_M_PROTOCOL, "TCP");
	np_record_text(r, NP_M_DIRECTION, "Send");
	put_figures(r, "ELAPSED_TIME=10.004 THROUGHPUT=9412.34 LOCAL_SEND_THROUGHPUT=9412.5 "
		       "LOCAL_RECV_THROUGHPUT=0 FLOWS=4 THREADS=2 REMOTE_THREADS=1 "
		       "MIN_FLOW_THROUGHPUT=2301.2 MAX_FLOW_THROUGHPUT=2411.9 JAIN_INDEX=0.9991");
	np_record_text(r, NP_M_LOCAL_ENGINE, "epoll");
	put_figures(r,
		    "CONFIDENCE_LEVEL=99 LOCAL_CPU_UTIL=12.34 REMOTE_CPU_UTIL=5 "
		    "LOCAL_TRANSPORT_RETRANS=17 REMOTE_TRANSPORT_RETRANS=0 DISTURBED_SHARE=0.021");
	np_record_text(r, NP_M_DISTURBED_REASONS, "switches:0.2");
	np_record_real(r, NP_M_CLEAN_THROUGHPUT, 9413);
	np_record_real(r, NP_M_CLEAN_SECONDS, 9.79);
}

TEST(a_stream_has_its_interval_and_its_limit)
{
	static const char want[] =
	    "Test            TCP_STREAM, 10.00 s in each of 3 iterations, engine epoll\n"
	    "Local end       192.0.2.1 port 4711, sends\n"
	    "Remote end      192.0.2.2 port 815 (far.example), receives\n"
	    "Throughput      9.412 Gbit/s +- 57.30 Mbit/s (0.61 %) at 99 % confidence, less\n"
	    "                sure than was asked for\n"
	    "Flows           4, least 2.301 Gbit/s, most 2.412 Gbit/s, Jain's index 0.999,\n"
	    "                threads 2 local, 1 remote\n"
	    "Processors      12.3 % local, 5.0 % remote, of all processors\n"
	    "Retransmitted   17 local, 0 remote\n"
	    "Undisturbed     97.9 % of the time, with 9.413 Gbit/s (disturbed, in seconds:\n"
	    "                switches:0.2)\n"
	    "Limit           limited by the link\n"
	    "Calls           of 16 bytes\n"
	    "Ceiling         9.414 Gbit/s\n";
	struct np_human h = { .test = "TCP_STREAM",
			      .host = "far.example",
			      .local = "192.0.2.1 port 4711",
			      .remote = "192.0.2.2 port 815" };
	const struct np_look l = { LOOK('m'), .missed = true };
	FREED_BY(free_bag)
	struct np_bag *limits =
	    bag_of("explain.sentence='limited by the link' explain.doubts='' "
		   "explain.calls='of 16 bytes' explain.ceiling='9.414 Gbit/s'");
	struct np_record r;
	const struct np_figures f = { .record = &r };

	fill_stream(&r);
	for (int i = -1; i <= 1; i++) {
		np_series_add(&h.rates, 9412.34 + 10 * i);
	}
	h.limits = limits;
	assert_human(&l, &f, want);
}

TEST(transactions_have_their_latencies)
{
	static const char want[] =
	    "Test            UDP_RR, 0.50 s\n"
	    "Remote end      far.example\n"
	    "Transactions    2000/s\n"
	    "Loss            3 of 1003 requests (0.299 %)\n"
	    "Latency         min 1.00 us, mean 500 us, max 1.00 ms of 1000 times\n"
	    "                (request/response)\n"
	    "                P50 500 us, P90 900 us, P99 990 us, P99.9 not known (too few)\n";
	const struct np_human h = { .test = "UDP_RR", .host = "far.example" };
	const struct np_look l = { LOOK('x'), .transactions = true,
				   .histogram_of = "request/response" };
	FREED_BY(free_memory) struct np_hist *hist = np_hist_new();
	struct np_record r = { .value[0].known = false };
	const struct np_figures f = { .record = &r, .latency = hist };

	assert_non_null(hist);
	for (uint64_t i = 1; i <= 1000; i++) {
		np_hist_record(hist, i * 1000);
	}
	np_record_text(&r, NP_M_PROTOCOL, "UDP");
	np_record_text(&r, NP_M_DIRECTION, "Send|Recv");
	put_figures(&r, "ELAPSED_TIME=0.5 THROUGHPUT=2000 TRANSACTION_RATE=2000 LOST_REQUESTS=3 "
			"REMOTE_SEND_CALLS=1000 LOCAL_RECV_CALLS=1000 LOCAL_SEND_CALLS=1003 "
			"LOCAL_TRANSPORT_RETRANS=-1 LOCAL_CPU_UTIL=-1");
	assert_human(&l, &f, want);
}

/* By what was sent and arrived where the datagrams have no numbers. */
TEST(lost_datagrams_are_told)
{
	struct np_human h = { .test = "UDP_STREAM" };
	const struct np_look l = { LOOK('m') };
	struct np_record r = { .value[0].known = false };
	const struct np_figures f = { .record = &r };
	char *text;

	np_record_text(&r, NP_M_PROTOCOL, "UDP");
	np_record_text(&r, NP_M_DIRECTION, "Send");
	np_record_int(&r, NP_M_LOCAL_SEND_CALLS, 1000);
	text = printed(&l, &f);
	assert_null(strstr(text, "Loss"));
	free(text);
	np_record_int(&r, NP_M_REMOTE_RECV_CALLS, 900);
	text = printed(&l, &f);
	assert_non_null(strstr(text, "Loss            100 of 1000 datagrams (10 %)\n"));
	free(text);
	np_record_int(&r, NP_M_LOST_DATAGRAMS, 90);
	np_record_int(&r, NP_M_UNIQUE_DATAGRAMS, 910);
	text = printed(&l, &f);
	assert_non_null(strstr(text, "Loss            90 of 1000 datagrams (9 %)\n"));
	free(text);
}

/* Two figures that differ so much tell nothing, but do so in plain digits. */
TEST(a_wide_interval_has_plain_digits)
{
	struct np_human h = { .test = "TCP_STREAM" };
	const struct np_look l = { LOOK('m') };
	struct np_record r = { .value[0].known = false };
	const struct np_figures f = { .record = &r };
	FREED_BY(free_memory) char *text = NULL;

	np_record_real(&r, NP_M_THROUGHPUT, 100);
	np_series_add(&h.rates, 50);
	np_series_add(&h.rates, 150);
	text = printed(&l, &f);
	assert_non_null(strstr(text, "(635 %) at 95 % confidence\n"));
}

TEST(connections_are_neither_sent_nor_received)
{
	const struct np_human h = { .test = "TCP_CC", .local = "192.0.2.1 port 1" };
	const struct np_look l = { LOOK('x'), .transactions = true };
	struct np_record r = { .value[0].known = false };
	const struct np_figures f = { .record = &r };

	np_record_text(&r, NP_M_DIRECTION, "Receive");
	np_record_real(&r, NP_M_ELAPSED_TIME, 1);
	np_record_real(&r, NP_M_THROUGHPUT, 2000);
	assert_human(&l, &f,
		     "Test            TCP_CC, 1.00 s\n"
		     "Local end       192.0.2.1 port 1\n"
		     "Transactions    2000/s\n");
}

TEST(arrivals_that_were_not_poisson_are_named)
{
	static const double p_values[] = { 0, 0.0009, 0.001, 0.5 };
	const struct np_human h = { .test = "TCP_RR" };
	const struct np_look l = { LOOK('x'), .transactions = true };
	struct np_record r = { .value[0].known = false };
	const struct np_figures f = { .record = &r };

	put_figures(&r, "ASKED_RATE=100 SENT_RATE=90 DUE_OPERATIONS=100 SENT_OPERATIONS=90 "
			"LATE_OPERATIONS=0 UNANSWERED_OPERATIONS=0 P99_LATENESS=1 MAX_LATENESS=1");
	np_record_text(&r, NP_M_GENERATOR_LIMITS, "no");
	for (size_t i = 0; i < LEN(p_values); i++) {
		FREED_BY(free_memory) char *text = NULL;

		np_record_real(&r, NP_M_ARRIVALS_P_VALUE, p_values[i]);
		text = printed(&l, &f);
		assert_int_equal(strstr(text, "(Anderson-Darling") != NULL, i < 2);
		assert_null(strstr(text, "Poisson test"));
	}
}

/* None was answered before the test, but some during it. */
TEST(latencies_under_load_do_not_need_those_before_it)
{
	struct np_human h = { .test = "TCP_STREAM" };
	const struct np_look l = { LOOK('m') };
	struct np_record r;
	const struct np_figures f = { .record = &r };
	FREED_BY(free_memory) char *text;

	memset(&r, 0, sizeof(r));
	put_figures(&r, "THROUGHPUT=1 LOADED_P50_LATENCY=1500 LOADED_P99_LATENCY=9000 "
			"LOADED_RPM=40000");
	np_record_text(&r, NP_M_LOAD_DIED, "no");
	text = printed(&l, &f);
	assert_has(text, "\nBeside          loaded P50 1.50 ms, P99 9.00 ms, 40000 round trips a ");
}

TEST(a_segment_size_takes_the_place_of_a_rate)
{
	const struct np_human h = { .test = "TCP_MSS" };
	const struct np_look l = { .human = &h,
				   .classic = { .layout = "mss", .unit = np_unit('m') } };
	struct np_record r = { .value[0].known = false };
	const struct np_figures f = { .record = &r };

	put_figures(&r, "ELAPSED_TIME=0 THROUGHPUT=0 TRANSPORT_MSS=1448");
	assert_human(&l, &f,
		     "Test            TCP_MSS, 0.00 s\n"
		     "Segment size    1448 bytes\n");
}

/* A document may be anybody's. */
TEST(texts_of_others_stay_in_their_lines)
{
	static char longest[5000];
	struct np_human h = { .test = longest, .host = "a\nb\033[2J" };
	const struct np_look l = { LOOK('m') };
	struct np_record r = { .value[0].known = false };
	const struct np_figures f = { .record = &r };
	FREED_BY(free_memory) char *text = NULL;

	memset(longest, 'x', sizeof(longest) - 1);
	text = printed(&l, &f);
	assert_non_null(strstr(text, "Remote end      a?b?[2J\n"));
	assert_null(strchr(text, '\033'));
}

/* Every unit of -f but 'x' is bits a second here. */
TEST(units_are_those_of_si)
{
	static const struct {
		char letter;
		double v;
		const char *want;
	} units[] = {
		{ 'm', 0, "Throughput      0.000 bit/s\n" },
		{ 'm', 0.000123, "Throughput      123.0 bit/s\n" },
		{ 'g', 99.99, "Throughput      99.99 Gbit/s\n" },
		{ 'M', 1, "Throughput      8.389 Mbit/s\n" },
		{ 'B', 1e9, "Throughput      8.000 Gbit/s\n" },
		{ 'k', 999999, "Throughput      1.000 Gbit/s\n" },
		{ 'k', 999960, "Throughput      1.000 Gbit/s\n" },
		{ 'k', 999940, "Throughput      999.9 Mbit/s\n" },
		{ 'm', 99.996, "Throughput      100.0 Mbit/s\n" },
		{ 'x', 99.99, "Transactions    99.99/s\n" },
		{ 'x', 99.999, "Transactions    100/s\n" },
		{ 'x', 100.7, "Transactions    101/s\n" },
	};

	for (size_t i = 0; i < LEN(units); i++) {
		struct np_human h = { .test = "TCP_STREAM" };
		const struct np_look l = { LOOK(units[i].letter),
					   .transactions = units[i].letter == 'x' };
		struct np_record r = { .value[0].known = false };
		const struct np_figures f = { .record = &r };
		FREED_BY(free_memory) char *text = NULL;

		np_record_real(&r, NP_M_THROUGHPUT, units[i].v);
		text = printed(&l, &f);
		assert_non_null(strstr(text, units[i].want));
	}
}

TEST_MAIN()
