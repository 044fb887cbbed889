/*
 * What options make of the sockets themselves: addresses, fast open, read-backs; and services that
 * are no daemon of ours.
 */
#include "bench/bench.h"

#include <netinet/tcp.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "bench/transport/endpoint.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/sockets.h"

static uint64_t
transactions(const struct end *e)
{
	return np_get(&e->run.worker->count->transactions);
}

/* ---- Masks ---- */

/* Many hosts of the network, all within it, none of them its ends; the port stays. */
static void
spread(int family, const char *host, int32_t mask, unsigned least)
{
	size_t size = family == AF_INET6 ? 16 : 4;
	struct np_addr first = address_at(7, "%s", host), now = first, before;
	unsigned differ = 0;

	for (int i = 0; i < 1000; i++) {
		const uint8_t *a = np_addr_bytes(&first), *b = np_addr_bytes(&now);

		before = now;
		np_endpoint_spread(&now, mask);
		differ += !np_addr_same_host(&now, &before);
		for (size_t bit = 0; bit < (size_t)mask && mask > 0; bit++) {
			assert_int_equal((a[bit / 8] ^ b[bit / 8]) & (0x80 >> bit % 8), 0);
		}
		assert_int_equal(np_addr_port(&now), np_addr_port(&first));
		assert_int_equal(now.sa.ss_family, family);
		if (mask == 24) {
			assert_int_not_equal(b[size - 1], 0);
			assert_int_not_equal(b[size - 1], 255);
		}
	}
	assert_true(differ >= least);
	assert_true(least > 0 || differ == 0);
}

TEST(a_mask_leaves_the_network_and_changes_the_host)
{
	spread(AF_INET, "127.1.2.3", 8, 990);
	spread(AF_INET, "10.1.2.3", 24, 900);
	spread(AF_INET, "10.1.2.3", 29, 500);
	spread(AF_INET, "10.1.2.3", 30, 100);
	spread(AF_INET, "10.1.2.3", 31, 100);
	spread(AF_INET6, "fd00::1:2:3", 64, 1000);
	spread(AF_INET6, "fd00::1:2:3", 127, 100);
	spread(AF_INET, "10.1.2.3", 0, 0);
	spread(AF_INET, "10.1.2.3", 32, 0);
	spread(AF_INET, "10.1.2.3", 64, 0);
	spread(AF_INET6, "fd00::1:2:3", 0, 0);
	spread(AF_INET6, "fd00::1:2:3", 128, 0);
}

/* Answers connections until told, and remembers between whom they were. */
struct witness {
	int listener;
	struct np_addr here[8], there[8];
	size_t count;
};

static void *
take_note(void *arg)
{
	struct witness *w = arg;
	char request[64], response[32] = "";

	while (w->count < LEN(w->here)) {
		struct np_addr *h = &w->here[w->count], *t = &w->there[w->count];
		FREED_BY(close_fd) int fd = accepted_from(w->listener);

		h->len = t->len = sizeof(h->sa);
		getsockname(fd, (struct sockaddr *)&h->sa, &h->len);
		getpeername(fd, (struct sockaddr *)&t->sa, &t->len);
		w->count++;
		if (get_bytes(fd, request, sizeof(request))) {
			put_bytes(fd, response, sizeof(response));
		}
	}
	return NULL;
}

/* A listener on all of 127.0.0.0/8. */
static int
listen_anywhere(struct np_addr *at)
{
	np_addr_make_any(at, AF_INET);
	return bound_at(at, SOCK_STREAM, 0);
}

TEST(every_connection_has_hosts_of_its_own)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct witness w = { .count = 0 };
	struct np_addr at;
	pthread_t thread;
	unsigned here = 0, there = 0;

	w.listener = listen_anywhere(&at);
	assert_int_equal(pthread_create(&thread, NULL, take_note, &w), 0);
	client_params(&e.plan, np_bench_find("TCP_CRR"), AF_INET, -(int64_t)LEN(w.here));
	e.plan.bind = address("127.0.0.1");
	e.plan.near.sock.mask = 8;
	e.plan.far.sock.mask = 16;
	end_run(&e, &at);
	pthread_join(thread, NULL);
	assert_int_equal(e.run.err.code, NP_OK);
	assert_int_equal(w.count, LEN(w.here));
	for (size_t i = 0; i < w.count; i++) {
		assert_int_equal(np_addr_bytes(&w.here[i])[0], 127);
		assert_int_equal(np_addr_bytes(&w.here[i])[1], 0);
		assert_int_equal(np_addr_bytes(&w.there[i])[0], 127);
		here += i > 0 && !np_addr_same_host(&w.here[i], &w.here[i - 1]);
		there += i > 0 && !np_addr_same_host(&w.there[i], &w.there[i - 1]);
	}
	assert_true(here >= LEN(w.here) - 3);
	assert_true(there >= LEN(w.here) - 3);
	close(w.listener);
}

