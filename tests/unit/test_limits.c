/*
 * What a daemon's limits do to a session: which requests they turn down and in which words, and
 * that whoever grants tests hears of each one's end.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "base/fds.h"
#include "bench/lacks.h"
#include "bench/run.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/session.h"
#include "tests/lib/sockets.h"

/* Who grants, and what it was told. Read by the test when the session has ended. */
struct book {
	int asked, done, refused, refused_with;
	int deny;                    /* errno to answer every wish with; 0: grant */
	uint64_t most[NP_RESOURCES]; /* that is granted; 0: all that is wanted */
	struct np_wish wish;
	struct np_served served;
};

static int
on_ask(void *ctx, struct np_wish *wish, int control_fd, struct np_err *err)
{
	struct book *b = ctx;

	assert_true(control_fd >= 0);
	b->asked++;
	b->wish = *wish;
	if (b->deny != 0) {
		np_fail(err, NP_EUNSUP, 0, "the book is full");
		err->sys = b->deny;
		return err->code;
	}
	for (int g = 0; g < NP_RESOURCES; g++) {
		if (b->most[g] > 0 && wish->takes[g] > b->most[g]) {
			assert_true(wish->takes[g] - wish->spares[g] <= b->most[g]);
			wish->takes[g] = b->most[g];
		}
	}
	return NP_OK;
}

static void
on_tell(void *ctx, const struct np_served *served)
{
	struct book *b = ctx;

	if (served != NULL && served->refused != 0) {
		b->refused++;
		b->refused_with = served->refused;
	} else if (served != NULL) {
		b->done++;
		b->served = *served;
	}
}

static const struct np_limits none;

static void
open_limited(struct session *s, const struct np_limits *limits, struct book *b)
{
	struct np_server server = { .limits = *limits };

	if (b != NULL) {
		server.admission =
		    (struct np_admission){ .ask = on_ask, .tell = on_tell, .ctx = b };
	}
	session_open_as(s, &server);
}

/* The request is turned down before anybody is asked about it. */
static void
expect_refusal(const struct np_limits *limits, const struct np_omni_request *request, int32_t error,
	       const char *words)
{
	struct book b = { .asked = 0 };
	struct session s;

	open_limited(&s, limits, &b);
	ask(&s, NP_OMNI, np_omni_request_layout, request);
	assert_why(&s, NP_OMNI + 1, error, words);
	assert_int_equal(read_all(s.fd), 0);
	assert_int_not_equal(session_close(&s), NP_OK);
	assert_has(s.err.msg, words);
	assert_int_equal(b.asked, 0);
	assert_int_equal(b.done, 0);
	assert_int_equal(b.refused, 1);
	assert_int_equal(b.refused_with, error);
}

/* It is granted; what the daemon answers. The client then leaves. */
static struct np_omni_response
expect_grant(const struct np_limits *limits, const struct np_omni_request *request, struct book *b)
{
	struct np_omni_response m;
	struct session s;

	open_limited(&s, limits, b);
	ask(&s, NP_OMNI, np_omni_request_layout, request);
	assert_int_equal(answer(&s, np_omni_response_layout, &m).word, 0);
	session_close(&s);
	return m;
}

static struct np_omni_request
stream_request(uint32_t direction, int32_t length)
{
	struct np_omni_request m = five_transactions();

	m.direction = direction;
	m.request_size = m.response_size = -1;
	m.test_length = length;
	return m;
}

/* ---- What is turned down ---- */

TEST(longer_tests_are_turned_down)
{
	struct np_limits limits = { .seconds = 60 };
	struct np_omni_request request = five_transactions();
	struct book b = { .asked = 0 };

	request.test_length = 61;
	expect_refusal(&limits, &request, ERANGE,
		       "test of 61 s: the daemon allows 60 (netserver --max-length)");
	request.test_length = 60;
	expect_grant(&limits, &request, &b);
	assert_int_equal(b.wish.seconds, 60);
	request.test_length = -1000;
	expect_grant(&limits, &request, &b);
	assert_int_equal(b.wish.seconds, 0);
}

