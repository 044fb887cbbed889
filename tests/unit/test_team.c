/*
 * Several workers: each has its part of the connections, all have one window, a count is for all of
 * them together, and none goes on without the others.
 */
#include "run/team.h"

#include <sys/socket.h>

#include "base/clock.h"
#include "base/lines.h"
#include "bench/engine/engine.h"
#include "bench/tally.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"

enum { FLOWS = 6, COUNT = 1000 };

/* What the next plan gets. */
static uint32_t near_threads, far_threads, warm_up_ms, rate, ramp, stations;

static void
take_threads(struct np_plan *p)
{
	p->flows = FLOWS;
	p->near.place.threads = near_threads;
	p->far.place.threads = far_threads;
	p->warm_up_ms = warm_up_ms;
	p->ids = true;
	p->rate = rate;
	p->ramp = ramp;
	p->stations = stations;
}

/* What is over; a request may be under way beside it. */
static uint64_t
done_by(const struct np_run *run)
{
	struct np_counts c = np_counts_of(run);

	return run->plan->pattern->transactions ? c.received + c.transactions : np_counts_bytes(&c);
}

static void
check_workers(const struct np_run *run, uint32_t threads)
{
	assert_int_equal(run->workers, threads);
	assert_sums(run);
	NP_EACH_WORKER (w, run) {
		assert_true(w->began_ns >= run->window.started_ns);
		assert_true(w->left_ns <= run->window.ended_ns);
	}
}

static void
run_threads(const char *bench, uint32_t near, uint32_t far)
{
	struct np_counts here;
	FREED_BY(ends_free) struct ends e;

	near_threads = near;
	far_threads = far;
	warm_up_ms = 0;
	ends_open(&e, np_bench_find(bench), AF_INET, -COUNT, take_threads);
	ends_run(&e, 0);
	check_workers(&e.client.run, near);
	check_workers(&e.server.run, far);
	assert_carried(&e);
	if (e.client.plan.pattern->transactions) {
		assert_transactions(&e, COUNT);
	} else {
		here = np_counts_of(&e.client.run);
		assert_true(np_counts_bytes(&here) >= COUNT);
	}
}

TEST(a_count_is_of_all_workers)
{
	static const char *const names[] = { "TCP_RR", "UDP_RR", "TCP_STREAM", "TCP_MAERTS" };

	for (size_t i = 0; i < LEN(names); i++) {
		run_threads(names[i], 2, 2);
		run_threads(names[i], 4, 1); /* parts of two sizes */
		run_threads(names[i], 1, FLOWS);
		run_threads(names[i], FLOWS, FLOWS); /* by the engine sync */
	}
}

/* The cache lines that one worker's memory is in. */
struct lines {
	uintptr_t first[8 * FLOWS + 64], last[8 * FLOWS + 64];
	size_t count;
};

static void
add_lines(struct lines *l, const void *at, size_t bytes)
{
	if (at != NULL && bytes > 0) {
		assert_true(l->count < LEN(l->first));
		l->first[l->count] = (uintptr_t)at / NP_CACHE_LINE;
		l->last[l->count++] = ((uintptr_t)at + bytes - 1) / NP_CACHE_LINE;
	}
}

static void
add_ring(struct lines *l, const struct np_ring *r)
{
	add_lines(l, r->slots, r->width * sizeof(*r->slots));
	for (size_t i = 0; i < r->width && i < FLOWS; i++) {
		add_lines(l, r->slots[i].buf, r->size);
		add_lines(l, r->slots[r->width - 1 - i].buf, r->size);
	}
}

/* Sizes that only their owner knows begin a line of their own (base/lines.h). */
static void
add_own(struct lines *l, const void *at)
{
	assert_int_equal((uintptr_t)at % NP_CACHE_LINE, 0);
	add_lines(l, at, at != NULL);
}

static void
add_worker(struct lines *l, const struct np_worker *w)
{
	add_lines(l, w, sizeof(*w));
	add_lines(l, w->count, sizeof(*w->count));
	add_lines(l, w->hist, sizeof(*w->hist));
	add_lines(l, w->conn, w->conns * sizeof(*w->conn));
	for (uint32_t i = 0; i < w->conns; i++) {
		add_own(l, w->conn[i].ids);
	}
	add_ring(l, &w->send_ring);
	add_ring(l, &w->recv_ring);
	add_own(l, w->state);
	add_own(l, w->open);
	add_own(l, w->ramp);
	add_own(l, w->stamps);
	add_own(l, w->sequence);
	add_own(l, w->engine.state);
}

