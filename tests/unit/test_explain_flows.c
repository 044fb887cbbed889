/*
 * Several flows: rows composed so that what limits them is shared, a thread's, or some flows' own.
 */
#include "out/explain.h"

#include "tests/lib/bags.h"
#include "tests/lib/check.h"

enum { FLOWS = 16, MANY = 10000 };

/* The first `slow` of the flows are the slow ones, where a plant says nothing else. */
struct plant {
	struct np_explain_flow slow, rest;
	struct np_explain_thread thread_slow, thread_rest;
	uint32_t count, slow_ones;
	uint32_t threads;
	uint32_t slow_threads; /* these drive the slow ones, the others the rest; 0: all in turn */
	uint32_t spared;       /* of the slow ones the first have no loss */
	bool wobble;           /* rates differ by chance, to three halves */
};

static uint32_t rows_asked;

static const struct np_explain_flow nothing = { .rate = (double)NAN,
						.segments = (double)NAN,
						.again = (double)NAN,
						.rtt_us = (double)NAN,
						.min_rtt_us = (double)NAN,
						.cwnd = (double)NAN,
						.held = (double)NAN,
						.thread = -1,
						.cpu = -1 };
/* Ten seconds at 94 Mbit/s: 81,000 segments. */
static const struct np_explain_flow usual = { .rate = 94e6,
					      .segments = 81000,
					      .again = 1,
					      .rtt_us = 2100,
					      .min_rtt_us = 2000,
					      .cwnd = 17,
					      .held = 0.01,
					      .thread = -1,
					      .cpu = -1 };
static const struct np_explain_thread idle = { .busy = 0.3, .on = -1 };

static struct plant
plant(uint32_t slow_ones)
{
	return (struct plant){ .slow = usual,
			       .rest = usual,
			       .thread_slow = idle,
			       .thread_rest = idle,
			       .count = FLOWS,
			       .slow_ones = slow_ones };
}

static void
tell_flow(const void *of, uint32_t i, struct np_explain_flow *row)
{
	const struct plant *p = of;
	uint64_t seed = i * 2654435761U + 1;

	rows_asked++;
	*row = i < p->slow_ones ? p->slow : p->rest;
	row->again = i < p->spared ? 0 : row->again;
	if (p->wobble) {
		row->rate *= 1 + (double)(next_random(&seed) % 1000) / 2000;
	}
	if (p->threads > 0 && p->slow_threads == 0) {
		row->thread = i % p->threads;
	} else if (p->threads > 0) {
		row->thread = i < p->slow_ones
				  ? i % p->slow_threads
				  : p->slow_threads + i % (p->threads - p->slow_threads);
	}
}

static void
tell_thread(const void *of, uint32_t i, struct np_explain_thread *row)
{
	const struct plant *p = of;

	*row = i < p->slow_threads ? p->thread_slow : p->thread_rest;
}

static struct np_explain_input
input(struct plant *p)
{
	return (struct np_explain_input){ .near_transmits = true,
					  .family = 4,
					  .seconds = 10,
					  .sent_bps = 1e9,
					  .throughput_bps = 1e9,
					  .flows = { .count = p->count,
						     .threads = p->threads,
						     .flow = tell_flow,
						     .thread = tell_thread,
						     .of = p } };
}

static struct np_explanation
explain_input(const struct np_explain_input *in)
{
	struct np_explanation e;

	np_explain(in, &e);
	assert_null(strstr(e.flows_sentence, "nan"));
	assert_null(strstr(e.best.doubts, "nan"));
	return e;
}

static struct np_explanation
explain(struct plant *p)
{
	struct np_explain_input in = input(p);

	return explain_input(&in);
}

/* What is said of that plant. */
static void
check(struct plant p, enum np_flows_kind kind, const char *says)
{
	struct np_explanation e = explain(&p);

	fail_if(e.flows != kind, "%d: %s", (int)e.flows, e.flows_sentence);
	assert_has(e.flows_sentence, says);
}

