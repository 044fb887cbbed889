/*
 * Engines: the same test by each of them counts the same; and what steps are taken, by the engine
 * that moves nothing.
 */
#include "bench/engine/engine.h"

#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/engine/io.h"
#include "bench/tally.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/null.h"
#include "tests/lib/sockets.h"

/* ---- The table ---- */

TEST(each_engine_is_found)
{
	const struct np_engine *e;
	size_t count = 0;

	for (; (e = np_engine_at(count)) != NULL; count++) {
		assert_ptr_equal(np_engine_find(e->name), e);
		assert_non_null(e->help);
		assert_non_null(e->why_not);
	}
	assert_int_equal(count, 7);
	assert_null(np_engine_find("warp"));
}

TEST(one_flow_blocks_and_many_wait)
{
	struct np_plan p;

	client_params(&p, np_bench_find("TCP_RR"), AF_INET, 1);
	assert_ptr_equal(np_engine_of(&p), &np_engine_sync);
	assert_null(np_engine_sync.why_not(&p));
	p.flows = 2;
	assert_ptr_equal(np_engine_of(&p), &np_engine_epoll);
	assert_non_null(np_engine_sync.why_not(&p));
	assert_null(np_engine_epoll.why_not(&p));
	p.near.place.engine = &np_engine_sync;
	assert_ptr_equal(np_engine_of(&p), &np_engine_sync);
	client_params(&p, np_bench_find("TCP_CRR"), AF_INET, 1);
	assert_null(np_engine_epoll.why_not(&p));
	assert_non_null(np_engine_spin.why_not(&p));
	client_params(&p, np_bench_find("TCP_MSS"), AF_INET, 1);
	assert_non_null(np_engine_epoll.why_not(&p));
	assert_non_null(np_engine_spin.why_not(&p));
	client_params(&p, np_bench_find("TCP_RR"), AF_INET, 1);
	p.flows = 100;
	assert_null(np_engine_spin.why_not(&p));
	assert_false(np_engine_blocks(&np_engine_spin, &p));
	p.ramp = 10;
	assert_non_null(np_engine_spin.why_not(&p));
}

/* ---- null ---- */

/* `steps` steps of the client's role; its counts are in *calls. */
static void
take_steps(const char *bench, int role, uint64_t steps, struct null_calls *calls)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };

	client_params(&e.plan, np_bench_find(bench), AF_INET, 0);
	e.plan.role = role;
	end_open(&e);
	*calls = (struct null_calls){ 0, 0 };
	np_worker_begin(e.run.worker, np_now());
	assert_int_equal(null_drive(e.run.worker, steps, calls), 0);
	if (e.run.side->settle != NULL) {
		e.run.side->settle(e.run.worker);
	}
	assert_int_equal(np_get(&e.run.worker->count->sent), calls->sent * e.run.worker->send_size);
	assert_int_equal(np_get(&e.run.worker->count->received),
			 calls->arrived * e.run.worker->recv_size);
}

TEST(steps_follow_the_pattern)
{
	struct null_calls calls;

	take_steps("TCP_STREAM", NP_LEAD, 1000, &calls);
	assert_int_equal(calls.sent, 1000);
	assert_int_equal(calls.arrived, 0);
	take_steps("TCP_STREAM", NP_FOLLOW, 1000, &calls);
	assert_int_equal(calls.sent, 0);
	assert_int_equal(calls.arrived, 1000);
	take_steps("TCP_RR", NP_LEAD, 1000, &calls);
	assert_int_equal(calls.sent, 500);
	assert_int_equal(calls.arrived, 500);
	take_steps("UDP_RR", NP_FOLLOW, 1000, &calls);
	assert_int_equal(calls.sent, 500);
	assert_int_equal(calls.arrived, 500);
}

/* ---- Both ends, by each pair of engines ---- */

static const struct np_engine *client_engine, *server_engine;
static uint32_t burst;

static void
choose_engines(struct np_plan *p)
{
	p->near.place.engine = client_engine;
	p->far.place.engine = server_engine;
	p->burst = burst;
	p->ids = true;
}

/* Both by that engine. */
static void
plan_by(struct ends *e, const struct np_engine *engine, const char *bench, int64_t length)
{
	client_engine = server_engine = engine;
	ends_plan(e, np_bench_find(bench), AF_INET, length);
	choose_engines(&e->client.plan);
}

static void
run_pair(const char *bench, int64_t length)
{
	const struct np_run *c;
	FREED_BY(ends_free) struct ends e;

	ends_open(&e, np_bench_find(bench), AF_INET, -length, choose_engines);
	c = &e.client.run;
	ends_run(&e, 0);
	assert_int_equal(e.client.drive.cause, NP_BY_LOOP);
	assert_carried(&e);
	if (c->plan->pattern->transactions) {
		assert_transactions(&e, length);
	} else {
		assert_true(np_get(&c->worker->count->sent) + np_get(&c->worker->count->received) >=
			    (uint64_t)length);
	}
	assert_no_allocation(&e);
}

