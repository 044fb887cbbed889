/*
 * The account of numbered datagrams: planted losses, duplicates and reorderings, random ones
 * against a slow model that looks at the whole list of arrivals, and the loops that carry it.
 */
#include "bench/sequence.h"

#include <inttypes.h>
#include <pthread.h>

#include "base/sanitized.h"
#include "bench/bench.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/sockets.h"

static struct np_sequence *
account(void)
{
	struct np_err err = { .code = NP_OK };
	struct np_plan p = { .flows = 1 };
	struct np_sequence *s = np_sequence_new(&p, 1, &err);

	assert_non_null(s);
	return s;
}

static void
arrive_at(struct np_sequence *s, uint64_t number, uint64_t sent_ns, uint64_t now_ns)
{
	char datagram[64];

	np_sequence_mark(datagram, number, sent_ns, false);
	np_sequence_arrived(s, datagram, sizeof(datagram), now_ns, false);
}

static void
arrive(struct np_sequence *s, uint64_t number)
{
	arrive_at(s, number, number * 1000, number * 1000);
}

static void
arrive_all(struct np_sequence *s, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n < to; n++) {
		arrive(s, n);
	}
}

static void
tell(const struct np_sequence *s, struct np_bag *into)
{
	struct np_sequence all = { .flows = 0 };

	np_sequence_add(&all, s);
	np_sequence_put_sum(&all, into);
}

/* What the receiver reports when `sent` were sent; frees the account. */
static struct np_bag *
told(struct np_sequence *s, int64_t sent)
{
	struct np_bag *far = bag_of("udp.sent=%" PRId64 " flow.seconds=%.17g", sent,
				    (double)sent / 1e6),
		      *near = np_bag_new();

	tell(s, near);
	np_sequence_join(far, near, 0);
	np_bag_free(far);
	free(s);
	return near;
}

#define assert_told(s, sent, ...)                                                                  \
	do {                                                                                       \
		FREED_BY(free_bag) struct np_bag *b_ = told(s, sent);                              \
                                                                                                   \
		assert_bag(b_, "udp.", __VA_ARGS__);                                               \
	} while (0)

static void
assert_lengths(const struct np_bag *b, const int64_t *want, size_t count)
{
	struct np_bag_item it;

	assert_true(np_bag_find(b, "udp.loss_burst_lengths", &it));
	assert_int_equal(it.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(it.ints[i], want[i]);
	}
}

/* ---- Planted ---- */

TEST(all_that_was_sent_and_came)
{
	struct np_sequence *s = account();

	arrive_all(s, 0, 200000);
	assert_told(s, 200000,
		    "sent=200000 received=200000 unique=200000 lost=0 duplicated=0 reordered=0 "
		    "jitter_us=0 loss_bursts=0 header_bytes=%d "
		    "loss_burst_lengths=[]",
		    NP_SEQUENCE_HEADER);
}

TEST(losses_come_in_bursts)
{
	/* Of 1, 2, 3, 4, 5 and 9 numbers: the first ones, some in the middle, and the last. */
	struct np_sequence *s = account();

	arrive_all(s, 2, 10);
	arrive_all(s, 11, 100);
	arrive_all(s, 103, 70000);
	arrive_all(s, 70004, 70010);
	arrive_all(s, 70015, 200000);
	assert_told(s, 200009,
		    "lost=2+1+3+4+5+9 loss_bursts=6 loss_burst_longest=9 reordered=0 "
		    "loss_burst_lengths=[1,1,2,1,1]");
}

TEST(a_burst_longer_than_the_window_is_one)
{
	struct np_sequence *s = account();
	static const char zeros[] = ",0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0"
				    ",0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0";
	const uint64_t far = UINT64_C(1) << 40;

	arrive_all(s, 0, 10);
	arrive(s, 11);
	arrive(s, far);
	assert_told(s, (int64_t)far + 1,
		    "unique=12 lost=%.17g loss_bursts=2 loss_burst_longest=%.17g "
		    "loss_burst_lengths=[1%s,1]",
		    (double)(far + 1 - 12), (double)(far - 12), zeros);
}

TEST(nothing_came_at_all)
{
	assert_told(account(), 7,
		    "received=0 lost=7 loss_bursts=1 loss_burst_longest=7 "
		    "loss_burst_lengths=[0,0,0,1]");
}