TEST(one_flow_has_no_line)
{
	struct plant p = plant(0);
	struct np_explanation e;

	p.count = 1;
	e = explain(&p);
	assert_int_equal(e.flows, NP_FLOWS_NONE);
	assert_string_equal(e.flows_sentence, "");
	p.count = 0;
	assert_int_equal(explain(&p).flows, NP_FLOWS_NONE);
}

TEST(alike_is_shared)
{
	struct plant p = plant(0);

	check(p, NP_FLOWS_SHARED, "16 flows got 94 Mbit/s to 94 Mbit/s each (Jain's index 1.00)");
	p.wobble = true;
	check(p, NP_FLOWS_SHARED, "the same cause");
	p.threads = 4;
	check(p, NP_FLOWS_SHARED, "the same cause");
	p = plant(1); /* a flow that lost, and is as fast as the others */
	p.slow.again = 2000;
	check(p, NP_FLOWS_SHARED, "the same cause");
}

/* A link that is full has one rate for all, however they divide it. */
TEST(uneven_on_a_full_link)
{
	struct plant p = plant(8);
	struct np_explain_input in;
	struct np_explanation e;
	FREED_BY(free_bag) struct np_bag *near = np_bag_new();

	np_bag_int(near, 1500, "tcp.path_mtu");
	p.slow.rate = 20e6;
	p.slow.segments = 17000;
	in = input(&p);
	in.near = near;
	in.link_rate_bps = 1e9 / 0.9415;
	e = explain_input(&in);
	assert_int_equal(e.best.limit, NP_LIMIT_LINK);
	assert_int_equal(e.flows, NP_FLOWS_SHARED);
	assert_has(e.flows_sentence, "share what limits all of them (link)");
	in.link_rate_bps = 0;
	e = explain_input(&in);
	assert_int_equal(e.flows, NP_FLOWS_UNCLEAR);
	assert_has(e.flows_sentence, "8 of 16 flows got 20 Mbit/s each, the others 94 Mbit/s: no "
				     "known figure differs between them");
}

static struct plant
lossy(void)
{
	struct plant p = plant(3);

	p.slow.rate = 4e6;
	p.slow.segments = 3500;
	p.slow.again = 73;
	return p;
}

TEST(loss_of_some)
{
	struct plant p = lossy();

	check(p, NP_FLOWS_OWN,
	      "3 of 16 flows sent 2.1 % of their segments again (the others 0.001 %), and got "
	      "4 Mbit/s each, the others 94 Mbit/s");
	p.wobble = true;
	check(p, NP_FLOWS_OWN, "3 of 16 flows sent 2.1 %");
	p.slow_ones = 12;
	check(p, NP_FLOWS_OWN, "12 of 16 flows sent 2.1 %");
	p = lossy(); /* one of six is slow without it */
	p.slow_ones = 6;
	p.spared = 1;
	p.slow.again = 100;
	check(p, NP_FLOWS_OWN,
	      "5 of 16 flows sent 2.9 % of their segments again (the others 0.001 %");
	p = lossy(); /* a late thread's, within one machine: the window was never full */
	p.slow.again = 11;
	check(p, NP_FLOWS_UNCLEAR, "no known figure");
	p.slow.cwnd = 1;
	check(p, NP_FLOWS_OWN, "3 of 16 flows sent 0.31 %");
	p = lossy(); /* a loss that all have */
	p.rest.again = 810;
	check(p, NP_FLOWS_UNCLEAR, "no known figure");
	p = lossy(); /* a handful of segments are no loss */
	p.slow.segments = 500;
	p.slow.again = 1;
	check(p, NP_FLOWS_UNCLEAR, "no known figure");
	p = lossy();
	p.slow.again = p.rest.again = (double)NAN;
	check(p, NP_FLOWS_UNCLEAR, "no known figure");
}

