/*
 * Whole messages over real sockets: everything a peer or a signal can do in the middle.
 */
#include "wire/chan.h"

#include <fcntl.h>
#include <pthread.h>

#include "base/clock.h"
#include "tests/lib/check.h"
#include "tests/lib/sockets.h"

/* Far beyond what any of these takes, so that a fault shows as an error and not as a hang. */
#define LONG (20 * NP_SEC)

#define PEER "127.0.0.1 port 12865"
#define WHOM "control connection to " PEER ": "

/* One channel under test and the peer's plain end of its socket pair; a message, and an error. */
struct pair {
	struct np_chan chan;
	int peer;
	uint8_t frame[NP_FRAME_SIZE];
	struct np_err err;
};

static struct pair
open_pair(void)
{
	struct pair p = { .err.code = NP_OK };
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	assert_int_equal(np_chan_open(&p.chan, fd[0], PEER, &p.err), NP_OK);
	p.peer = fd[1];
	return p;
}

static void
assert_receives(struct pair *p, const char *what, int rc)
{
	assert_int_equal(np_chan_recv(&p->chan, what, np_deadline(LONG), NULL, &p->err), rc);
}

static void
close_peer(struct pair *p)
{
	close(p->peer);
	p->peer = -1;
}

static void
close_pair(struct pair *p)
{
	close(p->chan.fd);
	if (p->peer >= 0) {
		close_peer(p);
	}
}

/* A message that no other number gives. */
static void
fill(uint8_t frame[NP_FRAME_SIZE], unsigned number)
{
	for (unsigned i = 0; i < NP_FRAME_SIZE; i++) {
		frame[i] = (uint8_t)(number + i * 7);
	}
	frame[0] = 0;
}

static void
put(int fd, const void *bytes, size_t n)
{
	assert_int_equal(write(fd, bytes, n), n);
}

/* ---- Receiving ---- */

TEST(a_whole_message_arrives)
{
	FREED_BY(close_pair) struct pair p = open_pair();

	fill(p.frame, 1);
	put(p.peer, p.frame, sizeof(p.frame));
	assert_receives(&p, "the request", NP_OK);
	assert_memory_equal(p.chan.in, p.frame, sizeof(p.frame));
	assert_int_equal(np_chan_read(&p.chan, "a message", &p.err), NP_CHAN_MORE);
}

TEST(a_message_may_come_byte_by_byte)
{
	FREED_BY(close_pair) struct pair p = open_pair();

	fill(p.frame, 2);
	for (size_t i = 0; i < sizeof(p.frame); i++) {
		assert_int_equal(np_chan_read(&p.chan, "a message", &p.err), NP_CHAN_MORE);
		put(p.peer, p.frame + i, 1);
	}
	assert_int_equal(np_chan_read(&p.chan, "a message", &p.err), NP_CHAN_WHOLE);
	assert_memory_equal(p.chan.in, p.frame, sizeof(p.frame));
}

static void *
dribble(void *arg)
{
	struct pair *p = arg;
	uint8_t frame[NP_FRAME_SIZE];

	fill(frame, 3);
	for (size_t i = 0; i < sizeof(frame); i++) {
		if (write(p->peer, frame + i, 1) != 1) {
			break;
		}
	}
	return NULL;
}

TEST(waiting_outlasts_a_dribble)
{
	pthread_t thread;
	FREED_BY(close_pair) struct pair p = open_pair();

	assert_int_equal(pthread_create(&thread, NULL, dribble, &p), 0);
	assert_receives(&p, "the request", NP_OK);
	pthread_join(thread, NULL);
	fill(p.frame, 3);
	assert_memory_equal(p.chan.in, p.frame, sizeof(p.frame));
}

TEST(pipelined_messages_come_one_by_one)
{
	uint8_t two[2][NP_FRAME_SIZE];
	FREED_BY(close_pair) struct pair p = open_pair();

	fill(two[0], 4);
	fill(two[1], 5);
	put(p.peer, two, sizeof(two));
	close_peer(&p);
	assert_int_equal(np_chan_read(&p.chan, "a message", &p.err), NP_CHAN_WHOLE);
	assert_memory_equal(p.chan.in, two[0], NP_FRAME_SIZE);
	assert_receives(&p, "the request", NP_OK);
	assert_memory_equal(p.chan.in, two[1], NP_FRAME_SIZE);
	assert_int_equal(np_chan_read(&p.chan, "a message", &p.err), NP_CHAN_CLOSED);
}

