/*
 * The figures of a run, from what both ends counted.
 */
#include "run/trial.h"

#include "base/clock.h"
#include "out/format.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"

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

static void
assert_real(const struct np_record *r, enum np_metric_id id, double want)
{
	double got = np_record_get_real(r, id);

	fail_if(got < want - 1e-6 || got > want + 1e-6, "%s is %f, not %f", np_metrics[id].name,
		got, want);
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
	report(&t, 'm');
	assert_real(&t.r, NP_M_LOCAL_BYTES_PER_SEND, 1000);
	assert_real(&t.r, NP_M_REMOTE_BYTES_PER_RECV, 1000);
	assert_real(&t.r, NP_M_LOCAL_SEND_THROUGHPUT, 0.4);
	assert_real(&t.r, NP_M_REMOTE_RECV_THROUGHPUT, 0.24);
	assert_real(&t.r, NP_M_THROUGHPUT, 0.24);
}

/* Of a test that was interrupted there may be none, and what was received is not what was sent. */
TEST(what_a_far_end_did_only_its_results_tell)
{
	struct reported t;

	two_seconds(&t, "TCP_STREAM");
	t.out.tally.end.count.sent = 60000;
	t.out.far.reported = false;
	report(&t, 'm');
	assert_false(np_record_known(&t.r, NP_M_REMOTE_RECV_THROUGHPUT));
	assert_real(&t.r, NP_M_THROUGHPUT, 0.24);

	two_seconds(&t, "UDP_STREAM");
	t.p.role = NP_FOLLOW;
	t.out.tally.end.count.received = 60000;
	t.out.far.reported = false;
	report(&t, 'm');
	assert_false(np_record_known(&t.r, NP_M_REMOTE_SEND_THROUGHPUT));
	assert_real(&t.r, NP_M_THROUGHPUT, 0.24);
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
	report(&t, 'm');
	assert_real(&t.r, NP_M_LOCAL_SEND_THROUGHPUT, 4);
	assert_real(&t.r, NP_M_LOCAL_RECV_THROUGHPUT, 4);
	assert_real(&t.r, NP_M_REMOTE_SEND_THROUGHPUT, 4);
	assert_real(&t.r, NP_M_REMOTE_RECV_THROUGHPUT, 4);
	assert_real(&t.r, NP_M_THROUGHPUT, 8);
	assert_real(&t.r, NP_M_ELAPSED_TIME, 2);

	/* Interrupted: the half that received ended last, and has no report. */
	t.p.near.call.offered = 1000000;
	t.out.tally.end.send_size = 1000;
	t.out.tally.led_ns = NP_SEC;
	t.out.tally.followed_ns = 2 * NP_SEC;
	t.out.far.reported = false;
	t.out.far.end.count.received = 250000;
	report(&t, 'm');
	assert_real(&t.r, NP_M_SENT_RATE, 1000);
	assert_real(&t.r, NP_M_THROUGHPUT, 2 + 2);
}

/* The readings lie further apart than the test is long: a busy machine is one to 100 %. */
TEST(cpu_figures_are_of_the_time_between_readings)
{
	struct reported t;

	two_seconds(&t, "TCP_RR");
	t.out.tally.end.count.transactions = 1000;
	t.out.tally.end.closing.cpu.util = t.out.tally.end.closing.cpu.peak = 100;
	report(&t, 'x');
	assert_real(&t.r, NP_M_LOCAL_CPU_UTIL, 100);
	assert_real(&t.r, NP_M_LOCAL_CPU_PEAK_UTIL, 100);
	assert_real(&t.r, NP_M_LOCAL_SD, 2.0 * 4 * 1e6 / 1000); /* us of all processors */
}

