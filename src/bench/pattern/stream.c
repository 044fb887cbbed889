/*
 * stream: one end transmits, the other receives. The receiver counts what arrived; over TCP the
 * end is the transmitter's close, over UDP an empty datagram.
 */
#include "bench/pattern/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "bench/engine/syscall.h"
#include "bench/extra.h"
#include "bench/pattern/splice.h"
#include "bench/sequence.h"
#include "net/eth.h"

enum {
	FAREWELLS = 3, /* netperf's own number of empty datagrams at the end of a test */
	ROOM_MS = 500, /* for the first of them to find room */
	LAGGARD_MS = 5 /* for a numbered datagram that comes behind them */
};

/* A send that did not go out whole. Returns 0 to go on, 1 to leave quietly, -errno to fail. */
static int
send_failed(struct np_run *run, uint64_t *failed)
{
	if (errno == EINTR) {
		return 0;
	}
	if (!run->plan->transport->connected && (errno == ENOBUFS || errno == ENOMEM)) {
		np_show(&run->worker.count->failed, ++*failed);
		return 0;
	}
	return -errno;
}

/* The number is that of the sends so far: a datagram that was refused is no lost one. */
NP_LOOP_BODY ssize_t
send_numbered(struct np_run *run, char *buf, size_t size, const void *to, socklen_t to_len,
	      uint64_t number, const bool extras)
{
	if (extras) {
		np_extra_touch(run, buf, size);
	}
	np_sequence_mark(buf, number, np_now());
	return extras ? np_extra_put(run, run->conn->fd, buf, size, to, to_len)
		      : np_sys_sendto(run->conn->fd, buf, size, to, to_len);
}

NP_LOOP_BODY int
transmit_loop(struct np_run *run, const void *to, socklen_t to_len, const bool timed,
	      const bool extras, const bool numbered)
{
	const struct np_slot *slot = run->worker.send_ring.slots;
	const size_t size = run->worker.send_size;
	struct np_counters *count = run->worker.count;
	uint64_t sent = 0, sends = 0, failed = 0;
	uint64_t then = run->window.started_ns;

	while (!np_stopped(run->stop) && sent < run->worker.budget) {
		ssize_t n =
		    numbered ? send_numbered(run, slot->buf, size, to, to_len, sends, extras)
		    : extras ? np_extra_send(run, run->conn->fd, slot->buf, size, to, to_len)
			     : np_sys_sendto(run->conn->fd, slot->buf, size, to, to_len);

		if (__builtin_expect(n < 0, 0)) {
			int rc = send_failed(run, &failed);

			if (rc != 0) {
				return rc;
			}
			continue;
		}
		sent += (uint64_t)n;
		np_show(&count->sent, sent);
		np_show(&count->sends, ++sends);
		slot = slot->next;
		if (timed) {
			then = np_stream_lap(run, then);
		}
		if (extras && np_pace(run)) {
			then = np_now();
		}
	}
	return 0;
}

static int
transmit_plain(struct np_run *run)
{
	return transmit_loop(run, NULL, 0, false, false, false);
}

static int
transmit_timed(struct np_run *run)
{
	return transmit_loop(run, NULL, 0, true, false, false);
}

static int
transmit_to_plain(struct np_run *run)
{
	return transmit_loop(run, &run->end.peer.sa, run->end.peer.len, false, false, false);
}

static int
transmit_to_timed(struct np_run *run)
{
	return transmit_loop(run, &run->end.peer.sa, run->end.peer.len, true, false, false);
}

/* Where an address has to be named in every send. */
static bool
named_peer(const struct np_run *run)
{
	return !run->plan->transport->connected && !np_run_connected(run);
}

static int
transmit_extras(struct np_run *run)
{
	bool named = named_peer(run);

	np_pace_begin(run);
	return transmit_loop(run, named ? &run->end.peer.sa : NULL, named ? run->end.peer.len : 0,
			     run->plan->time_calls, true, false);
}

static int
transmit_numbered(struct np_run *run)
{
	bool named = named_peer(run);

	return transmit_loop(run, named ? &run->end.peer.sa : NULL, named ? run->end.peer.len : 0,
			     run->plan->time_calls, false, true);
}

static int
transmit_numbered_extras(struct np_run *run)
{
	bool named = named_peer(run);

	np_pace_begin(run);
	return transmit_loop(run, named ? &run->end.peer.sa : NULL, named ? run->end.peer.len : 0,
			     run->plan->time_calls, true, true);
}

