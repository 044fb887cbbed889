/*
 * The tally of a run: what was counted outlives the run, each flow has its row.
 */
#include "bench/tally.h"

#include "tests/lib/check.h"
#include "tests/lib/ends.h"

enum { TRANSACTIONS = 30 };

static void
run_rr(struct ends *e, void (*change)(struct np_plan *p))
{
	ends_open(e, np_bench_find("TCP_RR"), AF_INET, -TRANSACTIONS, change);
	ends_run(e, 0);
}

static void
timed(struct np_plan *p)
{
	p->time_calls = true;
}

static void
a_tally_outlives_its_run(void **state)
{
	struct np_err err = { .code = NP_OK };
	struct np_tally near, far;
	struct ends e;

	(void)state;
	run_rr(&e, timed);
	assert_int_equal(np_tally_take(&e.client.run, &near, &err), NP_OK);
	assert_int_equal(np_tally_take(&e.server.run, &far, &err), NP_OK);
	ends_free(&e);
	assert_int_equal(near.count.transactions, TRANSACTIONS);
	assert_int_equal(near.count.sent, far.count.received);
	assert_int_equal(near.count.received, far.count.sent);
	assert_int_equal(np_counts_bytes(&near.count), np_counts_bytes(&far.count));
	assert_int_equal(near.count.sends, TRANSACTIONS);
	assert_int_equal(np_hist_count(near.hist), TRANSACTIONS);
	assert_true(np_tally_seconds(&near) > 0);
	assert_true(near.closing.mss > 0);
	assert_true(near.sndbuf > 0 && near.send_size > 0 && near.send_width > 0);
	assert_int_equal(near.flows, 1);
	assert_null(near.flow); /* one flow is the sum */
	np_tally_free(&near);
	np_tally_free(&near);
	np_tally_free(&far);
}

/* The counts of connections are their worker's: here nobody else fills them. */
static void
each_flow_has_its_row(void **state)
{
	struct np_err err = { .code = NP_OK };
	struct np_plan p;
	struct np_stop stop = { 0 };
	struct np_tally t;
	struct np_run run;

	(void)state;
	client_params(&p, np_bench_find("TCP_STREAM"), AF_INET, 1);
	p.flows = 3;
	assert_int_equal(np_run_open(&run, &p, NULL, &stop, &err), NP_OK);
	for (uint32_t i = 0; i < run.conns; i++) {
		run.conn[i].sent = 100 + i;
		run.conn[i].received = 200 + i;
		run.conn[i].transactions = 300 + i;
	}
	close(run.conn[2].fd);
	run.conn[2].fd = -1;
	assert_int_equal(np_tally_take(&run, &t, &err), NP_OK);
	np_run_free(&run);
	assert_int_equal(t.flows, 3);
	for (uint32_t i = 0; i < t.flows; i++) {
		assert_int_equal(t.flow[i].sent, 100 + i);
		assert_int_equal(t.flow[i].received, 200 + i);
		assert_int_equal(t.flow[i].transactions, 300 + i);
	}
	/* The kernel knows those that are open still. */
	assert_int_equal(t.flow[0].retrans, 0);
	assert_int_equal(t.flow[1].retrans, 0);
	assert_int_equal(t.flow[2].rtt_us, -1);
	assert_int_equal(t.closing.retrans, -1);
	np_tally_free(&t);
}

static void
a_window_that_never_opened_has_no_seconds(void **state)
{
	const struct np_tally t = { .ended_ns = 1000 };

	(void)state;
	assert_true(np_tally_seconds(&t) == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tally_outlives_its_run),
		cmocka_unit_test(each_flow_has_its_row),
		cmocka_unit_test(a_window_that_never_opened_has_no_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