TEST(all_engines_count_the_same)
{
	static const struct np_engine *const engines[] = { &np_engine_sync, &np_engine_epoll };

	for (size_t i = 0; i < 4; i++) {
		client_engine = engines[i / 2];
		server_engine = engines[i % 2];
		for (burst = 0; burst <= 5; burst += 5) {
			run_pair("TCP_RR", 500);
			run_pair("UDP_RR", 500);
		}
		burst = 0;
		run_pair("TCP_CRR", 500);
		run_pair("TCP_CC", 500);
		run_pair("TCP_STREAM", 3000000);
		run_pair("TCP_MAERTS", 3000000);
	}
}

/* What an engine has counted, of a run with one worker. */
static uint64_t
counted(const struct np_run *run, enum np_engine_count what)
{
	return run->worker->engine.count[what];
}

/*
 * An engine that carries several a call has carried all that the test counted, and end marks:
 * three, and one for each nudge, which one call may find together where a machine is slow.
 */
static void
check_calls(const struct np_run *run, unsigned nudges)
{
	const struct np_worker *w = run->worker;

	if (np_engine_of(run->plan)->calls == NULL) {
		return;
	}
	assert_int_equal(counted(run, NP_E_SENT), np_get(&w->count->sends));
	assert_in_range(counted(run, NP_E_RECEIVED), np_get(&w->count->receives),
			np_get(&w->count->receives) + 3 + nudges);
	assert_in_range(counted(run, NP_E_SEND_CALLS), 0, counted(run, NP_E_SENT));
	assert_in_range(counted(run, NP_E_RECEIVE_CALLS), 0, counted(run, NP_E_RECEIVED));
	assert_in_range(counted(run, NP_E_CUT), 0, counted(run, NP_E_SEND_CALLS));
	assert_in_range(counted(run, NP_E_JOINED), 0, counted(run, NP_E_RECEIVE_CALLS));
}

static uint32_t batch;
static int family;

/* So few that no socket buffer drops any. */
static void
run_datagrams(const char *bench, int64_t length)
{
	const struct np_run *c, *s;
	FREED_BY(ends_free) struct ends e;

	ends_plan(&e, np_bench_find(bench), family, -length);
	choose_engines(&e.client.plan);
	e.client.plan.batch = batch;
	e.client.plan.family = family;
	e.client.plan.near.call.send_size = 300;
	ends_make(&e);
	c = &e.client.run;
	s = &e.server.run;
	ends_run(&e, 0);
	assert_carried(&e);
	assert_int_equal(np_get(&c->worker->count->sends), np_get(&s->worker->count->receives));
	assert_int_equal(np_get(&c->worker->count->transactions),
			 c->plan->pattern->transactions ? length : 0);
	assert_int_equal(np_get(&c->worker->count->lost), 0);
	check_calls(c, 0);
	check_calls(s, e.nudges);
	assert_no_allocation(&e);
}

/* Bursts of one, of less than a call carries, of more; and calls of three. */
static void
run_all_datagrams(void)
{
	static const uint32_t bursts[] = { 0, 5, 100 };

	const bool batches = client_engine == &np_engine_batch || server_engine == &np_engine_batch;

	for (batch = 3; batch <= (batches ? NP_BATCH_USUAL : 3); batch += NP_BATCH_USUAL - 3) {
		for (size_t i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++) {
			burst = bursts[i];
			run_datagrams("UDP_RR", 501);
			run_datagrams("DG_RR", 501);
		}
		burst = 0;
		run_datagrams("UDP_STREAM", INT64_C(101) * 300);
		run_datagrams("DG_STREAM", INT64_C(1001) * 300);
	}
}

/* Some kernels, and sandboxes, lack the calls of some. */
static bool
can_be_had(const struct np_engine *engine)
{
	return engine->lacks == NULL || engine->lacks() == NULL;
}

TEST(datagrams_are_counted_by_each_pair)
{
	static const struct np_engine *const engines[] = { &np_engine_sync, &np_engine_epoll,
							   &np_engine_batch };

	family = AF_INET;
	for (size_t i = 0; i < 9; i++) {
		client_engine = engines[i / 3];
		server_engine = engines[i % 3];
		if (can_be_had(client_engine) && can_be_had(server_engine)) {
			run_all_datagrams();
		}
	}
}

TEST(joined_datagrams_are_counted_one_by_one)
{
	static const struct np_engine *const engines[] = { &np_engine_sync, &np_engine_epoll,
							   &np_engine_batch, &np_engine_segment };
	static const int families[] = { AF_INET, AF_INET6 };

	skip_if(!can_be_had(&np_engine_segment) || !can_be_had(&np_engine_batch),
		"the kernel lacks what the engines segment and batch are made of");
	batch = NP_BATCH_USUAL;
	for (size_t i = 0; i < 14; i++) { /* either end or both, by both families */
		family = families[i / 7];
		client_engine = engines[i % 7 < 4 ? 3 : i % 7 - 4];
		server_engine = engines[i % 7 < 4 ? i % 7 : 3];
		for (burst = 0; burst <= 70; burst += 35) {
			run_datagrams("UDP_RR", 501);
		}
		burst = 0;
		run_datagrams("UDP_STREAM", INT64_C(101) * 300);
		run_datagrams("UDP_STREAM", INT64_C(101) * 300 - 1); /* which is as many */
	}
}

