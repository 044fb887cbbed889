/*
 * What comes to a daemon's one port: tokens, whose connection it is, and what a proxy says of that.
 * Sessions and their processes are one_port.py's.
 */
#include "netserver/one_port.h"

#include <fcntl.h>
#include <netinet/tcp.h>

#include "base/clock.h"
#include "base/fds.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"
#include "netserver/caller.h"
#include "netserver/passed.h"
#include "netserver/proxied.h"
#include "netserver/session.h"
#include "netserver/sessions.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/sockets.h"

static const struct np_token token = { { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 } };

TEST(a_token_is_what_it_was)
{
	uint8_t bytes[NP_TOKEN_SIZE];
	struct np_token got;

	for (int word = NP_TOKEN_WANTED; word <= NP_TOKEN_UNKNOWN; word++) {
		np_token_put(bytes, (enum np_token_word)word, &token);
		assert_int_equal(np_token_get(bytes, sizeof(bytes), &got), word);
		assert_true(np_token_is(&got, &token));
		assert_int_equal(np_token_get(bytes, sizeof(bytes) - 1, &got), NP_TOKEN_NONE);
		for (size_t n = 1; n <= sizeof(bytes); n++) {
			assert_true(np_token_begins(bytes, n));
		}
	}
	bytes[7] = NP_TOKEN_UNKNOWN + 1;
	assert_int_equal(np_token_get(bytes, sizeof(bytes), &got), NP_TOKEN_NONE);
	for (size_t i = 0; i < sizeof(got.at); i++) {
		got = token;
		got.at[i] ^= 0x80;
		assert_false(np_token_is(&got, &token));
	}
	assert_false(np_token_begins((const uint8_t *)"n", 1));
}

/* A daemon with one session whose test waits for data connections, at 192.0.2.1. */
struct bed {
	struct ns_daemon daemon;
	struct ns_session session;
	struct np_addr near, far;
	int theirs;
};

/* What most tests wait for: one connection, which is known by its address. */
static const struct np_handover by_address = { .wanted = true, .count = 1 };

static void
bed_make(struct bed *b, const struct np_handover *handover)
{
	struct np_err err;

	ns_passed_begin();
	memset(b, 0, sizeof(*b));
	b->near = address_at(4711, "192.0.2.1");
	b->far = address_at(4711, "192.0.2.2");
	ns_handovers_begin(&b->daemon);
	b->daemon.sessions = &b->session;
	b->session.peer = b->near;
	b->session.wish.handover = *handover;
	assert_int_equal(ns_handover_open(&b->session, handover, &b->theirs, &err), NP_OK);
}

static void
bed_free(struct bed *b)
{
	ns_handover_close(&b->daemon, &b->session);
	close(b->theirs);
}

/* What becomes of a connection by which that has come. */
static enum ns_data
look(struct bed *b, const void *bytes, size_t n, const struct np_addr *from, enum ns_look when)
{
	struct ns_session *of = NULL;
	enum ns_data got;
	FREED_BY(close_both) int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_true(put_bytes(pair[1], bytes, n));
	got = ns_data_look(&b->daemon, pair[0], from, when, &of);
	assert_true(got != NS_DATA_FULL || of != NULL);
	return got;
}

static enum ns_data
show(struct bed *b, enum np_token_word word, const struct np_token *shown)
{
	uint8_t bytes[NP_TOKEN_SIZE];

	np_token_put(bytes, word, shown);
	return look(b, bytes, sizeof(bytes), &b->far, NS_LOOK_NEW);
}

static bool
was_handed(const struct bed *b)
{
	struct np_handed h;
	int fd;

	if (np_fds_receive(b->theirs, &h, sizeof(h), &fd, 1, MSG_DONTWAIT) != sizeof(h)) {
		return false;
	}
	assert_true(fd >= 0);
	close(fd);
	return true;
}

