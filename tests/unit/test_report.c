/*
 * The figures of a run, from what both ends counted.
 */
#include "run/trial.h"

#include "base/clock.h"
#include "out/format.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/records.h"

/* A test, what came of it, and its figures. */
struct reported {
	struct np_plan p;
	struct np_outcome out;
	struct np_record r;
};

/* Two seconds of a test, of which the far end has reported; nothing is counted yet. */
static void
two_seconds(struct reported *t, const char *bench)
{
	const struct np_bench *b = np_bench_find(bench);

	np_plan_init(&t->p);
	t->p.bench = b;
	t->p.pattern = b->pattern;
	t->p.transport = b->transport;
	t->p.role = b->near_role;
	t->p.active = true;
	t->out = (struct np_outcome){ .tally = { .plan = &t->p,
						 .started_ns = 5 * NP_SEC,
						 .ended_ns = 7 * NP_SEC,
						 .led_ns = 2 * NP_SEC,
						 .end.closing.cpu = {
						     .known = true, .util = 50, .count = 4 } } };
	np_far_init(&t->out.far);
	t->out.far.reported = true;
	t->out.far.end.count.sends = t->out.far.end.count.receives = 0;
}

static void
report(struct reported *t, char unit)
{
	np_report(&t->out, np_unit(unit), &t->r);
}

/* In that unit the figures are these. */
static void
assert_reports(struct reported *t, char unit, const char *words)
{
	report(t, unit);
	assert_figures(&t->r, words);
}

/* Datagrams get lost: bytes by call of the far end are of those that arrived. */
TEST(bytes_by_call_are_each_ends_own)
{
	struct reported t;

	two_seconds(&t, "UDP_STREAM");
	t.out.tally.end.count.sent = UINT64_C(100000);
	t.out.tally.end.count.sends = 100;
	t.out.far.end.count.received = 60000;
	t.out.far.end.count.receives = 60;
	assert_reports(&t, 'm',
		       "LOCAL_BYTES_PER_SEND=1000 REMOTE_BYTES_PER_RECV=1000 "
		       "LOCAL_SEND_THROUGHPUT=0.4 REMOTE_RECV_THROUGHPUT=0.24 THROUGHPUT=0.24");
}

/* Of a test that was interrupted there may be none, and what was received is not what was sent. */
TEST(what_a_far_end_did_only_its_results_tell)
{
	struct reported t;

	two_seconds(&t, "TCP_STREAM");
	t.out.tally.end.count.sent = 60000;
	t.out.far.reported = false;
	assert_reports(&t, 'm', "REMOTE_RECV_THROUGHPUT=none THROUGHPUT=0.24");

	two_seconds(&t, "UDP_STREAM");
	t.p.role = NP_FOLLOW;
	t.out.tally.end.count.received = 60000;
	t.out.far.reported = false;
	assert_reports(&t, 'm', "REMOTE_SEND_THROUGHPUT=none THROUGHPUT=0.24");
}

/* Each by its own window, of which the longer one is the test's. */
TEST(each_half_has_its_own_seconds)
{
	struct reported t;

	two_seconds(&t, "TCP_STREAM");
	t.p.both = true;
	t.out.tally.followed_ns = NP_SEC;
	t.out.tally.end.count.sent = t.out.far.end.count.received = 1000000;
	t.out.tally.end.count.received = t.out.far.end.count.sent = 500000;
	assert_reports(&t, 'm',
		       "LOCAL_SEND_THROUGHPUT=4 LOCAL_RECV_THROUGHPUT=4 REMOTE_SEND_THROUGHPUT=4 "
		       "REMOTE_RECV_THROUGHPUT=4 THROUGHPUT=8 ELAPSED_TIME=2");

	/* Interrupted: the half that received ended last, and has no report. */
	t.p.near.call.offered = 1000000;
	t.out.tally.end.send_size = 1000;
	t.out.tally.led_ns = NP_SEC;
	t.out.tally.followed_ns = 2 * NP_SEC;
	t.out.far.reported = false;
	t.out.far.end.count.received = 250000;
	assert_reports(&t, 'm', "SENT_RATE=1000 THROUGHPUT=2+2");
}

