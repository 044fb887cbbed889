/*
 * The loops when things do not go their way: losing datagrams, meeting a far end that leaves, or a
 * port in use.
 */
#include <poll.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/engine/calls.h"
#include "bench/open.h"
#include "run/gate.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/sockets.h"

/* Looks for lost ones so often that many a look comes with a burst. */
static void
pace_a_burst(struct np_plan *p)
{
	p->burst = 3;
	p->flows = 2;
	p->ids = true;
	p->timeout_ms = 8;
	pace(&p->near.call, 1, 1000);
	p->near.place.engine = &np_engine_epoll;
}

/* ---- A way that is gone ---- */

TEST(a_way_that_is_gone_ends_no_test_that_had_one)
{
	static const int no_way[] = { ENETUNREACH, EHOSTUNREACH, ENETDOWN };
	struct np_counters count = { .lost = 0 };
	struct np_plan p;
	struct np_run run = { .plan = &p };
	struct np_worker w = { .run = &run, .count = &count };
	struct np_open open = { .until_ns = 0 };

	client_params(&p, np_bench_find("UDP_RR"), AF_INET, 1);
	assert_false(np_worker_route_is_lost(&w, ENETUNREACH)); /* nothing has got through */
	w.open = &open;
	assert_false(np_worker_route_is_lost(&w, ENETUNREACH));
	w.reached = true; /* in the warm-up */
	assert_true(np_worker_route_is_lost(&w, ENETUNREACH));
	w.reached = false;
	w.open = NULL;
	np_add(&count.transactions, 1);
	for (size_t i = 0; i < LEN(no_way); i++) {
		assert_true(np_worker_route_is_lost(&w, no_way[i]));
	}
	assert_true(np_worker_route_is_lost(&w, ECONNREFUSED));
	assert_false(np_worker_route_is_lost(&w, EPIPE));
	p.no_control = true; /* nothing else tells that the service is gone */
	assert_false(np_worker_route_is_lost(&w, ECONNREFUSED));
	client_params(&p, np_bench_find("TCP_CRR"), AF_INET, 1);
	assert_true(np_worker_route_is_lost(&w, EHOSTUNREACH));
	assert_false(np_worker_route_is_lost(&w, ECONNREFUSED)); /* the daemon's socket is */
	client_params(&p, np_bench_find("UDP_STREAM"), AF_INET, 1);
	np_add(&count.sends, 1);
	w.began_ns = np_now(); /* may be what the first datagram met */
	assert_false(np_worker_route_is_lost(&w, EHOSTUNREACH));
	w.reached = true; /* in the warm-up */
	assert_true(np_worker_route_is_lost(&w, EHOSTUNREACH));
	w.reached = false;
	w.began_ns -= NP_SEC;
	assert_true(np_worker_route_is_lost(&w, EHOSTUNREACH));
}

/* The daemon sends as soon as it has its connections, whatever another session waits for. */
TEST(a_window_that_opens_first_does_not_wait_at_the_gate)
{
	struct np_gate *gate = np_gate_new(2);
	FREED_BY(ends_free) struct ends e;
	bool is_over;

	assert_non_null(gate);
	ends_open(&e, np_bench_find("TCP_MAERTS"), AF_INET, -1000000, NULL);
	e.client.drive.gate = gate;
	e.client.drive.opens_first = true;
	end_start(&e.server);
	end_start(&e.client);
	for (int ms = 0; ms < LONG_MS && !e.client.over; ms++) {
		poll(NULL, 0, 1);
	}
	is_over = e.client.over;
	assert_int_equal(np_gate_state(gate), 0);
	np_gate_arrive(gate);
	assert_int_equal(np_gate_state(gate), 1); /* it has arrived, too */
	end_join(&e.client);
	end_stop(&e.server);
	np_gate_free(gate);
	assert_true(is_over);
	assert_in_range(np_get(&e.client.run.worker->count->received), 1000000, UINT64_MAX);
}

/* ---- Loss ---- */

/* Answers two datagrams of three until an empty one comes. */
struct responder {
	int fd;
	unsigned ignored;
};

static void *
respond_to_two_of_three(void *arg)
{
	struct responder *r = arg;
	struct np_addr from;
	char bytes[256];

	for (unsigned i = 1; wait_readable(r->fd); i++) {
		ssize_t n;

		n = receive_datagram(r->fd, bytes, sizeof(bytes), &from);
		if (n <= 0) {
			break;
		}
		if (i % 3 == 0) {
			r->ignored++;
		} else {
			send_datagram(r->fd, bytes, 32, &from);
		}
	}
	return NULL;
}