/* No line of two workers, as every write of one would take it from the other's processor. */
static void
check_lines(const struct np_run *run)
{
	struct lines each[FLOWS];

	memset(each, 0, sizeof(each));
	NP_EACH_WORKER (w, run) {
		add_worker(&each[w - run->worker], w);
	}
	for (uint32_t a = 0; a < run->workers; a++) {
		for (uint32_t b = 0; b < run->workers; b++) {
			for (size_t i = 0; i < each[a].count && a != b; i++) {
				for (size_t k = 0; k < each[b].count; k++) {
					assert_true(each[a].last[i] < each[b].first[k] ||
						    each[a].first[i] > each[b].last[k]);
				}
			}
		}
	}
}

TEST(workers_share_no_cache_line)
{
	static const struct {
		const char *name;
		uint32_t rate, ramp, stations;
	} rows[] = {
		{ .name = "TCP_RR" },
		{ .name = "UDP_RR" },
		{ .name = "TCP_STREAM" },
		{ .name = "UDP_STREAM" },
		{ .name = "TCP_CRR" },
		{ .name = "UDP_RR", .rate = 1000 },
		{ .name = "TCP_CRR", .rate = 1000 },
		{ .name = "TCP_RR", .ramp = 1000 },
		{ .name = "TCP_RR", .stations = 1 },
	};

	near_threads = far_threads = 3;
	warm_up_ms = 0;
	for (size_t i = 0; i < LEN(rows); i++) {
		FREED_BY(ends_free) struct ends e;
		const struct np_worker *w;

		rate = rows[i].rate;
		ramp = rows[i].ramp;
		stations = rows[i].stations;
		ends_open(&e, np_bench_find(rows[i].name), AF_INET, -COUNT, take_threads);
		w = e.client.run.worker;
		assert_int_equal(e.client.run.workers, near_threads);
		assert_int_equal(w->open != NULL, rate > 0);
		assert_int_equal(w->ramp != NULL, ramp > 0);
		assert_int_equal(w->stamps != NULL, stations > 0);
		check_lines(&e.client.run);
		check_lines(&e.server.run);
	}
	rate = ramp = stations = 0;
}

TEST(a_count_may_be_of_fewer_than_there_are)
{
	struct ends e;

	warm_up_ms = 0;
	for (near_threads = 1; near_threads <= FLOWS; near_threads++) {
		far_threads = FLOWS + 1 - near_threads;
		ends_open(&e, np_bench_find("TCP_RR"), AF_INET, -2, take_threads);
		ends_run(&e, 0);
		assert_int_equal(np_counts_of(&e.client.run).transactions, 2);
		assert_int_equal(np_counts_of(&e.client.run).sends, 2);
		assert_int_equal(np_counts_of(&e.server.run).transactions, 2);
		ends_free(&e);
	}
}

/* The tally is of all: their histograms, their costs, how far they were apart. */
TEST(a_tally_is_of_all_workers)
{
	struct np_err err = { .code = NP_OK };
	FREED_BY(np_tally_free) struct np_tally t;
	FREED_BY(ends_free) struct ends e;

	near_threads = far_threads = 3;
	warm_up_ms = 0;
	ends_open(&e, np_bench_find("TCP_RR"), AF_INET, -COUNT, take_threads);
	ends_run(&e, 0);
	assert_int_equal(np_tally_take(&e.client.run, &t, &err), NP_OK);
	assert_int_equal(np_hist_count(t.hist), COUNT);
	assert_int_equal(t.workers, 3);
	assert_in_range(t.end.skew.begin_ns, 0, t.ended_ns - t.started_ns);
	assert_in_range(t.end.skew.end_ns, 0, t.ended_ns - t.started_ns);
	for (uint32_t i = 0; i < t.workers; i++) {
		assert_int_equal(t.worker[i].flows, 2);
		assert_in_range(t.worker[i].transactions, COUNT / 3, COUNT / 3 + 1);
		assert_true(t.worker[i].user_us >= 0 && t.worker[i].cpu >= 0);
		assert_true(t.worker[i].began_ns <= t.worker[i].ended_ns);
	}
	for (uint32_t i = 0; i < t.flows; i++) {
		assert_int_equal(t.flow[i].worker, i / 2);
		assert_true(t.flow[i].tcp.cwnd > 0 && t.flow[i].cpu >= 0);
	}
}