TEST(who_shows_the_token_has_the_connection_from_anywhere)
{
	const struct np_handover handover = { .wanted = true, .tokens = true, .count = 2 };
	struct np_token wrong;
	struct bed b;

	bed_make(&b, &handover);
	wrong = b.session.handover.token;
	wrong.at[15] ^= 1;
	assert_int_equal(show(&b, NP_TOKEN_SHOWN, &wrong), NS_DATA_UNKNOWN);
	assert_int_equal(show(&b, NP_TOKEN_TAKEN, &b.session.handover.token), NS_DATA_UNKNOWN);
	assert_int_equal(look(&b, "netperf", 7, &b.near, NS_LOOK_NEW), NS_DATA_NONE);
	assert_false(was_handed(&b));
	assert_int_equal(show(&b, NP_TOKEN_SHOWN, &b.session.handover.token), NS_DATA_PASSED);
	assert_true(was_handed(&b));
	assert_int_equal(show(&b, NP_TOKEN_PASSED, &b.session.handover.token), NS_DATA_PASSED);
	assert_int_equal(show(&b, NP_TOKEN_SHOWN, &b.session.handover.token), NS_DATA_UNKNOWN);
	bed_free(&b);
	assert_int_equal(show(&b, NP_TOKEN_SHOWN, &b.session.handover.token), NS_DATA_UNKNOWN);
}

