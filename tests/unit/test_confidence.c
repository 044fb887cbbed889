/*
 * Means and the widths of their confidence intervals, against figures worked out by hand and
 * Student's distribution itself.
 */
#include "stats/confidence.h"

#include <float.h>

#include "tests/lib/check.h"

static struct np_series
series(const double *values, size_t count)
{
	struct np_series s = { 0 };

	for (size_t i = 0; i < count; i++) {
		np_series_add(&s, values[i]);
	}
	return s;
}
#define SERIES(...) series((const double[]){ __VA_ARGS__ }, LEN(((const double[]){ __VA_ARGS__ })))

/* ---- The quantiles ---- */

/*
 * The share of Student's distribution between -t and t: finite sums for whole degrees (Abramowitz
 * and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4).
 */
static double
share_within(double t, unsigned degrees)
{
	double angle = atan(t / sqrt(degrees)), c = cos(angle);
	bool odd = degrees % 2 != 0;
	double term = odd ? c : 1, sum = degrees == 1 ? 0 : term;

	for (unsigned k = odd ? 3 : 2; k < degrees; k += 2) {
		term *= c * c * (k - 1) / k;
		sum += term;
	}
	sum *= sin(angle);
	return odd ? 2 / M_PI * (angle + sum) : sum;
}

TEST(quantiles_are_students_to_three_decimals)
{
	static const int levels[] = { 95, 99 };

	for (size_t i = 0; i < LEN(levels); i++) {
		for (unsigned degrees = 1; degrees <= 30; degrees++) {
			double t = np_student_t(levels[i], degrees);

			assert_close(t, round(t * 1000) / 1000, 1e-12);
			assert_true(share_within(t - 0.0005, degrees) <= levels[i] / 100.0);
			assert_true(share_within(t + 0.0005, degrees) >= levels[i] / 100.0);
		}
	}
}

TEST(known_quantiles)
{
	assert_close(np_student_t(95, 1), 12.706, 1e-12);
	assert_close(np_student_t(95, 2), 4.303, 1e-12);
	assert_close(np_student_t(95, 3), 3.182, 1e-12);
	assert_close(np_student_t(95, 9), 2.262, 1e-12);
	assert_close(np_student_t(95, 30), 2.042, 1e-12);
	assert_close(np_student_t(99, 1), 63.657, 1e-12);
	assert_close(np_student_t(99, 2), 9.925, 1e-12);
	assert_close(np_student_t(99, 29), 2.756, 1e-12);
	/* Beyond the table. */
	assert_true(np_student_t(95, 0) == HUGE_VAL);
	assert_close(np_student_t(95, 31), 2.042, 1e-12);
	assert_close(np_student_t(99, 4000000000U), 2.750, 1e-12);
}

/* ---- Means and widths ---- */

TEST(two_values)
{
	struct np_series s = SERIES(9, 11);

	assert_int_equal(s.count, 2);
	assert_close(s.mean, 10, 1e-15);
	/* v = 101 - 100, so 2 x 12.706 x sqrt(1 / 1) / 10. */
	assert_close(np_series_width(&s, 95), 2.5412, 1e-12);
	assert_close(np_series_width(&s, 99), 12.7314, 1e-12);
}

TEST(five_values)
{
	struct np_series s = SERIES(7, 9, 10, 11, 13);

	/* v = 104 - 100 = 4, and 2 x 2.776 x sqrt(4 / 4) / 10. */
	assert_close(s.mean, 10, 1e-15);
	assert_close(np_series_width(&s, 95), 0.5552, 1e-12);
	assert_close(np_series_width(&s, 99), 0.9208, 1e-12);
}

TEST(the_sign_of_the_mean_does_not_matter)
{
	struct np_series s = SERIES(-9, -11);

	assert_close(s.mean, -10, 1e-15);
	assert_close(np_series_width(&s, 95), 2.5412, 1e-12);
}

TEST(too_few_values_are_not_sure)
{
	struct np_series s = { 0 };

	assert_true(s.mean == 0);
	assert_true(np_series_width(&s, 95) == HUGE_VAL);
	np_series_add(&s, 5);
	assert_true(s.mean == 5);
	assert_true(np_series_width(&s, 95) == HUGE_VAL);
}

/* What is not measured is -1 in every iteration; 0.1 has no exact binary form. */
TEST(values_that_do_not_differ_are_sure)
{
	static const double values[] = { -1, 0, 0.1, 1e-300, 941.37, 1e300 };

	for (size_t i = 0; i < LEN(values); i++) {
		struct np_series s = { 0 };

		for (int n = 0; n < 30; n++) {
			np_series_add(&s, values[i]);
		}
		assert_true(s.mean == values[i]);
		assert_true(np_series_width(&s, 99) == 0);
	}
}

TEST(a_mean_of_0_over_other_values_is_never_sure)
{
	struct np_series s = SERIES(-1, 1); /* without a rest, in whatever registers */

	assert_true(s.mean == 0);
	assert_true(np_series_width(&s, 95) == HUGE_VAL);
}

/* The mean of squares less the square of the mean would be off by more than there is. */
TEST(small_differences_of_large_values_are_seen)
{
	struct np_series s = SERIES(1e12 - 1, 1e12 + 1);

	assert_close(s.mean, 1e12, 1e-15);
	assert_close(np_series_width(&s, 95), 25.412e-12, 1e-9);
}

TEST(many_values_use_the_last_row)
{
	struct np_series s = { 0 };
	double n = 1e6;

	for (int i = 0; i < 1000000; i++) {
		np_series_add(&s, i % 2 == 0 ? 99 : 101);
	}
	assert_close(s.mean, 100, 1e-12);
	assert_close(np_series_width(&s, 95), 2 * 2.042 * sqrt(1 / (n - 1)) / 100, 1e-9);
}

TEST(what_is_no_number_is_never_sure)
{
	struct np_series s = SERIES(1, (double)NAN);

	assert_true(np_series_width(&s, 95) == HUGE_VAL);
	s = SERIES(1, HUGE_VAL, 2);
	assert_true(np_series_width(&s, 95) == HUGE_VAL);
	s = SERIES(DBL_MAX, DBL_MAX / 2);
	assert_true(np_series_width(&s, 95) == HUGE_VAL);
	/* Differences whose squares are too small for a double are none. */
	s = SERIES(1e-300, 2e-300);
	assert_true(np_series_width(&s, 95) == 0);
}

TEST(jains_index_is_one_at_most)
{
	const double a = 7077.741795982246;

	assert_true(np_jain_index(a + a + a, a * a + a * a + a * a, 3) <= 1);
	assert_float_equal(np_jain_index(4, 10, 2), 0.8, 1e-12);
	assert_true(isnan(np_jain_index(0, 0, 3)));
}

TEST_MAIN()
