/*
 * Every row of the bench table, both ends over the loopback interface: what holds for all benches,
 * those that nobody has written yet, too.
 */
#include "bench/bench.h"

#include "base/clock.h"
#include "bench/lacks.h"
#include "bench/transport/endpoint.h"
#include "out/format.h"
#include "run/client_parts.h"
#include "run/talk.h"
#include "tests/lib/allocs.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/root.h"
#include "tests/lib/sockets.h"

static const int families[] = { AF_INET, AF_INET6 };

/* Bytes that fill no socket buffer, so that no datagram is lost; or transactions. */
static int64_t
small_count(const struct np_bench *b)
{
	return b->pattern->transactions ? 25 : !b->transport->connected ? 20 * 512 : 3000000;
}

static uint64_t
sent(const struct end *e)
{
	return np_get(&e->run.worker->count->sent);
}

static uint64_t
received(const struct end *e)
{
	return np_get(&e->run.worker->count->received);
}

static uint64_t
transactions(const struct end *e)
{
	return np_get(&e->run.worker->count->transactions);
}

static uint64_t
recorded(const struct end *e)
{
	struct np_hist_summary s;

	np_hist_summarise(e->run.worker->hist, &s);
	return s.count;
}

/* ---- The table ---- */

/* Is there a classic layout for it? */
static bool
has_layout(const struct np_bench *b)
{
	const struct np_classic c = { .layout = b->layout, .unit = np_unit('m') };
	const struct np_record nothing = { .value[0].known = false };
	FREED_BY(free_memory) char *text = WRITTEN(out, np_classic_print(out, &c, &nothing));

	return text[0] != '\0';
}

TEST(every_row_is_whole)
{
	const struct np_bench *b;

	for (size_t i = 0; (b = np_bench_at(i)) != NULL; i++) {
		assert_non_null(strstr(b->title, "TEST"));
		assert_true(has_layout(b));
		assert_non_null(np_dialect(b->code));
		assert_true(b->near_role == NP_LEAD || b->near_role == NP_FOLLOW);
		for (int role = 0; role < NP_ROLES; role++) {
			assert_non_null(b->pattern->side[role]);
			assert_non_null(b->pattern->side[role]->sync);
		}
		/* Names are unique: each one finds its own row. */
		assert_ptr_equal(np_bench_find(b->name), b);
	}
	assert_true(np_bench_at(0) != NULL);
	assert_ptr_equal(np_bench_find("tcp_Stream"), np_bench_find("TCP_STREAM"));
	assert_null(np_bench_find("TCP_STREA"));
	assert_null(np_bench_find("TCP_STREAM "));
	assert_null(np_bench_find(""));
	assert_null(np_dialect(98));
}

/* A transport that names no rule of admission would admit any peer. */
TEST(every_transport_says_whom_it_admits)
{
	const struct np_transport *t;
	struct np_transport silent = np_transport_tcp;
	struct np_bench bench = *np_bench_find("TCP_RR");
	struct np_stop stop = { 0 };
	struct np_plan p;
	struct np_run run;
	struct np_err err;

	for (size_t i = 0; (t = np_transport_at(i)) != NULL; i++) {
		fail_if(t->admit == NP_ADMIT_UNSAID,
			"transport %s does not say which peers it admits", t->name);
		assert_non_null(t->open);
		assert_non_null(t->establish);
		assert_true(t->connected || t->bounded);
		/* A filter knows packets of IP alone. */
		assert_true(t->admit != NP_ADMIT_IP || t->ip_protocol != 0);
		assert_null(strstr(np_family(t->family)->name, "unknown"));
	}
	for (size_t i = 0; np_bench_at(i) != NULL; i++) {
		bool listed = false;

		for (size_t k = 0; (t = np_transport_at(k)) != NULL; k++) {
			listed = listed || t == np_bench_at(i)->transport;
		}
		assert_true(listed);
	}
	silent.admit = NP_ADMIT_UNSAID;
	bench.transport = &silent;
	client_params(&p, &bench, AF_INET, 1);
	assert_int_equal(np_run_open(&run, &p, NULL, &stop, &err), NP_EUNSUP);
	assert_non_null(strstr(err.msg, "has no rule which peers"));
}

static int
lacks_a_module(const struct np_transport *t, struct np_err *err)
{
	return np_fail(err, NP_EUNSUP, 0, "this kernel has no such thing");
}

