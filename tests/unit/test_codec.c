/*
 * bench/codec.h: what options add to operations: pacing, buffers that are touched, write(2),
 * splice(2). For every bench of the table, at both ends.
 */
#include "bench/codec.h"

#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/engine/io.h"
#include "bench/load.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/sockets.h"

enum { OPERATIONS = 6, BURST = 2, INTERVAL_MS = 15 };

/* ---- Pacing ---- */

static void
pace_end(struct np_end *e)
{
	pace(&e->call, BURST, INTERVAL_MS * 1000);
	e->call.send_size = 512;
}

static void
pace_both(struct np_plan *p)
{
	pace_end(&p->near);
	pace_end(&p->far);
}

static void
pace_burst(struct np_plan *p)
{
	pace_both(p);
	p->burst = 1;
}

static void
pace_connected(struct np_plan *p)
{
	pace_both(p);
	p->near.sock.connected = true;
	p->time_calls = true;
}

/* A library's handshake in each transaction, which takes memory and its time. */
static bool
shakes_hands(const struct np_bench *b)
{
	return b->pattern->connection_test && b->transport->upgrade != NULL;
}

/* One run; did both ends wait that have to? Not where they were late themselves. */
static bool
both_wait(const struct np_bench *b, void (*change)(struct np_plan *p))
{
	bool waited;
	uint64_t least = OPERATIONS / BURST * INTERVAL_MS * NP_MSEC;
	struct np_hist_summary s;
	const struct np_run *lead;
	struct ends e;

	ends_open(&e, b, AF_INET, b->pattern->transactions ? -OPERATIONS : -OPERATIONS * 512,
		  change);
	ends_run(&e, 0);
	lead = b->near_role == NP_LEAD ? &e.client.run : &e.server.run;
	assert_true(lead->window.ended_ns - lead->window.started_ns >= least);
	waited = lead->worker->load.paced_ns > 0;
	assert_true(lead->worker->load.paced_ns <= lead->window.ended_ns - lead->window.started_ns);
	if (b->pattern->transactions) {
		assert_int_equal(np_get(&e.client.run.worker->count->transactions), OPERATIONS);
		waited = waited && e.server.run.worker->load.paced_ns > 0;
		np_hist_summarise(lead->worker->hist, &s);
		assert_int_equal(s.count, OPERATIONS);
		/* The wait is not part of any operation's time, unless one was in flight. */
		if (e.client.plan.burst == 0) {
			assert_true((double)s.count * s.mean <=
				    (double)(lead->window.ended_ns - lead->window.started_ns -
					     lead->worker->load.paced_ns) +
					1);
		}
	} else {
		assert_int_equal(np_get(&lead->worker->count->sends), OPERATIONS);
	}
	ends_free(&e);
	return waited;
}

static void
run_paced(const struct np_bench *b, void (*change)(struct np_plan *p))
{
	for (int tries = 0; tries < 20; tries++) {
		if (both_wait(b, change)) {
			return;
		}
	}
	fail_msg("%s: the far end never waited for an interval's end", b->name);
}

TEST(every_bench_keeps_its_pace)
{
	for (const struct np_bench *b = NULL; (b = next_runnable(b)) != NULL;) {
		if (b->pattern->probe || shakes_hands(b)) {
			continue;
		}
		run_paced(b, pace_both);
		if (!b->transport->connected) {
			run_paced(b, pace_connected);
		}
		if (b->pattern == &np_pattern_rr) {
			run_paced(b, pace_burst);
		}
	}
}

enum { SLOW_ANSWERS = 2 };

static void *
answer_slowly(void *arg)
{
	static const struct timespec a_while = { .tv_nsec = 60000000 };
	int fd = *(int *)arg;
	struct np_addr from;
	char bytes[64];

	for (int i = 0; i < SLOW_ANSWERS && wait_readable(fd); i++) {
		assert_int_equal(receive_datagram(fd, bytes, sizeof(bytes), &from), 64);
		nanosleep(&a_while, NULL);
		send_datagram(fd, bytes, 32, &from);
	}
	return NULL;
}

/* A requester that pauses for longer than it waits for responses gives none up for that. */
TEST(a_pause_is_no_lost_response)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_addr at;
	pthread_t thread;
	FREED_BY(close_fd) int fd = bound_socket(AF_INET, SOCK_DGRAM, &at);

	assert_int_equal(pthread_create(&thread, NULL, answer_slowly, &fd), 0);
	client_params(&e.plan, np_bench_find("UDP_RR"), AF_INET, -SLOW_ANSWERS);
	pace(&e.plan.near.call, 1, 2500000);
	e.plan.timeout_ms = 2000;
	end_run(&e, &at);
	pthread_join(thread, NULL);
	assert_int_equal(e.run.err.code, NP_OK);
	assert_int_equal(np_get(&e.run.worker->count->lost), 0);
	assert_int_equal(np_get(&e.run.worker->count->transactions), SLOW_ANSWERS);
}

/* ---- Buffers ---- */

TEST(what_is_sent_is_dirty)
{
	static const char first[16] = "\1\1\1\1erf\0netperf", second[16] = "\2\2\2\2erf\0netperf";
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_addr at;
	char got[32];
	int listener = bound_socket(AF_INET, SOCK_STREAM, &at), fd;

	client_params(&e.plan, np_bench_find("TCP_STREAM"), AF_INET, -32);
	e.plan.near.call.send_size = 16;
	e.plan.near.call.dirty = 4;
	e.plan.near.call.clean = 8;
	end_begin(&e, &at);
	fd = accepted_from(listener);
	assert_true(get_bytes(fd, got, sizeof(got)));
	close(fd);
	end_join(&e);
	assert_memory_equal(got, first, sizeof(first));
	assert_memory_equal(got + 16, second, sizeof(second));
	close(listener);
}