TEST(the_end_between_messages_is_no_fault)
{
	FREED_BY(close_pair) struct pair p = open_pair();

	close_peer(&p);
	assert_int_equal(np_chan_read(&p.chan, "a message", &p.err), NP_CHAN_CLOSED);
	assert_int_equal(p.err.code, NP_OK);
	/* It is one for those who wait for a message. */
	assert_receives(&p, "the test results", NP_EPEER);
	assert_string_equal(p.err.msg,
			    WHOM "closed by the peer while waiting for the test results");
	assert_int_equal(p.err.sys, 0);
}

/* The message for a peer that sent these bytes and closed. */
static void
assert_cut_message(const void *bytes, size_t n, const char *msg)
{
	FREED_BY(close_pair) struct pair p = open_pair();

	put(p.peer, bytes, n);
	close_peer(&p);
	assert_receives(&p, "the test results", NP_EPEER);
	assert_string_equal(p.err.msg, msg);
	assert_int_equal(np_chan_read(&p.chan, "a message", &p.err), NP_CHAN_BROKEN);
}

TEST(the_end_within_a_message_says_what_came)
{
	uint8_t frame[NP_FRAME_SIZE];

	fill(frame, 6);
	assert_cut_message(
	    frame, 1,
	    WHOM "closed by the peer while waiting for the test results: 1 of 656 bytes came");
	assert_cut_message(
	    frame, 655,
	    WHOM "closed by the peer while waiting for the test results: 655 of 656 bytes came");
	assert_cut_message(
	    frame, 256,
	    WHOM "closed by the peer while waiting for the test results: 256 of 656 bytes came "
		 "(is it netperf 2.5.0 or older?)");
}

TEST(another_service_is_quoted)
{
	static const char ssh[] = "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n";
	static const char http[] = "HTTP/1.1 400 Bad Request, and a great deal more of it\r\n";

	assert_cut_message(
	    ssh, sizeof(ssh) - 1,
	    WHOM
	    "closed by the peer while waiting for the test results: the peer "
	    "sent 32 bytes that are not a netperf message (\"SSH-2.0-OpenSSH_9.2p1 Debian-2\")");
	assert_cut_message(http, sizeof(http) - 1,
			   WHOM "closed by the peer while waiting for the test results: the peer "
				"sent 55 bytes that are not a netperf message (\"HTTP/1.1 400 Bad "
				"Request, and a great de\")");
}

TEST(a_deadline_passes)
{
	uint64_t deadline, late;
	FREED_BY(close_pair) struct pair p = open_pair();

	deadline = np_deadline(10 * NP_MSEC);
	assert_int_equal(np_chan_recv(&p.chan, "the test results", deadline, NULL, &p.err),
			 NP_ETIME);
	late = np_now();
	assert_true(late >= deadline && late < deadline + LONG);
	assert_non_null(strstr(p.err.msg, WHOM "the test results did not come within "));
	assert_int_equal(p.err.sys, 0);
}

TEST(a_passed_deadline_still_takes_what_is_there)
{
	FREED_BY(close_pair) struct pair p = open_pair();

	fill(p.frame, 7);
	put(p.peer, p.frame, sizeof(p.frame));
	assert_int_equal(np_chan_recv(&p.chan, "the request", 1, NULL, &p.err), NP_OK);
	assert_int_equal(np_chan_recv(&p.chan, "the request", 1, NULL, &p.err), NP_ETIME);
}

TEST(a_late_message_says_what_came_and_can_be_finished)
{
	uint64_t deadline;
	FREED_BY(close_pair) struct pair p = open_pair();

	fill(p.frame, 8);
	put(p.peer, p.frame, 100);
	deadline = np_now();
	/* As if a call that a signal interrupted had begun five seconds ago. */
	p.chan.since = deadline - 5 * NP_SEC;
	assert_int_equal(np_chan_recv(&p.chan, "the test results", deadline, NULL, &p.err),
			 NP_ETIME);
	assert_string_equal(p.err.msg, WHOM "the test results did not come within 5 s: 100 of 656 "
					    "bytes came");
	put(p.peer, p.frame + 100, sizeof(p.frame) - 100);
	assert_receives(&p, "the test results", NP_OK);
	assert_memory_equal(p.chan.in, p.frame, sizeof(p.frame));
}

