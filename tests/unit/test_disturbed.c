/*
 * What a controller judges of the time between two of its looks, by prepared files; and what
 * remains of a day of them.
 */
#include "run/disturbed.h"

#include "base/clock.h"
#include "run/clean.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/root.h"

enum { THREAD = 4711, EACH_MS = 100, DAY_S = 86400 };

/* A worker, the controller beside it, and what the kernel says of both, all in ms. */
struct bed {
	const char *root;
	struct np_plan plan;
	struct np_terms terms;
	struct np_counters counters;
	struct np_worker worker;
	struct np_run run;
	struct np_witness witness;
	struct np_disturbed disturbed;
	uint64_t now_ms;
	uint64_t ran, waited, own_ran, own_waited;
	bool slow; /* a look took so long that bytes may be of the interval before it */
};

static void
put_schedstat(const char *root, const char *path, uint64_t ran, uint64_t waited)
{
	char text[64];

	snprintf(text, sizeof(text), "%llu %llu 1\n", (unsigned long long)ran * 1000000,
		 (unsigned long long)waited * 1000000);
	put_file(root, path, text);
}

/* A look that comes that late, and takes that long. */
static void
look(struct bed *b, uint64_t late_ms, uint64_t takes_ms)
{
	uint64_t due = (b->now_ms + EACH_MS) * NP_MSEC, now = due + late_ms * NP_MSEC;
	char path[64];

	put_schedstat(b->root, "/proc/thread-self/schedstat", b->own_ran, b->own_waited);
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", THREAD);
	put_schedstat(b->root, path, b->ran, b->waited);
	np_witness_begin(&b->witness, due, now);
	np_disturbed_look(&b->disturbed, &b->witness, now);
	b->slow = b->slow || b->disturbed.meters.now.took_ns > 5 * NP_MSEC;
	np_witness_done(&b->witness, now + takes_ms * NP_MSEC);
	b->now_ms += EACH_MS + late_ms;
}

static void
begin_on(struct bed *b, const char *root, const char *test, const char *device)
{
	memset(b, 0, sizeof(*b));
	b->root = root;
	client_params(&b->plan, np_bench_find(test), AF_INET, 1);
	b->worker.run = &b->run;
	b->worker.count = &b->counters;
	b->worker.use.thread = THREAD;
	b->worker.stop.wake_fd = device[0] == '\0'; /* 1: no sockets to look at */
	b->run = (struct np_run){ .plan = &b->plan,
				  .terms = &b->terms,
				  .worker = &b->worker,
				  .workers = 1,
				  .window.started_ns = 1000 * NP_SEC };
	b->witness = (struct np_witness){ .root = root, .every_ns = 20 * NP_MSEC };
	b->now_ms = 1000 * 1000;
	np_disturbed_begin(&b->disturbed, root, device, &b->run);
	look(b, 0, 0);
}

static void
begin(struct bed *b, const char *root)
{
	begin_on(b, root, "TCP_STREAM", "");
}

/* The time for which the process stood still, in ms, as far as that is told at all. */
static void
assert_stopped(struct bed *b, uint64_t ms)
{
	assert_int_equal(b->witness.stopped_ns / NP_MSEC, ms);
	assert_int_equal(b->disturbed.held_marks >> NP_R_STOPPED & 1, ms >= 20);
	b->witness.stopped_ns = 0;
}

static void
finish(struct bed *b)
{
	FREED_BY(free_bag) struct np_bag *bag = np_bag_new();

	b->run.window.ended_ns = b->now_ms * NP_MSEC;
	np_disturbed_end(&b->disturbed, &b->witness, bag);
	for (int i = 0; i < NP_WITNESS_THREADS; i++) {
		np_doing_close(&b->witness.thread[i]);
	}
}

TEST_WITH(what_is_late_without_a_reason_was_stopped, root_make, root_remove)
{
	static struct bed b;

	begin(&b, *state);
	b.ran += 90;
	look(&b, 0, 0);
	assert_stopped(&b, 0);
	b.ran += 5;
	look(&b, 400, 0);
	assert_stopped(&b, 400);
	b.own_waited += 400; /* for a processor */
	look(&b, 400, 0);
	assert_stopped(&b, 0);
	finish(&b);
}

/* TCP_INFO takes the lock of a socket, which a sender that never sleeps hardly ever lets go. */
TEST_WITH(a_look_that_waits_for_a_busy_worker_is_no_stop, root_make, root_remove)
{
	static struct bed b;

	begin(&b, *state);
	b.ran += 98;
	look(&b, 0, 80);
	b.ran += 98;
	b.own_ran += 2;
	look(&b, 0, 80);
	assert_stopped(&b, 0);
	b.ran += 60; /* it is not always its turn, and holds the lock then, too */
	b.waited += 38;
	look(&b, 0, 80);
	assert_stopped(&b, 0);
	finish(&b);
}

TEST_WITH(a_stop_within_a_look_is_found, root_make, root_remove)
{
	static struct bed b;

	begin(&b, *state);
	b.ran += 98;
	look(&b, 0, 600);
	b.ran += 98;
	look(&b, 500, 1); /* which is not late, as the one before was in its way */
	assert_stopped(&b, 502);
	finish(&b);
}

TEST_WITH(no_stop_is_where_a_worker_ran, root_make, root_remove)
{
	static struct bed b;

	begin(&b, *state);
	b.ran += 150;
	look(&b, 60, 0);
	assert_stopped(&b, 10);
	b.waited += 150;
	look(&b, 60, 0);
	assert_stopped(&b, 10);
	finish(&b);
}