/* Loss of all segments together is 0.5 %, and one flow has all of it. */
TEST(sums_do_not_mislead)
{
	struct plant p = plant(1);
	FREED_BY(free_bag)
	struct np_bag *near = bag_of("flow.seconds=10 thread.cpu_share=0.3 thread.seconds=10 "
				     "tcp.mss=1448 tcp.path_mtu=1500 tcp.data_segments_out=1000000 "
				     "tcp.retransmitted_segments=5000");
	struct np_explain_input in = input(&p);
	struct np_explanation e;

	in.near = near;
	e = explain_input(&in);
	assert_int_equal(e.best.limit, NP_LIMIT_LOSS); /* by the sums, of flows that are alike */
	p.slow.rate = 10e6;
	p.slow.segments = 40000;
	p.slow.again = 5000;
	p.rest.again = 0;
	e = explain_input(&in);
	assert_int_not_equal(e.best.limit, NP_LIMIT_LOSS);
	assert_int_not_equal(e.also.limit, NP_LIMIT_LOSS);
	assert_int_equal(e.flows, NP_FLOWS_OWN);
	assert_has(e.flows_sentence, "1 of 16 flows sent 12 % of their segments again");
	assert_has(e.flows_sentence, ", and got 10 Mbit/s, the others 94 Mbit/s");
	assert_has(e.best.doubts, "this covers the 15 flows that got more");
	p.slow_ones = 15; /* now it is the sums that count */
	e = explain_input(&in);
	assert_int_equal(e.best.limit, NP_LIMIT_LOSS);
	assert_int_equal(e.flows, NP_FLOWS_OWN);
	assert_null(strstr(e.best.doubts, "got more"));
}

/* A request that is lost takes a timer. */
TEST(loss_of_transactions)
{
	struct plant p = plant(3);
	struct np_explain_input in = input(&p);

	in.transactions = true;
	p.rest.rate = 5000;
	p.slow.rate = 46;
	p.slow.segments = 500;
	p.slow.again = 45;
	assert_has(explain_input(&in).flows_sentence,
		   "3 of 16 flows sent 9.0 % of their segments again (the others 0.001 %), and got "
		   "46 a second each, the others 5000 a second");
	p.slow.again = 10; /* 2 s of ten */
	assert_int_equal(explain_input(&in).flows, NP_FLOWS_UNCLEAR);
}

TEST(long_ways_of_some)
{
	struct plant p = plant(4);

	p.slow.rate = 5e6;
	p.slow.segments = 4300;
	p.slow.min_rtt_us = 40000;
	p.slow.rtt_us = 41000;
	check(p, NP_FLOWS_OWN, "4 of 16 flows had round trips of 40 ms or more (the others 2 ms)");
	p.slow.rate = 1e3; /* twenty times the way does not make it 90,000 times slower */
	check(p, NP_FLOWS_UNCLEAR, "no known figure");
	p.slow = usual; /* a queue that the others are not in */
	p.slow.rate = 20e6;
	p.slow.segments = 17200;
	p.slow.rtt_us = 20000;
	p.slow.cwnd = 35;
	check(p, NP_FLOWS_OWN, "4 of 16 flows had round trips of 20 ms at the end");
	p.slow.cwnd = 350; /* not what keeps it from more */
	check(p, NP_FLOWS_UNCLEAR, "no known figure");
	p.slow = usual; /* microseconds are a machine's */
	p.slow.rate = 20e6;
	p.slow.min_rtt_us = 60;
	p.rest.min_rtt_us = 20;
	p.slow.rtt_us = p.rest.rtt_us = 90;
	check(p, NP_FLOWS_UNCLEAR, "no known figure");
}

TEST(windows_of_some)
{
	struct plant p = plant(2);

	p.slow.rate = 30e6;
	p.slow.held = 0.8;
	check(p, NP_FLOWS_OWN,
	      "2 of 16 flows were limited by the receiver's window for 80 % of the time (the "
	      "others 1.0 %)");
	p.slow.again = 600;
	p.slow.segments = 25000;
	check(p, NP_FLOWS_OWN,
	      "2 of 16 flows sent 2.4 % of their segments again (the others 0.001 %) and were "
	      "limited");
}

