/*
 * Delays by two clocks: what is planted comes out again.
 */

#include "stats/oneway.h"
#include "tests/lib/check.h"

enum { COUNT = 2000, RUNS = 100 };
static const double run_ns = 10e9;

/* A run: what the clocks do, and what really waited. */
struct planted {
	double offset_ns, skew, slew, step_ns, path_ns[2];
	int steps;                   /* more steps of as much, evenly before it */
	double set_at, back_at;      /* parts of the run; 0: in the middle, and never */
	double least_ns[2], wait_ns; /* of each direction; mean of what waits, in 4 of 10 */
};

struct made {
	int64_t when[COUNT];
	double there[COUNT], back[COUNT], waited[2][COUNT], first_ns, last_ns;
};

static double
uniform(unsigned *seed)
{
	return (rand_r(seed) + 0.5) / (RAND_MAX + 1.0);
}

static double
clock_at(const struct planted *p, double at)
{
	double late = at - run_ns / 2, set_at = run_ns * (p->set_at > 0 ? p->set_at : 0.5);
	double set = at > set_at ? p->step_ns : 0;

	for (int i = 1; i <= p->steps; i++) {
		set += at > set_at * i / (p->steps + 1) ? p->step_ns : 0;
	}
	set -= p->back_at > 0 && at > p->back_at * run_ns ? p->step_ns : 0;
	return p->offset_ns + p->skew * at + set + (late > 0 ? p->slew * late : 0);
}

static double
waits(const struct planted *p, int way, double at, unsigned *seed)
{
	double d = uniform(seed) * 1000; /* an interrupt more or less */

	d += uniform(seed) < 0.4 ? -p->wait_ns * log(uniform(seed)) : 0;
	return d + (at > run_ns / 2 ? p->path_ns[way] : 0);
}

static struct made *
make(const struct planted *p, unsigned seed)
{
	struct made *m = calloc(1, sizeof(*m));
	double least[2] = { (double)INFINITY, (double)INFINITY };

	assert_non_null(m);
	for (int i = 0; i < COUNT; i++) {
		double at = run_ns * i / COUNT;

		m->when[i] = INT64_C(1790000000000000000) + (int64_t)at;
		for (int way = 0; way < 2; way++) {
			m->waited[way][i] = waits(p, way, at, &seed);
			least[way] = fmin(least[way], m->waited[way][i]);
		}
		m->there[i] = p->least_ns[0] + m->waited[0][i] + clock_at(p, at);
		m->back[i] = p->least_ns[1] + m->waited[1][i] - clock_at(p, at);
		m->first_ns = i == 0 ? clock_at(p, at) : m->first_ns;
		m->last_ns = clock_at(p, at);
	}
	for (int i = 0; i < COUNT; i++) {
		m->waited[0][i] -= least[0];
		m->waited[1][i] -= least[1];
	}
	return m;
}

/* In how many of RUNS is a delay more than `within_ns` wrong, or an offset out of bounds? */
static int
wrong(const struct planted *p, double within_ns, struct np_oneway *last)
{
	int bad = 0;

	for (unsigned seed = 1; seed <= RUNS; seed++) {
		FREED_BY(free_memory) struct made *m = make(p, seed);
		double worst = 0;

		assert_true(np_oneway(COUNT, m->when, m->there, m->back, last));
		for (int i = 0; i < COUNT; i++) {
			worst = fmax(worst, fabs(m->there[i] - m->waited[0][i]));
			worst = fmax(worst, fabs(m->back[i] - m->waited[1][i]));
		}
		if (worst > within_ns || fabs(last->first_ns - m->first_ns) > last->slack_ns ||
		    fabs(last->last_ns - m->last_ns) > last->slack_ns) {
			print_message("seed %u: %.0f ns wrong; offset %.0f of %.0f, %.0f of %.0f, "
				      "slack %.0f; %u paths, %u steps\n",
				      seed, worst, last->first_ns, m->first_ns, last->last_ns,
				      m->last_ns, last->slack_ns, last->paths, last->steps);
			bad++;
		}
	}
	return bad;
}

