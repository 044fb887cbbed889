/*
 * Address ranges: what is one, and which addresses are in it.
 */
#include "net/sources.h"

#include <arpa/inet.h>

#include "tests/lib/check.h"

static struct np_addr
address(const char *text)
{
	int family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
	struct np_addr a;
	uint8_t bytes[16];

	assert_int_equal(inet_pton(family, text, bytes), 1);
	np_addr_make(&a, family, bytes, 40000);
	return a;
}

TEST(ranges_are_read_and_their_host_part_dropped)
{
	static const struct {
		const char *text, *network;
		unsigned bits;
	} good[] = {
		{ "192.0.2.1", "192.0.2.1", 32 },
		{ "192.0.2.77/24", "192.0.2.0", 24 },
		{ "192.0.2.77/28", "192.0.2.64", 28 },
		{ "10.255.255.255/9", "10.128.0.0", 9 },
		{ "255.255.255.255/31", "255.255.255.254", 31 },
		{ "255.255.255.255/0", "0.0.0.0", 0 },
		{ "1.2.3.4/032", "1.2.3.4", 32 },
		{ "::1", "::1", 128 },
		{ "::/0", "::", 0 },
		{ "2001:db8:ffff::1/33", "2001:db8:8000::", 33 },
		{ "2001:db8::ff/127", "2001:db8::fe", 127 },
		{ "fe80::1/64", "fe80::", 64 },
		{ "::ffff:192.0.2.77/120", "192.0.2.0", 24 },
		{ "::ffff:192.0.2.77", "192.0.2.77", 32 },
		{ "::ffff:0:0/96", "0.0.0.0", 0 },
		{ "::ffff:0:0/95", "::fffe:0:0", 95 },
	};

	for (size_t i = 0; i < LEN(good); i++) {
		struct np_addr network = address(good[i].network);
		size_t n = network.sa.ss_family == AF_INET6 ? 16 : 4;
		struct np_cidr c;
		struct np_err err;

		fail_if(np_cidr_parse(&c, good[i].text, &err) != NP_OK, "%s: %s", good[i].text,
			err.msg);
		assert_int_equal(c.family, network.sa.ss_family);
		assert_int_equal(c.bits, good[i].bits);
		assert_memory_equal(c.bytes, np_addr_bytes(&network), n);
		/* Also behind an IPv4 range's four. */
		for (; c.family == AF_INET6 && n < sizeof(c.bytes); n++) {
			assert_int_equal(c.bytes[n], 0);
		}
	}
}

/* One machine, or all; no address of IP with the same bytes is in it, nor the other way round. */
TEST(a_cid_is_a_range_of_its_own)
{
	static const uint32_t three = 3, four = 4;
	struct np_cidr one, all, ip;
	struct np_addr a, b, same;
	struct np_err err;

	np_addr_make(&a, AF_VSOCK, (const uint8_t *)&three, 1023);
	np_addr_make(&b, AF_VSOCK, (const uint8_t *)&four, 1023);
	np_addr_make(&same, AF_INET, (const uint8_t *)&three, 1023);
	assert_int_equal(np_cidr_parse(&one, "vsock:3", &err), NP_OK);
	assert_int_equal(np_cidr_parse(&all, "vsock:any", &err), NP_OK);
	assert_int_equal(np_cidr_parse(&ip, "0.0.0.0/0", &err), NP_OK);
	assert_true(np_cidr_has(&one, &a) && np_cidr_has(&all, &a) && np_cidr_has(&all, &b));
	assert_false(np_cidr_has(&one, &b) || np_cidr_has(&one, &same) || np_cidr_has(&all, &same));
	assert_false(np_cidr_has(&ip, &a));
	assert_int_equal(np_cidr_parse(&one, "vsock:3/8", &err), NP_EUSAGE);
	assert_int_equal(np_cidr_parse(&one, "vsock:", &err), NP_EUSAGE);
}

