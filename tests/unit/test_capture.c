/*
 * Captures of datagrams over loopback, and ledgers as people read them.
 */
#include "net/capture.h"

#include "base/clock.h"
#include "out/format.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/sockets.h"

enum { COUNT = 100, PAYLOAD = 100 };

struct pair {
	int from, to;
	struct np_addr far; /* `to` */
};

/* At a loopback address of this process: what others send to 127.0.0.1 may fill the buffer. */
static struct pair
make_pair(int protocol)
{
	const uint32_t pid = (uint32_t)getpid();
	struct pair p = { .far = address("127.%u.%u.%u", (pid >> 14 | 128) & 255, pid >> 7 & 127,
					 pid & 127) };

	p.to = bound_at(&p.far, SOCK_DGRAM, protocol);
	p.from = connected_to_by(&p.far, SOCK_DGRAM, protocol);
	return p;
}

/* When they have arrived, the interface has seen them. */
static void
send_some(const struct pair *p)
{
	uint8_t bytes[PAYLOAD] = { 0 };

	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(send(p->from, bytes, sizeof(bytes), 0), PAYLOAD);
	}
	for (int i = 0; i < COUNT; i++) {
		assert_int_equal(recv(p->to, bytes, sizeof(bytes), 0), PAYLOAD);
	}
}

static void
close_pair(struct pair *p)
{
	close(p->from);
	close(p->to);
}

/* Skips where this build or user can have none. */
static struct np_capture *
open_capture(const struct pair *p, bool lock)
{
	const struct np_capture_place place = { .far = p->far, .lock = lock };
	struct np_capture *c;
	struct np_err err = { .code = NP_OK };

	if (np_capture_open(&c, &place, &err) != NP_OK) {
		close(p->from);
		close(p->to);
		assert_null(c);
		printf("SKIP: %s\n", err.msg);
		skip();
	}
	return c;
}

static double
value(const struct np_bag *b, const char *name)
{
	return np_bag_number(b, name);
}

/* Twice; datagrams before, between and after do not count, nor do those to another port. */
TEST(a_flow_is_heard_from_start_to_stop)
{
	int lite = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDPLITE);

	close(lite);
	for (int way = 0; way < (lite >= 0 ? 4 : 2); way++) { /* not every kernel has UDP-Lite */
		int protocol = way < 2 ? IPPROTO_UDP : IPPROTO_UDPLITE;
		FREED_BY(close_pair)
		struct pair p = make_pair(protocol), other = make_pair(protocol);
		struct np_capture *c = open_capture(&p, way % 2 == 0);
		const struct np_ledger_flow flow = { .far = p.far, .protocol = protocol };

		for (int i = 0; i < 2; i++) {
			FREED_BY(free_bag) struct np_bag *b = np_bag_new();
			struct np_err err;

			send_some(&p);
			assert_int_equal(np_capture_start(c, &flow, &err), NP_OK);
			send_some(&p);
			send_some(&other);
			np_capture_stop(c, b);
			send_some(&p);
			assert_int_equal((int)value(b, "wire.out.packets"), COUNT);
			assert_int_equal((int)value(b, "wire.dropped"), 0);
			assert_true(value(b, "wire.out.bytes.payload") == COUNT * PAYLOAD);
			assert_true(value(b, "wire.in.packets") == 0);
			assert_true(isnan(value(b, "wire.out.acks")));
			assert_non_null(np_bag_string(b, "wire.tap"));
		}
		np_capture_free(c);
	}
}

/* Whether packets follow in the window or not. */
TEST(after_a_warm_up_only_the_window_is_counted)
{
	FREED_BY(close_pair) struct pair p = make_pair(IPPROTO_UDP);
	struct np_capture *c = open_capture(&p, false);
	const struct np_ledger_flow flow = { .far = p.far, .protocol = IPPROTO_UDP };

	for (int rounds = 0; rounds < 2; rounds++) {
		FREED_BY(free_bag) struct np_bag *b = np_bag_new();
		struct np_err err;

		assert_int_equal(np_capture_start(c, &flow, &err), NP_OK);
		send_some(&p);
		np_capture_restart(c, np_now());
		for (int i = 0; i < rounds; i++) {
			send_some(&p);
		}
		np_capture_stop(c, b);
		assert_bag(b, "wire.out.", "packets=%d warm_up.data_segments=%d", COUNT * rounds,
			   COUNT);
		assert_non_null(strstr(np_bag_string(b, "wire.tap"), "the end of the warm-up"));
	}
	np_capture_free(c);
}

