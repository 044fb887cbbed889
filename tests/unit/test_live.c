/*
 * The state of several sessions together: the step is that of the session which is furthest behind,
 * and the counters are summed.
 */
#include "run/live.h"

#include <string.h>

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
	c->run.worker = &c->worker;
	c->run.workers = 1;
	np_show(&c->count.transactions, transactions);
}

TEST(without_a_seat_nothing_happens)
{
	assert_null(np_live_join(NULL));
	assert_null(np_live_of(NULL));
	np_live_step(NULL, NP_LIVE_MEASURING);
	np_live_begin(NULL, NULL, 1);
	np_live_end(NULL);
	np_live_leave(NULL);
	np_live_free(NULL);
}

TEST(the_last_one_says_what_is_done)
{
	struct np_live *l = np_live_new();
	struct np_seat *one = np_live_join(l), *two = np_live_join(np_live_of(one));
	struct np_live_view view;
	uint64_t before, since;

	assert_non_null(two);
	np_live_step(one, NP_LIVE_MEASURING);
	np_live_look(l, &view);
	assert_int_equal(view.step, NP_LIVE_CONNECTING);
	before = np_now();
	np_live_step(two, NP_LIVE_MEASURING);
	np_live_look(l, &view);
	assert_int_equal(view.step, NP_LIVE_MEASURING);
	assert_in_range(view.since_ns, 1, before); /* the first one's begin */
	since = view.since_ns;
	np_live_step(one, NP_LIVE_MEASURING); /* nothing new */
	np_live_step(two, NP_LIVE_COLLECTING);
	np_live_look(l, &view);
	assert_int_equal(view.step, NP_LIVE_MEASURING);
	assert_int_equal(view.since_ns, since);
	np_live_leave(one);
	np_live_look(l, &view);
	assert_int_equal(view.step, NP_LIVE_COLLECTING);
	np_live_leave(two);
	np_live_free(l);
}

TEST(counters_are_summed)
{
	struct np_live *l = np_live_new();
	struct np_seat *one = np_live_join(l), *two = np_live_join(l);
	struct np_live_view view;
	struct counting a, b;

	make(&a, 100);
	make(&b, 20);
	np_live_begin(one, &a.run, 3 * NP_SEC);
	np_live_begin(two, &b.run, 0);
	np_live_look(l, &view);
	assert_int_equal(view.count.transactions, 120);
	assert_int_equal(view.length_ns, 3 * NP_SEC);
	np_show(&b.count.transactions, 25);
	np_live_end(two); /* what it came to stays, and the run may go */
	memset(&b, 0xff, sizeof(b));
	np_show(&a.count.transactions, 200);
	np_live_look(l, &view);
	assert_int_equal(view.count.transactions, 225);
	np_live_end(one);
	make(&b, 1);
	np_live_begin(two, &b.run, 0); /* the next iteration */
	np_live_look(l, &view);
	assert_int_equal(view.count.transactions, 201);
	np_live_end(two);
	np_live_leave(two);
	np_live_leave(one);
	np_live_free(l);
}

TEST_MAIN()