/* The readings lie further apart than the test is long: a busy machine is one to 100 %. */
TEST(cpu_figures_are_of_the_time_between_readings)
{
	struct reported t;

	two_seconds(&t, "TCP_RR");
	t.out.tally.end.count.transactions = 1000;
	t.out.tally.end.closing.cpu.util = t.out.tally.end.closing.cpu.peak = 100;
	/* LOCAL_SD: us of all processors. */
	assert_reports(&t, 'x',
		       "LOCAL_CPU_UTIL=100 LOCAL_CPU_PEAK_UTIL=100 LOCAL_SD=2.0*4*1e6/1000");
}

/* A rate in bits is one of bits: connections carry none, except in the older tests. */
TEST(connections_count_where_they_are_the_unit)
{
	struct reported t;
	struct np_bench omni;

	two_seconds(&t, "TCP_CC");
	t.out.tally.end.count.transactions = 500;
	assert_reports(&t, 'm', "THROUGHPUT=250 LOCAL_SD=50*1e4*4/250");
	omni = *t.p.bench;
	omni.code = NP_OMNI;
	omni.flags = 0;
	t.p.bench = &omni;
	assert_reports(&t, 'm', "THROUGHPUT=0 TRANSACTION_RATE=250 LOCAL_SD=-1");
	assert_reports(&t, 'x', "THROUGHPUT=250 LOCAL_SD=50*1e4*4/250");
}

/* Requests in flight share the time, of which waits for an interval's end are no part. */
TEST(latency_knows_of_bursts_and_pacing)
{
	struct reported t;

	two_seconds(&t, "TCP_RR");
	t.p.request = t.p.response = 1;
	t.p.burst = 3;
	t.out.tally.end.count.transactions = 1000;
	t.out.tally.paced_ns = NP_SEC;
	assert_reports(&t, 'x', "TRANSACTION_RATE=500 RT_LATENCY=4000");
	/* Each wait is also part of the times of requests in flight: only these are right. */
	t.out.tally.hist = np_hist_new();
	np_hist_record(t.out.tally.hist, 8 * NP_MSEC);
	assert_reports(&t, 'x', "RT_LATENCY=8000");
	t.p.burst = 0;
	t.out.tally.flows = 2;
	t.out.tally.workers = 1;
	assert_reports(&t, 'x', "RT_LATENCY=8000");
	t.out.tally.workers = 2;
	assert_reports(&t, 'x', "RT_LATENCY=2000");
	free(t.out.tally.hist);
}

/* Each flow has its own transactions under way. */
TEST(latency_knows_of_flows)
{
	struct reported t;

	two_seconds(&t, "TCP_RR");
	t.p.flows = 20;
	t.out.tally.flows = 10; /* the daemon has granted no more */
	t.out.tally.end.count.transactions = 1000;
	assert_reports(&t, 'x', "TRANSACTION_RATE=500 RT_LATENCY=20000 FLOWS=10");
	assert_string_equal(np_record_get_text(&t.r, NP_M_REMOTE_ENGINE), "");
	t.p.burst = 1;
	snprintf(t.out.far.engine, sizeof(t.out.far.engine), "epoll");
	assert_reports(&t, 'x', "RT_LATENCY=40000 REMOTE_ENGINE=epoll");
}

/* In flight are no more than a count asks for, and of a ramp as many as had come about. */
TEST(latency_knows_of_flows_that_are_not_there)
{
	struct np_flow_result flow[8] = { { .transactions = 1 }, { .transactions = 1 } };
	struct reported t;

	two_seconds(&t, "TCP_RR");
	t.p.flows = t.out.tally.flows = 8;
	t.out.tally.end.count.transactions = 2;
	assert_reports(&t, 'x', "RT_LATENCY=8e6"); /* of all that wait for an answer */
	t.p.length = -2;
	t.out.tally.flow = flow;
	assert_reports(&t, 'x', "RT_LATENCY=2e6");
	flow[0].transactions = 4; /* the second flow was done after a quarter of the time */
	t.out.tally.end.count.transactions = 5;
	assert_reports(&t, 'x', "RT_LATENCY=5e5");
	t.p.ramp = 4;
	t.out.tally.end.count.transactions = 1000;
	t.out.tally.hist = np_hist_new();
	np_hist_record(t.out.tally.hist, 8 * NP_MSEC);
	assert_reports(&t, 'x', "RT_LATENCY=8000");
	free(t.out.tally.hist);
}

