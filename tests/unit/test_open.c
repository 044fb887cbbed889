/*
 * bench/open.h: an open loop, driven by each engine that can over the loopback interface. All that
 * was due is in the histogram, whatever became of it.
 */
#include "bench/open.h"

#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench/bench.h"
#include "bench/engine/engine.h"
#include "bench/run.h"
#include "bench/tally.h"
#include "run/drive.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/sockets.h"

enum { RATE = 2000, LENGTH_MS = 250, SHORT_MS = 90, FROZEN_MS = 100, ROOM = 200000, TRIES = 10 };

static const struct np_engine *engine;
static uint32_t arrivals, warm_up_ms, flows = 1;

static void
make_open(struct np_plan *p)
{
	p->rate = RATE;
	p->flows = flows;
	p->arrivals = arrivals;
	p->near.place.engine = engine;
	p->ids = true;
	p->length = 1;
	p->warm_up_ms = warm_up_ms;
}

/* What came of a client whose threads are done; the caller's to free. */
static void
take(struct end *client, struct np_tally *t)
{
	struct np_err err = { .code = NP_OK };
	const struct np_open_counts *n = &t->open.count;

	assert_int_equal(np_tally_take(&client->run, t, &err), NP_OK);
	assert_int_equal(t->open.rate, RATE);
	assert_int_equal(np_hist_count(t->hist), n->due);
	assert_int_equal(np_hist_count(t->open.sent), n->due);
	assert_int_equal(np_hist_count(t->open.lateness), n->begun);
	assert_int_equal(t->hist->cell[NP_HIST_CELLS - 1], n->due - t->open.answered);
	assert_true(n->begun <= n->due && n->late <= n->begun);
}

/* False: nothing was answered, as the far end had no processor for that long. */
static bool
both_ends(const char *bench)
{
	struct ends e = { .client.rc = -1, .server.rc = -1 };
	const uint64_t due = RATE * SHORT_MS / 1000; /* and a burst is whole */
	struct np_tally t;
	bool any;

	ends_open(&e, np_bench_find(bench), AF_INET, 1, make_open);
	ends_run(&e, SHORT_MS * NP_MSEC);
	take(&e.client, &t);
	assert_int_equal(t.ended_ns - t.started_ns, SHORT_MS * NP_MSEC);
	if (arrivals != NP_ARRIVE_POISSON) {
		assert_int_equal(t.open.count.due, (due + arrivals - 1) / arrivals * arrivals);
	}
	assert_true(t.open.answered <= t.open.count.due);
	any = t.open.answered > 0;
	np_tally_free(&t);
	ends_free(&e);
	return any;
}

static void
is_answered(const char *bench)
{
	int left = TRIES;

	while (!both_ends(bench)) {
		assert_true(--left > 0);
	}
}

TEST(all_that_is_due_is_in_the_histogram)
{
	static const struct np_engine *const engines[] = { NULL, &np_engine_epoll,
							   &np_engine_spin };
	static const uint32_t hows[] = { NP_ARRIVE_EVENLY, NP_ARRIVE_POISSON, 8 };

	for (size_t i = 0; i < LEN(engines); i++) {
		for (size_t k = 0; k < LEN(hows); k++) {
			engine = engines[i];
			arrivals = hows[k];
			warm_up_ms = k == 0 ? 100 : 0; /* bursts of it are whole, too */
			is_answered("TCP_RR");
			is_answered("UDP_RR");
			if (engine != &np_engine_spin) {
				is_answered("TCP_CRR");
			}
		}
	}
	warm_up_ms = 0;
}

/* False: there was no processor for more than two requests. The second one might wait for ever. */
static bool
finds_no_room(void)
{
	FREED_BY(ends_free) struct ends e = { .client.rc = -1, .server.rc = -1 };
	FREED_BY(np_tally_free) struct np_tally t;

	ends_plan(&e, np_bench_find("TCP_RR"), AF_INET, 1);
	make_open(&e.client.plan);
	e.client.plan.request = e.client.plan.response = 1 << 17;
	e.client.plan.near.sock.sndbuf = e.client.plan.near.sock.rcvbuf = 1 << 14;
	e.client.plan.far.sock.sndbuf = e.client.plan.far.sock.rcvbuf = 1 << 14;
	ends_make(&e);
	ends_run(&e, LENGTH_MS * NP_MSEC);
	take(&e.client, &t);
	assert_int_equal(t.end.count.received, t.open.answered * (1 << 17));
	return t.open.count.begun > 2;
}