/* By a socket, or by its own means; what is missing has the names of a module and of an option. */
TEST(every_transport_can_be_asked_for)
{
	struct np_transport t = np_transport_tcp;
	struct np_err err;

	assert_int_equal(np_transport_probe(&t, &err), NP_OK);
	t.family = AF_X25;
	t.kernel.module = "x25";
	t.kernel.option = "CONFIG_X25";
	t.socktype = SOCK_RDM; /* which no family of that name has */
	assert_int_equal(np_transport_probe(&t, &err), NP_EUNSUP);
	assert_non_null(strstr(err.msg, "this kernel has no TCP (try 'modprobe x25'; its option is "
					"CONFIG_X25)"));
	t.kernel.module = NULL;
	assert_int_equal(np_transport_probe(&t, &err), NP_EUNSUP);
	assert_non_null(strstr(err.msg, "this kernel has no TCP (its option is CONFIG_X25)"));
	t.kernel.option = NULL;
	assert_int_equal(np_transport_probe(&t, &err), NP_ESYS);
	t.kernel.probe = lacks_a_module;
	assert_int_equal(np_transport_probe(&t, &err), NP_EUNSUP);
	assert_string_equal(err.msg, "this kernel has no such thing");
	for (size_t i = 0; np_transport_at(i) != NULL; i++) {
		const struct np_transport *row = np_transport_at(i);

		assert_true(row->kernel.module == NULL || row->kernel.option != NULL);
		if (np_transport_probe(row, &err) == NP_EUNSUP) {
			assert_true(strlen(err.msg) > 10);
		}
	}
}

static bool
lacks(uint64_t all, const char *name, int family)
{
	return np_lacks(all, np_transport_by_name(name, 0), family);
}

TEST_WITH(what_the_kernel_has_is_read_and_not_tried, root_make, root_remove)
{
	const char *root = *state;
	uint64_t all = np_lacks_now(root);

	/* No list at all. */
	assert_false(lacks(all, "TCP", AF_INET) || lacks(all, "UDP", AF_INET6));
	assert_false(lacks(all, "UNIX", AF_UNIX));
	assert_true(lacks(all, "SCTP", AF_INET) && lacks(all, "MPTCP", AF_INET) &&
		    lacks(all, "TLS", AF_INET) && lacks(all, "VSOCK", AF_VSOCK));
	/* As in a network namespace that is not the first. */
	put_file(root, "/sys/module/tls/initstate", "live\n");
	assert_false(lacks(np_lacks_now(root), "TLS", AF_INET));

	put_file(root, "/proc/net/protocols",
		 "protocol  size sockets  memory\nDCCP      1\nSCTPv6    1\nSCTP      1\n"
		 "UDP-Lite  1\nTIPC      1\nUDP       1\nTCP       1\n");
	put_file(root, "/proc/sys/net/ipv4/tcp_available_ulp", "espintcp mptcp tls\n");
	all = np_lacks_now(root);
	assert_false(lacks(all, "TCP", AF_INET) || lacks(all, "TLS", AF_INET) ||
		     lacks(all, "SCTP", AF_INET6) || lacks(all, "DCCP", AF_INET) ||
		     lacks(all, "TIPC", AF_TIPC) || lacks(all, "UDPLite", AF_INET));
	assert_true(lacks(all, "TCP", AF_INET6) && lacks(all, "TLS", AF_INET6) &&
		    lacks(all, "DCCP", AF_INET6) && lacks(all, "UDPLite", AF_INET6) &&
		    lacks(all, "MPTCP", AF_INET) && lacks(all, "DLCO", AF_UNSPEC));
	put_file(root, "/proc/sys/net/ipv4/tcp_available_ulp", "mptcp mtls\n");
	assert_true(lacks(np_lacks_now(root), "TLS", AF_INET));
}

TEST(an_omni_request_finds_the_pattern_it_came_from)
{
	const struct np_bench *b;

	for (size_t i = 0; (b = np_bench_at(i)) != NULL; i++) {
		const struct np_transport *t = b->transport;
		uint32_t direction = b->pattern->lead_direction;
		int role = -1;

		if (direction == NP_WD_TRANSMIT && b->near_role == NP_LEAD) {
			direction = NP_WD_RECEIVE;
		}
		if (t->wire_type == 0) {
			continue; /* OMNI has no room for paths and stations */
		}
		assert_ptr_equal(np_transport_find(t->wire_type, (uint32_t)t->protocol), t);
		if (b->code == NP_OMNI) {
			assert_ptr_equal(
			    np_pattern_find(direction, b->pattern->connection_test, &role),
			    b->pattern);
			assert_int_equal(role, b->near_role == NP_LEAD ? NP_FOLLOW : NP_LEAD);
		}
	}
}

