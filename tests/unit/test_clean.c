/*
 * What is clean of a test: the ends' intervals compared with each other, and the meters that they
 * come from, by prepared files.
 */
#include "base/fds.h"
#include "run/clean.h"

#include "run/repeat.h"
#include "sys/cpu.h"
#include "sys/file.h"
#include "sys/meters.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/records.h"
#include "tests/lib/root.h"

enum { COUNT = 10, EACH_US = 100000 };

/* Ten intervals of 0.1 s, each with 1000 of work. What is in them a test changes. */
struct told {
	int64_t end_us[COUNT], marks[COUNT], work[COUNT], cpus[COUNT];
	int64_t waited_us[COUNT], kept_us[COUNT], short_us[COUNT], used_us[COUNT],
	    stalled_us[COUNT], others_us[COUNT];
};

static struct told
quiet(void)
{
	struct told t;

	memset(&t, 0, sizeof(t));
	for (int i = 0; i < COUNT; i++) {
		t.end_us[i] = (i + 1) * EACH_US;
		t.work[i] = 1000;
		t.cpus[i] = 1;
	}
	return t;
}

/* Marks last as long as their intervals. */
static void
put_marks(struct np_bag *b, const struct told *t)
{
	int64_t list[COUNT];

	for (int r = 0; r < NP_MARKS; r++) {
		for (int i = 0; i < COUNT; i++) {
			bool marked =
			    r == NP_R_ANY ? t->marks[i] != 0 : (t->marks[i] >> r & 1) != 0;

			list[i] = marked ? t->end_us[i] - (i > 0 ? t->end_us[i - 1] : 0) : 0;
		}
		np_bag_ints(b, list, COUNT, "disturbed.%s_us", np_reason_name((enum np_reason)r));
	}
	for (int i = 0; i < COUNT; i++) {
		list[i] = t->marks[i] != 0 ? t->work[i] : 0;
	}
	np_bag_ints(b, list, COUNT, "disturbed.marked_work");
}

static struct np_bag *
told_bag(const struct told *t, const char *boot)
{
	struct np_bag *b = np_bag_new();

	np_bag_real(b, 0.1, "disturbed.every_s");
	np_bag_ints(b, t->end_us, COUNT, "disturbed.end_us");
	put_marks(b, t);
	np_bag_ints(b, t->work, COUNT, "disturbed.work");
	np_bag_ints(b, t->cpus, COUNT, "disturbed.cpus");
	np_bag_ints(b, t->waited_us, COUNT, "disturbed.waited_us");
	np_bag_ints(b, t->kept_us, COUNT, "disturbed.kept_us");
	np_bag_ints(b, t->short_us, COUNT, "disturbed.short_us");
	np_bag_ints(b, t->used_us, COUNT, "disturbed.used_us");
	np_bag_ints(b, t->stalled_us, COUNT, "disturbed.stalled_us");
	np_bag_ints(b, t->others_us, COUNT, "disturbed.others_us");
	np_bag_text(b, boot, "clock.boot");
	return b;
}

/* Valid until the next one. */
static const struct np_clean *
judged_by_bags(const struct np_bag *near, const struct np_bag *far, bool far_counts)
{
	static struct np_clean *last;

	free(last);
	last = np_clean_judge(near, far, far_counts);
	assert_non_null(last);
	return last;
}

/* far NULL: it tells nothing. */
static const struct np_clean *
judged(const struct told *near, const struct told *far, bool one_machine)
{
	FREED_BY(free_bag) struct np_bag *a = told_bag(near, "here"), *b = NULL;

	b = far != NULL ? told_bag(far, one_machine ? "here" : "there") : NULL;
	return judged_by_bags(a, b, true);
}

TEST(what_nobody_marks_is_clean)
{
	struct told near = quiet(), far = quiet();
	const struct np_clean *c = judged(&near, &far, false);
	char text[NP_CLEAN_TEXT];

	assert_near(c->seconds, 1, 1e-9);
	assert_near(c->clean_s, 1, 1e-9);
	assert_near(c->rate_ratio, 1, 1e-9);
	assert_int_equal(c->runs, 0);
	assert_true(c->by_far && c->far_reported && c->switches_why == NULL);
	assert_string_equal(np_clean_reasons(c->reason_s, text), "none");
}

