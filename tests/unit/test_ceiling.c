/*
 * What links carry at most: the worked examples of doc/ceilings.md, and the lines of
 * netperf --ceiling. tests/e2e/ceilings.py asks about many more.
 */
#include "stats/ceiling.h"

#include "cli/modes.h"
#include "tests/lib/check.h"

static struct np_encap
encap(uint32_t mtu, int family, bool timestamps)
{
	return (struct np_encap){ .mtu = mtu,
				  .family = family,
				  .timestamps = timestamps,
				  .framing = NP_FRAMING_ETHERNET };
}

/* Records of TLS take a part of TCP's bytes: doc/ceilings.md. */
TEST(records_of_tls_take_a_part)
{
	struct np_encap e = encap(1500, 4, true);
	struct np_ceiling_exchange x;

	assert_int_equal(np_ceiling_tls(0), 0);
	assert_int_equal(np_ceiling_tls(1), 23);
	assert_int_equal(np_ceiling_tls(16384), 16406);
	assert_int_equal(np_ceiling_tls(16385), 16385 + 44);
	assert_true(np_ceiling_tls(UINT32_MAX) == UINT64_C(4294967295) + 262144 * 22);
	e.tls_send = 16384;
	assert_close(np_ceiling_tcp(&e), 16384.0 / 16406 * 1448 / 1538, 1e-12);
	assert_true(np_ceiling_exchange(&e, NP_TURNS_TCP_RR, 1, 1426, &x));
	assert_int_equal(x.there, 38 + 52 + 23);
	assert_int_equal(x.back, 1538); /* 1426 and 22 just fill a segment */
	assert_true(np_ceiling_exchange(&e, NP_TURNS_TCP_RR, 1, 1427, &x));
	assert_int_equal(x.part[1].packets, 2);
	e.tls_send = 64;
	assert_close(np_ceiling_tcp(&e), 64.0 / 86 * 1448 / 1538, 1e-12);
}

/* As captures of MPTCP show them: doc/ceilings.md. */
TEST(options_of_mptcp_take_a_part)
{
	struct np_encap e = encap(1500, 4, true);
	struct np_ceiling_exchange x;

	e.options = 24;
	assert_int_equal(np_ceiling_segment(&e), 1424);
	assert_close(np_ceiling_tcp(&e), 1424.0 / 1538, 1e-12);
	e.mss = 1000;
	assert_int_equal(np_ceiling_segment(&e), 1000 - 12 - 24);
	e = encap(1500, 6, true);
	e.options = 24;
	assert_int_equal(np_ceiling_segment(&e), 1404);
	e = encap(1500, 4, true);
	e.options = 28;
	assert_true(np_ceiling_exchange(&e, NP_TURNS_TCP_RR, 1, 1, &x));
	assert_int_equal(x.there, 119);
	assert_int_equal(x.back, 119);
	e.mtu = 80; /* all of it headers */
	assert_int_equal(np_ceiling_segment(&e), 0);
	assert_false(np_ceiling_exchange(&e, NP_TURNS_TCP_RR, 1, 1, &x));
}

/* doc/ceilings.md */
TEST(messages_share_packets)
{
	static const struct {
		int family;
		uint32_t mss, size;
		double share;
	} of[] = {
		{ 4, 0, 1452, 1452.0 / 1538 },
		{ 6, 0, 1432, 1432.0 / 1538 },
		{ 4, 0, 1400, 1400.0 / 1486 },
		{ 4, 0, 100, 1200.0 / 1462 },
		{ 4, 0, 1, 73.0 / 1530 },
		{ 4, 0, 3000, 3000.0 / (2 * 1538 + 182) },
		{ 4, 1200, 3000, 3000.0 / (2 * 1286 + 686) },
		{ 4, 700, 1400, 1400.0 / (1432 + 32 + 38) },
	};
	struct np_ceiling_exchange x;
	struct np_encap e = encap(1500, 4, true), small = encap(20, 4, true),
			strange = encap(1500, 5, true);

	for (size_t i = 0; i < LEN(of); i++) {
		e = encap(1500, of[i].family, true);
		e.mss = of[i].mss;
		assert_close(np_ceiling_sctp(&e, of[i].size), of[i].share, 1e-12);
	}
	e = encap(1500, 4, true);
	assert_int_equal(np_ceiling_fragment(&e), 1452);
	assert_true(isnan(np_ceiling_sctp(&e, 0)));
	assert_true(isnan(np_ceiling_sctp(&small, 100)));
	assert_true(isnan(np_ceiling_sctp(&strange, 100)));
	assert_true(np_ceiling_exchange(&e, NP_TURNS_SCTP_RR, 1, 3000, &x));
	assert_int_equal(x.there, 90);
	assert_int_equal(x.back, 2 * 1538 + 182);
	assert_int_equal(x.part[1].packets, 3);
	assert_close(np_ceiling_turns(&e, NP_TURNS_SCTP_RR, 1, 1, 100e6, 0, 1), 100e6 / (8 * 180),
		     1e-12);
	e.mss = 12; /* which TCP's options would fill */
	assert_true(np_ceiling_exchange(&e, NP_TURNS_SCTP_RR, 1, 1, &x));
	assert_false(np_ceiling_exchange(&e, NP_TURNS_TCP_RR, 1, 1, &x));
}

