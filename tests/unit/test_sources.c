/*
 * Whom a socket hears, and who is let in by a comparison.
 */
#include "net/sources.h"

#include <poll.h>

#include "net/sock.h"
#include "tests/lib/check.h"
#include "tests/lib/sockets.h"

enum { A_MOMENT_MS = 150 }; /* over loopback what comes at all has come */

static struct np_addr
four(uint8_t last, uint16_t port)
{
	return address_at(port, "127.0.0.%u", last);
}

/* ::ffff:127.0.0.LAST */
static struct np_addr
mapped(uint8_t last, uint16_t port)
{
	const uint8_t bytes[16] = { [10] = 0xff, 0xff, 127, 0, 0, last };
	struct np_addr a;

	np_addr_make(&a, AF_INET6, bytes, port);
	return a;
}

static int
socket_at(const struct np_addr *from)
{
	struct np_addr at = *from;

	return bound_at(&at, SOCK_DGRAM | SOCK_NONBLOCK, 0);
}

static bool
arrives(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, A_MOMENT_MS) == 1;
}

/* A socket of that family at `to` that hears only that peer, from that port unless it is 0. */
static int
choosy(int family, const struct np_addr *peer, uint32_t peer_port, struct np_addr *to)
{
	struct np_addr at = *to;
	struct np_err err;
	int fd;

	if (family == AF_INET6 && at.sa.ss_family == AF_INET) {
		at = mapped(np_addr_bytes(to)[3], 0);
	}
	fd = socket_at(&at);
	fail_if(np_sock_limit_source(fd, family, peer, peer_port, &err) != NP_OK, "%s", err.msg);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at.sa, &at.len), 0);
	np_addr_set_port(to, np_addr_port(&at));
	return fd;
}

static void
send_to(int fd, const struct np_addr *to)
{
	assert_int_equal(send_datagram(fd, "x", 1, to), 1);
}

/* Does a datagram from there get through to `to`? The kernel and who compares agree on it. */
static bool
hears(int family, const struct np_addr *peer, struct np_addr from, struct np_addr to)
{
	struct np_sources s = { .at = { *peer }, .count = 1 };
	int fd = choosy(family, peer, 0, &to), sender = socket_at(&from);
	bool heard;

	send_to(sender, &to);
	heard = arrives(fd);
	assert_int_equal(np_sources_have(&s, &from), heard);
	close(sender);
	close(fd);
	return heard;
}

TEST(of_ipv4_one_address_is_heard)
{
	struct np_addr peer = four(1, 4711);

	assert_true(hears(AF_INET, &peer, four(1, 0), four(1, 0)));
	assert_true(hears(AF_INET, &peer, four(1, 0), four(9, 0)));
	assert_false(hears(AF_INET, &peer, four(2, 0), four(1, 0)));
	peer = four(2, 0);
	assert_true(hears(AF_INET, &peer, four(2, 0), four(1, 0)));
	assert_false(hears(AF_INET, &peer, four(1, 0), four(1, 0)));
}

/* The control connection of a daemon on both families has a mapped peer, the data socket not. */
TEST(a_mapped_address_is_the_ipv4_one)
{
	struct np_addr peer = mapped(1, 12865), real = four(1, 0), six = loopback(AF_INET6, 0);
	struct np_sources s = { .at = { peer }, .count = 1 };

	skip_if(!has_family(AF_INET6), "no IPv6");
	assert_true(hears(AF_INET, &peer, real, real));
	assert_false(hears(AF_INET, &peer, four(2, 0), real));
	/* A socket of IPv6 that takes IPv4 packets. */
	assert_true(hears(AF_INET6, &peer, real, real));
	assert_true(hears(AF_INET6, &real, real, real));
	assert_false(hears(AF_INET6, &peer, four(2, 0), real));
	assert_false(np_sources_have(&s, &six));
	s.at[0] = real;
	assert_true(np_sources_have(&s, &peer));
	s.at[0] = six;
	assert_false(np_sources_have(&s, &peer));
}