TEST(duplicates_are_no_arrivals)
{
	struct np_sequence *s = account();

	arrive_all(s, 0, 10);
	arrive(s, 9);
	arrive(s, 9);
	arrive(s, 0);
	arrive_all(s, 11, 20);
	arrive(s, 5);
	assert_told(s, 20, "received=23 unique=19 duplicated=4 reordered=0 lost=1");
}

/* RFC 4737, sections 3.3 and 4.2.2: 1 2 3 7 8 9 10 4 5 6 11 has three, by 4, 5 and 6. */
TEST(reordering_is_that_of_the_rfc)
{
	static const uint64_t order[] = { 0, 1, 2, 6, 7, 8, 9, 3, 4, 5, 10 };
	struct np_sequence *s = account();

	for (size_t i = 0; i < LEN(order); i++) {
		arrive(s, order[i]);
	}
	assert_told(s, 11, "reordered=3 reorder_extent_max=6 lost=0 loss_bursts=0");
}

TEST(what_is_older_than_the_window_is_told_apart)
{
	struct np_sequence *s = account();

	arrive_all(s, 1, NP_SEQUENCE_WINDOW);
	arrive(s, 0); /* just in time */
	arrive_all(s, NP_SEQUENCE_WINDOW + 1, UINT64_C(2) * NP_SEQUENCE_WINDOW);
	arrive(s, UINT64_C(2) * NP_SEQUENCE_WINDOW);
	arrive(s, NP_SEQUENCE_WINDOW); /* by one too late */
	assert_told(s, 2 * NP_SEQUENCE_WINDOW + 1,
		    "too_old=1 reordered=1 reorder_extent_max=%d received=%d unique=%d lost=1",
		    NP_SEQUENCE_WINDOW - 1, 2 * NP_SEQUENCE_WINDOW + 1, 2 * NP_SEQUENCE_WINDOW);
}

TEST(strangers_are_counted_and_change_nothing)
{
	struct np_sequence *s = account();
	char datagram[64] = "netperf";

	arrive_all(s, 0, 10);
	np_sequence_arrived(s, datagram, sizeof(datagram), 0, false);
	np_sequence_mark(datagram, 10, 0, false);
	np_sequence_arrived(s, datagram, NP_SEQUENCE_HEADER - 1, 0, false);
	np_sequence_mark(datagram, UINT64_C(1) << NP_SEQUENCE_BITS, 0, false);
	np_sequence_arrived(s, datagram, sizeof(datagram), 0, false);
	assert_told(s, 10, "foreign=3 received=10 lost=0");
}

/* Transit times of 0, 16, 16 and 0 us make J of 1, 1 - 1/16, and that and 16ths of the rest. */
TEST(jitter_is_that_of_the_rfc)
{
	const double second = 1.0 - 1.0 / 16, third = second + (16 - second) / 16;
	struct np_sequence *s = account();
	const uint64_t ahead = UINT64_C(1) << 63; /* what the clocks are apart */
	FREED_BY(free_bag) struct np_bag *b = NULL;

	arrive_at(s, 0, ahead, 0);
	arrive_at(s, 1, ahead + 1000, 1000 + 16000);
	arrive_at(s, 2, ahead + 2000, 2000 + 16000);
	arrive_at(s, 3, ahead + 3000, 3000);
	b = told(s, 4);
	assert_true(fabs(np_bag_number(b, "udp.jitter_us") - third) < 0.001);
	assert_number(b, "udp.jitter_max_us", np_bag_number(b, "udp.jitter_us"));
}

/* A flow that nothing arrived of has no jitter: it does not lower the mean of the others. */
TEST(a_dead_flow_has_no_jitter)
{
	struct np_sequence *s = account(), all = { .flows = 0 }, dead = { .next = 0 };
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();

	arrive_at(s, 0, 0, 0);
	arrive_at(s, 1, 1000, 1000 + 16000);
	np_sequence_add(&all, s);
	np_sequence_add(&all, &dead);
	np_sequence_put_sum(&all, b);
	assert_bag(b, "udp.", "flows=2 jitter_us=1 jitter_max_us=1");
	free(s);
}