/* Both ends over loopback; `bind` is the client's own and must not be the server's. */
static void
run_both(struct ends *e, const struct np_bench *b, int family, void (*change)(struct np_plan *p))
{
	ends_open(e, b, family, b->pattern->transactions ? -25 : -10240, change);
	ends_run(e, 0);
	if (b->pattern->transactions) {
		assert_int_equal(transactions(&e->client), 25);
	} else {
		assert_int_equal(np_get(&e->client.run.worker->count->sent),
				 np_get(&e->server.run.worker->count->received));
	}
}

TEST(the_one_connection_has_a_host_of_its_own)
{
	static const char *const names[] = { "TCP_RR", "TCP_STREAM" };
	struct np_addr one = address("127.0.0.1");

	for (size_t i = 0; i < LEN(names); i++) {
		FREED_BY(ends_free) struct ends e = { .client.rc = -1 };

		client_params(&e.client.plan, np_bench_find(names[i]), AF_INET, -100);
		server_params(&e.server.plan, &e.client.plan);
		e.client.plan.bind = one;
		e.client.plan.near.sock.mask = e.client.plan.far.sock.mask = 8;
		end_open(&e.server);
		end_open(&e.client);
		end_aim(&e.client, &e.server.run.end.local);
		ends_run(&e, 0);
		assert_false(np_addr_same_host(&e.client.run.end.peer, &one));
		assert_false(np_addr_same_host(&e.client.run.end.local, &one));
		assert_int_equal(np_addr_bytes(&e.client.run.end.peer)[0], 127);
	}
}

/* ---- Connecting ---- */

/* A port at which nobody listens, and which nobody else is given. */
static int
held_port(struct np_addr *at)
{
	int reuse = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*at = address("127.0.0.1");
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&at->sa, at->len), 0);
	at->len = sizeof(at->sa);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at->sa, &at->len), 0);
	return fd;
}

TEST(a_refused_connection_is_tried_again_when_asked)
{
	static const struct timespec a_while = { .tv_nsec = 30000000 };
	struct ends e = { .client.rc = -1 };
	struct np_addr at;
	const struct np_bench *b = np_bench_find("TCP_CRR");
	int held;

	own_network(); /* as TCP_CRR binds to one port after the other, this one too */
	held = held_port(&at);
	for (int asked = 0; asked < 2; asked++) {
		memset(&e, 0, sizeof(e));
		client_params(&e.client.plan, b, AF_INET, -5);
		e.client.plan.far.sock.port = np_addr_port(&at);
		e.client.plan.retry_connect = asked;
		server_params(&e.server.plan, &e.client.plan);
		end_begin(&e.client, &at);
		if (!asked) {
			end_join(&e.client);
			assert_int_equal(e.client.run.err.sys, ECONNREFUSED);
			end_free(&e.client);
			continue;
		}
		nanosleep(&a_while, NULL);
		end_open(&e.server);
		assert_false(e.server.run.end.port_moved);
		end_start(&e.server);
		end_join(&e.client);
		end_join(&e.server);
		assert_int_equal(e.client.run.err.code, NP_OK);
		assert_int_equal(transactions(&e.client), 5);
		ends_free(&e);
	}
	close(held);
}