/* The daemon would otherwise be woken by its end again and again. */
TEST(half_a_token_before_the_end_of_a_connection_is_none)
{
	const struct np_handover handover = { .wanted = true, .tokens = true, .count = 1 };
	uint8_t bytes[NP_TOKEN_SIZE];
	FREED_BY(bed_free) struct bed b;
	struct ns_session *of;

	bed_make(&b, &handover);
	np_token_put(bytes, NP_TOKEN_SHOWN, &b.session.handover.token);
	for (int when = NS_LOOK_NEW; when <= NS_LOOK_LATE; when++) {
		FREED_BY(close_both) int pair[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		assert_true(put_bytes(pair[1], bytes, 8));
		assert_int_equal(ns_data_look(&b.daemon, pair[0], &b.far, when, &of), NS_DATA_MORE);
		assert_int_equal(shutdown(pair[1], SHUT_WR), 0);
		assert_int_equal(ns_data_look(&b.daemon, pair[0], &b.far, when, &of), NS_DATA_NONE);
	}
}

TEST(who_shows_none_is_known_by_his_address)
{
	static const uint8_t calibrate[8] = { 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff };
	FREED_BY(bed_free) struct bed b;

	bed_make(&b, &by_address);
	assert_int_equal(look(&b, "n", 1, &b.far, NS_LOOK_NEW), NS_DATA_NONE);
	assert_int_equal(look(&b, calibrate, sizeof(calibrate), &b.near, NS_LOOK_NEW),
			 NS_DATA_NONE);
	assert_int_equal(look(&b, "", 0, &b.near, NS_LOOK_NEW), NS_DATA_NONE);
	assert_int_equal(look(&b, "", 0, &b.near, NS_LOOK_QUIET),
			 NS_DATA_NONE); /* it speaks first */
	assert_int_equal(ns_quiet_until(&b.daemon, &b.near, 5), 0);
	assert_int_equal(look(&b, "n", 1, &b.near, NS_LOOK_NEW), NS_DATA_PASSED);
	assert_true(was_handed(&b));
	assert_int_equal(look(&b, "n", 1, &b.near, NS_LOOK_NEW), NS_DATA_NONE);
}

TEST(who_waits_for_data_says_nothing)
{
	const struct np_handover handover = { .wanted = true, .silent = true, .count = 1 };
	FREED_BY(bed_free) struct bed b;

	bed_make(&b, &handover);
	assert_true(ns_quiet_until(&b.daemon, &b.near, 5) > 5);
	assert_int_equal(ns_quiet_until(&b.daemon, &b.far, 5), 0);
	assert_int_equal(look(&b, "", 0, &b.near, NS_LOOK_NEW), NS_DATA_NONE);
	assert_int_equal(look(&b, "", 0, &b.far, NS_LOOK_QUIET), NS_DATA_NONE);
	assert_int_equal(look(&b, "", 0, &b.near, NS_LOOK_QUIET), NS_DATA_PASSED);
}

/* Of one address the second one waits for the first one's connections, but not for ever. */
TEST(clients_of_one_address_take_turns)
{
	struct ns_session second = { .wish.handover = by_address };
	struct np_handed h;
	FREED_BY(bed_free) struct bed b;
	int fd;

	bed_make(&b, &by_address);
	second.peer = b.far;
	assert_true(ns_handover_make_free(&b.daemon, &second));
	second.peer = b.near;
	assert_false(ns_handover_make_free(&b.daemon, &second));
	second.wish.handover.tokens = true;
	assert_true(ns_handover_make_free(&b.daemon, &second));
	second.wish.handover.tokens = false;
	b.session.handover.since -= 60 * NP_SEC;
	assert_true(ns_handover_make_free(&b.daemon, &second));
	assert_int_equal(np_fds_receive(b.theirs, &h, sizeof(h), &fd, 1, MSG_DONTWAIT), sizeof(h));
	assert_true(fd < 0 && h.error != 0); /* the first one is told */
	assert_int_equal(look(&b, "n", 1, &b.near, NS_LOOK_NEW), NS_DATA_NONE);
}

/* Each try looks at all sessions: many that wait for their turn must not occupy the daemon. */
TEST(few_of_those_that_wait_try_in_one_call)
{
	enum { COUNT = 20, AT_ONCE = 8 };
	struct ns_session waiting[COUNT];
	FREED_BY(bed_free) struct bed b;
	uint64_t began = np_now(), now, next;

	bed_make(&b, &by_address);
	b.daemon.args.one_port = true;
	for (int i = 0; i < COUNT; i++) {
		waiting[i] = (struct ns_session){ .next = b.daemon.sessions,
						  .fd = -1,
						  .peer = b.near,
						  .wish.handover = by_address,
						  .room_until_ns = np_deadline(60 * NP_SEC) };
		b.daemon.sessions = &waiting[i];
	}
	for (int tried = 0; tried < COUNT;) {
		int before = tried;

		now = np_now();
		next = ns_sessions_tick(&b.daemon, now);
		tried = 0;
		for (int i = 0; i < COUNT; i++) {
			tried += waiting[i].room_tried == b.daemon.freed + 1;
		}
		assert_int_equal(tried, before + AT_ONCE < COUNT ? before + AT_ONCE : COUNT);
		assert_true(tried == COUNT || next <= now);
	}
	/* They try again when something is freed, or after a second. */
	now = np_now();
	for (int i = 0; i < COUNT; i++) {
		assert_in_range(waiting[i].room_again_ns, began + NP_SEC, now + NP_SEC);
		waiting[i].room_again_ns = now + NP_SEC;
	}
	assert_int_equal(ns_sessions_tick(&b.daemon, now), now + NP_SEC);
}

TEST(a_test_waits_longer_if_a_session_ends_after_its_first_try)
{
	struct ns_session holder = { .fd = -1, .holds[NP_RES_THREADS] = 10 };
	struct ns_session waits = { .next = &holder, .peer = loopback(AF_INET, 1) };
	struct ns_daemon d = { .sessions = &waits, .limits.all[NP_RES_THREADS] = 10 };
	struct ns_message ask = { .type = NS_ASK, .wish.takes[NP_RES_THREADS] = 1 };
	uint64_t soon;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	assert_true(put_bytes(pair[1], &ask, sizeof(ask)));
	waits.fd = pair[0];
	ns_session_receive(&d, &waits, 1);
	close(pair[0]);
	close(pair[1]);
	waits.lacks_ns += NP_SEC; /* time for a busy machine */
	waits.room_until_ns += NP_SEC;
	soon = waits.room_until_ns;
	holder.yields = true;
	d.freed++;
	ns_sessions_tick(&d, np_now());
	assert_in_range(waits.room_until_ns, soon + 3 * NP_SEC, soon + 5 * NP_SEC);
}

/* ---- Descriptors in flight ---- */

static const struct np_handover endless = {
	.wanted = true, .tokens = true, .many = true, .count = 1
};

/* How many are taken before one has to wait. */
static unsigned
passes(struct bed *b, const struct ns_session *s)
{
	unsigned n = 0;
	enum ns_data got;

	while ((got = show(b, NP_TOKEN_PASSED, &s->handover.token)) == NS_DATA_PASSED) {
		n++;
	}
	assert_int_equal(got, NS_DATA_FULL);
	return n;
}

TEST(a_session_has_as_many_in_flight_as_it_does_not_receive)
{
	struct bed b;

	bed_make(&b, &endless);
	b.daemon.limits.all[NP_RES_PASSED] = 80;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(show(&b, NP_TOKEN_PASSED, &b.session.handover.token),
				 NS_DATA_PASSED);
		assert_true(was_handed(&b));
	}
	ns_handovers_count(&b.daemon);
	assert_int_equal(b.session.holds[NP_RES_PASSED], 0);
	assert_int_equal(passes(&b, &b.session), 20);
	assert_int_equal(b.daemon.stats.held[NP_RES_PASSED], 20);
	assert_false(b.session.handover.daemon_full);
	assert_true(was_handed(&b) && was_handed(&b));
	assert_int_equal(passes(&b, &b.session), 2);
	bed_free(&b);
	assert_int_equal(b.daemon.stats.held[NP_RES_PASSED], 0);
}

