/*
 * Trials: one after another over a connection, connecting anew where a test ends it, and with
 * figures where one fails that had some.
 */
#include "run/trial.h"

#include "base/clock.h"
#include "base/log.h"
#include "net/sock.h"
#include "tests/lib/check.h"
#include "tests/lib/daemon.h"
#include "tests/lib/ends.h"
#include "tests/lib/session.h"
#include "tests/lib/sockets.h"

enum { TRIALS = 3, TRANSACTIONS = 20 };

/* All that a trial takes. */
struct bed {
	struct daemon daemon;
	struct np_log log;
	char told[256]; /* by the daemon's log, of its tests */
	struct np_client client;
	struct np_target target;
	struct np_plan plan;
	struct np_addr peer;
	struct np_trial trial;
};

static void
keep_log(void *ctx, enum np_log_level level, bool is_event, const char *text)
{
	struct bed *b = ctx;
	size_t used = strlen(b->told);

	snprintf(b->told + used, sizeof(b->told) - used, "%s\n", text);
}

static void
make_bed_with(struct bed *b, const char *bench, int sessions, unsigned caps)
{
	memset(b, 0, sizeof(*b));
	b->log = (struct np_log){ .level = NP_LOG_DEBUG, .sink = keep_log, .ctx = b };
	b->daemon.sessions = sessions;
	b->daemon.server.caps = caps;
	b->daemon.server.log = &b->log;
	daemon_begin(&b->daemon);
	client_params(&b->plan, np_bench_find(bench), AF_INET, -TRANSACTIONS);
	b->peer = loopback(AF_INET, 0);
	b->client.chan.fd = -1;
	b->client.collect.caps = NP_CAP_TEST;
	b->target = (struct np_target){
		.host.text = "127.0.0.1",
		.wants = { .version = NP_EXT_VERSION, .caps = NP_CAP_TEST, .every_ms = 10 },
	};
	snprintf(b->target.port, sizeof(b->target.port), "%s", b->daemon.port);
	b->trial = (struct np_trial){ .client = &b->client,
				      .target = &b->target,
				      .plan = &b->plan,
				      .peer = &b->peer,
				      .unit = np_unit('x') };
}

static void
make_bed(struct bed *b, const char *bench, int sessions)
{
	make_bed_with(b, bench, sessions, NP_CAP_TEST);
}

static void
leave_bed(struct bed *b)
{
	if (b->client.chan.fd >= 0) {
		np_chan_close(&b->client.chan);
	}
	daemon_end(&b->daemon);
}

static void
free_result(struct np_trial_result *r)
{
	np_outcome_free(&r->out);
}

static void
check_trial(struct bed *b)
{
	struct np_trial_result r;
	struct np_err err;

	fail_if(np_trial(&b->trial, &r, &err) != NP_OK, "%s", err.msg);
	assert_true(r.out.measured);
	assert_int_equal(r.out.tally.end.count.transactions, TRANSACTIONS);
	assert_true(np_record_get_real(&r.record, NP_M_THROUGHPUT) > 0);
	assert_true(np_bag_number(r.out.near_bag, "flow.transactions") == TRANSACTIONS);
	np_outcome_free(&r.out);
	np_outcome_free(&r.out);
}

TEST(trials_share_a_connection)
{
	/* Without evidence of the far end a connection test ends with a half-close. */
	static const struct {
		const char *name;
		unsigned caps;
		bool shared;
	} rows[] = {
		{ "TCP_RR", NP_CAP_TEST, true },
		{ "TCP_CRR", NP_CAP_TEST, true },
		{ "TCP_CRR", 0, false },
	};

	for (size_t n = 0; n < LEN(rows); n++) {
		FREED_BY(leave_bed) struct bed b;

		make_bed(&b, rows[n].name, rows[n].shared ? 1 : TRIALS);
		b.target.wants.caps = rows[n].caps;
		for (int i = 0; i < TRIALS; i++) {
			check_trial(&b);
			assert_int_equal(b.client.chan.fd >= 0, rows[n].shared);
		}
	}
}

TEST(an_open_connection_is_taken)
{
	struct np_err err;
	FREED_BY(leave_bed) struct bed b;

	make_bed(&b, "TCP_RR", 1);
	assert_int_equal(np_trial_connect(&b.trial, &err), NP_OK);
	check_trial(&b);
}

