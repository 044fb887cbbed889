/*
 * Ramps: when connections are due, what becomes of those that fail, and both ends of one.
 */
#include "bench/ramp.h"

#include "base/clock.h"
#include "bench/engine/engine.h"
#include "bench/tally.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/sockets.h"

enum { FLOWS = 20, RATE = 200 };

/* ---- The clock ---- */

static void
take_ramp(struct np_plan *p)
{
	p->flows = FLOWS;
	p->ramp = RATE;
}

TEST(connections_begin_when_they_are_due)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_worker *w;
	struct np_addr at;
	uint64_t first;

	close(bound_socket(AF_INET, SOCK_STREAM, &at));
	client_params(&e.plan, np_bench_find("TCP_RR"), AF_INET, 10);
	take_ramp(&e.plan);
	end_open(&e);
	end_aim(&e, &at);
	w = e.run.worker;
	np_worker_begin(w, np_now());
	first = w->ramp->load.arrivals.start_ns;
	assert_null(np_ramp_begin(w, first - 1));
	assert_int_equal(np_ramp_due(w), first);
	assert_ptr_equal(np_ramp_begin(w, first), &w->conn[0]);
	assert_null(np_ramp_begin(w, first));
	assert_int_equal(np_ramp_due(w), first + NP_SEC / RATE);
	assert_ptr_equal(np_ramp_begin(w, first + NP_SEC / RATE), &w->conn[1]);
	w->ramp->begun = w->conns;
	assert_true(np_ramp_due(w) == UINT64_MAX);
	assert_null(np_ramp_begin(w, UINT64_MAX));
	w->ramp->begun = 2;
}

/* ---- Failures ---- */

TEST(what_is_refused_when_the_time_is_up_has_not_failed)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_worker *w;
	struct np_addr at;

	close(bound_socket(AF_INET, SOCK_STREAM, &at));
	client_params(&e.plan, np_bench_find("TCP_RR"), AF_INET, 10);
	take_ramp(&e.plan);
	end_open(&e);
	end_aim(&e, &at);
	w = e.run.worker;
	for (uint32_t second = 5; second <= 10; second += 5) {
		struct np_conn *c;

		np_worker_begin(w, np_now() - second * NP_SEC);
		c = np_ramp_begin(w, np_now());
		assert_non_null(c);
		if (c->need == NP_CONNECTING) { /* else it was refused at once */
			np_ramp_connect_done(w, c);
		}
		assert_int_equal(w->ramp->failed.count, 1); /* that of 5 s */
	}
}

TEST(failures_are_counted_by_reason)
{
	struct np_ramp_failures f = { .count = 0 }, sum = { .count = 0 };
	char text[256], few[8];

	np_ramp_failed(&f, ECONNREFUSED, 1);
	np_ramp_failed(&f, ETIMEDOUT, 1);
	np_ramp_failed(&f, ECONNREFUSED, 1);
	np_ramp_join(&sum, &f);
	np_ramp_join(&sum, &f);
	assert_int_equal(sum.count, 6);
	np_ramp_reasons(&sum, text, sizeof(text));
	assert_string_equal(text, "ECONNREFUSED 4, ETIMEDOUT 2");
	np_ramp_reasons(&sum, few, sizeof(few));
	assert_string_equal(few, "ECONNRE");
	for (int error = 1; error < 100; error++) {
		np_ramp_failed(&sum, error, 1);
	}
	assert_int_equal(sum.reasons, NP_RAMP_REASONS);
	assert_int_equal(sum.count, 105);
	assert_string_equal(np_ramp_reason(EADDRNOTAVAIL, text), "EADDRNOTAVAIL");
	assert_string_equal(np_ramp_reason(4711, text), "errno 4711");
}

/* ---- Both ends ---- */

static uint32_t client_threads, server_threads;

static void
take_threads(struct np_plan *p)
{
	take_ramp(p);
	p->near.place.threads = client_threads;
	p->far.place.threads = server_threads;
}

/* What the flows of a tally have is what was counted. */
static void
check_tally(struct np_run *run, bool active)
{
	uint64_t moved = 0, transactions = 0;
	FREED_BY(np_tally_free) struct np_tally t;
	struct np_err err;

	assert_int_equal(np_tally_take(run, &t, &err), NP_OK);
	/* On a busy machine not all have come in time. */
	assert_in_range(t.ramp.established, 1, FLOWS);
	assert_int_equal(t.flows, t.ramp.established);
	/* Only those may fail that find the far end gone, as its time was over. */
	assert_in_range(t.ramp.failed.count, 0, FLOWS - t.ramp.established);
	for (uint32_t i = 0; i < t.ramp.failed.reasons; i++) {
		int error = t.ramp.failed.by[i].error;

		fail_if(error != ECONNREFUSED && error != ECONNRESET, "%s", strerror(error));
	}
	assert_int_equal(t.ramp.hist != NULL ? np_hist_count(t.ramp.hist) : 0,
			 active ? t.ramp.established : 0);
	for (uint32_t i = 0; i < t.flows; i++) {
		moved += t.flow[i].sent + t.flow[i].received;
		transactions += t.flow[i].transactions;
	}
	assert_int_equal(moved, np_counts_bytes(&t.end.count));
	assert_int_equal(transactions, t.end.count.transactions);
}

