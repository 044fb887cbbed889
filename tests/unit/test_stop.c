/*
 * Every loop and every wait ends when it is told to, whatever call it sleeps in.
 */
#include <linux/net_tstamp.h>
#include <poll.h>
#include <time.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/sockets.h"

/* An hour: whoever gets that far sleeps in the pause. */
static void
pace_slowly(struct np_plan *p)
{
	pace(&p->near.call, 1, 3600000000);
	pace(&p->far.call, 1, 3600000000);
}

static void
use_extras(struct np_plan *p)
{
	p->near.call.dirty = p->near.call.clean = p->far.call.dirty = p->far.call.clean = 100;
	p->use_write = p->copy_avoidance = p->packet_info = p->retry_connect = true;
}

/* Told to end once its loop runs, whatever it sleeps in: it is back without the time-out of
 * anything. */
static void
assert_stops(struct end *e)
{
	static const struct timespec a_while = { .tv_nsec = 20000000 };
	uint64_t told;

	end_start(e);
	assert_int_equal(sem_wait(&e->looping), 0);
	/* Time to fall asleep in a call; it must end before that, too. */
	nanosleep(&a_while, NULL);
	told = np_now();
	end_hang_up(e);
	end_join(e);
	assert_true(np_now() - told < LONG_MS * NP_MSEC / 2);
	assert_int_equal(e->drive.cause, NP_BY_CONTROL);
	fail_if(e->run.err.code != NP_OK, "%s", e->run.err.msg);
}

/* A client whose far end takes connections and says nothing. */
static void
assert_client_stops(const struct np_bench *b, void (*change)(struct np_plan *p))
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_addr at;
	FREED_BY(close_fd) int mute = -1;

	client_params(&e.plan, b, AF_INET, 0);
	/* Where frames go does not follow from an address. */
	mute = b->transport->link ? bound_socket(AF_INET, SOCK_DGRAM, &at)
				  : bound_socket_of(np_plan_family(&e.plan), b->transport->socktype,
						    b->transport->protocol, &at);
	change(&e.plan);
	end_open(&e);
	end_aim(&e, &at);
	assert_stops(&e);
}

/* A server whose client connects, if at all, and says nothing. */
static void
assert_server_stops(const struct np_bench *b, void (*change)(struct np_plan *p), bool connects)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	struct np_plan client;
	struct np_addr at;
	int mute = -1;

	client_params(&client, b, AF_INET, 0);
	change(&client);
	server_params(&e.plan, &client);
	end_open(&e);
	at = way_to(&e.plan, &e.run.end.local);
	if (connects) {
		mute = connected_to_by(&at, b->transport->socktype, b->transport->protocol);
	}
	assert_stops(&e);
	if (mute >= 0) {
		close(mute);
	}
}

TEST(every_blocked_loop_stops_when_told)
{
	static void (*const changes[])(struct np_plan *) = { change_nothing,    make_burst,
							     connect_datagrams, time_calls,
							     pace_slowly,       use_extras };

	for (const struct np_bench *b = NULL; (b = next_runnable(b)) != NULL;) {
		bool datagram = !b->transport->connected;

		if (b->pattern->probe || b->transport->upgrade != NULL) {
			continue; /* waits for nothing, or for an answer before its loop */
		}
		for (size_t n = 0; n < LEN(changes); n++) {
			assert_client_stops(b, changes[n]);
		}
		assert_server_stops(b, change_nothing, !datagram);
		assert_server_stops(b, use_extras, !datagram);
		assert_server_stops(b, pace_slowly, !datagram);
		if (b->pattern->side[NP_FOLLOW]->steps->open != NULL) {
			assert_server_stops(b, change_nothing, false);
		}
	}
}

TEST(waiting_for_a_connection_ends_when_told)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };

	daemon_params(&e.plan, np_bench_find("TCP_RR"), 10);
	end_open(&e);
	end_start(&e);
	end_stop(&e);
	assert_int_equal(e.drive.cause, NP_BY_CONTROL);
	assert_int_equal(e.run.window.started_ns, 0);
}

/* A TCP connection whose error queue makes poll(2) report POLLERR, and nothing else. */
static void
make_troubled(int pair[2])
{
	static const int stamps = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
	struct pollfd p = { .events = POLLRDHUP };
	struct np_addr at;
	int listener = bound_socket(AF_INET, SOCK_STREAM, &at);

	pair[1] = connected_to(&at);
	p.fd = pair[0] = accepted_from(listener);
	close(listener);
	skip_if(setsockopt(p.fd, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof(stamps)) != 0 ||
		    !put_bytes(p.fd, "", 1) || poll(&p, 1, 1000) != 1,
		"no time stamps of what is sent");
	assert_int_equal(p.revents, POLLERR);
}