/* Four of 64 bytes in 3 ms; the first one's bytes took the time before. */
TEST(the_span_is_the_receivers_own)
{
	struct np_sequence *s = account();

	arrive_at(s, 1, 0, 5000000);
	np_sequence_arrived(s, "no number of ours", 17, 5500000, false);
	arrive_at(s, 0, 0, 6000000);
	arrive_at(s, 1, 0, 7000000);
	arrive_at(s, 9, 0, 8000000);
	np_sequence_arrived(s, "no number of ours", 17, 9000000, true);
	assert_told(s, 10, "received_bytes=4*64 receive_span_s=0.003 receive_span_bps=%.17g",
		    3 * 64 * 8 / 0.003);
}

/* The window's begin anew, whatever came before, and late ones of the warm-up are not theirs. */
TEST(a_warm_up_has_no_part_in_it)
{
	struct np_sequence *s = account();
	char datagram[64];

	for (uint64_t i = 0; i < 8; i++) {
		np_sequence_mark(datagram, i < 4 ? 1000 + i : i, 0, true);
		assert_int_equal(np_sequence_arrived(s, datagram, sizeof(datagram), 0, false),
				 NP_IS_OF_WARM_UP);
		arrive(s, i);
	}
	assert_told(s, 8, "received=8 unique=8 span=8 reordered=0 foreign=0 lost=0 jitter_us=0");
}

TEST(one_datagram_has_no_rate)
{
	struct np_sequence *s = account();

	arrive_at(s, 0, 0, 5000000);
	assert_told(s, 1, "received_bytes=64 receive_span_s=0 receive_span_bps=none");
	assert_told(account(), 1, "received_bytes=0 receive_span_s=none receive_span_bps=none");
}

/* 10,000 a second, from `from` on, of which those in [lost, back) don't come. */
static void
send_all(struct np_sequence *s, uint64_t from, uint64_t lost, uint64_t back, uint64_t to)
{
	for (uint64_t n = from; n < to; n++) {
		if (n < lost || n >= back) {
			arrive_at(s, n, n * 100000, n * 100000 + 5000000);
		}
	}
}

TEST(an_outage_is_as_long_as_what_is_missing)
{
	FREED_BY(free_memory) struct np_sequence *s = account();
	FREED_BY(free_bag) struct np_bag *bag = np_bag_new();

	send_all(s, 0, 2000, 3370, 10000); /* 137 ms */
	send_all(s, 10000, 11000, 11500, 12000);
	arrive_at(s, 12000, 12000 * UINT64_C(100000) + UINT64_C(900000000), UINT64_C(3000000000));
	tell(s, bag);
	assert_float_equal(np_bag_number(bag, "udp.outage_us"), 137000, 1);
	assert_float_equal(np_bag_number(bag, "udp.outage_begin_s"), 0.1999, 1e-6);
	/* What comes late was not missing. */
	for (uint64_t n = 2000; n < 3370; n++) {
		arrive_at(s, n, n * 100000, UINT64_C(4000000000));
	}
	tell(s, bag);
	assert_float_equal(np_bag_number(bag, "udp.outage_us"), 0, 1e-9);
}

TEST(an_outage_may_last_until_the_end)
{
	FREED_BY(free_bag) struct np_bag *bag;
	struct np_sequence *s = account();

	arrive_all(s, 0, 100);
	arrive_all(s, 150, 1000); /* the shorter one, of 50 us */
	bag = told(s, 1500);
	assert_float_equal(np_bag_number(bag, "udp.outage_us"), 500, 1e-6);
	assert_float_equal(np_bag_number(bag, "udp.outage_begin_s"), 1000e-6, 1e-9);
}

TEST(an_outage_may_be_there_from_the_begin_on)
{
	FREED_BY(free_memory) struct np_sequence *s = account();
	FREED_BY(free_bag) struct np_bag *bag = np_bag_new();

	send_all(s, 3000, 12000, 13000, 20000); /* 300 ms, and then 100 */
	tell(s, bag);
	assert_float_equal(np_bag_number(bag, "udp.outage_us"), 300000, 1);
	assert_float_equal(np_bag_number(bag, "udp.outage_begin_s"), 0, 1e-9);
	arrive_at(s, 500, 500 * 100000, UINT64_C(4000000000));
	tell(s, bag);
	assert_float_equal(np_bag_number(bag, "udp.outage_us"), 100000, 1);
	assert_float_equal(np_bag_number(bag, "udp.outage_begin_s"), 1.1999, 1e-6);
}

