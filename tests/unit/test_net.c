/*
 * Addresses and sockets.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "net/addr.h"
#include "net/race.h"
#include "net/sock.h"
#include "net/tcpinfo.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/deadly.h"
#include "tests/lib/sockets.h"

static const uint8_t v4[4] = { 192, 0, 2, 254 };
static const uint8_t v6[16] = { 0x20, 1, 0xd, 0xb8, [15] = 7 };
static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 192, 0, 2, 254 };

/* ---- Addresses ---- */

TEST(addresses_are_shown_as_people_write_them)
{
	char text[NP_ADDR_TEXT];
	struct np_addr a;

	np_addr_make(&a, AF_INET, v4, 12865);
	assert_string_equal(np_addr_text(&a, text), "192.0.2.254 port 12865");
	assert_string_equal(np_addr_host(&a, text), "192.0.2.254");
	np_addr_make(&a, AF_INET6, v6, 1);
	assert_string_equal(np_addr_text(&a, text), "2001:db8::7 port 1");
	np_addr_make(&a, AF_INET6, mapped, 65535);
	np_addr_unmap(&a);
	assert_string_equal(np_addr_text(&a, text), "192.0.2.254 port 65535");
	assert_string_equal(np_family(AF_INET)->name, "AF_INET");
	assert_string_equal(np_family(AF_INET6)->name, "AF_INET6");
	assert_string_equal(np_family(AF_UNSPEC)->name, "AF_UNSPEC");
}

TEST(an_address_keeps_its_bytes_and_its_port)
{
	struct np_addr a;

	np_addr_make(&a, AF_INET, v4, 0x1234);
	assert_int_equal(a.len, sizeof(struct sockaddr_in));
	assert_memory_equal(np_addr_bytes(&a), v4, sizeof(v4));
	assert_int_equal(np_addr_port(&a), 0x1234);
	assert_int_equal(ntohs(((struct sockaddr_in *)&a.sa)->sin_port), 0x1234);
	np_addr_make(&a, AF_INET6, v6, 5);
	np_addr_set_port(&a, 65535);
	assert_int_equal(a.len, sizeof(struct sockaddr_in6));
	assert_memory_equal(np_addr_bytes(&a), v6, sizeof(v6));
	assert_int_equal(np_addr_port(&a), 65535);
}

/* Nothing of a family that is not known passes for an address of IPv4. */
TEST(an_unknown_family_has_no_host)
{
	enum { NOBODYS = AF_MAX - 1 };
	struct np_addr a, b;
	char text[NP_ADDR_TEXT];

	np_addr_make(&a, NOBODYS, v4, 12865);
	assert_int_equal(a.len, 0);
	assert_int_equal(np_addr_size(&a), 0);
	assert_int_equal(np_addr_port(&a), 0);
	np_addr_make(&a, AF_INET, v4, 12865);
	a.sa.ss_family = NOBODYS;
	b = a;
	np_addr_set_port(&a, 1);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_int_equal(np_addr_port(&a), 0);
	assert_false(np_addr_same_host(&a, &b));
	assert_false(np_addr_is_loopback(&a));
	assert_false(np_addr_is_any(&a));
	assert_false(np_addr_is_here(&a));
	assert_false(np_addr_towards(&a, &b));
	assert_int_equal(np_family_of(&a)->version, 0);
	assert_non_null(strstr(np_addr_text(&a, text), "unknown family"));
	np_addr_make_loopback(&a, NOBODYS);
	assert_int_equal(a.len, 0);
}

/* What the kernel has as numbers of this machine goes to others in network order. */
TEST(a_cid_is_an_address_without_a_resolver)
{
	static const uint8_t wire[4] = { 0, 0, 1, 2 };
	struct np_addr near, far;
	struct np_addrs found;
	struct np_err err;
	char text[NP_ADDR_TEXT];
	uint8_t bytes[4];

	assert_int_equal(np_resolve("258", NULL, AF_VSOCK, SOCK_STREAM, &found, &err), NP_OK);
	far = found.at[0];
	np_addr_set_port(&far, 70000);
	assert_string_equal(np_addr_text(&far, text), "vsock:258 port 70000");
	np_addr_to_wire(&far, bytes);
	assert_memory_equal(bytes, wire, sizeof(wire));
	np_addr_make_any(&near, AF_VSOCK);
	assert_true(np_addr_is_any(&near) && np_addr_port(&near) == 0);
	np_addr_from_wire(&near, bytes);
	assert_true(np_addr_same_host(&near, &far) && !np_addr_is_loopback(&far));
	np_addr_make_loopback(&far, AF_VSOCK);
	assert_true(np_addr_towards(&far, &near) && np_addr_same_host(&near, &far));
}