/* Few messages: on a machine that has no processor left who spins is in the far end's way. */
TEST(one_that_spins_counts_the_same)
{
	static const struct np_engine *const others[] = { &np_engine_sync, &np_engine_epoll,
							  &np_engine_spin };

	for (size_t i = 0; i < 6; i++) {
		client_engine = i % 2 == 0 ? &np_engine_spin : others[i / 2];
		server_engine = i % 2 == 0 ? others[i / 2] : &np_engine_spin;
		for (burst = 0; burst <= 5; burst += 5) {
			run_pair("TCP_RR", 20);
			run_pair("UDP_RR", 20);
			run_pair("STREAM_RR", 20);
			run_pair("DG_RR", 20);
		}
		burst = 0;
		run_pair("TCP_STREAM", 1000000);
		run_pair("TCP_MAERTS", 1000000);
		run_pair("DG_STREAM", 10000);
	}
}

/* Answers each request twice, in one go, until an end mark comes. */
static void *
answer_twice(void *arg)
{
	int fd = *(int *)arg;
	struct pollfd more = { .fd = fd, .events = POLLIN };
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	char buf[64];

	while (poll(&more, 1, LONG_MS) > 0 &&
	       recvfrom(fd, buf, sizeof(buf), 0, (struct sockaddr *)&from, &len) > 0) {
		struct iovec v = { .iov_base = buf, .iov_len = 32 };
		struct mmsghdr twice[2] = { { .msg_hdr = { .msg_name = &from,
							   .msg_namelen = len,
							   .msg_iov = &v,
							   .msg_iovlen = 1 } } };

		twice[1] = twice[0];
		sendmmsg(fd, twice, 2, 0);
	}
	return NULL;
}

/* A second response may be in the same call as the first; it must not answer the next request. */
static void
run_twice(const struct np_engine *engine, uint32_t in_flight, bool ids)
{
	struct np_addr at;
	FREED_BY(end_free) struct end e = { .rc = -1 };
	FREED_BY(close_fd) int fd = bound_socket(AF_INET, SOCK_DGRAM, &at);
	const struct np_counters *count;
	pthread_t far;

	assert_int_equal(pthread_create(&far, NULL, answer_twice, &fd), 0);
	client_params(&e.plan, np_bench_find("UDP_RR"), AF_INET, -100);
	e.plan.near.place.engine = engine;
	e.plan.burst = in_flight - 1;
	e.plan.ids = ids;
	end_begin(&e, &at);
	assert_int_equal(sem_wait(&e.looping), 0);
	pthread_join(far, NULL);
	end_stop(&e);
	count = e.run.worker->count;
	assert_int_equal(np_get(&count->transactions), 100);
	assert_int_equal(np_get(&count->lost), 0);
	if (ids) {
		assert_int_equal(np_get(&count->sends), 100);
		assert_in_range(np_get(&count->duplicated), 100 - in_flight, 100);
	}
}

TEST(a_second_response_answers_nothing)
{
	static const struct np_engine *const engines[] = { &np_engine_sync, &np_engine_batch,
							   &np_engine_segment };

	skip_if(!can_be_had(&np_engine_batch),
		"the far end answers by sendmmsg(2), which the kernel lacks");
	for (size_t i = 0; i < 3; i++) {
		if (can_be_had(engines[i])) {
			run_twice(engines[i], 1, true);
			run_twice(engines[i], 6, true);
			run_twice(engines[i], 1, false);
			run_twice(engines[i], 6, false);
		}
	}
}

/* Messages of more than a socket buffer holds, by the engine of both ends. */
static void
run_big_messages(const char *bench, const struct np_engine *engine)
{
	FREED_BY(ends_free) struct ends e;

	plan_by(&e, engine, bench, -7);
	e.client.plan.request = 3000000;
	e.client.plan.response = 2000000;
	ends_make(&e);
	ends_run(&e, 0);
	assert_transactions(&e, 7);
	assert_true(np_get(&e.client.run.worker->count->receives) > 7);
}

/* ---- uring ---- */

TEST(rings_count_as_others_do)
{
	static const struct np_engine *const other[] = { &np_engine_sync, &np_engine_epoll,
							 &np_engine_uring };

	skip_if(np_engine_uring.lacks() != NULL, "%s", np_engine_uring.lacks());
	for (size_t i = 0; i < 6; i++) {
		client_engine = i < 3 ? &np_engine_uring : other[i - 3];
		server_engine = i < 3 ? other[i] : &np_engine_uring;
		for (burst = 0; burst <= 50; burst += 25) {
			run_pair("TCP_RR", 500);
		}
		burst = 0;
		run_pair("TCP_STREAM", 3000000);
		run_pair("TCP_MAERTS", 3000000);
	}
}