/* One more session of the bed's daemon, and its end of the handover. */
static int
add_session(struct bed *b, struct ns_session *s, const struct np_addr *peer)
{
	struct np_err err;
	int theirs;

	*s = (struct ns_session){ .peer = *peer,
				  .next = b->daemon.sessions,
				  .wish.handover = endless };
	b->daemon.sessions = s;
	assert_int_equal(ns_handover_open(s, &endless, &theirs, &err), NP_OK);
	return theirs;
}

/* Does the listener keep a connection until its first bytes are there? */
static bool
defers(struct bed *b)
{
	int on = -1;
	socklen_t len = sizeof(on);

	ns_handovers_set_listeners(&b->daemon);
	assert_int_equal(
	    getsockopt(b->daemon.listeners[0], IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, &len), 0);
	return on > 0;
}

/* A daemon that accepts sooner has to make a caller of each connection, and to wait again. */
TEST(connection_tests_are_accepted_with_their_first_bytes_unless_another_test_sends_none)
{
	struct np_handover silent = { .wanted = true, .silent = true, .count = 1 };
	struct ns_session other;
	FREED_BY(bed_free) struct bed b;
	FREED_BY(close_fd) int theirs, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	bed_make(&b, &endless);
	b.daemon.listeners[0] = fd;
	b.daemon.listener_count = 1;
	assert_true(defers(&b));
	assert_int_equal(b.daemon.accepts, SOCK_CLOEXEC | SOCK_NONBLOCK);
	b.session.wish.handover.blocks = true;
	theirs = add_session(&b, &other, &b.near);
	other.wish.handover = silent;
	assert_false(defers(&b));
	assert_int_equal(b.daemon.accepts, SOCK_CLOEXEC);
	other.wish.handover.tokens = true;
	assert_true(defers(&b));
	ns_handover_close(&b.daemon, &b.session);
	assert_false(defers(&b));
	assert_int_equal(b.daemon.accepts, SOCK_CLOEXEC | SOCK_NONBLOCK);
	ns_handover_close(&b.daemon, &other);
	b.daemon.sessions = &b.session;
}

/* How a session gets a connection that the daemon accepted blocking or not: as its worker wants. */
static bool
arrives_blocking(bool accepted_blocking, int flags)
{
	struct np_plan p;
	struct np_terms terms;
	uint8_t bytes[NP_TOKEN_SIZE];
	struct ns_session *of = NULL;
	struct np_run run = { .plan = &p, .terms = &terms };
	struct bed b;
	int pair[2], fd, mode;

	bed_make(&b, &endless);
	b.session.wish.handover.blocks = accepted_blocking;
	ns_handovers_set_listeners(&b.daemon);
	assert_int_equal(b.daemon.accepts & SOCK_NONBLOCK, accepted_blocking ? 0 : SOCK_NONBLOCK);
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_STREAM | (b.daemon.accepts & SOCK_NONBLOCK), 0, pair), 0);
	np_token_put(bytes, NP_TOKEN_PASSED, &b.session.handover.token);
	assert_true(put_bytes(pair[1], bytes, sizeof(bytes)));
	assert_int_equal(ns_data_look(&b.daemon, pair[0], &b.far, NS_LOOK_NEW, &of),
			 NS_DATA_PASSED);
	memset(&terms, 0, sizeof(terms));
	np_plan_init(&p);
	p.transport = &np_transport_tcp;
	p.pattern = &np_pattern_crr;
	p.family = AF_INET;
	run.end.listen_fd = terms.data_fd = b.theirs;
	fd = np_endpoint_take(&run, flags);
	mode = fcntl(fd, F_GETFL);
	assert_true(mode >= 0);
	close(fd);
	close(pair[0]);
	close(pair[1]);
	bed_free(&b);
	return (mode & O_NONBLOCK) == 0;
}