TEST(another_hosts_flow_is_refused)
{
	FREED_BY(close_pair) struct pair p = make_pair(IPPROTO_UDP);
	struct np_capture *c = open_capture(&p, true);
	struct np_ledger_flow flow = { .protocol = IPPROTO_UDP };
	struct np_err err;

	np_addr_make(&flow.far, AF_INET, (const uint8_t[]){ 192, 0, 2, 1 }, 9);
	assert_int_equal(np_capture_start(c, &flow, &err), NP_EUNSUP);
	flow.far = p.far;
	flow.protocol = 0;
	assert_int_equal(np_capture_start(c, &flow, &err), NP_EUNSUP);
	np_capture_stop(c, NULL); /* it was not started */
	np_capture_free(c);
	np_capture_free(NULL);
}

/* ---- For people ---- */

static char *__attribute__((noinline))
printed(const struct np_bag *near, const struct np_bag *far, const char *lacks)
{
	return WRITTEN(f, np_ledger_print(f, near, far, lacks));
}

TEST(both_ends_stand_side_by_side)
{
	FREED_BY(free_bag)
	struct np_bag *near = bag_of("wire.tap='eth0: here' wire.out.packets=12 wire.in.packets=0 "
				     "wire.out.fragments=0 wire.out.gap_max_us=1234.5 "
				     "wire.out.size_counts=[0,0,0,0,0,9,0,1] wire.dropped=3 "
				     "wire.malformed=2"),
		      *far = bag_of("wire=? moved.nic.tx_packets=7");
	FREED_BY(free_memory) char *text = NULL;

	text = printed(near, far, "");
	assert_string_equal(
	    text, "Wire ledger\n"
		  "                           local out      local in    remote out     remote in\n"
		  "packets seen                      12             0             -             -\n"
		  "longest gap, ms                1.234             -             -             -\n"
		  "up to 1518                         9             -             -             -\n"
		  "beyond 9018                        1             -             -             -\n"
		  "local: eth0: here\n"
		  "  the capture itself lost 3 packets: these figures are lower bounds, and lost "
		  "packets may look like a hole\n"
		  "  the headers of 2 packets could not be read\n"
		  "remote: no ledger: Permission denied\n"
		  "  its interface counted tx_packets 7 (with all other traffic)\n");
}

TEST(ends_of_which_nothing_is_known_are_named)
{
	FREED_BY(free_memory) char *text = printed(NULL, NULL, "it is a stock one");

	assert_string_equal(text, "Wire ledger\n"
				  "local: no ledger: nothing is known about that end\n"
				  "remote: no ledger: it is a stock one\n");
}

/* A tap of `sent` segments out and `arrived` in. */
static struct np_bag *
tap_of(int sent, int sent_again, int arrived, int taken_for_it, int doubled)
{
	return bag_of("wire.tap='eth0: here' wire.dropped=0 wire.out.data_segments=%d "
		      "wire.out.retransmitted_segments=%d wire.out.doubled=0 "
		      "wire.in.data_segments=%d wire.in.retransmitted_segments=%d "
		      "wire.in.doubled=%d",
		      sent, sent_again, arrived, taken_for_it, doubled);
}