TEST(what_is_not_served_is_not_found)
{
	static const uint32_t directions[] = { 1, 3, 5, 7, 8, UINT32_MAX };
	int role = 17;

	for (size_t i = 0; i < LEN(directions); i++) {
		assert_null(np_pattern_find(directions[i], false, &role));
		assert_null(np_pattern_find(directions[i], true, &role));
	}
	assert_null(np_pattern_find(NP_WD_NONE, false, &role));
	assert_null(np_pattern_find(NP_WD_TRANSMIT, true, &role));
	assert_null(np_transport_find(NP_WS_STREAM, IPPROTO_UDP));
	assert_null(np_transport_find(NP_WS_DGRAM, IPPROTO_TCP));
	assert_null(np_transport_find(0, 0));
	assert_null(np_transport_find(-1, UINT32_MAX));
}

/* ---- Whole runs ---- */

/* DCCP's receiver drops what it has no room for. UDP's has room for what is sent here. */
static void
assert_arrived(const struct np_bench *b, uint64_t arrived, uint64_t sent_there)
{
	if (b->transport->connected && !b->transport->reliable) {
		assert_in_range(arrived, sent_there > 0, sent_there);
	} else {
		assert_int_equal(arrived, sent_there);
	}
}

static void
check_counts(const struct ends *e, int64_t length)
{
	const struct np_bench *b = e->client.plan.bench;

	if (b->pattern->probe) {
		assert_int_equal(sent(&e->client) + received(&e->server), 0);
		assert_true(e->client.run.closing.mss > 0);
		return;
	}
	if (!b->pattern->transactions) {
		const struct end *lead = b->near_role == NP_LEAD ? &e->client : &e->server;
		const struct end *follow = lead == &e->client ? &e->server : &e->client;

		assert_true(sent(lead) >= (uint64_t)length);
		assert_true(sent(lead) < (uint64_t)length + lead->run.worker->send_size);
		assert_arrived(b, received(follow), sent(lead));
		assert_true(np_get(&follow->run.worker->count->receives) > 0);
		return;
	}
	assert_int_equal(transactions(&e->client), length);
	assert_int_equal(transactions(&e->server), length);
	assert_int_equal(recorded(&e->client), length);
	assert_int_equal(sent(&e->client), received(&e->server));
	assert_int_equal(received(&e->client), sent(&e->server));
	if (b->pattern->sized) {
		assert_int_equal(sent(&e->client), length * e->client.plan.request);
		assert_int_equal(received(&e->client), length * e->client.plan.response);
		assert_true(np_get(&e->client.run.worker->count->receives) >= (uint64_t)length);
	}
}

static void
run_counted(const struct np_bench *b, int family, int64_t length, void (*change)(struct np_plan *p))
{
	FREED_BY(ends_free) struct ends e;

	ends_open(&e, b, family, -length, change);
	ends_run(&e, 0);
	assert_int_equal(e.client.drive.cause, NP_BY_LOOP);
	assert_int_equal(e.client.drive.lost, 0);
	assert_true(e.client.run.window.ended_ns > e.client.run.window.started_ns);
	check_counts(&e, length);
}

TEST(both_ends_count_the_same)
{
	for (size_t f = 0; f < LEN(families); f++) {
		for (const struct np_bench *b = NULL;
		     has_family(families[f]) && (b = next_runnable(b)) != NULL;) {
			run_counted(b, families[f], small_count(b), NULL);
		}
	}
}

/* ---- Several data connections ---- */

static uint32_t flows, threads, far_port;

static void
make_several(struct np_plan *p)
{
	p->flows = flows;
	p->near.place.threads = p->far.place.threads = threads;
	p->far.sock.port = far_port;
}

static void
run_several(const struct np_bench *b, int64_t length)
{
	struct np_counts client, server;
	FREED_BY(ends_free) struct ends e;

	ends_open(&e, b, AF_INET, -length, make_several);
	ends_run(&e, 0);
	assert_int_equal(e.client.run.conns, flows);
	assert_int_equal(e.client.run.workers, threads);
	assert_int_equal(e.server.run.conns, flows);
	assert_sums(&e.client.run);
	assert_sums(&e.server.run);
	client = np_counts_of(&e.client.run);
	server = np_counts_of(&e.server.run);
	assert_arrived(b, server.received, client.sent);
	assert_arrived(b, client.received, server.sent);
	if (b->pattern->transactions) {
		assert_transactions(&e, (uint64_t)length);
	} else {
		assert_true(client.sent + client.received >= (uint64_t)length);
	}
}