TEST(larger_messages_are_turned_down)
{
	struct np_limits limits = { .message = 4096 };
	struct np_omni_request request = five_transactions();
	struct np_omni_response m;

	request.response_size = 4097;
	expect_refusal(&limits, &request, EMSGSIZE,
		       "message of 4097 bytes: the daemon allows 4096 (netserver --max-message)");
	request.response_size = 8;
	request.request_size = 1 << 20;
	expect_refusal(&limits, &request, EMSGSIZE, "message of 1048576 bytes");
	request.request_size = 4096;
	expect_grant(&limits, &request, NULL);

	request = stream_request(NP_WD_RECEIVE, -1);
	request.receive_size = 4097;
	expect_refusal(&limits, &request, EMSGSIZE, "message of 4097 bytes");
	request = stream_request(NP_WD_TRANSMIT, -1);
	request.send_size = 4097;
	expect_refusal(&limits, &request, EMSGSIZE, "message of 4097 bytes");
	/* What it does not use does not matter, and what it leaves to us, we make small. */
	request.send_size = -1;
	request.receive_size = 4097;
	m = expect_grant(&limits, &request, NULL);
	assert_int_equal(m.send_size, 4096);
	request = stream_request(NP_WD_RECEIVE, -1);
	m = expect_grant(&limits, &request, NULL);
	assert_int_equal(m.receive_size, 4096);
}

/* A plan is granted by somebody; with how many flows and workers? */
static struct np_grant_message
expect_plan_of(const struct np_limits *limits, const struct np_plan_message *m, struct book *b)
{
	struct np_grant_message granted;
	struct session s;

	open_limited(&s, limits, b);
	ask_tagged(&s, &np_tagged_plan, m);
	assert_int_equal(answer_tagged(&s, &np_tagged_grant, &granted).word, 0);
	session_close(&s);
	return granted;
}

static struct np_grant_message
expect_plan(const struct np_limits *limits, const struct np_plan_message *m)
{
	return expect_plan_of(limits, m, NULL);
}

/* A plan is turned down, with these words. */
static void
expect_no_plan(const struct np_limits *limits, const struct np_plan_message *m, int32_t error,
	       const char *words)
{
	struct book b = { .asked = 0 };
	struct session s;

	open_limited(&s, limits, &b);
	ask_tagged(&s, &np_tagged_plan, m);
	assert_why(&s, NP_EXT_ERROR, error, words);
	session_close(&s);
	assert_int_equal(b.asked, 0);
	assert_int_equal(b.refused_with, error);
}

/* As many as there may be. */
TEST(fewer_flows_are_granted)
{
	struct np_limits limits = { .flows = 3 };
	struct np_plan_message m = five_by_plan();
	struct np_grant_message granted;

	m.flows = 4;
	assert_int_equal(expect_plan(&limits, &m).flows, 3);
	m.flows = 10000;
	m.threads = NP_THREADS_MAX;
	granted = expect_plan(&limits, &m);
	assert_int_equal(granted.flows, 3);
	assert_int_equal(granted.threads, 3); /* no more than flows */
	/* Each of them takes memory, a worker more of it. */
	limits = (struct np_limits){ .bytes = NP_SESSION_BYTES + 10000 };
	granted = expect_plan(&limits, &m);
	assert_in_range(granted.flows, 2, 10000 / sizeof(struct np_conn));
	assert_int_equal(granted.threads, 1);
	m.flows = m.threads = 1;
	granted = expect_plan(&limits, &m);
	assert_int_equal(granted.flows, 1);
	assert_int_equal(granted.ports.count, 1);
	assert_string_equal(granted.engine, "sync");
	limits.bytes = NP_SESSION_BYTES;
	expect_no_plan(&limits, &m, ENOMEM, "(netserver --max-memory)");
}