TEST(ceilings_of_the_document)
{
	struct np_encap e = encap(1500, 4, true), narrow = encap(256, 4, true);

	assert_int_equal(np_ceiling_segment(&e), 1448);
	assert_close(np_ceiling_tcp(&e), 1448.0 / 1538, 1e-12);
	assert_close(np_ceiling_tcp(&narrow), 204.0 / 294, 1e-12);
	assert_close(np_ceiling_udp(&e, 65507), 65507.0 / 68125, 1e-12);
	assert_int_equal(np_ceiling_fragments(&e, 65507), 45);
	assert_int_equal(np_ceiling_fragments(&e, 1472), 1);
	assert_int_equal(np_ceiling_fragments(&e, 1473), 2);
	assert_int_equal(np_ceiling_fragments(&narrow, 1472), 7);
	assert_close(np_ceiling_turns(&e, NP_TURNS_TCP_CRR, 1, 1, 100e6, 0, 1), 100e6 / (8 * 648),
		     1e-12);
}

TEST(what_no_packet_can_have)
{
	struct np_encap small = encap(67, 4, true), small6 = encap(1279, 6, true),
			strange = encap(1500, 5, true), e = encap(1500, 4, true), none = e;

	none.mss = 12;
	assert_true(isnan(np_ceiling_tcp(&small)));
	assert_true(isnan(np_ceiling_udp(&small6, 1)));
	assert_true(isnan(np_ceiling_tcp(&strange)));
	assert_true(isnan(np_ceiling_tcp(&none)));
	assert_int_equal(np_ceiling_segment(&none), 0);
	assert_true(isnan(np_ceiling_udp(&e, 65508)));
	assert_int_equal(np_ceiling_fragments(&e, 65508), 0);
	assert_true(isnan(np_ceiling_turns(&e, NP_TURNS_TCP_RR, 0, 0, 1e8, 0, 1)));
	assert_true(isnan(np_ceiling_turns(&e, NP_TURNS_TCP_RR, 1, 1, 0, 0, 1)));
	assert_true(isnan(np_ceiling_turns(&e, NP_TURNS_UDP_RR, 1, 65508, 1e8, 0, 1)));
	assert_true(isnan(np_ceiling_turns(&none, NP_TURNS_TCP_RR, 1, 1, 1e8, 0, 1)));
}

/* A frame costs its payload and 38 bytes, and 84 at least; there is no second one. */
TEST(frames_have_no_header_but_their_own)
{
	struct np_encap e = encap(1500, NP_FRAMES, false);

	assert_close(np_ceiling_udp(&e, 1500), 1500.0 / 1538, 1e-12);
	assert_close(np_ceiling_udp(&e, 46), 46.0 / 84, 1e-12);
	assert_int_equal(np_ceiling_fragments(&e, 1500), 1);
	assert_int_equal(np_ceiling_fragments(&e, 1501), 0);
	assert_true(isnan(np_ceiling_udp(&e, 1501)));
	assert_true(isnan(np_ceiling_tcp(&e)));
	assert_close(np_ceiling_turns(&e, NP_TURNS_UDP_RR, 1, 1, 100e6, 0, 1), 100e6 / (8 * 168),
		     1e-12);
	assert_true(isnan(np_ceiling_turns(&e, NP_TURNS_TCP_RR, 1, 1, 100e6, 0, 1)));
}