/* A connection test's connections can't be waited for: calls that block prepare them. */
static bool
blocks(const struct np_bench *b)
{
	return b->transport->upgrade != NULL && b->pattern->connection_test;
}

/* By events, by events in two threads, and by a thread that blocks for each flow. */
static void
run_shapes(const struct np_bench *b)
{
	flows = 5;
	for (threads = 1; threads <= 2 && !blocks(b); threads++) {
		run_several(b, small_count(b));
	}
	threads = flows;
	run_several(b, small_count(b));
}

TEST(several_flows_count_the_same)
{
	struct np_bench back = *np_bench_find("UDP_STREAM"); /* as of OMNI's options */

	for (const struct np_bench *b = NULL; (b = next_runnable(b)) != NULL;) {
		struct np_plan p;

		client_params(&p, b, AF_INET, 1);
		if (np_plan_several(&p)) {
			run_shapes(b);
		}
	}
	back.near_role = NP_FOLLOW;
	run_shapes(&back);
}

TEST(flows_have_ports_in_a_row_from_the_one_that_is_named)
{
	struct np_addr at;
	struct ends e;

	close(bound_socket(AF_INET, SOCK_DGRAM, &at));
	far_port = np_addr_port(&at);
	run_shapes(np_bench_find("UDP_STREAM"));
	run_shapes(np_bench_find("UDP_RR"));
	far_port = 65530;
	flows = 7; /* the last one is beyond all ports */
	threads = 1;
	client_params(&e.client.plan, np_bench_find("UDP_RR"), AF_INET, 1);
	make_several(&e.client.plan);
	assert_int_equal(np_plan_most_flows(&e.client.plan), 6);
	assert_false(np_plan_several(&e.client.plan));
	far_port = 0;
}

/* Each has a socket of its own at both ends, in a thread or in several. */
static void
count_each(const char *name, int64_t length)
{
	const struct np_bench *b = np_bench_find(name);
	FREED_BY(ends_free) struct ends e;

	print_message("%s, %u threads\n", name, threads);
	ends_open(&e, b, AF_INET, -length, make_several);
	ends_run(&e, 0);
	assert_int_equal(e.client.run.conns, flows);
	assert_int_equal(e.server.run.conns, flows);
	for (uint32_t i = 0; i < flows; i++) {
		const struct np_conn *here = &e.client.run.conn[i], *there = &e.server.run.conn[i];

		assert_true(here->sent > 0);
		assert_int_equal(here->sent, there->received);
		assert_int_equal(here->received, there->sent);
		assert_int_equal(here->transactions, there->transactions);
		for (uint32_t k = 0; k < i && b->transport->named; k++) {
			assert_int_not_equal(there->port, e.server.run.conn[k].port);
		}
	}
}

TEST(each_of_many_datagram_flows_is_counted_at_both_ends)
{
	flows = 100;
	for (threads = 1; threads <= 4; threads += 3) {
		count_each("UDP_STREAM", INT64_C(100) * 20 * 512);
		count_each("UDP_RR", 700);
		count_each("DG_STREAM", INT64_C(100) * 20 * 512);
		count_each("DG_RR", 700);
	}
}

TEST(one_connection_is_not_several)
{
	static const char *const names[] = { "TCP_MSS", "DLCL_STREAM", "DLCL_RR" };

	for (size_t i = 0; i < LEN(names); i++) {
		const struct np_bench *b = np_bench_find(names[i]);
		struct end e = { .rc = -1 };

		client_params(&e.plan, b, AF_INET, 1);
		assert_false(np_plan_several(&e.plan));
		e.plan.flows = 2;
		e.terms = terms_for(&e.plan);
		if (can_run(b)) {
			assert_int_equal(np_run_open(&e.run, &e.plan, &e.terms, &e.stop, &e.err),
					 NP_EUSAGE);
		}
	}
}

/* ---- Other shapes of one ---- */

/* More than a socket buffer holds, so that messages go and come in parts. */
static void
make_big(struct np_plan *p)
{
	p->request = 3000000;
	p->response = 2000000;
}

TEST(messages_that_come_in_parts_are_counted_whole)
{
	run_counted(np_bench_find("TCP_RR"), AF_INET, 3, make_big);
	run_counted(np_bench_find("TCP_CRR"), AF_INET, 3, make_big);
}