/* Neither end waits for the other for ever where each has more to send than there is room for. */
TEST(requests_that_find_no_room_are_put_aside)
{
	static const struct np_engine *const engines[] = { &np_engine_epoll, &np_engine_spin };

	arrivals = 100;
	for (size_t i = 0; i < LEN(engines); i++) {
		int left = TRIES;

		engine = engines[i];
		while (!finds_no_room()) {
			assert_true(--left > 0);
		}
	}
}

/* ---- A far end that is a socket of the test's own ---- */

struct far {
	int fd;
	bool loses;         /* what came meanwhile */
	uint64_t frozen_ns; /* how long it really stood still */
	uint64_t done_ns;   /* when it sent the last answer */
	uint64_t lost;
};

static int tries_left;     /* behind the one under way */
static bool has_processor; /* whenever it needs one */

/* Neither end was without a processor for long: there was room and time for all that was due. */
static bool
was_calm(const struct far *far, const struct np_tally *t)
{
	return t->open.count.due <= LENGTH_MS * RATE / 1000 * 6 / 5 &&
	       far->frozen_ns < FROZEN_MS * NP_MSEC / 2 * 3 &&
	       (far->done_ns > 0 || (has_processor && tries_left == 0)) &&
	       far->done_ns < t->ended_ns + NP_OPEN_GRACE_MS * NP_MSEC / 2;
}

/* As often as it takes, by a trial that says whether it was calm. Nothing else goes before it. */
static void
try_calmly(bool (*trial)(void))
{
	const struct sched_param first = { .sched_priority = 1 }, plain = { .sched_priority = 0 };
	bool calm = false;

	has_processor = sched_setscheduler(0, SCHED_FIFO, &first) == 0;
	for (tries_left = TRIES; !calm && tries_left-- > 0;) {
		calm = trial();
	}
	if (has_processor) {
		sched_setscheduler(0, SCHED_OTHER, &plain);
	}
	skip_if(!calm, "this machine is too busy");
}

static void
aim_at(struct end *client, struct far *far)
{
	struct np_addr at;

	engine = &np_engine_epoll;
	arrivals = NP_ARRIVE_EVENLY;
	far->fd = bound_socket(AF_INET, SOCK_DGRAM, &at);
	client_params(&client->plan, np_bench_find("UDP_RR"), AF_INET, 1);
	make_open(&client->plan);
	client->plan.timeout_ms = LONG_MS;
	/* Room for all of a test, however long this thread or that one gets no processor. */
	client->plan.near.sock.rcvbuf = ROOM;
	assert_int_equal(setsockopt(far->fd, SOL_SOCKET, SO_RCVBUF, &(int){ ROOM }, sizeof(int)),
			 0);
	end_open(client);
	end_aim(client, &at);
	client->drive.length_ns = LENGTH_MS * NP_MSEC;
}

/* Answers nothing at first, and then all that waits and what comes. */
static void *
thaw(void *arg)
{
	struct far *far = arg;
	uint64_t begin;

	assert_true(wait_readable(far->fd));
	begin = np_now();
	usleep(FROZEN_MS * 1000);
	far->frozen_ns = np_now() - begin;
	while (far->loses && recv(far->fd, &begin, sizeof(begin), MSG_DONTWAIT) > 0) {
		far->lost++;
	}
	while (wait_readable(far->fd)) {
		struct np_addr from;
		char bytes[256];
		ssize_t n = receive_datagram(far->fd, bytes, sizeof(bytes), &from);

		if (n <= 0) {
			break;
		}
		send_datagram(far->fd, bytes, (size_t)n, &from);
		far->done_ns = np_now();
	}
	return NULL;
}

/*
 * Of what was due while it stood still a half waited for half of that at least: 2 in 5 of the whole
 * test, however busy the machine is. Nothing was lost by that.
 */
static void
judge_frozen(const struct far *far, const struct np_tally *t)
{
	uint64_t waited = 0;

	for (unsigned c = np_hist_cell(far->frozen_ns / 2); c < NP_HIST_CELLS; c++) {
		waited += t->hist->cell[c];
	}
	assert_true(waited + 2 >= far->frozen_ns / 2 * RATE / NP_SEC);
	assert_int_equal(t->open.answered, t->open.count.due);
	assert_true(t->open.outage.ns < far->frozen_ns / 2);
}