/* What each test says that it takes of what all sessions share. */
TEST(wishes_name_what_is_shared)
{
	static const struct {
		const char *pattern, *transport, *engine;
		uint32_t leads, flows, threads;
		uint64_t ports, spare_ports, spins, sockets;
	} cases[] = {
		{ "rr", "TCP", "", 0, 1, 1, 1, 0, 0, 1 },
		{ "rr", "TCP", "spin", 0, 5, 2, 1, 0, 2, 5 },
		{ "stream", "TCP", "epoll", 1, 5, 1, 1, 0, 0, 5 },
		{ "rr", "UDP", "", 0, 5, 1, 5, 4, 0, 5 },
		{ "rr", "UDP", "", 0, 2000, 1, 2000, 1999, 0, 2000 },
		{ "stream", "UDP", "", 0, 100, 1, 100, 99, 0, 100 },
		{ "stream", "UDP", "", 1, 5, 1, 5, 4, 0, 5 },
		{ "crr", "TCP", "", 0, 7, 1, 1, 0, 0, 7 },
	};
	struct np_limits limits = { .spin = 8 };

	skip_if(np_fds_raise_limit(2000) < 2100, "no more than 2100 descriptors");
	for (size_t i = 0; i < LEN(cases); i++) {
		struct np_plan_message m = five_by_plan();
		struct book b = { .asked = 0 };

		print_message("%s over %s\n", cases[i].pattern, cases[i].transport);
		snprintf(m.pattern, sizeof(m.pattern), "%s", cases[i].pattern);
		snprintf(m.transport, sizeof(m.transport), "%s", cases[i].transport);
		snprintf(m.engine, sizeof(m.engine), "%s", cases[i].engine);
		m.leads = cases[i].leads;
		m.flags = strcmp(m.transport, "UDP") == 0 ? NP_WP_ECHO : 0;
		m.flows = cases[i].flows;
		m.threads = cases[i].threads;
		expect_plan_of(&limits, &m, &b);
		assert_int_equal(b.wish.takes[NP_RES_PORTS], cases[i].ports);
		assert_int_equal(b.wish.spares[NP_RES_PORTS], cases[i].spare_ports);
		assert_int_equal(b.wish.takes[NP_RES_THREADS], cases[i].threads);
		assert_int_equal(b.wish.spares[NP_RES_THREADS], 0);
		assert_int_equal(b.wish.takes[NP_RES_SPIN], cases[i].spins);
		assert_int_equal(b.wish.spares[NP_RES_SPIN],
				 cases[i].spins > 0 ? cases[i].spins - 1 : 0);
		assert_int_equal(b.wish.takes[NP_RES_FLOWS], cases[i].sockets);
		assert_int_equal(b.wish.takes[NP_RES_SESSIONS], 0);
	}
}

/* Who is granted less does with it. */
TEST(a_test_does_with_less)
{
	struct np_limits limits = { .spin = 8 };
	struct np_plan_message m = five_by_plan();
	struct book b = { .most = { [NP_RES_PORTS] = 2, [NP_RES_SPIN] = 1 } };
	struct np_grant_message granted;

	snprintf(m.transport, sizeof(m.transport), "UDP");
	snprintf(m.engine, sizeof(m.engine), "spin");
	m.flows = 5;
	m.threads = 3;
	granted = expect_plan_of(&limits, &m, &b);
	assert_int_equal(granted.flows, 2);
	assert_int_equal(granted.ports.count, 2);
	assert_int_equal(granted.threads, 1);
	limits.spin = 2;
	granted = expect_plan(&limits, &m);
	assert_int_equal(granted.ports.count, 5);
	assert_int_equal(granted.threads, 2);
}

TEST(engines_are_the_operators_choice)
{
	struct np_limits limits = { .spin = 0 };
	struct np_plan_message m = five_by_plan();

	snprintf(m.engine, sizeof(m.engine), "spin");
	expect_no_plan(&limits, &m, EOPNOTSUPP, "netserver was not started with --spin N");
	snprintf(m.engine, sizeof(m.engine), "batch");
	snprintf(m.transport, sizeof(m.transport), "UDP");
	m.flags |= NP_WP_IDS; /* as our clients have them: its socket hears nobody else */
	assert_string_equal(expect_plan(&limits, &m).engine, "batch");
	limits.engines = 1; /* the first of the table, sync */
	expect_no_plan(&limits, &m, EOPNOTSUPP, "netserver --engines does not name it");
	snprintf(m.engine, sizeof(m.engine), "sync");
	assert_string_equal(expect_plan(&limits, &m).engine, "sync");
}

/* A socket of one that the kernel lacks would have it load a module. */
TEST(transports_that_were_not_there_are_refused)
{
	struct np_limits limits = { .lacks = 0 };
	struct np_plan_message m = five_by_plan();

	for (size_t i = 0; np_transport_at(i) != NULL; i++) {
		if (np_transport_at(i) == &np_transport_udplite) {
			limits.lacks = np_lacks_bit(i, false);
		}
	}
	expect_plan(&limits, &m);
	snprintf(m.transport, sizeof(m.transport), "UDPLite");
	expect_no_plan(&limits, &m, EPROTONOSUPPORT,
		       "UDPLite: the daemon's kernel did not have it when netserver started (try "
		       "--transports UDPLite there)");
}

