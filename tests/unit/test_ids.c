/*
 * Ids of requests and responses: the account with planted duplicates, late and stray ones; and the
 * loops against a far end that doubles, delays and swaps responses.
 */
#include "bench/ids.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/sockets.h"
#include "wire/token.h"

enum { DELAY_MS = 4 };

/* ---- The account ---- */

static struct np_counters counts;

static struct np_ids *
account(uint32_t width, uint32_t depth)
{
	struct np_id_place place = { .at = 2, .width = width };
	struct np_err err = { .code = NP_OK };
	struct np_ids *ids;

	memset(&counts, 0, sizeof(counts));
	ids = np_ids_new(place, depth, 1, &counts, &err);

	assert_non_null(ids);
	return ids;
}

/* Write and send one request; its bytes are those of its response, too. */
static void
request(struct np_ids *ids, char bytes[8], uint64_t now_ns)
{
	memset(bytes, 0, 8);
	np_id_write(ids->place, np_ids_next(ids), bytes);
	np_ids_sent(ids, now_ns);
}

static void
assert_account(const struct np_ids *ids, uint64_t duplicated, uint64_t late, uint64_t stray)
{
	assert_int_equal(np_get(&ids->count->duplicated), duplicated);
	assert_int_equal(np_get(&ids->count->late), late);
	assert_int_equal(np_get(&ids->count->stray), stray);
}

static void
play_all(uint32_t width)
{
	FREED_BY(free_memory) struct np_ids *ids = account(width, 4);
	char first[8], second[8], third[8], never[8] = { 0, 0, 99, 99, 99, 99 };
	uint64_t sent_ns = 0;

	assert_false(np_ids_answers(ids, never, 8, &sent_ns));
	assert_account(ids, 0, 0, 1); /* nothing was asked yet */
	request(ids, first, 100);
	request(ids, second, 200);
	assert_false(np_ids_answers(ids, never, 8, &sent_ns));
	assert_false(np_ids_answers(ids, first, 2, &sent_ns)); /* too short for an id */
	assert_account(ids, 0, 0, 3);
	assert_true(np_ids_answers(ids, second, 8, &sent_ns));
	assert_int_equal(sent_ns, 200);
	assert_false(np_ids_answers(ids, second, 8, &sent_ns));
	assert_account(ids, 1, 0, 3);
	assert_int_equal(np_ids_give_up(ids, 99, UINT64_MAX), 0);
	assert_int_equal(np_ids_give_up(ids, 100, UINT64_MAX), 1);
	assert_int_equal(ids->in_flight, 0);
	ids->begun_ns = 150; /* an open loop's, sent later than it was due */
	request(ids, third, 100);
	ids->begun_ns = 0;
	assert_int_equal(np_ids_give_up(ids, UINT64_MAX, 149), 0);
	assert_int_equal(np_ids_give_up(ids, 99, 150), 0);
	assert_int_equal(np_ids_give_up(ids, 100, 150), 1);
	request(ids, third, 300);
	assert_false(np_ids_answers(ids, first, 8, &sent_ns));
	assert_account(ids, 1, 1, 3);
	assert_false(np_ids_answers(ids, first, 8, &sent_ns)); /* and its duplicate */
	assert_account(ids, 2, 1, 3);
	assert_true(np_ids_answers(ids, third, 8, &sent_ns));
	assert_int_equal(sent_ns, 300);
	assert_int_equal(ids->in_flight, 0);
}

TEST(each_response_is_what_it_is)
{
	play_all(1);
	play_all(NP_IDS_WIDE);
}

/* The daemon's second answer to a token, of which a response has room for no more than that. */
TEST(the_answer_to_a_token_is_no_response)
{
	static const size_t sizes[] = { 1, 3, NP_TOKEN_SIZE };

	for (size_t i = 0; i < LEN(sizes); i++) {
		FREED_BY(free_memory) struct np_ids *ids = account(i < 2 ? 1 : NP_IDS_WIDE, 4);
		uint8_t token[NP_TOKEN_SIZE];
		uint64_t sent_ns;

		ids->place.at = 0;
		np_token_put(token, NP_TOKEN_TAKEN, NULL);
		np_ids_sent(ids, 1);
		assert_false(np_ids_answers(ids, (const char *)token, sizes[i], &sent_ns));
		assert_account(ids, 0, 0, 0);
	}
}