TEST(a_burst_makes_no_transaction_more)
{
	run_counted(np_bench_find("TCP_RR"), AF_INET, 25, make_burst);
	run_counted(np_bench_find("UDP_RR"), AF_INET, 25, make_burst);
	/* Fewer transactions than requests in flight. */
	run_counted(np_bench_find("TCP_RR"), AF_INET, 2, make_burst);
	run_counted(np_bench_find("UDP_RR"), AF_INET, 2, make_burst);
}

TEST(datagrams_may_come_from_a_connected_socket)
{
	run_counted(np_bench_find("UDP_RR"), AF_INET, 25, connect_datagrams);
	run_counted(np_bench_find("UDP_STREAM"), AF_INET, 20 * 512, connect_datagrams);
}

/* The far end may be any of several before it has said which, and is one behind that. */
TEST(what_the_kernel_compares_no_loop_does)
{
	struct np_sources far = { .count = 2 };
	FREED_BY(end_free) struct end e = { .rc = -1 };

	client_params(&e.plan, np_bench_find("UDP_RR"), AF_INET, 1);
	end_open(&e);
	np_addr_make_loopback(&far.at[0], AF_INET);
	np_addr_make_any(&far.at[1], AF_INET);
	assert_int_equal(np_client_accept_sources(&e.run, &far, 9, &e.err), NP_OK);
	assert_true((e.run.worker->codec & NP_C_COMPARE) != 0);
	far.count = 1;
	assert_int_equal(np_client_accept_sources(&e.run, &far, 9, &e.err), NP_OK);
	assert_true((e.run.worker->codec & NP_C_COMPARE) == 0 && e.run.end.sources.count == 0);
}

TEST(every_call_of_a_stream_is_timed_when_asked)
{
	for (const struct np_bench *b = NULL; (b = next_runnable(b)) != NULL;) {
		struct ends e;

		if (b->pattern != &np_pattern_stream) {
			continue;
		}
		ends_open(&e, b, AF_INET, -small_count(b), time_calls);
		ends_run(&e, 0);
		assert_int_equal(recorded(&e.client),
				 np_get(&e.client.run.worker->count->sends) +
				     np_get(&e.client.run.worker->count->receives));
		ends_free(&e);
	}
}

/* Returns whether something was moved in the time. */
static bool
run_by_the_clock(const struct np_bench *b, uint64_t length)
{
	struct ends e;
	uint64_t took;
	bool moved;

	ends_open(&e, b, AF_INET, 1, NULL);
	ends_run(&e, length);
	took = e.client.run.window.ended_ns - e.client.run.window.started_ns;
	if (e.client.drive.cause != NP_BY_LOOP) {
		assert_int_equal(e.client.drive.cause, NP_BY_CLOCK);
		assert_true(took >= length);
	} else {
		/* The server transmits, and its clock ran out first; or a look is all. */
		assert_true(b->near_role == NP_FOLLOW || b->pattern->probe);
	}
	assert_true(took < LONG_MS * NP_MSEC);
	if (b->pattern->transactions) {
		assert_int_equal(recorded(&e.client), transactions(&e.client));
	}
	moved = b->pattern->probe || transactions(&e.client) > 0 ||
		sent(&e.client) + received(&e.client) > 0;
	ends_free(&e);
	return moved;
}

TEST(every_bench_ends_by_the_clock)
{
	for (const struct np_bench *b = NULL; (b = next_runnable(b)) != NULL;) {
		uint64_t length = 50 * NP_MSEC;

		/* A busy machine may need longer to let both ends begin. */
		while (!run_by_the_clock(b, length)) {
			length *= 4;
			assert_true(length < LONG_MS * NP_MSEC);
		}
	}
}

TEST(no_loop_allocates)
{
	const struct np_bench *b;
	void *volatile p;

	skip_if(!allocs_counted(), "allocations can't be counted here");
	allocs_arm();
	p = malloc(1);
	free(p);
	assert_int_equal(allocs_disarm(), 1);
	for (size_t i = 0; (b = np_bench_at(i)) != NULL; i++) {
		struct ends e;

		if (!can_run(b)) {
			continue;
		}
		ends_open(&e, b, AF_INET, -small_count(b),
			  i % 2 == 0          ? time_calls
			  : b->pattern->sized ? make_burst
					      : NULL);
		ends_run(&e, 0);
		if (!blocks(b)) { /* whose handshakes are part of the loop */
			assert_no_allocation(&e);
		}
		ends_free(&e);
	}
}

TEST_MAIN(np_drive_prepare())