TEST(the_marks_of_either_end_count_and_are_put_together)
{
	struct told near = quiet(), far = quiet();
	const struct np_clean *c;
	char text[NP_CLEAN_TEXT];

	near.marks[2] = near.marks[3] = 1 << NP_R_STEAL;
	far.marks[3] = far.marks[7] = 1 << NP_R_FOREIGN;
	for (int i = 2; i < 8; i++) {
		far.work[i] = i == 4 || i == 5 || i == 6 ? 1000 : 500;
	}
	c = judged(&near, &far, false);
	assert_near(c->clean_s, 0.7, 1e-9);
	assert_near(c->reason_s[NP_R_STEAL], 0.2, 1e-9);
	assert_near(c->reason_s[NP_R_FOREIGN], 0.2, 1e-9);
	assert_near(c->near_s[NP_R_STEAL], 0.2, 1e-9);
	assert_near(c->near_s[NP_R_FOREIGN], 0, 1e-9);
	assert_near(c->far_s[NP_R_FOREIGN], 0.2, 1e-9);
	/* 7000 in 0.7 s, where all have 8500 in 1 s. */
	assert_near(c->rate_ratio, 10000 / 8500.0, 1e-9);
	assert_int_equal(c->runs, 3);
	assert_near(c->run[1].from_s, 0.3, 1e-9);
	assert_near(c->run[1].to_s, 0.4, 1e-9);
	assert_int_equal(c->run[1].marks, 1 << NP_R_STEAL | 1 << NP_R_FOREIGN);
	assert_string_equal(np_clean_reasons(c->reason_s, text), "steal:0.2 foreign:0.2");
}

/* The grids of two ends differ by what the window's begin does. */
TEST(a_touch_is_no_disturbance)
{
	struct told near = quiet(), far = quiet();
	const struct np_clean *c;

	for (int i = 0; i < COUNT; i++) {
		near.end_us[i] += 5000;
	}
	near.marks[4] = 1 << NP_R_STOPPED;
	c = judged(&near, &far, false);
	assert_near(c->clean_s, 0.9, 1e-9);
	assert_near(c->run[0].from_s, 0.4, 1e-9);
}

TEST(who_waits_for_others_is_disturbed)
{
	struct told near = quiet(), far = quiet();
	const struct np_clean *c;

	near.kept_us[1] = near.waited_us[1] = (int64_t)(NP_D_WAITED * EACH_US) + 1;
	near.kept_us[3] = near.waited_us[3] = (int64_t)(NP_D_WAITED * EACH_US) - 1;
	near.used_us[1] = near.used_us[3] = 50000;
	far.used_us[1] = far.used_us[3] = 90000;
	c = judged(&near, &far, false);
	assert_near(c->near_s[NP_R_SWITCHES], 0.1, 1e-9);
	assert_near(c->run[0].from_s, 0.1, 1e-9);
	/* The other end is no other, where it took the processor. */
	c = judged(&near, &far, true);
	assert_near(c->clean_s, 1, 1e-9);
	/* Nor is the kernel, for what wakes a worker. */
	near.short_us[1] = near.kept_us[1];
	c = judged(&near, &far, false);
	assert_near(c->clean_s, 1, 1e-9);
	near.short_us[1] = 0;
	for (int i = 0; i < COUNT; i++) {
		far.cpus[i] = 2;
	}
	c = judged(&near, &far, true);
	assert_near(c->near_s[NP_R_SWITCHES], 0.1, 1e-9);
}

TEST(who_wants_little_is_kept_from_it_soon)
{
	struct told near = quiet(), far = quiet();
	const struct np_clean *c;

	for (int i = 2; i < 5; i++) {
		near.kept_us[i] = (int64_t)(NP_D_TOUCHED * EACH_US) + 1 - (i == 4) * 1000;
	}
	near.used_us[3] = 2 * near.kept_us[3];
	c = judged(&near, &far, false);
	assert_near(c->near_s[NP_R_SWITCHES], 0.1, 1e-9);
	assert_near(c->run[0].from_s, 0.2, 1e-9);
}

