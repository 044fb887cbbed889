/*
 * The engine `zerocopy`: what the kernel has in use, and that nothing of it is touched, or left
 * there, before it comes back.
 */
#include "bench/engine/zerocopy.h"

#include <time.h> /* of which errqueue.h is made */

#include <linux/errqueue.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/tally.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/sockets.h"

/* ---- Messages of the error queue ---- */

struct control {
	_Alignas(struct cmsghdr) char room[256];
	struct msghdr m;
};

static void
put(struct control *c, int level, int type, const struct sock_extended_err *e, size_t cut)
{
	struct cmsghdr *h = (struct cmsghdr *)(c->room + c->m.msg_controllen);

	h->cmsg_level = level;
	h->cmsg_type = type;
	h->cmsg_len = CMSG_LEN(sizeof(*e)) - cut;
	memcpy(CMSG_DATA(h), e, sizeof(*e));
	c->m.msg_control = c->room;
	c->m.msg_controllen += CMSG_SPACE(sizeof(*e));
}

TEST(only_what_is_of_zero_copy_counts)
{
	const struct sock_extended_err other = { .ee_origin = SO_EE_ORIGIN_ICMP, .ee_info = 9 };
	struct sock_extended_err e = { .ee_origin = SO_EE_ORIGIN_ZEROCOPY,
				       .ee_info = UINT32_MAX,
				       .ee_data = 3 };
	struct control c = { .m = { 0 } };
	struct np_released r;

	assert_false(np_released_of(&c.m, &r));
	put(&c, SOL_IP, IP_RECVERR, &other, 0);
	put(&c, SOL_IP, IP_TTL, &e, 0);
	put(&c, SOL_IP, IP_RECVERR, &e, 1); /* less than a word: the next one is where it was */
	assert_false(np_released_of(&c.m, &r));
	put(&c, SOL_IPV6, IPV6_RECVERR, &e, 0);
	assert_true(np_released_of(&c.m, &r));
	assert_true(r.first == UINT32_MAX && r.last == 3 && !r.copied);
	c.m.msg_controllen -= 20; /* as the kernel cuts it off */
	assert_false(np_released_of(&c.m, &r));
	memset(&c, 0, sizeof(c));
	e.ee_code = SO_EE_CODE_ZEROCOPY_COPIED;
	put(&c, SOL_IP, IP_RECVERR, &e, 0);
	assert_true(np_released_of(&c.m, &r) && r.copied);
	memset(&c, 0, sizeof(c));
	e.ee_errno = ENOMSG;
	put(&c, SOL_IP, IP_RECVERR, &e, 0);
	assert_false(np_released_of(&c.m, &r));
}

/* ---- What is in use ---- */

static uint32_t
released(struct np_borrowed *l, uint32_t first, uint32_t last)
{
	const struct np_released r = { .first = first, .last = last };

	return np_borrowed_release(l, &r);
}

TEST(numbers_wrap_around)
{
	bool held[4] = { false };
	struct np_borrowed l = { .next = UINT32_MAX - 1, .depth = 4, .held = held };

	for (int i = 0; i < 4; i++) {
		assert_false(held[np_borrowed_slot(&l)]);
		np_borrowed_add(&l);
	}
	assert_true(held[0] && held[1] && held[2] && held[3] && l.count == 4 && l.next == 2);
	assert_int_equal(released(&l, 0, 0), 1); /* not in turn */
	assert_true(!held[0] && l.count == 3);
	assert_int_equal(released(&l, UINT32_MAX - 1, 0), 2); /* one of them is back already */
	assert_true(!held[2] && !held[3] && held[1] && l.count == 1);
	assert_int_equal(released(&l, UINT32_MAX - 1, 1), 1);
	assert_int_equal(l.count, 0);
}

TEST(what_is_not_lent_is_not_released)
{
	bool held[2] = { false };
	struct np_borrowed l = { .next = 10, .depth = 2, .held = held };

	np_borrowed_add(&l);
	np_borrowed_add(&l);
	assert_int_equal(released(&l, 9, 11), 0);  /* more than there are slots */
	assert_int_equal(released(&l, 11, 12), 0); /* not sent yet */
	assert_int_equal(released(&l, 12, 11), 0);
	assert_int_equal(released(&l, 11, 10), 0);
	assert_int_equal(released(&l, 13, 13), 0);
	assert_int_equal(l.count, 2);
}