/* By the clock of the far end it may be shorter than by what was due, where this end was late. */
static void
judge_outage(const struct far *far, const struct np_tally *t)
{
	const uint64_t each = NP_SEC / RATE, late = np_hist_percentile(t->open.lateness, 1);

	assert_int_equal(t->open.answered, t->open.count.due - far->lost);
	assert_true(t->open.outage.ns <= (far->lost + 1) * each);
	assert_true(t->open.outage.ns + 2 * each + late >= far->lost * each);
	assert_true(t->open.outage.at_ns < 2 * each + late);
}

static bool
thaws(bool loses, void (*judge)(const struct far *far, const struct np_tally *t))
{
	struct end client = { .rc = -1 };
	struct far far = { .loses = loses };
	struct np_tally t;
	pthread_t thread;
	bool calm;

	aim_at(&client, &far);
	assert_int_equal(pthread_create(&thread, NULL, thaw, &far), 0);
	end_start(&client);
	end_join(&client);
	shutdown(far.fd, SHUT_RD);
	pthread_join(thread, NULL);
	take(&client, &t);
	/* What waits when its time is up a client without a processor does not read. */
	calm = was_calm(&far, &t) && ((has_processor && tries_left == 0) ||
				      t.open.answered == t.open.count.due - far.lost);
	if (calm) {
		judge(&far, &t);
	}
	close(far.fd);
	np_tally_free(&t);
	end_free(&client);
	return calm;
}

static bool
try_frozen(void)
{
	return thaws(false, judge_frozen);
}

static bool
try_outage(void)
{
	return thaws(true, judge_outage);
}

TEST(requests_that_a_frozen_far_end_makes_wait_are_all_counted)
{
	try_calmly(try_frozen);
}

TEST(an_outage_is_as_long_as_what_it_lost)
{
	try_calmly(try_outage);
}

/* An outage lasts while requests are held, as all that may be in flight were lost. */
TEST(an_outage_ends_when_a_request_can_be_sent)
{
	FREED_BY(end_free) struct end client = { .rc = -1 };
	struct far far = { .loses = true };
	FREED_BY(np_tally_free) struct np_tally t;
	pthread_t thread;

	aim_at(&client, &far);
	client.plan.timeout_ms = 60;
	client.run.worker->timeout_ns = 60 * NP_MSEC;
	client.run.worker->depth = 10;
	assert_int_equal(pthread_create(&thread, NULL, thaw, &far), 0);
	end_start(&client);
	end_join(&client);
	shutdown(far.fd, SHUT_RD);
	pthread_join(thread, NULL);
	take(&client, &t);
	assert_true(t.open.outage.ns + 2 * NP_SEC / RATE >=
		    np_min(far.frozen_ns, LENGTH_MS * NP_MSEC));
	close(far.fd);
}

TEST(what_nobody_answers_is_at_the_top)
{
	FREED_BY(end_free) struct end client = { .rc = -1 };
	struct far far;
	FREED_BY(np_tally_free) struct np_tally t;

	flows = 2;
	aim_at(&client, &far);
	flows = 1;
	client.plan.timeout_ms = 50;
	client.run.worker->timeout_ns = 50 * NP_MSEC;
	end_start(&client);
	end_join(&client);
	take(&client, &t);
	assert_int_equal(t.open.answered, 0);
	assert_int_equal(t.end.count.lost, t.open.count.begun); /* also what was due at the end */
	assert_int_equal(np_hist_percentile(t.hist, 0.01), NP_HIST_NEVER);
	assert_true(t.flow[0].sent > 0 && t.flow[1].sent > 0);
	assert_int_equal(t.flow[0].sent + t.flow[1].sent, t.end.count.sent);
	assert_in_range(t.open.outage.ns, LENGTH_MS * NP_MSEC / 2, LENGTH_MS * NP_MSEC);
	assert_int_equal(t.open.outage.at_ns, 0);
	close(far.fd);
}

/* ---- What can't be had, and verdicts ---- */

