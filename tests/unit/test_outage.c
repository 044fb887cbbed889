/* Outages by what the kernel is made to say of two connections. */
#include "run/outage.h"

#include "base/clock.h"
#include "bench/bench.h"
#include "tests/lib/bags.h"
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
		np_outages_look(b->o, &b->run, 0, (1000 + b->ms) * NP_MSEC);
	}
}

static void
judge(struct bed *b, const char *what, double ms, double begin_s)
{
	FREED_BY(free_bag) struct np_bag *bag = np_bag_new();

	b->run.window.ended_ns = (1000 + b->ms) * NP_MSEC;
	np_outages_put(b->o, bag);
	fail_if(!(fabs(np_bag_number(bag, "flow.outage_us") - 1e3 * ms) < 1e-3) ||
		    !(fabs(np_bag_number(bag, "flow.outage_begin_s") - begin_s) < 1e-6),
		"%s: %g us from %g s on", what, np_bag_number(bag, "flow.outage_us"),
		np_bag_number(bag, "flow.outage_begin_s"));
	assert_true(np_bag_number(bag, "flow.outage_flow") == 0);
	free(b->o);
}

TEST(an_outage_ends_with_what_was_sent_again)
{
	/* For N ms it goes on (+), or not (-), or nobody looks (?); A: some is sent again; w: it
	 * has nothing to wait for; W: it has. */
	static const struct {
		const char *what, *passes;
		double ms, begin_s;
	} rows[] = {
		{ "what was sent again was lost", "+100 -30 A +100 -20 A +100", 30, 0.098 },
		{ "who does not read loses nothing", "+100 -30 +100", 0, 0 },
		{ "nothing to wait for", "+100 w -50 W -10 A +10", 10, 0.148 },
		/* It may have got on meanwhile, just behind the last look. */
		{ "this end stood still", "+100 -20 ?200 A +100", 18, 0.098 },
		{ "this end stood still within one", "+100 -20 ?200 A -10 +100", 28, 0.098 },
		{ "this machine stood still", "+100 ?500 A -10 +100", 8, 0.098 },
		{ "not over", "+100 A -100", 100, 0.098 },
		{ "not over, and this end stood still", "+100 A -50 ?500", 48, 0.098 },
		{ "not over, and nothing was sent again", "+100 -100", 0, 0 },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct bed b;

		begin(&b);
		for (const char *at = rows[i].passes; *at != '\0';
		     at += strcspn(at + 1, " +-?AwW") + 1) {
			uint64_t ms = strtoul(at + 1, NULL, 10);

			switch (*at) {
			case '+':
			case '-':
				pass(&b, ms, *at == '+');
				break;
			case '?':
				b.ms += ms;
				break;
			case 'A':
				now_of[0].resent++;
				break;
			case 'w':
			case 'W':
				now_of[0].waits = *at == 'W';
				break;
			default:
				break;
			}
		}
		judge(&b, rows[i].what, rows[i].ms, rows[i].begin_s);
	}
}

TEST(who_looks_for_them)
{
	struct bed b;

	begin(&b);
	free(b.o);
	b.plan.role = NP_FOLLOW;
	assert_false(np_outages_new(&b.run) != NULL);
	b.plan.role = NP_LEAD;
	b.plan.near.call.offered = 0;
	b.plan.rate = 100;
	assert_false(np_outages_new(&b.run) != NULL);
	np_outages_put(NULL, NULL);
}

TEST_MAIN()