TEST(a_connection_that_is_handed_over_blocks_where_its_worker_does)
{
	assert_true(arrives_blocking(true, 0));
	assert_true(arrives_blocking(false, 0));
	assert_false(arrives_blocking(true, SOCK_NONBLOCK));
	assert_false(arrives_blocking(false, SOCK_NONBLOCK));
}

TEST(one_network_leaves_descriptors_in_flight_to_others)
{
	struct ns_session greedy[4], other;
	int theirs[LEN(greedy)], others;
	struct np_addr elsewhere = address_at(4711, "198.51.100.1");
	FREED_BY(bed_free) struct bed b;

	bed_make(&b, &endless);
	b.daemon.limits.all[NP_RES_PASSED] = 80;
	for (size_t i = 0; i < LEN(greedy); i++) {
		theirs[i] = add_session(&b, &greedy[i], &b.near);
		assert_int_equal(passes(&b, &greedy[i]), i < 3 ? 20 : 12);
	}
	assert_true(greedy[3].handover.daemon_full);
	others = add_session(&b, &other, &elsewhere);
	assert_int_equal(passes(&b, &other), 2);
	assert_true(
	    other.handover.daemon_full &&
	    ns_guard_scarce(&b.daemon.limits, NP_RES_PASSED, b.daemon.stats.held[NP_RES_PASSED]));
	for (size_t i = 0; i < LEN(greedy); i++) {
		ns_handover_close(&b.daemon, &greedy[i]);
		close(theirs[i]);
	}
	assert_int_equal(b.daemon.stats.held[NP_RES_PASSED], 2);
	ns_handover_close(&b.daemon, &other);
	close(others);
}

/* Whatever the kernel has against it, the connection is not lost, and not the session's either. */
TEST(what_the_kernel_does_not_pass_waits)
{
	const int little = 1;
	struct ns_caller c = { .full = true };
	struct bed b;
	FREED_BY(close_both) int pair[2];

	bed_make(&b, &endless);
	assert_int_equal(
	    setsockopt(b.session.handover.fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)), 0);
	assert_true(passes(&b, &b.session) < b.daemon.limits.all[NP_RES_PASSED] / 4);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(ns_data_again(&b.daemon, &b.session, pair[0], 1), NS_DATA_FULL);
	assert_true(was_handed(&b) && was_handed(&b));
	/* In one round a session is looked at once. */
	assert_int_equal(ns_data_again(&b.daemon, &b.session, pair[0], 1), NS_DATA_FULL);
	/* Others do not go before those that wait. */
	b.session.handover.waiting = 1;
	c.session = &b.session;
	b.daemon.callers = &c;
	assert_int_equal(show(&b, NP_TOKEN_PASSED, &b.session.handover.token), NS_DATA_FULL);
	assert_int_equal(ns_data_again(&b.daemon, &b.session, pair[0], 2), NS_DATA_PASSED);
	ns_handover_close(&b.daemon, &b.session);
	assert_null(c.session);
	assert_int_equal(ns_data_again(&b.daemon, c.session, pair[0], 3), NS_DATA_UNKNOWN);
	close(b.theirs);
}

/* It does not answer, and is at no fault: sessions and their filter stay. */
TEST(an_order_that_does_not_go_ends_no_fork_server)
{
	static struct ns_caller order;
	struct ns_forkserver f;
	struct np_err err;
	pid_t got;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	while (send(pair[0], &order, sizeof(order), MSG_DONTWAIT) > 0) {
	}
	f = (struct ns_forkserver){ .pid = fork(), .fd = pair[0] };
	if (f.pid == 0) {
		pause();
		_exit(0);
	}
	order.chan.fd = pair[1];
	assert_int_equal(ns_forkserver_fork(&f, &order, pair[1], &got, &err), NP_ESYS);
	assert_int_equal(err.sys, EAGAIN);
	assert_true(f.pid > 0 && f.fd == pair[0] && kill(f.pid, 0) == 0);
	ns_forkserver_end(&f);
	close(pair[1]);
}

