/*
 * What both ends of a test know about it comes together at the client; and a daemon that knows
 * nothing of that, or answers nonsense, costs no more than the far end's evidence.
 */
#include "base/clock.h"
#include "run/client.h"
#include "stats/record.h"
#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/daemon.h"
#include "tests/lib/ends.h"
#include "tests/lib/session.h"
#include "tests/lib/sockets.h"

/* A daemon, its client, and what came of their test. */
struct meeting {
	struct daemon d;
	struct np_client c;
	struct np_outcome out;
	struct np_err err;
};

/* caps 0: it has never heard of greetings, and the client connects again, as behind a script. */
static void
start(struct daemon *d, unsigned caps, void (*script)(int fd))
{
	*d = (struct daemon){
		.sessions = caps == 0 || script != NULL ? 2 : 1,
		.script = script,
		.server.caps = caps,
	};
	daemon_begin(d);
}

/* The client wants that of the daemon, and collects as much itself. */
static void
greet_as(struct meeting *m, struct np_hello_message wants, unsigned collects)
{
	struct np_target target = { .host.text = "127.0.0.1", .wants = wants };

	snprintf(target.port, sizeof(target.port), "%s", m->d.port);
	m->c = (struct np_client){ .collect = { .caps = collects, .every_ms = wants.every_ms } };
	memset(&m->out, 0, sizeof(m->out));
	fail_if(np_client_connect(&m->c, &target, &m->err) != NP_OK, "%s", m->err.msg);
}

static void
greet(struct meeting *m)
{
	greet_as(m,
		 (struct np_hello_message){
		     .version = NP_EXT_VERSION, .caps = NP_CAP_TEST | NP_CAP_PLAN, .every_ms = 10 },
		 NP_CAP_TEST);
}

static void
meet(struct meeting *m, unsigned caps, void (*script)(int fd))
{
	start(&m->d, caps, script);
	greet(m);
}

static void
part(struct meeting *m)
{
	np_outcome_free(&m->out);
	np_chan_close(&m->c.chan);
	daemon_end(&m->d);
}

static void
run(struct meeting *m, const char *name, int64_t length)
{
	static struct np_plan p;
	static struct np_terms terms;
	struct np_addr peer;

	client_params(&p, np_bench_find(name), AF_INET, length);
	terms = terms_for(&p);
	peer = peer_of(&p);
	fail_if(np_client_run(&m->c, &p, &terms, &peer, &m->out, &m->err) != NP_OK, "%s: %s", name,
		m->err.msg);
	assert_true(m->out.measured);
}

/* ---- Both ends ---- */

TEST(both_ends_tell_of_a_stream)
{
	struct np_bag_item near, far;
	FREED_BY(part) struct meeting m;

	meet(&m, NP_CAP_TEST | NP_CAP_HOST, NULL);
	assert_int_equal(m.c.granted.caps, NP_CAP_TEST); /* and no more than was asked for */
	assert_true(strstr(m.c.granted.identity, "plumbline") != NULL);
	run(&m, "TCP_STREAM", 1);
	assert_string_equal(m.out.far_lacks, "");
	assert_string_equal(np_bag_string(m.out.near_bag, "flow.role"), "transmit");
	assert_string_equal(np_bag_string(m.out.far_bag, "flow.role"), "receive");
	assert_true(np_bag_number(m.out.near_bag, "flow.bytes_sent") ==
		    np_bag_number(m.out.far_bag, "flow.bytes_received"));
	assert_true(np_bag_number(m.out.near_bag, "flow.bytes_sent") ==
		    (double)m.out.tally.end.count.sent);
	assert_true(np_bag_number(m.out.near_bag, "tcp.bytes_acked") >=
		    np_bag_number(m.out.near_bag, "flow.bytes_sent"));
	assert_true(np_bag_number(m.out.far_bag, "tcp.bytes_received") >=
		    np_bag_number(m.out.far_bag, "flow.bytes_received"));
	assert_true(np_bag_number(m.out.near_bag, "thread.cpu_share") > 0);
	assert_true(np_bag_number(m.out.far_bag, "thread.cpu_share") > 0);
	assert_true(np_bag_number(m.out.near_bag, "work.user_s") ==
		    np_bag_number(m.out.near_bag, "thread.user_s"));
	assert_true(np_bag_number(m.out.far_bag, "work.system_s") > 0);
	assert_false(np_bag_find(m.out.near_bag, "work.cycles", &near)); /* nobody asked */
	assert_true(np_bag_number(m.out.near_bag, "tcp.busy_us") > 0);
	/* Every 10 ms for a second, on a machine that may be busy with something else. */
	assert_true(np_bag_find(m.out.near_bag, "tcp.samples.rtt_us", &near));
	assert_true(np_bag_find(m.out.far_bag, "tcp.samples.bytes", &far));
	assert_in_range(near.count, 3, 135);
	assert_in_range(far.count, 3, 150);
	for (size_t i = 1; i < far.count; i++) {
		assert_true(far.ints[i] >= far.ints[i - 1]);
	}
	/* What figures are taken from, which an old kernel may not report. */
	for (int i = 0; i < NP_METRICS; i++) {
		const struct np_metric *f = &np_metrics[i];
		bool is_far = f->end == NP_METRIC_FAR;

		if (f->from != NULL && strncmp(f->from, "tcp.", strlen("tcp.")) == 0) {
			assert_true(
			    np_bag_find(is_far ? m.out.far_bag : m.out.near_bag, f->from, &near));
		}
	}
}