static void
touch_received(const struct np_engine *engine)
{
	FREED_BY(ends_free) struct ends e;

	ends_plan(&e, np_bench_find("UDP_STREAM"), AF_INET, -101 * 300);
	e.client.plan.far.place.engine = engine;
	e.client.plan.near.call.send_size = 300;
	e.client.plan.far.call.dirty = 1;
	ends_make(&e);
	ends_run(&e, 0);
	assert_in_range(e.server.run.worker->touched, 101, 120); /* and perhaps end marks */
}

/* By engines that look at each datagram after the call. */
TEST(what_is_received_is_touched)
{
	static const struct np_engine *const engines[] = { &np_engine_batch, &np_engine_segment,
							   &np_engine_uring };

	for (size_t i = 0; i < LEN(engines); i++) {
		if (can_be_had(engines[i])) {
			touch_received(engines[i]);
		}
	}
}

TEST(rings_carry_messages_in_parts)
{
	skip_if(np_engine_uring.lacks() != NULL, "%s", np_engine_uring.lacks());
	for (burst = 0; burst <= 3; burst += 3) {
		run_big_messages("TCP_RR", &np_engine_uring);
	}
}

TEST(messages_in_parts_are_whole)
{
	burst = 0;
	run_big_messages("TCP_RR", &np_engine_epoll);
	run_big_messages("TCP_CRR", &np_engine_epoll);
}

/*
 * Several in flight that no buffer holds: who only sends would have the far end wait for room, and
 * wait for it.
 */
TEST(responses_are_taken_while_there_is_no_room)
{
	static const struct np_engine *const far[] = { &np_engine_sync, &np_engine_spin };

	client_engine = &np_engine_spin;
	burst = 3;
	for (size_t i = 0; i < 2; i++) {
		FREED_BY(ends_free) struct ends e;

		server_engine = far[i];
		ends_plan(&e, np_bench_find("TCP_RR"), AF_INET, -9);
		choose_engines(&e.client.plan);
		e.client.plan.request = 300000;
		e.client.plan.response = 200000;
		e.client.plan.near.sock.sndbuf = e.client.plan.near.sock.rcvbuf = 100000;
		e.client.plan.far.sock.sndbuf = e.client.plan.far.sock.rcvbuf = 100000;
		ends_make(&e);
		ends_run(&e, 0);
		assert_transactions(&e, 9);
		assert_int_equal(np_get(&e.client.run.worker->count->sends), 9);
	}
}

/* A call that blocks has no business to return that: the test must not end as if all were well. */
TEST(blocked_is_an_error_where_calls_block)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_worker *w;

	client_params(&e.plan, np_bench_find("TCP_RR"), AF_INET, 0);
	end_open(&e);
	w = e.run.worker;
	assert_int_equal(np_io_other(w, w->conn, NP_RECV | NP_BLOCKED, w->recv_ring.slots),
			 NP_OVER);
	assert_int_equal(w->error, EAGAIN);
}

/* Nobody answers: the wait ends when the client is told so, and not before. */
static void
wait_for_nobody(const struct np_engine *engine, uint32_t in_flight)
{
	struct np_addr at;
	FREED_BY(end_free) struct end e = { .rc = -1 };
	FREED_BY(close_fd) int silent = bound_socket(AF_INET, SOCK_DGRAM, &at);

	client_params(&e.plan, np_bench_find("UDP_RR"), AF_INET, 0);
	e.plan.near.place.engine = engine;
	e.plan.burst = in_flight;
	e.plan.timeout_ms = 10;
	end_begin(&e, &at);
	assert_int_equal(sem_wait(&e.looping), 0);
	for (uint64_t until = np_deadline(LONG_MS * NP_MSEC);
	     np_get(&e.run.worker->count->lost) < 3 && np_now() < until;) {
		usleep(1000);
	}
	assert_true(np_get(&e.run.worker->count->lost) >= 3);
	end_stop(&e);
	assert_int_equal(e.drive.cause, NP_BY_CONTROL);
	assert_int_equal(np_get(&e.run.worker->count->transactions), 0);
}

TEST(a_wait_for_events_is_ended)
{
	wait_for_nobody(&np_engine_epoll, 0);
	wait_for_nobody(&np_engine_spin, 0);
	wait_for_nobody(&np_engine_spin, 4);
}

/* ---- Several connections ---- */

enum { FLOWS = 5 };

static void
take_flows(struct np_plan *p)
{
	choose_engines(p);
	p->flows = FLOWS;
}

static uint32_t client_threads, server_threads;

static void
take_threads(struct np_plan *p)
{
	take_flows(p);
	p->near.place.threads = client_threads;
	p->far.place.threads = server_threads;
}