TEST(what_is_no_range_is_quoted)
{
	static const char *const bad[] = {
		"",
		"/",
		"/24",
		"localhost",
		"192.0.2",
		"192.0.2.256",
		"192.0.2.1.",
		"192.0.2.0/",
		"192.0.2.0/33",
		"192.0.2.0/-1",
		"192.0.2.0/+8",
		"192.0.2.0/ 8",
		"192.0.2.0/8 ",
		"192.0.2.0/0x8",
		"192.0.2.0/24/24",
		"192.0.2.0/255.255.255.0",
		"192.0.2.0/4294967304",
		" 192.0.2.1",
		"192.0.2.1:80",
		"[::1]",
		"::1/129",
		"::1/999",
		":::",
		"fe80::1%lo",
		"fe80::1%eth0/64",
		"1:2:3:4:5:6:7:8:9",
		"2001:0db8:0000:0000:0000:0000:0000:00000000000000000000000001",
	};

	for (size_t i = 0; i < LEN(bad); i++) {
		struct np_cidr c = { .bits = 7 };
		struct np_err err;

		fail_if(np_cidr_parse(&c, bad[i], &err) != NP_EUSAGE, "'%s' is taken for a range",
			bad[i]);
		assert_has(err.msg, "'");
		assert_int_equal(strncmp(err.msg + 1, bad[i], strnlen(bad[i], 60)), 0);
		assert_int_equal(c.bits, 7);
	}
}

TEST(addresses_are_in_a_range_or_not)
{
	static const struct {
		const char *range, *in, *out;
	} cases[] = {
		{ "192.0.2.0/24", "192.0.2.0", "192.0.3.0" },
		{ "192.0.2.0/24", "192.0.2.255", "192.0.1.255" },
		{ "192.0.2.64/26", "192.0.2.127", "192.0.2.128" },
		{ "192.0.2.64/26", "192.0.2.64", "192.0.2.63" },
		{ "10.0.0.0/7", "11.255.255.255", "12.0.0.0" },
		{ "128.0.0.0/1", "255.255.255.255", "127.255.255.255" },
		{ "192.0.2.1", "192.0.2.1", "192.0.2.0" },
		{ "192.0.2.0/31", "192.0.2.1", "192.0.2.2" },
		{ "0.0.0.0/0", "203.0.113.9", "2001:db8::1" },
		{ "0.0.0.0/0", "::ffff:203.0.113.9", "::203.0.113.9" },
		{ "::/0", "2001:db8::1", "203.0.113.9" },
		/* Who connects by IPv4 is an IPv4 client, on whatever socket. */
		{ "::/0", "::1", "::ffff:203.0.113.9" },
		{ "::1", "::1", "::2" },
		{ "2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1" },
		{ "2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1" },
		{ "2001:db8::4/126", "2001:db8::7", "2001:db8::8" },
		{ "192.0.2.0/24", "::ffff:192.0.2.9", "::ffff:192.0.3.9" },
		{ "::ffff:192.0.2.0/120", "192.0.2.9", "192.0.3.9" },
		{ "::ffff:192.0.2.0/120", "::ffff:192.0.2.9", "2001:db8::c000:209" },
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct np_addr in = address(cases[i].in), out = address(cases[i].out);
		struct np_cidr c;
		struct np_err err;

		assert_int_equal(np_cidr_parse(&c, cases[i].range, &err), NP_OK);
		fail_if(!np_cidr_has(&c, &in), "%s is not in %s", cases[i].in, cases[i].range);
		fail_if(np_cidr_has(&c, &out), "%s is in %s", cases[i].out, cases[i].range);
	}
}

/* Another way to ask the same: every bit before the prefix's end is equal. */
static bool
is_in(const struct np_addr *network, unsigned bits, const struct np_addr *a)
{
	for (unsigned i = 0; i < bits; i++) {
		unsigned mask = 0x80U >> i % 8;

		if ((np_addr_bytes(network)[i / 8] & mask) != (np_addr_bytes(a)[i / 8] & mask)) {
			return false;
		}
	}
	return true;
}