/* Or why it does not; a daemon's session asks for no counters. */
TEST(a_processor_counts_when_asked)
{
	static const char *const names[] = { "work.cycles", "work.instructions" };
	struct np_bag_item it;
	FREED_BY(part) struct meeting m;

	meet(&m, NP_CAP_TEST, NULL);
	m.c.collect.cycles = true;
	run(&m, "TCP_RR", -100);
	for (size_t i = 0; i < LEN(names); i++) {
		assert_true(np_bag_find(m.out.near_bag, names[i], &it));
		assert_true(it.kind == NP_BAG_UNREAD || (it.kind == NP_BAG_INT && it.i > 0));
		assert_false(np_bag_find(m.out.far_bag, names[i], &it));
	}
}

TEST(every_bench_has_evidence)
{
	for (const struct np_bench *b = NULL; (b = next_runnable(b)) != NULL;) {
		struct meeting m;

		meet(&m, NP_CAP_TEST | NP_CAP_PLAN, NULL);
		run(&m, b->name, b->pattern->transactions ? -20 : -20000);
		assert_non_null(m.out.near_bag);
		assert_true(np_bag_string(m.out.near_bag, "flow.role") != NULL);
		if (!b->pattern->probe) {
			assert_string_equal(m.out.far_lacks, "");
			assert_true(np_bag_string(m.out.far_bag, "flow.role") != NULL);
		}
		assert_int_equal(np_bag_left_out(m.out.near_bag), 0);
		part(&m);
	}
}

enum { TRANSACTIONS = 4000, BYTES = 64 + 32 };

static void
check_samples(const struct np_bag_item *s)
{
	assert_true(s->count > 0 && s->ints[s->count - 1] > 0);
	for (size_t n = 1; n < s->count; n++) {
		assert_true(s->ints[n] >= s->ints[n - 1]);
	}
	assert_true(s->ints[s->count - 1] <= TRANSACTIONS * BYTES);
}

/* On a busy machine the test may be over before the first look: then there are none. */
static bool
has_samples(const char *bench, const char *samples)
{
	struct np_bag_item near;
	FREED_BY(part) struct meeting m;
	bool found;

	meet(&m, NP_CAP_TEST, NULL);
	run(&m, bench, -TRANSACTIONS);
	found = np_bag_find(m.out.near_bag, samples, &near);
	if (found) {
		check_samples(&near);
	}
	return found;
}

/* Of transactions, too, and of connections, which leave no socket to be looked at. */
TEST(samples_count_the_bytes_so_far)
{
	static const struct {
		const char *bench, *samples;
	} rows[] = {
		{ "TCP_RR", "tcp.samples.bytes" },
		{ "UDP_RR", "flow.samples.bytes" },
		{ "TCP_CRR", "flow.samples.bytes" },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		bool found = false;

		for (int tries = 0; tries < 8 && !found; tries++) {
			found = has_samples(rows[i].bench, rows[i].samples);
		}
		assert_true(found);
	}
}