/* Is it one of the values of a sample? */
static int64_t
sampled(const struct np_sample *s, const char *name)
{
	int64_t info[NP_TCP_SAMPLED];

	np_tcp_sum_sample(&s->tcp, s->looked, info);
	for (size_t i = 0; i < NP_TCP_SAMPLED; i++) {
		if (strcmp(np_tcp_sampled(i, SIZE_MAX), name) == 0) {
			return info[i];
		}
	}
	fail_msg("no %s in a sample", name);
	return 0;
}

static void
run_flows(const char *bench, int64_t length, bool tcp)
{
	struct np_sample sample;
	FREED_BY(ends_free) struct ends e;

	burst = 0;
	ends_open(&e, np_bench_find(bench), AF_INET, -length, take_threads);
	assert_false(np_sampler_take(&e.client.run, &sample)); /* it is asked for the first time */
	ends_run(&e, 0);
	assert_int_equal(e.client.run.conns, FLOWS);
	assert_int_equal(e.server.run.conns, FLOWS);
	assert_sums(&e.client.run);
	assert_sums(&e.server.run);
	if (strstr(bench, "_RR") != NULL) {
		assert_int_equal(np_counts_of(&e.client.run).transactions, length);
	} else { /* each worker sends its share, the last message whole */
		assert_in_range(np_counts_of(&e.client.run).sent, length,
				length - 1 + e.client.run.workers * e.client.run.worker->send_size);
	}
	assert_int_equal(e.client.allocated, 0);
	assert_true(np_sampler_take(&e.client.run, &sample));
	assert_int_equal(sample.looked, FLOWS);
	assert_int_equal(sample.tcp.count, tcp ? FLOWS : 0);
	if (tcp) {
		assert_carried(&e);
		assert_true(sampled(&sample, "cwnd") >= 2 * FLOWS); /* the sum of all */
		assert_true(sampled(&sample, "rtt_us") >= 0);
		assert_in_range(sampled(&sample, "rto_us"), 1, 120000000); /* of one, no sum */
	}
	assert_false(np_sampler_take(&e.client.run, &sample)); /* nobody answers any more */
}

TEST(flows_add_up_and_are_looked_at)
{
	client_engine = server_engine = NULL;
	client_threads = server_threads = 1;
	run_flows("TCP_RR", 1000, true);
	run_flows("UDP_RR", 1000, false);
	run_flows("TCP_STREAM", 3000000, true);
	client_engine = server_engine = &np_engine_spin;
	run_flows("TCP_RR", 103, true);
	run_flows("UDP_RR", 103, false);
	run_flows("TCP_STREAM", 1000000, true);
	client_threads = server_threads = 2;
	run_flows("TCP_RR", 103, true);
	if (np_engine_uring.lacks() == NULL) {
		client_engine = server_engine = &np_engine_uring;
		run_flows("TCP_RR", 1000, true);
		client_threads = server_threads = 1;
		run_flows("TCP_RR", 1000, true);
		run_flows("TCP_STREAM", 3000000, true);
	}
}

/*
 * SIOCINQ would tell the size of the first datagram alone, and put them all where a thread that is
 * about to sleep in recv(2) does not look.
 */
static void
check_datagrams_that_wait(int version)
{
	struct np_conn conn = { .fd = -1 };
	struct np_sample sample = { 0 };
	struct np_plan p;
	struct np_addr to;
	char data[500] = { 0 };
	FREED_BY(close_fd) int from = socket(version, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	client_params(&p, np_bench_find("UDP_RR"), version, -1);
	conn.fd = bound_socket(version, SOCK_DGRAM, &to);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(send_datagram(from, data, sizeof(data), &to), sizeof(data));
	}
	np_sample_add(&sample, &p, &conn, 1);
	assert_int_equal(sample.looked, 1);
	assert_true(sample.queued_in >= 3 * (int64_t)sizeof(data));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(recv(conn.fd, data, sizeof(data), MSG_DONTWAIT), sizeof(data));
	}
	memset(&sample, 0, sizeof(sample));
	np_sample_add(&sample, &p, &conn, 1);
	assert_int_equal(sample.queued_in, 0);
	close(conn.fd);
}

TEST(datagrams_that_wait_are_looked_at_where_they_are)
{
	check_datagrams_that_wait(AF_INET);
	if (has_family(AF_INET6)) {
		check_datagrams_that_wait(AF_INET6);
	}
}

/* An end mark comes to each flow, and data to those whose end has not come yet. */
static void
take_marks(const char *bench)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_worker *w;
	char *buf;

	daemon_params(&e.plan, np_bench_find(bench), 1);
	e.plan.flows = 3;
	end_open(&e);
	w = e.run.worker;
	assert_int_equal(w->conns, 3);
	np_worker_begin(w, np_now());
	buf = w->recv_ring.slots->buf;
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(w->steps->ended(w, &w->conn[i], 0), NP_OVER);
		assert_true(w->hung_up);
		for (uint32_t k = i + 1; k < 3; k++) {
			assert_int_not_equal(w->steps->arrived(w, &w->conn[k], buf, w->recv_size),
					     NP_OVER);
		}
	}
}