/* Stand in for the steps of a requester: what is given up has waited as long as it may. */
static struct {
	const struct np_steps *real;
	unsigned too_early;
} given_up;

static enum np_need
give_up(struct np_worker *w, struct np_conn *c, enum np_need need, int error)
{
	given_up.too_early += error == EINTR && np_now() - c->since_ns < w->timeout_ns;
	return given_up.real->failed(w, c, need, error);
}

static void
run_with_loss(void (*change)(struct np_plan *p), uint64_t want)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct responder r = { .ignored = 0 };
	const struct np_counters *c;
	struct np_addr at;
	struct np_steps steps;
	pthread_t thread;

	r.fd = bound_socket(AF_INET, SOCK_DGRAM, &at);
	assert_int_equal(pthread_create(&thread, NULL, respond_to_two_of_three, &r), 0);
	client_params(&e.plan, np_bench_find("UDP_RR"), AF_INET, -(int64_t)want);
	e.plan.timeout_ms = 50;
	change(&e.plan);
	end_open(&e);
	given_up.real = e.run.worker->steps;
	steps = *given_up.real;
	steps.failed = give_up;
	e.run.worker->steps = &steps;
	end_aim(&e, &at);
	end_start(&e);
	end_join(&e);
	pthread_join(thread, NULL);
	assert_int_equal(given_up.too_early, 0);
	c = e.run.worker->count;
	assert_int_equal(e.run.err.code, NP_OK);
	assert_int_equal(np_get(&c->transactions), want);
	assert_true(r.ignored > 0);
	assert_true(np_get(&c->lost) >= r.ignored);
	assert_int_equal(np_get(&c->sends), np_get(&c->transactions) + np_get(&c->lost));
	close(r.fd);
}

TEST(a_lost_datagram_is_counted_and_the_test_goes_on)
{
	run_with_loss(change_nothing, 10);
	run_with_loss(connect_datagrams, 10);
	run_with_loss(make_burst, 10);
	run_with_loss(pace_a_burst, 60);
}

/* Requests that a stall made late at once tell once that the time-out was too short. */
TEST(many_late_answers_double_the_time_out_once)
{
	enum { FLIGHT = 16, TIMEOUT_MS = 300 };
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_addr at, from;
	FREED_BY(close_fd) int fd = bound_socket(AF_INET, SOCK_DGRAM, &at);
	const struct np_counters *count;
	char request[FLIGHT][256];

	client_params(&e.plan, np_bench_find("UDP_RR"), AF_INET, 1);
	e.plan.timeout_ms = TIMEOUT_MS;
	e.plan.burst = FLIGHT - 1;
	e.plan.ids = true;
	end_open(&e);
	end_aim(&e, &at);
	e.drive.length_ns = 4 * TIMEOUT_MS * NP_MSEC;
	count = e.run.worker->count;
	end_start(&e);
	for (int i = 0; i < FLIGHT; i++) {
		assert_true(receive_datagram(fd, request[i], sizeof(request[i]), &from) > 0);
	}
	while (np_get(&count->lost) < FLIGHT && !e.over) {
		poll(NULL, 0, 1);
	}
	for (int i = 0; i < FLIGHT; i++) {
		send_datagram(fd, request[i], e.run.worker->recv_size, &from);
	}
	end_join(&e);
	assert_true(np_get(&count->late) > FLIGHT / 2);
	assert_true(e.run.worker->timeout_ns <= 8 * TIMEOUT_MS * NP_MSEC);
}

/* The port is closed: an ICMP message tells a connected socket so, which neither ends the test nor
 * the wait for the response. */
TEST(a_refused_datagram_is_a_lost_one)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_addr at;

	close(bound_socket(AF_INET, SOCK_DGRAM, &at));
	client_params(&e.plan, np_bench_find("UDP_RR"), AF_INET, 1);
	e.plan.near.sock.connected = true;
	e.plan.timeout_ms = 20;
	e.length_ns = 300 * NP_MSEC; /* a busy machine may begin late */
	end_run(&e, &at);
	assert_int_equal(e.run.err.code, NP_OK);
	assert_int_equal(e.drive.cause, NP_BY_CLOCK);
	assert_int_equal(np_get(&e.run.worker->count->transactions), 0);
	assert_in_range(np_get(&e.run.worker->count->lost), 1, 15);
}

