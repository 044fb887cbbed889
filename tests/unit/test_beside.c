/* The latency over a load's own connections, by what its sender's end told. */
#include "run/beside.h"

#include <math.h>

#include "tests/lib/check.h"

enum { SAMPLES = 4 };

/* 125 bytes a ms, of which that many wait at each sample. */
static struct np_bag *
told(const int64_t *queued, size_t count)
{
	static const double t_s[SAMPLES] = { 0.1, 0.2, 0.35, 0.4 };
	static const int64_t acked[SAMPLES] = { 12500, 25000, 43750, 50000 };
	struct np_bag *b = np_bag_new();

	np_bag_reals(b, t_s, SAMPLES, "tcp.samples.t_s");
	np_bag_ints(b, acked, SAMPLES, "tcp.samples.bytes_acked");
	np_bag_ints(b, queued, count, "tcp.samples.queued_out");
	return b;
}

static void
judge(const int64_t *queued, size_t count, double us)
{
	struct np_bag *b = told(queued, count);
	double have = np_beside_own_us(b);

	assert_true(isnan(us) ? isnan(have) : fabs(have - us) < 0.001);
	np_bag_free(b);
}

TEST(what_waits_by_the_rate)
{
	static const int64_t queued[] = { 1000, 1500, 1250, 1250 }, none[SAMPLES] = { 0 };

	judge(queued, SAMPLES, 10000);
	judge(none, SAMPLES, 0);
}

TEST(what_a_far_end_tells_may_be_anything)
{
	static const int64_t queued[] = { 1000, 1500, -5000, 1250, 7 };
	static const int64_t still[] = { 7, 7, 7 };
	static const double t_s[] = { 0.1, 0.1, 0.1 }, long_s[] = { 0, 1, 1e308 };
	static const int64_t acked[] = { 0, 1, 1 };
	struct np_bag *b = np_bag_new();

	judge(queued, SAMPLES, (double)NAN);
	judge(queued, 2, (double)NAN);
	judge(queued, 5, (double)NAN);
	assert_true(isnan(np_beside_own_us(NULL)));
	assert_true(isnan(np_beside_own_us(b)));
	np_bag_reals(b, long_s, LEN(long_s), "tcp.samples.t_s");
	np_bag_ints(b, acked, LEN(acked), "tcp.samples.bytes_acked");
	np_bag_ints(b, acked, LEN(acked), "tcp.samples.queued_out");
	assert_true(isnan(np_beside_own_us(b)));
	np_bag_free(b);
	b = np_bag_new();
	assert_true(isnan(np_beside_own_us(b)));
	np_bag_reals(b, t_s, LEN(t_s), "tcp.samples.t_s");
	np_bag_ints(b, still, LEN(still), "tcp.samples.bytes_acked");
	np_bag_ints(b, still, LEN(still), "tcp.samples.queued_out");
	assert_true(isnan(np_beside_own_us(b)));
	np_bag_free(b);
}

TEST_MAIN()
