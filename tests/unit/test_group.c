/*
 * Groups: several sessions whose windows open at one moment, and one result of all of them.
 */
#include "run/trial.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/log.h"
#include "run/server.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/session.h"
#include "tests/lib/sockets.h"

enum { SESSIONS = 4, MOST = 8, LATER_MS = 300, LONG_S = 60 };

/* What a daemon does with a session beside serving it. */
enum whim { SERVE, REFUSE, HANG_UP };

struct daemon;

struct served {
	struct daemon *daemon;
	int fd;
	enum whim whim;
	pthread_t thread;
};

/* One that serves a number of sessions at a time. */
struct daemon {
	int listener, sessions;
	enum whim whim; /* of the last session; HANG_UP: of the first */
	unsigned caps;
	struct np_addr at;
	char port[8];
	struct served served[MOST];
	pthread_t thread;
};

static void *
serve(void *arg)
{
	struct served *s = arg;
	struct np_log log = { .level = NP_LOG_ERROR };
	struct np_server server = { .log = &log, .is_here = true, .caps = s->daemon->caps };
	struct np_err err;

	if (s->whim == REFUSE) {
		close(s->fd);
		return NULL;
	}
	serve_accepted(&server, s->fd, &err);
	return NULL;
}

static void *
be_daemon(void *arg)
{
	struct daemon *d = arg;

	for (int i = 0; i < d->sessions; i++) {
		d->served[i] = (struct served){ .daemon = d,
						.fd = accepted_from(d->listener),
						.whim = i + 1 == d->sessions ? d->whim : SERVE };
		pthread_create(&d->served[i].thread, NULL, serve, &d->served[i]);
	}
	if (d->whim == HANG_UP) {
		usleep(LATER_MS * 1000);
		shutdown(d->served[0].fd, SHUT_RDWR);
	}
	for (int i = 0; i < d->sessions; i++) {
		pthread_join(d->served[i].thread, NULL);
	}
	return NULL;
}

struct bed {
	struct daemon daemon;
	struct np_client client;
	struct np_target target;
	struct np_plan plan;
	struct np_addr peer;
	struct np_trial trial;
	struct np_outcome out;
	struct np_err err;
	int looks;
	bool odd, alarmed; /* a look was */
	struct np_counts looked;
};

static void
take_look(void *ctx, const struct np_plan *whole, const struct np_counts *sum, uint64_t started_ns,
	  uint64_t now_ns)
{
	struct bed *b = ctx;

	b->odd |= whole != &b->plan || started_ns == 0 || now_ns <= started_ns ||
		  sum->transactions < b->looked.transactions;
	b->looked = *sum;
	b->looks++;
}

static void
make_bed(struct bed *b, const char *bench, int64_t length, int sessions, enum whim whim)
{
	memset(b, 0, sizeof(*b));
	b->daemon.sessions = sessions;
	b->daemon.whim = whim;
	b->daemon.listener = bound_socket(AF_INET, SOCK_STREAM, &b->daemon.at);
	snprintf(b->daemon.port, sizeof(b->daemon.port), "%u", np_addr_port(&b->daemon.at));
	client_params(&b->plan, np_bench_find(bench), AF_INET, length);
	b->plan.flows = (uint32_t)sessions;
	if (length > 0) { /* it only has to be there */
		pace(&b->plan.near.call, 1, 1000);
	}
	b->peer = loopback(AF_INET, 0);
	b->target = (struct np_target){ .host.text = "127.0.0.1" };
	snprintf(b->target.port, sizeof(b->target.port), "%s", b->daemon.port);
	b->trial = (struct np_trial){
		.client = &b->client, .target = &b->target, .plan = &b->plan, .peer = &b->peer
	};
}

/* Connect the first session, and run them. */
static int
run_bed(struct bed *b)
{
	assert_int_equal(pthread_create(&b->daemon.thread, NULL, be_daemon, &b->daemon), 0);
	assert_int_equal(np_client_connect(&b->client, &b->target, &b->err), NP_OK);
	return np_group_run(&b->trial, &b->out, &b->err);
}

