/*
 * Data sockets at the port of the control connection (netserver --one-port): the daemon hands them
 * to the passive end; a token from the active end says to which test they belong (wire/token.h).
 */
#include "bench/transport/many.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"

enum {
	CHECK_MS = 100, /* between two checks whether the run is stopped */
	/* A token, or its answer, may get lost: send it again. The pause doubles each time. */
	RESEND_MS = 100,
	RESEND_MAX_MS = 1000
};

int
np_handed_establish(struct np_run *run, struct np_err *err)
{
	struct np_addr *peer = &run->end.peer;

	if (np_endpoint_accept(run, run->conn, err) != NP_OK) {
		return err->code;
	}
	peer->len = sizeof(peer->sa);
	if (getpeername(run->conn->fd, (struct sockaddr *)&peer->sa, &peer->len) != 0) {
		peer->len = 0; /* stopped before a socket came */
	}
	return np_many_each(run, 1, np_endpoint_accept, err);
}

/*
 * What is first in a socket's queue. Repeated tokens of the client (SHOWN) are removed and
 * acknowledged; SHOWN is returned if nothing else is there. NONE: data, which stay in the queue.
 */
static enum np_token_word
skip_tokens(int fd)
{
	enum np_token_word word = NP_TOKEN_SHOWN;

	while (word == NP_TOKEN_SHOWN) {
		uint8_t bytes[NP_TOKEN_SIZE + 1]; /* a longer datagram is data */
		ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);

		if (n < 0) {
			break;
		}
		word = np_token_get(bytes, (size_t)n, NULL);
		if (word == NP_TOKEN_SHOWN) {
			(void)!recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
			np_token_say(fd, NP_TOKEN_TAKEN);
		}
	}
	return word;
}

/* The far end sends data once all its tokens are acknowledged: then no more tokens come. */
int
np_handed_await(struct np_run *run, struct pollfd *waits, struct np_err *err)
{
	bool has_begun = false;

	while (!has_begun && !np_stopped(run->stop)) {
		if (poll(waits, run->conns, CHECK_MS) <= 0) {
			continue;
		}
		for (uint32_t i = 0; i < run->conns; i++) {
			has_begun =
			    (waits[i].revents != 0 && skip_tokens(waits[i].fd) != NP_TOKEN_SHOWN) ||
			    has_begun;
		}
	}
	return NP_OK;
}

int
np_fail_elsewhere(const struct np_run *run, struct np_err *err)
{
	return np_fail(err, NP_EPEER, 0,
		       "data connections to %s reach another netserver than the control "
		       "connection (one replica behind that address, or client affinity of the "
		       "balancer, cures that)",
		       NP_ADDR_STR(&run->end.peer));
}

/* Send the token of the test on data socket `number`. */
static int
send_token(const struct np_run *run, uint32_t number, struct np_err *err)
{
	const struct np_conn *c = &run->conn[number];
	bool aims = !run->plan->transport->connected && !np_run_connected(run);
	uint8_t bytes[NP_TOKEN_SIZE];

	np_token_put(bytes, NP_TOKEN_SHOWN, &run->end.shown);
	if (sendto(c->fd, bytes, sizeof(bytes), MSG_NOSIGNAL,
		   aims ? (const struct sockaddr *)&run->end.peer.sa : NULL,
		   aims ? run->end.peer.len : 0) == (ssize_t)sizeof(bytes) ||
	    errno == ECONNREFUSED || errno == ENOBUFS) {
		return NP_OK; /* a datagram that was not sent will be sent again */
	}
	return np_fail(err, NP_ESYS, errno, "show the token of the test to %s",
		       NP_ADDR_STR(&run->end.peer));
}

