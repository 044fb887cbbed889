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

/* One end of a test of FLOWS flows. */
struct side {
	struct np_plan plan;
	struct np_terms terms;
	struct np_stop stop;
	struct np_run run;
	struct np_err err;
	int rc;
	pthread_t thread;
};

static void
open_side(struct side *s)
{
	s->terms = terms_for(&s->plan);
	fail_if(np_run_open(&s->run, &s->plan, &s->terms, &s->stop, &s->err) != NP_OK, "%s",
		s->err.msg);
}

static void *
meet(void *arg)
{
	struct side *s = arg;

	s->rc = np_run_establish(&s->run, &s->err);
	return NULL;
}

static void
meet_beside(struct side *s)
{
	assert_int_equal(pthread_create(&s->thread, NULL, meet, s), 0);
}

static void
have_met(struct side *s)
{
	assert_int_equal(pthread_join(s->thread, NULL), 0);
	fail_if(s->rc != NP_OK, "%s", s->err.msg);
}

static void
open_both(struct side *client, struct side *server)
{
	*client = *server = (struct side){ .rc = NP_OK };
	client_params(&client->plan, np_bench_find("TCP_RR"), AF_INET, 1);
	client->plan.flows = FLOWS;
	client->plan.spread = true;
	server_params(&server->plan, &client->plan);
	server->plan.flows = FLOWS;
	server->plan.spread = true;
	open_side(server);
	open_side(client);
	client->run.end.peer = way_to(&client->plan, &server->run.end.local);
}

static int
call(const struct side *server)
{
	struct np_addr at = server->run.end.local;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at.sa, at.len), 0);
	return fd;
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
	struct side client, server;
	int kept[FLOWS], dropped;
	char text[32];

	open_both(&client, &server);
	np_sock_reset(call(&server));
	close(call(&server));
	meet_beside(&server);
	dropped = call(&server);
	kept[0] = call(&server);
	assert_int_equal(send(kept[0], hello, sizeof(hello), 0), sizeof(hello));
	kept[1] = call(&server);
	poll(NULL, 0, 20); /* all places are taken now, or will be */
	kept[2] = call(&server);
	assert_int_equal(send(kept[2], "", 1, 0), 1);
	np_sock_reset(dropped);
	close(call(&server));
	assert_int_equal(send(kept[1], "", 1, 0), 1);
	have_met(&server);
	assert_int_equal(standing(&server.run), FLOWS);
	/* The byte is taken, what follows it is the test's. */
	for (uint32_t i = 0, heard = 0; i < FLOWS; i++) {
		ssize_t n = recv(server.run.conn[i].fd, text, sizeof(text), MSG_DONTWAIT);

		heard += n > 0;
		assert_true(n == -1 || n == (ssize_t)sizeof(hello) - 1);
		assert_in_range(heard, 0, 1);
	}
	for (size_t i = 0; i < FLOWS; i++) {
		close(kept[i]);
	}
	np_run_free(&client.run);
	np_run_free(&server.run);
}

TEST(who_accepts_can_be_stopped)
{
	struct side client, server;
	FREED_BY(close_fd) int fd = -1;

	open_both(&client, &server);
	meet_beside(&server);
	fd = call(&server);
	np_stop(&server.stop, 1);
	have_met(&server);
	assert_in_range(standing(&server.run), 0, 1);
	np_run_free(&client.run);
	np_run_free(&server.run);
}

/* Over loopback there are no queues: all are kept as they came. */
TEST(both_ends_meet)
{
	struct side client, server;

	open_both(&client, &server);
	meet_beside(&server);
	meet_beside(&client);
	have_met(&client);
	have_met(&server);
	assert_int_equal(standing(&server.run), FLOWS);
	assert_int_equal(client.run.spread.queues, 0);
	assert_int_equal(client.run.spread.collisions, 0);
	assert_int_equal(client.run.spread.reconnected, 0);
	np_run_free(&client.run);
	np_run_free(&server.run);
}

/* connect(2) does not wait: the answer comes behind it. */
TEST(a_connection_that_is_refused_later_is_reported)
{
	struct side client, server;

	open_both(&client, &server);
	np_run_free(&server.run);
	assert_int_equal(np_many_begin(&client.run, &client.run.conn[1], &client.err), NP_OK);
	assert_int_equal(np_many_await(&client.run, &client.run.conn[1], &client.err), NP_ESYS);
	assert_int_equal(client.err.sys, ECONNREFUSED);
	np_run_free(&client.run);
}

TEST_MAIN()
