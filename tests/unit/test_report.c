/*
 * The figures of a run, from what both ends counted.
 */
#include "run/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/lib/check.h"

/* Two seconds of a test, of which the far end has reported; nothing is counted yet. */
static void
two_seconds(struct np_outcome *out, struct np_plan *p, const char *bench)
{
	const struct np_bench *b = np_bench_find(bench);

	np_plan_init(p);
	p->bench = b;
	p->pattern = b->pattern;
	p->transport = b->transport;
	p->role = b->near_role;
	p->active = true;
	memset(out, 0, sizeof(*out));
	np_far_init(&out->far);
	out->far.reported = true;
	out->far.sends = out->far.receives = 0;
	out->tally.plan = p;
	out->tally.started_ns = 5 * NP_SEC;
	out->tally.ended_ns = 7 * NP_SEC;
	out->tally.closing.cpu.known = true;
	out->tally.closing.cpu.util = 50;
	out->tally.closing.cpu.count = 4;
}

static void
assert_real(const struct np_record *r, enum np_metric_id id, double want)
{
	double got = np_record_get_real(r, id);

	if (got < want - 1e-6 || got > want + 1e-6) {
		fail_msg("%s is %f, not %f", np_metric(id)->name, got, want);
	}
}

/* Datagrams get lost: bytes by call of the far end are of those that arrived. */
static void
bytes_by_call_are_each_ends_own(void **state)
{
	struct np_outcome out;
	struct np_plan p;
	struct np_record r;

	(void)state;
	two_seconds(&out, &p, "UDP_STREAM");
	out.tally.count.sent = UINT64_C(100000);
	out.tally.count.sends = 100;
	out.far.received = 60000;
	out.far.receives = 60;
	np_report(&out, np_unit('m'), &r);
	assert_real(&r, NP_M_LOCAL_BYTES_PER_SEND, 1000);
	assert_real(&r, NP_M_REMOTE_BYTES_PER_RECV, 1000);
	assert_real(&r, NP_M_LOCAL_SEND_THROUGHPUT, 0.4);
	assert_real(&r, NP_M_REMOTE_RECV_THROUGHPUT, 0.24);
	assert_real(&r, NP_M_THROUGHPUT, 0.24);
}

/* The readings lie further apart than the test is long: a busy machine is one to 100 %. */
static void
cpu_figures_are_of_the_time_between_readings(void **state)
{
	struct np_outcome out;
	struct np_plan p;
	struct np_record r;

	(void)state;
	two_seconds(&out, &p, "TCP_RR");
	out.tally.count.transactions = 1000;
	out.tally.closing.cpu.util = out.tally.closing.cpu.peak = 100;
	np_report(&out, np_unit('x'), &r);
	assert_real(&r, NP_M_LOCAL_CPU_UTIL, 100);
	assert_real(&r, NP_M_LOCAL_CPU_PEAK_UTIL, 100);
	assert_real(&r, NP_M_LOCAL_SD, 2.0 * 4 * 1e6 / 1000); /* us of all processors */
}

/* A rate in bits is one of bits: connections carry none, except in the older tests. */
static void
connections_count_where_they_are_the_unit(void **state)
{
	struct np_outcome out;
	struct np_bench omni;
	struct np_plan p;
	struct np_record r;

	(void)state;
	two_seconds(&out, &p, "TCP_CC");
	out.tally.count.transactions = 500;
	np_report(&out, np_unit('m'), &r);
	assert_real(&r, NP_M_THROUGHPUT, 250);
	assert_real(&r, NP_M_LOCAL_SD, 50 * 1e4 * 4 / 250);
	omni = *p.bench;
	omni.code = NP_OMNI;
	omni.flags = 0;
	p.bench = &omni;
	np_report(&out, np_unit('m'), &r);
	assert_real(&r, NP_M_THROUGHPUT, 0);
	assert_real(&r, NP_M_TRANSACTION_RATE, 250);
	assert_real(&r, NP_M_LOCAL_SD, -1);
	np_report(&out, np_unit('x'), &r);
	assert_real(&r, NP_M_THROUGHPUT, 250);
	assert_real(&r, NP_M_LOCAL_SD, 50 * 1e4 * 4 / 250);
}