/* netperf's values for a far end that is no daemon. */
TEST(a_service_tells_nothing)
{
	struct reported t;

	two_seconds(&t, "TCP_MAERTS");
	np_far_init(&t.out.far);
	t.p.no_control = true;
	assert_reports(&t, 'm',
		       "LOCAL_SEND_SIZE=-1 REMOTE_TRANSPORT_RETRANS=-2 REMOTE_SEND_WIDTH=0 "
		       "REMOTE_RECV_WIDTH=0 RSS_SIZE_REQ=-1 REMOTE_CPU_PEAK_ID=-1 "
		       "REMOTE_NODELAY=-1 REMOTE_RECV_CALLS=0");
}

/* Jain's index of 1, 1 and 4: 6 * 6 / (3 * 18). */
TEST(flows_are_compared)
{
	struct np_flow_result flow[] = { { .transactions = 100 },
					 { .transactions = 400 },
					 { .transactions = 100 } };
	struct reported t;

	two_seconds(&t, "TCP_RR");
	t.out.tally.end.count.transactions = 600;
	assert_reports(&t, 'x', "MIN_FLOW_THROUGHPUT=300 MAX_FLOW_THROUGHPUT=300 JAIN_INDEX=1");
	t.out.tally.flow = flow;
	t.out.tally.flows = 3;
	assert_reports(&t, 'x',
		       "MIN_FLOW_THROUGHPUT=50 MAX_FLOW_THROUGHPUT=200 JAIN_INDEX=36.0/54");
}

/* ---- Numbered datagrams ---- */

/* What a receiver tells that got 1200 and 30 again of 1250, of 1000 bytes, in 1.25 s. */
static struct np_bag *
account(void)
{
	return bag_of("flow.role='receive' flow.bytes_received=1230000 flow.seconds=1.251 "
		      "udp.sent=1250 udp.received=1230 udp.unique=1200 udp.duplicated=30 "
		      "udp.lost=50 udp.receive_span_s=1.25 udp.receive_span_bps=7.8e6");
}

#define ACCOUNT                                                                                    \
	"UNIQUE_DATAGRAMS=1200 DUPLICATE_DATAGRAMS=30 LOST_DATAGRAMS=50 RECEIVER_SPAN=1.25 "       \
	"RECEIVER_SPAN_THROUGHPUT=7.8"
#define NO_ACCOUNT                                                                                 \
	"UNIQUE_DATAGRAMS=none DUPLICATE_DATAGRAMS=none LOST_DATAGRAMS=none RECEIVER_SPAN=none "   \
	"RECEIVER_SPAN_THROUGHPUT=none"

TEST(the_receiver_tells_of_its_datagrams)
{
	struct reported t;

	two_seconds(&t, "UDP_STREAM");
	assert_reports(&t, 'm', NO_ACCOUNT);
	t.out.far_bag = account();
	assert_reports(&t, 'm', ACCOUNT);
	t.out.sessions = 2; /* the account of one of them is not that of all */
	assert_reports(&t, 'm', NO_ACCOUNT);
	t.out.sessions = 1;
	t.p.role = NP_FOLLOW;
	assert_reports(&t, 'm', NO_ACCOUNT);
	t.out.near_bag = t.out.far_bag;
	assert_reports(&t, 'm', ACCOUNT);
	put_bag(t.out.near_bag, "udp.lost=-1 udp.unique=1e300");
	assert_reports(&t, 'm', "LOST_DATAGRAMS=none UNIQUE_DATAGRAMS=none");
	np_bag_free(t.out.near_bag);
}

/* The lines, behind one another, are exactly those. */
static void
assert_lines(const struct np_datagrams *d, const char *want)
{
	assert_writes(to, np_datagrams_print(to, d), want);
}