TEST(of_ipv6_one_address_is_heard)
{
	struct np_addr me = loopback(AF_INET6, 0), peer = me;

	skip_if(!has_family(AF_INET6), "no IPv6");
	assert_true(hears(AF_INET6, &peer, me, me));
	/* Each byte counts. */
	for (size_t byte = 0; byte < 16; byte++) {
		struct np_sources s = { .count = 1 };
		uint8_t bytes[16] = { [15] = 1 };

		bytes[byte] ^= 0x40;
		np_addr_make(&s.at[0], AF_INET6, bytes, 0);
		assert_false(np_sources_have(&s, &me));
	}
}

TEST(one_port_can_be_heard_alone)
{
	struct np_addr peer = four(2, 0), to = four(1, 0);
	FREED_BY(close_fd) int first = socket_at(&peer), second = socket_at(&peer), fd = -1;

	assert_int_equal(getsockname(first, (struct sockaddr *)&peer.sa, &peer.len), 0);
	fd = choosy(AF_INET, &peer, np_addr_port(&peer), &to);
	send_to(second, &to);
	assert_false(arrives(fd));
	send_to(first, &to);
	assert_true(arrives(fd));
}

/* It answers whom it hears, by an address, whatever it is connected to. */
TEST(whoever_is_heard_can_be_answered)
{
	struct np_addr peer = four(2, 0), to = four(1, 0), elsewhere = four(3, 0);
	FREED_BY(close_fd) int sender = socket_at(&peer), other = socket_at(&elsewhere);
	FREED_BY(close_fd) int fd = choosy(AF_INET, &peer, 0, &to);

	assert_int_equal(getsockname(sender, (struct sockaddr *)&peer.sa, &peer.len), 0);
	assert_int_equal(getsockname(other, (struct sockaddr *)&elsewhere.sa, &elsewhere.len), 0);
	send_to(fd, &peer);
	send_to(fd, &elsewhere);
	assert_true(arrives(sender));
	assert_true(arrives(other));
}

/* Connected once more, it hears somebody else. */
TEST(whom_it_hears_can_change)
{
	struct np_addr peer = four(2, 0), other = four(3, 0), to = four(1, 0);
	FREED_BY(close_fd) int fd = choosy(AF_INET, &peer, 0, &to), sender = socket_at(&other);
	struct np_err err;

	send_to(sender, &to);
	assert_false(arrives(fd));
	assert_int_equal(np_sock_limit_source(fd, AF_INET, &other, 0, &err), NP_OK);
	send_to(sender, &to);
	assert_true(arrives(fd));
}

/* What ICMP says of a closed port stands before what waits. */
TEST(all_that_came_before_is_forgotten)
{
	struct np_addr peer = four(2, 0), to = four(1, 0);
	int sender = socket_at(&peer), fd;

	assert_int_equal(getsockname(sender, (struct sockaddr *)&peer.sa, &peer.len), 0);
	fd = choosy(AF_INET, &peer, 0, &to);
	send_to(sender, &to);
	send_to(sender, &to);
	close(sender);
	send_to(fd, &peer);
	assert_true(arrives(fd));
	np_sock_forget(fd);
	assert_false(arrives(fd));
	close(fd);
}

/* ---- Several sources ---- */

/* All whose addresses begin alike, for every number of bits; and nobody else. */
TEST(a_network_is_heard)
{
	struct np_sources s = { .at = { four(0x64, 0) }, .count = 1 };

	for (s.bits = 24; s.bits <= 32; s.bits++) {
		struct np_addr inside = four(0x64 ^ (s.bits < 32), 0);
		struct np_addr outside =
		    four((uint8_t)(0x64 ^ (s.bits > 24 ? 1U << (32 - s.bits) : 0)), 0);

		assert_true(np_sources_have(&s, &inside));
		assert_int_equal(np_sources_have(&s, &outside), s.bits == 24);
		assert_false(np_sources_single(&s));
	}
}