/*
 * A reset that comes while the controller looks may show as an error alone, with a message that was
 * sent before it still to be read: such a client is gone all the same.
 */
TEST(an_error_behind_a_message_is_an_end_for_a_daemon)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };
	FREED_BY(close_both) int pair[2];

	make_troubled(pair);
	daemon_params(&e.plan, np_bench_find("TCP_RR"), 0);
	end_open(&e);
	e.chan.fd = pair[0];
	e.drive.establish_ns = 5 * NP_SEC;
	assert_true(put_bytes(pair[1], "request", 7));
	end_start(&e);
	end_join(&e);
	assert_int_equal(e.drive.cause, NP_BY_CONTROL);
	assert_int_equal(e.drive.lost, ECONNRESET);
}

/* A daemon sends its results when it has written all, and TCP a window each round trip. */
TEST(data_after_the_results_count)
{
	static const struct timespec trip = { .tv_sec = 1, .tv_nsec = 300 * NP_MSEC };
	struct np_addr at;
	FREED_BY(close_fd) int listener = bound_socket(AF_INET, SOCK_STREAM, &at);
	FREED_BY(end_free) struct end e = { .rc = -1 };
	int far;

	client_params(&e.plan, np_bench_find("TCP_MAERTS"), AF_INET, -14);
	end_begin(&e, &at);
	far = accepted_from(listener);
	assert_true(put_bytes(far, "window", 7));
	assert_true(put_bytes(e.control[1], "results", 7));
	nanosleep(&trip, NULL);
	assert_true(put_bytes(far, "window", 7));
	close(far);
	end_join(&e);
	assert_int_equal(e.drive.cause, NP_BY_LOOP);
	assert_int_equal(np_get(&e.run.worker->count->received), 14);
}

TEST(waiting_for_a_connection_has_an_end)
{
	FREED_BY(end_free) struct end e = { .rc = -1 };

	daemon_params(&e.plan, np_bench_find("TCP_STREAM"), 10);
	end_open(&e);
	e.drive.establish_ns = 30 * NP_MSEC;
	end_start(&e);
	end_join(&e);
	assert_int_equal(e.drive.cause, NP_BY_SILENCE);
	assert_int_equal(e.run.window.started_ns, 0);
}

TEST(a_silent_test_is_given_up_after_its_own_time_outs)
{
	struct np_plan p = { .near.call = { .interval_burst = 1, .interval_us = 3000000 } },
		       plain = { 0 };
	struct np_worker w = { .timeout_ns = NP_SEC };
	struct np_run run = { .plan = &plain, .worker = &w };

	assert_int_equal(np_drive_stall_ns(&run), NP_STALL_S * NP_SEC);
	w.timeout_ns = 15 * NP_SEC; /* -e 15 */
	assert_int_equal(np_drive_stall_ns(&run), 16 * NP_SEC);
	run.plan = &p;
	assert_int_equal(np_drive_stall_ns(&run), 19 * NP_SEC);
}

/* The last send was cut short by the stop: what went out of it counts. */
TEST(what_a_stopped_sender_sent_in_part_is_counted)
{
	static const char *const names[] = { "TCP_STREAM", "TCP_SENDFILE" };
	struct np_addr at;
	FREED_BY(close_fd) int mute = bound_socket(AF_INET, SOCK_STREAM, &at);

	for (size_t i = 0; i < LEN(names); i++) {
		FREED_BY(end_free) struct end e = { .rc = -1 };
		FREED_BY(close_fd) int far = -1;

		client_params(&e.plan, np_bench_find(names[i]), AF_INET, 0);
		e.plan.near.call.send_size = 1000003;
		e.plan.near.call.send_width = 2;
		end_open(&e);
		end_aim(&e, &at);
		assert_stops(&e);
		np_run_close(&e.run);
		far = accepted_from(mute);
		assert_int_equal(read_all(far), np_get(&e.run.worker->count->sent));
	}
}

/* SIGPIPE as both programs have it: sendfile(2) has no MSG_NOSIGNAL. */
TEST_MAIN(np_drive_prepare(); signal(SIGPIPE, SIG_IGN))