TEST(a_long_wait_was_there_before_it_was_told)
{
	struct told near = quiet(), far = quiet();
	const struct np_clean *c;

	near.kept_us[6] = 3 * EACH_US;
	c = judged(&near, &far, false);
	assert_near(c->reason_s[NP_R_SWITCHES], 0.3, 1e-9);
	assert_near(c->run[0].from_s, 0.4, 1e-9);
	assert_near(c->run[0].to_s, 0.7, 1e-9);
}

TEST(pressure_takes_a_crowd_and_a_worker_in_it)
{
	struct told near = quiet(), far = quiet();
	const struct np_clean *c;

	for (int i = 1; i < 5; i++) {
		near.stalled_us[i] = 50000;
	}
	near.used_us[2] = near.used_us[3] = 50000;
	near.waited_us[2] = near.kept_us[2] = (int64_t)(NP_D_TOUCHED * EACH_US) + 1;
	near.waited_us[3] = 50000; /* they are the test's own, as far as that explains it */
	near.kept_us[3] = (int64_t)(NP_D_TOUCHED * EACH_US) + 1;
	c = judged(&near, &far, false);
	assert_near(c->reason_s[NP_R_PRESSURE], 0.1, 1e-9);
	assert_near(c->run[0].from_s, 0.2, 1e-9);
}

TEST(programs_on_a_workers_processor_count_but_for_the_far_end)
{
	struct told near = quiet(), far = quiet();
	const struct np_clean *c;

	near.others_us[1] = (int64_t)(NP_D_OTHERS * EACH_US) - 1;
	near.others_us[2] = near.others_us[3] = near.others_us[4] = 90000;
	far.used_us[3] = 80000;
	far.used_us[4] = 80000;
	far.cpus[4] = 2;
	c = judged(&near, &far, true);
	assert_near(c->near_s[NP_R_PROCESSOR], 0.2, 1e-9); /* the third is the far end's own work */
	c = judged(&near, &far, false);
	assert_near(c->near_s[NP_R_PROCESSOR], 0.3, 1e-9);
	assert_near(c->far_s[NP_R_PROCESSOR], 0, 1e-9);
}

TEST(a_far_end_that_tells_nothing_is_no_reason_to_guess)
{
	struct told near = quiet();
	FREED_BY(free_bag) struct np_bag *b = NULL;
	const struct np_clean *c;

	near.marks[0] = 1 << NP_R_CLOCK;
	near.kept_us[5] = 50000;
	c = judged(&near, NULL, false);
	assert_false(c->far_reported || c->by_far);
	assert_near(c->reason_s[NP_R_SWITCHES], 0.1, 1e-9);
	assert_near(c->clean_s, 0.8, 1e-9);
	/* Here who took the processor may have been the far end. */
	b = told_bag(&near, "here");
	np_bag_int(b, 1, "disturbed.peer_here");
	c = judged_by_bags(b, NULL, true);
	assert_non_null(c->switches_why);
	assert_near(c->clean_s, 0.9, 1e-9);
	assert_null(np_clean_judge(NULL, NULL, true));
}

/* A far end is a stranger. */
TEST(nonsense_is_left_out)
{
	struct told near = quiet(), far = quiet();
	FREED_BY(free_bag) struct np_bag *a = told_bag(&near, "here"), *b = NULL;
	const struct np_clean *c;

	far.end_us[5] = far.end_us[4];
	far.work[1] = INT64_MIN;
	far.used_us[2] = INT64_MAX;
	far.marks[3] = INT64_MAX;
	c = judged(&near, &far, true);
	assert_near(c->seconds, 0.5, 1e-9);
	assert_near(c->clean_s, 0.4, 1e-9);
	b = told_bag(&far, "there");
	np_bag_ints(b, far.work, COUNT - 1, "disturbed.work");
	c = judged_by_bags(a, b, true);
	assert_false(c->far_reported);
}