TEST(connection_tests_know_the_first_connection)
{
	static const char *const names[] = { "TCP_CRR", "TCP_CC" };

	for (size_t i = 0; i < LEN(names); i++) {
		FREED_BY(ends_free) struct ends e;

		run_both(&e, np_bench_find(names[i]), AF_INET, NULL);
		assert_true(e.client.run.closing.mss > 500);
		assert_string_equal(e.client.run.closing.cong, "");
		assert_int_equal(e.client.run.closing.retrans, -1);
		assert_true(e.client.run.end.sndbuf > 0);
		assert_int_equal(e.client.run.closing.sndbuf_end, e.client.run.end.sndbuf);
		assert_int_equal(e.client.run.closing.rcvbuf_end, e.client.run.end.rcvbuf);
		assert_true(e.server.run.end.sndbuf > 0);
		assert_int_equal(e.server.run.closing.sndbuf_end, e.server.run.end.sndbuf);
		assert_int_equal(e.server.run.closing.rcvbuf_end, e.server.run.end.rcvbuf);
	}
}

/* ---- Fast open ---- */

static void
open_fast(struct np_plan *p)
{
	p->fast_open = true;
}

/* The same, in which fast open is allowed at both ends. */
static bool
own_fast_network(void)
{
	FILE *allow = own_network() ? fopen("/proc/sys/net/ipv4/tcp_fastopen", "w") : NULL;
	bool put;

	if (allow == NULL) {
		return false;
	}
	put = fputs("3", allow) >= 0;
	return fclose(allow) == 0 && put;
}

/* A figure of netstat -s, in this thread's network. */
static long
tcp_figure(const char *name)
{
	char names[8192], values[8192];
	FILE *in = fopen("/proc/thread-self/net/netstat", "r");
	char *n, *v, *n_save, *v_save;
	long found = -1;

	assert_non_null(in);
	assert_non_null(fgets(names, sizeof(names), in));
	assert_non_null(fgets(values, sizeof(values), in));
	fclose(in);
	n = strtok_r(names, " \n", &n_save);
	v = strtok_r(values, " \n", &v_save);
	while (n != NULL && v != NULL && found < 0) {
		found = strcmp(n, name) == 0 ? strtol(v, NULL, 10) : -1;
		n = strtok_r(NULL, " \n", &n_save);
		v = strtok_r(NULL, " \n", &v_save);
	}
	return found;
}

TEST(fast_open_is_no_condition)
{
	for (const struct np_bench *b = NULL; (b = next_runnable(b)) != NULL;) {
		FREED_BY(ends_free) struct ends e;

		run_both(&e, b, AF_INET, open_fast);
	}
}

/* ---- TLS ---- */

/* Where it is not 0, setting up the kernel's TLS takes this end of a connection long. */
static _Atomic unsigned slow_port;

#ifndef SYS_socketcall /* else src/base/multiplex.c has one of its own */
#define HAS_SLOW_PORT
/* In place of the C library's. */
int
setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	static const struct timespec a_while = { .tv_nsec = 100000000 };
	struct np_addr at = { .len = sizeof(at.sa) };

	if (slow_port != 0 && (level == SOL_TLS || (level == IPPROTO_TCP && name == TCP_ULP)) &&
	    getsockname(fd, (struct sockaddr *)&at.sa, &at.len) == 0 &&
	    np_addr_port(&at) == slow_port) {
		nanosleep(&a_while, NULL);
	}
	return (int)syscall(SYS_setsockopt, fd, level, name, value, size);
}
#endif

/* All data and the FIN may be there before the kernel is asked to decrypt. */
TEST(a_client_may_be_done_before_the_kernel_decrypts)
{
	const struct np_bench *b = np_bench_find("TLS_STREAM");
	FREED_BY(ends_free) struct ends e;

#ifndef HAS_SLOW_PORT
	skip();
#endif
	skip_if(!can_run(b), "%s can't run here", b->name);
	ends_open(&e, b, AF_INET, -10240, NULL);
	slow_port = np_addr_port(&e.server.run.end.local);
	ends_run(&e, 0);
	slow_port = 0;
	fail_if(e.server.run.err.code != NP_OK, "%s", e.server.run.err.msg);
	assert_int_equal(np_get(&e.client.run.worker->count->sent),
			 np_get(&e.server.run.worker->count->received));
}

/* ---- Priority and type of service ---- */