TEST(a_clock_that_jumps_overflows_nothing)
{
	struct np_sequence *s = account();
	FREED_BY(free_bag) struct np_bag *b = NULL;

	for (uint64_t n = 0; n < 1000; n++) {
		arrive_at(s, n, n % 2 != 0 ? 0 : INT64_MAX, 0);
		assert_true(s->jitter16 >> 4 <= UINT64_C(1) << 50);
	}
	b = told(s, 1000);
	assert_true(np_bag_number(b, "udp.jitter_us") > 1e12);
}

/* ---- Against a model ---- */

enum { MODEL = 600 };

struct model {
	unsigned unique, duplicated, reordered, extent, bursts, longest, lost;
	int64_t lengths[NP_SEQUENCE_LENGTHS];
};

/* Every figure from the definitions, with nothing kept from one arrival to the next. */
static struct model
reckon(const unsigned *arrivals, unsigned count, unsigned sent)
{
	struct model m = { .unique = 0 };
	unsigned firsts[2 * MODEL], run = 0;
	bool got[MODEL] = { false };

	for (unsigned i = 0; i < count; i++) {
		unsigned at = m.unique;

		if (got[arrivals[i]]) {
			m.duplicated++;
			continue;
		}
		got[arrivals[i]] = true;
		firsts[m.unique++] = arrivals[i];
		for (unsigned j = 0; j < at; j++) {
			if (firsts[j] > arrivals[i]) {
				m.reordered++;
				m.extent = at - j > m.extent ? at - j : m.extent;
				break;
			}
		}
	}
	m.lost = sent - m.unique;
	for (unsigned n = 0; n <= sent; n++) {
		unsigned cell = 0;

		if (n < sent && !got[n]) {
			run++;
			continue;
		}
		while (run > 0 && (1u << cell) < run) {
			cell++;
		}
		m.lengths[cell] += run > 0;
		m.bursts += run > 0;
		m.longest = run > m.longest ? run : m.longest;
		run = 0;
	}
	return m;
}

/* Numbers of which some are left out, some come twice, and some change places. */
static unsigned
draw(unsigned *arrivals, unsigned sent, uint64_t *seed)
{
	unsigned lose = next_random(seed) % 4, repeat = next_random(seed) % 4;
	unsigned reach = 1 + next_random(seed) % 100, count = 0;

	for (unsigned n = 0; n < sent; n++) {
		unsigned copies = next_random(seed) % 8 < lose ? 0 : 1;

		copies += copies > 0 && next_random(seed) % 8 < repeat;
		while (copies-- > 0) {
			arrivals[count++] = n;
		}
	}
	for (unsigned swaps = next_random(seed) % 200; count > 1 && swaps > 0; swaps--) {
		unsigned i = next_random(seed) % count, j = i + next_random(seed) % reach;
		unsigned kept = arrivals[i];

		j = j < count ? j : count - 1;
		arrivals[i] = arrivals[j];
		arrivals[j] = kept;
	}
	return count;
}

TEST(random_orders_are_accounted_as_the_model_does)
{
	uint64_t seed = 20260917;

	for (int round = 0; round < (NP_THREAD_SANITIZED ? 200 : 2000);
	     round++) { /* of one thread */
		unsigned arrivals[2 * MODEL], sent = 1 + next_random(&seed) % MODEL;
		unsigned count = draw(arrivals, sent, &seed), used = NP_SEQUENCE_LENGTHS;
		/* At any place of the window, and across its end. */
		uint64_t first = next_random(&seed) % (UINT64_C(3) * NP_SEQUENCE_WINDOW);
		uint64_t more = round % 20 == 0 ? NP_SEQUENCE_WINDOW + 7 : 0;
		struct model m = reckon(arrivals, count, sent);
		struct np_sequence *s = account();
		FREED_BY(free_bag) struct np_bag *b = NULL;

		s->unique = s->next = s->base = first;
		for (unsigned i = 0; i < count; i++) {
			arrive(s, first + arrivals[i]);
		}
		/* Now and then until all of them have left the window. */
		arrive_all(s, first + sent, first + sent + more);
		b = told(s, (int64_t)(first + sent + more));
		assert_bag(b, "udp.",
			   "unique=%.17g duplicated=%d lost=%d reordered=%d "
			   "reorder_extent_max=%d loss_bursts=%d loss_burst_longest=%d",
			   (double)(first + m.unique + more), m.duplicated, m.lost, m.reordered,
			   m.extent, m.bursts, m.longest);
		while (used > 0 && m.lengths[used - 1] == 0) {
			used--;
		}
		assert_lengths(b, m.lengths, used);
	}
}

