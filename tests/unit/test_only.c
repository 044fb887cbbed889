/*
 * Sockets that hear one address only: strangers' datagrams and connections never get there.
 */
#include "net/only.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "tests/lib/check.h"
#include "tests/lib/sockets.h"

enum { A_MOMENT_MS = 150 }; /* over loopback what comes at all has come */

static unsigned bits; /* of a peer's address that count; 0: all */

static struct np_addr
four(uint8_t last, uint16_t port)
{
	const uint8_t bytes[4] = { 127, 0, 0, last };
	struct np_addr a;

	np_addr_make(&a, AF_INET, bytes, port);
	return a;
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

/* A bound socket of that type that hears only `peer`; the wildcard, so that a mapped peer fits. */
static int
choosy(int family, int socktype, const struct np_addr *peer, uint16_t *port)
{
	static const uint8_t wildcard[16];
	struct np_addr at;
	struct np_err err = { .code = NP_OK };
	int fd = socket(family, socktype | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if ((bits == 0 ? np_sock_only_from(fd, peer, &err)
		       : np_sock_only_network(fd, peer, bits, &err)) != NP_OK) {
		close(fd);
		if (socktype == SOCK_STREAM && err.sys == EPERM) {
			skip(); /* some kernels want CAP_NET_ADMIN for it */
		}
		fail_msg("%s", err.msg);
	}
	np_addr_make(&at, family, wildcard, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at.sa, at.len), 0);
	if (socktype == SOCK_STREAM) {
		assert_int_equal(listen(fd, 16), 0);
	}
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at.sa, &at.len), 0);
	*port = np_addr_port(&at);
	return fd;
}

static int
socket_at(int socktype, const struct np_addr *from)
{
	int fd = socket(from->sa.ss_family, socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&from->sa, from->len), 0);
	return fd;
}

static bool
arrives(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, A_MOMENT_MS) == 1;
}

/* Does one packet from there, a datagram or a SYN, get through? */
static bool
hears(int family, int socktype, const struct np_addr *peer, struct np_addr from, struct np_addr to)
{
	uint16_t port;
	int fd = choosy(family, socktype, peer, &port);
	int sender = socket_at(socktype, &from);
	bool heard;

	np_addr_set_port(&to, port);
	if (socktype == SOCK_STREAM) {
		assert_true(connect(sender, (struct sockaddr *)&to.sa, to.len) == 0 ||
			    errno == EINPROGRESS);
	} else {
		assert_int_equal(sendto(sender, "x", 1, 0, (struct sockaddr *)&to.sa, to.len), 1);
	}
	heard = arrives(fd);
	close(sender);
	close(fd);
	return heard;
}

static const int types[] = { SOCK_DGRAM, SOCK_STREAM };

static void
of_ipv4_one_address_is_heard(void **state)
{
	(void)state;
	for (size_t i = 0; i < LEN(types); i++) {
		struct np_addr peer = four(1, 4711);

		assert_true(hears(AF_INET, types[i], &peer, four(1, 0), four(1, 0)));
		assert_true(hears(AF_INET, types[i], &peer, four(1, 0), four(9, 0)));
		assert_false(hears(AF_INET, types[i], &peer, four(2, 0), four(1, 0)));
		peer = four(2, 0);
		assert_true(hears(AF_INET, types[i], &peer, four(2, 0), four(1, 0)));
		assert_false(hears(AF_INET, types[i], &peer, four(1, 0), four(1, 0)));
	}
}

/* The control connection of a daemon on both families has a mapped peer, the data socket not. */
static void
a_mapped_address_is_the_ipv4_one(void **state)
{
	(void)state;
	for (size_t i = 0; has_family(AF_INET6) && i < LEN(types); i++) {
		struct np_addr peer = mapped(1, 12865);

		assert_true(hears(AF_INET, types[i], &peer, four(1, 0), four(1, 0)));
		assert_false(hears(AF_INET, types[i], &peer, four(2, 0), four(1, 0)));
		/* A socket of IPv6 that takes IPv4 packets. */
		assert_true(hears(AF_INET6, types[i], &peer, four(1, 0), four(1, 0)));
		assert_false(hears(AF_INET6, types[i], &peer, four(2, 0), four(1, 0)));
		assert_false(
		    hears(AF_INET6, types[i], &peer, loopback(AF_INET6, 0), loopback(AF_INET6, 0)));
	}
}