TEST(the_end_of_a_flow_is_not_that_of_others)
{
	take_marks("UDP_STREAM");
	take_marks("UDP_RR");
	take_marks("DG_STREAM");
	take_marks("DG_RR");
}

#ifndef SYS_socketcall /* else src/base/multiplex.c has one of its own */
#define HAS_REFUSALS
static _Atomic unsigned refusals, losses, ends_sent;

/* In place of the C library's: the first empty datagrams find no room, or get lost. */
ssize_t
sendto(int fd, const void *buf, size_t size, int flags, const struct sockaddr *to, socklen_t len)
{
	if (size == 0 && refusals > 0) {
		refusals--;
		errno = EAGAIN;
		return -1;
	}
	if (size == 0 && losses > 0) {
		losses--;
		return 0;
	}
	ends_sent += size == 0;
	return syscall(SYS_sendto, fd, buf, size, flags, to, len);
}
#endif

/* End marks find no room though poll(2) saw some, or get lost; the far end knows by them alone. */
TEST(ends_are_sent_again)
{
#ifdef HAS_REFUSALS
	static _Atomic unsigned *const troubles[] = { &refusals, &losses };

	for (size_t i = 0; i < LEN(troubles); i++) {
		FREED_BY(ends_free) struct ends e;

		ends_open(&e, np_bench_find(i == 0 ? "DG_STREAM" : "UDP_RR"),
			  i == 0 ? AF_UNIX : AF_INET, i == 0 ? -20 * 512 : -20, NULL);
		*troubles[i] = 10;
		ends_sent = 0;
		ends_run(&e, 0);
		assert_int_equal(*troubles[i], 0);
		assert_true(ends_sent > 0);
	}
#else
	skip();
#endif
}

/* The daemon's datagrams are for who has the token: for each flow, and for all before any. */
TEST(nothing_is_sent_before_all_flows_have_asked)
{
	struct np_bench back = *np_bench_find("UDP_STREAM");
	FREED_BY(end_free) struct end e = { .rc = -1 };
	uint8_t token[NP_ECHO_SIZE];
	struct pollfd first;
	FREED_BY(close_both) int fd[2];

	back.near_role = NP_FOLLOW;
	daemon_params(&e.plan, &back, 1);
	e.plan.flows = 2;
	end_open(&e);
	e.run.end.token = 4711;
	np_spare_put(token, NP_ECHO_NAMED, 4711);
	for (int i = 0; i < 2; i++) {
		struct np_addr at, mine;

		assert_int_equal(np_sock_local(e.run.conn[i].fd, &at, &e.err), NP_OK);
		at = loopback(AF_INET, np_addr_port(&at));
		fd[i] = bound_socket(AF_INET, SOCK_DGRAM, &mine);
		assert_int_equal(connect(fd[i], (struct sockaddr *)&at.sa, at.len), 0);
	}
	end_start(&e);
	assert_int_equal(send(fd[0], token, sizeof(token), 0), sizeof(token));
	assert_int_equal(send(fd[1], token, sizeof(token) - 1, 0), sizeof(token) - 1);
	first = (struct pollfd){ .fd = fd[0], .events = POLLIN };
	assert_int_equal(poll(&first, 1, 50), 0);
	assert_int_equal(send(fd[1], token, sizeof(token), 0), sizeof(token));
	assert_true(wait_readable(fd[0]) && wait_readable(fd[1]));
	end_stop(&e);
}

/* ---- Several series of connections ---- */

/* Whatever drives them, they make as many connections as there are to be, and not one more. */
static void
run_series(const char *bench, int64_t length)
{
	bool asks = strcmp(bench, "TCP_CRR") == 0;
	struct np_counts sum;
	FREED_BY(ends_free) struct ends e;

	ends_open(&e, np_bench_find(bench), AF_INET, -length, take_threads);
	ends_run(&e, 0);
	assert_sums(&e.client.run);
	assert_sums(&e.server.run);
	sum = np_counts_of(&e.client.run);
	assert_int_equal(sum.transactions, length);
	assert_int_equal(sum.sends, asks ? length : 0);
	assert_int_equal(sum.receives, asks ? length : 0);
	assert_int_equal(np_counts_of(&e.server.run).transactions, length);
	assert_no_allocation(&e);
	for (uint32_t i = 0; i < FLOWS; i++) {
		assert_int_equal(e.client.run.conn[i].fd, -1);
		assert_true(length < FLOWS || e.client.run.conn[i].transactions > 0);
	}
}

TEST(series_end_at_their_count)
{
	static const uint32_t threads[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 3 }, { 5, 5 } };

	client_engine = server_engine = NULL; /* of five threads the blocking one */
	burst = 0;
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
		client_threads = threads[i][0];
		server_threads = threads[i][1];
		run_series("TCP_CRR", 501);
		run_series("TCP_CC", 501);
	}
}

TEST(fewer_connections_than_series_will_do)
{
	client_engine = server_engine = NULL;
	client_threads = server_threads = 1;
	run_series("TCP_CRR", 2);
	client_threads = 5;
	run_series("TCP_CRR", 2);
}