/* ---- Two ends that don't fit ---- */

TEST(what_one_end_cannot_tell_is_not_made_up)
{
	FREED_BY(free_bag) struct np_bag *far = np_bag_new(), *near = np_bag_new();
	FREED_BY(free_memory) struct np_sequence *s = account();
	struct np_bag_item it;

	arrive_all(s, 0, 10);
	tell(s, near);
	np_sequence_join(NULL, near, 0);
	assert_true(isnan(np_bag_number(near, "udp.lost")));
	np_sequence_join(far, near, 0);
	assert_true(isnan(np_bag_number(near, "udp.lost")));
	np_sequence_join(far, NULL, 0);
	np_bag_int(far, 9, "udp.sent"); /* fewer than came */
	np_sequence_join(far, near, 0);
	assert_true(np_bag_find(near, "udp.lost", &it));
	assert_int_equal(it.kind, NP_BAG_UNREAD);
}

/*
 * A sender learns late of an interrupt: what it still sent was not lost. But no more than it can
 * have sent in that time, here a tenth, is taken for that.
 */
TEST(what_is_sent_to_a_receiver_that_has_ended_is_not_lost)
{
	static const struct {
		uint64_t arrived;
		const char *says;
	} rows[] = {
		{ 90, "sent=90 lost=2 loss_bursts=1 loss_burst_longest=2" },
		{ 89, "sent=100 lost=13 loss_bursts=2 loss_burst_longest=11" },
		{ 0, "sent=100 lost=100 loss_bursts=1 loss_burst_longest=100" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		FREED_BY(free_bag) struct np_bag *far = np_bag_new(), *near = np_bag_new();
		FREED_BY(free_memory) struct np_sequence *s = account();

		arrive_all(s, 0, rows[i].arrived / 2);
		arrive_all(s, rows[i].arrived / 2 + 2, rows[i].arrived);
		tell(s, near);
		np_bag_int(far, 100, "udp.sent");
		np_sequence_join(far, near, 0.1);
		assert_bag(near, "udp.", "%s", rows[i].says);
	}
}

TEST(flows_have_an_account_each)
{
	struct np_err err = { .code = NP_OK };
	struct np_plan p = { .flows = 3 };
	struct np_sequence *s = np_sequence_new(&p, 3, &err), all = { .flows = 0 };
	FREED_BY(free_bag) struct np_bag *far = np_bag_new(), *near = np_bag_new();

	assert_non_null(s);
	for (uint32_t i = 0; i < 3; i++) {
		/* The second one lacks 100 in its midst, the third its last 5. */
		arrive_all(&s[i], 0, 1000);
		arrive_all(&s[i], i == 1 ? 1100 : 1000, i == 2 ? 3995 : 4000);
		np_sequence_add(&all, &s[i]);
	}
	np_sequence_put_sum(&all, near);
	np_bag_int(far, 12000, "udp.sent");
	np_sequence_join(far, near, 0);
	assert_bag(near, "udp.",
		   "flows=3 received=11895 reordered=0 lost=105 loss_bursts=1 "
		   "loss_burst_longest=100");
	assert_float_equal(np_bag_number(near, "udp.outage_us"), 100, 1e-6);
	assert_number(near, "udp.outage_flow", 1);
	/* The last 5 can be no longer outage, of any flow. Those of 400 more could be. */
	np_bag_real(far, 0.012, "flow.seconds");
	np_sequence_join(far, near, 0);
	assert_float_equal(np_bag_number(near, "udp.outage_us"), 100, 1e-6);
	np_bag_int(far, 12400, "udp.sent");
	np_sequence_join(far, near, 0);
	assert_true(isnan(np_bag_number(near, "udp.outage_us")));
	free(s);
}

/* ---- The loops ---- */

enum {
	FEW = 100, /* fit into the receiver's buffer together, the end marks too */
	COUNT = 2000
};

static void
number(struct np_plan *p)
{
	p->sequence = true;
}

static void
number_and_touch(struct np_plan *p)
{
	p->sequence = true;
	p->near.call.dirty = 64;
	pace(&p->near.call, 50, 200);
	p->far.call.dirty = 64;
}

static void
number_and_time(struct np_plan *p)
{
	p->sequence = p->time_calls = p->near.sock.connected = true;
}

static void
put_both(const struct ends *e, struct np_bag *sender, struct np_bag *receiver)
{
	np_sequence_put(&e->client.run, sender);
	np_sequence_put(&e->server.run, receiver);
	np_sequence_join(sender, receiver, 0);
}

static void
run_numbered(int family, void (*change)(struct np_plan *p))
{
	FREED_BY(free_bag) struct np_bag *sender = np_bag_new(), *receiver = np_bag_new();
	FREED_BY(ends_free) struct ends e;

	ends_open(&e, np_bench_find("UDP_STREAM"), family, -(int64_t)FEW * 512, change);
	ends_run(&e, 0);
	put_both(&e, sender, receiver);
	assert_no_allocation(&e);
	assert_number(sender, "udp.sent", FEW);
	assert_bag(receiver, "udp.", "sent=%d foreign=0", FEW);
	assert_number(receiver, "udp.received",
		      (double)np_get(&e.server.run.worker->count->receives));
	assert_bag(receiver, "udp.", "unique=%d lost=0", FEW);
}

TEST(loops_carry_the_numbers)
{
	run_numbered(AF_INET, number);
	run_numbered(AF_INET, number_and_touch);
	run_numbered(AF_INET, number_and_time);
	if (has_family(AF_INET6)) {
		run_numbered(AF_INET6, number);
	}
}

TEST(messages_without_room_are_told)
{
	FREED_BY(free_bag) struct np_bag *sender = np_bag_new(), *receiver = np_bag_new();
	struct np_bag_item it;
	FREED_BY(ends_free) struct ends e;

	ends_plan(&e, np_bench_find("UDP_STREAM"), AF_INET, -1900);
	e.client.plan.sequence = true;
	e.client.plan.near.call.send_size = NP_SEQUENCE_HEADER - 1;
	ends_make(&e);
	ends_run(&e, 0);
	put_both(&e, sender, receiver);
	assert_true(np_bag_find(sender, "udp.sent", &it));
	assert_int_equal(it.kind, NP_BAG_UNREAD);
	assert_true(np_bag_find(receiver, "udp.received", &it));
	assert_int_equal(it.kind, NP_BAG_UNREAD);
	assert_false(np_bag_find(receiver, "udp.lost", &it));
}

TEST(other_tests_have_no_account)
{
	static const char *const names[] = { "TCP_STREAM", "TCP_SENDFILE", "UDP_RR", "DG_STREAM" };

	for (size_t i = 0; i < LEN(names); i++) {
		FREED_BY(free_bag) struct np_bag *sender = np_bag_new(), *receiver = np_bag_new();
		const struct np_bench *b = np_bench_find(names[i]);
		FREED_BY(ends_free) struct ends e;

		ends_open(&e, b, b->transport->family != 0 ? b->transport->family : AF_INET, 1,
			  number);
		put_both(&e, sender, receiver);
		assert_int_equal(np_bag_count(sender), 0);
		assert_int_equal(np_bag_count(receiver), 0);
		assert_null(e.server.run.worker->state);
	}
}

/*
 * A link that ends between the two: takes the client's datagrams, and passes on to the server what
 * the number in it says: every 10th is lost, every 7th comes twice, every 100th after the next one.
 */
struct link {
	int fd;
	struct np_addr to;
	unsigned lost, twice, swapped, passed;
};

static void
pass(struct link *l, const char *bytes, ssize_t size, unsigned i)
{
	if (i % 10 == 3) {
		l->lost++;
		return;
	}
	for (unsigned copies = i % 7 == 0 ? 2 : 1; copies > 0; copies--) {
		assert_int_equal(send_datagram(l->fd, bytes, (size_t)size, &l->to), size);
	}
	l->twice += i % 7 == 0;
	l->passed++;
}

static void *
mangle(void *arg)
{
	struct link *l = arg;
	char bytes[1024], held[1024];
	ssize_t n, held_size = 0;

	for (unsigned i = 0; wait_readable(l->fd); i++) {
		n = recv(l->fd, bytes, sizeof(bytes), 0);
		if (n > 0 && i % 100 == 50) {
			memcpy(held, bytes, (size_t)n);
			held_size = n;
			continue;
		}
		pass(l, bytes, n > 0 ? n : 0, n > 0 ? i : 1);
		if (held_size > 0) {
			pass(l, held, held_size, i - 1);
			held_size = 0;
			l->swapped++;
		}
		if (n <= 0) {
			break;
		}
	}
	return NULL;
}

/* For all that will come: whoever reads may be kept from it by what else the machine does. */
static void
make_room(int fd)
{
	const int bytes = 8 << 20;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) != 0) {
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	}
}