#define SPAN                                                                                       \
	"netperf: UDP_STREAM: received at 7.80 10^6bits/s over the 1.25 s from the first datagram" \
	" to the last; 9.84 is over the test's 1 s"
#define TWICE                                                                                      \
	"netperf: UDP_STREAM: 30 datagrams came twice: of 1250 sent, 50 are lost (sent less "      \
	"received is 20)"

TEST(where_the_table_misleads_is_told)
{
	FREED_BY(free_bag) struct np_bag *near = bag_of("flow.role='transmit'"), *far = account();
	struct np_datagrams d = { .bench = "UDP_STREAM",
				  .near = near,
				  .far = far,
				  .seconds = 1,
				  .unit = np_unit('m'),
				  .iterations = 1 };

	assert_lines(&d, SPAN "\n" TWICE "\n");
	d.iterations = 3;
	assert_lines(&d,
		     SPAN " (the last of 3 iterations)\n" TWICE " (the last of 3 iterations)\n");
	d.iterations = 1;
	np_bag_int(far, 983000, "flow.bytes_received"); /* 7.86 Mbit/s: within 1 % */
	assert_lines(&d, TWICE "\n");
	np_bag_int(far, 1230000, "flow.bytes_received");
	np_bag_int(near, 2, "flow.sessions");
	assert_lines(&d, "");
	np_bag_int(near, 1, "flow.sessions");
	np_bag_int(far, 0, "udp.duplicated");
	assert_lines(&d, SPAN "\n");
	d.far = NULL;
	assert_lines(&d, "");
	d.near = far;
	assert_lines(&d, SPAN "\n");
	d.seconds = 1.25; /* it receives by its own time: 7.87 Mbit/s */
	assert_lines(&d, "");
	d.near = NULL;
	assert_lines(&d, "");
}

/* A far end may tell anything. */
TEST(an_account_of_nonsense_is_not_told)
{
	static const char *const names[] = { "udp.sent", "udp.received", "udp.duplicated",
					     "udp.lost" };
	static const double values[] = { -1, 1e300 };
	FREED_BY(free_bag) struct np_bag *near = bag_of("flow.role='transmit'");

	for (size_t i = 0; i < LEN(names) * LEN(values); i++) {
		FREED_BY(free_bag) struct np_bag *far = account();
		const struct np_datagrams d = {
			.bench = "UDP_STREAM", .near = near, .far = far, .unit = np_unit('m')
		};

		np_bag_real(far, -1, "udp.receive_span_s");
		np_bag_real(far, values[i % LEN(values)], "%s", names[i / LEN(values)]);
		assert_lines(&d, "");
	}
}

/* -b 10G is as many as there can be, and -w takes an hour. */
TEST(pacing_is_told_as_it_was_asked_for)
{
	struct reported t;

	two_seconds(&t, "TCP_STREAM");
	t.p.near.call.interval_burst = UINT32_MAX;
	t.p.far.call.interval_us = 3600000000;
	assert_reports(&t, 'm', "LOCAL_INTERVAL_BURST=4294967295 REMOTE_INTERVAL_USECS=3600000000");
}

/* Of the samples of each end; an end without any has none. */
TEST(the_largest_time_out_is_told)
{
	struct reported t;

	two_seconds(&t, "TCP_STREAM");
	t.out.near_bag = bag_of("tcp.samples.rto_us=[204000,408000,201000]");
	assert_reports(&t, 'm', "LOCAL_TCP_RTO_MAX=408000 REMOTE_TCP_RTO_MAX=none");
	np_bag_free(t.out.near_bag);
}

TEST(packets_out_of_order_are_counted_at_each_end)
{
	struct reported t;

	two_seconds(&t, "TCP_STREAM");
	t.out.near_bag = bag_of("tcp.out_of_order=0");
	t.out.far_bag = bag_of("tcp.out_of_order=12");
	assert_reports(&t, 'm', "LOCAL_TCP_OUT_OF_ORDER=0 REMOTE_TCP_OUT_OF_ORDER=12");
	np_bag_free(t.out.near_bag);
	np_bag_free(t.out.far_bag);
}

TEST_MAIN()
