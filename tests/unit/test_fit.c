
#include "stats/confidence.h"
#include "tests/lib/check.h"

enum { MANY = 1000 };

/* Where samples of an exponential distribution stand if they are as even as can be, times `by`. */
static void
fill(double *x, size_t n, double by)
{
	for (size_t i = 0; i < n; i++) {
		x[n - 1 - i] = -log1p(-((double)i + 0.5) / (double)n) * by;
	}
}

TEST(what_fits_has_a_large_p)
{
	double x[MANY];

	fill(x, MANY, 1);
	assert_true(np_fit_p(x, MANY) > 0.99);
	for (size_t i = 1; i < MANY; i++) {
		assert_true(x[i - 1] <= x[i]);
	}
}

/* Values of the distribution that the paper prints: 0.95 at 2.492, 0.99 at 3.878. */
TEST(as_often_as_its_p_says_drawn_ones_are_that_far)
{
	enum { RUNS = 2000 };
	unsigned seed = 20241126;
	int under_5 = 0, under_50 = 0;

	for (int run = 0; run < RUNS; run++) {
		double x[100], p;

		for (size_t i = 0; i < 100; i++) {
			x[i] = -log((rand_r(&seed) + 1.0) / (RAND_MAX + 1.0));
		}
		p = np_fit_p(x, 100);
		under_5 += p < 0.05;
		under_50 += p < 0.5;
	}
	/* Four times the deviation of a binomial number. */
	assert_true(abs(under_5 - RUNS / 20) < 40);
	assert_true(abs(under_50 - RUNS / 2) < 90);
}

TEST(what_does_not_fit_has_a_small_p)
{
	double x[MANY];

	fill(x, MANY, 1.3);
	assert_true(np_fit_p(x, MANY) < 1e-4);
	for (size_t i = 0; i < MANY; i++) {
		x[i] = 1; /* even ones */
	}
	assert_true(np_fit_p(x, MANY) < 1e-4);
	for (size_t i = 0; i < MANY; i++) {
		x[i] = i % 2 == 0 ? 0 : 2; /* pairs */
	}
	assert_true(np_fit_p(x, MANY) < 1e-4);
}

TEST(few_say_nothing)
{
	double x[NP_FIT_LEAST];

	fill(x, NP_FIT_LEAST, 1);
	assert_true(isnan(np_fit_p(x, NP_FIT_LEAST - 1)));
	assert_true(isnan(np_fit_p(x, 0)));
	assert_false(isnan(np_fit_p(x, NP_FIT_LEAST)));
}

TEST_MAIN()