TEST(flows_of_a_busy_thread)
{
	struct plant p = plant(4);

	p.slow.rate = 40e6;
	p.threads = 4;
	p.slow_threads = 1;
	p.thread_slow.busy = 0.98;
	check(p, NP_FLOWS_BY_THREAD,
	      "4 of 16 flows belong to thread 0 that was busy 98 % (the others 30 %), and got "
	      "40 Mbit/s each, the others 94 Mbit/s");
	p.thread_slow.busy = (double)NAN; /* all four of sixteen by chance: one in 455 */
	p.thread_rest.busy = (double)NAN;
	check(p, NP_FLOWS_BY_THREAD, "belong to thread 0 and to no other: the reason is not known");
	p.count = 4; /* two of four: one in three */
	p.slow_ones = 2;
	p.threads = 2;
	check(p, NP_FLOWS_UNCLEAR, "no known figure");
	p.slow_threads = 0; /* slow ones and others of the same thread */
	p.count = 16;
	p.slow_ones = 4;
	check(p, NP_FLOWS_UNCLEAR, "no known figure");
}

/* Each thread is full, and one has more flows to carry. */
TEST(flows_divide_a_thread)
{
	struct plant p = plant(12);

	p.slow.rate = 20e6;
	p.rest.rate = 60e6;
	p.threads = 2;
	p.slow_threads = 1;
	p.thread_slow.busy = p.thread_rest.busy = 0.99;
	check(p, NP_FLOWS_BY_THREAD, "that carried as much as others, but drove more flows");
	p.slow.rate = 10e6; /* half as much as the other thread */
	check(p, NP_FLOWS_BY_THREAD, "the reason is not known");
}

TEST(flows_of_a_starved_thread)
{
	struct plant p = plant(4);
	FREED_BY(free_bag) struct np_bag *near = bag_of("cpu.3.idle=0.01 cpu.2.idle=0.5");
	struct np_explain_input in;
	struct np_explanation e;

	p.slow.rate = 30e6;
	p.threads = 8;
	p.slow_threads = 4;
	p.thread_slow = (struct np_explain_thread){ .busy = 0.25, .on = 3 };
	p.thread_rest = (struct np_explain_thread){ .busy = 0.4, .on = 2 };
	in = input(&p);
	in.near = near;
	e = explain_input(&in);
	assert_int_equal(e.flows, NP_FLOWS_BY_THREAD);
	assert_has(e.flows_sentence, "given 25 % of a processor that other work keeps busy");
}

TEST(flows_of_a_processor)
{
	struct plant p = plant(4);

	p.slow.rate = 30e6;
	p.slow.cpu = 5;
	p.rest.cpu = 6;
	/* One thread a flow tells nothing, one processor of two does. */
	check(p, NP_FLOWS_OWN, "4 of 16 flows were received by processor 5");
	p.slow.cpu = p.rest.cpu;
	check(p, NP_FLOWS_UNCLEAR, "no known figure");
}

TEST(what_is_not_known)
{
	struct plant p = plant(3);
	struct np_explain_input in = input(&p);

	p.slow = p.rest = nothing;
	check(p, NP_FLOWS_UNCLEAR, "it is not known what each of 16 flows got");
	p.slow = usual; /* some of them alone */
	check(p, NP_FLOWS_SHARED, "3 flows got 94 Mbit/s");
	p.slow.rate = p.rest.rate = 0;
	check(p, NP_FLOWS_UNCLEAR, "none of 16 flows got anything");
	p = plant(3); /* nothing but rates */
	p.slow = p.rest = nothing;
	p.slow.rate = 0;
	p.rest.rate = 10e6;
	check(p, NP_FLOWS_UNCLEAR, "3 of 16 flows got 0 kbit/s each, the others 10 Mbit/s");
	in.flows.ramped = true;
	assert_has(explain_input(&in).flows_sentence, "began one after another");
	in.flows.thread = NULL;
	in.flows.ramped = false;
	in.flows.threads = 3;
	assert_int_equal(explain_input(&in).flows, NP_FLOWS_UNCLEAR);
}