static void
of_ipv6_one_address_is_heard(void **state)
{
	(void)state;
	for (size_t i = 0; has_family(AF_INET6) && i < LEN(types); i++) {
		struct np_addr me = loopback(AF_INET6, 0), peer = me;

		assert_true(hears(AF_INET6, types[i], &peer, me, me));
		assert_false(hears(AF_INET6, types[i], &peer, four(1, 0), four(1, 0)));
		/* Each of the four words counts. */
		for (size_t byte = 0; byte < 16; byte += 4) {
			uint8_t bytes[16] = { [15] = 1 };

			bytes[byte] ^= 0x40;
			np_addr_make(&peer, AF_INET6, bytes, 0);
			assert_false(hears(AF_INET6, types[i], &peer, me, me));
		}
	}
}

/* All whose addresses begin alike, for every number of bits; and nobody else. */
static void
a_network_is_heard(void **state)
{
	(void)state;
	for (size_t i = 0; i < LEN(types); i++) {
		for (bits = 24; bits <= 32; bits++) {
			uint8_t inside = bits < 32 ? 1 : 0;
			uint8_t outside = (uint8_t)(bits > 24 ? 1U << (32 - bits) : 0);
			struct np_addr peer = four(0x64, 0);

			assert_true(
			    hears(AF_INET, types[i], &peer, four(0x64 ^ inside, 0), four(1, 0)));
			if (bits > 24) {
				assert_false(hears(AF_INET, types[i], &peer,
						   four(0x64 ^ outside, 0), four(1, 0)));
			}
		}
	}
	bits = 0;
}

static void
of_ipv6_a_network_is_heard(void **state)
{
	uint8_t bytes[16] = { [15] = 0x81 };
	struct np_addr me = loopback(AF_INET6, 0), peer;

	(void)state;
	for (size_t i = 0; has_family(AF_INET6) && i < LEN(types); i++) {
		np_addr_make(&peer, AF_INET6, bytes, 0);
		bits = 120;
		assert_true(hears(AF_INET6, types[i], &peer, me, me));
		assert_false(hears(AF_INET6, types[i], &peer, four(1, 0), four(1, 0)));
		bits = 121;
		assert_false(hears(AF_INET6, types[i], &peer, me, me));
		/* What stands before the last word counts, too. */
		bits = 120;
		for (size_t byte = 0; byte < 15; byte += 2) {
			uint8_t other[16] = { [15] = 1 };

			other[byte] ^= 0x10;
			np_addr_make(&peer, AF_INET6, other, 0);
			assert_false(hears(AF_INET6, types[i], &peer, me, me));
		}
	}
	bits = 0;
}

static void
without_the_filter_all_are_heard_again(void **state)
{
	struct np_addr peer = four(2, 0), stranger = four(1, 0), to = four(1, 0);
	uint16_t port;
	int fd, sender;

	(void)state;
	fd = choosy(AF_INET, SOCK_DGRAM, &peer, &port);
	sender = socket_at(SOCK_DGRAM, &stranger);
	np_addr_set_port(&to, port);
	assert_int_equal(sendto(sender, "x", 1, 0, (struct sockaddr *)&to.sa, to.len), 1);
	assert_false(arrives(fd));
	np_sock_from_any(fd);
	np_sock_from_any(fd);
	assert_int_equal(sendto(sender, "x", 1, 0, (struct sockaddr *)&to.sa, to.len), 1);
	assert_true(arrives(fd));
	close(sender);
	close(fd);
}

/* ---- Several sources ---- */

/* Does a datagram from there get to a socket that hears these? */
static bool
reaches(const struct np_sources *s, struct np_addr from)
{
	struct np_addr to = loopback(from.sa.ss_family, 0), at = to;
	struct np_err err;
	int fd = socket_at(SOCK_DGRAM, &at), sender = socket_at(SOCK_DGRAM, &from);
	bool heard;

	if (np_sock_only_sources(fd, s, &err) != NP_OK) {
		fail_msg("%s", err.msg);
	}
	assert_int_equal(getsockname(fd, (struct sockaddr *)&to.sa, &to.len), 0);
	assert_int_equal(sendto(sender, "x", 1, 0, (struct sockaddr *)&to.sa, to.len), 1);
	heard = arrives(fd);
	close(sender);
	close(fd);
	return heard;
}

static uint16_t
free_port(void)
{
	struct np_addr at;

	close(bound_socket(AF_INET, SOCK_DGRAM, &at));
	return np_addr_port(&at);
}