/* ---- Datagrams ---- */

/* A daemon's port, and sockets at one address: of a client that names its port, of another one. */
struct datagrams {
	struct bed bed;
	struct np_addr at;
	int client, other;
};

static void
let_wait(struct bed *b, const struct np_addr *client)
{
	const struct np_handover handover = { .wanted = true,
					      .datagrams = true,
					      .port = (uint16_t)np_addr_port(client),
					      .count = 1 };
	struct np_err err;

	b->session.peer = *client;
	b->session.wish.handover = handover;
	assert_int_equal(ns_handover_open(&b->session, &handover, &b->theirs, &err), NP_OK);
}

static void
datagrams_make(struct datagrams *t)
{
	struct ns_daemon *d = &t->bed.daemon;
	struct np_addr client, other;

	memset(t, 0, sizeof(*t));
	t->client = bound_socket(AF_INET, SOCK_DGRAM, &client);
	t->other = bound_socket(AF_INET, SOCK_DGRAM, &other);
	d->listeners[d->listener_count++] = bound_socket(AF_INET, SOCK_STREAM, &t->at);
	ns_handovers_begin(d);
	ns_datagrams_open(d);
	assert_true(d->limits.each.one_port_udp);
	d->sessions = &t->bed.session;
	let_wait(&t->bed, &client);
}

static void
datagrams_free(struct datagrams *t)
{
	bed_free(&t->bed);
	close(t->client);
	close(t->other);
	close(t->bed.daemon.listeners[0]);
	close(t->bed.daemon.datagrams[0]);
}

static void
come(struct datagrams *t, int from)
{
	const struct sockaddr *to = (const struct sockaddr *)&t->at.sa;

	assert_int_equal(sendto(from, "byte", 1, 0, to, t->at.len), 1);
	ns_datagrams_receive(&t->bed.daemon, t->bed.daemon.datagrams[0]);
}

/* Whom the session's socket hears: does what it sends arrive there? */
static bool
is_of(struct datagrams *t, int whose)
{
	struct np_handed h;
	char byte = 0;
	int fd;

	if (np_fds_receive(t->bed.theirs, &h, sizeof(h), &fd, 1, MSG_DONTWAIT) != sizeof(h)) {
		return false;
	}
	assert_int_equal(h.early, 1);
	assert_int_equal(send(fd, &byte, 1, 0), 1);
	close(fd);
	return recv(whose, &byte, 1, MSG_DONTWAIT) == 1;
}

TEST(while_strays_come_the_port_that_a_client_named_goes_before_others)
{
	FREED_BY(datagrams_free) struct datagrams t;

	datagrams_make(&t);
	t.bed.daemon.stray_ns = np_now();
	come(&t, t.other);
	assert_false(is_of(&t, t.other));
	come(&t, t.client);
	assert_true(is_of(&t, t.client));
}

TEST(behind_a_nat_another_port_is_taken)
{
	struct datagrams t;
	uint64_t due;

	datagrams_make(&t); /* at once, if nobody else sends */
	come(&t, t.other);
	assert_true(is_of(&t, t.other));
	come(&t, t.client);
	assert_true(t.bed.daemon.stray_ns > 0);
	datagrams_free(&t);

	datagrams_make(&t);
	t.bed.daemon.stray_ns = np_now();
	come(&t, t.other);
	due = t.bed.session.handover.other_ns;
	assert_int_equal(ns_handover_tick(&t.bed.daemon, &t.bed.session, due - 1), due);
	assert_false(is_of(&t, t.other));
	assert_int_equal(ns_handover_tick(&t.bed.daemon, &t.bed.session, due), NP_NEVER);
	assert_true(is_of(&t, t.other));
	datagrams_free(&t);
}

TEST(the_next_test_may_name_the_same_port)
{
	FREED_BY(datagrams_free) struct datagrams t;
	struct np_addr client;

	datagrams_make(&t);
	client = t.bed.session.peer;
	for (int tests = 0; tests < 2; tests++) {
		come(&t, t.client);
		assert_true(is_of(&t, t.client));
		bed_free(&t.bed);
		let_wait(&t.bed, &client);
	}
}