/* A CID also as users write it where no option says the family, and with ports of 32 bits. */
TEST(numbers_and_paths_resolve_to_themselves)
{
	static const struct {
		const char *host, *port, *text;
		int family;
	} good[] = {
		{ "2001:db8::7", NULL, "2001:db8::7 port 0", AF_INET6 },
		{ NULL, "7", "0.0.0.0 port 7", AF_INET },
		{ "::ffff:192.0.2.7", "9", "192.0.2.7 port 9", AF_UNSPEC },
		{ "/tmp/s", NULL, "/tmp/s", AF_UNIX },
		{ "vsock:2", "12865", "vsock:2 port 12865", AF_UNSPEC },
		{ "vsock:2", "4294967294", "vsock:2 port 4294967294", AF_VSOCK },
		{ "vsock:any", NULL, "vsock:any port 0", AF_UNSPEC },
		{ "any", "1", "vsock:any port 1", AF_VSOCK },
		{ "vsock:4294967294", "discard", "vsock:4294967294 port 9", AF_UNSPEC },
		{ "192.0.2.254", "99", "192.0.2.254 port 99", AF_UNSPEC },
	};
	static const struct {
		const char *host, *port;
		int family;
	} bad[] = {
		{ "vsock:", "1", AF_UNSPEC },    { "vsock:-1", "1", AF_UNSPEC },
		{ "vsock:2,3", "1", AF_UNSPEC }, { "vsock:4294967295", "1", AF_UNSPEC },
		{ "vsock:2", "1", AF_INET },     { "vsock:2", "4294967295", AF_UNSPEC },
		{ "vsock:2", "-1", AF_UNSPEC },  { "vsock:2", "no such service", AF_UNSPEC },
		{ "", NULL, AF_UNIX },           { "4294967295", NULL, AF_VSOCK },
	};
	struct np_addrs found;
	struct np_err err;
	char text[NP_ADDR_TEXT];

	for (size_t i = 0; i < LEN(good); i++) {
		int type = good[i].family == AF_INET6 ? SOCK_DGRAM : SOCK_STREAM;

		assert_int_equal(
		    np_resolve(good[i].host, good[i].port, good[i].family, type, &found, &err),
		    NP_OK);
		assert_int_equal(found.count, 1);
		assert_string_equal(np_addr_text(&found.at[0], text), good[i].text);
	}
	assert_string_equal(found.name, "192.0.2.254");
	for (size_t i = 0; i < LEN(bad); i++) {
		assert_int_equal(
		    np_resolve(bad[i].host, bad[i].port, bad[i].family, SOCK_STREAM, &found, &err),
		    NP_EUSAGE);
	}
	assert_int_equal(np_family_prefixed("vsocks"), AF_UNSPEC);
}

TEST(hosts_are_compared_without_their_ports)
{
	struct np_addr a, b;

	np_addr_make(&a, AF_INET, v4, 1);
	np_addr_make(&b, AF_INET, v4, 2);
	assert_true(np_addr_same_host(&a, &b));
	((uint8_t *)np_addr_bytes(&b))[3]++;
	assert_false(np_addr_same_host(&a, &b));
	np_addr_make(&b, AF_INET6, mapped, 1);
	assert_false(np_addr_same_host(&a, &b));
	np_addr_unmap(&b);
	assert_true(np_addr_same_host(&a, &b));
	assert_int_equal(b.sa.ss_family, AF_INET);
	assert_int_equal(b.len, sizeof(struct sockaddr_in));
	assert_int_equal(np_addr_port(&b), 1);
	np_addr_make(&a, AF_INET6, v6, 1);
	b = a;
	np_addr_unmap(&b);
	assert_true(np_addr_same_host(&a, &b));
	((uint8_t *)np_addr_bytes(&b))[15]++;
	assert_false(np_addr_same_host(&a, &b));
}