/* Time without an answer is time of the test: a rate must not leave an outage out. */
TEST(an_outage_at_the_end_counts)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_addr at;
	FREED_BY(close_fd) int mute = bound_socket(AF_INET, SOCK_DGRAM, &at);

	client_params(&e.plan, np_bench_find("UDP_RR"), AF_INET, 1);
	e.plan.timeout_ms = 20;
	e.length_ns = 500 * NP_MSEC;
	end_run(&e, &at);
	assert_int_equal(e.run.err.code, NP_OK);
	assert_int_equal(e.drive.cause, NP_BY_CLOCK);
	assert_true(np_get(&e.run.worker->count->lost) > 0);
	assert_true(e.run.window.ended_ns - e.run.window.started_ns >= 500 * NP_MSEC);
}

/* Takes a request and never answers. */
static void *
take_and_wait(void *arg)
{
	int fd = accepted_from(*(int *)arg);

	read_all(fd);
	close(fd);
	return NULL;
}

/* The far end counts it as received. */
TEST(a_request_under_way_at_the_end_was_sent)
{
	static const char *const benches[] = { "TCP_RR", "TCP_CRR" };

	for (size_t i = 0; i < 2; i++) {
		FREED_BY(end_free) struct end e = { .rc = -1 };
		struct np_addr at;
		FREED_BY(close_fd) int listener = bound_socket(AF_INET, SOCK_STREAM, &at);
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, take_and_wait, &listener), 0);
		client_params(&e.plan, np_bench_find(benches[i]), AF_INET, 1);
		e.length_ns = 300 * NP_MSEC;
		end_run(&e, &at);
		assert_int_equal(e.drive.cause, NP_BY_CLOCK);
		assert_int_equal(np_get(&e.run.worker->count->transactions), 0);
		assert_int_equal(np_get(&e.run.worker->count->sends), 1);
		assert_int_equal(np_get(&e.run.worker->count->sent), e.run.worker->send_size);
		np_run_close(&e.run);
		pthread_join(thread, NULL);
	}
}

/* ---- A far end that leaves ---- */

static void *
take_and_close(void *arg)
{
	int fd = accepted_from(*(int *)arg);
	char byte;

	get_bytes(fd, &byte, 1);
	close(fd);
	return NULL;
}

static void
assert_closed_early(const char *name, enum np_errc code)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_addr at;
	FREED_BY(close_fd) int listener = bound_socket(AF_INET, SOCK_STREAM, &at);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, take_and_close, &listener), 0);
	client_params(&e.plan, np_bench_find(name), AF_INET, 0);
	end_run(&e, &at);
	pthread_join(thread, NULL);
	assert_int_equal(e.drive.cause, NP_BY_LOOP);
	assert_int_equal(e.run.err.code, code);
	assert_has(e.run.err.msg, "data connection with 127.0.0.1 port ");
}

TEST(a_far_end_that_leaves_is_an_error)
{
	assert_closed_early("TCP_STREAM", NP_ESYS);
	assert_closed_early("TCP_SENDFILE", NP_ESYS);
	assert_closed_early("TCP_CRR", NP_ESYS);
}

struct reader {
	int listener;
	size_t bytes;
};

static void *
read_and_close(void *arg)
{
	struct reader *r = arg;
	int fd = accepted_from(r->listener);

	r->bytes = read_all(fd);
	close(fd);
	return NULL;
}

TEST(a_file_that_shrinks_is_an_error_and_what_was_sent_counts)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_addr at;
	FREED_BY(close_fd) int listener = bound_socket(AF_INET, SOCK_STREAM, &at);
	struct reader r = { .listener = listener };
	struct np_worker *w;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, read_and_close, &r), 0);
	client_params(&e.plan, np_bench_find("TCP_SENDFILE"), AF_INET, 0);
	e.plan.near.call.send_size = 1000;
	e.plan.near.call.send_width = 8;
	end_open(&e);
	w = e.run.worker;
	assert_int_equal(ftruncate(w->file.fd, 6500), 0);
	end_aim(&e, &at);
	end_start(&e);
	end_join(&e);
	assert_int_equal(e.drive.cause, NP_BY_LOOP);
	assert_int_equal(e.run.err.sys, EIO);
	assert_int_equal(np_get(&w->count->sent), 6500);
	assert_int_equal(w->conn->sent, 6500);
	assert_int_equal(np_get(&w->count->sends), 7);
	assert_int_equal(w->conn->number, 7);
	pthread_join(thread, NULL);
	assert_int_equal(r.bytes, 6500);
}

/* Stand in for an engine's calls: a mark interrupts the first of three answers. */
static struct {
	int fetched, tries, left;
} marked;