static void
check_read_back(const char *name, int family, int tos, int want)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };

	client_params(&e.plan, np_bench_find(name), family, 1);
	e.plan.near.sock.prio = 5;
	e.plan.near.sock.tos = tos;
	end_open(&e);
	assert_int_equal(e.run.end.prio, 5);
	if (e.run.conn->fd >= 0) {
		assert_int_equal(np_sock_int(e.run.conn->fd, SOL_SOCKET, SO_PRIORITY), 5);
	}
	assert_int_equal(e.run.end.tos, want);
}

TEST(what_was_asked_for_is_read_back)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };

	check_read_back("UDP_RR", AF_INET, 0x13, 0x13);
	/* TCP keeps the bits of explicit congestion notification to itself. */
	check_read_back("TCP_RR", AF_INET, 0x13, 0x10);
	check_read_back("TCP_CRR", AF_INET, 0x10, 0x10);
	check_read_back("UDP_STREAM", AF_INET, 0, 0);
	if (has_family(AF_INET6)) {
		check_read_back("UDP_RR", AF_INET6, 0x20, 0x20);
		/* No such class: the test runs all the same. */
		check_read_back("UDP_RR", AF_INET6, 300, -2);
	}
	client_params(&e.plan, np_bench_find("TCP_RR"), AF_INET, 1);
	end_open(&e);
	assert_int_equal(e.run.end.prio, -1);
	assert_int_equal(e.run.end.tos, -1);
}

/* It chooses ways that are not everybody's: who lacks the right gets no test without it. */
TEST(a_mark_is_set_or_refused)
{
	struct end e = { .rc = -1 };
	struct np_err err = { .code = NP_OK };
	bool is_root = geteuid() == 0;

	client_params(&e.plan, np_bench_find("UDP_RR"), AF_INET, 1);
	e.plan.near.sock.mark = 7;
	if (is_root) {
		end_open(&e);
		assert_int_equal(np_sock_int(e.run.conn->fd, SOL_SOCKET, SO_MARK), 7);
		end_free(&e);
		assert_int_equal(seteuid(65534), 0);
	}
	e.terms = terms_for(&e.plan);
	assert_int_equal(np_run_open(&e.run, &e.plan, &e.terms, &e.stop, &err), NP_ESYS);
	assert_int_equal(err.sys, EPERM);
	assert_non_null(strstr(err.msg, "SO_MARK"));
	np_run_free(&e.run);
	assert_true(!is_root || seteuid(0) == 0);
}

/* ---- Datagrams ---- */

/* Where does the answer to a datagram that went to `to` come from? */
static struct np_addr
answer_from(const struct end *e, const char *to)
{
	struct np_addr at = address_at(np_addr_port(&e->run.end.local), "%s", to);
	struct np_addr from;
	char bytes[64] = "";
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_int_equal(send_datagram(fd, bytes, sizeof(bytes), &at), 64);
	assert_true(wait_readable(fd));
	assert_int_equal(receive_datagram(fd, bytes, sizeof(bytes), &from), 32);
	close(fd);
	return from;
}

TEST(answers_come_from_where_the_request_went)
{
	static const char *const hosts[] = { "127.0.0.1", "127.0.0.2", "127.3.4.5" };

	for (int asked = 0; asked < 2; asked++) {
		FREED_BY(end_free) struct end e = { .rc = -1 };

		daemon_params(&e.plan, np_bench_find("UDP_RR"), 0);
		e.plan.packet_info = asked;
		end_open(&e);
		end_start(&e);
		for (size_t i = 0; i < LEN(hosts); i++) {
			struct np_addr want = address("%s", asked ? hosts[i] : hosts[0]);
			struct np_addr from = answer_from(&e, hosts[i]);

			assert_true(np_addr_same_host(&from, &want));
			assert_int_equal(np_addr_port(&from), np_addr_port(&e.run.end.local));
		}
		end_stop(&e);
		assert_int_equal(e.run.err.code, NP_OK);
		assert_int_equal(transactions(&e), LEN(hosts));
	}
}

static void
answer_from_there(struct np_plan *p)
{
	p->packet_info = true;
	p->near.sock.connected = true;
}

TEST(a_connected_requester_gets_such_answers)
{
	static const int families[] = { AF_INET, AF_INET6 };

	for (size_t i = 0; i < LEN(families); i++) {
		struct ends e;

		if (has_family(families[i])) {
			run_both(&e, np_bench_find("UDP_RR"), families[i], answer_from_there);
			ends_free(&e);
		}
	}
}

