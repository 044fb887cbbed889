/*
 * When a test is run again, and what all its runs come to.
 */
#include "run/repeat.h"

#include "base/err.h"
#include "run/clean.h"
#include "tests/lib/check.h"
#include "tests/lib/records.h"

/* One more iteration of that throughput, length and CPU utilisation, with one sample of `us`. */
static void
iterate_for(struct np_repeat *r, double throughput, double seconds, double cpu, uint64_t us)
{
	FREED_BY(free_memory) struct np_hist *hist = np_hist_new();
	struct np_record record;
	struct np_err err;

	memset(&record, 0, sizeof(record));
	np_record_real(&record, NP_M_THROUGHPUT, throughput);
	np_record_real(&record, NP_M_ELAPSED_TIME, seconds);
	np_record_real(&record, NP_M_LOCAL_CPU_UTIL, cpu);
	np_hist_record(hist, us * 1000);
	assert_int_equal(np_repeat_add(r, &record, hist, NULL, &err), NP_OK);
}

static void
iterate(struct np_repeat *r, double throughput, double cpu, uint64_t us)
{
	iterate_for(r, throughput, 1, cpu, us);
}

TEST(without_confidence_a_test_runs_once)
{
	FREED_BY(np_repeat_free)
	struct np_repeat r = { .plan = { .max = 1, .min = 1, .width = -1 } };
	struct np_record record;

	memset(&record, 0, sizeof(record));
	iterate(&r, 10, -1, 5);
	assert_false(np_repeat_more(&r));
	assert_false(np_repeat_missed(&r));
	np_repeat_conclude(&r, false, &record);
	assert_figures(&record, "CONFIDENCE_ITERATION=1 CONFIDENCE_LEVEL=0 CONFIDENCE_INTERVAL=-1 "
				"THROUGHPUT_CONFID=-1 MIN_LATENCY=-1");
}

TEST(it_goes_on_until_the_result_is_sure)
{
	FREED_BY(np_repeat_free)
	struct np_repeat r = { .plan = { .max = 10, .min = 3, .level = 99, .width = 5 } };

	iterate(&r, 100, -1, 5);
	assert_true(np_repeat_more(&r) && np_repeat_missed(&r));
	iterate(&r, 100, -1, 5);
	assert_true(np_repeat_more(&r)); /* sure, but fewer than asked for */
	iterate(&r, 120, -1, 5);
	assert_true(np_repeat_more(&r) && np_repeat_missed(&r));
	while (np_repeat_more(&r)) {
		iterate(&r, 106, -1, 5);
	}
	assert_int_equal(r.done, 10);
	assert_true(np_repeat_missed(&r));
}

TEST(it_stops_once_the_result_is_sure)
{
	FREED_BY(np_repeat_free)
	struct np_repeat r = { .plan = { .max = 30, .min = 3, .level = 95, .width = 50 } };

	while (np_repeat_more(&r)) {
		iterate(&r, r.done % 2 == 0 ? 100 : 101, -1, 5);
	}
	assert_int_equal(r.done, 3);
	assert_false(np_repeat_missed(&r));
}

/* CPU figures that vary keep it going, unless only the result matters. */
TEST(cpu_figures_count_unless_told_otherwise)
{
	FREED_BY(np_repeat_free)
	struct np_repeat r = { .plan = { .max = 5, .min = 3, .level = 95, .width = 5 } };

	for (int i = 0; i < 3; i++) {
		iterate(&r, 100, 10 + 20 * i, 5);
	}
	assert_true(np_repeat_more(&r) && np_repeat_missed(&r));
	r.plan.result_only = true;
	assert_false(np_repeat_more(&r) || np_repeat_missed(&r));
}

TEST(the_conclusion_is_over_all_iterations)
{
	FREED_BY(np_repeat_free)
	struct np_repeat r = { .plan = { .max = 4, .min = 4, .level = 95, .width = 5 } };
	struct np_record record;

	memset(&record, 0, sizeof(record));
	iterate(&r, 90, 20, 10);
	iterate(&r, 110, 30, 1000);
	np_repeat_conclude(&r, true, &record);
	assert_figures(&record, "THROUGHPUT=100 LOCAL_CPU_UTIL=25 MIN_LATENCY=10 MAX_LATENCY=1000 "
				"CONFIDENCE_ITERATION=2");
	/* 2 x 12.706 x sqrt(100 / 1) / 100, in percent. */
	assert_true(np_record_get_real(&record, NP_M_THROUGHPUT_CONFID) > 254.11);
	assert_true(np_record_get_real(&record, NP_M_THROUGHPUT_CONFID) < 254.13);
	assert_figures(&record, "REMOTE_CPU_CONFID=0");
}

TEST(a_cut_iteration_counts_by_its_time)
{
	FREED_BY(np_repeat_free)
	struct np_repeat r = { .plan = { .max = 3, .min = 3, .width = -1 } };
	struct np_record record;

	memset(&record, 0, sizeof(record));
	iterate_for(&r, 80, 2, 50, 10);
	iterate_for(&r, 80, 2, 50, 10);
	iterate_for(&r, 35, 0.5, -1, 10);
	r.cut = true;
	np_repeat_conclude(&r, false, &record);
	assert_figures(&record, "THROUGHPUT=75 LOCAL_CPU_UTIL=50 ELAPSED_TIME=1.5");
}

TEST(an_unknown_figure_is_not_part_of_its_mean)
{
	for (int clean_s = 0; clean_s < 2; clean_s++) {
		FREED_BY(np_repeat_free)
		struct np_repeat r = { .plan = { .level = 95, .width = 5, .clean_s = clean_s } };
		struct np_record record;

		memset(&record, 0, sizeof(record));
		iterate(&r, 90, 20, 10);
		iterate(&r, 110, -1, 10);
		np_repeat_conclude(&r, false, &record);
		assert_figures(
		    &record,
		    "THROUGHPUT=100 LOCAL_CPU_UTIL=20 LOCAL_CPU_CONFID=0 REMOTE_CPU_UTIL=-1");
	}
}

/* One figure is one number in all outputs, but a sum of products divided again may differ. */
TEST(of_one_iteration_the_clean_throughput_is_the_mean)
{
	static const double seconds[] = { 0.83, 0.991, 1.0 / 3 };

	for (size_t i = 0; i < LEN(seconds); i++) {
		FREED_BY(np_repeat_free)
		struct np_repeat r = { .plan = { .max = 1, .min = 1, .width = -1 } };
		const struct np_clean clean = { .seconds = 1, .clean_s = seconds[i] };
		FREED_BY(free_memory) struct np_hist *hist = np_hist_new();
		struct np_record record;
		struct np_err err;

		memset(&record, 0, sizeof(record));
		for (double throughput = 97700.38; throughput < 97800; throughput++) {
			r.clean = (struct np_repeat_clean){ .seconds = 0 };
			np_record_real(&record, NP_M_CLEAN_THROUGHPUT, throughput);
			np_repeat_add(&r, &record, hist, &clean, &err);
			assert_true(r.clean.throughput == throughput);
		}
		np_record_real(&record, NP_M_CLEAN_THROUGHPUT, 0);
		np_repeat_add(&r, &record, hist, &clean, &err);
		assert_float_equal(r.clean.throughput, 97799.38 / 2, 1e-6);
	}
}

TEST_MAIN()
