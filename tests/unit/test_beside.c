/* The latency over a load's own connections, by what its sender's end told. */
#include "run/beside.h"

#include "cli/beside.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"

enum { SAMPLES = 4 };

static const double t_s[SAMPLES] = { 0.1, 0.2, 0.35, 0.4 };
static const int64_t acked[SAMPLES] = { 12500, 25000, 43750, 50000 }; /* 125 bytes a ms */

struct told {
	const double *t_s;
	const int64_t *acked, *queued;
	size_t count, queued_count;
};

static void
judge(const struct told *t, double us)
{
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	double have;

	np_bag_reals(b, t->t_s, t->count, "tcp.samples.t_s");
	np_bag_ints(b, t->acked, t->count, "tcp.samples.bytes_acked");
	np_bag_ints(b, t->queued, t->queued_count, "tcp.samples.queued_out");
	have = np_beside_own_us(b);
	assert_true(isnan(us) ? isnan(have) : fabs(have - us) < 0.001);
}

TEST(what_waits_by_the_rate)
{
	static const int64_t queued[] = { 1000, 1500, 1250, 1250 }, none[SAMPLES] = { 0 };

	judge(&(struct told){ t_s, acked, queued, SAMPLES, SAMPLES }, 10000);
	judge(&(struct told){ t_s, acked, none, SAMPLES, SAMPLES }, 0);
}

TEST(what_a_far_end_tells_may_be_anything)
{
	static const int64_t queued[] = { 1000, 1500, -5000, 1250, 7 };
	static const int64_t still[] = { 7, 7, 7 }, one[] = { 0, 1, 1 };
	static const double at_once[] = { 0.1, 0.1, 0.1 }, long_s[] = { 0, 1, 1e308 };
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();

	judge(&(struct told){ t_s, acked, queued, SAMPLES, SAMPLES }, (double)NAN);
	judge(&(struct told){ t_s, acked, queued, SAMPLES, 2 }, (double)NAN);
	judge(&(struct told){ t_s, acked, queued, SAMPLES, 5 }, (double)NAN);
	judge(&(struct told){ long_s, one, one, LEN(one), LEN(one) }, (double)NAN);
	judge(&(struct told){ at_once, still, still, LEN(still), LEN(still) }, (double)NAN);
	assert_true(isnan(np_beside_own_us(b)));
	assert_true(isnan(np_beside_own_us(NULL)));
}

/* Of 18 the ninth is the median: answered, or not. */
TEST(a_median_needs_half_of_the_answers)
{
	for (uint64_t unanswered = 9; unanswered <= 10; unanswered++) {
		struct np_cli_beside p = { .run = { .unanswered = unanswered } };
		char *said;

		p.run.idle = p.run.loaded = np_hist_new();
		np_hist_record_never(p.run.loaded, unanswered);
		for (uint64_t i = unanswered; i < 18; i++) {
			np_hist_record(p.run.loaded, 1000000);
		}
		said = WRITTEN(out, np_cli_beside_show(&p, true, out));
		assert_true((strstr(said, "; under load P50 1000 us") != NULL) ==
			    (unanswered == 9));
		assert_true((strstr(said, "no median under load: 10 of 18") != NULL) ==
			    (unanswered == 10));
		free(said);
		free(p.run.loaded);
	}
}

TEST_MAIN()