TEST(datagrams_may_be_udp_lite)
{
	const struct np_transport *lite = np_transport_find(NP_WS_DGRAM, IPPROTO_UDPLITE);
	static const char *const names[] = { "UDP_RR", "UDP_STREAM" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDPLITE);

	assert_ptr_equal(lite, &np_transport_udplite);
	skip_if(fd < 0, "no UDP-Lite here");
	close(fd);
	for (size_t i = 0; i < LEN(names); i++) {
		struct np_bench b = *np_bench_find(names[i]);
		socklen_t len = sizeof(int);
		FREED_BY(ends_free) struct ends e;
		int protocol = 0;

		b.transport = lite;
		run_both(&e, &b, AF_INET, NULL);
		getsockopt(e.client.run.conn->fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len);
		assert_int_equal(protocol, IPPROTO_UDPLITE);
	}
}

/* ---- Services: discard, chargen, echo ---- */

struct service {
	int fd; /* a listener or a datagram socket */
	bool datagram, echoes, generates;
	uint64_t received;
	unsigned empty; /* datagrams */
};

static void
serve_datagrams(struct service *s)
{
	struct np_addr from;
	char bytes[2048];

	/* A moment of silence is the end. */
	for (;;) {
		struct timeval timeout = { .tv_usec = 200000 };
		ssize_t n;

		setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
		n = receive_datagram(s->fd, bytes, sizeof(bytes), &from);
		if (n < 0) {
			return;
		}
		s->received += (uint64_t)n;
		s->empty += n == 0;
		if (s->echoes) {
			send_datagram(s->fd, bytes, (size_t)n, &from);
		}
	}
}

static void *
serve(void *arg)
{
	struct service *s = arg;
	char bytes[4096] = "";
	ssize_t n = 0;
	int fd;

	if (s->datagram) {
		serve_datagrams(s);
		return NULL;
	}
	fd = accepted_from(s->fd);
	while (n >= 0) {
		if (s->generates) {
			n = send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
			continue;
		}
		n = recv(fd, bytes, sizeof(bytes), 0);
		if (n <= 0) {
			break;
		}
		s->received += (uint64_t)n;
		if (s->echoes && !put_bytes(fd, bytes, (size_t)n)) {
			break;
		}
	}
	close(fd);
	return NULL;
}

/* Nobody but the service: no daemon, no control connection. Ends by the clock; returns whether
 * something was moved by then.
 */
static bool
run_service(struct service *s, const char *name, uint64_t length)
{
	const struct np_bench *b = np_bench_find(name);
	struct end e = { .rc = -1 };
	const struct np_counters *c;
	struct np_addr at;
	pthread_t thread;
	bool moved;

	s->datagram = !b->transport->connected;
	s->fd = bound_socket(AF_INET, b->transport->socktype, &at);
	assert_int_equal(pthread_create(&thread, NULL, serve, s), 0);
	client_params(&e.plan, b, AF_INET, 1);
	e.plan.no_control = true;
	e.plan.response = e.plan.request;
	end_open(&e);
	end_aim(&e, &at);
	e.drive.control = NULL;
	e.drive.length_ns = length;
	end_start(&e);
	end_join(&e);
	np_run_close(&e.run);
	pthread_join(thread, NULL);
	c = e.run.worker->count;
	fail_if(e.run.err.code != NP_OK, "%s: %s", name, e.run.err.msg);
	assert_int_equal(e.drive.cause, NP_BY_CLOCK);
	moved = transactions(&e) > 0 || np_get(&c->sent) + np_get(&c->received) > 0;
	if (!s->datagram && !s->generates) {
		/* Time may be up between a request and its response, which a reset may overtake. */
		assert_in_range(np_get(&c->sent) - s->received, 0,
				b->pattern->transactions ? e.run.worker->send_size : 0);
	}
	assert_int_equal(s->empty, 0);
	close(s->fd);
	end_free(&e);
	return moved;
}

/* A busy machine may need longer to let both begin. */
static void
assert_served(struct service *s, const char *name)
{
	uint64_t length = 40 * NP_MSEC;

	while (!run_service(s, name, length)) {
		length *= 4;
		assert_true(length < LONG_MS * NP_MSEC);
		s->received = 0;
	}
}