TEST(ipv6_that_was_not_there_is_refused)
{
	struct np_limits limits = { .lacks = np_lacks_bit(0, true) }; /* of TCP */
	struct np_plan_message m = five_by_plan();

	expect_plan(&limits, &m);
	m.family = NP_WF_INET6;
	expect_no_plan(&limits, &m, EAFNOSUPPORT,
		       "TCP by IPv6: the daemon's kernel did not have it");
}

TEST(a_choice_of_connections_is_granted)
{
	struct np_limits limits = { .flows = 3 };
	struct np_plan_message m = five_by_plan();

	m.flags = NP_WP_SPREAD;
	expect_plan(&limits, &m);
	m.flags |= NP_WP_FAST_OPEN;
	expect_no_plan(&limits, &m, EOPNOTSUPP, "nothing to spread in rr over TCP");
	m.flags = NP_WP_SPREAD;
	snprintf(m.transport, sizeof(m.transport), "UDP");
	expect_no_plan(&limits, &m, EOPNOTSUPP, "nothing to spread in rr over UDP");
}

/* What this machine has not is left out; the answer says what is in force. */
TEST(processors_that_there_are_are_granted)
{
	struct np_limits limits = { .flows = 3 };
	struct np_plan_message m = five_by_plan();

	assert_string_equal(expect_plan(&limits, &m).cpus, "");
	snprintf(m.cpus, sizeof(m.cpus), "8190-8191");
	assert_string_equal(expect_plan(&limits, &m).cpus, "");
	snprintf(m.cpus, sizeof(m.cpus), "8190+%d", sched_getcpu());
	assert_string_equal(expect_plan(&limits, &m).cpus, m.cpus + strlen("8190+"));
}

TEST(what_takes_more_memory_is_turned_down)
{
	struct np_limits limits = { .bytes = NP_SESSION_BYTES + 100000 };
	struct np_omni_request request = five_transactions();
	struct book b = { .asked = 0 };

	request.recv_width = 10;
	request.request_size = 10000;
	expect_refusal(&limits, &request, ENOMEM, "(netserver --max-memory)");
	request.recv_width = 9;
	expect_grant(&limits, &request, &b);
	assert_in_range(b.wish.takes[NP_RES_MEMORY], 90001, limits.bytes - NP_SESSION_BYTES);
	/* Numbers whose product is beyond all counting. */
	request.recv_width = request.recv_offset = UINT32_MAX;
	request.recv_alignment = 1U << 31;
	expect_refusal(&limits, &request, ENOMEM, "buffers: the daemon allows");
	/* Rings that follow a socket buffer. */
	limits.bytes = NP_SESSION_BYTES + 20000;
	request = stream_request(NP_WD_RECEIVE, 1);
	request.recv_buf_size = 50000;
	expect_refusal(&limits, &request, ENOMEM, "(netserver --max-memory)");
	request.recv_buf_size = 4096;
	expect_grant(&limits, &request, NULL);
}

/* The reckoning before must not be less than what is taken then. */
TEST(no_test_takes_more_than_was_reckoned)
{
	static const int32_t sizes[] = { -1, 1, 1000, 70000 };

	for (const struct np_bench *b = NULL; (b = next_runnable(b)) != NULL;) {
		for (size_t k = 0; k < 4 * LEN(sizes); k++) {
			struct np_stop stop = { 0 };
			struct np_plan p;
			struct np_terms terms;
			FREED_BY(np_run_free) struct np_run run;
			struct np_err err;
			uint64_t reckoned, taken;

			daemon_params(&p, b, 1);
			terms = terms_for(&p);
			p.near.call.send_size = p.near.call.recv_size = sizes[k % LEN(sizes)];
			p.near.call.send_width = p.near.call.recv_width = k % 3 * 5;
			p.near.call.send_align = p.near.call.recv_align = 1U << k;
			p.near.call.send_offset = p.near.call.recv_offset = (uint32_t)k * 3;
			terms.call_max = k % 2 * 3000;
			assert_int_equal(np_run_bytes(&p, &terms, &reckoned, &err), NP_OK);
			assert_int_equal(np_run_open(&run, &p, &terms, &stop, &err), NP_OK);
			taken = run.worker->send_ring.width * run.worker->send_ring.size +
				run.worker->recv_ring.width * run.worker->recv_ring.size;
			fail_if(taken > reckoned || reckoned > UINT32_MAX,
				"%s: %llu reckoned, %llu taken", b->name,
				(unsigned long long)reckoned, (unsigned long long)taken);
		}
	}
}

