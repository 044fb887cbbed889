/*
 * bench/load.h: when operations may begin, by each kind of load. Times are the test's, but where a
 * worker sleeps.
 */
#include "bench/load.h"

#include "base/clock.h"
#include "bench/run.h"
#include "tests/lib/check.h"

enum { BURST = 3, INTERVAL_US = 20000 };

static const uint64_t START = 1000, INTERVAL = INTERVAL_US * 1000ull;

static struct np_end
paced_end(uint32_t burst, uint32_t interval_us)
{
	struct np_end e = { .call = { .interval_burst = burst, .interval_us = interval_us } };

	return e;
}

static void
begin(struct np_load *l, const struct np_end *e, uint32_t conns, bool begun, uint64_t now)
{
	np_load_begin(l, e, now);
	np_load_add(l, e, conns, begun);
}

/* How many operations begin at that time, one upon the other; at most 100. */
static int
begin_all(struct np_load *l, uint64_t now)
{
	int n = 0;

	while (n < 100 && np_load_may(l, now)) {
		n++;
	}
	return n;
}

TEST(a_closed_load_holds_nothing)
{
	struct np_end e = paced_end(0, 5000);
	struct np_load l;

	assert_ptr_equal(np_load_of(&e), &np_load_closed);
	begin(&l, &e, 1, false, START);
	assert_int_equal(begin_all(&l, START), 100);
	assert_int_equal(np_load_pause_of(&e), 0);
}

TEST(a_burst_begins_at_once_and_the_next_when_it_is_due)
{
	struct np_end e = paced_end(BURST, INTERVAL_US);
	struct np_load l;

	assert_ptr_equal(np_load_of(&e), &np_load_paced);
	begin(&l, &e, 1, false, START);
	assert_int_equal(begin_all(&l, START), BURST);
	assert_int_equal(l.due_ns, START + INTERVAL);
	assert_false(np_load_may(&l, START + INTERVAL - 1));
	assert_int_equal(begin_all(&l, START + INTERVAL), BURST);
	assert_int_equal(l.paced_ns, INTERVAL);
}

TEST(a_burst_is_that_of_each_connection)
{
	struct np_end e = paced_end(BURST, INTERVAL_US), most = paced_end(UINT32_MAX, INTERVAL_US);
	struct np_load l;

	begin(&l, &e, 4, true, START);
	assert_int_equal(begin_all(&l, START), 4 * BURST - 4);
	assert_int_equal(begin_all(&l, START + INTERVAL), 4 * BURST);
	np_load_add(&l, &e, 1, false);
	assert_int_equal(begin_all(&l, START + INTERVAL), BURST);
	assert_int_equal(begin_all(&l, START + 2 * INTERVAL), 5 * BURST);
	begin(&l, &most, 2, false, START);
	assert_int_equal(l.burst, UINT32_MAX);
}

TEST(what_is_under_way_is_a_part_of_the_first_burst)
{
	struct np_end e = paced_end(BURST, INTERVAL_US);
	struct np_load l;

	begin(&l, &e, 1, true, START);
	assert_int_equal(begin_all(&l, START), BURST - 1);
}

TEST(intervals_follow_each_other_without_drift)
{
	struct np_end e = paced_end(1, INTERVAL_US);
	struct np_load l;

	begin(&l, &e, 1, false, START);
	for (uint64_t i = 0; i < 5; i++) {
		/* Whoever waits is late by something each time, and has asked when the burst was
		 * over. */
		assert_int_equal(begin_all(&l, START + i * INTERVAL + 777), 1);
		assert_int_equal(l.due_ns, START + (i + 1) * INTERVAL);
	}
	assert_int_equal(l.paced_ns, 4 * INTERVAL);
}

TEST(what_was_missed_is_not_caught_up_with)
{
	struct np_end e = paced_end(1, INTERVAL_US);
	struct np_load l;
	uint64_t late = START + 10 * INTERVAL + 5;

	begin(&l, &e, 1, false, START);
	assert_true(np_load_may(&l, START));
	/* The burst took ten intervals: the next one begins there and then, and is a whole one. */
	assert_int_equal(begin_all(&l, late), 1);
	assert_int_equal(l.due_ns, late + INTERVAL);
	assert_int_equal(l.paced_ns, 0);
	assert_int_equal(begin_all(&l, late + INTERVAL), 1);
	assert_int_equal(l.paced_ns, INTERVAL);
	/* So it does if connections took turns meanwhile. */
	begin(&l, &e, 1, false, START);
	assert_true(np_load_may(&l, START));
	np_load_block(&l, START + 1);
	assert_int_equal(begin_all(&l, late), 1);
	assert_int_equal(l.due_ns, late + INTERVAL);
}