/* More than any buffer has. */
static void
touch_all(struct np_plan *p)
{
	p->near.call.dirty = p->near.call.clean = p->far.call.dirty = p->far.call.clean = INT32_MAX;
	p->use_write = true;
}

static void
touch_in_bursts(struct np_plan *p)
{
	touch_all(p);
	p->burst = 3;
}

static void
run_extras(const struct np_bench *b, int family, void (*change)(struct np_plan *p))
{
	int64_t length = b->pattern->transactions ? 25 : 20 * 512;
	FREED_BY(ends_free) struct ends e;

	ends_open(&e, b, family, -length, change);
	assert_true(e.client.run.worker->codec != 0);
	ends_run(&e, 0);
	if (!shakes_hands(b)) {
		assert_no_allocation(&e);
	}
	assert_carried(&e);
	if (b->pattern->transactions) {
		assert_transactions(&e, length);
	}
}

TEST(touched_buffers_change_no_count)
{
	static const int families[] = { AF_INET, AF_INET6 };

	for (const struct np_bench *b = NULL; (b = next_runnable(b)) != NULL;) {
		for (size_t run = 0; run < LEN(families); run++) {
			if (has_family(families[run])) {
				run_extras(b, families[run], touch_all);
			}
		}
		if (b->pattern == &np_pattern_rr) {
			run_extras(b, AF_INET, touch_in_bursts);
		}
	}
}

/* ---- write(2) ---- */

static volatile sig_atomic_t broken_pipes;

static void
count_broken_pipe(int sig)
{
	broken_pipes++;
}

/* Only write(2) raises SIGPIPE; send(2) is asked not to. */
static void
send_to_nobody(bool by_write)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_addr at;
	int listener = bound_socket(AF_INET, SOCK_STREAM, &at), fd;

	broken_pipes = 0;
	client_params(&e.plan, np_bench_find("TCP_STREAM"), AF_INET, 0);
	e.plan.use_write = by_write;
	end_begin(&e, &at);
	fd = accepted_from(listener);
	shutdown(fd, SHUT_RD);
	end_hang_up(&e);
	close(fd);
	end_join(&e);
	close(listener);
}

TEST(write_is_what_sends_when_asked)
{
	char byte[8] = { 1 };
	struct np_conn c = { .number = 0 };
	int fd[2];
	struct np_worker w = { .send_size = 1 };
	struct np_run run;
	struct np_plan p;

	signal(SIGPIPE, count_broken_pipe);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	close(fd[1]);
	c.fd = fd[0];
	memset(&run, 0, sizeof(run));
	np_plan_init(&p);
	p.transport = &np_transport_tcp;
	p.pattern = &np_pattern_stream;
	run.plan = &p;
	run.worker = &w;
	w.run = &run;
	assert_true(np_io_send(run.worker, &c, byte) < 0);
	assert_int_equal(broken_pipes, 0);
	p.use_write = true;
	run.worker->codec = np_codec_of(&p);
	assert_true(np_io_send(run.worker, &c, byte) < 0);
	assert_int_equal(broken_pipes, 1);
	close(fd[0]);
	/* In a whole flow, too, nothing worse comes of it. */
	send_to_nobody(true);
	send_to_nobody(false);
	assert_int_equal(broken_pipes, 0);
	signal(SIGPIPE, SIG_IGN);
}

/* ---- splice(2) ---- */

TEST(spliced_bytes_are_counted_and_not_copied)
{
	static const char *const names[] = { "TCP_MAERTS", "TCP_STREAM", "TCP_SENDFILE" };
	struct np_hist_summary s;

	for (size_t i = 0; i < LEN(names); i++) {
		const struct np_bench *b = np_bench_find(names[i]);
		const struct np_run *from, *to;
		FREED_BY(ends_free) struct ends e;

		/* What is sent differs from what the receiver's buffers hold already. */
		ends_plan(&e, b, AF_INET, -3000000);
		e.client.plan.copy_avoidance = true;
		e.client.plan.far.call.dirty = e.client.plan.near.call.dirty = 3;
		e.client.plan.time_calls = true;
		ends_make(&e);
		ends_run(&e, 0);
		from = b->near_role == NP_LEAD ? &e.client.run : &e.server.run;
		to = from == &e.client.run ? &e.server.run : &e.client.run;
		assert_true(np_get(&from->worker->count->sent) >= 3000000);
		assert_int_equal(np_get(&to->worker->count->received),
				 np_get(&from->worker->count->sent));
		assert_true(np_get(&to->worker->count->receives) > 0);
		np_hist_summarise(to->worker->hist, &s);
		assert_int_equal(s.count, np_get(&to->worker->count->receives));
		assert_memory_equal(to->worker->recv_ring.slots->buf, "netperf", 7);
		assert_no_allocation(&e);
	}
}

TEST(without_a_pipe_it_is_received_the_common_way)
{
	static const char text[] = "not netperf";
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct rlimit before, few;
	int fd[2], rc;

	client_params(&e.plan, np_bench_find("TCP_MAERTS"), AF_INET, 0);
	e.plan.copy_avoidance = true;
	end_open(&e);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	close(e.run.conn->fd);
	e.run.conn->fd = fd[0];
	assert_true(put_bytes(fd[1], text, sizeof(text)));
	close(fd[1]);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	np_worker_begin(e.run.worker, np_now());
	rc = e.loop(e.run.worker);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(rc, 0);
	assert_true(np_run_hung_up(&e.run));
	assert_int_equal(np_get(&e.run.worker->count->received), sizeof(text));
	assert_string_equal(e.run.worker->recv_ring.slots->buf, text);
}

TEST_MAIN(np_drive_prepare())