TEST(a_warm_up_takes_memory_for_each_flow)
{
	const struct np_terms unlimited = { .call_max = 0 };
	uint64_t without, with;
	struct np_plan p;
	struct np_err err;

	client_params(&p, np_bench_find("TCP_STREAM"), AF_INET, 1);
	p.flows = 1000;
	assert_int_equal(np_run_bytes(&p, &unlimited, &without, &err), NP_OK);
	p.warm_up_ms = 1;
	assert_int_equal(np_run_bytes(&p, &unlimited, &with, &err), NP_OK);
	assert_true(with >= without + p.flows * sizeof(struct np_tcp_brief));
}

TEST(no_datagram_is_cut_unless_asked_for)
{
	static const struct {
		int32_t asked;
		size_t most;
	} calls[] = { { -1, 65507 }, { 1000, 1000 } };

	for (size_t i = 0; i < LEN(calls); i++) {
		FREED_BY(end_free) struct end e = { .rc = -1 };

		daemon_params(&e.plan, np_bench_find("UDP_STREAM"), 1);
		e.plan.near.sock.rcvbuf = 10000;
		e.plan.near.call.recv_size = calls[i].asked;
		end_open(&e);
		assert_int_equal(e.run.worker->recv_size, calls[i].most);
	}
}

/* ---- Ports ---- */

static struct np_omni_request
udp_requests(void)
{
	struct np_omni_request m = five_transactions();

	m.socket_type = NP_WS_DGRAM;
	m.protocol = IPPROTO_UDP;
	return m;
}

/* Three ports in a row that are free for both protocols, below those that the kernel gives away. */
static uint16_t
free_ports(void)
{
	for (uint16_t first = (uint16_t)(10000 + getpid() % 15000); first < 32000; first += 3) {
		bool all = true;

		for (uint16_t i = 0; i < 6; i++) {
			struct np_addr at = loopback(AF_INET, (uint16_t)(first + i / 2));
			FREED_BY(close_fd)
			int fd = socket(AF_INET, i % 2 ? SOCK_STREAM : SOCK_DGRAM, 0);

			all = all && bind(fd, (struct sockaddr *)&at.sa, at.len) == 0;
		}
		if (all) {
			return first;
		}
	}
	fail_msg("no three free ports in a row");
	return 0;
}

TEST(ports_come_from_the_range)
{
	struct np_omni_request requests[] = { five_transactions(), udp_requests() };
	uint16_t first = free_ports();
	struct np_limits limits = { .port_min = first, .port_max = (uint16_t)(first + 2) };

	for (size_t i = 0; i < LEN(requests); i++) {
		struct np_omni_request *r = &requests[i];
		unsigned seen = 0;

		for (int round = 0; round < 40; round++) {
			uint32_t port = expect_grant(&limits, r, NULL).data_port;

			assert_in_range(port, first, first + 2);
			seen |= 1U << (port - first);
		}
		assert_int_equal(seen, 7); /* once in 3 * (2/3)^40 runs it is not */
		r->data_port = first + 1U;
		assert_int_equal(expect_grant(&limits, r, NULL).data_port, first + 1);
		r->data_port = first + 3U;
		expect_refusal(&limits, r, EACCES, "(netserver --data-ports)");
		r->data_port = first - 1U;
		expect_refusal(&limits, r, EACCES, "(netserver --data-ports)");
	}
}

TEST(a_range_may_be_full)
{
	struct np_omni_request requests[] = { five_transactions(), udp_requests() };
	uint16_t first = free_ports();
	struct np_limits limits = { .port_min = first, .port_max = (uint16_t)(first + 1) };

	for (size_t i = 0; i < LEN(requests); i++) {
		struct np_omni_response m[2];
		struct session s[3];
		struct book b = { .asked = 0 };

		for (size_t k = 0; k < 2; k++) {
			open_limited(&s[k], &limits, NULL);
			/* The second one asks for what the first one has, and gets the other. */
			requests[i].data_port = k == 0 ? 0 : m[0].data_port;
			ask(&s[k], NP_OMNI, np_omni_request_layout, &requests[i]);
			assert_int_equal(answer(&s[k], np_omni_response_layout, &m[k]).word, 0);
		}
		assert_int_equal(m[0].data_port + m[1].data_port, 2 * first + 1);
		open_limited(&s[2], &limits, &b);
		ask(&s[2], NP_OMNI, np_omni_request_layout, &requests[i]);
		assert_why(&s[2], NP_OMNI + 1, EADDRINUSE, "for data is free");
		for (size_t k = 0; k < 3; k++) {
			session_close(&s[k]);
		}
		assert_int_equal(b.asked, 1);
		assert_int_equal(b.done, 1);
		assert_true(b.served.failed);
	}
}

