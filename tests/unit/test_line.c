/*
 * One direction of a link: exact shares, exact times, and packets that come out as they went in.
 */
#include "tests/link/line.h"

#include "tests/link/carry.h"

#include "tests/lib/check.h"

enum { ROOM = 8 << 20, PERCENT = 10000000 };

/* A line, what has come out of it, and when the next packet goes in. */
struct bench {
	struct np_line line;
	uint64_t now, in;
	uint32_t out[4096];
	uint64_t due[4096];
	size_t n;
	uint8_t bytes[UINT8_MAX + 65536]; /* counting up: those of a packet do, from its number */
};

static void
begin(struct bench *b, const struct np_line_plan *plan)
{
	struct np_err err;

	memset(b, 0, sizeof(*b));
	for (size_t at = 0; at < sizeof(b->bytes); at++) {
		b->bytes[at] = (uint8_t)at;
	}
	b->now = NP_SEC;
	assert_int_equal(np_line_init(&b->line, ROOM, &err), NP_OK);
	np_line_set(&b->line, plan);
}

static void
end(struct bench *b)
{
	np_line_free(&b->line);
}

/* Lets out what is due by now, and looks whether the bytes are those that went in. */
static void
drain(struct bench *b)
{
	struct np_line_packet out[NP_LINE_OUT_MAX];
	unsigned n;

	while ((n = np_line_out(&b->line, b->now, out)) != 0) {
		for (unsigned i = 0; i < n; i++) {
			const uint8_t *data = out[i].data;
			uint32_t number;

			memcpy(&number, data, sizeof(number));
			assert_true(out[i].size >= sizeof(number));
			assert_int_equal(memcmp(data + sizeof(number),
						&b->bytes[(uint8_t)number + sizeof(number)],
						out[i].size - sizeof(number)),
					 0);
			if (b->n < LEN(b->out)) {
				b->out[b->n] = number;
				b->due[b->n] = out[i].due;
			}
			b->n++;
		}
		np_line_done(&b->line);
	}
}

static void
drain_after(struct bench *b, uint64_t ns)
{
	b->now += ns;
	drain(b);
}

static bool
send_one(struct bench *b, size_t size)
{
	uint8_t *room = np_line_room(&b->line);
	uint32_t number = (uint32_t)b->in;

	if (room == NULL) {
		np_line_refuse(&b->line);
		return false;
	}
	b->in++;
	memcpy(room, &number, sizeof(number));
	memcpy(room + sizeof(number), &b->bytes[(uint8_t)number + sizeof(number)],
	       size - sizeof(number));
	np_line_in(&b->line, size, b->now);
	return true;
}

static void
train(struct bench *b, unsigned count, uint64_t gap)
{
	for (unsigned i = 0; i < count; i++) {
		send_one(b, 64);
		drain(b);
		b->now += gap;
	}
	drain_after(b, 100 * NP_SEC);
}

TEST(shares_are_exact_at_every_moment)
{
	static const uint64_t shares[] = { 0,
					   1,
					   PERCENT / 100,
					   PERCENT,
					   3 * PERCENT,
					   33 * PERCENT + 7,
					   50 * PERCENT,
					   61 * PERCENT,
					   NP_LINE_ALL - 1,
					   NP_LINE_ALL };

	for (size_t i = 0; i < LEN(shares); i++) {
		for (uint64_t seed = 0; seed < 5; seed++) {
			struct np_picker p;
			uint64_t chosen = 0;

			np_picker_init(&p, shares[i], seed);
			for (uint64_t n = 1; n <= 20000; n++) {
				double wanted = (double)n * (double)shares[i] / 1e9;

				chosen += np_picker_next(&p, true);
				fail_if(fabs((double)chosen - wanted) > 1, "%g of %g",
					(double)chosen, wanted);
			}
		}
	}
}