TEST(each_test_of_a_connection_has_its_own)
{
	FREED_BY(part) struct meeting m;

	meet(&m, NP_CAP_TEST, NULL);
	for (int i = 1; i < 4; i++) {
		run(&m, "TCP_RR", -10 * i);
		assert_true(np_bag_number(m.out.far_bag, "flow.transactions") == 10 * i);
		np_outcome_free(&m.out);
	}
}

/* Both ends number a test's datagrams when they have agreed on that, and only then. */
TEST(datagrams_are_numbered_by_agreement)
{
	struct np_addr peer = loopback(AF_INET, 0);
	static const unsigned grants[] = { NP_CAP_TEST, NP_CAP_TEST | NP_CAP_SEQUENCE };
	const struct np_bench *b = np_bench_find("UDP_STREAM");

	for (size_t i = 0; i < LEN(grants); i++) {
		struct np_plan p;
		FREED_BY(part) struct meeting m;

		start(&m.d, grants[i], NULL);
		greet_as(&m,
			 (struct np_hello_message){ .version = 1,
						    .caps = NP_CAP_TEST | NP_CAP_SEQUENCE },
			 NP_CAP_TEST);
		client_params(&p, b, AF_INET, -100 * 512);
		p.sequence = (m.c.granted.caps & NP_CAP_SEQUENCE) != 0;
		assert_int_equal(np_client_run(&m.c, &p, NULL, &peer, &m.out, &m.err), NP_OK);
		if (p.sequence) {
			assert_bag(m.out.far_bag, "udp.", "sent=100 unique=100 lost=0");
		} else {
			assert_true(isnan(np_bag_number(m.out.near_bag, "udp.sent")));
			assert_true(isnan(np_bag_number(m.out.far_bag, "udp.received")));
		}
	}
}

/* A client asks for ids in the test's request; evidence or not, our daemon has them. */
TEST(requests_have_ids_by_agreement)
{
	struct np_addr peer = loopback(AF_INET, 0);

	for (size_t i = 0; i < 2; i++) {
		struct np_bag_item bytes;
		struct np_plan p;
		FREED_BY(part) struct meeting m;

		meet(&m, NP_CAP_TEST, NULL);
		client_params(&p, np_bench_find("UDP_RR"), AF_INET, -50);
		p.ids = i == 0;
		assert_int_equal(np_client_run(&m.c, &p, NULL, &peer, &m.out, &m.err), NP_OK);
		assert_int_equal(m.out.tally.end.count.transactions, 50);
		assert_true(np_bag_find(m.out.near_bag, "flow.id_bytes", &bytes));
		assert_int_equal(bytes.kind, p.ids ? NP_BAG_INT : NP_BAG_UNREAD);
	}
}

TEST(nobody_collects_what_nobody_wants)
{
	FREED_BY(part) struct meeting m;

	start(&m.d, NP_CAP_TEST, NULL);
	greet_as(&m, (struct np_hello_message){ .version = 0 }, 0);
	run(&m, "TCP_RR", -10);
	assert_null(m.out.near_bag);
	assert_null(m.out.far_bag);
}

/* ---- Daemons that do not know of it ---- */

static void
take_frame(int fd)
{
	uint8_t frame[NP_FRAME_SIZE];

	get_bytes(fd, frame, sizeof(frame));
}

static void
hang_up(int fd)
{
	take_frame(fd);
}

static void
check_one_sided(void (*script)(int fd))
{
	FREED_BY(part) struct meeting m;

	meet(&m, 0, script);
	assert_int_equal(m.c.granted.caps, 0);
	run(&m, "TCP_STREAM", -100000);
	assert_true(np_bag_number(m.out.near_bag, "flow.bytes_sent") > 0);
	assert_null(m.out.far_bag);
	assert_true(strstr(m.out.far_lacks, "gives only netperf's results") != NULL);
}

TEST(a_stock_daemon_gives_its_results)
{
	check_one_sided(NULL); /* answers with NP_E_UNKNOWN_REQUEST */
}

TEST(a_daemon_that_hangs_up_gets_another_connection)
{
	check_one_sided(hang_up);
}

/* ---- Daemons that answer nonsense ---- */