/* ---- Time ---- */

TEST(a_test_by_count_has_an_end)
{
	struct np_limits limits = { .seconds = 1 };
	struct np_omni_request request = five_transactions();
	struct book b = { .asked = 0 };
	struct session s;
	uint64_t begun;
	int fd;

	open_limited(&s, &limits, &b);
	fd = ask_and_connect(&s, &request);
	begun = np_now();
	assert_why(
	    &s, NP_OMNI + 2, ERANGE,
	    "test ended after 1 s: the daemon allows no longer tests (netserver --max-length)");
	assert_in_range((np_now() - begun) / NP_MSEC, 900, LONG_MS);
	close(fd);
	session_close(&s);
	assert_int_equal(b.done, 1);
	assert_true(b.served.failed);
}

/* A request that does not say whether its length is one may be timed by the client. */
TEST(a_test_of_unknown_length_has_a_moment_more)
{
	struct np_limits limits = { .seconds = 1 };
	struct np_stream_request request = { .send_buf_size = -1,
					     .recv_buf_size = -1,
					     .test_length = 1 };
	struct np_stream_response m;
	struct np_stream_results r;
	struct timespec pause = { .tv_sec = 1, .tv_nsec = 300000000 };
	struct np_addr at;
	struct session s;
	int fd;

	open_limited(&s, &limits, NULL);
	ask(&s, NP_TCP_STREAM, np_stream_request_layout, &request);
	assert_int_equal(answer(&s, np_stream_response_layout, &m).word, 0);
	at = loopback(AF_INET, (uint16_t)m.data_port_number);
	fd = connected_to(&at);
	assert_true(put_bytes(fd, "plum", 4));
	nanosleep(&pause, NULL);
	close(fd);
	assert_int_equal(answer(&s, np_stream_results_layout, &r).word, 0);
	assert_true(r.bytes_received > 3 && r.bytes_received < 5);
	assert_int_equal(session_close(&s), NP_OK);
}

TEST(a_client_that_asks_for_nothing_is_let_go)
{
	struct np_limits limits = { .idle_s = 1 };
	struct session s;
	uint64_t begun = np_now();

	open_limited(&s, &limits, NULL);
	assert_int_equal(read_all(s.fd), 0);
	assert_in_range((np_now() - begun) / NP_MSEC, 900, LONG_MS);
	assert_int_equal(session_close(&s), NP_ETIME);
}

/* ---- Leave ---- */

TEST(who_is_not_granted_is_told)
{
	struct np_omni_request request = five_transactions();
	struct book b = { .deny = EBUSY };
	struct session s;

	open_limited(&s, &none, &b);
	ask(&s, NP_OMNI, np_omni_request_layout, &request);
	assert_why(&s, NP_OMNI + 1, EBUSY, "the book is full");
	session_close(&s);
	assert_int_equal(b.asked, 1);
	assert_int_equal(b.done, 0);
	assert_int_equal(b.refused, 0);
}

TEST(what_makes_no_sense_is_not_asked_about)
{
	struct np_omni_request request = five_transactions();

	request.direction = 5;
	expect_refusal(&none, &request, EINVAL, "request for direction 5");
}

TEST(the_end_is_told_with_its_figures)
{
	struct np_omni_request request = five_transactions();
	struct book b = { .asked = 0 };
	struct session s;
	char bytes[16] = "";
	int fd;

	open_limited(&s, &none, &b);
	fd = ask_and_connect(&s, &request);
	for (int i = 0; i < 5; i++) {
		assert_true(put_bytes(fd, bytes, 16));
		assert_true(get_bytes(fd, bytes, 8));
	}
	assert_int_equal(answer(&s, NULL, NULL).word, 0);
	close(fd);
	assert_int_equal(session_close(&s), NP_OK);
	assert_string_equal(b.wish.test, "TCP_RR");
	assert_int_equal(b.done, 1);
	assert_false(b.served.failed);
	assert_int_equal(b.served.received, 80);
	assert_int_equal(b.served.sent, 40);
	assert_int_equal(b.served.transactions, 5);
}