TEST(choices_are_spread_and_repeat_with_the_seed)
{
	unsigned gaps[201] = { 0 }, differ = 0, last = 0;
	struct np_picker a, b, c;

	np_picker_init(&a, PERCENT, 7);
	np_picker_init(&b, PERCENT, 7);
	np_picker_init(&c, PERCENT, 8);
	for (unsigned n = 0; n < 100000; n++) {
		bool chosen = np_picker_next(&a, true);

		assert_int_equal(chosen, np_picker_next(&b, true));
		differ += chosen != np_picker_next(&c, true);
		if (chosen) {
			assert_in_range(n - last, 0, 200);
			gaps[n - last]++;
			last = n;
		}
	}
	assert_true(differ > 1000);
	/* Nothing near a beat of one in a hundred. */
	assert_true(gaps[100] < 50);
}

TEST(a_plan_of_zeroes_passes_all_on_at_once)
{
	struct np_line_plan plan = { 0 };
	FREED_BY(end) struct bench b;

	begin(&b, &plan);
	send_one(&b, 64);
	assert_int_equal(np_line_due(&b.line), b.now);
	drain(&b);
	assert_int_equal(b.n, 1);
	assert_int_equal(np_line_due(&b.line), NP_NEVER);
}

TEST(lost_and_doubled_packets_are_counted)
{
	struct np_line_plan plan = { .loss = PERCENT,
				     .duplicate = 2 * PERCENT,
				     .delay_ns = NP_MSEC };
	FREED_BY(end) struct bench b;

	begin(&b, &plan);
	train(&b, 10000, 20000);
	assert_in_range(b.line.count.lost, 99, 101);
	assert_in_range(b.line.count.duplicated, 197, 199);
	assert_int_equal(b.line.count.received, 10000);
	assert_int_equal(b.n, 10000 - b.line.count.lost + b.line.count.duplicated);
	assert_int_equal(b.line.count.forwarded, b.n);
}

TEST(all_may_be_lost)
{
	struct np_line_plan plan = { .loss = NP_LINE_ALL };
	FREED_BY(end) struct bench b;

	begin(&b, &plan);
	train(&b, 100, 20000);
	assert_int_equal(b.n, 0);
}

TEST(packets_are_overtaken_by_their_successors_alone)
{
	static const uint64_t shares[] = { PERCENT, 10 * PERCENT, 50 * PERCENT };

	for (size_t i = 0; i < LEN(shares); i++) {
		struct np_line_plan plan = { .reorder = shares[i], .delay_ns = 5 * NP_MSEC };
		FREED_BY(end) struct bench b;
		uint64_t late = 0;

		begin(&b, &plan);
		train(&b, 4000, 20000);
		assert_int_equal(b.n, 4000);
		for (unsigned n = 0; n < 4000; n++) {
			assert_true(b.out[n] + 1 >= n && b.out[n] <= n + 1);
			late += b.out[n] + 1 == n;
		}
		assert_int_equal(late, b.line.count.reordered);
		assert_in_range(late + 1, 4000 * shares[i] / NP_LINE_ALL,
				4000 * shares[i] / NP_LINE_ALL + 2);
	}
}

TEST(a_packet_that_none_overtakes_leaves_in_the_end)
{
	struct np_line_plan plan = { .reorder = 50 * PERCENT, .delay_ns = NP_MSEC };
	FREED_BY(end) struct bench b;

	begin(&b, &plan);
	for (unsigned n = 0; n < 100; n++) {
		send_one(&b, 64);
		assert_true(np_line_due(&b.line) <= b.now + NP_MSEC + NP_LINE_HOLD_NS);
		drain_after(&b, NP_SEC);
		assert_int_equal(b.n, n + 1);
	}
	assert_int_equal(b.line.count.reordered, 0);
	assert_true(b.line.count.held > 20);
}

TEST(pauses_of_the_sender_change_no_share)
{
	struct np_line_plan plan = { .reorder = 10 * PERCENT };
	FREED_BY(end) struct bench b;

	begin(&b, &plan);
	for (unsigned n = 0; n < 4000; n++) {
		send_one(&b, 64);
		drain(&b);
		b.now += n % 20 == 19 ? 10 * NP_MSEC : 20000;
	}
	drain_after(&b, NP_SEC);
	assert_true(b.line.count.held > 0);
	assert_in_range(b.line.count.reordered, 398, 401);
}