enum { CONNECTIONS = 5 };

/* Echo what comes over each connection until the client has closed its half. */
static void *
serve_connections(void *arg)
{
	int listener = *(const int *)arg;

	for (int i = 0; i < CONNECTIONS && wait_readable(listener); i++) {
		FREED_BY(close_fd) int fd = accept(listener, NULL, NULL);
		char byte;

		while (wait_readable(fd) && recv(fd, &byte, 1, 0) == 1) {
			send(fd, &byte, 1, MSG_NOSIGNAL);
		}
	}
	return NULL;
}

TEST(a_service_is_told_when_a_connection_ends)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_addr at;
	pthread_t thread;
	FREED_BY(close_fd) int listener = bound_socket(AF_INET, SOCK_STREAM, &at);

	assert_int_equal(pthread_create(&thread, NULL, serve_connections, &listener), 0);
	client_params(&e.plan, np_bench_find("TCP_CRR"), AF_INET, -CONNECTIONS);
	e.plan.no_control = true;
	e.plan.request = e.plan.response = 1;
	end_open(&e);
	end_aim(&e, &at);
	e.drive.control = NULL;
	e.drive.length_ns = LONG_MS * NP_MSEC; /* far from being reached */
	end_start(&e);
	end_join(&e);
	pthread_join(thread, NULL);
	assert_int_equal(e.run.err.code, NP_OK);
	assert_int_equal(e.drive.cause, NP_BY_LOOP);
	assert_int_equal(transactions(&e), CONNECTIONS);
}

TEST(services_will_do_for_a_far_end)
{
	struct service discard = { .fd = -1 }, chargen = { .generates = true };
	struct service echo = { .echoes = true };

	assert_served(&discard, "TCP_STREAM");
	discard.received = 0;
	assert_served(&discard, "TCP_SENDFILE");
	assert_served(&discard, "UDP_STREAM");
	assert_served(&chargen, "TCP_MAERTS");
	assert_served(&echo, "TCP_RR");
	assert_served(&echo, "UDP_RR");
}

/* ---- Upgrades ---- */

static atomic_int upgrades;

static int
mark_upgrade(struct np_run *run, struct np_conn *conn, struct np_err *err)
{
	static const int on = 1;

	atomic_fetch_add(&upgrades, 1);
	return run->window.started_ns == 0 || run->side->steps->open != NULL
		   ? setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on))
		   : np_fail(err, NP_ESYS, EBUSY, "an upgrade within the measured part");
}

static int
fail_to_upgrade(struct np_run *run, struct np_conn *conn, struct np_err *err)
{
	assert_true(conn->fd >= 0);
	return run->plan->active ? np_fail(err, NP_EPEER, EPROTO, "no handshake with the far end")
				 : NP_OK;
}

/* Ends of a test over TCP whose connections are upgraded by that function. */
static void
open_upgraded(struct ends *e, struct np_bench *b, struct np_transport *t, const char *name,
	      int (*upgrade)(struct np_run *, struct np_conn *, struct np_err *))
{
	*b = *np_bench_find(name);
	*t = np_transport_tcp;
	t->upgrade = upgrade;
	b->transport = t;
	ends_open(e, b, AF_INET, -5, NULL);
}

TEST(every_connection_is_upgraded_at_both_ends)
{
	static const struct {
		const char *name;
		int upgrades;
	} tests[] = { { "TCP_RR", 2 }, { "TCP_CRR", 10 }, { "TCP_CC", 10 } };

	for (size_t i = 0; i < LEN(tests); i++) {
		struct np_transport t;
		struct np_bench b;
		FREED_BY(ends_free) struct ends e;

		atomic_store(&upgrades, 0);
		open_upgraded(&e, &b, &t, tests[i].name, mark_upgrade);
		ends_run(&e, 0);
		assert_int_equal(np_get(&e.client.run.worker->count->transactions), 5);
		assert_int_equal(atomic_load(&upgrades), tests[i].upgrades);
	}
}