static void
put_counted(const struct bed *b, const char *way, uint64_t bytes)
{
	char path[64], text[32];

	snprintf(path, sizeof(path), "/sys/class/net/eth9/statistics/%s_bytes", way);
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)bytes);
	put_file(b->root, path, text);
	snprintf(path, sizeof(path), "/sys/class/net/eth9/statistics/%s_packets", way);
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)bytes / 1000);
	put_file(b->root, path, text);
}

/* Another interval; the bytes that the interface has counted so far, and the test has sent. */
static void
carry(struct bed *b, uint64_t counted, uint64_t sent)
{
	put_counted(b, "tx", counted);
	put_counted(b, "rx", 0);
	b->counters.sent = sent;
	b->counters.sends = sent / 1000;
	look(b, 0, 0);
}

static bool
is_foreign(const struct bed *b, size_t i)
{
	const struct np_intervals *all = &b->disturbed.intervals;

	assert_true(i < all->count);
	return all->interval[i].marked_us[NP_R_FOREIGN] > 0;
}

TEST_WITH(own_bytes_may_be_an_interval_late, root_make, root_remove)
{
	static struct bed b;

	do {
		put_counted(&(struct bed){ .root = *state }, "tx", 0);
		begin_on(&b, *state, "UDP_STREAM", "eth9");
		carry(&b, 1000000, 0);
		carry(&b, 1000000, 1000000);
		carry(&b, 2000000, 1000000); /* others' */
		carry(&b, 3000000, 2000000);
		carry(&b, 4000000, 2000000);
		finish(&b);
	} while (b.slow); /* on a busy machine */
	assert_false(is_foreign(&b, 0));
	assert_false(is_foreign(&b, 1));
	assert_true(is_foreign(&b, 2));
	assert_false(is_foreign(&b, 3));
	assert_true(is_foreign(&b, 4));
}

/* After a warm-up workers reset their counts, which the first look may have read before. */
TEST_WITH(counts_that_begin_anew_are_not_judged, root_make, root_remove)
{
	static struct bed b;

	put_counted(&(struct bed){ .root = *state }, "tx", 0);
	begin_on(&b, *state, "UDP_STREAM", "eth9");
	carry(&b, 1000000, 1000000);
	carry(&b, 9000000, 0);
	finish(&b);
	assert_false(is_foreign(&b, 1));
}

/* Fragments may have come whose datagrams never became whole. */
TEST_WITH(others_bytes_are_told_where_datagrams_fit_the_link, root_make, root_remove)
{
	static struct bed b;
	static const struct {
		uint64_t size, received;
		bool foreign;
	} rows[] = { { 1000, 1000000, true }, { 8000, 1000000, false }, { 1000, 0, false } };

	for (size_t i = 0; i < LEN(rows); i++) {
		do {
			put_counted(&(struct bed){ .root = *state }, "rx", 0);
			put_counted(&(struct bed){ .root = *state }, "tx", 0);
			begin_on(&b, *state, "UDP_STREAM", "eth9");
			b.plan.role = NP_FOLLOW;
			b.disturbed.meters.link.mtu = 1500;
			put_counted(&b, "tx", 0);
			put_counted(&b, "rx", 3000000);
			b.counters.received = rows[i].received;
			b.counters.receives = rows[i].received / rows[i].size;
			look(&b, 0, 0);
			finish(&b);
		} while (b.slow);
		assert_int_equal(is_foreign(&b, 0), rows[i].foreign);
	}
}

/* ---- A day ---- */

TEST(a_day_keeps_what_was_marked_in_it)
{
	static struct np_intervals near, far;
	FREED_BY(free_bag) struct np_bag *a = np_bag_new(), *b = np_bag_new();
	struct np_bag_item it;
	struct np_clean *c;
	double used = 0;

	for (uint64_t i = 0; i < DAY_S * UINT64_C(1000) / EACH_MS; i++) {
		struct np_interval seen = { .end_us = (i + 1) * EACH_MS * 1000,
					    .work = 1000,
					    .cpus = 1,
					    .used_us = 64 * (uint64_t)EACH_MS * 1000 };
		/* Each hundred seconds a stop, which has nothing done, and a step of the clock. */
		uint32_t marks = i % 1000 == 0 ? 1 << NP_R_STOPPED | 1 << NP_R_CLOCK : 0;

		np_intervals_keep(&far, seen, 0);
		seen.work = marks != 0 ? 0 : seen.work;
		np_intervals_keep(&near, seen, marks);
	}
	np_intervals_put(&near, a);
	np_intervals_put(&far, b);
	assert_true(np_bag_find(a, "disturbed.used_us", &it));
	for (size_t i = 0; i < it.count; i++) {
		used += (double)it.ints[i];
	}
	assert_near(used / 1e6, 64.0 * DAY_S, 1e-6);
	c = np_clean_judge(a, b, false);
	assert_non_null(c);
	assert_near(c->seconds, DAY_S, 1e-6);
	assert_near(c->clean_s, 0.999 * DAY_S, 1e-6);
	assert_near(c->reason_s[NP_R_STOPPED], 0.001 * DAY_S, 1e-6);
	assert_near(c->near_s[NP_R_CLOCK], 0.001 * DAY_S, 1e-6);
	assert_near(c->far_s[NP_R_CLOCK], 0, 1e-6);
	/* All of the work is in the clean part. */
	assert_near(c->rate_ratio, 1 / 0.999, 1e-6);
	free(c);
	c = np_clean_judge(b, a, true);
	assert_non_null(c);
	assert_near(c->clean_s, 0.999 * DAY_S, 1e-6);
	assert_near(c->far_s[NP_R_STOPPED], 0.001 * DAY_S, 1e-6);
	free(c);
}

TEST_MAIN()