/* Make data socket `number` again, from another port, and send its token. */
static int
reopen(struct np_run *run, uint32_t number, struct np_err *err)
{
	struct np_conn *c = &run->conn[number];

	np_sock_reset(c->fd);
	c->fd = run->plan->transport->another(run, number, err);
	if (c->fd < 0) {
		return err->code;
	}
	if (run->plan->transport->connected || np_run_connected(run)) {
		if (np_many_begin(run, c, err) != NP_OK || np_many_await(run, c, err) != NP_OK) {
			return err->code;
		}
		if (run->worker->stop.wake_fd == 0) { /* the worker makes blocking calls */
			np_sock_block(c->fd, true);
		}
	}
	return send_token(run, number, err);
}

/* The answer to a token; SHOWN: there is none yet. Data stay in the queue. */
static enum np_token_word
read_answer(const struct np_run *run, int fd)
{
	uint8_t bytes[NP_TOKEN_SIZE + 1]; /* a longer datagram is data */
	size_t most = run->plan->transport->connected ? NP_TOKEN_SIZE : sizeof(bytes);
	ssize_t n = recv(fd, bytes, most, MSG_PEEK | MSG_DONTWAIT);
	enum np_token_word word;

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		return NP_TOKEN_SHOWN;
	}
	if (n <= 0) {
		return NP_TOKEN_UNKNOWN; /* it was closed or refused */
	}
	if (run->plan->transport->connected && n < NP_TOKEN_SIZE) {
		return NP_TOKEN_SHOWN; /* the rest follows */
	}
	word = np_token_get(bytes, (size_t)n, NULL);
	if (word == NP_TOKEN_NONE) {
		return NP_TOKEN_TAKEN; /* data already: the answer was lost */
	}
	(void)!recv(fd, bytes, most, MSG_DONTWAIT);
	return word;
}

int
np_show_token(struct np_run *run, struct pollfd *waits, struct np_err *err)
{
	bool repeats = !run->plan->transport->connected; /* datagrams may get lost */
	/* round_trips_ns is two: on a long path the token may have to be sent three times. */
	uint64_t elsewhere = np_deadline(NP_ELSEWHERE_S * NP_SEC + 6 * run->round_trips_ns);
	uint64_t until = np_deadline(10 * NP_SEC), resend_ns = np_deadline(RESEND_MS * NP_MSEC);
	uint64_t pause_ms = RESEND_MS;
	uint32_t left = run->conns;

	for (uint32_t i = 0; i < run->conns; i++) {
		if (send_token(run, i, err) != NP_OK) {
			return err->code;
		}
	}
	while (left > 0 && !np_stopped(run->stop)) {
		uint64_t now;

		(void)poll(waits, run->conns, CHECK_MS);
		now = np_now();
		for (uint32_t i = 0; i < run->conns; i++) {
			enum np_token_word word = NP_TOKEN_SHOWN;

			if (waits[i].fd < 0) { /* it has its answer */
				continue;
			}
			if (waits[i].revents != 0) {
				word = read_answer(run, waits[i].fd);
			}
			if (word == NP_TOKEN_TAKEN) {
				waits[i].fd = -1;
				left--;
			} else if (word == NP_TOKEN_UNKNOWN) {
				if ((now >= elsewhere ? np_fail_elsewhere(run, err)
						      : reopen(run, i, err)) != NP_OK) {
					return err->code;
				}
				waits[i].fd = run->conn[i].fd;
			} else if (repeats && now >= resend_ns &&
				   send_token(run, i, err) != NP_OK) {
				return err->code;
			}
		}
		if (now >= resend_ns) {
			pause_ms = np_min(2 * pause_ms, RESEND_MAX_MS);
			resend_ns = now + pause_ms * NP_MSEC;
		}
		if (repeats && now >= until) {
			return np_fail(err, NP_ETIME, 0,
				       "no answer came from %s, where datagrams were sent to (does "
				       "something drop datagrams to that port?)",
				       NP_ADDR_STR(&run->end.peer));
		}
	}
	return left == 0 ? NP_OK
			 : np_fail(err, NP_ESYS, EINTR, "show the token of %u of %u data sockets",
				   left, run->conns);
}
