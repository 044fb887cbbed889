/*
 * How far a test is, as those are told who show it: when that is due, with the counters of the run;
 * and of several sessions the step is that of the one furthest behind.
 */
#include "run/live.h"

#include "base/clock.h"
#include "tests/lib/check.h"

/* A run of one worker that has counted something. */
struct counting {
	struct np_run run;
	struct np_worker worker;
	struct np_counters count;
};

static void
make(struct counting *c, uint64_t transactions)
{
	memset(c, 0, sizeof(*c));
	c->worker.count = &c->count;
	c->worker.run = &c->run;
	c->run.worker = &c->worker;
	c->run.workers = 1;
	np_set(&c->count.transactions, transactions);
}

static void
note(void *ctx, const struct np_live_view *view)
{
	struct np_live_view *seen = ctx;

	*seen = *view;
}

TEST(where_nobody_looks_nothing_happens)
{
	np_live_step(NULL, NP_LIVE_MEASURING, 1);
	np_live_look(NULL, NULL);
	assert_true(np_live_until(NULL, 7) == 7);
}

TEST(it_is_shown_when_that_is_due)
{
	struct np_live_view seen = { .step = NP_LIVE_CONNECTING };
	struct np_live l = { .every_ns = 3600 * NP_SEC, .draw = note, .ctx = &seen };
	struct counting a;

	make(&a, 20);
	np_live_step(&l, NP_LIVE_MEASURING, 3 * NP_SEC);
	assert_int_equal(np_live_until(&l, NP_NEVER), 0);
	np_live_look(&l, &a.run);
	assert_int_equal(seen.step, NP_LIVE_MEASURING);
	assert_true(seen.since_ns > 0 && seen.since_ns <= np_now());
	assert_int_equal(seen.length_ns, 3 * NP_SEC);
	assert_int_equal(seen.count.transactions, 20);
	assert_true(np_live_until(&l, NP_NEVER) > np_now());
	assert_int_equal(np_live_until(&l, 1), 1);
	np_live_step(&l, NP_LIVE_COLLECTING, 0);
	np_live_look(&l, &a.run);
	assert_int_equal(seen.step, NP_LIVE_MEASURING); /* not yet */
	l.due_ns = 1;
	np_live_look(&l, NULL);
	assert_int_equal(seen.step, NP_LIVE_COLLECTING);
	assert_int_equal(seen.count.transactions, 20); /* what it came to stays */
	assert_int_equal(seen.length_ns, 0);
}

TEST(a_step_begins_once)
{
	struct np_live l = { .every_ns = 1 };
	uint64_t since;

	np_live_step(&l, NP_LIVE_MEASURING, 0);
	since = l.view.since_ns;
	np_live_step(&l, NP_LIVE_MEASURING, 5); /* nothing new */
	assert_int_equal(l.view.since_ns, since);
	assert_int_equal(l.view.length_ns, 0);
}

TEST(the_last_one_says_what_is_done)
{
	struct np_live_view one = { .step = NP_LIVE_MEASURING,
				    .since_ns = 20,
				    .length_ns = 100,
				    .count = { .transactions = 1, .sent = 5 } };
	struct np_live_view two = one, all = one;

	two.since_ns = 10;
	two.length_ns = 300;
	np_live_add(&all, &two);
	assert_int_equal(all.step, NP_LIVE_MEASURING);
	assert_int_equal(all.since_ns, 10);
	assert_int_equal(all.length_ns, 300);
	assert_int_equal(all.count.transactions, 2);
	assert_int_equal(all.count.sent, 10);
	two.step = NP_LIVE_COLLECTING;
	two.since_ns = 5;
	np_live_add(&all, &two);
	assert_int_equal(all.step, NP_LIVE_MEASURING);
	assert_int_equal(all.since_ns, 10);
	two.step = NP_LIVE_ASKING;
	two.length_ns = 0;
	np_live_add(&all, &two);
	assert_int_equal(all.step, NP_LIVE_ASKING);
	assert_int_equal(all.since_ns, 5);
	assert_int_equal(all.length_ns, 0);
	assert_int_equal(all.count.transactions, 4);
}

TEST_MAIN()