TEST(a_far_end_can_not_make_the_test_longer)
{
	struct told near = quiet(), far = quiet();
	const struct np_clean *c;

	far.end_us[COUNT - 1] = INT64_C(1) << 52; /* 142 years, and clean */
	c = judged(&near, &far, false);
	assert_near(c->seconds, 2, 1e-9);
	for (int i = 0; i < COUNT; i++) {
		far.end_us[i] = (INT64_C(1) << 52) + i;
	}
	c = judged(&near, &far, false);
	assert_near(c->seconds, 2, 1e-9);
}

/* It opens 0.3 s before data come, which then are disturbed for 0.3 of 0.7 s. */
TEST(a_far_window_begins_with_its_data)
{
	struct told near = quiet(), far = quiet();
	const struct np_clean *c;

	for (int i = 0; i < COUNT; i++) {
		near.end_us[i] = (i + 1) * 7 * EACH_US / COUNT;
		far.work[i] = i < 3 ? 0 : 1000;
		far.marks[i] = i < 7 ? 0 : 1 << NP_R_STEAL;
	}
	c = judged(&near, &far, false);
	assert_near(c->seconds, 0.7, 1e-9);
	assert_near(c->clean_s, 0.4, 1e-9);
	assert_near(c->rate_ratio, 1, 1e-9);
	assert_near(c->run[0].from_s, 0.4, 1e-9);
	/* What comes late although the window is no longer was lost on the way. */
	near = quiet();
	assert_near(judged(&near, &far, false)->seconds, 1, 1e-9);
}

/* Each session knows the bytes of its own connections, and the interface has those of all. */
TEST(other_sessions_bytes_are_not_foreign)
{
	struct told near = quiet(), far = quiet();
	FREED_BY(free_bag) struct np_bag *a = NULL, *b = NULL;
	const struct np_clean *c;

	for (int i = 0; i < COUNT; i++) {
		near.marks[i] = far.marks[i] = 1 << NP_R_FOREIGN;
	}
	far.marks[3] |= 1 << NP_R_STEAL;
	a = told_bag(&near, "here");
	b = told_bag(&far, "there");
	np_bag_int(a, 2, "flow.sessions");
	c = judged_by_bags(a, b, false);
	assert_non_null(c->foreign_why);
	assert_near(c->reason_s[NP_R_FOREIGN], 0, 1e-9);
	assert_near(c->clean_s, 0.9, 1e-9);
	c = judged(&near, &far, false);
	assert_null(c->foreign_why);
	assert_near(c->clean_s, 0, 1e-9);
}

TEST(a_test_that_carries_nothing_may_be_clean)
{
	struct told near = quiet(), far = quiet();
	const struct np_clean *c;

	memset(far.work, 0, sizeof(far.work));
	c = judged(&near, &far, false);
	assert_near(c->clean_s, 1, 1e-9);
	assert_near(c->rate_ratio, 1, 1e-9);
}

/* ---- Until there is enough ---- */

static void
iterate(struct np_repeat *r, double seconds, double clean_s, double rate)
{
	FREED_BY(free_memory) struct np_hist *hist = np_hist_new();
	struct np_clean clean = { .seconds = seconds, .clean_s = clean_s };
	struct np_record record;
	struct np_err err;

	memset(&record, 0, sizeof(record));
	clean.reason_s[NP_R_STEAL] = seconds - clean_s;
	np_record_real(&record, NP_M_THROUGHPUT, rate);
	np_record_real(&record, NP_M_ELAPSED_TIME, seconds);
	if (clean_s > 0) {
		np_record_real(&record, NP_M_CLEAN_THROUGHPUT, 2 * rate);
	}
	assert_int_equal(np_repeat_add(r, &record, hist, &clean, &err), NP_OK);
}