static void
any_of_several_addresses_is_heard(void **state)
{
	struct np_sources s = { .count = 0 };

	(void)state;
	assert_false(reaches(&s, four(1, 0)));
	for (; s.count < NP_SOURCES_MAX; s.count++) {
		s.at[s.count] = four((uint8_t)(10 + s.count), 0);
	}
	s.at[3] = loopback(AF_INET6, 0);
	s.at[5] = mapped(15, 0);
	assert_true(reaches(&s, four(10, 0)));
	assert_true(reaches(&s, four(12, 0)));
	assert_false(reaches(&s, four(13, 0)));
	assert_true(reaches(&s, four(15, 0)));
	assert_true(reaches(&s, four(17, 0)));
	assert_false(reaches(&s, four(18, 0)));
	assert_true(!has_family(AF_INET6) || reaches(&s, loopback(AF_INET6, 0)));
}

static void
a_port_may_be_asked_for_too(void **state)
{
	struct np_sources s = { .at = { four(10, 0), four(11, 0) }, .count = 2 };

	(void)state;
	s.port = free_port();
	assert_true(reaches(&s, four(10, s.port)));
	assert_true(reaches(&s, four(11, s.port)));
	assert_false(reaches(&s, four(12, s.port)));
	assert_false(reaches(&s, four(11, 0)));
	if (has_family(AF_INET6)) {
		s.at[1] = loopback(AF_INET6, 0);
		assert_true(reaches(&s, loopback(AF_INET6, s.port)));
		assert_false(reaches(&s, loopback(AF_INET6, 0)));
	}
}

/* ::1 is in ::2's network, but not in that of 0:0:0:1::1. */
static void
an_ipv6_address_may_stand_for_its_network(void **state)
{
	static const uint8_t two[16] = { [15] = 2 }, other[16] = { [7] = 1, [15] = 1 };
	struct np_sources s = { .count = 1 };

	(void)state;
	if (!has_family(AF_INET6)) {
		skip();
	}
	np_addr_make(&s.at[0], AF_INET6, two, 0);
	assert_false(reaches(&s, loopback(AF_INET6, 0)));
	s.networks = true;
	assert_true(reaches(&s, loopback(AF_INET6, 0)));
	np_addr_make(&s.at[0], AF_INET6, other, 0);
	assert_false(reaches(&s, loopback(AF_INET6, 0)));
}

/* Whole messages pass, however large: nothing is cut off. */
static void
what_is_let_in_is_whole(void **state)
{
	static char out[60000], in[60001];
	struct np_addr peer = four(1, 0), to = four(1, 0);
	uint16_t port;
	int fd = choosy(AF_INET, SOCK_DGRAM, &peer, &port);
	int sender = socket_at(SOCK_DGRAM, &peer);

	(void)state;
	for (size_t i = 0; i < sizeof(out); i++) {
		out[i] = (char)(i * 7);
	}
	np_addr_set_port(&to, port);
	assert_int_equal(sendto(sender, out, sizeof(out), 0, (struct sockaddr *)&to.sa, to.len),
			 sizeof(out));
	assert_true(arrives(fd));
	assert_int_equal(recv(fd, in, sizeof(in), 0), sizeof(out));
	assert_memory_equal(in, out, sizeof(out));
	close(sender);
	close(fd);
}

static void
what_has_no_address_is_an_error(void **state)
{
	struct np_addr peer = { .len = 2 };
	struct np_err err;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)state;
	peer.sa.ss_family = AF_UNIX;
	assert_int_equal(np_sock_only_from(fd, &peer, &err), NP_ESYS);
	assert_int_equal(err.sys, EAFNOSUPPORT);
	peer = four(1, 0);
	close(fd);
	assert_int_equal(np_sock_only_from(-1, &peer, &err), NP_ESYS);
	assert_int_equal(err.sys, EBADF);
	assert_has(err.msg, "127.0.0.1");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_ipv4_one_address_is_heard),
		cmocka_unit_test(a_mapped_address_is_the_ipv4_one),
		cmocka_unit_test(of_ipv6_one_address_is_heard),
		cmocka_unit_test(a_network_is_heard),
		cmocka_unit_test(of_ipv6_a_network_is_heard),
		cmocka_unit_test(without_the_filter_all_are_heard_again),
		cmocka_unit_test(any_of_several_addresses_is_heard),
		cmocka_unit_test(a_port_may_be_asked_for_too),
		cmocka_unit_test(an_ipv6_address_may_stand_for_its_network),
		cmocka_unit_test(what_is_let_in_is_whole),
		cmocka_unit_test(what_has_no_address_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