static int
put_or_mark(struct np_worker *w, struct np_conn *c, uint32_t first, uint32_t count)
{
	if (marked.tries++ == 0) {
		np_stop_mark(&w->stop);
		errno = EINTR;
		return -1;
	}
	marked.left += (int)count;
	return (int)count;
}

static int
fetch_three(struct np_worker *w, struct np_conn *c, int flags)
{
	struct np_batch *b = w->engine.state;

	for (int i = 0; i < 3; i++) {
		b->in[i].bytes = b->in[i].size = w->recv_size;
		b->in[i].addr_len = 0;
	}
	marked.fetched += 3;
	return 3;
}

TEST(a_mark_drops_no_answer)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_worker *w;
	struct np_batch *b;

	daemon_params(&e.plan, np_bench_find("UDP_RR"), 1);
	e.plan.near.place.engine = &np_engine_batch;
	end_open(&e);
	w = e.run.worker;
	b = w->engine.state;
	b->put = put_or_mark;
	b->fetch = fetch_three;
	assert_int_equal(np_calls_drive(w), 0);
	assert_int_equal(marked.left, marked.fetched);
	assert_int_equal(np_get(&w->count->transactions), marked.fetched);
}

static int naps;

int __real_nanosleep(const struct timespec *length, struct timespec *left);
int __wrap_nanosleep(const struct timespec *length, struct timespec *left);

int
__wrap_nanosleep(const struct timespec *length, struct timespec *left)
{
	naps++;
	return __real_nanosleep(length, left);
}

TEST(a_reader_waits_for_more_only_if_it_emptied_its_socket)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_worker *w;
	struct np_batch *b;
	struct np_addr at;
	FREED_BY(close_fd) int fd;

	daemon_params(&e.plan, np_bench_find("UDP_STREAM"), 1);
	e.plan.near.place.engine = &np_engine_batch;
	pace(&e.plan.near.call, 8, 1000);
	end_open(&e);
	w = e.run.worker;
	b = w->engine.state;
	w->load.allowed = 7;
	naps = 0;
	at = loopback(AF_INET, np_addr_port(&e.run.end.local));
	fd = connected_to_by(&at, SOCK_DGRAM, 0);
	for (int i = 0; i < 13; i++) {
		assert_int_equal(send(fd, "", 1, 0), 1);
	}
	assert_int_equal(b->fetch(w, w->conn, 0), 8);
	assert_int_equal(b->fetch(w, w->conn, 0), 5);
	assert_int_equal(naps, 0);
	assert_int_equal(send(fd, "", 1, 0), 1);
	assert_int_equal(b->fetch(w, w->conn, 0), 1);
	assert_int_equal(naps, 1);
}

/*
 * After a warm-up that could not send for a while, no more is due than in the window. The warm-up
 * does not send what is due at its end: the window may begin late, and its first message is due
 * half an interval after its start.
 */
TEST(what_a_warm_up_did_not_send_is_of_no_window)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_worker *w;
	uint64_t now = np_now();

	client_params(&e.plan, np_bench_find("TCP_STREAM"), AF_INET, 1);
	e.plan.warm_up_ms = 1000;
	e.plan.near.call.send_size = 1000;
	e.plan.near.call.offered = 8000000; /* a message in each millisecond */
	end_open(&e);
	w = e.run.worker;
	e.run.window = (struct np_window){ .started_ns = now, .length_ns = NP_SEC };
	np_worker_begin(w, now);
	assert_true(np_load_may(&w->load, now + 500 * NP_MSEC));
	assert_int_equal(w->load.allowed, 500);
	w->load.allowed = 0;
	assert_true(np_load_may(&w->load, now + 2 * NP_SEC));
	assert_int_equal(w->load.allowed, 498);
	e.run.window.started_ns = now + NP_SEC;
	np_worker_mark(w);
	assert_true(np_load_may(&w->load, now + NP_SEC + 5 * NP_MSEC));
	assert_int_equal(w->load.allowed, 4);
}

/* Stand in for a transport whose end of the data needs room. */
static uint64_t shut_until[3];

static void
note_shut(const struct np_stop *stop, int fd, uint64_t until_ns)
{
	const struct np_worker *w =
	    (const struct np_worker *)((const char *)stop - offsetof(struct np_worker, stop));

	for (uint32_t i = 0; i < w->conns; i++) {
		if (w->conn[i].fd == fd) {
			shut_until[i] = until_ns;
		}
	}
}

