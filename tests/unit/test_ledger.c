/*
 * The ledger over packets made by hand: every figure is known.
 */
#include "net/ledger.h"

#include "tests/lib/bags.h"
#include "tests/lib/check.h"

enum { NEAR_PORT = 40000, FAR_PORT = 50000, FIN = 1, SYN = 2, RST = 4, ACK = 16, ECE = 64 };

#define MS UINT64_C(1000000)

/* One packet to be made, 0 being what is ordinary. */
struct say {
	bool in; /* from the far end */
	bool v6;
	uint64_t at_ns;
	uint32_t seq, stamp; /* stamp 0: no time stamps */
	unsigned flags, window, mss, payload, port, ecn;
	unsigned id;        /* of IP; 0: 7 */
	uint32_t ack, echo; /* the latter of a time stamp */
	unsigned piece;     /* IPv4's field of flags and offset; IPv6's in its extension header */
	bool udp;
	size_t cut; /* captured bytes, 0: all headers */
};

static void
put16(uint8_t *at, unsigned v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static void
put32(uint8_t *at, uint32_t v)
{
	put16(at, v >> 16);
	put16(at + 2, v & 0xffff);
}

static const uint8_t near4[] = { 192, 0, 2, 1 }, far4[] = { 192, 0, 2, 2 };
static const uint8_t near6[16] = { 0x20, 1, 0xd, 0xb8, [15] = 1 };
static const uint8_t far6[16] = { 0x20, 1, 0xd, 0xb8, [15] = 2 };

/* The transport's header. Returns its size. */
static size_t
put_transport(uint8_t *at, const struct say *s)
{
	unsigned near = s->port != 0 ? s->port : NEAR_PORT;
	size_t size = s->udp ? 8 : 20;

	put16(at, s->in ? FAR_PORT : near);
	put16(at + 2, s->in ? near : FAR_PORT);
	if (s->udp) {
		put16(at + 4, 8 + s->payload);
		return size;
	}
	put32(at + 4, s->seq);
	put32(at + 8, s->ack);
	at[13] = (uint8_t)s->flags;
	put16(at + 14, s->window);
	if (s->mss != 0) {
		at[size] = 2;
		at[size + 1] = 4;
		put16(at + size + 2, s->mss);
		size += 4;
	}
	if (s->stamp != 0) {
		at[size] = at[size + 1] = 1;
		at[size + 2] = 8;
		at[size + 3] = 10;
		put32(at + size + 4, s->stamp);
		put32(at + size + 8, s->echo);
		size += 12;
	}
	at[12] = (uint8_t)(size / 4 << 4);
	return size;
}

static size_t
put_ipv4(uint8_t *at, const struct say *s)
{
	bool is_first = (s->piece & 0x1fff) == 0;
	size_t size = 20 + (is_first ? put_transport(at + 20, s) : 0);

	at[0] = 0x45;
	at[1] = (uint8_t)s->ecn;
	put16(at + 2, size + s->payload <= 0xffff ? (unsigned)size + s->payload : 0);
	put16(at + 4, s->id != 0 ? s->id : 7);
	put16(at + 6, s->piece);
	at[8] = 64;
	at[9] = s->udp ? 17 : 6;
	memcpy(at + 12, s->in ? far4 : near4, 4);
	memcpy(at + 16, s->in ? near4 : far4, 4);
	return size;
}

/* With an extension header of eight bytes: hop by hop, or the fragment's. */
static size_t
put_ipv6(uint8_t *at, const struct say *s)
{
	bool is_first = (s->piece & 0xfff8) == 0;
	size_t size = 48 + (is_first ? put_transport(at + 48, s) : 0);

	at[0] = 0x60;
	at[1] = (uint8_t)(s->ecn << 4);
	put16(at + 4, (unsigned)size - 40 + s->payload);
	at[6] = s->piece != 0 ? 44 : 0;
	memcpy(at + 8, s->in ? far6 : near6, 16);
	memcpy(at + 24, s->in ? near6 : far6, 16);
	at[40] = s->udp ? 17 : 6;
	if (s->piece != 0) {
		put16(at + 42, s->piece);
		put32(at + 44, 0x10000 + (s->id != 0 ? s->id : 7));
	}
	return size;
}

/* Hand it in behind `link` bytes that stand in `head`. */
static bool
hand_in(struct np_ledger *l, const uint8_t *head, size_t link, const struct say *s)
{
	uint8_t bytes[256] = { 0 };
	size_t size;

	memcpy(bytes, head, link);
	size = link + (s->v6 ? put_ipv6(bytes + link, s) : put_ipv4(bytes + link, s));
	return np_ledger_packet(l, s->at_ns, bytes, s->cut != 0 ? s->cut : size, size + s->payload);
}

static bool
hear(struct np_ledger *l, struct say s)
{
	uint8_t head[14] = { 0 };

	put16(head + 12, s.v6 ? 0x86dd : 0x0800);
	return hand_in(l, head, sizeof(head), &s);
}

#define HEAR(l, ...) hear(l, (struct say){ __VA_ARGS__ })

static struct np_ledger_flow
flow_of(int protocol)
{
	struct np_ledger_flow f = { .protocol = protocol, .mtu = 1500 };

	np_addr_make(&f.near, AF_INET, near4, 0);
	np_addr_make(&f.far, AF_INET, far4, FAR_PORT);
	return f;
}

static struct np_ledger *
ledger_for(const struct np_ledger_flow *f)
{
	struct np_ledger *l = np_ledger_new(f);

	assert_non_null(l);
	return l;
}

static struct np_ledger *
ledger_of(int protocol)
{
	struct np_ledger_flow f = flow_of(protocol);

	return ledger_for(&f);
}

/* Frees the ledger, as assert_closed() does. */
static struct np_bag *
close_ledger(struct np_ledger *l)
{
	struct np_bag *b = np_bag_new();

	assert_non_null(b);
	np_ledger_put(l, b);
	free(l);
	assert_int_equal(np_bag_left_out(b), 0);
	return b;
}

#define assert_closed(l, prefix, ...)                                                              \
	do {                                                                                       \
		FREED_BY(free_bag) struct np_bag *b_ = close_ledger(l);                            \
                                                                                                   \
		assert_bag(b_, prefix, __VA_ARGS__);                                               \
	} while (0)

/* A connection: the two SYNs, 1 ms apart, say 1460; sequences begin at 1000 (out) and 5000. */
static struct np_ledger *
connected(uint32_t out)
{
	struct np_ledger *l = ledger_of(IPPROTO_TCP);

	assert_true(HEAR(l, .at_ns = MS, .seq = out, .flags = SYN, .mss = 1460));
	assert_true(
	    HEAR(l, .in = true, .at_ns = 2 * MS, .seq = 5000, .flags = SYN | ACK, .mss = 1460));
	return l;
}

TEST(super_packets_are_the_segments_they_stand_for)
{
	struct np_ledger *l = connected(1000);

	/* 12 bytes of options: 1448 each. 44 whole ones and 30 bytes. */
	assert_true(HEAR(l, .at_ns = 3 * MS, .seq = 1001, .flags = ACK, .window = 9, .stamp = 5,
			 .payload = 44 * 1448 + 30));
	assert_closed(l, "wire.",
		      "captured=3 seconds=0.002 malformed=0 out.packets=2 out.segments=46 "
		      "out.data_segments=45 out.bytes.payload=44*1448+30 out.bytes.link=46*14 "
		      "out.bytes.ip=46*20 out.bytes.transport=24+45*32 out.super_packets=1 "
		      "out.super_packet_max=52+44*1448+30 out.syn=1 out.acks=0 "
		      "out.retransmitted_segments=0 in.packets=1 in.syn=1 "
		      "out.size_counts=[1,1,0,0,0,44,0,0]");
}

TEST(blocks_of_datagrams_are_as_many)
{
	struct np_ledger_flow f = flow_of(IPPROTO_UDP);
	struct np_ledger *l;

	f.datagram_out = 1000;
	f.datagram_in = 64;
	l = ledger_for(&f);
	assert_true(HEAR(l, .udp = true, .payload = 10 * 1000));
	assert_true(HEAR(l, .udp = true, .payload = 1000));
	assert_true(HEAR(l, .udp = true, .in = true, .payload = 3 * 64));
	assert_closed(l, "wire.",
		      "out.packets=2 out.data_segments=11 out.super_packets=1 "
		      "out.bytes.transport=11*8 in.packets=1 in.data_segments=3");
}

TEST(packets_beyond_64_kib_are_as_long_as_they_were_on_the_wire)
{
	struct np_ledger *l = connected(1000);

	assert_true(HEAR(l, .at_ns = 3 * MS, .seq = 1001, .flags = ACK, .window = 9,
			 .payload = 100 * 1460));
	assert_closed(l, "wire.out.", "data_segments=100 bytes.payload=146000");
}

TEST(without_a_syn_the_mtu_says_how_large_segments_are)
{
	struct np_ledger *l = ledger_of(IPPROTO_TCP);

	assert_true(HEAR(l, .at_ns = MS, .seq = 1, .flags = ACK, .stamp = 1, .payload = 2 * 1448));
	assert_closed(l, "wire.out.", "data_segments=2");
}

TEST(data_sent_twice_are_retransmitted_whatever_the_numbers)
{
	/* The last ones go through 2^32 and 2^31. */
	static const uint32_t starts[] = { 1000, 0xfffff000, 0x7ffff000, 0xffffffff };

	for (size_t i = 0; i < LEN(starts); i++) {
		struct np_ledger *l = connected(starts[i]);
		uint32_t seq = starts[i] + 1;

		for (uint32_t n = 0; n < 10; n++) {
			HEAR(l, .at_ns = (3 + n) * MS, .seq = seq + n * 1460, .flags = ACK,
			     .payload = 1460);
		}
		/* One of them again, then two and a half, with half of new data behind. */
		HEAR(l, .at_ns = 20 * MS, .seq = seq + 2920, .flags = ACK, .payload = 1460);
		HEAR(l, .at_ns = 21 * MS, .seq = seq + 8 * 1460, .flags = ACK,
		     .payload = 2920 + 730);
		/* A keep-alive is one below, and none. */
		HEAR(l, .at_ns = 22 * MS, .seq = seq + 10 * 1460 + 729, .flags = ACK);
		assert_closed(l, "wire.out.",
			      "data_segments=10+1+3 retransmitted_segments=3 "
			      "retransmitted_bytes=3*1460 reordered=0 duplicated=0 acks=1");
	}
}

static struct say
arrival(uint64_t at_ms, uint32_t n, uint32_t stamp)
{
	return (struct say){ .in = true,
			     .at_ns = at_ms * MS,
			     .seq = 5001 + n * 1000,
			     .flags = ACK,
			     .payload = 1000,
			     .stamp = stamp };
}

TEST(what_fills_a_hole_is_late_or_retransmitted_by_its_time_stamp)
{
	struct np_ledger *l = connected(1000);

	hear(l, arrival(10, 0, 100));
	hear(l, arrival(11, 2, 101)); /* 1 is missing */
	hear(l, arrival(90, 1, 100)); /* sent before 2 was: late, after whatever time */
	hear(l, arrival(91, 6, 102)); /* 3 to 5 are missing */
	hear(l, arrival(91, 4, 103)); /* in the middle, sent after 6 was */
	hear(l, arrival(91, 3, 104));
	hear(l, arrival(91, 5, 105));
	hear(l, arrival(92, 5, 105)); /* and there already */
	assert_closed(l, "wire.in.",
		      "data_segments=8 reordered=1 retransmitted_segments=4 "
		      "retransmitted_bytes=4000 duplicated=1");
}

TEST(without_time_stamps_the_round_trip_decides)
{
	struct np_ledger *l = connected(1000); /* 1 ms */

	hear(l, arrival(10, 0, 0));
	hear(l, arrival(11, 2, 0));
	hear(l, arrival(11, 1, 0)); /* at once */
	hear(l, arrival(12, 4, 0));
	hear(l, arrival(13, 3, 0)); /* after a round trip */
	assert_closed(l, "wire.in.", "reordered=1 retransmitted_segments=1 duplicated=0");
}

/* A segment of 1000 bytes from an end that counts its packets, as Linux does with IPv4. */
static struct say
counted(uint64_t at_us, uint32_t n, uint32_t stamp, unsigned id)
{
	struct say s = arrival(0, n, stamp);

	s.at_ns = 10 * MS + at_us * 1000;
	s.id = id;
	return s;
}

/* Within one millisecond of time stamps, beyond the round trip: the counter knows. */
TEST(packets_that_are_counted_tell_the_order_of_sending)
{
	static const uint32_t starts[] = { 1, 0xfff8 }; /* the last one wraps */

	for (size_t i = 0; i < LEN(starts); i++) {
		struct np_ledger *l = connected(1000);
		uint32_t id = starts[i];

		for (uint32_t n = 0; n < 12; n++) {
			hear(l, counted(n, n, 7, (id + n) & 0xffff));
		}
		hear(l, counted(20, 13, 7, (id + 13) & 0xffff));   /* 12 is missing */
		hear(l, counted(5000, 12, 7, (id + 12) & 0xffff)); /* and was only late */
		hear(l, counted(5001, 15, 7, (id + 15) & 0xffff));
		hear(l, counted(5002, 14, 7, (id + 16) & 0xffff)); /* lost, and sent again */
		hear(l, counted(9000, 14, 7, (id + 16) & 0xffff)); /* twice by the network */
		hear(l, counted(9001, 14, 7, (id + 14) & 0xffff)); /* not lost at all */
		hear(l, counted(9002, 11, 7, (id + 17) & 0xffff)); /* sent again in vain */
		assert_closed(l, "wire.in.",
			      "data_segments=12+7 reordered=1 retransmitted_segments=2 "
			      "retransmitted_bytes=2000 duplicated=3 doubled=1");
	}
}

/* As some systems have it: 0 in all packets, or whatever comes. */
TEST(identifications_that_count_nothing_are_not_believed)
{
	for (int i = 0; i < 2; i++) {
		struct np_ledger *l = connected(1000);
		uint32_t id = 1;

		for (uint32_t n = 0; n < 100; n++) {
			id = i == 0 ? 7 : (id * 20077 + 12345) & 0xffff;
			hear(l, counted(n, n, 7, id | 1));
		}
		hear(l, counted(200, 101, 7, 60001));
		hear(l, counted(201, 100, 7, 60003)); /* at once: overtaken */
		hear(l, counted(202, 103, 7, 60005));
		hear(l, counted(5000, 102, 7, 60001)); /* after a round trip: sent again */
		assert_closed(l, "wire.in.", "reordered=1 retransmitted_segments=1 doubled=0");
	}
}

/* Where packets are not counted the time decides, within a millisecond. */
TEST(what_the_network_doubles_is_not_sent_twice)
{
	struct np_ledger *l = connected(1000); /* 1 ms */

	hear(l, arrival(10, 0, 100));
	hear(l, arrival(10, 0, 100)); /* at once */
	hear(l, arrival(11, 1, 101));
	hear(l, arrival(80, 0, 102)); /* sent again */
	hear(l, arrival(81, 3, 103));
	hear(l, arrival(82, 2, 105)); /* sent again, and then comes */
	hear(l, arrival(83, 2, 102)); /* the first one */
	assert_closed(l, "wire.in.", "retransmitted_segments=2 reordered=0 duplicated=3 doubled=1");
}

/* The kernel has put together what fills a hole and what was there on either side. */
TEST(segments_that_were_put_together_are_counted_one_by_one)
{
	struct np_ledger *l = connected(1000);
	struct say s = { .in = true, .at_ns = 10 * MS, .flags = ACK, .stamp = 7, .payload = 1448 };

	s.seq = 5001;
	hear(l, s);
	s.seq += 3 * 1448;
	s.payload = 4 * 1448; /* 1 and 2 are missing */
	hear(l, s);
	s.at_ns += 100;
	s.seq -= 2 * 1448;
	s.payload = 2 * 1448; /* both, late */
	hear(l, s);
	s.stamp = 9;
	s.seq -= 1448;
	s.payload = 4 * 1448; /* and all again */
	hear(l, s);
	assert_closed(l, "wire.in.",
		      "data_segments=11 reordered=2 retransmitted_segments=4 duplicated=4 "
		      "doubled=0");
}

/* The tap is before the network: what goes out again at once is sent again. */
TEST(what_goes_out_twice_is_sent_twice)
{
	struct np_ledger *l = connected(1000);
	struct say s = { .at_ns = 10 * MS, .flags = ACK, .stamp = 7, .payload = 1000 };

	for (unsigned n = 0; n < 12; n++) {
		s.seq = 1001 + n * 1000;
		s.id = 20 + n;
		hear(l, s);
	}
	s.seq = 1001 + 5 * 1000;
	s.id = 32;
	hear(l, s);
	hear(l, s); /* one packet, seen by two devices */
	assert_closed(l, "wire.out.", "retransmitted_segments=1 duplicated=1 doubled=1");
}

/* The kernel has put what came twice together with what came behind it. */
TEST(doubles_are_found_in_what_was_put_together)
{
	struct np_ledger *l = connected(1000);
	struct say s = { .in = true, .flags = ACK, .stamp = 7, .payload = 1448 };

	for (unsigned n = 0; n < 12; n++) {
		s.at_ns = 10 * MS + n;
		s.seq = 5001 + n * 1448;
		s.id = 100 + n;
		hear(l, s);
	}
	s.seq += 1448; /* 12 and 13 */
	s.id++;
	s.payload = 2 * 1448;
	hear(l, s);
	s.at_ns += 5 * MS;
	s.seq += 1448; /* 13, and 14 */
	s.id++;
	hear(l, s);
	s.at_ns += 5 * MS;
	s.id += 2; /* both sent again */
	hear(l, s);
	assert_closed(l, "wire.in.",
		      "data_segments=12+6 duplicated=3 doubled=1 retransmitted_segments=2 "
		      "reordered=0");
}

/* Data of one tick of the time stamps are not sent twice where a round trip takes several. */
TEST(round_trips_of_several_ticks_leave_no_doubt)
{
	for (uint32_t ticks = 1; ticks < 8; ticks += 3) { /* of ms, by a handshake of one */
		struct np_ledger *l = connected(1000);
		bool known = ticks >= 2;
		struct say s;

		for (uint32_t n = 0; n < 30; n++) {
			hear(l, arrival(10 + n, n, 100 + n));
		}
		HEAR(l, .at_ns = 50 * MS, .seq = 1001, .flags = ACK, .stamp = 500);
		s = arrival(50 + ticks, 30, 140);
		s.echo = 500;
		hear(l, s);
		hear(l, arrival(60, 32, 150)); /* 31 is missing */
		hear(l, arrival(69, 31, 150));
		hear(l, arrival(79, 31, 150));
		assert_closed(l, "wire.in.",
			      "reordered=%d doubled=%d duplicated=1 retransmitted_segments=%d",
			      known, known, known ? 0 : 2);
	}
}

/* What closes a connection may come when the test is over. */
TEST(connections_that_are_open_at_the_end_are_named)
{
	static const struct {
		unsigned out, in;
		uint32_t in_acks, out_acks; /* of those, and of an ACK behind them */
		bool open;
	} ends[] = {
		{ ACK, ACK, 1001, 5001, true },
		{ FIN | ACK, ACK, 1002, 5001, true },
		{ FIN | ACK, FIN | ACK, 1001, 5002, true },
		{ FIN | ACK, FIN | ACK, 1002, 5001, true },
		{ FIN | ACK, FIN | ACK, 1002, 5002, false },
		{ RST, ACK, 1001, 5001, false },
		{ ACK, RST | ACK, 1001, 5001, false },
	};

	for (size_t i = 0; i < LEN(ends); i++) {
		struct np_ledger *l = connected(1000);
		struct say in = { .in = true, .at_ns = 4 * MS, .seq = 5001, .flags = ends[i].in };

		in.ack = ends[i].in_acks;
		HEAR(l, .at_ns = 3 * MS, .seq = 1001, .flags = ends[i].out);
		hear(l, in);
		HEAR(l, .at_ns = 5 * MS, .seq = 1002, .flags = ACK, .ack = ends[i].out_acks);
		assert_closed(l, "wire.", "open_at_end=%d", ends[i].open);
	}
}

/* As where two processors send at a time, or the queue dropped something. */
TEST(what_goes_out_can_be_overtaken_too)
{
	struct np_ledger *l = connected(1000);

	for (uint32_t n = 0; n < 6; n++) {
		static const uint32_t order[] = { 0, 2, 1, 4, 5, 3 };

		HEAR(l, .at_ns = 10 * MS + n, .seq = 1001 + order[n] * 1000, .flags = ACK,
		     .payload = 1000, .stamp = n < 5 ? 7 : 8); /* 1 in time, 3 again */
	}
	assert_closed(l, "wire.out.", "reordered=1 retransmitted_segments=1 duplicated=0");
}

TEST(more_holes_than_are_followed_do_no_harm)
{
	struct np_ledger *l = connected(1000);

	for (uint32_t n = 0; n < 2000; n++) {
		hear(l, arrival(10, 2 * n, 7));
	}
	for (uint32_t n = 0; n < 1999; n++) {
		hear(l, arrival(20, 2 * n + 1, 9));
	}
	assert_closed(l, "wire.in.",
		      "data_segments=3999 retransmitted_segments=1999 duplicated=1999-256");
}

TEST(acks_marks_and_ends_are_counted)
{
	struct np_ledger *l = connected(1000);

	HEAR(l, .at_ns = 3 * MS, .seq = 1001, .flags = ACK, .window = 1);
	HEAR(l, .at_ns = 4 * MS, .seq = 1001, .flags = ACK | ECE, .window = 1);
	HEAR(l, .in = true, .at_ns = 5 * MS, .seq = 5001, .flags = ACK, .ecn = 3, .payload = 2920,
	     .window = 1);
	HEAR(l, .in = true, .at_ns = 5 * MS, .seq = 7921, .flags = ACK, .ecn = 2, .payload = 10,
	     .window = 1);
	HEAR(l, .at_ns = 6 * MS, .seq = 1001, .flags = ACK | FIN, .window = 1);
	HEAR(l, .in = true, .at_ns = 7 * MS, .seq = 7931, .flags = ACK | RST);
	assert_closed(l, "wire.",
		      "out.acks=2 out.ecn_ece=1 out.fin=1 in.ecn_ce=2 in.ecn_ece=0 in.rst=1 "
		      "in.zero_window=0");
}

TEST(closed_windows_are_timed_to_their_opening_or_to_the_end)
{
	static const unsigned windows[] = { 9, 0, 0, 5, 5, 0, 1, 0 };
	struct np_ledger *l = ledger_of(IPPROTO_TCP);

	for (size_t i = 0; i < LEN(windows); i++) {
		HEAR(l, .in = true, .at_ns = (1 + i) * 10 * MS, .seq = 1, .flags = ACK,
		     .window = windows[i]);
	}
	HEAR(l, .at_ns = 85 * MS, .seq = 1, .flags = ACK, .window = 1);
	assert_closed(l, "wire.",
		      "in.zero_window=4 in.zero_window_s=0.020+0.010+0.005 out.zero_window=0 "
		      "out.zero_window_s=0");
}

/* What is known of the connection stays: what is sent again, and that the window is closed. */
TEST(after_a_warm_up_the_window_is_counted)
{
	struct np_ledger *l = connected(1000);

	HEAR(l, .at_ns = 3 * MS, .seq = 1001, .flags = ACK, .payload = 1000, .stamp = 3);
	HEAR(l, .at_ns = 4 * MS, .seq = 1001, .flags = ACK, .payload = 1000, .stamp = 4);
	HEAR(l, .in = true, .at_ns = 5 * MS, .seq = 5001, .flags = ACK);
	np_ledger_restart(l, 10 * MS);
	HEAR(l, .at_ns = 12 * MS, .seq = 2001, .flags = ACK, .payload = 1000, .stamp = 12);
	HEAR(l, .at_ns = 13 * MS, .seq = 1001, .flags = ACK, .payload = 1000, .stamp = 13);
	HEAR(l, .in = true, .at_ns = 15 * MS, .seq = 5001, .flags = ACK, .window = 5);
	assert_closed(l, "wire.",
		      "captured=3 seconds=0.005 out.data_segments=2 out.bytes.payload=2000 "
		      "out.retransmitted_segments=1 out.syn=0 in.acks=1 in.zero_window=0 "
		      "in.zero_window_s=0.005 out.warm_up.data_segments=2 "
		      "out.warm_up.retransmitted_segments=1 in.warm_up.data_segments=0");
}

TEST(fragments_of_a_warm_up_are_no_orphans_of_the_window)
{
	struct np_ledger *l = ledger_of(IPPROTO_UDP);

	HEAR(l, .at_ns = MS, .udp = true, .piece = 100, .id = 9, .payload = 500);
	np_ledger_restart(l, 2 * MS);
	HEAR(l, .at_ns = 3 * MS, .udp = true, .piece = 0x2000, .id = 9, .payload = 792);
	assert_closed(l, "wire.out.", "packets=1 fragments=1 fragments_orphaned=0");
}

TEST(gaps_are_known_to_an_eighth)
{
	struct np_ledger *l = ledger_of(IPPROTO_UDP);
	uint64_t at_ns = MS;
	FREED_BY(free_bag) struct np_bag *b = NULL;
	double p99;

	/* 1000 gaps: 985 of 10 us, 14 of 200 us, one of 5 ms. */
	HEAR(l, .at_ns = at_ns, .udp = true, .payload = 1);
	for (int i = 0; i < 1000; i++) {
		at_ns += i < 985 ? 10000 : i < 999 ? 200000 : 5 * MS;
		HEAR(l, .at_ns = at_ns, .udp = true, .payload = 1);
	}
	b = close_ledger(l);
	assert_number(b, "wire.out.gap_max_us", 5000);
	p99 = np_bag_number(b, "wire.out.gap_p99_us");
	assert_true(p99 > 200 * 0.93 && p99 < 200 * 1.07);
	assert_true(isnan(np_bag_number(b, "wire.in.gap_max_us")));
}

/* One of three pieces of a datagram of 2900 bytes. */
static struct say
piece_of(bool v6, unsigned id, unsigned which)
{
	static const unsigned at[] = { 0, 176, 352 }; /* of eight bytes */
	unsigned more = which < 2;

	return (struct say){ .udp = true,
			     .v6 = v6,
			     .at_ns = MS,
			     .id = id,
			     .piece = v6 ? at[which] << 3 | more : more << 13 | at[which],
			     .payload = which < 2 ? 1400 : 100 };
}

static struct np_ledger *
ledger_of_datagrams(bool v6)
{
	struct np_ledger_flow f = flow_of(IPPROTO_UDP);
	struct np_ledger *l;

	if (v6) {
		np_addr_make(&f.near, AF_INET6, near6, 0);
		np_addr_make(&f.far, AF_INET6, far6, FAR_PORT);
	}
	l = ledger_for(&f);
	return l;
}

TEST(fragments_belong_to_the_datagram_they_are_of)
{
	/* In order, backwards, and with the first one in the middle. */
	static const unsigned orders[][3] = { { 0, 1, 2 }, { 2, 1, 0 }, { 1, 0, 2 } };

	for (unsigned i = 0; i < 2 * LEN(orders); i++) {
		bool v6 = i % 2 != 0;
		struct np_ledger *l = ledger_of_datagrams(v6);

		for (int n = 0; n < 3; n++) {
			assert_true(hear(l, piece_of(v6, 7, orders[i / 2][n])));
		}
		assert_closed(l, "wire.",
			      "captured=3 out.packets=3 out.segments=3 out.data_segments=1 "
			      "out.fragments=3 out.fragments_orphaned=0 out.bytes.orphaned=0 "
			      "out.bytes.ip=%d out.bytes.transport=8 out.bytes.payload=2900 "
			      "out.bytes.seen=%d",
			      3 * (v6 ? 48 : 20), 3 * 14 + 3 * (v6 ? 48 : 20) + 8 + 2900);
	}
}

TEST(fragments_whose_first_was_lost_are_counted_apart)
{
	for (int v6 = 0; v6 < 2; v6++) {
		struct np_ledger *l = ledger_of_datagrams(v6);
		struct say in = piece_of(v6, 8, 2), tcp = piece_of(v6, 11, 1);

		in.in = true;
		tcp.udp = false;
		assert_true(hear(l, piece_of(v6, 7, 1)));
		assert_true(hear(l, piece_of(v6, 7, 2)));
		assert_true(hear(l, in));
		assert_false(hear(l, tcp)); /* of no datagram */
		assert_false(hear(l, piece_of(!v6, 7, 1)));
		assert_closed(l, "wire.",
			      "captured=0 out.packets=0 out.fragments_orphaned=2 "
			      "out.bytes.orphaned=%d in.fragments_orphaned=1",
			      1500 + 2 * (14 + (v6 ? 48 : 20)));
	}
}

/* A flow beside ours, between the same hosts: pieces before and after the one with the ports. */
TEST(fragments_of_others_are_not_orphans)
{
	struct np_ledger_flow f = flow_of(IPPROTO_UDP);
	struct say first = piece_of(false, 9, 0);
	struct np_ledger *l;

	np_addr_set_port(&f.near, NEAR_PORT);
	l = ledger_for(&f);
	first.port = 41000;
	assert_true(hear(l, piece_of(false, 9, 1))); /* it could be ours, until */
	assert_false(hear(l, first));
	assert_false(hear(l, piece_of(false, 9, 2)));
	assert_true(hear(l, piece_of(false, 10, 0)));
	assert_true(hear(l, piece_of(false, 10, 2)));
	assert_closed(l, "wire.out.", "packets=2 fragments_orphaned=0 bytes.orphaned=0");
}

/* Both ends number their datagrams for themselves. */
TEST(fragments_of_both_directions_are_told_apart)
{
	struct np_ledger *l = ledger_of(IPPROTO_UDP);

	for (unsigned which = 0; which < 3; which++) {
		struct say in = piece_of(false, 7, which);

		in.in = true;
		assert_true(hear(l, piece_of(false, 7, which)));
		assert_true(hear(l, in));
	}
	assert_closed(l, "wire.", "out.bytes.payload=2900 in.bytes.payload=2900");
}

TEST(more_orphans_than_are_kept_are_counted)
{
	struct np_ledger *l = ledger_of(IPPROTO_UDP);

	for (unsigned id = 1; id <= 1000; id++) {
		assert_true(hear(l, piece_of(false, id, 2)));
	}
	assert_true(hear(l, piece_of(false, 1000, 0)));
	assert_true(hear(l, piece_of(false, 1, 0))); /* too late */
	assert_closed(l, "wire.out.", "fragments_orphaned=999 bytes.orphaned=%d packets=3",
		      999 * (14 + 20 + 100));
}

TEST(datagrams_larger_than_the_mtu_are_many)
{
	struct np_ledger *l = ledger_of(IPPROTO_UDP);

	HEAR(l, .udp = true, .at_ns = MS, .payload = 10 * 1472 + 1);
	assert_closed(l, "wire.out.",
		      "packets=1 data_segments=11 bytes.transport=11*8 "
		      "size_counts=[1,0,0,0,0,10,0,0]");
}

TEST(every_kind_of_link_is_gone_beyond)
{
	static const struct {
		enum np_ledger_link link;
		size_t size;
		uint8_t head[24];
		unsigned on_the_medium;
	} links[] = {
		{ NP_LINK_ETHERNET, 14, { [12] = 8 }, 14 },
		{ NP_LINK_ETHERNET, 18, { [12] = 0x81, 0, 0, 5, 8 }, 18 },
		{ NP_LINK_ETHERNET, 22, { [12] = 0x88, 0xa8, 0, 5, 0x81, 0, 0, 6, 8 }, 22 },
		{ NP_LINK_SLL, 16, { [1] = 4, [14] = 8 }, 0 },
		{ NP_LINK_SLL2, 20, { 8, 0 }, 0 },
		{ NP_LINK_RAW, 0, { 0 }, 0 },
		{ NP_LINK_NULL, 4, { 2, 0, 0, 0 }, 0 },
	};

	for (size_t i = 0; i < LEN(links); i++) {
		struct np_ledger_flow f = flow_of(IPPROTO_TCP);
		const struct say s = { .at_ns = MS, .seq = 1, .flags = ACK, .payload = 7 };
		struct np_ledger *l;

		f.link = links[i].link;
		l = ledger_for(&f);
		assert_true(hand_in(l, links[i].head, links[i].size, &s));
		assert_closed(l, "wire.out.bytes.", "link=%d payload=7", links[i].on_the_medium);
	}
}

TEST(others_packets_are_ignored)
{
	struct np_ledger_flow f = flow_of(IPPROTO_TCP);
	struct np_ledger *l;

	np_addr_set_port(&f.near, NEAR_PORT);
	l = ledger_for(&f);
	assert_false(HEAR(l, .at_ns = MS, .flags = ACK, .port = 40001));
	assert_false(HEAR(l, .at_ns = MS, .flags = ACK, .v6 = true));
	assert_false(HEAR(l, .at_ns = MS, .udp = true));
	assert_false(np_ledger_packet(l, MS, (const uint8_t *)"", 0, 0));
	assert_closed(l, "wire.", "captured=0");
}

/* As many as there are, and port 0 is none of them. */
TEST(flows_have_any_number_of_ports)
{
	struct np_ledger_flow f = flow_of(IPPROTO_UDP);
	struct np_ledger *l;

	np_addr_make(&f.near, AF_INET, near4, 10001);
	np_addr_set_port(&f.far, 0);
	for (unsigned port = 10001; port < 20001; port++) {
		np_ledger_add_port(&f.ports, port);
	}
	np_ledger_add_port(&f.ports, UINT16_MAX);
	l = ledger_for(&f);
	for (unsigned port = 9999; port < 20003; port++) {
		assert_int_equal(HEAR(l, .at_ns = MS, .udp = true, .port = port),
				 port > 10000 && port < 20001);
	}
	assert_true(HEAR(l, .at_ns = MS, .udp = true, .port = UINT16_MAX));
	assert_false(HEAR(l, .at_ns = MS, .udp = true, .port = UINT16_MAX - 1));
	assert_closed(l, "wire.out.", "packets=10001");
}

TEST(ends_on_one_host_are_told_apart_by_their_ports)
{
	struct np_ledger_flow f = flow_of(IPPROTO_TCP);
	struct np_ledger *l;

	f.near.len = 0;
	np_addr_make(&f.far, AF_INET6, (const uint8_t[16]){ 0 }, FAR_PORT); /* a wildcard */
	l = ledger_for(&f);
	HEAR(l, .at_ns = MS, .flags = ACK);
	HEAR(l, .at_ns = MS, .flags = ACK);
	HEAR(l, .at_ns = MS, .flags = ACK, .in = true);
	assert_closed(l, "wire.", "out.packets=2 in.packets=1");
}

/* Whatever is missing: what has ports is the flow's, and no byte beyond is looked at (ASan). */
TEST(cut_headers_are_malformed)
{
	struct np_ledger *l = ledger_of(IPPROTO_TCP);

	for (size_t cut = 1; cut < 54; cut++) {
		bool has_ports = cut >= 14 + 20 + 4;

		assert_int_equal(HEAR(l, .at_ns = MS, .flags = ACK, .cut = cut), has_ports);
	}
	assert_closed(l, "wire.", "malformed=54-38 out.packets=0");
}

TEST(connections_that_come_and_go_are_not_followed)
{
	struct np_ledger_flow f = flow_of(IPPROTO_TCP);
	struct np_ledger *l;

	f.many_connections = true;
	l = ledger_for(&f);
	for (unsigned i = 0; i < 5; i++) {
		HEAR(l, .at_ns = MS, .seq = 9, .flags = SYN, .port = 41000 + i);
		HEAR(l, .at_ns = MS, .seq = 10, .flags = ACK, .port = 41000 + i, .payload = 1);
	}
	assert_closed(l, "wire.out.", "syn=5 data_segments=5 retransmitted_segments=none");
}

TEST_MAIN()