/* Did an end find the other one gone? Who is done first resets what it has not accepted. */
static bool
was_reset(const struct ends *e)
{
	return strstr(e->client.run.err.msg, "reset by peer") != NULL ||
	       strstr(e->server.run.err.msg, "reset by peer") != NULL;
}

static void
judge(struct ends *e, const char *bench)
{
	struct np_counts near = np_counts_of(&e->client.run), far = np_counts_of(&e->server.run);

	assert_int_equal(e->client.run.err.code, NP_OK);
	assert_int_equal(e->server.run.err.code, NP_OK);
	assert_int_equal(near.transactions > far.transactions
			     ? near.transactions - far.transactions > FLOWS
			     : far.transactions - near.transactions > FLOWS,
			 0);
	if (strcmp(bench, "TCP_STREAM") == 0) {
		assert_int_equal(near.sent, far.received);
	}
	assert_int_equal(e->client.allocated, 0);
	assert_int_equal(e->server.allocated, 0);
	check_tally(&e->client.run, true);
	check_tally(&e->server.run, false);
}

/* A busy machine may be late once, but not each time. */
static void
run_ramp(const char *bench, uint32_t here, uint32_t there)
{
	enum { TRIES = 8 };
	bool late = true;

	client_threads = here;
	server_threads = there;
	for (int i = 0; late && i < TRIES; i++) {
		FREED_BY(ends_free) struct ends e;

		ends_open(&e, np_bench_find(bench), AF_INET, 1, take_threads);
		assert_ptr_equal(np_engine_of(&e.server.plan), &np_engine_epoll);
		ends_drive(&e, 200 * NP_MSEC); /* all begin in 100 */
		late = was_reset(&e) || np_counts_of(&e.client.run).up == 0 ||
		       np_counts_of(&e.server.run).up == 0;
		if (!late) {
			judge(&e, bench);
		}
	}
	assert_false(late);
}

TEST(flows_come_while_others_are_driven)
{
	static const char *const benches[] = { "TCP_RR", "TCP_STREAM", "TCP_MAERTS" };

	for (size_t i = 0; i < LEN(benches); i++) {
		run_ramp(benches[i], 1, 1);
		run_ramp(benches[i], 3, 1);
		run_ramp(benches[i], 1, 3);
		run_ramp(benches[i], 2, 2);
	}
}

/* Returns how long both ends took. */
static uint64_t
cut_short(const char *bench)
{
	uint64_t since = np_now();
	struct ends e;

	ends_open(&e, np_bench_find(bench), AF_INET, 1, take_threads);
	ends_drive(&e, 50 * NP_MSEC);
	assert_true(was_reset(&e) || e.client.run.err.code + e.server.run.err.code == NP_OK);
	/* All have come only where the machine stopped this process for a while. */
	assert_in_range(np_counts_of(&e.client.run).up, 0, FLOWS);
	assert_in_range(np_counts_of(&e.server.run).up, 0, FLOWS);
	ends_free(&e);
	return np_now() - since;
}

/* The client's time is up before all have come: the far end does not wait for the rest. */
TEST(a_ramp_that_is_cut_short_ends_at_both_ends)
{
	static const char *const benches[] = { "TCP_RR", "TCP_STREAM", "TCP_MAERTS" };

	client_threads = server_threads = 2;
	for (size_t i = 0; i < LEN(benches); i++) {
		/* A far end that waited would do so for 4 s each time; a machine may be late. */
		assert_true(cut_short(benches[i]) < 3 * NP_SEC ||
			    cut_short(benches[i]) < 3 * NP_SEC ||
			    cut_short(benches[i]) < 3 * NP_SEC);
	}
}

TEST(a_ramp_without_a_far_end_ends)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_addr at;
	FREED_BY(np_tally_free) struct np_tally t;
	struct np_err err;

	close(bound_socket(AF_INET, SOCK_STREAM, &at));
	client_params(&e.plan, np_bench_find("TCP_RR"), AF_INET, 10);
	take_ramp(&e.plan);
	e.length_ns = 10 * NP_SEC;
	end_run(&e, &at);
	assert_int_equal(e.drive.cause, NP_BY_LOOP);
	assert_int_equal(np_tally_take(&e.run, &t, &err), NP_OK);
	assert_int_equal(t.flows, 0);
	assert_int_equal(t.ramp.failed.count, FLOWS);
	assert_int_equal(t.ramp.failed.by[0].error, ECONNREFUSED);
}

TEST(only_tests_by_time_have_one)
{
	static const struct {
		const char *bench;
		int64_t length;
		uint32_t warm_up_ms;
		bool may;
	} rows[] = {
		{ "TCP_RR", 1, 0, true },     { "TCP_STREAM", 1, 0, true },
		{ "TCP_MAERTS", 1, 0, true }, { "TCP_RR", -100, 0, false },
		{ "TCP_RR", 0, 0, false },    { "TCP_RR", 1, 100, false },
		{ "TCP_CRR", 1, 0, false },   { "UDP_RR", 1, 0, false },
		{ "STREAM_RR", 1, 0, false },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_plan p;

		client_params(&p, np_bench_find(rows[i].bench), AF_INET, rows[i].length);
		p.warm_up_ms = rows[i].warm_up_ms;
		assert_int_equal(np_plan_no_ramp(&p) == NULL, rows[i].may);
	}
}

TEST_MAIN(np_drive_prepare())