TEST(an_upgrade_that_fails_ends_the_test_in_its_words)
{
	static const char *const names[] = { "TCP_RR", "TCP_CRR" };

	for (size_t i = 0; i < LEN(names); i++) {
		struct np_transport t;
		struct np_bench b;
		FREED_BY(ends_free) struct ends e;

		open_upgraded(&e, &b, &t, names[i], fail_to_upgrade);
		end_start(&e.server);
		end_start(&e.client);
		end_join(&e.client);
		end_stop(&e.server);
		assert_int_equal(e.client.run.err.code, NP_EPEER);
		assert_non_null(strstr(e.client.run.err.msg, "no handshake"));
		assert_int_equal(np_get(&e.client.run.worker->count->transactions), 0);
	}
}

/* Whom a listener admits by looking at the peer: nobody, unless it is told. */
TEST(a_listener_that_checks_peers_accepts_none_by_default)
{
	struct np_transport t = np_transport_tcp;
	struct np_bench b = *np_bench_find("TCP_RR");
	struct np_terms terms = { .call_max = 0 };
	struct np_plan p;
	struct np_stop stop = { 0 };
	struct np_run run;
	struct np_err err;
	FREED_BY(ends_free) struct ends e;

	t.admit = NP_ADMIT_PEER;
	b.transport = &t;
	daemon_params(&p, &b, -5);
	assert_int_equal(np_run_open(&run, &p, &terms, &stop, &err), NP_EUNSUP);
	assert_non_null(strstr(err.msg, "any peer"));
	ends_open(&e, &b, AF_INET, -5, NULL);
	assert_int_equal(e.server.run.end.sources.count, 1);
	ends_run(&e, 0);
	assert_int_equal(np_get(&e.client.run.worker->count->transactions), 5);
}

/* A size of 64 bits of its own, within what a stranger may take of the kernel's memory. */
TEST(a_vsock_has_buffers_of_its_own)
{
	static const struct {
		int32_t sndbuf, rcvbuf;
		uint32_t flows;
		int got;
	} cases[] = {
		{ -1, -1, 1, 256 << 10 },      { 100000, -1, 1, 100000 },
		{ -1, 300000, 1, 300000 },     { 100000, 300000, 1, 300000 },
		{ 300000, 100000, 1, 300000 }, { 1 << 30, -1, 1, 4 << 20 },
		{ 1 << 30, -1, 4, 1 << 20 },   { 1 << 30, -1, 1000, 256 << 10 },
	};

	for (size_t i = 0; i < LEN(cases); i++) {
		struct np_plan p = { .transport = &np_transport_vsock, .flows = cases[i].flows };
		struct np_sockopts o = { .count = 0 };
		int fd, sndbuf, rcvbuf;
		struct np_err err;

		p.near.sock.sndbuf = cases[i].sndbuf;
		p.near.sock.rcvbuf = cases[i].rcvbuf;
		np_endpoint_ask_buffers(&p, &o);
		fd = np_sock_open(AF_VSOCK, SOCK_STREAM, 0, &o, NULL, &err);
		skip_if(fd < 0, "no VSOCK here: %s", err.msg);
		np_endpoint_buffers(p.transport, fd, &sndbuf, &rcvbuf);
		close(fd);
		assert_int_equal(rcvbuf, cases[i].got);
		assert_int_equal(sndbuf, rcvbuf);
	}
}

/*
 * The first connection to a host asks for a cookie; from then on data goes with the handshake.
 * Last: it leaves this machine's network.
 */
TEST(data_goes_with_the_handshake)
{
	static const struct {
		const char *name;
		long connections;
	} rows[] = { { "TCP_CRR", 24 },   { "TCP_CRR", 25 }, { "TCP_RR", 1 },
		     { "TCP_STREAM", 1 }, { "TCP_CC", 0 },   { "TCP_MAERTS", 0 } };

	skip_if(!own_fast_network(), "no network namespace");
	for (size_t i = 0; i < LEN(rows); i++) {
		long active = tcp_figure("TCPFastOpenActive");
		long passive = tcp_figure("TCPFastOpenPassive");
		FREED_BY(ends_free) struct ends e;

		run_both(&e, np_bench_find(rows[i].name), AF_INET, open_fast);
		assert_int_equal(tcp_figure("TCPFastOpenActive") - active, rows[i].connections);
		assert_int_equal(tcp_figure("TCPFastOpenPassive") - passive, rows[i].connections);
	}
}

TEST_MAIN(np_drive_prepare())