TEST(the_end_is_told_of_a_client_that_vanished)
{
	struct np_omni_request request = five_transactions();
	struct book b = { .asked = 0 };

	expect_grant(&none, &request, &b);
	assert_int_equal(b.asked, 1);
	assert_int_equal(b.done, 1);
}

TEST(tests_have_names_that_people_know)
{
	struct np_omni_request receive = stream_request(NP_WD_RECEIVE, 1);
	struct np_omni_request transmit = stream_request(NP_WD_TRANSMIT, 1);
	struct np_omni_request requests = udp_requests();
	struct book b = { .asked = 0 };

	expect_grant(&none, &receive, &b);
	assert_string_equal(b.wish.test, "TCP_STREAM");
	expect_grant(&none, &transmit, &b);
	assert_string_equal(b.wish.test, "TCP_MAERTS");
	expect_grant(&none, &requests, &b);
	assert_string_equal(b.wish.test, "UDP_RR");
}

/* A message that somebody has read from the connection before the session began. */
TEST(a_message_that_was_read_already_counts)
{
	static const struct np_head heads[] = { { .code = NP_PASSPHRASE, .word = -1 },
						{ .code = NP_CPU_CALIBRATE, .word = -1 } };
	struct np_log log = { .level = NP_LOG_ERROR };
	uint8_t frame[NP_FRAME_SIZE];

	for (size_t i = 0; i < LEN(heads); i++) {
		struct np_server server = {
			.log = &log,
			.peer = "the script",
		};
		struct np_text text = { .text = "sesame" };
		struct np_chan c;
		struct np_err err;
		int fd[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
		assert_int_equal(np_chan_open(&c, fd[1], "the script", &err), NP_OK);
		np_frame_put(c.in, &heads[i], i == 0 ? np_text_layout : NULL, &text);
		c.have = c.size;
		np_frame_put(frame, &heads[1], NULL, NULL);
		assert_true(i != 0 || put_bytes(fd[0], frame, sizeof(frame)));
		shutdown(fd[0], SHUT_WR);
		assert_int_equal(np_server_serve(&server, &c, &err), NP_OK);
		assert_int_equal(read_all(fd[0]), NP_FRAME_SIZE); /* one answer, to the other */
		close(fd[0]);
	}
}

/* ---- Datagrams ---- */

static struct np_omni_request
udp_receiver(uint16_t port)
{
	struct np_omni_request m = stream_request(NP_WD_TRANSMIT, 1);

	m.socket_type = NP_WS_DGRAM;
	m.protocol = IPPROTO_UDP;
	m.send_size = 100;
	m.netperf_port = port;
	return m;
}

TEST(datagrams_of_others_are_not_bargained_for)
{
	struct np_omni_request request = udp_requests();

	/* The control connection is this machine's own; somebody else is named. */
	request.netperf_ip[0] = 0x7f000002;
	expect_refusal(&none, &request, EACCES,
		       "datagrams of 127.0.0.2: the daemon exchanges them only with the address of "
		       "the control connection, 127.0.0.1");
	request.netperf_ip[0] = 0x7f000001;
	expect_grant(&none, &request, NULL);
	/* Over TCP a handshake proves it. */
	request = five_transactions();
	request.netperf_ip[0] = 0x7f000002;
	expect_grant(&none, &request, NULL);
}

TEST(who_cannot_echo_gets_no_datagrams_where_that_is_wanted)
{
	struct np_limits limits = { .want_echo = true };
	struct np_omni_request request = udp_receiver(9);

	expect_refusal(&limits, &request, EACCES, "(netserver --want-echo)");
	request = udp_requests();
	expect_grant(&limits, &request, NULL);
	limits.want_echo = false;
	request = udp_receiver(0);
	expect_refusal(&limits, &request, EACCES, "names no port");
}

static bool
comes(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

/* Ask for datagrams as a client that will echo a token; returns it. */
static uint64_t
ask_with_echo(struct session *s, uint16_t port, struct np_addr *data)
{
	struct np_omni_request request = udp_receiver(port);
	struct np_head head = { .code = NP_OMNI, .word = -1 };
	struct np_omni_response m;
	uint64_t token;
	uint8_t frame[NP_FRAME_SIZE];
	struct np_err err;

	np_frame_put(frame, &head, np_omni_request_layout, &request);
	np_spare_put(frame + NP_SPARE_AT, NP_ECHO_ASKED, 0);
	assert_true(put_bytes(s->fd, frame, sizeof(frame)));
	assert_true(get_bytes(s->fd, frame, sizeof(frame)));
	assert_int_equal(np_frame_head(frame).word, 0);
	assert_int_equal(np_frame_get(frame, np_omni_response_layout, &m, &err), NP_OK);
	assert_int_equal(np_spare_get(frame + NP_SPARE_AT, &token), NP_ECHO_NAMED);
	assert_true(token != 0);
	*data = loopback(AF_INET, (uint16_t)m.data_port);
	return token;
}

static void
send_token(int fd, uint64_t token, const struct np_addr *to)
{
	uint8_t bytes[NP_ECHO_SIZE];

	np_spare_put(bytes, NP_ECHO_NAMED, token);
	assert_int_equal(send_datagram(fd, bytes, sizeof(bytes), to), sizeof(bytes));
}

/* Of 127.0.0.2. */
static int
stranger_socket(void)
{
	struct np_addr elsewhere = address("127.0.0.2");

	return bound_at(&elsewhere, SOCK_DGRAM, 0);
}

/* Nothing before the echo, nothing for a wrong one or a stranger's; then to where the right one
 * came from. */
TEST(datagrams_go_where_the_echo_came_from)
{
	struct np_limits limits = { .want_echo = true };
	struct np_addr named, own, data;
	struct book b = { .asked = 0 };
	struct session s;
	uint64_t token, before;
	char bytes[200];
	FREED_BY(close_fd) int other = bound_socket(AF_INET, SOCK_DGRAM, &named);
	FREED_BY(close_fd) int fd = bound_socket(AF_INET, SOCK_DGRAM, &own);
	FREED_BY(close_fd) int stranger = stranger_socket();

	open_limited(&s, &limits, &b);
	token = ask_with_echo(&s, np_addr_port(&named), &data);
	assert_false(comes(other, 200));
	send_token(stranger, token, &data);
	send_token(fd, token + 1, &data);
	send_token(fd, token ^ UINT64_C(1) << 63, &data);
	assert_int_equal(send_datagram(fd, "", 0, &data), 0);
	assert_int_equal(send_datagram(fd, bytes, 200, &data), 200);
	assert_false(comes(fd, 200));
	before = np_now();
	send_token(fd, token, &data);
	assert_true(comes(fd, LONG_MS));
	assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), 100);
	assert_int_equal(answer(&s, NULL, NULL).word, 0);
	assert_in_range((np_now() - before) / NP_MSEC, 900, LONG_MS);
	assert_false(comes(other, 0));
	session_close(&s);
	assert_int_equal(b.done, 1);
	assert_false(b.served.failed);
	assert_true(b.served.sent > 0);
}