/* The marks leave what is under way as it is: nothing is lost, and nothing counted twice. */
static void
warm_up(const char *bench, uint32_t threads, bool counted)
{
	struct np_counts here, there;
	const struct np_run *run;
	FREED_BY(ends_free) struct ends e;

	near_threads = far_threads = threads;
	warm_up_ms = 200; /* on a busy machine each has a turn */
	ends_open(&e, np_bench_find(bench), AF_INET, counted ? -COUNT : 1, take_threads);
	run = &e.client.run;
	ends_run(&e, counted ? 0 : 100 * NP_MSEC);
	check_workers(run, threads);
	here = np_counts_of(run);
	there = np_counts_of(&e.server.run);
	assert_int_equal(here.lost + here.stray + here.duplicated + here.late, 0);
	if (counted) {
		assert_int_equal(here.transactions, COUNT);
	} else {
		assert_true(run->window.ended_ns - run->window.started_ns >= 100 * NP_MSEC);
		assert_true(here.sent > 0 && there.received > 0);
	}
	for (uint32_t i = 0; i < run->conns && run->plan->pattern->transactions; i++) {
		assert_true(run->conn[i].before > 0);
	}
	NP_EACH_WORKER (w, run) { /* what a thread cost is of the window, too */
		assert_true(w->use.began_ns >= run->window.started_ns);
	}
}

TEST(a_warm_up_is_forgotten)
{
	warm_up("TCP_RR", 2, false);
	warm_up("TCP_RR", FLOWS, false);
	warm_up("TCP_RR", 2, true);
	warm_up("TCP_RR", FLOWS, true);
	warm_up("UDP_RR", 3, false);
	warm_up("TCP_STREAM", 2, false);
	warm_up("TCP_STREAM", FLOWS, false);
}

/* Nothing counts that ended before the window began, and there is no window. */
TEST(a_warm_up_that_is_cut_short_is_no_result)
{
	static const char *const names[] = { "TCP_RR", "TCP_STREAM", "TCP_MAERTS", "TCP_CRR" };

	near_threads = far_threads = 2;
	warm_up_ms = 60000;
	for (size_t i = 0; i < LEN(names); i++) {
		FREED_BY(ends_free) struct ends e;

		ends_open(&e, np_bench_find(names[i]), AF_INET, 1, take_threads);
		end_start(&e.server);
		end_start(&e.client);
		while (done_by(&e.client.run) == 0) {
			usleep(1000);
		}
		end_stop(&e.client);
		np_run_close(&e.client.run);
		end_stop(&e.server);
		assert_int_equal(done_by(&e.client.run), 0);
		assert_int_equal(done_by(&e.server.run), 0);
		assert_int_equal(e.client.run.window.started_ns, 0);
		assert_int_equal(e.client.run.window.ended_ns, 0);
	}
}

struct looks {
	uint64_t warming_ns; /* when the warm-up began, of which the first look was */
	bool behind;         /* one was of the window */
};

static void
take_look(void *ctx, const struct np_run *run, uint64_t due_ns, uint64_t now_ns)
{
	struct looks *l = ctx;

	l->warming_ns = l->warming_ns != 0 ? l->warming_ns : run->window.started_ns;
	l->behind |= run->window.started_ns != l->warming_ns;
}

/* One that looks all the time does not wait for as long as the warm-up was when that is over. */
TEST(a_watch_looks_on_behind_a_warm_up)
{
	struct looks looks = { .warming_ns = 0 };
	FREED_BY(ends_free) struct ends e;

	near_threads = far_threads = 2;
	warm_up_ms = 600;
	rate = 100;
	ends_open(&e, np_bench_find("TCP_RR"), AF_INET, 1, take_threads);
	rate = 0;
	e.client.drive.watch[0] = (struct np_watch){
		.every_ns = 100 * NP_MSEC, .look = take_look, .ctx = &looks, .warms_up = true
	};
	ends_run(&e, 600 * NP_MSEC);
	assert_true(looks.behind);
}

/* A far end that breaks a connection, and goes on with the others. */
static int
break_one(struct np_worker *w)
{
	shutdown(w->conn[w->conns - 1].fd, SHUT_RDWR);
	return np_engine_epoll.run(w);
}