/* Who waits long for a first byte need not wait as long for the last one. */
TEST(what_has_begun_must_go_on)
{
	FREED_BY(close_pair) struct pair p = open_pair();
	uint64_t begun;

	p.chan.rest_ns = 20 * NP_MSEC;
	fill(p.frame, 1);
	put(p.peer, p.frame, 100);
	begun = np_now();
	for (int i = 0; i < 2; i++) { /* a second wait is not a second chance */
		assert_receives(&p, "the response", NP_ETIME);
	}
	assert_non_null(strstr(p.err.msg, "the response did not come within"));
	assert_non_null(strstr(p.err.msg, "100 of 656 bytes came"));
	assert_true(np_now() - begun < LONG / 2);
	put(p.peer, p.frame + 100, NP_FRAME_SIZE - 100);
	assert_receives(&p, "the response", NP_OK);
	/* Before the first byte it does not count. */
	assert_int_equal(
	    np_chan_recv(&p.chan, "the results", np_deadline(60 * NP_MSEC), NULL, &p.err),
	    NP_ETIME);
	assert_true(np_now() - begun > 60 * NP_MSEC);
}

static void
on_signal(int sig)
{
}

TEST(a_signal_interrupts_and_nothing_is_lost)
{
	sigset_t inside;
	FREED_BY(close_pair) struct pair p = open_pair();

	catch_signal(SIGUSR1, on_signal, &inside);
	fill(p.frame, 9);
	put(p.peer, p.frame, 300);
	raise(SIGUSR1); /* pending until the wait lets it in */
	assert_int_equal(np_chan_recv(&p.chan, "the request", np_deadline(LONG), &inside, &p.err),
			 NP_ESYS);
	assert_int_equal(p.err.sys, EINTR);
	put(p.peer, p.frame + 300, sizeof(p.frame) - 300);
	assert_int_equal(np_chan_recv(&p.chan, "the request", np_deadline(LONG), &inside, &p.err),
			 NP_OK);
	assert_memory_equal(p.chan.in, p.frame, sizeof(p.frame));
	pthread_sigmask(SIG_SETMASK, &inside, NULL);
}

/* A peer that closes with something of ours unread resets the connection. */
static void
reset(struct pair *p)
{
	put(p->chan.fd, "unread", 6);
	close_peer(p);
}

TEST(a_reset_is_the_peers_fault)
{
	struct pair p;

	p = open_pair();
	reset(&p);
	assert_receives(&p, "the test results", NP_EPEER);
	assert_string_equal(p.err.msg, WHOM "broken while waiting for the test results: "
					    "Connection reset by peer");
	assert_int_equal(p.err.sys, ECONNRESET);
	close_pair(&p);

	p = open_pair();
	fill(p.frame, 10);
	put(p.peer, p.frame, 40);
	assert_int_equal(np_chan_read(&p.chan, "a message", &p.err), NP_CHAN_MORE);
	reset(&p);
	assert_int_equal(np_chan_read(&p.chan, "a message", &p.err), NP_CHAN_BROKEN);
	assert_int_equal(p.err.code, NP_EPEER);
	assert_string_equal(p.err.msg,
			    WHOM "broken while waiting for a message: 40 of 656 bytes came: "
				 "Connection reset by peer");
	close_pair(&p);
}

/* ---- Sending ---- */

TEST(a_message_is_sent_whole)
{
	uint8_t got[NP_FRAME_SIZE + 1];
	FREED_BY(close_pair) struct pair p = open_pair();

	fill(p.frame, 11);
	assert_int_equal(np_chan_send(&p.chan, p.frame, np_deadline(LONG), &p.err), NP_OK);
	assert_int_equal(read(p.peer, got, sizeof(got)), sizeof(p.frame));
	assert_memory_equal(got, p.frame, sizeof(p.frame));
}

/* SIGPIPE at its default would end this program. */
TEST(sending_to_a_closed_peer_fails_quietly)
{
	FREED_BY(close_pair) struct pair p = open_pair();

	signal(SIGPIPE, SIG_DFL);
	close_peer(&p);
	assert_int_equal(np_chan_send(&p.chan, p.frame, np_deadline(LONG), &p.err), NP_EPEER);
	assert_string_equal(p.err.msg, WHOM "send: Broken pipe");
	assert_int_equal(p.err.sys, EPIPE);
}