/* A message of DCCP has 16 bytes before it, and never a second packet. */
TEST(a_message_with_a_header_of_its_own_is_one_packet)
{
	struct np_encap e = encap(1500, 4, false);

	e.message_header = 16;
	assert_close(np_ceiling_udp(&e, 1400), 1400.0 / 1474, 1e-12);
	assert_close(np_ceiling_udp(&e, 1464), 1464.0 / 1538, 1e-12);
	assert_int_equal(np_ceiling_datagram(&e), 1464);
	assert_int_equal(np_ceiling_fragments(&e, 1465), 0);
	assert_true(isnan(np_ceiling_udp(&e, 1465)));
	e.family = 6;
	assert_close(np_ceiling_udp(&e, 1400), 1400.0 / 1494, 1e-12);
}

/* A far end may name any MTU, and a user any size: nothing traps, and no share is above 1. */
TEST(any_number_has_an_answer)
{
	static const int families[] = { 0, NP_FRAMES, 4, 6 };
	static const uint32_t numbers[] = { 0,
					    1,
					    4,
					    7,
					    8,
					    28,
					    46,
					    67,
					    68,
					    1279,
					    1280,
					    1500,
					    65507,
					    65535,
					    9000,
					    65536,
					    1 << 20,
					    1U << 31,
					    UINT32_MAX - 7,
					    UINT32_MAX };
	struct np_encap narrow = encap(4, NP_FRAMES, false);

	assert_true(isnan(np_ceiling_turns(&narrow, NP_TURNS_UDP_RR, 100, 4, 1e8, 0, 1)));
	assert_true(isnan(np_ceiling_turns(&narrow, NP_TURNS_UDP_RR, 4, 100, 1e8, 0, 1)));
	for (size_t i = 0; i < LEN(families) * LEN(numbers) * LEN(numbers); i++) {
		struct np_encap e = encap(numbers[i / LEN(families) % LEN(numbers)],
					  families[i % LEN(families)], false);
		uint32_t size = numbers[i / LEN(families) / LEN(numbers)];
		double share = np_ceiling_udp(&e, size);

		assert_int_equal(isnan(share), np_ceiling_fragments(&e, size) == 0);
		assert_true(np_ceiling_possible(&e) || isnan(share));
		assert_true(isnan(share) || (share >= 0 && share <= 1));
		for (int test = NP_TURNS_TCP_RR; test <= NP_TURNS_TCP_CC; test++) {
			double most = np_ceiling_turns(&e, (enum np_turns)test, size, 1, 1e8, 0, 1);

			assert_true(isnan(most) || most > 0);
			assert_true(np_ceiling_possible(&e) || isnan(most));
		}
	}
}

TEST(each_line_has_an_answer)
{
	static char asked[] =
	    "test=UDP_STREAM size=64 rate=1e8\n\xff\"\\=1\n\ntest=TCP_CC rate=1gbit\n"
	    "test=UDP_STREAM size=70000\nmtu=99999999999999999999\nmtu=68";
	static const char *const answers[] = {
		"{\"test\": \"UDP_STREAM\", \"payload\": 64, \"wire\": 130, \"share\": "
		"0.49230769230769234, "
		"\"bits_per_s\": 49230769.230769232}\n",
		"{\"error\": \"?'': not a name that a question has\"}\n",
		"{\"test\": \"TCP_STREAM\", \"payload\": 1448, \"wire\": 1538,",
		"{\"test\": \"TCP_CC\", \"there\": 278, \"back\": 278, \"turns\": 4,",
		"{\"error\": \"a datagram of 70000 bytes:",
		"{\"error\": \"mtu=99999999999999999999: not a number from 1 to 4294967295\"}\n",
		"{\"test\": \"TCP_STREAM\", \"payload\": 16,",
	};
	FILE *in = fmemopen(asked, sizeof(asked) - 1, "r");
	FREED_BY(free_memory) char *text = WRITTEN(out, np_ceilings_answer(in, out));
	char *at = text;

	fclose(in);
	for (size_t i = 0; i < LEN(answers); i++) {
		char *end = strchr(at, '\n');

		fail_if(end == NULL || strncmp(at, answers[i], strlen(answers[i])) != 0,
			"answer %zu: %s", i, at);
		at = end + 1;
	}
	assert_string_equal(at, "");
}

TEST_MAIN()