/* A rate in bits is one of bits: connections carry none, except in the older tests. */
TEST(connections_count_where_they_are_the_unit)
{
	struct reported t;
	struct np_bench omni;

	two_seconds(&t, "TCP_CC");
	t.out.tally.end.count.transactions = 500;
	report(&t, 'm');
	assert_real(&t.r, NP_M_THROUGHPUT, 250);
	assert_real(&t.r, NP_M_LOCAL_SD, 50 * 1e4 * 4 / 250);
	omni = *t.p.bench;
	omni.code = NP_OMNI;
	omni.flags = 0;
	t.p.bench = &omni;
	report(&t, 'm');
	assert_real(&t.r, NP_M_THROUGHPUT, 0);
	assert_real(&t.r, NP_M_TRANSACTION_RATE, 250);
	assert_real(&t.r, NP_M_LOCAL_SD, -1);
	report(&t, 'x');
	assert_real(&t.r, NP_M_THROUGHPUT, 250);
	assert_real(&t.r, NP_M_LOCAL_SD, 50 * 1e4 * 4 / 250);
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
	report(&t, 'x');
	assert_real(&t.r, NP_M_TRANSACTION_RATE, 500);
	assert_real(&t.r, NP_M_RT_LATENCY, 4000);
	/* Each wait is also part of the times of requests in flight: only these are right. */
	t.out.tally.hist = np_hist_new();
	np_hist_record(t.out.tally.hist, 8 * NP_MSEC);
	report(&t, 'x');
	assert_real(&t.r, NP_M_RT_LATENCY, 8000);
	t.p.burst = 0;
	t.out.tally.flows = 2;
	t.out.tally.workers = 1;
	report(&t, 'x');
	assert_real(&t.r, NP_M_RT_LATENCY, 8000);
	t.out.tally.workers = 2;
	report(&t, 'x');
	assert_real(&t.r, NP_M_RT_LATENCY, 2000);
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
	report(&t, 'x');
	assert_real(&t.r, NP_M_TRANSACTION_RATE, 500);
	assert_real(&t.r, NP_M_RT_LATENCY, 20000);
	assert_int_equal(np_record_get_int(&t.r, NP_M_FLOWS), 10);
	assert_string_equal(np_record_get_text(&t.r, NP_M_REMOTE_ENGINE), "");
	t.p.burst = 1;
	snprintf(t.out.far.engine, sizeof(t.out.far.engine), "epoll");
	report(&t, 'x');
	assert_real(&t.r, NP_M_RT_LATENCY, 40000);
	assert_string_equal(np_record_get_text(&t.r, NP_M_REMOTE_ENGINE), "epoll");
}

/* In flight are no more than a count asks for, and of a ramp as many as had come about. */
TEST(latency_knows_of_flows_that_are_not_there)
{
	struct np_flow_result flow[8] = { { .transactions = 1 }, { .transactions = 1 } };
	struct reported t;

	two_seconds(&t, "TCP_RR");
	t.p.flows = t.out.tally.flows = 8;
	t.out.tally.end.count.transactions = 2;
	report(&t, 'x');
	assert_real(&t.r, NP_M_RT_LATENCY, 8e6); /* of all that wait for an answer */
	t.p.length = -2;
	t.out.tally.flow = flow;
	report(&t, 'x');
	assert_real(&t.r, NP_M_RT_LATENCY, 2e6);
	flow[0].transactions = 4; /* the second flow was done after a quarter of the time */
	t.out.tally.end.count.transactions = 5;
	report(&t, 'x');
	assert_real(&t.r, NP_M_RT_LATENCY, 5e5);
	t.p.ramp = 4;
	t.out.tally.end.count.transactions = 1000;
	t.out.tally.hist = np_hist_new();
	np_hist_record(t.out.tally.hist, 8 * NP_MSEC);
	report(&t, 'x');
	assert_real(&t.r, NP_M_RT_LATENCY, 8000);
	free(t.out.tally.hist);
}

/* netperf's values for a far end that is no daemon. */
TEST(a_service_tells_nothing)
{
	static const struct {
		enum np_metric_id id;
		int want;
	} rows[] = {
		{ NP_M_LOCAL_SEND_SIZE, -1 },  { NP_M_REMOTE_TRANSPORT_RETRANS, -2 },
		{ NP_M_REMOTE_SEND_WIDTH, 0 }, { NP_M_REMOTE_RECV_WIDTH, 0 },
		{ NP_M_RSS_SIZE_REQ, -1 },     { NP_M_REMOTE_CPU_PEAK_ID, -1 },
		{ NP_M_REMOTE_NODELAY, -1 },   { NP_M_REMOTE_RECV_CALLS, 0 },
	};
	struct reported t;

	two_seconds(&t, "TCP_MAERTS");
	np_far_init(&t.out.far);
	t.p.no_control = true;
	report(&t, 'm');
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fail_if(np_record_get_int(&t.r, rows[i].id) != rows[i].want, "%s is %lld",
			np_metrics[rows[i].id].name,
			(long long)np_record_get_int(&t.r, rows[i].id));
	}
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
	report(&t, 'x');
	assert_real(&t.r, NP_M_MIN_FLOW_THROUGHPUT, 300);
	assert_real(&t.r, NP_M_MAX_FLOW_THROUGHPUT, 300);
	assert_real(&t.r, NP_M_JAIN_INDEX, 1);
	t.out.tally.flow = flow;
	t.out.tally.flows = 3;
	report(&t, 'x');
	assert_real(&t.r, NP_M_MIN_FLOW_THROUGHPUT, 50);
	assert_real(&t.r, NP_M_MAX_FLOW_THROUGHPUT, 200);
	assert_real(&t.r, NP_M_JAIN_INDEX, 36.0 / 54);
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