/* What was sent in the warm-up comes back later. */
TEST(a_warm_up_does_not_count)
{
	bool held[4] = { false };
	struct np_borrowed l = { .depth = 4, .held = held };

	np_borrowed_add(&l);
	np_borrowed_add(&l);
	l.since = 0;
	np_borrowed_add(&l);
	assert_int_equal(released(&l, 0, 2), 1);
	assert_int_equal(l.count, 0);
}

/* ---- Both ends ---- */

static void
skip_unless_zerocopy(void)
{
	const char *lacks = np_engine_zerocopy.lacks();

	skip_if(lacks != NULL, "%s", lacks);
}

static const struct np_engine *client_engine, *server_engine;
static uint32_t flows, threads;

static uint64_t
counted(const struct np_run *run, enum np_engine_count what)
{
	uint64_t sum = 0;

	NP_EACH_WORKER (w, run) {
		sum += w->engine.count[what];
	}
	return sum;
}

/* Over lo the kernel copies all these buffers when they are received. */
static void
check_transmitter(const struct np_run *run)
{
	uint64_t sends = np_counts_of(run).sends;

	assert_int_equal(counted(run, NP_E_BORROWED) + counted(run, NP_E_REFUSED), sends);
	assert_int_equal(counted(run, NP_E_RELEASED), counted(run, NP_E_BORROWED));
	assert_int_equal(counted(run, NP_E_COPIED), counted(run, NP_E_RELEASED));
	assert_int_equal(counted(run, NP_E_TRUNCATED), 0);
}

static void
run_pair(const char *bench, int64_t length)
{
	const struct np_run *tx, *rx;
	FREED_BY(ends_free) struct ends e;

	ends_plan(&e, np_bench_find(bench), AF_INET, -length);
	e.client.plan.near.place.engine = client_engine;
	e.client.plan.far.place.engine = server_engine;
	e.client.plan.flows = flows;
	e.client.plan.near.place.threads = e.client.plan.far.place.threads = threads;
	e.client.plan.near.call.send_size = e.client.plan.far.call.send_size = 3000;
	ends_make(&e);
	tx = &e.client.run;
	rx = &e.server.run;
	if (tx->plan->role != NP_LEAD) {
		tx = &e.server.run;
		rx = &e.client.run;
	}
	ends_run(&e, 0);
	assert_int_equal(np_counts_of(tx).sent, np_counts_of(rx).received);
	assert_true(np_counts_of(tx).sent >= (uint64_t)length);
	if (np_engine_of(tx->plan) == &np_engine_zerocopy && strcmp(bench, "TCP_SENDFILE") != 0) {
		check_transmitter(tx);
	}
	if (np_engine_of(rx->plan) == &np_engine_zerocopy) {
		assert_int_equal(counted(rx, NP_E_TRUNCATED), np_counts_of(rx).received);
	}
	assert_no_allocation(&e);
}

TEST(both_ends_count_the_same)
{
	static const char *const benches[] = { "TCP_STREAM", "TCP_MAERTS", "TCP_SENDFILE" };
	static const struct np_engine *const others[] = { NULL, &np_engine_zerocopy,
							  &np_engine_epoll };

	skip_unless_zerocopy();
	for (size_t i = 0; i < LEN(benches); i++) {
		for (size_t j = 0; j < LEN(others); j++) {
			flows = threads = 1;
			client_engine = &np_engine_zerocopy;
			server_engine = others[j];
			run_pair(benches[i], 3000000);
			client_engine = others[j];
			server_engine = &np_engine_zerocopy;
			run_pair(benches[i], 3000000);
		}
		client_engine = server_engine = &np_engine_zerocopy;
		flows = 5;
		run_pair(benches[i], 3000000);
		threads = 2;
		run_pair(benches[i], 3000000);
		threads = 5;
		run_pair(benches[i], 3000000);
	}
}

/* So few that no queue drops any. */
TEST(datagrams_are_told_apart)
{
	skip_unless_zerocopy();
	flows = threads = 1;
	client_engine = server_engine = &np_engine_zerocopy;
	run_pair("UDP_STREAM", 60000);
	flows = 3;
	run_pair("UDP_STREAM", 60000);
}

/* ---- A far end that takes nothing ---- */