static void
leave_bed(struct bed *b)
{
	np_outcome_free(&b->out);
	np_chan_close(&b->client.chan);
	pthread_join(b->daemon.thread, NULL);
	close(b->daemon.listener);
}

/* ---- What comes of them ---- */

TEST(a_count_is_shared_out)
{
	static const int64_t shares[SESSIONS] = { 26, 26, 25, 25 };
	const struct np_tally *t;
	FREED_BY(leave_bed) struct bed b;

	make_bed(&b, "TCP_RR", -102, SESSIONS, SERVE);
	fail_if(run_bed(&b) != NP_OK, "%s", b.err.msg);
	t = &b.out.tally;
	assert_int_equal(b.out.sessions, SESSIONS);
	assert_true(b.out.measured);
	assert_ptr_equal(t->plan, &b.plan);
	assert_int_equal(t->end.count.transactions, 102);
	assert_int_equal(b.out.far.end.count.transactions, 102);
	assert_int_equal(b.out.far.end.count.received, t->end.count.sent);
	assert_int_equal(b.out.far.established, SESSIONS);
	assert_int_equal(np_hist_count(t->hist), 102);
	assert_int_equal(t->flows, SESSIONS);
	for (int i = 0; i < SESSIONS; i++) {
		assert_int_equal(t->flow[i].transactions, shares[i]);
		assert_true(t->flow[i].tcp.retransmitted_segments >= 0 &&
			    t->flow[i].tcp.rtt_us >= 0);
	}
	assert_true(np_tally_seconds(t) > 0);
}

TEST(whole_sends_are_shared_out)
{
	FREED_BY(leave_bed) struct bed b;

	make_bed(&b, "TCP_STREAM", -10000, SESSIONS, SERVE);
	b.plan.near.call.send_size = 1000;
	fail_if(run_bed(&b) != NP_OK, "%s", b.err.msg);
	assert_int_equal(b.out.tally.end.count.sent, 10000);
	assert_int_equal(b.out.tally.end.count.sends, 10);
	assert_int_equal(b.out.far.end.count.received, 10000);
}

TEST(a_stream_goes_each_way)
{
	const struct np_tally *t;
	FREED_BY(leave_bed) struct bed b;

	make_bed(&b, "TCP_STREAM", -100000, 2, SERVE);
	b.plan.both = true;
	b.plan.flows = 1;
	b.plan.near.call.send_size = b.plan.far.call.send_size = 1000;
	fail_if(run_bed(&b) != NP_OK, "%s", b.err.msg);
	t = &b.out.tally;
	assert_int_equal(b.out.sessions, 2);
	assert_int_equal(t->end.count.sent, 100000);
	assert_int_equal(t->end.count.received, 100000);
	assert_int_equal(t->flow[0].sent, 100000);
	assert_int_equal(t->flow[0].received, 0);
	assert_int_equal(t->flow[1].sent, 0);
	assert_int_equal(t->flow[1].received, 100000);
	assert_int_equal(b.out.far.end.count.received, 100000);
	assert_int_equal(b.out.far.end.count.sent, 100000);
	assert_true(t->end.send_size == 1000 && t->end.recv_size > 0);
}

TEST(looks_are_at_the_sum)
{
	FREED_BY(leave_bed) struct bed b;

	make_bed(&b, "TCP_RR", 1, SESSIONS, SERVE);
	b.trial.look = take_look;
	b.client.watch.every_ns = NP_SEC / 10;
	b.client.watch.ctx = &b;
	fail_if(run_bed(&b) != NP_OK, "%s", b.err.msg);
	assert_in_range(b.looks, 1, 10);
	assert_false(b.odd);
	assert_true(b.looked.transactions > 0);
	assert_true(b.looked.transactions <= b.out.tally.end.count.transactions);
	assert_true(np_tally_seconds(&b.out.tally) >= 1);
	assert_ptr_equal(b.client.watch.ctx, &b); /* the client is as it was */
	assert_null(b.client.gate);
}

/* ---- What goes wrong ---- */