TEST(a_lossy_link_is_accounted_exactly)
{
	FREED_BY(free_bag) struct np_bag *sender = np_bag_new(), *receiver = np_bag_new();
	struct link l = { .lost = 0 };
	struct np_addr at;
	FREED_BY(ends_free) struct ends e;
	pthread_t thread;

	ends_plan(&e, np_bench_find("UDP_STREAM"), AF_INET, -(int64_t)COUNT * 512);
	e.client.plan.sequence = true;
	pace(&e.client.plan.near.call, 10, 1000);
	ends_make(&e);
	l.fd = bound_socket(AF_INET, SOCK_DGRAM, &at);
	l.to = loopback(AF_INET, np_addr_port(&e.server.run.end.local));
	make_room(l.fd);
	make_room(e.server.run.conn->fd);
	end_aim(&e.client, &at);
	assert_int_equal(pthread_create(&thread, NULL, mangle, &l), 0);
	ends_run(&e, 0);
	pthread_join(thread, NULL);
	put_both(&e, sender, receiver);
	assert_int_equal(l.swapped, COUNT / 100);
	assert_bag(receiver, "udp.",
		   "sent=%d lost=%d loss_bursts=%d loss_burst_longest=1 duplicated=%d "
		   "reordered=%d",
		   COUNT, l.lost, l.lost, l.twice, l.swapped);
	assert_true(np_bag_number(receiver, "udp.reorder_extent_max") == 1);
	assert_true(np_bag_number(receiver, "udp.jitter_us") > 0);
	close(l.fd);
}