TEST(jitter_is_uniform_and_keeps_the_order)
{
	static const uint64_t gaps[] = { 1000, 20000, 400000, 5000000, 50000000 };
	struct np_line_plan plan = { .delay_ns = 3 * NP_MSEC, .jitter_ns = NP_MSEC };

	for (size_t i = 0; i < LEN(gaps); i++) {
		unsigned tenths[10] = { 0 },
			 count = gaps[i] < NP_MSEC ? 1000000000 / (unsigned)gaps[i] : 4000;
		uint64_t last = 0;
		FREED_BY(end) struct bench b;

		begin(&b, &plan);
		for (unsigned n = 0; n < count; n++) {
			uint64_t due;

			send_one(&b, 64);
			due = b.line.last_due;
			assert_true(due >= b.now + 2 * NP_MSEC && due <= b.now + 4 * NP_MSEC);
			assert_true(due >= last);
			last = due;
			tenths[(due - b.now - 2 * NP_MSEC) * 10 / (2 * NP_MSEC + 1)]++;
			drain_after(&b, gaps[i]);
		}
		for (unsigned n = 0; n < 10; n++) {
			double share = (double)tenths[n] / count;

			fail_if(share < 0.05 || share > 0.16, "gap %g: tenth %u has %g",
				(double)gaps[i], n, share);
		}
	}
}

TEST(a_smaller_delay_lets_no_packet_overtake)
{
	struct np_line_plan plan = { .delay_ns = 100 * NP_MSEC };
	FREED_BY(end) struct bench b;
	uint64_t due;

	begin(&b, &plan);
	send_one(&b, 64);
	due = np_line_due(&b.line);
	plan.delay_ns = NP_MSEC;
	np_line_set(&b.line, &plan);
	b.now += NP_MSEC;
	send_one(&b, 64);
	b.now = due;
	drain(&b);
	assert_int_equal(b.n, 2);
	assert_int_equal(b.out[0], 0);
	assert_int_equal(b.due[1], due);
}

/* 1500 bytes cost 1538 on a wire: 123.04 us each at 100 Mbit/s, exactly in the long run. */
TEST(the_rate_is_exact)
{
	struct np_line_plan plan = {
		.rate = 100000000, .overhead = 38, .least = 84, .burst = 3076, .limit = 10000000
	};
	FREED_BY(end) struct bench b;
	uint64_t from;

	begin(&b, &plan);
	from = b.now;
	for (unsigned n = 0; n < 2002; n++) {
		assert_true(send_one(&b, 1500));
	}
	drain_after(&b, NP_SEC);
	assert_int_equal(b.n, 2002);
	assert_int_equal(b.due[0], from); /* the bucket holds two */
	assert_int_equal(b.due[1], from);
	assert_int_equal(b.due[2], from + 123040);
	assert_int_equal(b.due[2001], from + UINT64_C(2000) * 123040);
}

TEST(small_packets_cost_what_the_least_frame_does)
{
	struct np_line_plan plan = {
		.rate = 1000000000, .overhead = 38, .least = 84, .burst = 84, .limit = 10000000
	};
	FREED_BY(end) struct bench b;
	uint64_t from;

	begin(&b, &plan);
	from = b.now;
	for (unsigned n = 0; n < 1001; n++) {
		assert_true(send_one(&b, 28));
	}
	drain_after(&b, NP_SEC);
	assert_int_equal(b.due[1000], from + UINT64_C(1000) * 672);
}

TEST(a_full_queue_drops_what_comes_last)
{
	struct np_line_plan plan = {
		.rate = 8000000, .overhead = 0, .least = 0, .burst = 1000, .limit = 10000
	};
	FREED_BY(end) struct bench b;

	begin(&b, &plan);
	for (unsigned n = 0; n < 30; n++) {
		send_one(&b, 1000);
	}
	/* One goes at once, ten wait. */
	assert_int_equal(b.line.count.dropped, 19);
	drain_after(&b, NP_SEC);
	assert_int_equal(b.n, 11);
	assert_int_equal(b.out[10], 10);
}