TEST(one_that_is_refused_stops_all)
{
	uint64_t began = np_now();
	FREED_BY(leave_bed) struct bed b;

	make_bed(&b, "TCP_RR", LONG_S, SESSIONS, REFUSE);
	assert_int_equal(run_bed(&b), NP_EPEER);
	assert_non_null(strstr(b.err.msg, "flow "));
	assert_non_null(strstr(b.err.msg, " of 4: "));
	assert_false(b.out.measured);
	assert_true(np_now() - began < LONG_S * NP_SEC / 2);
}

TEST(one_that_breaks_ends_all)
{
	uint64_t began = np_now();
	FREED_BY(leave_bed) struct bed b;

	make_bed(&b, "TCP_RR", LONG_S, SESSIONS, HANG_UP);
	assert_int_equal(run_bed(&b), NP_EPEER);
	assert_non_null(strstr(b.err.msg, " of 4: lost the control connection"));
	assert_true(b.out.measured);
	assert_true(b.out.tally.end.count.transactions > 0);
	assert_int_equal(b.out.tally.flows, SESSIONS);
	assert_true(np_now() - began < LONG_S * NP_SEC / 2);
}

/* What has arrived of one that sent is not known; of all it would be less than was sent. */
TEST(one_that_breaks_reports_nothing)
{
	FREED_BY(leave_bed) struct bed b;

	make_bed(&b, "TCP_STREAM", LONG_S, SESSIONS, HANG_UP);
	b.plan.both = true;
	b.plan.flows = SESSIONS / 2;
	assert_int_equal(run_bed(&b), NP_EPEER);
	assert_true(b.out.tally.end.count.sent > 0 && b.out.measured);
	assert_int_equal(b.out.far.end.count.received, 0);
}

/* The first that lacks ends them; nothing is closed that was not opened. */
TEST(without_descriptors_none_begins)
{
	int input = fcntl(STDIN_FILENO, F_GETFD);
	struct rlimit before, few;
	struct bed b;
	int rc;

	make_bed(&b, "TCP_RR", LONG_S, SESSIONS, SERVE);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	rc = np_group_run(&b.trial, &b.out, &b.err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(rc, NP_ESYS);
	assert_non_null(strstr(b.err.msg, "4 sessions: Too many open files"));
	assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), input);
	np_outcome_free(&b.out);
	close(b.daemon.listener);
}

static _Atomic int alarms;

static void
on_alarm(int sig)
{
	alarms++;
}

/* Once all of them have begun, which a busy machine takes its time for. */
static void
send_alarm(void *ctx, const struct np_plan *whole, const struct np_counts *sum, uint64_t started_ns,
	   uint64_t now_ns)
{
	struct bed *b = ctx;

	take_look(ctx, whole, sum, started_ns, now_ns);
	if (sum->transactions > 0 && !b->alarmed) {
		b->alarmed = true;
		kill(getpid(), SIGALRM);
	}
}

/* It reaches one thread, and all sessions hear of it. */
TEST(a_signal_ends_all)
{
	uint64_t began = np_now();
	sigset_t let_in;
	FREED_BY(leave_bed) struct bed b;

	catch_signal(SIGALRM, on_alarm, &let_in);
	make_bed(&b, "TCP_RR", LONG_S, SESSIONS, SERVE);
	b.client.signals = (struct np_signals){ .let_in = &let_in, .received = &alarms };
	b.trial.look = send_alarm;
	b.client.watch.every_ns = LATER_MS * NP_MSEC;
	b.client.watch.ctx = &b;
	fail_if(run_bed(&b) != NP_OK, "%s", b.err.msg);
	assert_int_equal(b.out.cause, NP_BY_SIGNAL);
	assert_int_equal(alarms, 1);
	assert_true(b.out.tally.end.count.transactions > 0);
	assert_true(np_now() - began < LONG_S * NP_SEC / 2);
	pthread_sigmask(SIG_SETMASK, &let_in, NULL);
}

TEST(a_signal_that_the_parent_blocked_interrupts_waits)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, NP_PASS_SIGNAL);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	np_drive_prepare();
	pthread_sigmask(SIG_BLOCK, NULL, &set);
	assert_false(sigismember(&set, NP_PASS_SIGNAL));
}

/* ---- What takes how many ---- */