/* A far end's account in which two bursts were of these lengths. */
static struct np_bag *
claim(const int64_t *lengths, size_t count)
{
	struct np_bag *far = bag_of("udp.sent=10"),
		      *near = bag_of("udp.unique=3 udp.span=6 udp.loss_bursts=2 "
				     "udp.loss_burst_longest=2");

	np_bag_ints(near, lengths, count, "udp.loss_burst_lengths");
	np_sequence_join(far, near, 0);
	np_bag_free(far);
	return near;
}

TEST(bursts_that_do_not_add_up_are_not_added_to)
{
	static const int64_t false_ones[][3] = {
		{ 1, 1, INT64_MAX }, { 0, 0, INT64_MAX },         { 1, 1, -1 }, { 3, 0, -1 },
		{ INT64_MIN, 0, 0 }, { INT64_MAX, INT64_MAX, 2 }, { 1, 0, 0 },  { 1, 1, 1 },
	};
	static const int64_t true_ones[NP_SEQUENCE_LENGTHS + 1] = { 1, 1 };
	FREED_BY(free_bag) struct np_bag *fits = claim(true_ones, 2);

	assert_bag(fits, "udp.",
		   "lost=7 loss_bursts=3 loss_burst_longest=4 loss_burst_lengths=[1,1,1]");
	for (size_t i = 0; i <= LEN(false_ones); i++) {
		FREED_BY(free_bag)
		struct np_bag *b = i < LEN(false_ones) ? claim(false_ones[i], 3)
						       : claim(true_ones, LEN(true_ones));

		assert_number(b, "udp.lost", 7); /* the sender's count, which is ours */
		assert_bag(b, "", "udp.loss_burst_lengths=?");
	}
}

TEST_MAIN(np_drive_prepare())