TEST(link_local_hosts_of_two_links_differ)
{
	const uint8_t local[16] = { 0xfe, 0x80, [15] = 1 }, global[16] = { 0x20, 1, [15] = 1 };
	struct sockaddr_in6 *link;
	struct np_addr a, b;

	np_addr_make(&a, AF_INET6, local, 1);
	b = a;
	link = (struct sockaddr_in6 *)&b.sa;
	((struct sockaddr_in6 *)&a.sa)->sin6_scope_id = link->sin6_scope_id = 2;
	assert_true(np_addr_same_host(&a, &b));
	link->sin6_scope_id = 3;
	assert_false(np_addr_same_host(&a, &b));
	link->sin6_scope_id = 0; /* not known */
	assert_true(np_addr_same_host(&a, &b));
	np_addr_make(&a, AF_INET6, global, 1);
	b = a;
	link->sin6_scope_id = 3; /* has no meaning */
	assert_true(np_addr_same_host(&a, &b));
}

TEST(what_does_not_resolve_is_named_with_the_advice_that_fits)
{
	static const struct {
		const char *host, *port, *says;
		int family;
	} rows[] = {
		{ "192.0.2.1", "99",
		  "could not resolve host '192.0.2.1' service '99' family AF_INET6: ", AF_INET6 },
		{ "127.0.0.1", "no-such", "port 'no-such' is neither", AF_INET },
		{ "127.0.0.1:12865", "1", "alone, and a port by -p)", AF_UNSPEC },
		{ "[::1]", "1", "alone, and a port by -p)", AF_UNSPEC },
		{ "127.0.0.1:12865", NULL, "alone)", AF_UNSPEC }, /* a data connection's */
		{ "fe80::1%nosuch0", "1", "such an interface?)", AF_UNSPEC },
		{ "fe80::1::", "1", "not known", AF_UNSPEC },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_addrs list;
		struct np_err err;

		assert_int_equal(np_resolve(rows[i].host, rows[i].port, rows[i].family, SOCK_STREAM,
					    &list, &err),
				 NP_ECONTROL);
		assert_int_equal(list.count, 0);
		assert_has(err.msg, rows[i].says);
		assert_int_equal(strchr(err.msg, '(') != NULL, strchr(rows[i].says, ')') != NULL);
	}
}

/* ---- Options ---- */

TEST(options_are_set_in_their_order)
{
	struct np_sockopts o = { .count = 0 };
	char cong[16] = "";
	socklen_t len = sizeof(cong);
	struct np_err err;
	FREED_BY(close_fd) int fd = -1;

	np_sockopts_add(&o, true, SOL_SOCKET, SO_RCVBUF, "SO_RCVBUF", 10000, false);
	np_sockopts_add(&o, true, SOL_SOCKET, SO_RCVBUF, "SO_RCVBUF", 20000, false);
	np_sockopts_add(&o, true, IPPROTO_TCP, TCP_NODELAY, "TCP_NODELAY", 1, false);
	np_sockopts_add_text(&o, IPPROTO_TCP, TCP_CONGESTION, "TCP_CONGESTION", "reno");
	fd = np_sock_open(AF_INET, SOCK_STREAM, 0, &o, NULL, &err);
	assert_true(fd >= 0);
	assert_int_equal(np_sock_int(fd, SOL_SOCKET, SO_RCVBUF), 40000);
	assert_int_equal(np_sock_int(fd, IPPROTO_TCP, TCP_NODELAY), 1);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cong, &len), 0);
	assert_string_equal(cong, "reno");
	assert_int_equal(np_sock_int(fd, SOL_SOCKET, 9999), -1);
}

TEST(a_refused_option_is_named_with_its_value)
{
	struct np_sockopts o = { .count = 0 };
	struct np_err err;

	np_sockopts_add(&o, true, SOL_SOCKET, 9999, "SO_NONSENSE", 7, false);
	assert_int_equal(np_sock_open(AF_INET, SOCK_STREAM, 0, &o, NULL, &err), -1);
	assert_int_equal(err.code, NP_ESYS);
	assert_int_equal(err.sys, ENOPROTOOPT);
	assert_has(err.msg, "set SO_NONSENSE to 7: ");
	o.at[0].optional = true;
	/* Four characters: as long as an int. */
	np_sockopts_add_text(&o, IPPROTO_TCP, TCP_CONGESTION, "TCP_CONGESTION", "none");
	assert_int_equal(np_sock_open(AF_INET, SOCK_STREAM, 0, &o, NULL, &err), -1);
	assert_has(err.msg,
		   "set TCP_CONGESTION to 'none' (available: see sysctl net.ipv4.tcp_available_");
}

