/* Outages by what the kernel is made to say of two connections. */
#include "run/outage.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "tests/lib/check.h"

static struct np_acked now_of[2];

static bool
acked(int fd, struct np_acked *p)
{
	*p = now_of[fd];
	return true;
}

static const struct np_transport transport = { .acked = acked };
static const struct np_pattern pattern = { .offers = true };
static struct np_conn conn[2] = { { .fd = 0 }, { .fd = 1 } };

struct bed {
	struct np_plan plan;
	struct np_run run;
	struct np_outages *o;
	uint64_t ms;
};

static void
begin(struct bed *b)
{
	*b = (struct bed){ .plan = { .transport = &transport,
				     .pattern = &pattern,
				     .role = NP_LEAD,
				     .near.call.offered = 8000 } };
	b->run = (struct np_run){
		.plan = &b->plan, .conn = conn, .conns = 2, .window.started_ns = 1000 * NP_MSEC
	};
	now_of[0] = now_of[1] = (struct np_acked){ .waits = true };
	b->o = np_outages_new(&b->run);
	assert_non_null(b->o);
}

/* For that long the first one stands still or goes on, and the second one goes on. */
static void
pass(struct bed *b, uint64_t ms, bool goes)
{
	for (uint64_t end = b->ms + ms; b->ms < end; b->ms += NP_OUTAGE_MS) {
		now_of[0].bytes += goes;
		now_of[1].bytes++;
		np_outages_look(b->o, &b->run, (1000 + b->ms) * NP_MSEC);
	}
}

static void
judge(struct bed *b, double ms, double begin_s)
{
	struct np_bag *bag = np_bag_new();

	np_outages_put(b->o, bag);
	assert_true(fabs(np_bag_number(bag, "flow.outage_us") - 1e3 * ms) < 1e-3);
	assert_true(fabs(np_bag_number(bag, "flow.outage_begin_s") - begin_s) < 1e-6);
	assert_true(np_bag_number(bag, "flow.outage_flow") == 0);
	np_bag_free(bag);
	free(b->o);
}

TEST(what_was_sent_again_was_lost)
{
	struct bed b;

	begin(&b);
	pass(&b, 100, true);
	pass(&b, 30, false);
	now_of[0].again++;
	pass(&b, 100, true);
	pass(&b, 20, false);
	now_of[0].again++;
	pass(&b, 100, true);
	judge(&b, 30, 0.098);
}

TEST(who_does_not_read_loses_nothing)
{
	struct bed b;

	begin(&b);
	pass(&b, 100, true);
	pass(&b, 30, false);
	pass(&b, 100, true);
	judge(&b, 0, 0);
}

TEST(without_anything_to_wait_for_there_is_none)
{
	struct bed b;

	begin(&b);
	pass(&b, 100, true);
	now_of[0].waits = false;
	pass(&b, 50, false);
	now_of[0].waits = true;
	pass(&b, 10, false);
	now_of[0].again++;
	pass(&b, 10, true);
	judge(&b, 10, 0.148);
}

/* It may have got on meanwhile, just behind the last look. */
TEST(this_end_stood_still)
{
	struct bed b;

	begin(&b);
	pass(&b, 100, true);
	pass(&b, 20, false);
	b.ms += 200;
	now_of[0].again++;
	pass(&b, 100, true);
	judge(&b, 18, 0.098);
}

TEST(this_end_stood_still_within_one)
{
	struct bed b;

	begin(&b);
	pass(&b, 100, true);
	pass(&b, 20, false);
	b.ms += 200;
	now_of[0].again++;
	pass(&b, 10, false);
	pass(&b, 100, true);
	judge(&b, 230, 0.098);
}

TEST(one_that_is_not_over_is_none)
{
	struct bed b;

	begin(&b);
	pass(&b, 100, true);
	now_of[0].again++;
	pass(&b, 100, false);
	judge(&b, 0, 0);
}

TEST(who_looks_for_them)
{
	struct bed b;

	begin(&b);
	free(b.o);
	b.plan.role = NP_FOLLOW;
	assert_false(np_outages_wanted(&b.plan));
	b.plan.role = NP_LEAD;
	b.plan.near.call.offered = 0;
	b.plan.rate = 100;
	assert_false(np_outages_wanted(&b.plan));
	np_outages_put(NULL, NULL);
}

TEST_MAIN()