TEST(packets_stay_whole_wherever_they_lie)
{
	struct np_line_plan plan = { .delay_ns = 20 * NP_MSEC,
				     .duplicate = 5 * PERCENT,
				     .reorder = 5 * PERCENT };
	uint64_t seed = 3;
	FREED_BY(end) struct bench b;

	begin(&b, &plan);
	for (unsigned n = 0; n < 60000; n++) {
		uint64_t r = next_random(&seed);

		send_one(&b, r % 16 == 0 ? 4 + r / 16 % 60000 : 4 + r / 16 % 1500);
		drain_after(&b, (r >> 40) % (n / 10000 % 2 ? 40000 : 400000));
		if (n % 7000 == 0) { /* and what is under way varies */
			plan.delay_ns = r % 2 ? 60 * NP_MSEC : NP_MSEC;
			np_line_set(&b.line, &plan);
		}
	}
	drain_after(&b, NP_SEC);
	assert_int_equal(b.line.waiting, 0);
	assert_int_equal(b.n, b.in + b.line.count.duplicated);
	assert_int_equal(b.line.count.received, b.in + b.line.count.no_room);
}

TEST(full_memory_drops)
{
	struct np_line_plan plan = { .delay_ns = NP_SEC };
	FREED_BY(end) struct bench b;

	begin(&b, &plan);
	for (unsigned n = 0; n < 10000; n++) {
		send_one(&b, 1500);
	}
	assert_true(b.line.count.no_room > 1000);
	drain_after(&b, NP_SEC);
	assert_int_equal(b.n + b.line.count.no_room, 10000);
	assert_true(send_one(&b, 1500));
}

TEST(words_of_a_plan)
{
	static const char *const bad[] = { "",
					   "=1",
					   "delay",
					   "delay=",
					   "delay=-1",
					   "delay=1x",
					   "speed=1",
					   "loss=1000000001",
					   "rate=99999999999999999999",
					   "reorder=500000001" };
	struct np_line_plan plan = { 0 };
	struct np_err err;

	assert_int_equal(np_line_plan_word(&plan, "delay=5000000", &err), NP_OK);
	assert_int_equal(np_line_plan_word(&plan, "loss=10000000", &err), NP_OK);
	assert_int_equal(plan.delay_ns, 5000000);
	assert_int_equal(plan.loss, 10000000);
	for (size_t i = 0; i < LEN(bad); i++) {
		assert_int_equal(np_line_plan_word(&plan, bad[i], &err), NP_EUSAGE);
	}
	assert_int_equal(np_line_plan_check(&plan, &err), NP_OK);
	plan.jitter_ns = plan.delay_ns + 1;
	assert_int_equal(np_line_plan_check(&plan, &err), NP_EUSAGE);
}

/* One that sleeps until a packet is due asks for as much earlier as it has been woken late. */
TEST(it_learns_how_late_the_kernel_wakes)
{
	enum { SLEEP = NP_MSEC, GAP = NP_MSEC, US = 1000 };
	struct np_waking w = { 0 };
	uint64_t usual = np_waking_early(&w, SLEEP, GAP);

	assert_in_range(usual, 5 * US, 20 * US);
	for (int i = 0; i < 20; i++) {
		np_waking_note(&w, 80 * US);
	}
	assert_in_range(np_waking_early(&w, SLEEP, GAP), 80 * US, 100 * US);
	/* but it stays awake for no more than a tenth of the time, */
	assert_int_equal(np_waking_early(&w, SLEEP, GAP / 2), 50 * US);
	assert_int_equal(np_waking_early(&w, SLEEP, GAP / 1000), usual);
	/* one time in fifty is not forgotten in between, */
	for (int i = 0; i < 49; i++) {
		np_waking_note(&w, 2 * US);
	}
	assert_in_range(np_waking_early(&w, SLEEP, GAP), 60 * US, 90 * US);
	/* and what is over is. */
	for (int i = 0; i < 1000; i++) {
		np_waking_note(&w, 2 * US);
	}
	assert_int_equal(np_waking_early(&w, SLEEP, GAP), usual);
	/* A machine that stood still does not make it stay awake for as long. */
	for (int i = 0; i < 1000; i++) {
		np_waking_note(&w, NP_SEC);
	}
	assert_in_range(np_waking_early(&w, SLEEP, NP_SEC), 100 * US, 155 * US);
}

TEST_MAIN()