static uint32_t
sessions_of(const char *bench, uint32_t flows, bool both, unsigned caps)
{
	const struct np_hello_message granted = { .caps = caps };
	struct np_plan p;

	client_params(&p, np_bench_find(bench), AF_INET, 1);
	p.flows = flows;
	p.both = both;
	return np_group_sessions(&p, &granted);
}

TEST(a_daemon_of_plans_serves_many_flows)
{
	assert_int_equal(sessions_of("TCP_RR", 1, false, 0), 1);
	assert_int_equal(sessions_of("TCP_RR", 10, false, NP_CAP_PLAN), 1);
	assert_int_equal(sessions_of("TCP_RR", 10, false, 0), 10);
	assert_int_equal(sessions_of("TCP_SENDFILE", 10, false, NP_CAP_PLAN), 1);
	assert_int_equal(sessions_of("UDP_STREAM", 10, false, NP_CAP_PLAN), 1);
	assert_int_equal(sessions_of("TCP_MSS", 10, false, NP_CAP_PLAN), 10);
	assert_int_equal(sessions_of("TCP_STREAM", 1, true, 0), 2);
	assert_int_equal(sessions_of("TCP_STREAM", 10, true, NP_CAP_PLAN), 2);
	assert_int_equal(sessions_of("TCP_STREAM", 10, true, 0), 20);
}

/* The sessions of a daemon that knows no plans. */
static int
check(struct np_plan *p, const struct np_target *t, struct np_err *err)
{
	static struct np_client client;
	const struct np_trial trial = { .client = &client, .target = t, .plan = p };
	uint32_t sessions;

	return np_trial_sessions(&trial, &sessions, err);
}

static void
refused(struct np_plan *p, const struct np_target *t, const char *option)
{
	struct np_err err;

	assert_int_equal(check(p, t, &err), NP_EUSAGE);
	assert_non_null(strstr(err.msg, option));
}

TEST(what_can_t_be_shared_is_refused)
{
	struct np_target t = { .host.text = "there", .port = "1" };
	struct np_plan p, q;
	struct np_err err;

	client_params(&p, np_bench_find("TCP_RR"), AF_INET, 1);
	p.flows = SESSIONS;
	assert_int_equal(check(&p, &t, &err), NP_OK);
	q = p;
	q.far.sock.port = 5000;
	refused(&q, &t, "port 5000");
	q = p;
	q.far.place.threads = 2;
	refused(&q, &t, "--threads");
	q = p;
	q.warm_up_ms = 100;
	refused(&q, &t, "--warm-up");
	q = p;
	q.near.sock.port = 5001;
	refused(&q, &t, "port 5001");
	q = p;
	q.length = -(SESSIONS - 1);
	refused(&q, &t, "-l -3");
	q.length = -SESSIONS;
	assert_int_equal(check(&q, &t, &err), NP_OK);
	q.flows = NP_SESSIONS_MAX + 1;
	refused(&q, &t, "--flows 1001");
	snprintf(t.local_port, sizeof(t.local_port), "7000");
	refused(&p, &t, "port 7000");
}

/* Sessions go on in a list of processors where the one before left off. */
TEST(sessions_take_turns_on_processors)
{
	struct np_plan p, one;

	client_params(&p, np_bench_find("TCP_STREAM"), AF_INET, 1);
	assert_null(np_cpu_turns_parse(&p.near.place.turns, "0-4"));
	assert_null(np_cpu_turns_parse(&p.far.place.turns, "8+7"));
	one = p;
	np_plan_place(&one, 3);
	assert_int_equal(np_cpu_turn(&one.near.place.turns, 0), 3);
	assert_int_equal(one.far.place.cpu, 7);
	assert_int_equal(one.far.place.turns.count, 0);
	/* Several threads each. */
	p.flows = 4;
	p.near.place.threads = 2;
	p.far.place.threads = 3;
	one = p;
	np_plan_place(&one, 1);
	assert_int_equal(np_cpu_turn(&one.near.place.turns, 0), 2);
	assert_int_equal(one.far.place.cpu, -1);
	assert_int_equal(np_cpu_turn(&one.far.place.turns, 0), 7);
	assert_int_equal(np_cpu_turn(&one.far.place.turns, 1), 8);
}

TEST_MAIN(np_drive_prepare())
