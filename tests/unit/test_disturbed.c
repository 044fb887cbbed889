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
begin(struct bed *b, const char *root, const char *test, const char *device)
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
finish(struct bed *b)
{
	FREED_BY(free_bag) struct np_bag *bag = np_bag_new();

	b->run.window.ended_ns = b->now_ms * NP_MSEC;
	np_disturbed_end(&b->disturbed, &b->witness, bag);
	for (int i = 0; i < NP_WITNESS_THREADS; i++) {
		np_doing_close(&b->witness.thread[i]);
	}
}

/* A look, before which a worker and the controller ran and waited for these ms. */
struct step {
	const char *what; /* of which this is the first; NULL: of the same */
	uint64_t ran, waited, own_ran, own_waited, late_ms, takes_ms;
	int64_t stopped_ms; /* for which the process is found to have stood still; TO_COME: later */
};

enum { TO_COME = -1 };

static void
take_step(struct bed *b, const struct step *s)
{
	b->ran += s->ran;
	b->waited += s->waited;
	b->own_ran += s->own_ran;
	b->own_waited += s->own_waited;
	look(b, s->late_ms, s->takes_ms);
	if (s->stopped_ms != TO_COME) {
		fail_if(b->witness.stopped_ns / NP_MSEC != (uint64_t)s->stopped_ms, "%llu ms",
			(unsigned long long)b->witness.stopped_ns / NP_MSEC);
		assert_int_equal(b->disturbed.held_marks >> NP_R_STOPPED & 1, s->stopped_ms >= 20);
		b->witness.stopped_ns = 0;
	}
}

TEST_WITH(what_nothing_else_explains_was_a_stop, root_make, root_remove)
{
	static const struct step steps[] = {
		{ "what is late without a reason", .ran = 90 },
		{ .ran = 5, .late_ms = 400, .stopped_ms = 400 },
		{ .own_waited = 400, .late_ms = 400 }, /* for a processor */
		/* TCP_INFO takes the lock of a socket, which a sender that never sleeps hardly ever
		 * lets go. */
		{ "a look that waits for a busy worker", .ran = 98, .takes_ms = 80,
		  .stopped_ms = TO_COME },
		{ .ran = 98, .own_ran = 2, .takes_ms = 80 },
		/* It is not always its turn, and holds the lock then, too. */
		{ .ran = 60, .waited = 38, .takes_ms = 80 },
		{ "a stop within a look", .ran = 98, .takes_ms = 600, .stopped_ms = TO_COME },
		/* This is not late, as the one before was in its way. */
		{ .ran = 98, .late_ms = 500, .takes_ms = 1, .stopped_ms = 502 },
		{ "where a worker ran", .ran = 150, .late_ms = 60, .stopped_ms = 10 },
		{ .waited = 150, .late_ms = 60, .stopped_ms = 10 },
	};
	static struct bed b;

	for (size_t i = 0; i < LEN(steps); i++) {
		if (steps[i].what != NULL) {
			printf("%s\n", steps[i].what);
			begin(&b, *state, "TCP_STREAM", "");
		}
		take_step(&b, &steps[i]);
		if (i + 1 == LEN(steps) || steps[i + 1].what != NULL) {
			finish(&b);
		}
	}
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
		begin(&b, *state, "UDP_STREAM", "eth9");
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
	begin(&b, *state, "UDP_STREAM", "eth9");
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
			begin(&b, *state, "UDP_STREAM", "eth9");
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