/* Which flows lost them only the receiver could tell. What is asked of each flow adds up. */
TEST(datagrams)
{
	struct plant p = plant(0);
	struct np_explain_input in = input(&p);
	FREED_BY(free_bag) struct np_bag *near = np_bag_new();
	struct np_explanation e;

	p.rest = nothing;
	p.rest.rate = 62.5e6;
	in.datagrams = true;
	assert_int_equal(explain_input(&in).flows, NP_FLOWS_SHARED);
	in.throughput_bps = 0.7e9;
	assert_has(explain_input(&in).flows_sentence,
		   "it is not known which of them lost datagrams");
	np_bag_real(near, 62.5e6, "flow.pacing_asked_bps");
	in.near = near;
	e = explain_input(&in);
	assert_int_equal(e.best.limit, NP_LIMIT_PACING);
	assert_has(e.best.sentence, "(-q): 1 Gbit/s, of which 100 % was reached");
	in.sessions = FLOWS; /* then a session has one of them */
	in.sent_bps = 62.5e6;
	assert_has(explain_input(&in).best.sentence,
		   "(-q): 62.5 Mbit/s, of which 100 % was reached");
}

/* Each row is looked at some few times, whatever their number. */
TEST(ten_thousand)
{
	struct plant few = lossy(), many = lossy();
	uint32_t of_few;

	few.count = 1000;
	few.slow_ones = 100;
	many.count = MANY;
	many.slow_ones = 1000;
	check(few, NP_FLOWS_OWN, "100 of 1000 flows");
	check(many, NP_FLOWS_OWN, "1000 of 10000 flows");
	many.threads = 5000; /* more than are told apart */
	check(many, NP_FLOWS_OWN, "1000 of 10000 flows");
	many.threads = few.threads = 50;
	many.slow.cpu = many.rest.cpu = few.slow.cpu = few.rest.cpu = 0;
	rows_asked = 0;
	explain(&few);
	of_few = rows_asked;
	rows_asked = 0;
	explain(&many);
	assert_int_equal(rows_asked, of_few * 10);
	assert_true(rows_asked < 16 * MANY);
}

/* The busiest thread is no witness of the others. */
TEST(busiest_of_several)
{
	struct plant p = plant(0);
	FREED_BY(free_bag)
	struct np_bag *near = bag_of("flow.seconds=10 thread.cpu_share=0.99 thread.seconds=10");
	struct np_explain_input in;
	struct np_explanation e;

	p.threads = 4;
	in = input(&p);
	in.near = near;
	e = explain_input(&in);
	assert_int_equal(e.best.limit, NP_LIMIT_SENDER_CPU);
	assert_has(e.best.doubts,
		   "that is the busiest of 4 threads: the least busy one was busy 30 %");
	p.thread_rest.busy = 0.98;
	assert_null(strstr(explain_input(&in).best.doubts, "the busiest"));
}

TEST(sessions)
{
	struct plant p = plant(0);
	struct np_explain_input in = input(&p);
	FREED_BY(free_bag)
	struct np_bag *near = bag_of("tcp.path_mtu=1500"), *values = np_bag_new();
	struct np_explanation e;

	in.near = near;
	in.sessions = 4;
	in.throughput_bps = in.sent_bps = 250e6;
	in.beside = 750e6;
	in.link_rate_bps = 1e9 / 0.9415;
	e = explain_input(&in);
	assert_int_equal(e.best.limit, NP_LIMIT_LINK);
	assert_true(fabs(e.ceiling.reached - 1) < 0.01);
	assert_true(isnan(e.ceiling.idle)); /* whose the rest is, the first one can't tell */
	assert_has(e.best.doubts, "this covers the first of 4 sessions");
	np_explain_put(&e, false, values);
	assert_string_equal(np_bag_string(values, "explain.flows"), "shared");
	assert_string_equal(np_bag_string(values, "explain.flows_sentence"), e.flows_sentence);
	in.sessions = 2;
	in.both = true;
	e = explain_input(&in);
	assert_null(strstr(e.best.doubts, "sessions"));
	assert_has(e.best.doubts, "this covers only what this end sends");
}

TEST(printed)
{
	struct plant p = lossy();
	struct np_explanation e = explain(&p);
	FREED_BY(free_bag) struct np_bag *values = np_bag_new();
	FREED_BY(free_memory)
	char *text = WRITTEN(out, np_explain_put(&e, false, values); np_explain_print(out, values));

	assert_has(text, "\nflows: own: 3 of 16 flows sent");
}

TEST_MAIN()