TEST(only_requests_have_a_rate)
{
	struct np_plan p;

	client_params(&p, np_bench_find("TCP_RR"), AF_INET, 10);
	p.rate = RATE;
	assert_null(np_plan_no_rate(&p));
	assert_ptr_equal(np_engine_of(&p), &np_engine_epoll);
	assert_null(np_engine_why_not(&np_engine_epoll, &p));
	assert_null(np_engine_why_not(&np_engine_spin, &p));
	assert_non_null(np_engine_why_not(&np_engine_sync, &p));
	assert_non_null(np_engine_why_not(&np_engine_batch, &p));
	p.burst = 1;
	assert_non_null(np_plan_no_rate(&p));
	p.burst = 0;
	p.length = -10;
	assert_non_null(np_plan_no_rate(&p));
	client_params(&p, np_bench_find("UDP_RR"), AF_INET, 10);
	assert_null(np_plan_no_rate(&p));
	client_params(&p, np_bench_find("TCP_STREAM"), AF_INET, 10);
	assert_null(np_plan_no_rate(&p));
	client_params(&p, np_bench_find("TCP_MAERTS"), AF_INET, 10);
	p.far.call.offered = RATE;
	assert_null(np_plan_no_rate(&p));
	p.arrivals = NP_ARRIVE_POISSON; /* of which the far end is not told */
	assert_non_null(np_plan_no_rate(&p));
	client_params(&p, np_bench_find("TCP_SENDFILE"), AF_INET, 10);
	assert_non_null(np_plan_no_rate(&p));
	client_params(&p, np_bench_find("TCP_CRR"), AF_INET, 10);
	p.rate = RATE;
	assert_null(np_plan_no_rate(&p));
	assert_null(np_engine_why_not(&np_engine_epoll, &p));
	assert_non_null(np_engine_why_not(&np_engine_spin, &p));
	p.retry_connect = true;
	assert_non_null(np_plan_no_rate(&p));
}

/*
 * A verdict on `due` requests whose latencies are around 35 us, a few of them much longer; of each
 * thousand `late` were sent `late_us` after they were due.
 */
static void
judge(struct np_open_result *r, int due, int late, uint64_t late_us)
{
	FREED_BY(free_memory) struct np_hist *latency = np_hist_new();

	r->sent = np_hist_new();
	r->count.due = (uint64_t)due;
	for (int i = 0; i < due; i++) {
		uint64_t ns = i % 50 == 49 ? 200000 : 35000 + (uint64_t)(i * 7919 % 3000);

		np_hist_record(r->sent, ns);
		np_hist_record(latency, ns + (i * 37 % 1000 < late ? late_us * 1000 : 0));
	}
	np_open_judge(r, latency);
	free(r->sent);
}

TEST(lateness_that_changes_no_percentile_is_none_of_the_generator)
{
	struct np_open_result r = { .count.begun = 10000, .ran = 0.2 };

	judge(&r, 10000, 0, 0);
	assert_string_equal(r.limits, "");
	judge(&r, 10000, 30, 30);
	assert_string_equal(r.limits, "");
	judge(&r, 10000, 5, 100000);
	assert_string_equal(r.limits, "");
	judge(&r, 100, 10, 30);
	assert_string_equal(r.limits, "");
	r.count.begun = 9990;
	judge(&r, 10000, 0, 0);
	assert_string_equal(r.limits, "");
}

TEST(a_generator_that_limits_is_told)
{
	struct np_open_result r = { .count.begun = 9989, .ran = 0.2 };

	judge(&r, 10000, 0, 0);
	assert_non_null(strstr(r.limits, "99.89 % of the due requests were sent"));
	assert_non_null(strstr(r.limits, "woken late, or stopped"));
	r.count.begun = 10000;
	judge(&r, 10000, 1000, 7);
	assert_non_null(strstr(r.limits, "P50 is 0.043"));
	r.waited = 0.3;
	judge(&r, 10000, 30, 5000);
	assert_non_null(strstr(r.limits, "P99 is 5.0"));
	assert_non_null(strstr(r.limits, " ms from when requests were due, 0.2"));
	assert_non_null(strstr(r.limits, "waited for a processor 30 % of the time"));
	judge(&r, 100, 50, 5000); /* too few for an interval of P99 */
	assert_non_null(strstr(r.limits, "P99 is 5.0"));
	r.ran = 0.95;
	judge(&r, 10000, 200, 1000);
	assert_non_null(strstr(r.limits, "ran 95 % of the time"));
	r.count.held = 1;
	judge(&r, 10000, 200, 1000);
	assert_non_null(strstr(r.limits, "its maximum of "));
}

TEST_MAIN(np_drive_prepare())