TEST(a_pace_ends_with_its_window)
{
	struct np_end e = paced_end(BURST, INTERVAL_US);
	uint64_t until = START + INTERVAL / 2;
	struct np_load l;

	begin(&l, &e, 1, false, START);
	l.until_ns = until;
	assert_int_equal(begin_all(&l, START), BURST);
	assert_int_equal(l.due_ns, until);
	assert_false(np_load_may(&l, until - 1));
	assert_int_equal(begin_all(&l, until), 100);
}

TEST(no_burst_begins_at_the_end_of_the_window)
{
	struct np_end e = paced_end(BURST, INTERVAL_US);
	struct np_load l;

	begin(&l, &e, 1, false, START);
	l.closes_ns = START + INTERVAL;
	assert_int_equal(begin_all(&l, START), BURST);
	assert_false(np_load_may(&l, START + INTERVAL));
	assert_int_equal(l.due_ns, UINT64_MAX);
}

/* When each of the first `count` operations of a worker is due, taken as soon as that. */
static void
due_times(uint64_t *due, int count, uint32_t rate, uint32_t how, uint32_t number, uint32_t of)
{
	struct np_load l;

	np_load_begin_due(&l, &np_load_open, rate, how, number, of, START);
	for (int i = 0; i < count; i++) {
		assert_false(np_load_may(&l, l.arrivals.due_ns - 1));
		assert_true(np_load_may(&l, l.arrivals.due_ns));
		due[i] = l.due_ns;
	}
}

TEST(operations_of_an_open_loop_are_due_at_exact_multiples)
{
	uint64_t due[8], second[4];

	due_times(due, 8, 3, NP_ARRIVE_EVENLY, 0, 1);
	for (uint64_t i = 0; i < 8; i++) {
		assert_int_equal(due[i], START + i * NP_SEC / 3);
	}
	/* Of two workers each has every second one. */
	due_times(second, 4, 3, NP_ARRIVE_EVENLY, 1, 2);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(second[i], due[2 * i + 1]);
	}
}

TEST(a_burst_of_an_open_loop_is_due_at_once)
{
	uint64_t due[8];

	due_times(due, 1, 1000, 4, 0, 1);
	assert_int_equal(due[0], START);
	struct np_load l;

	np_load_begin_due(&l, &np_load_open, 1000, 4, 0, 1, START);
	assert_int_equal(begin_all(&l, START), 4);
	assert_int_equal(begin_all(&l, START + 4 * NP_MSEC - 1), 0);
	assert_int_equal(begin_all(&l, START + 4 * NP_MSEC), 4);
	assert_int_equal(l.due_ns, START + 8 * NP_MSEC);
}

/* Whoever is late by a second has all that was due in it at once, and each with its own time. */
TEST(what_an_open_loop_missed_stays_due)
{
	static const uint32_t hows[] = { NP_ARRIVE_EVENLY, NP_ARRIVE_POISSON, 7 };
	enum { COUNT = 90 };
	uint64_t in_time[COUNT];

	for (size_t k = 0; k < 3; k++) {
		struct np_load l;

		due_times(in_time, COUNT, 100, hows[k], 1, 2);
		np_load_begin_due(&l, &np_load_open, 100, hows[k], 1, 2, START);
		for (int i = 0; i < COUNT; i++) {
			assert_true(np_load_may(&l, START + 60 * NP_SEC) ||
				    np_load_may(&l, START + 60 * NP_SEC));
			assert_int_equal(l.due_ns, in_time[i]);
		}
	}
}

/* As many as are due, in a row; a rate need not be a whole number. */
TEST(messages_that_are_due_begin_together)
{
	struct np_load l;

	np_load_begin_due(&l, &np_load_offered, 2.5, NP_ARRIVE_EVENLY, 0, 1, START);
	assert_true(np_load_may(&l, START));
	assert_int_equal(l.allowed, 0);
	assert_false(np_load_may(&l, START + 4 * NP_SEC / 10 - 1));
	assert_true(np_load_may(&l, START + 2 * NP_SEC)); /* at 0.4, 0.8, 1.2, 1.6 and 2.0 s */
	assert_int_equal(l.allowed, 4);
	assert_int_equal(begin_all(&l, START + 2 * NP_SEC), 4);
	assert_int_equal(l.due_ns, START + 24 * NP_SEC / 10);
	assert_int_equal(begin_all(&l, START + 34 * NP_SEC), 80);
}