/* A service that sends nothing: that is no failure, and the figures say so. */
TEST(nothing_counted_is_a_result)
{
	FREED_BY(free_result) struct np_trial_result r;
	struct np_err err;
	FREED_BY(leave_bed) struct bed b;

	make_bed(&b, "TCP_MAERTS", 0);
	b.plan.length = 1;
	b.plan.no_control = true;
	b.peer = b.daemon.at;
	b.client.collect.caps = 0;
	fail_if(np_trial(&b.trial, &r, &err) != NP_OK, "%s", err.msg);
	assert_false(r.out.measured);
	assert_true(np_record_known(&r.record, NP_M_THROUGHPUT));
	assert_true(np_record_get_real(&r.record, NP_M_THROUGHPUT) == 0);
	assert_true(np_record_get_real(&r.record, NP_M_ELAPSED_TIME) >= 1);
}

/* What the user is told, as a np_client_hooks' tell(). */
static void
keep_told(void *ctx, const char *text)
{
	char *told = ctx;
	size_t used = strlen(told);

	snprintf(told + used, 1024 - used, "%s\n", text);
}

/* A test of a tenth of a second, twice, with a daemon that has these capabilities. */
static void
take_a_tenth(struct bed *b, const char *bench, unsigned caps, char told[1024])
{
	told[0] = '\0';
	make_bed_with(b, bench, 1, caps);
	b->client.collect.caps = 0;
	b->client.hooks = (struct np_client_hooks){ .ctx = told,
						    .tell = keep_told,
						    .tell_after_ns = 60 * NP_SEC };
	b->target.wants.caps = NP_CAP_PLAN;
	b->plan.length = 1;
	b->plan.length_less_ms = 900;
	b->plan.near.call.interval_burst = 1; /* little work */
	b->plan.near.call.interval_us = 10000;
	for (int i = 0; i < 2; i++) {
		FREED_BY(free_result) struct np_trial_result r;
		struct np_err err;

		fail_if(np_trial(&b->trial, &r, &err) != NP_OK, "%s: %s", bench, err.msg);
		assert_true(np_record_get_real(&r.record, NP_M_ELAPSED_TIME) >=
			    np_plan_time_s(&b->plan));
	}
	leave_bed(b);
}

TEST(the_far_end_keeps_a_fraction)
{
	char told[1024];
	struct bed b;

	take_a_tenth(&b, "TCP_MAERTS", NP_CAP_PLAN, told);
	assert_int_equal(b.plan.length_less_ms, 900);
	assert_non_null(strstr(b.told, "length 0.1,"));
	/* On a busy machine nothing may come within 0.1 s. */
	assert_true(told[0] == '\0' ||
		    strstr(told, "nothing of what was sent has arrived") != NULL);
	assert_null(strstr(told, "-l 0.1"));
}

/* Where its clock ends the test, a far end that does not know of fractions makes it longer. */
TEST(a_fraction_is_rounded_up_for_an_older_daemon)
{
	char told[1024];
	struct bed b;

	take_a_tenth(&b, "TCP_MAERTS", NP_CAP_TEST, told);
	assert_int_equal(b.plan.length_less_ms, 0);
	assert_non_null(strstr(b.told, "length 1,"));
	assert_non_null(strstr(told, "-l 0.1: the netserver at 127.0.0.1"));
	assert_non_null(strstr(told, "the test lasts 1 s\n"));
	assert_null(strchr(strchr(told, '\n') + 1, '\n')); /* told once */
}

TEST(a_fraction_is_this_ends_where_its_clock_counts)
{
	static const char *const benches[] = { "TCP_STREAM", "TCP_RR" };
	char told[1024];
	struct bed b;

	for (size_t i = 0; i < LEN(benches); i++) {
		take_a_tenth(&b, benches[i], NP_CAP_TEST, told);
		assert_int_equal(b.plan.length_less_ms, 900);
		assert_string_equal(told, "");
	}
}

TEST(without_a_daemon_there_is_nothing)
{
	FREED_BY(free_result) struct np_trial_result r;
	struct np_err err = { .code = NP_OK };
	struct bed b;

	make_bed(&b, "TCP_RR", 0);
	leave_bed(&b); /* its port is closed now */
	assert_int_equal(np_trial(&b.trial, &r, &err), NP_ECONTROL);
	assert_false(r.out.measured);
	assert_null(r.out.near_bag);
}

TEST_MAIN(np_drive_prepare())