TEST(of_ipv6_a_network_is_heard)
{
	struct np_sources s = { .count = 1, .bits = 120, .at = { address("::81") } };
	struct np_addr me = loopback(AF_INET6, 0), ipv4 = four(1, 0);

	assert_true(np_sources_have(&s, &me));
	assert_false(np_sources_have(&s, &ipv4));
	s.bits = 121;
	assert_false(np_sources_have(&s, &me));
	/* What stands before the last word counts, too. */
	s.bits = 120;
	for (size_t byte = 0; byte < 15; byte += 2) {
		uint8_t other[16] = { [15] = 1 };

		other[byte] ^= 0x10;
		np_addr_make(&s.at[0], AF_INET6, other, 0);
		assert_false(np_sources_have(&s, &me));
	}
}

static bool
has(const struct np_sources *s, struct np_addr from)
{
	return np_sources_have(s, &from);
}

TEST(any_of_several_addresses_is_heard)
{
	struct np_sources s = { .count = 0 };

	assert_false(has(&s, four(1, 0)));
	for (; s.count < NP_SOURCES_MAX; s.count++) {
		s.at[s.count] = four((uint8_t)(10 + s.count), 0);
	}
	assert_false(np_sources_single(&s));
	s.at[3] = loopback(AF_INET6, 0);
	s.at[5] = mapped(15, 0);
	assert_true(has(&s, four(10, 0)));
	assert_true(has(&s, four(12, 0)));
	assert_false(has(&s, four(13, 0)));
	assert_true(has(&s, four(15, 0)));
	assert_true(has(&s, mapped(17, 0)));
	assert_false(has(&s, four(18, 0)));
	assert_true(has(&s, loopback(AF_INET6, 0)));
}

TEST(a_port_may_be_asked_for_too)
{
	struct np_sources s = { .at = { four(10, 0), loopback(AF_INET6, 0) },
				.count = 2,
				.port = 7 };

	assert_true(has(&s, four(10, 7)));
	assert_false(has(&s, four(10, 8)));
	assert_false(has(&s, four(12, 7)));
	assert_true(has(&s, loopback(AF_INET6, 7)));
	assert_false(has(&s, loopback(AF_INET6, 0)));
}

/* ::1 is in ::2's network, but not in that of 0:0:0:1::1. */
TEST(an_ipv6_address_may_stand_for_its_network)
{
	struct np_sources s = { .count = 1, .at = { address("::2") } };
	struct np_addr from;

	assert_false(has(&s, loopback(AF_INET6, 0)));
	assert_true(np_sources_single(&s));
	s.networks = true;
	assert_true(has(&s, loopback(AF_INET6, 0)));
	assert_false(np_sources_single(&s));
	s.at[0] = address("0:0:0:1::1");
	assert_false(has(&s, loopback(AF_INET6, 0)));
	/* Those of the loopback, of the link and of IPv4 stand for themselves. */
	s.at[0] = loopback(AF_INET6, 0);
	assert_false(has(&s, address("::2")));
	s.at[0] = address("fe80::2");
	assert_false(has(&s, address("fe80::3")));
	assert_true(np_sources_single(&s));
	/* The same address on another link is another host. */
	from = address("fe80::2");
	((struct sockaddr_in6 *)&s.at[0].sa)->sin6_scope_id = 2;
	((struct sockaddr_in6 *)&from.sa)->sin6_scope_id = 3;
	assert_false(has(&s, from));
	((struct sockaddr_in6 *)&from.sa)->sin6_scope_id = 2;
	assert_true(has(&s, from));
	s.at[0] = four(1, 0);
	assert_false(has(&s, four(2, 0)));
	assert_true(np_sources_single(&s));
}

TEST(what_has_no_address_is_nobody)
{
	struct np_sources s = { .at = { { .len = 2 } }, .count = 1 };
	struct np_err err;

	s.at[0].sa.ss_family = AF_UNIX;
	assert_false(has(&s, s.at[0]));
	assert_int_equal(np_sock_limit_source(-1, AF_INET, &(struct np_addr){ .len = 0 }, 0, &err),
			 NP_ESYS);
	assert_int_equal(err.sys, EBADF);
}

TEST_MAIN()