static void
welcome(int fd)
{
	const struct np_hello_message m = { .version = 1, .caps = ~0U };
	uint8_t frame[NP_FRAME_SIZE];

	take_frame(fd);
	np_hello_put(frame, NP_EXT_WELCOME, &m);
	put_bytes(fd, frame, sizeof(frame));
}

/* The head of a bag of that many bytes, and some of them. */
static void
say_bag(int fd, size_t size, const uint8_t *fields, size_t some)
{
	uint8_t head[NP_TAGGED_AT];

	welcome(fd);
	free(next_message(fd));
	np_tagged_head(head, NP_EXT_BAG, size);
	put_bytes(fd, head, sizeof(head));
	put_bytes(fd, fields, some);
}

static void
say_too_much(int fd)
{
	say_bag(fd, NP_EXT_BYTES + 1, NULL, 0);
}

/* A field that is longer than the bag. */
static void
say_no_bag(int fd)
{
	static const uint8_t field[] = { 0, 0, 0, 1, 0, 0, 0, 99, 0, 0, 0, 1 };

	say_bag(fd, sizeof(field), field, sizeof(field));
}

static void
say_half_a_bag(int fd)
{
	static const uint8_t field[] = { 0, 0, 0, 1, 0, 0, 0, 16, 0, 0, 0, 1 };

	say_bag(fd, 24, field, sizeof(field));
}

TEST(nonsense_is_refused)
{
	static void (*const scripts[])(int) = { say_too_much, say_no_bag, say_half_a_bag };

	for (size_t i = 0; i < LEN(scripts); i++) {
		struct np_bag *far;
		FREED_BY(part) struct meeting m;

		start(&m.d, NP_CAP_TEST, scripts[i]);
		greet_as(&m, (struct np_hello_message){ .version = 1, .caps = NP_CAP_HOST }, 0);
		assert_int_equal(m.c.granted.caps, NP_CAP_HOST); /* not all that it says */
		assert_int_equal(np_client_host(&m.c, &far, &m.err), NP_EPEER);
		assert_null(far);
		np_chan_close(&m.c.chan);
		/* The thread waits for its second connection. */
		greet(&m);
	}
}

TEST(a_welcome_that_is_none_is_an_error)
{
	FREED_BY(part) struct meeting m;

	/* It hangs up: the second connection is served, by one who would know greetings. */
	meet(&m, NP_CAP_TEST, take_frame);
	assert_int_equal(m.c.granted.caps, 0);
}

/* ---- Questions without end ---- */

/* Ask so often, and tell how long the answers took. */
static uint64_t
time_of_questions(struct np_client *c, int count)
{
	const struct np_hello_message hello = { .version = NP_EXT_VERSION, .caps = NP_CAP_TEST };
	uint64_t before = np_now(), until = np_deadline(20 * NP_SEC);
	uint8_t frame[NP_FRAME_SIZE];
	struct np_err err;

	for (int i = 0; i < count; i++) {
		np_hello_put(frame, NP_EXT_HELLO, &hello);
		assert_int_equal(np_chan_send(&c->chan, frame, until, &err), NP_OK);
		assert_int_equal(np_chan_recv(&c->chan, "a welcome", until, NULL, &err), NP_OK);
		assert_int_equal(np_frame_head(c->chan.in).code, NP_EXT_WELCOME);
	}
	return np_now() - before;
}

/* A number of questions after a test, of which its evidence is one more, are answered without the
 * 10 ms each; a busy machine may take that long now and then.
 */
static bool
are_answered_at_once(struct meeting *m, int count)
{
	for (int tries = 0; tries < 8; tries++) {
		run(m, "TCP_RR", -10);
		np_outcome_free(&m->out);
		if (time_of_questions(&m->c, count) < (uint64_t)count * 10 * NP_MSEC) {
			return true;
		}
	}
	return false;
}

TEST(who_asks_without_end_is_answered_slowly)
{
	FREED_BY(part) struct meeting m;

	meet(&m, NP_CAP_TEST, NULL);
	time_of_questions(&m.c, 15); /* the greeting was the first one */
	assert_true(time_of_questions(&m.c, 6) >= 630 * NP_MSEC);
	assert_true(are_answered_at_once(&m, 15));
	assert_true(time_of_questions(&m.c, 1) >= 10 * NP_MSEC);
}

TEST_MAIN(np_drive_prepare())