/* One connection breaks: its worker ends, and all others with it. */
TEST(one_that_fails_ends_all)
{
	FREED_BY(ends_free) struct ends e;

	near_threads = 3;
	far_threads = 1;
	warm_up_ms = 0;
	ends_open(&e, np_bench_find("TCP_RR"), AF_INET, 0, take_threads);
	e.server.loop = break_one;
	end_start(&e.server);
	end_start(&e.client);
	end_join(&e.client);
	/* By the end of the data, or by what a request that was under way met with. */
	assert_true(e.client.run.err.code == NP_EPEER || e.client.run.err.sys == ECONNRESET ||
		    e.client.run.err.sys == EPIPE);
	assert_int_equal(e.client.drive.cause, NP_BY_LOOP);
	np_run_close(&e.client.run);
	end_join(&e.server);
}

static int (*loop_of_client)(struct np_worker *w);

/* The time is up, and the controller has not looked yet. */
static int
loop_behind_window(struct np_worker *w)
{
	w->closes_ns = 0;
	return loop_of_client(w);
}

/* Then a daemon that has ended is no failure: not of a new connection, nor of one that is there. */
static void
outlast_daemon(const char *bench, void (*change)(struct np_plan *p))
{
	FREED_BY(ends_free) struct ends e;

	near_threads = far_threads = 1;
	warm_up_ms = 0;
	ends_open(&e, np_bench_find(bench), AF_INET, 1, change);
	loop_of_client = e.client.loop;
	e.client.loop = loop_behind_window;
	e.client.drive.length_ns = 500 * NP_MSEC;
	end_start(&e.server);
	end_start(&e.client);
	while (np_counts_of(&e.server.run).transactions == 0) {
		usleep(1000);
	}
	end_stop(&e.server);
	end_join(&e.client);
	assert_int_equal(e.client.run.err.code, NP_OK);
	assert_int_equal(e.client.drive.cause, NP_BY_CLOCK);
}

TEST(connections_outlast_their_daemon)
{
	outlast_daemon("TCP_CRR", change_nothing);
	outlast_daemon("TCP_CRR", take_threads);
	outlast_daemon("TCP_CC", change_nothing);
	outlast_daemon("TCP_CC", take_threads);
}

static void
take_rate(struct np_plan *p)
{
	p->rate = 5;
	p->arrivals = NP_ARRIVE_EVENLY;
}

/* A client that begins late ends late, and may be silent for longer than at a test's end. */
TEST(a_daemon_s_time_begins_with_the_first_connection)
{
	FREED_BY(ends_free) struct ends e;

	ends_open(&e, np_bench_find("TCP_CRR"), AF_INET, 1, take_rate);
	e.client.drive.length_ns = e.server.drive.length_ns = NP_SEC;
	end_start(&e.server);
	usleep(800000);
	end_start(&e.client);
	end_join(&e.client);
	end_join(&e.server);
	assert_int_equal(e.client.run.err.code, NP_OK);
	assert_int_equal(np_counts_of(&e.client.run).transactions, 5);
	/* Only behind that is a lost connection no failure. */
	assert_true(e.client.run.worker->closes_ns > e.client.run.worker->began_ns);
}

/* What the daemon does not grant is let go of, and the rest shared out anew; a count, too. */
static void
trim(bool behind_warm_up)
{
	struct np_err err = { .code = NP_OK };
	struct np_stop stop = { 0 };
	struct np_plan p;
	FREED_BY(np_run_free) struct np_run run;

	client_params(&p, np_bench_find("UDP_RR"), AF_INET, -COUNT);
	near_threads = far_threads = 4;
	warm_up_ms = behind_warm_up ? 50 : 0;
	take_threads(&p);
	p.burst = 3;
	assert_int_equal(np_run_open(&run, &p, NULL, &stop, &err), NP_OK);
	np_run_trim(&run, FLOWS); /* which changes nothing */
	assert_int_equal(run.workers, 4);
	np_run_trim(&run, 3);
	assert_int_equal(run.workers, 3);
	assert_int_equal(run.conns, 3);
	NP_EACH_WORKER (w, &run) {
		assert_int_equal(w->conns, 1);
		assert_ptr_equal(w->conn->ids->count, w->count);
		assert_true(w->conn->fd >= 0);
		assert_int_equal(w->budget_after, COUNT / 3 + (w == run.worker));
		assert_int_equal(w->budget, behind_warm_up ? UINT64_MAX : w->budget_after);
	}
}

TEST(a_run_can_be_trimmed)
{
	trim(false);
	trim(true);
}

TEST_MAIN(np_drive_prepare())