TEST(iterations_last_as_long_as_what_is_missing)
{
	FREED_BY(np_repeat_free)
	struct np_repeat r = { .plan = { .max = 1, .min = 1, .clean_s = 10, .at_most_s = 20 } };
	struct np_record record;

	memset(&record, 0, sizeof(record));
	assert_int_equal(np_repeat_next_s(&r), 10);
	iterate(&r, 10, 6, 100);
	assert_true(np_repeat_more(&r));
	assert_int_equal(np_repeat_next_s(&r), 4);
	iterate(&r, 4, 3.5, 30);
	assert_true(np_repeat_more(&r) && np_repeat_unclean(&r));
	assert_int_equal(np_repeat_next_s(&r), 1);
	iterate(&r, 1, 0.5, 60);
	assert_false(np_repeat_more(&r) || np_repeat_unclean(&r));
	np_repeat_conclude(&r, false, &record);
	assert_figures(&record, "THROUGHPUT=1180/15 ELAPSED_TIME=15 CLEAN_SECONDS=10 "
				"CLEAN_THROUGHPUT=1470/10 DISTURBED_SHARE=1/3 "
				"DISTURBED_REASONS=steal:5.0");
}

TEST(and_end_where_the_bound_is)
{
	FREED_BY(np_repeat_free)
	struct np_repeat r = { .plan = { .max = 1, .min = 1, .clean_s = 4, .at_most_s = 7 } };

	iterate(&r, 4, 0, 100);
	assert_true(np_repeat_more(&r));
	assert_int_equal(np_repeat_next_s(&r), 3);
	iterate(&r, 3, 1, 100);
	assert_false(np_repeat_more(&r));
	assert_true(np_repeat_unclean(&r));
}

TEST(where_nobody_looks_there_is_no_second_one)
{
	FREED_BY(np_repeat_free)
	struct np_repeat r = { .plan = { .max = 1, .min = 1, .clean_s = 4, .at_most_s = 7 } };
	FREED_BY(free_memory) struct np_hist *hist = np_hist_new();
	struct np_record record;
	struct np_err err;

	memset(&record, 0, sizeof(record));
	np_record_real(&record, NP_M_ELAPSED_TIME, 4);
	assert_int_equal(np_repeat_add(&r, &record, hist, NULL, &err), NP_OK);
	assert_false(np_repeat_more(&r));
}

/* ---- The meters ---- */

static void
put_machine(const char *root, int steal, int stalled, int squeezed)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 100 %d 2 300 5 6 7 %d 0 0\n"
		 "cpu12 100 %d 2 900 %d 6 7 1 0 0\nintr 1 2 3\nctxt 4\n",
		 steal * 10, steal, squeezed / 2 * 7, squeezed / 2 * 15);
	put_file(root, "/proc/stat", text);
	snprintf(text, sizeof(text),
		 "some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\nfull avg10=0.00 total=0\n",
		 stalled);
	put_file(root, "/proc/pressure/cpu", text);
	snprintf(text, sizeof(text), "0000abcd 00000001 %08x 0 0\n00000001 00000000 0000000a 0 0\n",
		 squeezed);
	put_file(root, "/proc/net/softnet_stat", text);
}