TEST(nothing_is_left_in_the_kernel)
{
	struct np_addr at;
	FREED_BY(end_free) struct end e = { .rc = -1 };
	FREED_BY(close_fd) int silent = bound_socket(AF_INET, SOCK_STREAM, &at), taken = -1;
	const struct np_worker *w;

	skip_unless_zerocopy();
	assert_int_equal(listen(silent, 1), 0);
	client_params(&e.plan, np_bench_find("TCP_STREAM"), AF_INET, 0);
	e.plan.near.place.engine = &np_engine_zerocopy;
	e.plan.near.call.send_size = 100000;
	end_open(&e);
	w = e.run.worker;
	end_aim(&e, &at);
	end_start(&e);
	assert_int_equal(sem_wait(&e.looping), 0);
	taken = accept(silent, NULL, NULL);
	for (uint64_t until = np_deadline(LONG_MS * NP_MSEC);
	     np_get(&w->count->sends) < 2 && np_now() < until;) {
		usleep(1000);
	}
	assert_true(np_get(&w->count->sends) >= 2);
	end_stop(&e);
	np_run_read_closing(&e.run); /* before the kernel forgets it */
	assert_true(e.run.closing.moved > 0);
	np_run_close(&e.run);
	assert_int_equal(w->engine.count[NP_E_RELEASED], w->engine.count[NP_E_BORROWED]);
	assert_non_null(w->send_ring.slots);
}

/* ---- The ring ---- */

static uint32_t
width_of(int32_t message, int32_t sndbuf, uint32_t conns)
{
	struct np_plan p;

	client_params(&p, np_bench_find("TCP_STREAM"), AF_INET, 1);
	p.near.call.send_size = message;
	p.near.sock.sndbuf = sndbuf;
	p.flows = conns;
	return np_engine_zerocopy.width(&p);
}

/* Large messages have fewer buffers: a ring has its limit (NP_RING_MAX). */
TEST(a_ring_has_room_for_what_is_asked)
{
	assert_int_equal(width_of(0, -1, 1), 64);
	assert_int_equal(width_of(1000, -1, 1), 262);
	assert_int_equal(width_of(1 << 20, -1, 1), 64);
	assert_int_equal(width_of(16 << 20, -1, 1), 4);
	assert_int_equal(width_of(100 << 20, -1, 1), 2);
	assert_int_equal(width_of(0, 4 << 20, 1), 8);
	assert_int_equal(width_of(1 << 20, -1, 100), 200);
	assert_int_equal(width_of(64, -1, 10), 10 * 1024);
}

/* ---- Where it is refused ---- */

static const char *
why_not(const char *bench, void (*change)(struct np_plan *p))
{
	struct np_plan p;

	client_params(&p, np_bench_find(bench), AF_INET, 1);
	if (change != NULL) {
		change(&p);
	}
	return np_engine_zerocopy.why_not(&p);
}

static void
by_write(struct np_plan *p)
{
	p->use_write = true;
}

static void
touched(struct np_plan *p)
{
	p->near.call.dirty = 1;
}

static void
spliced(struct np_plan *p)
{
	p->copy_avoidance = true;
}

TEST(it_says_where_it_can_not)
{
	static const char *const benches[] = { "TCP_STREAM", "TCP_MAERTS", "UDP_STREAM",
					       "TCP_SENDFILE" };
	static const char *const others[] = { "TCP_RR", "UDP_RR", "TCP_CRR", "TCP_CC", "TCP_MSS" };

	for (size_t i = 0; i < LEN(benches); i++) {
		assert_null(why_not(benches[i], NULL));
	}
	for (size_t i = 0; i < LEN(others); i++) {
		assert_has(why_not(others[i], NULL), "streams");
	}
	assert_has(why_not("STREAM_STREAM", NULL), "TCP and UDP");
	assert_has(why_not("DG_STREAM", NULL), "TCP and UDP");
	assert_has(why_not("DLCL_STREAM", NULL), "TCP and UDP");
	assert_has(why_not("TCP_STREAM", by_write), "-I");
	assert_null(why_not("TCP_MAERTS", by_write));
	assert_has(why_not("TCP_MAERTS", touched), "-k");
	assert_null(why_not("TCP_STREAM", touched));
	assert_has(why_not("TCP_MAERTS", spliced), "-V");
	assert_null(why_not("TCP_STREAM", spliced));
}

TEST_MAIN(np_drive_prepare())