TEST(every_prefix_agrees_with_a_look_at_each_bit)
{
	uint64_t seed = 4711;

	for (unsigned i = 0; i < 20000; i++) {
		int family = i % 2 == 0 ? AF_INET : AF_INET6;
		unsigned width = family == AF_INET ? 32 : 128;
		unsigned bits = (unsigned)(next_random(&seed) % (width + 1));
		unsigned flipped = (unsigned)(next_random(&seed) % width);
		uint64_t random[2] = { next_random(&seed), next_random(&seed) };
		char text[80], host[64];
		struct np_addr network, a;
		struct np_cidr c;
		struct np_err err;
		uint8_t bytes[16];

		memcpy(bytes, random, sizeof(bytes));
		np_addr_make(&network, family, bytes, 0);
		bytes[flipped / 8] ^= (uint8_t)(0x80U >> flipped % 8);
		np_addr_make(&a, family, bytes, 0);
		assert_non_null(inet_ntop(family, np_addr_bytes(&network), host, sizeof(host)));
		snprintf(text, sizeof(text), "%s/%u", host, bits);
		assert_int_equal(np_cidr_parse(&c, text, &err), NP_OK);
		assert_true(np_cidr_has(&c, &network));
		assert_int_equal(np_cidr_has(&c, &a), is_in(&network, bits, &a));
	}
}

TEST(a_socket_without_an_address_is_in_no_range)
{
	struct np_addr path;
	struct np_cidr c;
	struct np_err err;

	assert_int_equal(np_addr_make_path(&path, "/tmp/x", &err), NP_OK);
	assert_int_equal(np_cidr_parse(&c, "0.0.0.0/0", &err), NP_OK);
	assert_false(np_cidr_has(&c, &path));
	assert_int_equal(np_cidr_parse(&c, "::/0", &err), NP_OK);
	assert_false(np_cidr_has(&c, &path));
}

/* ---- First and last ---- */

TEST(addresses_follow_each_other)
{
	static const struct {
		const char *text, *last;
		uint32_t count;
	} rows[] = {
		{ "192.0.2.10-192.0.2.19", "192.0.2.19", 10 },
		{ "192.0.2.7-192.0.2.7", "192.0.2.7", 1 },
		{ "10.0.0.0-10.0.0.255", "10.0.0.255", 256 },
		{ "2001:db8::fe-2001:db8::ff", "2001:db8::ff", 2 },
		{ "::1-::1", "::1", 1 },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_addr first, last, want = address(rows[i].last);
		struct np_err err;
		uint32_t count;

		assert_int_equal(np_range_parse(&first, &count, rows[i].text, &err), NP_OK);
		assert_int_equal(count, rows[i].count);
		np_range_at(&first, count - 1, &last);
		assert_true(np_addr_same_host(&last, &want));
	}
}

TEST(what_is_no_row_of_addresses_is_quoted)
{
	static const char *const rows[] = {
		"",
		"-",
		"192.0.2.1",
		"192.0.2.1-",
		"-192.0.2.1",
		"192.0.2.1-192.0.2",
		"192.0.2.1-9",
		"192.0.2.1-192.0.3.1",
		"192.0.2.2-192.0.2.1",
		"192.0.2.1-::1",
		"2001:db8::1-2001:db8::101",
		"192.0.2.1-192.0.2.2-192.0.2.3",
		"one-two",
		"192.0.2.1 -192.0.2.2",
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_err err = { .code = NP_OK };
		struct np_addr first;
		uint32_t count;

		assert_int_equal(np_range_parse(&first, &count, rows[i], &err), NP_EUSAGE);
		assert_has(err.msg, rows[i]);
	}
}

/* All share that many leading bits, and one more would leave some out. */
TEST(all_of_a_row_begin_alike)
{
	for (unsigned from = 0; from < 256; from += 5) {
		for (uint32_t count = 1; from + count <= 256; count += 3) {
			uint8_t bytes[4] = { 10, 1, 2, (uint8_t)from };
			struct np_addr first, last;
			struct np_cidr c;
			unsigned bits;

			np_addr_make(&first, AF_INET, bytes, 0);
			np_range_at(&first, count - 1, &last);
			bits = np_range_bits(&first, count);
			assert_in_range(bits, 24, 32);
			np_cidr_of(&c, &first, bits);
			assert_true(np_cidr_has(&c, &first) && np_cidr_has(&c, &last));
			np_cidr_of(&c, &first, bits + 1);
			assert_true(bits == 32 || !np_cidr_has(&c, &last));
		}
	}
}

TEST_MAIN()