/* Requests in flight share the time, and that spent waiting for an interval's end is nobody's. */
static void
latency_knows_of_bursts_and_pacing(void **state)
{
	struct np_outcome out;
	struct np_plan p;
	struct np_record r;

	(void)state;
	two_seconds(&out, &p, "TCP_RR");
	p.request = p.response = 1;
	p.burst = 3;
	out.tally.count.transactions = 1000;
	out.tally.paced_ns = NP_SEC;
	np_report(&out, np_unit('x'), &r);
	assert_real(&r, NP_M_TRANSACTION_RATE, 500);
	assert_real(&r, NP_M_RT_LATENCY, 4000);
}

/* Each flow has its own transactions under way. */
static void
latency_knows_of_flows(void **state)
{
	struct np_outcome out;
	struct np_plan p;
	struct np_record r;

	(void)state;
	two_seconds(&out, &p, "TCP_RR");
	p.flows = 20;
	out.tally.flows = 10; /* the daemon has granted no more */
	out.tally.count.transactions = 1000;
	np_report(&out, np_unit('x'), &r);
	assert_real(&r, NP_M_TRANSACTION_RATE, 500);
	assert_real(&r, NP_M_RT_LATENCY, 20000);
	assert_int_equal(np_record_get_int(&r, NP_M_FLOWS), 10);
	assert_string_equal(np_record_get_text(&r, NP_M_REMOTE_ENGINE), "");
	p.burst = 1;
	snprintf(out.far.engine, sizeof(out.far.engine), "epoll");
	np_report(&out, np_unit('x'), &r);
	assert_real(&r, NP_M_RT_LATENCY, 40000);
	assert_string_equal(np_record_get_text(&r, NP_M_REMOTE_ENGINE), "epoll");
}

/* netperf's values for a far end that is no daemon. */
static void
a_service_tells_nothing(void **state)
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
	struct np_outcome out;
	struct np_plan p;
	struct np_record r;

	(void)state;
	two_seconds(&out, &p, "TCP_MAERTS");
	np_far_init(&out.far);
	p.no_control = true;
	np_report(&out, np_unit('m'), &r);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (np_record_get_int(&r, rows[i].id) != rows[i].want) {
			fail_msg("%s is %lld", np_metric(rows[i].id)->name,
				 (long long)np_record_get_int(&r, rows[i].id));
		}
	}
}

/* Jain's index of 1, 1 and 4: 6 * 6 / (3 * 18). */
static void
flows_are_compared(void **state)
{
	struct np_flow_result flow[] = { { .transactions = 100 },
					 { .transactions = 400 },
					 { .transactions = 100 } };
	struct np_outcome out;
	struct np_plan p;
	struct np_record r;

	(void)state;
	two_seconds(&out, &p, "TCP_RR");
	out.tally.count.transactions = 600;
	np_report(&out, np_unit('x'), &r);
	assert_real(&r, NP_M_MIN_FLOW_THROUGHPUT, 300);
	assert_real(&r, NP_M_MAX_FLOW_THROUGHPUT, 300);
	assert_real(&r, NP_M_JAIN_INDEX, 1);
	out.tally.flow = flow;
	out.tally.flows = 3;
	np_report(&out, np_unit('x'), &r);
	assert_real(&r, NP_M_MIN_FLOW_THROUGHPUT, 50);
	assert_real(&r, NP_M_MAX_FLOW_THROUGHPUT, 200);
	assert_real(&r, NP_M_JAIN_INDEX, 36.0 / 54);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_by_call_are_each_ends_own),
		cmocka_unit_test(cpu_figures_are_of_the_time_between_readings),
		cmocka_unit_test(connections_count_where_they_are_the_unit),
		cmocka_unit_test(latency_knows_of_bursts_and_pacing),
		cmocka_unit_test(latency_knows_of_flows),
		cmocka_unit_test(flows_are_compared),
		cmocka_unit_test(a_service_tells_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
