
#include "bench/bench.h"
#include "run/knee.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"

/* A system that can do `capacity` a second, of which each step is asked, and in one of `spoilt`
 * runs something else. Returns the knee; *runs are added to. */
static double
search_among(struct np_knee *k, const struct np_plan *p, double capacity, int spoilt,
	     unsigned *seed, int *runs)
{
	struct np_knee_step *s;

	while ((s = np_knee_next(k, p)) != NULL) {
		s->sent = s->rate > capacity ? capacity / s->rate : 1;
		s->lost = s->arrived = (double)NAN;
		if (spoilt > 0 && rand_r(seed) % spoilt == 0) {
			s->sent = 0.9;
		}
		np_knee_judge(k, s);
		++*runs;
	}
	return k->good;
}

static double
search(struct np_knee *k, const struct np_plan *p, double capacity)
{
	unsigned seed = 1;
	int runs = 0;

	return search_among(k, p, capacity, 0, &seed, &runs);
}

/* Once in 50 runs the machine does something else: it was every eighth search. */
TEST(a_spoilt_run_is_no_bound)
{
	enum { SEARCHES = 10000 };
	struct np_plan p;
	unsigned seed = 1;
	int low = 0, runs = 0;

	client_params(&p, np_bench_find("TCP_RR"), AF_INET, 10);
	for (int i = 0; i < SEARCHES; i++) {
		struct np_knee k = { .times = 10 };
		double capacity = 1000 + i * 37;

		low += search_among(&k, &p, capacity, 50, &seed, &runs) < 0.9 * capacity;
	}
	print_message("%d of %d below nine tenths, %.1f runs each\n", low, SEARCHES,
		      (double)runs / SEARCHES);
	assert_in_range(low, 0, SEARCHES / 200);
	assert_true(runs < 16 * SEARCHES);
}

/* A step of several tries has the last one's verdict. */
TEST(a_step_has_one_verdict)
{
	struct np_knee k = { .times = 10, .steps = 2 };

	k.step[0] = (struct np_knee_step){ .rate = 100, .sent = 1, .arrived = 1 };
	k.step[1] = (struct np_knee_step){ .rate = 400, .sent = 0.5, .arrived = 1 };
	np_knee_judge(&k, &k.step[0]);
	np_knee_judge(&k, &k.step[1]);
	assert_true(k.good == 100 && k.too_high == 400);
	k.step[1].sent = 1;
	np_knee_judge(&k, &k.step[1]);
	assert_true(k.good == 400 && k.too_high == 0);
	k.step[1].sent = 0.5;
	np_knee_judge(&k, &k.step[1]);
	assert_true(k.good == 100 && k.too_high == 400);
}

TEST(the_knee_is_found_to_five_percent)
{
	static const double capacities[] = { 100, 137, 9999, 123456, 9e6 };
	struct np_plan p;

	client_params(&p, np_bench_find("TCP_RR"), AF_INET, 10);
	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++) {
		struct np_knee k = { .times = 10 };
		double knee = search(&k, &p, capacities[i]);

		assert_true(knee <= capacities[i] && knee * 1.06 >= capacities[i]);
		assert_true(k.steps < 18);
	}
}

TEST(a_rate_ends_at_its_bounds)
{
	struct np_knee k = { .times = 10 }, none = { .times = 10 };
	struct np_plan p;

	client_params(&p, np_bench_find("TCP_RR"), AF_INET, 10);
	assert_true(search(&k, &p, 1e12) >= 1e7);
	assert_true(k.too_high <= 0);
	assert_true(search(&none, &p, 1) <= 0);
	assert_int_equal(none.steps, 1);
	client_params(&p, np_bench_find("UDP_STREAM"), AF_INET, 10);
	k = (struct np_knee){ .times = 10 };
	assert_true(search(&k, &p, 94e6) > 89e6);
	k = (struct np_knee){ .times = 10, .no_loss = true };
	assert_true(search(&k, &p, 94e6) > 0.995 * 94e6);
	assert_true(k.steps < 20);
}

/* The lowest rate whose P99 is known sets the limit of the others. */
TEST(a_step_is_too_much_by_what_it_lost_or_by_its_p99)
{
	struct np_knee k = { .times = 10 };
	struct np_knee_step *s = k.step;

	s[0] = (struct np_knee_step){
		.rate = 100, .sent = 1, .arrived = 1, .timed = true, .ns = { 1, 900 }
	};
	s[1] = (struct np_knee_step){ .rate = 400,
				      .sent = 1,
				      .arrived = 1,
				      .timed = true,
				      .ns = { 1, 100 },
				      .high = { 1, 120 } };
	s[2] = s[1];
	s[2].ns[1] = 1001;
	s[3] = s[1];
	s[3].lost = 0.002;
	s[4] = s[1];
	s[4].sent = 0.998;
	for (k.steps = 1; k.steps <= 5; k.steps++) {
		np_knee_judge(&k, &s[k.steps - 1]);
	}
	assert_null(s[0].why_too_high);
	assert_null(s[1].why_too_high);
	assert_string_equal(s[2].why_too_high, "P99 is too long");
	assert_non_null(strstr(s[3].why_too_high, "lost"));
	assert_non_null(strstr(s[4].why_too_high, "less was sent"));
	s[1].lost = 0.0001;
	k.steps = 2;
	np_knee_judge(&k, &s[1]);
	assert_null(s[1].why_too_high);
	k = (struct np_knee){ .no_loss = true,
			      .steps = 1,
			      .step = { { .sent = 1, .lost = 1e-6, .arrived = 1 } } };
	np_knee_judge(&k, &k.step[0]);
	assert_non_null(strstr(k.step[0].why_too_high, "lost"));
	k.step[0].lost = 0;
	k.step[0].arrived = 0.99;
	np_knee_judge(&k, &k.step[0]);
	assert_non_null(strstr(k.step[0].why_too_high, "slowly"));
}

TEST_MAIN()