/* A caller is looked at again when it has been quiet for a while, which may be while it waits. */
TEST(a_caller_has_its_whole_time_to_wait_for_room)
{
	FREED_BY(free_memory) struct ns_daemon *d = calloc(1, sizeof(*d));
	struct ns_caller *c = calloc(1, sizeof(*c));
	uint64_t now_ns = np_now();
	int pair[2];

	assert_true(d != NULL && c != NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	c->chan.fd = pair[0];
	c->queued = true;
	c->room_tried = 1;
	c->quiet_ns = now_ns;
	c->deadline_ns = now_ns + NP_SEC;
	d->limits.all[NP_RES_MEMORY] = 1; /* too little for any session */
	d->callers = c;
	d->callers_end = &c->next;
	d->stats.silent_now = 1;
	assert_int_equal(ns_front_tick(d, now_ns), c->deadline_ns);
	assert_ptr_equal(d->callers, c);
	ns_front_tick(d, now_ns + NP_SEC);
	assert_null(d->callers);
	ns_front_free_dropped(d);
	close(pair[1]);
}

/* ---- Deadlines, and the ends of sessions ---- */

/* A queued caller of another address than the only session, which has all there is. */
TEST(a_deadline_that_a_newcomer_sets_counts_at_once)
{
	struct np_log log = { .level = NP_LOG_ERROR };
	struct ns_caller c = { .queued = true };
	FREED_BY(bed_free) struct bed b;
	uint64_t now_ns = np_now();

	bed_make(&b, &by_address);
	b.daemon.log = &log;
	b.daemon.limits.all[NP_RES_SESSIONS] = 1;
	b.daemon.callers = &c;
	c.peer = b.far;
	b.session.holds[NP_RES_SESSIONS] = 1;
	b.session.place = ns_place_of(&b.session.peer, b.daemon.rates.seed);
	b.session.moved_ns = now_ns - NS_IDLE_S * NP_SEC;
	b.session.pid = fork();
	if (b.session.pid == 0) {
		pause();
		_exit(0);
	}
	assert_true(b.session.pid > 0);
	assert_true(ns_front_begin(&b.daemon, false, now_ns) <= b.session.end_ns);
	assert_true(b.session.yields);
	assert_int_equal(ended(b.session.pid), -SIGTERM);
}

TEST(a_session_that_is_ended_does_not_put_it_off)
{
	struct ns_message m;
	FREED_BY(bed_free) struct bed b;
	uint64_t end_ns = np_now();
	int pair[2];

	memset(&m, 0, sizeof(m));
	bed_make(&b, &by_address);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	b.daemon.limits.each.idle_s = 120;
	b.session.fd = pair[0];
	b.session.ending = true;
	b.session.test_ns = end_ns - NP_SEC;
	b.session.end_ns = end_ns;
	m.type = NS_DONE;
	m.served.received = m.served.sent = m.served.transactions = UINT64_MAX;
	b.daemon.stats.received_bytes = b.daemon.stats.sent_bytes = 4711;
	memset(&m.served.failed, 200, 1); /* counts as one test */
	assert_true(put_bytes(pair[1], &m, sizeof(m)));
	ns_session_receive(&b.daemon, &b.session, 1);
	assert_true(b.session.test_ns == 0 && b.session.end_ns == end_ns);
	assert_int_equal(b.daemon.stats.tests_failed, 1);
	/* What it claims to have moved does not make sums wrap. */
	assert_in_range(b.daemon.stats.received_bytes, 4711, UINT64_MAX / 2);
	assert_in_range(b.daemon.stats.sent_bytes, 4711, UINT64_MAX / 2);
	assert_in_range(b.daemon.stats.transactions, 1, UINT64_MAX / 2);
	m.type = NS_ASK;
	assert_true(put_bytes(pair[1], &m, sizeof(m)));
	ns_session_receive(&b.daemon, &b.session, 1);
	assert_int_equal(b.session.fd, -1);
	close(pair[1]);
}

/* A test of that address ends, with datagrams from that number of ports. */
static void
test_ends(struct bed *b, const struct np_addr *peer, uint16_t ports)
{
	const struct np_handover handover = { .wanted = true, .datagrams = true, .count = ports };

	bed_free(b);
	b->session.peer = *peer;
	b->session.wish.handover = handover;
	assert_int_equal(ns_handover_open(&b->session, &handover, &b->theirs, NULL), NP_OK);
	for (b->session.handover.recents = 0; b->session.handover.recents < ports;) {
		b->session.handover.recent[b->session.handover.recents++] = 4711;
	}
	ns_handover_close(&b->daemon, &b->session);
}

TEST(late_datagrams_of_one_address_push_out_no_others)
{
	FREED_BY(bed_free) struct bed b;
	unsigned near = 0, far = 0;

	bed_make(&b, &by_address);
	test_ends(&b, &b.near, 1);
	for (int i = 0; i < 4; i++) {
		test_ends(&b, &b.far, NS_RECENT);
	}
	for (size_t i = 0; i < NS_LATE; i++) {
		near += np_addr_same_host(&b.daemon.late.at[i].from, &b.near);
		far += np_addr_same_host(&b.daemon.late.at[i].from, &b.far);
	}
	assert_int_equal(near, 1);
	assert_int_equal(far, NS_LATE / 8);
}

/* ---- Proxies ---- */

/* What a proxy's bytes are, also if it has closed its direction after them. */
static enum ns_proxied
proxied_then(bool closed, const void *bytes, size_t n, struct np_addr *peer, size_t *left)
{
	enum ns_proxied got;
	char rest[100];
	FREED_BY(close_both) int pair[2];
	ssize_t n_left;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_true(put_bytes(pair[1], bytes, n));
	assert_true(!closed || shutdown(pair[1], SHUT_WR) == 0);
	got = ns_proxied_read(pair[0], peer);
	n_left = recv(pair[0], rest, sizeof(rest), MSG_DONTWAIT);
	*left = n_left > 0 ? (size_t)n_left : 0;
	return got;
}

static enum ns_proxied
proxied(const void *bytes, size_t n, struct np_addr *peer, size_t *left)
{
	return proxied_then(false, bytes, n, peer, left);
}

TEST(a_proxy_says_whose_it_is)
{
	uint8_t four[] = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\2\7\xc0\0\2\1\x12\x67\0\x50rest";
	const size_t whole = 28;
	struct np_addr peer, seven = address_at(0x1267, "192.0.2.7");
	size_t left;

	for (size_t n = 1; n < whole; n++) {
		peer = address_at(4711, "192.0.2.1");
		assert_int_equal(proxied(four, n, &peer, &left), NS_PROXIED_MORE);
		assert_int_equal(left, n);
		assert_int_equal(proxied_then(true, four, n, &peer, &left), NS_PROXIED_WRONG);
	}
	assert_int_equal(proxied_then(true, four, 0, &peer, &left), NS_PROXIED_WRONG);
	assert_int_equal(proxied_then(true, four, whole, &peer, &left), NS_PROXIED_DONE);
	assert_int_equal(proxied(four, whole + 4, &peer, &left), NS_PROXIED_DONE);
	assert_int_equal(left, 4);
	assert_true(same_address(&peer, &seven));
	four[12] = 0x20; /* the proxy's own */
	peer = address_at(4711, "192.0.2.1");
	assert_int_equal(proxied(four, whole, &peer, &left), NS_PROXIED_DONE);
	assert_false(np_addr_same_host(&peer, &seven));
	four[12] = 0x11;
	assert_int_equal(proxied(four, whole, &peer, &left), NS_PROXIED_WRONG);
	four[12] = 0x21;
	four[13] = 0x12; /* datagrams */
	assert_int_equal(proxied(four, whole, &peer, &left), NS_PROXIED_WRONG);
	four[13] = 0x11;
	four[14] = 0x7f;
	assert_int_equal(proxied(four, whole, &peer, &left), NS_PROXIED_WRONG);
	assert_int_equal(proxied("PROXY TCP4", 10, &peer, &left), NS_PROXIED_WRONG);
}

TEST(it_may_be_of_ipv6)
{
	uint8_t six[16 + 36] = "\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24";
	struct np_addr peer, wanted;
	size_t left;

	six[16] = 0xfd;
	six[16 + 32] = 1;
	np_addr_make(&wanted, AF_INET6, six + 16, 256);
	assert_int_equal(proxied(six, sizeof(six), &peer, &left), NS_PROXIED_DONE);
	assert_true(same_address(&peer, &wanted));
}

TEST_MAIN()