TEST_WITH(meters_tell_of_two_looks, root_make, root_remove)
{
	const char *root = *state;
	static struct np_meters m;
	const struct np_meters_seen *from = &m.before, *to = &m.now;
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	struct np_cpu_ticks did;
	struct np_bag_item it;

	put_machine(root, 7, 1000, 0x10);
	put_file(root, "/sys/devices/system/cpu/cpu12/cpufreq/scaling_cur_freq", "3100000\n");
	put_file(root, "/sys/devices/system/cpu/cpu12/thermal_throttle/core_throttle_count", "4\n");
	put_file(root, "/sys/devices/system/cpu/cpu12/thermal_throttle/package_throttle_count",
		 "5\n");
	np_meters_open(&m, root, "");
	np_meters_look(&m, UINT64_C(1) << 12);
	put_machine(root, 9, 3500, 0x12);
	put_file(root, "/sys/devices/system/cpu/cpu12/cpufreq/scaling_cur_freq", "1200000\n");
	np_meters_look(&m, UINT64_C(1) << 12);
	assert_true(np_cpu_ticks(from->cpus, to->cpus, 0, &did));
	assert_int_equal(did.steal, 2);
	assert_int_equal(did.user, 20);
	assert_true(np_cpu_ticks(from->cpus, to->cpus, 12, &did));
	assert_int_equal(did.user, 7);
	assert_int_equal(did.idle + did.iowait, 15);
	assert_false(np_cpu_ticks(from->cpus, to->cpus, 3, &did));
	assert_false(np_cpu_ticks(NULL, to->cpus, 0, &did));
	assert_int_equal(did.user, 0);
	assert_int_equal(from->stalled_us, 1000);
	assert_int_equal(to->stalled_us, 3500);
	assert_int_equal(from->squeezed, 0x1a);
	assert_int_equal(to->squeezed, 0x1c);
	assert_int_equal(m.cpu[0].cpu, 12);
	assert_int_equal(m.cpu[0].khz, 1200000);
	assert_int_equal(m.cpu[0].throttled, 9);
	assert_true(m.cpu[0].near);
	np_meters_look(&m, UINT64_C(1) << 3); /* the test has gone elsewhere */
	assert_true(!m.cpu[0].near && m.cpu[1].near && m.cpu[1].cpu == 3);
	assert_true(llabs(to->ahead_ns - from->ahead_ns) < 10000000 && !to->has_link);
	np_meters_put_unread(&m, b);
	assert_false(np_bag_at(b, 0, &it));
	np_meters_close(&m);
}

/* softnet_stat of more than 30 processors is one, which this machine may not have. */
TEST(a_file_that_comes_in_parts_is_read_to_its_end)
{
	static char text[12 << 10];
	int fd = np_file_open("", "/proc/self/smaps");
	char *all;
	long first;

	skip_if(fd < 0, "%s", strerror(errno));
	first = np_file_again(text, sizeof(text), fd);
	assert_in_range(first, 1, 4096);
	all = np_file_all("", "/proc/self/smaps");
	assert_non_null(all);
	assert_true(strlen(all) > (size_t)first);
	free(all);
	np_fds_close(fd);
	assert_int_equal(np_file_again(text, sizeof(text), -1), -EBADF);
	assert_string_equal(text, "");
	assert_int_equal(np_file_open("", "/nowhere/at/all"), -ENOENT);
}

TEST_WITH(an_interrupt_that_goes_elsewhere_is_seen, root_make, root_remove)
{
	const char *root = *state;
	static struct np_meters m;

	put_machine(root, 0, 0, 0);
	put_link(root, "/sys/class/net/net7/device", "../../../virtio3");
	put_file(root, "/proc/interrupts",
		 "           CPU0       CPU1\n 24:  1  2  PCI-MSI 1-edge  virtio3-input.0\n"
		 " 25:  1  2  PCI-MSI 2-edge  virtio4-input.0\n");
	put_file(root, "/proc/irq/24/effective_affinity_list", "0\n");
	put_file(root, "/proc/irq/25/effective_affinity_list", "0\n");
	np_meters_open(&m, root, "net7");
	assert_int_equal(m.irqs, 1);
	np_meters_look(&m, 0);
	assert_int_equal(m.now.irqs_moved, 0);
	put_file(root, "/proc/irq/25/effective_affinity_list", "1\n"); /* another interface's */
	np_meters_look(&m, 0);
	assert_int_equal(m.now.irqs_moved, 0);
	put_file(root, "/proc/irq/24/effective_affinity_list", "1\n");
	np_meters_look(&m, 0);
	assert_int_equal(m.now.irqs_moved, 1);
	np_meters_look(&m, 0);
	assert_int_equal(m.now.irqs_moved, 1);
	np_meters_close(&m);
}

TEST_WITH(a_meter_that_is_missing_says_so, root_make, root_remove)
{
	static struct np_meters m;
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();

	np_meters_open(&m, *state, "");
	np_meters_look(&m, 1);
	assert_int_equal(m.now.stalled_us, -1);
	assert_int_equal(m.now.squeezed, -1);
	np_meters_put_unread(&m, b);
	assert_bag(b, "disturbed.",
		   "steal=?'No such file' pressure=?'No such file' squeezed=?'No such file'");
	np_meters_close(&m);
}

TEST_MAIN()