/* On the wildcard address the kernel drops none: a stranger who knows the token gets no data. */
TEST(an_echo_to_the_wildcard_address_is_compared)
{
	struct np_plan_message m = five_by_plan();
	struct np_grant_message granted;
	struct np_addr own, data;
	FREED_BY(session_close) struct session s;
	FREED_BY(close_fd) int fd = bound_socket(AF_INET, SOCK_DGRAM, &own);
	FREED_BY(close_fd) int stranger = stranger_socket();

	strcpy(m.pattern, "stream");
	strcpy(m.transport, "UDP");
	m.leads = 1;
	m.flags = NP_WP_ECHO;
	m.data_address.count = 4;
	open_limited(&s, &none, NULL);
	ask_tagged(&s, &np_tagged_plan, &m);
	assert_int_equal(answer_tagged(&s, &np_tagged_grant, &granted).word, 0);
	data = loopback(AF_INET, granted.ports.at[0]);
	send_token(stranger, granted.token, &data);
	send_token(fd, granted.token, &data);
	assert_true(comes(fd, LONG_MS));
}

TEST(tokens_differ)
{
	uint64_t tokens[8];

	for (size_t i = 0; i < LEN(tokens); i++) {
		struct np_addr data;
		FREED_BY(session_close) struct session s;

		open_limited(&s, &none, NULL);
		tokens[i] = ask_with_echo(&s, 9, &data);
		for (size_t k = 0; k < i; k++) {
			assert_true(tokens[k] != tokens[i]);
		}
	}
}

TEST_MAIN(np_drive_prepare())