static int
transmit_setup(struct np_run *run, struct np_err *err)
{
	bool timed = run->plan->time_calls, extras = np_extra_wanted(run);

	if (np_run_send_ring(run, run->plan->near.send_size, true, err) != NP_OK) {
		return err->code;
	}
	if (np_sequence_wanted(run->plan) && run->worker.send_size >= NP_SEQUENCE_HEADER) {
		run->worker.loop = extras ? transmit_numbered_extras : transmit_numbered;
	} else if (extras) {
		run->worker.loop = transmit_extras;
	} else if (named_peer(run)) {
		run->worker.loop = timed ? transmit_to_timed : transmit_to_plain;
	} else {
		run->worker.loop = timed ? transmit_timed : transmit_plain;
	}
	return NP_OK;
}

void
np_run_farewell(struct np_run *run)
{
	/* A connected socket may name no address; one that is given is the one it has. */
	const void *to = np_run_connected(run) ? NULL : &run->end.peer.sa;
	socklen_t len = np_run_connected(run) ? 0 : run->end.peer.len;

	/* A service that is no daemon of ours would not take it for an end: echo sends it back. */
	if (run->conn->fd >= 0 && run->end.peer.len > 0 && !run->plan->no_control) {
		if (run->plan->transport->farewell != NULL) {
			run->plan->transport->farewell(run);
			return;
		}
		sendto(run->conn->fd, "", 0, MSG_NOSIGNAL | MSG_DONTWAIT, to, len);
	}
}

void
np_run_farewells(struct np_run *run)
{
	/* A socket of the UNIX domain takes none while the far end's queue is full. */
	struct pollfd room = { .fd = run->conn->fd, .events = POLLOUT };

	poll(&room, 1, ROOM_MS);
	for (int i = 0; i < FAREWELLS; i++) {
		np_run_farewell(run);
	}
}

/* netperf's clock runs until the far end has taken everything and closed; if it does. */
static void
part(struct np_run *run)
{
	int rc = np_run_part(run);

	if (rc != -ETIMEDOUT) {
		run->window.ended_ns = np_now();
	} else if (!np_abandoned(run->stop)) {
		np_fail(&run->err, NP_ETIME, 0,
			"the far end did not take the end of the data within %d s", NP_PART_S);
	}
}

void
np_stream_transmit_finish(struct np_run *run)
{
	if (!run->plan->transport->connected) {
		np_run_farewells(run);
	} else if (run->plan->active) {
		part(run);
	} else {
		np_run_look(run);
		shutdown(run->conn->fd, SHUT_WR);
	}
}

void
np_stream_nudge(struct np_run *run)
{
	if (!run->plan->transport->connected) {
		np_run_farewell(run);
	}
}

NP_LOOP_BODY int
receive_loop(struct np_run *run, const bool timed, const bool extras, const bool numbered,
	     const bool framed)
{
	const struct np_slot *slot = run->worker.recv_ring.slots;
	const size_t size = run->worker.recv_size;
	/*
	 * A connection has an end; of datagrams netperf's daemon sends no more than the count.
	 * Numbered ones may come twice, and all that come are accounted for.
	 */
	const uint64_t enough =
	    !numbered && !run->plan->transport->connected ? run->worker.budget : UINT64_MAX;
	struct np_counters *count = run->worker.count;
	uint64_t received = 0, receives = 0;
	uint64_t then = run->window.started_ns;

	while (!np_stopped(run->stop) && received < enough) {
		ssize_t n = extras ? np_extra_recv(run, run->conn->fd, slot->buf, size)
				   : np_sys_recv(run->conn->fd, slot->buf, size);

		if (framed && n > 0 && np_eth_is_end(slot->buf)) {
			n = 0;
		}
		if (__builtin_expect(n <= 0, 0)) {
			if (n == 0) {
				run->hung_up = true;
				return 0;
			}
			if (errno == EINTR) {
				continue;
			}
			return -errno;
		}
		received += (uint64_t)n;
		np_show(&count->received, received);
		np_show(&count->receives, ++receives);
		if (numbered) {
			np_sequence_arrived(run->worker.state, slot->buf, (size_t)n, np_now(),
					    false);
		}
		slot = slot->next;
		if (timed) {
			then = np_stream_lap(run, then);
		}
		if (extras && np_pace(run)) {
			then = np_now();
		}
	}
	return 0;
}

static int
receive_plain(struct np_run *run)
{
	return receive_loop(run, false, false, false, false);
}

static int
receive_timed(struct np_run *run)
{
	return receive_loop(run, true, false, false, false);
}

static int
receive_extras(struct np_run *run)
{
	np_pace_begin(run);
	return receive_loop(run, run->plan->time_calls, true, false, false);
}

static int
receive_numbered(struct np_run *run)
{
	return receive_loop(run, run->plan->time_calls, false, true, false);
}

static int
receive_numbered_extras(struct np_run *run)
{
	np_pace_begin(run);
	return receive_loop(run, run->plan->time_calls, true, true, false);
}

/* Messages with a header of the transport's, by which the last one is known. */
static int
receive_frames(struct np_run *run)
{
	return receive_loop(run, false, false, false, true);
}

