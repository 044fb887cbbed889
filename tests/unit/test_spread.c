/*
 * Data connections that are chosen among: those that say so are kept by the end that accepts, in
 * whatever order they come and go; the end that connects says so.
 */
#include "bench/transport/many.h"

#include <poll.h>
#include <pthread.h>

#include "bench/bench.h"
#include "bench/engine/syscall.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/sockets.h"

enum { FLOWS = 3 };

static void *
meet(void *arg)
{
	struct end *e = arg;

	e->rc = np_run_establish(&e->run, &e->err);
	return NULL;
}

static void
meet_beside(struct end *e)
{
	assert_int_equal(pthread_create(&e->thread, NULL, meet, e), 0);
}

static void
have_met(struct end *e)
{
	assert_int_equal(pthread_join(e->thread, NULL), 0);
	fail_if(e->rc != NP_OK, "%s", e->err.msg);
}

static void
spread_flows(struct np_plan *p)
{
	p->flows = FLOWS;
	p->spread = true;
}

static void
open_both(struct ends *e)
{
	ends_open(e, np_bench_find("TCP_RR"), AF_INET, 1, spread_flows);
}

static int
call(const struct ends *e)
{
	struct np_addr at = way_to(&e->client.plan, &e->server.run.end.local);

	return connected_to(&at);
}

static uint32_t
standing(const struct np_run *run)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < run->conns; i++) {
		n += run->conn[i].fd >= 0;
	}
	return n;
}

/* What is closed or reset gives its place to another one, before or after it was accepted. */
TEST(what_is_not_kept_is_dropped)
{
	static const char hello[] = "\0and a request";
	FREED_BY(ends_free) struct ends e;
	int kept[FLOWS], dropped;
	char text[32];

	open_both(&e);
	np_sock_reset(call(&e));
	close(call(&e));
	meet_beside(&e.server);
	dropped = call(&e);
	kept[0] = call(&e);
	assert_int_equal(send(kept[0], hello, sizeof(hello), 0), sizeof(hello));
	kept[1] = call(&e);
	poll(NULL, 0, 20); /* all places are taken now, or will be */
	kept[2] = call(&e);
	assert_int_equal(send(kept[2], "", 1, 0), 1);
	np_sock_reset(dropped);
	close(call(&e));
	assert_int_equal(send(kept[1], "", 1, 0), 1);
	have_met(&e.server);
	assert_int_equal(standing(&e.server.run), FLOWS);
	/* The byte is taken, what follows it is the test's. */
	for (uint32_t i = 0, heard = 0; i < FLOWS; i++) {
		ssize_t n = recv(e.server.run.conn[i].fd, text, sizeof(text), MSG_DONTWAIT);

		heard += n > 0;
		assert_true(n == -1 || n == (ssize_t)sizeof(hello) - 1);
		assert_in_range(heard, 0, 1);
	}
	for (size_t i = 0; i < FLOWS; i++) {
		close(kept[i]);
	}
}

TEST(who_accepts_can_be_stopped)
{
	FREED_BY(ends_free) struct ends e;
	FREED_BY(close_fd) int fd = -1;

	open_both(&e);
	meet_beside(&e.server);
	fd = call(&e);
	np_stop(&e.server.stop, 1);
	have_met(&e.server);
	assert_in_range(standing(&e.server.run), 0, 1);
}

/* Over loopback there are no queues: all are kept as they came. */
TEST(both_ends_meet)
{
	FREED_BY(ends_free) struct ends e;

	open_both(&e);
	meet_beside(&e.server);
	meet_beside(&e.client);
	have_met(&e.client);
	have_met(&e.server);
	assert_int_equal(standing(&e.server.run), FLOWS);
	assert_int_equal(e.client.run.spread.queues, 0);
	assert_int_equal(e.client.run.spread.collisions, 0);
	assert_int_equal(e.client.run.spread.reconnected, 0);
}

/* connect(2) does not wait: the answer comes behind it. */
TEST(a_connection_that_is_refused_later_is_reported)
{
	FREED_BY(ends_free) struct ends e;

	open_both(&e);
	np_run_close(&e.server.run);
	assert_int_equal(np_many_begin(&e.client.run, &e.client.run.conn[1], &e.client.err), NP_OK);
	assert_int_equal(np_many_await(&e.client.run, &e.client.run.conn[1], &e.client.err),
			 NP_ESYS);
	assert_int_equal(e.client.err.sys, ECONNREFUSED);
}

TEST_MAIN()