static const struct planted still = { .least_ns = { 1e6, 3e6 }, .wait_ns = 100e3 };

TEST(clocks_apart_are_told_from_queues)
{
	struct planted p = still;
	struct np_oneway got;

	assert_int_equal(wrong(&p, 20e3, &got), 0);
	assert_true(got.paths == 0 && got.steps == 0 && fabs(got.skew) < 1e-6);
	p.offset_ns = 50e6;
	p.skew = 40e-6;
	assert_int_equal(wrong(&p, 20e3, &got), 0);
	assert_true(got.paths == 0 && got.steps == 0);
	assert_float_equal(got.skew, 40e-6, 1e-6);
	p.slew = 500e-6;
	assert_int_equal(wrong(&p, 20e3, &got), 0);
	assert_true(got.paths == 0 && got.steps == 0);
}

TEST(a_clock_that_is_set_is_named)
{
	struct planted p = still;
	struct np_oneway got;

	p.step_ns = -3e6;
	p.skew = 40e-6;
	assert_int_equal(wrong(&p, 20e3, &got), 0);
	assert_int_equal(got.steps, 1);
	assert_int_equal(got.paths, 0);
	assert_float_equal(got.step_ns, -3e6, 20e3);
}

/* However far, either way, several times, shortly before the end, and on both sides of a change
 * of the path. */
TEST(steps_spoil_no_skew)
{
	static const struct planted set[] = {
		{ .step_ns = 50e6 },
		{ .step_ns = -50e6 },
		{ .step_ns = 10e9, .steps = 4 },
		{ .step_ns = -1e6, .steps = 6 },
		{ .step_ns = 50e6, .back_at = 0.99 },
		{ .step_ns = -50e6, .path_ns = { 5e6 }, .set_at = 0.48, .back_at = 0.52 }
	};
	struct np_oneway got;

	for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
		struct planted p = set[i];

		memcpy(p.least_ns, still.least_ns, sizeof(p.least_ns));
		p.wait_ns = still.wait_ns;
		p.skew = 20e-6;
		assert_int_equal(wrong(&p, 20e3, &got), 0);
		assert_int_equal(got.steps, 1 + p.steps + (p.back_at > 0));
		assert_float_equal(got.skew, 20e-6, 2e-6);
		assert_float_equal(fabs(got.step_ns), fabs(p.step_ns), 50e3);
	}
}

/* What the request's direction takes more from the middle on is no step of a clock. */
TEST(a_path_that_changes_is_no_clock)
{
	struct planted p = still;
	struct np_oneway got;

	p.offset_ns = 50e6;
	p.skew = 40e-6;
	p.slew = 500e-6;
	p.path_ns[0] = 5e6;
	assert_int_equal(wrong(&p, 20e3, &got), 0);
	assert_int_equal(got.paths, 1);
	assert_int_equal(got.steps, 0);
	assert_float_equal(got.path_ns[0], 5e6, 20e3);
	assert_float_equal(got.path_ns[1], 0, 20e3);
	p.path_ns[0] = 0;
	p.path_ns[1] = 5e6;
	assert_int_equal(wrong(&p, 20e3, &got), 0);
	assert_float_equal(got.path_ns[1], 5e6, 20e3);
}

TEST(few_tell_nothing)
{
	static int64_t when[NP_ONEWAY_LEAST];
	static double there[NP_ONEWAY_LEAST], back[NP_ONEWAY_LEAST];
	struct np_oneway got;

	assert_false(np_oneway(NP_ONEWAY_LEAST - 1, when, there, back, &got));
	/* All at once, by clocks that are the same. */
	assert_true(np_oneway(NP_ONEWAY_LEAST, when, there, back, &got));
	assert_true(got.skew == 0 && got.last_ns == 0);
}

TEST_MAIN()