TEST(series_share_few_ports)
{
	struct ends e;

	client_engine = server_engine = &np_engine_epoll;
	server_threads = 1;
	for (client_threads = 1; client_threads <= 2; client_threads++) {
		/* Ports of a range that has just one for each, and is shared by two workers. */
		ends_plan(&e, np_bench_find("TCP_CRR"), AF_INET, -200);
		take_threads(&e.client.plan);
		e.client.plan.port_min = 20000;
		e.client.plan.port_max = 20000 + FLOWS;
		ends_make(&e);
		ends_drive(&e, 0);
		if (e.client.run.err.sys == EADDRNOTAVAIL) {
			/* Whoever closes last is late on a crowded machine: its ports rest. */
			print_message("SKIP: all %d ports are in TIME_WAIT\n", FLOWS);
		} else {
			assert_int_equal(e.client.run.err.code, NP_OK);
			assert_int_equal(np_counts_of(&e.client.run).transactions, 200);
		}
		assert_in_range(np_addr_port(&e.client.run.end.local), 20000, 20000 + FLOWS - 1);
		ends_free(&e);
	}
}

/* What a series had sent before its warm-up ended counts with the connection that it is of. */
static void
warm_up(struct np_plan *p)
{
	take_threads(p);
	p->warm_up_ms = 50;
}

TEST(series_warm_up)
{
	static const struct np_engine *const engines[] = { &np_engine_sync, &np_engine_epoll };

	burst = 0;
	for (size_t i = 0; i < 2; i++) {
		struct np_counts sum;
		FREED_BY(ends_free) struct ends e;

		client_engine = server_engine = engines[i];
		client_threads = server_threads = i == 0 ? FLOWS : 2;
		ends_open(&e, np_bench_find("TCP_CRR"), AF_INET, 1, warm_up);
		ends_run(&e, 200 * NP_MSEC);
		assert_sums(&e.client.run);
		assert_sums(&e.server.run);
		sum = np_counts_of(&e.client.run);
		assert_true(sum.transactions > 0);
		assert_in_range(sum.sends, sum.transactions, sum.transactions + FLOWS);
		assert_in_range(sum.receives, sum.transactions, sum.sends);
	}
}

TEST(spinning_ends_warm_up)
{
	static const char *const benches[] = { "TCP_RR", "UDP_RR", "TCP_STREAM", "TCP_MAERTS" };

	client_engine = server_engine = &np_engine_spin;
	client_threads = server_threads = 1;
	for (size_t i = 0; i < 8; i++) {
		FREED_BY(ends_free) struct ends e;

		burst = i < 4 ? 0 : 3;
		ends_open(&e, np_bench_find(benches[i % 4]), AF_INET, 1, warm_up);
		ends_run(&e, 30 * NP_MSEC);
		if (burst == 0) { /* what is in flight at the end is no connection's */
			assert_sums(&e.client.run);
			assert_sums(&e.server.run);
		}
	}
}

/* Nobody listens: the end, or with -U more tries until somebody does. */
TEST(a_series_without_a_far_end)
{
	struct np_addr at;
	struct end e = { .rc = -1 };

	close(bound_socket(AF_INET, SOCK_STREAM, &at));
	client_engine = &np_engine_epoll;
	client_threads = server_threads = 1;
	for (int retry = 0; retry < 2; retry++) {
		client_params(&e.plan, np_bench_find("TCP_CRR"), AF_INET, 0);
		take_flows(&e.plan);
		e.plan.retry_connect = retry == 1;
		end_begin(&e, &at);
		if (retry == 1) {
			assert_int_equal(sem_wait(&e.looping), 0);
			usleep(20000);
			end_hang_up(&e);
		}
		end_join(&e);
		assert_int_equal(e.drive.cause, retry == 1 ? NP_BY_CONTROL : NP_BY_LOOP);
		assert_int_equal(e.run.err.sys, retry == 1 ? 0 : ECONNREFUSED);
		assert_int_equal(np_counts_of(&e.run).transactions, 0);
		end_free(&e);
		e = (struct end){ .rc = -1 };
	}
}

/* ---- A pace ---- */

static void
keep_a_pace(const struct np_engine *engine, const char *bench)
{
	const struct np_run *c;
	struct np_hist_summary times;
	uint64_t window_ns;
	FREED_BY(ends_free) struct ends e;

	burst = 0;
	plan_by(&e, engine, bench, -8);
	pace(&e.client.plan.near.call, 2, 15000);
	ends_make(&e);
	ends_run(&e, 0);
	c = &e.client.run;
	assert_int_equal(np_get(&c->worker->count->transactions), 8);
	window_ns = c->window.ended_ns - c->window.started_ns;
	assert_true(window_ns >= 3 * 15 * NP_MSEC);
	/* Waiting for the next burst is no part of a transaction; late bursts leave none. */
	if (engine != &np_engine_spin && window_ns < 4 * 15 * NP_MSEC) {
		assert_true(c->worker->load.paced_ns >= 15 * NP_MSEC);
	}
	np_hist_summarise(c->worker->hist, &times);
	assert_true(8 * times.mean + (double)c->worker->load.paced_ns <= 1.02 * (double)window_ns);
}