/* 1000 out, of which 4 get lost and 20 are doubled; 500 come back, and 2 more behind the end. */
TEST(two_taps_say_what_happened_between_them)
{
	FREED_BY(free_bag)
	struct np_bag *near = tap_of(1000, 9, 502, 3, 0), *far = tap_of(500, 3, 1016, 11, 20);
	FREED_BY(free_bag) struct np_bag *way = np_bag_new();
	FREED_BY(free_memory) char *text = printed(near, far, "");

	assert_non_null(strstr(
	    text, "local to remote: 1000 segments with data sent, 1016 arrived, 20 of them "
		  "duplicated on the path, 4 missing (lost, or in flight when a capture ended)\n"
		  "  9 were sent again; what the remote tap has beyond, 2, was reordered or "
		  "duplicated on the path\n"
		  "remote to local: 500 segments with data sent, 502 arrived, 2 more than sent "
		  "(duplicated on the path, or after the end of the sender's capture)\n"));
	np_ledger_compare(near, far, way);
	assert_bag(way, "wire.way.",
		   "out.missing=4 out.doubled=20 out.sent_again=9 out.mistaken=2 in.missing=-2 "
		   "in.mistaken=0");
}

/* One window opened when 30 segments were on the way: what was lost is counted over both. */
TEST(windows_that_open_at_different_times_are_compared_with_their_warm_ups)
{
	FREED_BY(free_bag)
	struct np_bag *near = tap_of(1000, 9, 0, 0, 0), *far = tap_of(0, 0, 1026, 9, 0);
	FREED_BY(free_bag) struct np_bag *way = np_bag_new();
	FREED_BY(free_memory) char *text = NULL;

	np_bag_int(near, 530, "wire.out.warm_up.data_segments");
	np_bag_int(far, 500, "wire.in.warm_up.data_segments");
	text = printed(near, far, "");
	assert_non_null(strstr(text, "local to remote, with the warm-up: 1530 segments with data "
				     "sent, 1526 arrived, 4 missing"));
	np_ledger_compare(near, far, way);
	assert_bag(way, "wire.way.", "out.missing=4 out.mistaken=0");
}

TEST(taps_that_are_not_whole_are_not_compared)
{
	FREED_BY(free_bag)
	struct np_bag *near = tap_of(1000, 0, 0, 0, 0), *far = tap_of(0, 0, 900, 0, 0);
	FREED_BY(free_bag) struct np_bag *way = np_bag_new();
	FREED_BY(free_memory) char *text = NULL;

	np_bag_int(far, 5, "wire.dropped");
	text = printed(near, far, "");
	assert_null(strstr(text, "local to remote"));
	np_ledger_compare(near, far, way);
	np_ledger_compare(near, NULL, way);
	np_ledger_compare(NULL, far, way);
	assert_true(isnan(value(way, "wire.way.out.missing")));
}

/* A far end may leave out what it counts, or say that it counted more than there can be. */
TEST(figures_that_are_none_are_not_compared)
{
	static const char *const arrived[] = { "wire.in.data_segments=-1",
					       "wire.in.data_segments=1e15",
					       "wire.in.data_segments=1e300", "" };
	FREED_BY(free_bag) struct np_bag *near = tap_of(1000, 0, 0, 0, 0);

	for (size_t i = 0; i < LEN(arrived); i++) {
		FREED_BY(free_bag)
		struct np_bag *far = bag_of("wire.tap='eth1: there' wire.dropped=0 %s", arrived[i]),
			      *way = np_bag_new();
		FREED_BY(free_memory) char *text = printed(near, far, "");

		assert_null(strstr(text, "local to remote"));
		np_ledger_compare(near, far, way);
		assert_true(isnan(value(way, "wire.way.out.missing")));
	}
}

TEST(what_no_figure_has_is_said)
{
	FREED_BY(free_bag) struct np_bag *near = tap_of(0, 0, 9, 0, 0);
	FREED_BY(free_memory) char *text = NULL;

	put_bag(near, "wire.in.fragments_orphaned=3 wire.open_at_end=1");
	text = printed(near, NULL, "");
	assert_non_null(strstr(text, "fragments, orphaned                -             3"));
	assert_non_null(strstr(
	    text, "local: eth0: here\n"
		  "  of 3 fragments coming in the first fragment of their datagram, which has the "
		  "ports, was not captured (lost?): they are not in any other figure\n"
		  "  the capture ended with the test, before the connection: later packets (FIN, "
		  "RST, queued data) are not in these figures\n"));
}

TEST_MAIN()