/* SCTP_MAXSEG has the number of TCP_CONGESTION. */
TEST(an_option_of_another_level_is_not_taken_for_a_congestion_control)
{
	struct np_sockopts o = { .count = 0 };
	struct np_err err;

	np_sockopts_add(&o, true, IPPROTO_SCTP, TCP_CONGESTION, "SCTP_MAXSEG", 100, false);
	assert_int_equal(np_sock_open(AF_INET, SOCK_STREAM, 0, &o, NULL, &err), -1);
	assert_has(err.msg, "set SCTP_MAXSEG to 100: ");
}

static int
refuse_all(void *ctx, int fd, const char *congestion, socklen_t len)
{
	char *seen = ctx;

	snprintf(seen, 16, "%.*s", (int)len, congestion);
	errno = ENOENT;
	return -1;
}

/* The kernel loads a module by such a name for who may: nobody may by a stranger's word. */
TEST(who_permits_congestion_controls_comes_before_the_kernel)
{
	struct np_sockopts o = { .count = 0 };
	struct np_err err;
	char seen[16] = "";
	int status;

	np_sockopts_add_text(&o, IPPROTO_TCP, TCP_CONGESTION, "TCP_CONGESTION", "reno");
	o.permit = refuse_all;
	o.permit_ctx = seen;
	assert_int_equal(np_sock_open(AF_INET, SOCK_STREAM, 0, &o, NULL, &err), -1);
	assert_int_equal(err.sys, ENOENT);
	assert_has(err.msg, "set TCP_CONGESTION to 'reno' (");
	assert_string_equal(seen, "reno");
	status = IN_CHILD(!deadly_call(SYS_setsockopt, 2, TCP_CONGESTION, TCP_CONGESTION) ? 77
			  : np_sock_open(AF_INET, SOCK_STREAM, 0, &o, NULL, &err) == -1   ? 0
											  : 1);
	assert_true(status == 0 || status == 77);
}

TEST(a_list_of_options_has_an_end)
{
	struct np_sockopts o = { .count = 0 };
	struct np_err err;

	for (int i = 0; i < NP_SOCKOPTS_MAX; i++) {
		np_sockopts_add(&o, true, SOL_SOCKET, SO_KEEPALIVE, "SO_KEEPALIVE", i, false);
	}
	assert_int_equal(np_sockopts_apply(&o, -1, &err), NP_ESYS);
	NP_SOCKOPT_OR_NOT(&o, true, SOL_SOCKET, SO_KEEPALIVE, 1);
	np_sockopts_add_text(&o, SOL_SOCKET, SO_KEEPALIVE, "SO_KEEPALIVE", "text");
	assert_int_equal(np_sockopts_apply(&o, -1, &err), NP_EUNSUP);
	assert_string_equal(err.msg, "26 socket options are more than 24");
	assert_false(o.at[NP_SOCKOPTS_MAX - 1].optional);
}