TEST(events_keep_a_pace)
{
	keep_a_pace(&np_engine_epoll, "TCP_RR");
	keep_a_pace(&np_engine_epoll, "TCP_CRR");
	keep_a_pace(&np_engine_spin, "TCP_RR");
	keep_a_pace(&np_engine_spin, "UDP_RR");
}

TEST(who_spins_paces_all_flows)
{
	const struct np_run *c;
	FREED_BY(ends_free) struct ends e;

	burst = 0;
	/* A worker's connections share their bursts; and the far end may be paced, too. */
	plan_by(&e, &np_engine_spin, "TCP_RR", -12 * FLOWS);
	e.client.plan.flows = FLOWS;
	pace(&e.client.plan.near.call, 2, 10000);
	pace(&e.client.plan.far.call, 7, 1000);
	ends_make(&e);
	ends_run(&e, 0);
	c = &e.client.run;
	assert_sums(c);
	assert_int_equal(np_get(&c->worker->count->transactions), 12 * FLOWS);
	assert_true(c->window.ended_ns - c->window.started_ns >= 5 * 10 * NP_MSEC);
}

TEST(a_connection_that_is_over_holds_no_other)
{
	static const struct np_engine *const engines[] = { &np_engine_epoll, &np_engine_spin };

	burst = 0;
	for (size_t i = 0; i < 2; i++) {
		FREED_BY(ends_free) struct ends e;

		/* Two connections with three transactions: the one that ends is held, and the other
		 * goes on. */
		plan_by(&e, engines[i], "TCP_RR", -3);
		e.client.plan.flows = 2;
		pace(&e.client.plan.near.call, 1, 50000);
		ends_make(&e);
		ends_run(&e, 0);
		assert_int_equal(np_get(&e.client.run.worker->count->transactions), 3);
		assert_true(e.client.run.window.ended_ns - e.client.run.window.started_ns <
			    5 * NP_SEC);
	}
}

TEST(who_is_answered_when_a_burst_is_due_passes_nobody)
{
	const struct np_run *c;
	FREED_BY(ends_free) struct ends e;

	burst = 0;
	/* Responses come when the next burst is due, and wait behind those that are held. */
	plan_by(&e, &np_engine_epoll, "TCP_RR", -4000);
	e.client.plan.flows = FLOWS;
	pace(&e.client.plan.near.call, 1, 15);
	ends_make(&e);
	ends_run(&e, 0);
	c = &e.client.run;
	assert_int_equal(np_get(&c->worker->count->transactions), 4000);
	for (uint32_t i = 0; i < c->conns; i++) {
		assert_true(c->conn[i].transactions >= 4000 / c->conns / 2);
	}
}

/* A call brings more than a burst: what is too many of it waits for the next one. */
static void
pace_calls(const struct np_engine *engine, bool far)
{
	FREED_BY(ends_free) struct ends e;

	burst = 20;
	plan_by(&e, engine, "UDP_RR", -21);
	pace(far ? &e.client.plan.far.call : &e.client.plan.near.call, 2, 10000);
	ends_make(&e);
	ends_run(&e, 0);
	assert_int_equal(np_get(&e.client.run.worker->count->transactions), 21);
	assert_true(e.client.run.window.ended_ns - e.client.run.window.started_ns >=
		    8 * 10 * NP_MSEC);
}

TEST(calls_of_several_keep_a_pace)
{
	static const struct np_engine *const engines[] = { &np_engine_batch, &np_engine_segment };

	for (size_t i = 0; i < 4; i++) {
		if (engines[i / 2]->lacks() == NULL) {
			pace_calls(engines[i / 2], i % 2 == 1);
		}
	}
}

TEST(a_list_of_engines_may_hold_anything)
{
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	struct np_engine_told told;
	size_t at = 0;

	assert_false(np_engine_next(NULL, &at, &told));
	np_engine_tell(&np_engine_sync, NULL, b);
	np_bag_text(b, "of nothing", "why");
	np_bag_text(b, "deeper", "a.b.help");
	np_bag_int(b, 1, "number.help");
	np_engine_tell(&np_engine_epoll, "no", b);
	np_bag_int(b, 1, "steam.why");
	np_bag_text(b, "an engine", "steam.help");
	at = 0;
	assert_true(np_engine_next(b, &at, &told));
	assert_string_equal(told.name, "sync");
	assert_null(told.why);
	assert_true(np_engine_next(b, &at, &told));
	assert_string_equal(told.name, "epoll");
	assert_string_equal(told.why, "no");
	assert_true(np_engine_next(b, &at, &told));
	assert_string_equal(told.help, "an engine");
	assert_null(told.why);
	assert_false(np_engine_next(b, &at, &told));
}

TEST_MAIN((own_network(), np_drive_prepare()))