static void
assert_account(const struct np_record *r)
{
	assert_int_equal(np_record_get_int(r, NP_M_UNIQUE_DATAGRAMS), 1200);
	assert_int_equal(np_record_get_int(r, NP_M_DUPLICATE_DATAGRAMS), 30);
	assert_int_equal(np_record_get_int(r, NP_M_LOST_DATAGRAMS), 50);
	assert_real(r, NP_M_RECEIVER_SPAN, 1.25);
	assert_real(r, NP_M_RECEIVER_SPAN_THROUGHPUT, 7.8);
}

static void
assert_no_account(const struct np_record *r)
{
	static const enum np_metric_id ids[] = { NP_M_UNIQUE_DATAGRAMS, NP_M_DUPLICATE_DATAGRAMS,
						 NP_M_LOST_DATAGRAMS, NP_M_RECEIVER_SPAN,
						 NP_M_RECEIVER_SPAN_THROUGHPUT };

	for (size_t i = 0; i < LEN(ids); i++) {
		assert_false(np_record_known(r, ids[i]));
	}
}

TEST(the_receiver_tells_of_its_datagrams)
{
	struct reported t;

	two_seconds(&t, "UDP_STREAM");
	report(&t, 'm');
	assert_no_account(&t.r);
	t.out.far_bag = account();
	report(&t, 'm');
	assert_account(&t.r);
	t.out.sessions = 2; /* the account of one of them is not that of all */
	report(&t, 'm');
	assert_no_account(&t.r);
	t.out.sessions = 1;
	t.p.role = NP_FOLLOW;
	report(&t, 'm');
	assert_no_account(&t.r);
	t.out.near_bag = t.out.far_bag;
	report(&t, 'm');
	assert_account(&t.r);
	put_bag(t.out.near_bag, "udp.lost=-1 udp.unique=1e300");
	report(&t, 'm');
	assert_false(np_record_known(&t.r, NP_M_LOST_DATAGRAMS));
	assert_false(np_record_known(&t.r, NP_M_UNIQUE_DATAGRAMS));
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
	struct np_bag *near = bag_of("flow.role='transmit'"), *far = account();
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
	np_bag_free(near);
	np_bag_free(far);
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
	report(&t, 'm');
	assert_true(np_record_get_int(&t.r, NP_M_LOCAL_INTERVAL_BURST) == UINT32_MAX);
	assert_true(np_record_get_int(&t.r, NP_M_REMOTE_INTERVAL_USECS) == 3600000000);
}

/* Of the samples of each end; an end without any has none. */
TEST(the_largest_time_out_is_told)
{
	struct reported t;

	two_seconds(&t, "TCP_STREAM");
	t.out.near_bag = bag_of("tcp.samples.rto_us=[204000,408000,201000]");
	report(&t, 'm');
	assert_int_equal(np_record_get_int(&t.r, NP_M_LOCAL_TCP_RTO_MAX), 408000);
	assert_false(np_record_known(&t.r, NP_M_REMOTE_TCP_RTO_MAX));
	np_bag_free(t.out.near_bag);
}

TEST(packets_out_of_order_are_counted_at_each_end)
{
	struct reported t;

	two_seconds(&t, "TCP_STREAM");
	t.out.near_bag = bag_of("tcp.out_of_order=0");
	t.out.far_bag = bag_of("tcp.out_of_order=12");
	report(&t, 'm');
	assert_int_equal(np_record_get_int(&t.r, NP_M_LOCAL_TCP_OUT_OF_ORDER), 0);
	assert_int_equal(np_record_get_int(&t.r, NP_M_REMOTE_TCP_OUT_OF_ORDER), 12);
	np_bag_free(t.out.near_bag);
	np_bag_free(t.out.far_bag);
}

TEST_MAIN()