/* Send until nothing goes in any more; the deadline of each is already past. Whole ones sent. */
static unsigned
stuff(struct np_chan *c, struct np_err *err)
{
	uint8_t frame[NP_FRAME_SIZE];
	unsigned sent = 0;

	for (;;) {
		int rc;

		fill(frame, sent);
		rc = np_chan_send(c, frame, np_now(), err);
		if (rc != NP_OK) {
			assert_int_equal(rc, NP_ETIME);
			return sent;
		}
		sent++;
		assert_true(sent < 1000000);
	}
}

TEST(a_peer_that_does_not_read_is_not_waited_for_long)
{
	FREED_BY(close_pair) struct pair p = open_pair();

	assert_true(stuff(&p.chan, &p.err) > 0);
	assert_string_equal(p.err.msg, WHOM "the peer did not take a message within 0 s");
}

struct reader {
	int fd;
	unsigned whole;
	bool in_order;
};

/* Read messages numbered 0, 1, ... until the end, and see that none has a gap. */
static void *
read_to_the_end(void *arg)
{
	struct reader *r = arg;
	uint8_t want[NP_FRAME_SIZE], got[NP_FRAME_SIZE];

	r->in_order = true;
	while (recv(r->fd, got, sizeof(got), MSG_WAITALL) == (ssize_t)sizeof(got)) {
		fill(want, r->whole);
		r->in_order = r->in_order && memcmp(got, want, sizeof(got)) == 0;
		r->whole++;
	}
	return NULL;
}

TEST(sending_waits_for_room)
{
	enum { MESSAGES = 4000 }; /* more than a socket buffer holds */
	struct reader reader = { .fd = -1 };
	pthread_t thread;
	FREED_BY(close_pair) struct pair p = open_pair();

	reader.fd = p.peer;
	assert_int_equal(pthread_create(&thread, NULL, read_to_the_end, &reader), 0);
	for (unsigned i = 0; i < MESSAGES; i++) {
		fill(p.frame, i);
		assert_int_equal(np_chan_send(&p.chan, p.frame, np_deadline(LONG), &p.err), NP_OK);
	}
	shutdown(p.chan.fd, SHUT_WR);
	pthread_join(thread, NULL);
	assert_int_equal(reader.whole, MESSAGES);
	assert_true(reader.in_order);
}

/* ---- This machine's faults ---- */

TEST(what_is_no_socket_is_named)
{
	struct np_err err = { .code = NP_OK };
	struct np_chan c;
	FREED_BY(close_fd) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_equal(np_chan_open(&c, -1, PEER, &err), NP_ESYS);
	assert_string_equal(err.msg, WHOM "make it non-blocking: Bad file descriptor");

	assert_int_equal(np_chan_open(&c, fd, PEER, &err), NP_OK);
	assert_int_equal(np_chan_recv(&c, "the request", np_deadline(LONG), NULL, &err), NP_ESYS);
	assert_int_equal(err.sys, ENOTSOCK);
	assert_int_equal(np_chan_send(&c, c.in, np_deadline(LONG), &err), NP_ESYS);
}

/* ---- Old clients, with messages of 256 bytes ---- */

/* A long message that could be an old one's beginning: its code, then zeros, as they mostly are. */
static void
coded(uint8_t frame[NP_FRAME_SIZE], uint8_t code)
{
	memset(frame, 0, NP_FRAME_SIZE);
	frame[3] = code;
	frame[20] = 0xa5;
}

/* What a daemon's channel makes of `bytes` bytes of that message and then silence. */
static void
receive_old(struct pair *p, uint8_t code, size_t bytes)
{
	*p = open_pair();
	coded(p->frame, code);
	p->chan.may_be_old = true;
	put(p->peer, p->frame, bytes);
	assert_receives(p, "a request", NP_OK);
	assert_memory_equal(p->chan.in, p->frame, NP_OLD_FRAME_SIZE);
	assert_int_equal(p->chan.first, code);
}