/* All of a worker's connections have one time for it, and who reads no more has none. */
TEST(room_for_an_end_is_awaited_once)
{
	struct np_transport needs_room = np_transport_tcp;
	struct np_plan plan = { .transport = &needs_room };
	struct np_run run = { .plan = &plan };
	struct np_conn conn[3];
	struct np_worker w = { .run = &run, .conn = conn, .conns = 3 };
	struct np_addr at;
	int listener = bound_socket(AF_INET, SOCK_STREAM, &at), far[3];

	needs_room.ends.shut = note_shut;
	for (size_t i = 0; i < 3; i++) {
		conn[i] = (struct np_conn){ .fd = connected_to(&at) };
		far[i] = accepted_from(listener);
	}
	shutdown(far[1], SHUT_WR);
	assert_true(wait_readable(conn[1].fd));
	np_worker_shut(&w);
	assert_in_range(shut_until[0], 1, np_deadline(NP_SHUT_S * NP_SEC));
	assert_int_equal(shut_until[1], 0);
	assert_int_equal(shut_until[2], shut_until[0]);
	for (size_t i = 0; i < 3; i++) {
		close(conn[i].fd);
		close(far[i]);
	}
	close(listener);
}

TEST(a_message_too_long_for_a_datagram_names_the_option)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_addr at;
	FREED_BY(close_fd) int mute = bound_socket(AF_INET, SOCK_DGRAM, &at);

	client_params(&e.plan, np_bench_find("UDP_STREAM"), AF_INET, 10);
	e.plan.near.call.send_size = 65508;
	end_run(&e, &at);
	assert_int_equal(e.run.err.code, NP_EUSAGE);
	assert_has(e.run.err.msg, "send 65508 bytes as one UDP message (try -m 65507 or less)");
}

/* ---- Servers ---- */

TEST(connections_that_come_to_nothing_are_survived)
{
	static const struct linger at_once = { .l_onoff = 1 };
	FREED_BY(end_free) struct end e = { .rc = -1 };
	char request[64] = "", response[32];
	struct np_addr at;
	int fd;

	daemon_params(&e.plan, np_bench_find("TCP_CRR"), -1);
	end_open(&e);
	end_start(&e);
	at = loopback(AF_INET, np_addr_port(&e.run.end.local));
	close(connected_to(&at));
	fd = connected_to(&at);
	assert_true(put_bytes(fd, request, 10));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
	fd = connected_to(&at);
	assert_true(put_bytes(fd, request, sizeof(request)));
	assert_true(get_bytes(fd, response, sizeof(response)));
	assert_false(get_bytes(fd, response, 1));
	close(fd);
	end_join(&e);
	assert_int_equal(e.run.err.code, NP_OK);
	assert_int_equal(np_get(&e.run.worker->count->transactions), 1);
}

TEST(a_server_takes_another_port_when_its_own_is_in_use)
{
	static const char *const names[] = { "TCP_STREAM", "UDP_RR" };

	for (size_t i = 0; i < LEN(names); i++) {
		const struct np_bench *b = np_bench_find(names[i]);
		FREED_BY(end_free) struct end e = { .rc = -1 };
		struct np_addr at;
		FREED_BY(close_fd) int used = bound_socket(AF_INET, b->transport->socktype, &at);

		daemon_params(&e.plan, b, 1);
		e.plan.near.sock.port = np_addr_port(&at);
		end_open(&e);
		assert_true(e.run.end.port_moved);
		assert_int_not_equal(np_addr_port(&e.run.end.local), 0);
		assert_int_not_equal(np_addr_port(&e.run.end.local), np_addr_port(&at));
	}
}

TEST(two_servers_never_share_a_port)
{
	static const char *const names[] = { "TCP_RR", "UDP_RR" };

	for (size_t i = 0; i < LEN(names); i++) {
		FREED_BY(end_free) struct end first = { .rc = -1 }, second = { .rc = -1 };

		daemon_params(&first.plan, np_bench_find(names[i]), 1);
		end_open(&first);
		second.plan = first.plan;
		second.plan.near.sock.port = np_addr_port(&first.run.end.local);
		end_open(&second);
		assert_true(second.run.end.port_moved);
		assert_int_not_equal(np_addr_port(&second.run.end.local),
				     second.plan.near.sock.port);
	}
}

TEST(a_flow_may_be_freed_twice)
{
	struct np_run never = { .plan = NULL };
	FREED_BY(end_free) struct end e = { .rc = -1 };

	np_run_free(&never);
	client_params(&e.plan, np_bench_find("TCP_RR"), AF_INET, 1);
	end_open(&e);
	np_run_free(&e.run);
}

/* SIGPIPE as both programs have it: sendfile(2) has no MSG_NOSIGNAL. */
TEST_MAIN(np_drive_prepare(); signal(SIGPIPE, SIG_IGN))