TEST(a_watched_peer_is_probed)
{
	FREED_BY(close_fd) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int probed;

	np_sock_watch_peer(fd, 60);
	assert_int_equal(np_sock_int(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	probed = np_sock_int(fd, IPPROTO_TCP, TCP_KEEPIDLE) +
		 2 * np_sock_int(fd, IPPROTO_TCP, TCP_KEEPINTVL);
	assert_in_range(probed, 1, 4); /* np_tcp_silent_ns() */
	assert_int_equal(np_sock_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 60000);
}

/* ---- Listening and connecting ---- */

/* What the last race left, and why it failed. */
static struct np_race race;
static struct np_err why;

/* Connect to the first of those that answers, within that time. */
static int
raced(const struct np_addrs *to, const struct np_addrs *from, uint64_t ns)
{
	race = (struct np_race){ .tick = NULL };
	why.code = NP_OK;
	return np_race_connect(to, from, ns == NP_NEVER ? ns : np_deadline(ns), &race, &why);
}

/* One of them answers; `others` is what is said of those before it. */
static void
assert_wins(const struct np_addrs *to, const struct np_addrs *from, uint64_t ns, size_t winner,
	    const char *others)
{
	FREED_BY(close_fd) int fd = raced(to, from, ns);

	assert_true(fd >= 0);
	assert_true(same_address(&race.used, &to->at[winner]));
	assert_string_equal(race.others, others);
}

TEST(a_reset_connection_is_reset_for_its_peer)
{
	struct np_addr at;
	FREED_BY(close_fd) int listener = bound_socket(AF_INET, SOCK_STREAM, &at);
	int near = connected_to(&at), far = accepted_from(listener);
	char byte;

	assert_true(put_bytes(near, "unread", 6));
	assert_true(put_bytes(far, "unread", 6));
	assert_true(wait_readable(near));
	np_sock_reset(near);
	while (recv(far, &byte, 1, 0) > 0) {
	}
	assert_int_equal(errno, ECONNRESET);
	close(far);
}

TEST(a_listener_takes_connections)
{
	static const int families[] = { AF_INET, AF_INET6 };

	for (size_t i = 0; i < LEN(families) && has_family(families[i]); i++) {
		struct np_addrs to = { .count = 1 }, from = { .count = 1 };
		struct np_addr at = loopback(families[i], 0);
		struct np_err err;
		FREED_BY(close_fd) int fd = -1, client = -1, server = -1;

		fd = np_sock_listen(&at, 8, &err);
		assert_true(fd >= 0);
		assert_int_equal(np_sock_local(fd, &to.at[0], &err), NP_OK);
		from.at[0] = loopback(families[i], 0);
		client = raced(&to, &from, LONG_MS * NP_MSEC);
		assert_true(client >= 0);
		assert_true(same_address(&race.used, &to.at[0]));
		assert_string_equal(race.others, "");
		server = accepted_from(fd);
		assert_true(server >= 0);
	}
}

TEST(a_port_in_use_can_not_be_listened_on)
{
	char text[NP_ADDR_TEXT];
	struct np_addr at;
	struct np_err err;
	FREED_BY(close_fd) int used = bound_socket(AF_INET, SOCK_STREAM, &at);

	assert_int_equal(np_sock_listen(&at, 8, &err), -1);
	assert_int_equal(err.code, NP_ESYS);
	assert_int_equal(err.sys, EADDRINUSE);
	assert_has(err.msg, np_addr_text(&at, text));
}

TEST(a_closed_port_refuses)
{
	struct np_addrs to = { .count = 2 };
	int listener, fd;

	close(bound_socket(AF_INET, SOCK_STREAM, &to.at[0]));
	close(bound_socket(AF_INET, SOCK_STREAM, &to.at[1]));
	fd = raced(&to, NULL, LONG_MS * NP_MSEC);
	assert_int_equal(fd, -1);
	assert_int_equal(why.code, NP_ECONTROL);
	assert_int_equal(why.sys, ECONNREFUSED);
	/* The next address is tried. */
	listener = bound_socket(AF_INET, SOCK_STREAM, &to.at[1]);
	assert_wins(&to, NULL, LONG_MS * NP_MSEC, 1, "127.0.0.1: Connection refused");
	close(listener);
	to.count = 0;
	assert_int_equal(raced(&to, NULL, NP_NEVER), -1);
	assert_has(why.msg, "connect to nowhere");
}

/* Connections that nobody accepts, until no more of them come about. */
TEST(connecting_has_a_deadline)
{
	struct np_addrs to = { .count = 1 };
	uint64_t begun = 0;
	int fd[32], count = 0;
	FREED_BY(close_fd) int listener = bound_socket(AF_INET, SOCK_STREAM, &to.at[0]);

	assert_int_equal(listen(listener, 1), 0);
	for (bool lost = false; !lost && count < (int)LEN(fd); count += !lost) {
		begun = np_now();
		fd[count] = raced(&to, NULL, 50 * NP_MSEC);
		lost = fd[count] < 0;
	}
	assert_int_equal(why.code, NP_ECONTROL);
	assert_int_equal(why.sys, ETIMEDOUT);
	assert_in_range(np_now() - begun, 50 * NP_MSEC, LONG_MS * NP_MSEC);
	while (count > 0) {
		close(fd[--count]);
	}
}

/* A listener whose backlog is full: nobody gets an answer. Returns it, and who fill it in fd. */
static int
silent_listener(int family, struct np_addr *at, int fd[2])
{
	int listener = bound_socket(family, SOCK_STREAM, at);

	assert_int_equal(listen(listener, 0), 0);
	for (int i = 0; i < 2; i++) {
		fd[i] = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
		assert_true(fd[i] >= 0);
		(void)connect(fd[i], (struct sockaddr *)&at->sa, at->len);
	}
	return listener;
}

static void
close_all(const int *fd, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		close(fd[i]);
	}
}

TEST(a_silent_address_gives_way_to_the_next)
{
	struct np_addrs to = { .count = 3 };
	int fds[5];

	fds[0] = silent_listener(AF_INET, &to.at[0], &fds[1]);
	close(bound_socket(AF_INET, SOCK_STREAM, &to.at[1]));
	fds[3] = bound_socket(AF_INET, SOCK_STREAM, &to.at[2]);
	assert_wins(
	    &to, NULL, NP_NEVER, 2,
	    "127.0.0.1: no answer; 127.0.0.1: Connection refused"); /* it does not wait for this */
	close_all(fds, 4);
}

/* One dead address of a family must not be followed by all others of it. */
TEST(families_take_turns)
{
	struct np_addrs to = { .count = 4 };
	int listener;

	if (!has_family(AF_INET6)) {
		return;
	}
	close(bound_socket(AF_INET6, SOCK_STREAM, &to.at[0]));
	close(bound_socket(AF_INET6, SOCK_STREAM, &to.at[1]));
	close(bound_socket(AF_INET6, SOCK_STREAM, &to.at[2]));
	listener = bound_socket(AF_INET, SOCK_STREAM, &to.at[3]);
	assert_wins(&to, NULL, LONG_MS * NP_MSEC, 3, "::1: Connection refused");
	close(listener);
}

/* An address that the user's own one rules out is no news. */
TEST(a_family_without_a_local_address_is_left_out)
{
	static const uint8_t loopback[16] = { [15] = 1 };
	struct np_addrs to = { .count = 2 }, from = { .count = 1 };
	FREED_BY(close_fd) int listener;

	np_addr_make(&to.at[0], AF_INET6, loopback, 9);
	listener = bound_socket(AF_INET, SOCK_STREAM, &to.at[1]);
	np_addr_make(&from.at[0], AF_INET, (const uint8_t[]){ 127, 0, 0, 1 }, 0);
	assert_wins(&to, &from, LONG_MS * NP_MSEC, 1, "");
	to.count = 1;
	assert_int_equal(raced(&to, &from, NP_NEVER), -1);
	assert_int_equal(why.sys, EAFNOSUPPORT);
}

/* The time may be over before the last address has its turn. */
TEST(a_short_time_ends_with_a_reason)
{
	struct np_addrs to = { .count = 2 };
	int fds[4];

	fds[0] = silent_listener(AF_INET, &to.at[0], &fds[1]);
	fds[3] = bound_socket(AF_INET, SOCK_STREAM, &to.at[1]);
	assert_int_equal(raced(&to, NULL, NP_MSEC), -1);
	assert_int_equal(why.sys, ETIMEDOUT);
	close_all(fds, 4);
}

/* From a given port: the first one is given up before the next one is begun. */
TEST(one_local_port_serves_one_at_a_time)
{
	struct np_addrs to = { .count = 2 }, from = { .count = 1 };
	struct np_addr free_port;
	int fds[4];

	fds[0] = silent_listener(AF_INET, &to.at[0], &fds[1]);
	fds[3] = bound_socket(AF_INET, SOCK_STREAM, &to.at[1]);
	close(bound_socket(AF_INET, SOCK_STREAM, &free_port));
	from.at[0] = free_port;
	assert_wins(&to, &from, NP_SEC, 1, "127.0.0.1: no answer");
	close_all(fds, 4);
}

TEST(a_path_is_an_address_without_a_port)
{
	char text[NP_ADDR_TEXT], longest[120];
	struct np_addr a;
	struct np_err err;

	assert_int_equal(np_addr_make_path(&a, "/tmp/s", &err), NP_OK);
	assert_string_equal(np_addr_text(&a, text), "/tmp/s");
	np_addr_set_port(&a, 4711);
	assert_int_equal(np_addr_port(&a), 0);
	assert_string_equal(np_addr_host(&a, text), "/tmp/s");
	assert_string_equal(np_family(AF_UNIX)->name, "AF_UNIX");
	assert_true(np_family_of(&a)->is_here);
	memset(longest, 'x', sizeof(longest));
	longest[108] = '\0';
	assert_int_equal(np_addr_make_path(&a, longest, &err), NP_EUSAGE);
	longest[107] = '\0';
	assert_int_equal(np_addr_make_path(&a, longest, &err), NP_OK);
	assert_int_equal(np_addr_make_path(&a, "", &err), NP_EUSAGE);
}

TEST(own_addresses_are_told_from_others)
{
	static const struct {
		const char *text;
		bool is_here;
	} rows[] = { { "127.0.0.1", true }, { "127.9.8.7", true }, { "192.0.2.1", false } };
	static const uint8_t four_in_six[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	struct np_addr a;
	struct np_err err;

	for (size_t i = 0; i < LEN(rows); i++) {
		a = address("%s", rows[i].text);
		assert_int_equal(np_addr_is_here(&a), rows[i].is_here);
	}
	a = loopback(AF_INET6, 12865);
	assert_true(!has_family(AF_INET6) || np_addr_is_here(&a));
	np_addr_make(&a, AF_INET6, four_in_six, 1);
	assert_true(np_addr_is_here(&a));
	assert_int_equal(np_addr_make_path(&a, "/tmp/s", &err), NP_OK);
	assert_true(np_addr_is_here(&a));
}

/* In a child, with network and sysctls of its own. 0: told rightly, 1: not, 77: can't be set up. */
static int
judge_where_any_address_binds(void)
{
	int fd = unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0
		     ? open("/proc/sys/net/ipv4/ip_nonlocal_bind", O_WRONLY)
		     : -1;
	struct np_addr a;

	if (fd < 0 || write(fd, "1", 1) != 1) {
		return 77;
	}
	np_addr_make(&a, AF_INET, v4, 1);
	return np_addr_is_here(&a) ? 1 : 0;
}

TEST(others_stay_others_where_any_address_binds)
{
	assert_in_child(judge_where_any_address_binds(),
			"no namespace where any address can be bound");
}

TEST(packets_to_loopback_bear_its_address)
{
	static const int families[] = { AF_INET, AF_INET6 };

	for (size_t i = 0; i < LEN(families); i++) {
		struct np_addr there, here = { .len = 0 };

		np_addr_make_loopback(&there, families[i]);
		if (np_addr_towards(&there, &here)) { /* a machine may have no IPv6 */
			assert_true(np_addr_same_host(&there, &here));
		} else {
			assert_int_equal(families[i], AF_INET6);
		}
	}
}

TEST(addresses_have_interfaces)
{
	static const struct {
		int family;
		const char *address, *device;
	} cases[] = {
		{ AF_INET, "127.0.0.1", "lo" },
		{ AF_INET, "127.3.2.1", "lo" },
		{ AF_INET6, "::1", "lo" },
		{ AF_INET6, "::ffff:127.0.0.1", "lo" },
		{ AF_INET, "192.0.2.1", "" },
		{ AF_INET6, "2001:db8::1", "" },
		{ AF_INET6, "::ffff:192.0.2.1", "" },
	};
	const struct np_addr other = { .sa.ss_family = AF_UNIX };
	char device[IF_NAMESIZE];
	struct np_addr a;

	for (size_t i = 0; i < LEN(cases); i++) {
		struct sockaddr_storage at = { .ss_family = (sa_family_t)cases[i].family };
		void *to = cases[i].family == AF_INET
			       ? (void *)&((struct sockaddr_in *)&at)->sin_addr
			       : (void *)&((struct sockaddr_in6 *)&at)->sin6_addr;

		assert_int_equal(inet_pton(cases[i].family, cases[i].address, to), 1);
		np_addr_from(&a, (const struct sockaddr *)&at);
		assert_int_equal(np_addr_device(&a, device),
				 cases[i].device[0] != '\0' ? 0 : -ENODEV);
		assert_string_equal(device, cases[i].device);
	}
	assert_int_equal(np_addr_device(&other, device), -ENODEV);
	assert_string_equal(device, "");
}

/* 1448 bytes a segment at 100 Gbit/s: the kernel's counter begins again after 8 minutes. */
TEST(segments_are_counted_beyond_32_bits)
{
	static const uint64_t many[] = { 0,
					 1000,
					 UINT32_MAX,
					 UINT32_MAX + UINT64_C(1),
					 UINT32_MAX + UINT64_C(1000),
					 UINT64_C(40000000000),
					 UINT64_C(60000000000) };

	for (size_t i = 0; i < LEN(many); i++) {
		uint32_t seen = (uint32_t)many[i];

		assert_int_equal(np_tcp_segments(seen, many[i] * 1448, 1448, 1448), many[i]);
		assert_int_equal(np_tcp_segments(seen, many[i] * 1448, 1428, 1460), many[i]);
		assert_int_equal(np_tcp_segments(seen, many[i] * 1440, 1460, 1460), many[i]);
	}
	/* The path's MTU has become smaller: a billion of 9000 bytes, or six of 1448? */
	assert_int_equal(np_tcp_segments(1000000000, UINT64_C(9000000000000), 1448, 8948), -1);
	assert_int_equal(np_tcp_segments(1000000, UINT64_C(8900000000), 1448, 8948), 1000000);
	assert_int_equal(np_tcp_segments(77, 0, 0, 0), 77);
}

TEST(what_a_connection_has_not_measured_is_in_no_mean)
{
	FREED_BY(free_bag) struct np_bag *both = np_bag_new(), *idle = np_bag_new();
	FREED_BY(close_fd) int unused = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct np_tcp_sum sum = { .count = 0 }, none = { .count = 0 };
	struct np_addr at;
	FREED_BY(close_fd) int listener = bound_socket(AF_INET, SOCK_STREAM, &at);
	FREED_BY(close_fd) int used = connected_to(&at);

	assert_true(np_tcp_sum_add(&none, unused) && np_tcp_sum_add(&sum, unused));
	assert_true(np_tcp_sum_add(&sum, used));
	np_tcp_put(&sum, 2, used, both);
	np_tcp_put(&none, 1, unused, idle);
	assert_in_range(np_bag_number(both, "tcp.min_rtt_us"), 0, 10000000);
	assert_true(isnan(np_bag_number(idle, "tcp.min_rtt_us")));
	assert_near(np_bag_number(idle, "tcp.ssthresh"), -1, 0);
}

/* Linux before 3.15 fills 104 bytes, up to the retransmissions. */
TEST(samples_have_what_the_kernel_fills)
{
	size_t names = 0;

	for (size_t i = 0; i < NP_TCP_SAMPLED; i++) {
		assert_non_null(np_tcp_sampled(i, SIZE_MAX));
		names += np_tcp_sampled(i, 104) != NULL;
	}
	assert_int_equal(names, 5);
}

TEST(tcp_counters_begin_with_an_earlier_look)
{
	FREED_BY(free_bag) struct np_bag *whole = np_bag_new(), *later = np_bag_new();
	struct np_tcp_sum before = { .count = 0 }, sum = { .count = 0 };
	struct np_tcp_brief brief;
	struct np_addr at;
	FREED_BY(close_fd) int listener = bound_socket(AF_INET, SOCK_STREAM, &at);
	FREED_BY(close_fd) int fd = connected_to(&at);

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	assert_int_equal(send(fd, "before", 6, 0), 6);
	assert_true(np_tcp_read(fd, &brief, &before));
	assert_int_equal(send(fd, "later", 5, 0), 5);
	assert_true(np_tcp_sum_add(&sum, fd));
	np_tcp_put(&sum, 1, fd, whole);
	np_tcp_sum_since(&sum, &before);
	np_tcp_put(&sum, 1, fd, later);
	assert_int_equal(np_bag_number(whole, "tcp.bytes_sent"), 11);
	assert_int_equal(np_bag_number(later, "tcp.bytes_sent"), 5);
	assert_int_equal(np_bag_number(later, "tcp.data_segments_out"), 1);
	assert_int_equal(np_bag_number(later, "tcp.mss"), np_bag_number(whole, "tcp.mss"));
}

TEST(tcp_counters_of_other_connections_have_no_difference)
{
	static const char *const names[] = { "tcp.bytes_sent", "tcp.segments_out" };
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	struct np_tcp_sum before = { .count = 0 }, sum = { .count = 0 };
	struct np_bag_item item;
	struct np_addr at;
	FREED_BY(close_fd) int listener = bound_socket(AF_INET, SOCK_STREAM, &at);
	FREED_BY(close_fd) int one = connected_to(&at), closed_later = connected_to(&at);

	assert_true(np_tcp_sum_add(&before, one) && np_tcp_sum_add(&before, closed_later));
	assert_true(np_tcp_sum_add(&sum, one));
	np_tcp_sum_since(&sum, &before);
	np_tcp_put(&sum, 1, one, b);
	for (size_t i = 0; i < LEN(names); i++) {
		assert_true(np_bag_find(b, names[i], &item) && item.kind == NP_BAG_UNREAD);
		assert_non_null(strstr(item.text, "opened or closed"));
	}
}

TEST_MAIN()