/* However many were given up at once, their responses are late ones. */
TEST(late_ones_of_a_large_burst_are_known)
{
	enum { BURST = 700 };
	FREED_BY(free_memory) struct np_ids *ids = account(NP_IDS_WIDE, BURST);
	char bytes[BURST][8], again[8];
	uint64_t sent_ns = 0;

	for (int i = 0; i < BURST; i++) {
		request(ids, bytes[i], 1);
	}
	assert_int_equal(np_ids_give_up(ids, UINT64_MAX, UINT64_MAX), BURST);
	for (int i = 0; i < BURST; i++) {
		request(ids, again, 2);
	}
	for (int i = 0; i < BURST; i++) {
		assert_false(np_ids_answers(ids, bytes[i], 8, &sent_ns));
	}
	assert_account(ids, 0, BURST, 0);
	assert_true(ids->came_late);
	assert_in_range(ids->answered_ns, 1, np_now()); /* so that the wait is no outage */
}

/* One request is never answered, while ids of one byte come round again and again. */
TEST(ids_come_round)
{
	FREED_BY(free_memory) struct np_ids *ids = account(1, 2);
	char lost[8], bytes[8];
	uint64_t sent_ns = 0;

	request(ids, lost, 1);
	for (uint64_t n = 0; n < 2000; n++) {
		request(ids, bytes, 2 + n);
		assert_int_not_equal(bytes[2], lost[2]);
		assert_true(np_ids_answers(ids, bytes, 8, &sent_ns));
		assert_int_equal(sent_ns, 2 + n);
	}
	assert_int_equal(np_ids_give_up(ids, UINT64_MAX, UINT64_MAX), 1);
	assert_account(ids, 0, 0, 0);
}

/* Where messages have none they answer in their order, and the next one always has a place. */
TEST(without_ids_order_tells)
{
	for (uint32_t depth = 1; depth <= 64; depth *= 2) {
		struct np_err err = { .code = NP_OK };
		struct np_id_place none = { .width = 0 };
		FREED_BY(free_memory)
		struct np_ids *ids = np_ids_new(none, depth, 2, &counts, &err);
		char bytes[8] = "";
		uint64_t sent_ns = 0;

		assert_non_null(ids);
		counts.surplus = 0;
		for (uint64_t n = 0; n < 1000; n++) {
			for (uint32_t i = ids->in_flight; i < depth; i++) {
				np_ids_sent(ids, ids->next);
				assert_int_equal(np_ids_next(ids), ids->next);
			}
			assert_true(np_ids_answers(ids, bytes, sizeof(bytes), &sent_ns));
			assert_int_equal(sent_ns, n);
		}
		assert_int_equal(np_ids_give_up(ids, UINT64_MAX, UINT64_MAX), depth - 1);
		assert_false(np_ids_answers(ids, bytes, sizeof(bytes), &sent_ns));
		assert_int_equal(np_get(&counts.surplus), 1);
	}
}