static int
receive_frames_extras(struct np_run *run)
{
	np_pace_begin(run);
	return run->worker.state != NULL
		   ? receive_loop(run, run->plan->time_calls, true, true, true)
		   : receive_loop(run, run->plan->time_calls, true, false, true);
}

static int
receive_frames_setup(struct np_run *run, bool extras, struct np_err *err)
{
	bool numbered = np_sequence_wanted(run->plan);

	if (numbered && (run->worker.state = np_sequence_new(err)) == NULL) {
		return err->code;
	}
	run->worker.loop =
	    extras || numbered || run->plan->time_calls ? receive_frames_extras : receive_frames;
	return NP_OK;
}

/* Where splice(2) can't do it, as if nobody had asked. */
static int
receive_uncopied(struct np_run *run)
{
	int rc = np_splice_receive(run);

	return rc == -ENOSYS ? receive_extras(run) : rc;
}

static int
receive_setup(struct np_run *run, struct np_err *err)
{
	bool extras = np_extra_wanted(run);

	if (np_run_recv_ring(run, run->plan->near.recv_size, true, err) != NP_OK) {
		return err->code;
	}
	if (run->plan->transport->header > 0) {
		return receive_frames_setup(run, extras, err);
	}
	if (np_sequence_wanted(run->plan) && run->worker.recv_size >= NP_SEQUENCE_HEADER) {
		run->worker.state = np_sequence_new(err);
		run->worker.loop = extras ? receive_numbered_extras : receive_numbered;
		return run->worker.state != NULL ? NP_OK : (int)err->code;
	}
	if (run->plan->copy_avoidance && run->plan->transport->connected) {
		run->worker.loop = receive_uncopied;
	} else if (extras) {
		run->worker.loop = receive_extras;
	} else {
		run->worker.loop = run->plan->time_calls ? receive_timed : receive_plain;
	}
	return NP_OK;
}

static void
receive_release(struct np_run *run)
{
	free(run->worker.state);
	run->worker.state = NULL;
}

/* Without waiting; but an end mark may overtake numbered datagrams, which have a moment then. */
static ssize_t
recv_left(struct np_run *run)
{
	struct pollfd more = { .fd = run->conn->fd, .events = POLLIN };
	ssize_t n = recv(run->conn->fd, run->worker.recv_ring.slots->buf, run->worker.recv_size,
			 MSG_DONTWAIT);

	if (n < 0 && run->worker.state != NULL && errno == EAGAIN &&
	    poll(&more, 1, LAGGARD_MS) > 0) {
		n = recv(run->conn->fd, run->worker.recv_ring.slots->buf, run->worker.recv_size,
			 MSG_DONTWAIT);
	}
	if (n > 0 && run->plan->transport->header > 0 &&
	    np_eth_is_end(run->worker.recv_ring.slots->buf)) {
		return 0;
	}
	return n;
}

/* What was queued behind the end mark, or was there when the time was up, has arrived, too. */
static void
drain_datagrams(struct np_run *run)
{
	uint64_t received = np_seen(&run->worker.count->received);
	uint64_t receives = np_seen(&run->worker.count->receives);
	uint64_t until = np_deadline(NP_SEC); /* others may go on sending for ever */
	ssize_t n;

	while (np_now() < until && (n = recv_left(run)) >= 0) {
		received += (uint64_t)n;
		receives += n > 0;
		if (n > 0 && run->worker.state != NULL) {
			np_sequence_arrived(run->worker.state, run->worker.recv_ring.slots->buf,
					    (size_t)n, np_now(), true);
		}
	}
	np_show(&run->worker.count->received, received);
	np_show(&run->worker.count->receives, receives);
}

static void
receive_finish(struct np_run *run)
{
	if (!run->plan->transport->connected) {
		drain_datagrams(run);
	} else if (run->plan->active && !run->hung_up) {
		/* The far end is told off, but nothing more counts; see client.c for its results.
		 */
		np_run_look(run);
		shutdown(run->conn->fd, SHUT_WR);
	}
}

const struct np_side np_stream_receive = {
	.setup = receive_setup,
	.finish = receive_finish,
	.release = receive_release,
	.pad_ns = 4 * NP_SEC,
};

static const struct np_side transmit = {
	.setup = transmit_setup,
	.finish = np_stream_transmit_finish,
	.nudge = np_stream_nudge,
	.ends_on_hangup = true,
};

const struct np_pattern np_pattern_stream = {
	.name = "stream",
	.words = { [NP_LEAD] = { "Send", "send", "send", "transmit" },
		   [NP_FOLLOW] = { "Receive", "receive", "recv", "receive" } },
	.side = { [NP_LEAD] = &transmit, [NP_FOLLOW] = &np_stream_receive },
	.lead_direction = NP_WD_TRANSMIT,
	.sequence = true,
	.speaks_first = true,
};