/* The mean of 100,000 gaps is right within four errors, and so is the share of small ones. */
TEST(poisson_arrivals_have_gaps_of_every_length)
{
	enum { COUNT = 100000, RATE = 1000 };
	struct np_load l;
	uint64_t last = START, below = 0, sum = 0;

	np_load_begin_due(&l, &np_load_open, RATE, NP_ARRIVE_POISSON, 0, 1, START);
	for (int i = 0; i < COUNT; i++) {
		uint64_t gap = l.arrivals.due_ns - last;

		last = l.arrivals.due_ns;
		sum += gap;
		below += gap < NP_MSEC / 10; /* 1 - e^-0.1 of them */
		np_arrivals_next(&l.arrivals);
	}
	assert_true(sum > COUNT * (NP_MSEC - 12650) && sum < COUNT * (NP_MSEC + 12650));
	assert_true(below > 9516 - 372 && below < 9516 + 372);
}

TEST(arrivals_have_names)
{
	char text[NP_ARRIVALS_TEXT];

	assert_string_equal(np_arrivals_text(NP_ARRIVE_EVENLY, text), "constant");
	assert_string_equal(np_arrivals_text(NP_ARRIVE_POISSON, text), "poisson");
	assert_string_equal(np_arrivals_text(8, text), "burst:8");
}

TEST(a_burst_alone_means_an_interval_of_a_millisecond)
{
	struct np_end e = paced_end(1, 0);

	assert_int_equal(np_load_pause_of(&e), NP_MSEC);
	e = paced_end(1, 5000);
	assert_int_equal(np_load_pause_of(&e), 5 * NP_MSEC);
}

/* A warm-up that ends while operations are held: only what is behind that counts. */
TEST(a_pause_is_counted_until_now)
{
	struct np_end e = paced_end(1, INTERVAL_US);
	struct np_load l;

	begin(&l, &e, 1, false, START);
	assert_int_equal(begin_all(&l, START), 1);
	np_load_count_held(&l, START + INTERVAL / 4);
	assert_int_equal(l.paced_ns, INTERVAL / 4);
	l.paced_ns = 0;
	assert_int_equal(begin_all(&l, START + INTERVAL), 1);
	assert_int_equal(l.paced_ns, INTERVAL - INTERVAL / 4);
}

TEST(places_of_a_ramp_are_due_at_exact_times)
{
	struct np_load l[2];

	for (uint32_t i = 0; i < 2; i++) {
		np_load_begin_due(&l[i], &np_load_ramp, 3, NP_ARRIVE_EVENLY, i, 2, START);
	}
	assert_int_equal(begin_all(&l[0], START), 1);
	assert_int_equal(l[0].due_ns, START + 2 * NP_SEC / 3);
	assert_int_equal(begin_all(&l[1], START), 0);
	assert_int_equal(l[1].due_ns, START + NP_SEC / 3);
	/* All that are due begin, and exactly those. */
	assert_int_equal(begin_all(&l[0], START + 2 * NP_SEC / 3 + NP_RAMP_LATE_NS), 1);
	assert_int_equal(l[0].due_ns, START + 4 * NP_SEC / 3);
}

TEST(what_a_ramp_has_missed_for_long_is_put_off)
{
	struct np_load l;

	np_load_begin_due(&l, &np_load_ramp, 200, NP_ARRIVE_EVENLY, 0, 1, START);
	assert_int_equal(begin_all(&l, START), 1);
	assert_int_equal(begin_all(&l, START + NP_SEC), 1);
	assert_int_equal(l.due_ns, START + NP_SEC + NP_SEC / 200);
}

TEST(a_worker_sleeps_until_it_may)
{
	struct np_end e = paced_end(1, INTERVAL_US);
	struct np_worker w;
	uint64_t start = np_now();

	memset(&w, 0, sizeof(w));
	begin(&w.load, &e, 1, true, start);
	assert_true(np_load_wait(&w));
	assert_true(np_now() >= start + INTERVAL);
	assert_true(w.load.paced_ns > 0 && w.load.paced_ns <= np_now() - start);
	assert_false(np_load_is_waiting(&w.load));
	/* One that is late does not sleep. */
	begin(&w.load, &e, 1, true, np_now() - NP_SEC);
	assert_true(np_load_wait(&w));
	assert_int_equal(w.load.paced_ns, 0);
}

TEST_MAIN()