TEST(the_sizes_say_where_an_id_is)
{
	static const struct {
		const char *bench;
		int32_t request, response;
		uint32_t width;
	} rows[] = {
		{ "UDP_RR", 1, 1, 1 },      { "UDP_RR", 3, 100, 1 },     { "UDP_RR", 4, 100, 4 },
		{ "UDP_RR", 1400, 64, 4 },  { "TCP_RR", 100, 100, 0 },   { "DG_RR", 100, 100, 0 },
		{ "DLCL_RR", 100, 100, 4 }, { "UDP_STREAM", -1, -1, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct np_bench *bench = np_bench_find(rows[i].bench);
		struct np_plan p;

		client_params(&p, bench, AF_INET, 1);
		p.request = rows[i].request;
		p.response = rows[i].response;
		assert_int_equal(np_id_place(&p).width, 0); /* not agreed on */
		p.ids = true;
		assert_int_equal(np_id_place(&p).width, rows[i].width);
		assert_int_equal(np_ids_useful(&p), rows[i].width > 0);
	}
}

/* ---- A far end that does not behave ---- */

struct responder {
	int fd;
	/* What the i-th request (from 1) is answered by: 0 to 2 responses. */
	unsigned (*answers)(unsigned i);
	bool swaps; /* answers requests two by two, the second one first */
	pthread_t thread;
};

static void
respond(const struct responder *r, const char *bytes, const struct np_addr *to)
{
	send_datagram(r->fd, bytes, 32, to);
}

static void *
play_responder(void *arg)
{
	static const struct timespec delay = { .tv_nsec = DELAY_MS * NP_MSEC };
	const struct responder *r = arg;
	char bytes[2][256];
	struct np_addr from;

	for (unsigned i = 1; wait_readable(r->fd); i++) {
		char *at = bytes[i % 2];

		if (receive_datagram(r->fd, at, 256, &from) <= 0) {
			break;
		}
		nanosleep(&delay, NULL);
		if (r->swaps && i % 2 == 0) {
			respond(r, bytes[0], &from);
			respond(r, bytes[1], &from);
		}
		for (unsigned n = r->swaps ? 0 : r->answers(i); n > 0; n--) {
			respond(r, at, &from);
		}
	}
	return NULL;
}

/* A far end that copies nothing. */
static void *
respond_without_ids(void *arg)
{
	const struct responder *r = arg;
	char bytes[256];
	struct np_addr from;

	while (wait_readable(r->fd)) {
		if (receive_datagram(r->fd, bytes, 256, &from) <= 0) {
			break;
		}
		memset(bytes, 0, 32);
		respond(r, bytes, &from);
	}
	return NULL;
}

static unsigned
twice_at_ten(unsigned i)
{
	return i == 10 ? 2 : 1;
}

static unsigned
none_at_ten(unsigned i)
{
	return i == 10 ? 0 : 1;
}

/* Run a requester with a finished plan against r. length_ns 0: as planned. */
static void
play_both(struct responder *r, struct end *e, uint64_t length_ns)
{
	struct np_addr at;

	r->fd = bound_socket(AF_INET, SOCK_DGRAM, &at);
	assert_int_equal(pthread_create(&r->thread, NULL, play_responder, r), 0);
	e->length_ns = length_ns;
	end_run(e, &at);
	pthread_join(r->thread, NULL);
	close(r->fd);
}

/* A requester of 30 transactions and what it counted; the caller's to end_free(). */
static const struct np_counters *
run_against(struct responder *r, struct end *e, bool ids, uint32_t burst)
{
	client_params(&e->plan, np_bench_find("UDP_RR"), AF_INET, -30);
	e->plan.ids = ids;
	e->plan.burst = burst;
	e->plan.timeout_ms = r->answers == none_at_ten ? 100 : 60000;
	play_both(r, e, 0);
	e->run.side->drain(e->run.worker);
	assert_int_equal(e->run.err.code, NP_OK);
	assert_int_equal(np_get(&e->run.worker->count->transactions), 30);
	return e->run.worker->count;
}

/* Each transaction takes the responder's delay; one ahead, all that follow would take none. */
TEST(a_duplicate_answers_nothing)
{
	for (uint32_t burst = 0; burst < 2; burst++) {
		struct responder r = { .answers = twice_at_ten };
		FREED_BY(end_free) struct end e = { .rc = -1 };
		const struct np_counters *c = run_against(&r, &e, true, burst);
		struct np_hist_summary times;

		np_hist_summarise(e.run.worker->hist, &times);
		assert_int_equal(np_get(&c->duplicated), 1);
		assert_int_equal(np_get(&c->late) + np_get(&c->stray) + np_get(&c->lost), 0);
		assert_true(times.min >= (DELAY_MS - 1) * NP_MSEC);
	}
}

/*
 * A time-out that begins in the warm-up does not begin anew with the window, which is shorter than
 * one, and the window has lost nothing. A busy machine may be late.
 */
static void
lose_in_warm_up(uint32_t burst)
{
	uint64_t done = 0, lost = 1;

	for (int i = 0; i < 3 && (done == 0 || lost > 0); i++) {
		struct responder r = { .answers = none_at_ten };
		FREED_BY(end_free) struct end e = { .rc = -1 };

		client_params(&e.plan, np_bench_find("UDP_RR"), AF_INET, 1);
		e.plan.ids = true;
		e.plan.burst = burst;
		e.plan.warm_up_ms = 900;
		e.plan.timeout_ms = 1000;
		play_both(&r, &e, 900 * NP_MSEC);
		done = np_get(&e.run.worker->count->transactions);
		lost = np_get(&e.run.worker->count->lost);
		assert_true(np_get(&e.run.worker->count->sends) - done - lost <= burst + 1);
	}
	assert_true(done > 0);
	assert_int_equal(lost, 0);
}

TEST(what_is_lost_in_a_warm_up_is_given_up_in_its_time)
{
	lose_in_warm_up(0);
	lose_in_warm_up(3);
}

/* What setup took for granted is undone where the far end has no ids. */
TEST(a_far_end_may_have_none)
{
	for (uint32_t burst = 0; burst < 4; burst += 3) {
		struct responder r = { .fd = -1 };
		FREED_BY(end_free) struct end e = { .rc = -1 };
		struct np_addr at;

		r.fd = bound_socket(AF_INET, SOCK_DGRAM, &at);
		assert_int_equal(pthread_create(&r.thread, NULL, respond_without_ids, &r), 0);
		client_params(&e.plan, np_bench_find("UDP_RR"), AF_INET, -30);
		e.plan.ids = true;
		e.plan.burst = burst;
		end_open(&e);
		assert_non_null(e.run.conn->ids);
		e.run.side->granted(e.run.worker, false);
		assert_int_equal(e.run.conn->ids->place.width, 0);
		end_aim(&e, &at);
		end_start(&e);
		end_join(&e);
		assert_int_equal(e.rc, NP_OK);
		pthread_join(r.thread, NULL);
		assert_int_equal(np_get(&e.run.worker->count->transactions), 30);
		close(r.fd);
	}
}

TEST(without_ids_a_surplus_is_told)
{
	struct responder r = { .answers = twice_at_ten };
	FREED_BY(end_free) struct end e = { .rc = -1 };
	const struct np_counters *c = run_against(&r, &e, false, 0);

	assert_int_equal(np_get(&c->surplus), 1);
	assert_int_equal(np_get(&c->duplicated), 0);
}

/* The oldest request gets each response: the last one has none. */
TEST(without_ids_a_loss_is_told)
{
	struct responder r = { .answers = none_at_ten };
	FREED_BY(end_free) struct end e = { .rc = -1 };

	client_params(&e.plan, np_bench_find("UDP_RR"), AF_INET, 1);
	e.plan.burst = 3;
	e.plan.timeout_ms = 60000;
	play_both(&r, &e, 900 * NP_MSEC);
	e.run.side->drain(e.run.worker);
	assert_int_equal(np_get(&e.run.worker->count->lost), 1);
	assert_int_equal(np_get(&e.run.worker->count->surplus), 0);
}

/* A busy machine may delay others beyond the time-out, too. */
TEST(what_is_lost_is_given_up)
{
	for (uint32_t burst = 0; burst < 4; burst += 3) {
		struct responder r = { .answers = none_at_ten };
		FREED_BY(end_free) struct end e = { .rc = -1 };
		const struct np_counters *c = run_against(&r, &e, true, burst);

		assert_true(np_get(&c->lost) >= 1);
		assert_true(np_get(&c->late) < np_get(&c->lost));
		assert_int_equal(np_get(&c->sends), 30 + np_get(&c->lost));
		assert_int_equal(e.run.conn->sent, np_get(&c->sent));
		assert_int_equal(np_get(&c->duplicated) + np_get(&c->stray), 0);
	}
}

/* Never pauses, so that no wait of the requester's is interrupted. */
struct flood {
	_Atomic bool over;
	struct np_addr to;
	int fd;
};

static void *
play_flood(void *arg)
{
	struct flood *f = arg;

	while (!atomic_load(&f->over)) {
		send_datagram(f->fd, "stranger", 8, &f->to);
	}
	return NULL;
}

/* False: there was no processor for a stranger, or for giving up a request. */
static bool
is_flooded(uint32_t burst)
{
	struct flood flood = { .over = false };
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_addr mute_at, own = { .len = sizeof(own.sa) };
	FREED_BY(close_fd) int mute = bound_socket(AF_INET, SOCK_DGRAM, &mute_at);
	const struct np_counters *c;
	pthread_t thread;

	client_params(&e.plan, np_bench_find("UDP_RR"), AF_INET, 1);
	e.plan.ids = true;
	e.plan.burst = burst;
	e.plan.timeout_ms = 20;
	end_open(&e);
	end_aim(&e, &mute_at);
	assert_int_equal(getsockname(e.run.conn->fd, (struct sockaddr *)&own.sa, &own.len), 0);
	flood.to = loopback(AF_INET, np_addr_port(&own));
	flood.fd = bound_socket(AF_INET, SOCK_DGRAM, &own);
	assert_int_equal(pthread_create(&thread, NULL, play_flood, &flood), 0);
	e.drive.length_ns = 300 * NP_MSEC;
	end_start(&e);
	end_join(&e);
	atomic_store(&flood.over, true);
	pthread_join(thread, NULL);
	close(flood.fd);
	c = e.run.worker->count;
	assert_int_equal(e.drive.cause, NP_BY_CLOCK);
	assert_int_equal(np_get(&c->transactions), 0);
	return np_get(&c->stray) > 0 && np_get(&c->lost) > 0;
}

/* Strangers' messages are counted, requests are given up and the test ends in time all the same. */
TEST(a_flood_of_strangers_stops_nothing)
{
	for (uint32_t burst = 0; burst < 4; burst += 3) {
		int left = 10;

		while (!is_flooded(burst)) {
			assert_true(--left > 0);
		}
	}
}

TEST(swapped_responses_find_their_requests)
{
	struct responder r = { .swaps = true };
	FREED_BY(end_free) struct end e = { .rc = -1 };
	const struct np_counters *c = run_against(&r, &e, true, 1);

	assert_int_equal(np_get(&c->duplicated) + np_get(&c->late) + np_get(&c->stray), 0);
}

/* ---- Both ends ---- */

static void
agree_on_ids(struct np_plan *p)
{
	p->ids = true;
	p->near.call.dirty = p->far.call.dirty = 16; /* the codec comes after the touching */
}

static void
agree_on_narrow_ids(struct np_plan *p)
{
	p->ids = true;
	p->request = p->response = 1;
	p->burst = 7;
}

TEST(both_ends_use_them)
{
	static void (*const changes[])(struct np_plan *) = { agree_on_ids, agree_on_narrow_ids };
	static const char *const benches[] = { "UDP_RR", "DLCL_RR" };

	for (size_t i = 0; i < 4; i++) {
		const struct np_bench *bench = np_bench_find(benches[i / 2]);
		struct ends e;
		struct np_bag *b;

		if (!can_run(bench)) {
			continue;
		}
		ends_open(&e, bench, AF_INET, -500, changes[i % 2]);
		ends_run(&e, 0);
		b = np_bag_new();
		np_ids_put(&e.client.run, b);
		np_ids_put(&e.server.run, b); /* has none */
		assert_int_equal(np_get(&e.client.run.worker->count->transactions), 500);
		assert_true(np_bag_number(b, "flow.id_bytes") == (i == 1 ? 1 : NP_IDS_WIDE));
		assert_true(np_bag_number(b, "flow.responses_stray") == 0);
		np_bag_free(b);
		ends_free(&e);
	}
}

TEST_MAIN(np_drive_prepare())