TEST(silence_after_256_bytes_tells_an_old_client)
{
	uint64_t began = np_now(), took = 0;
	uint8_t got[NP_FRAME_SIZE];
	struct pair p;

	receive_old(&p, NP_DEBUG_OFF, NP_OLD_FRAME_SIZE);
	assert_true(np_now() - began >= NP_SEC);
	assert_int_equal(p.chan.size, NP_OLD_FRAME_SIZE);
	/* Answers are short, too, and the next message is not waited for any longer. */
	fill(p.frame, 1);
	assert_int_equal(np_chan_send(&p.chan, p.frame, np_deadline(LONG), &p.err), NP_OK);
	assert_int_equal(recv(p.peer, got, sizeof(got), MSG_DONTWAIT), NP_OLD_FRAME_SIZE);
	assert_memory_equal(got, p.frame, NP_OLD_FRAME_SIZE);
	coded(p.frame, NP_TCP_RR);
	for (int tries = 0; tries < 8; tries++) { /* a busy machine may take a second, too */
		put(p.peer, p.frame, NP_OLD_FRAME_SIZE);
		began = np_now();
		assert_receives(&p, "a request", NP_OK);
		if ((took = np_now() - began) < NP_SEC) {
			break;
		}
	}
	assert_true(took < NP_SEC);
	assert_memory_equal(p.chan.in, p.frame, NP_FRAME_SIZE);
	close_peer(&p);
	assert_receives(&p, "a request", NP_EPEER);
	assert_int_equal(p.chan.have, 0);
	close_pair(&p);
}

TEST(an_old_passphrase_and_its_request_come_apart)
{
	uint8_t both[2 * NP_OLD_FRAME_SIZE] = { 0 };
	FREED_BY(close_pair) struct pair p = open_pair();

	both[3] = NP_PASSPHRASE;
	memset(both + 8, 'x', NP_OLD_FRAME_SIZE - 8);
	both[NP_OLD_FRAME_SIZE + 3] = NP_TCP_STREAM;
	p.chan.may_be_old = true;
	put(p.peer, both, sizeof(both));
	assert_receives(&p, "a request", NP_OK);
	assert_memory_equal(p.chan.in, both, NP_OLD_FRAME_SIZE);
	assert_int_equal(p.chan.in[NP_OLD_FRAME_SIZE], 0);
	assert_receives(&p, "a request", NP_OK);
	assert_memory_equal(p.chan.in, both + NP_OLD_FRAME_SIZE, NP_OLD_FRAME_SIZE);
	assert_int_equal(p.chan.first, NP_PASSPHRASE);
}

struct late {
	int fd;
	const uint8_t *rest;
	unsigned pause_ms;
};

static void *
send_late(void *arg)
{
	const struct late *l = arg;

	usleep(l->pause_ms * 1000);
	put(l->fd, l->rest, NP_FRAME_SIZE - NP_OLD_FRAME_SIZE);
	return NULL;
}

/* A message of today's whose rest takes its time: what a daemon's channel makes of it. */
static void
receive_late(struct pair *p, uint8_t code, unsigned pause_ms)
{
	struct late late = { .rest = p->frame + NP_OLD_FRAME_SIZE, .pause_ms = pause_ms };
	pthread_t thread;

	*p = open_pair();
	coded(p->frame, code);
	p->chan.may_be_old = true;
	late.fd = p->peer;
	put(p->peer, p->frame, NP_OLD_FRAME_SIZE);
	assert_int_equal(pthread_create(&thread, NULL, send_late, &late), 0);
	assert_receives(p, "a request", NP_OK);
	pthread_join(thread, NULL);
}

TEST(a_slow_client_of_today_is_no_old_one)
{
	struct pair p;

	/* OMNI never begins an old session: its rest may take as long as it likes. */
	receive_late(&p, NP_OMNI, 1300);
	assert_int_equal(p.chan.size, NP_FRAME_SIZE);
	close_pair(&p);
	receive_late(&p, NP_TCP_RR, 50);
	assert_int_equal(p.chan.size, NP_FRAME_SIZE);
	/* The session is settled: silence means nothing any more. */
	assert_false(p.chan.may_be_old);
	close_pair(&p);
}

TEST(a_message_torn_apart_ends_the_session)
{
	FREED_BY(close_pair) struct pair p = open_pair();

	coded(p.frame, NP_TCP_RR);
	p.chan.may_be_old = true;
	put(p.peer, p.frame, NP_OLD_FRAME_SIZE);
	assert_receives(&p, "a request", NP_OK);
	assert_int_equal(p.chan.size, NP_OLD_FRAME_SIZE);
	/* Its silence is over when nobody takes it for a part of that message any more. */
	put(p.peer, p.frame + NP_OLD_FRAME_SIZE, NP_FRAME_SIZE - NP_OLD_FRAME_SIZE);
	assert_receives(&p, "a request", NP_EPEER);
	assert_non_null(strstr(p.err.msg, "came in parts"));
}

TEST_MAIN()
