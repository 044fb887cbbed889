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
#include "bench/engine/sync.h"
#include "bench/sequence.h"
#include "net/eth.h"

enum {
	FAREWELLS = 3, /* netperf's own number of empty datagrams at the end of a test */
	ROOM_MS = 500, /* for the first of them to find room */
	LAGGARD_MS = 5 /* for a numbered datagram that comes behind them */
};

/* The time of a call is that from the end of the one before. */
NP_LOOP_BODY void
lap(struct np_worker *w, struct np_conn *c)
{
	uint64_t now = np_now();

	np_hist_record(w->hist, now - c->since_ns);
	c->since_ns = now;
}

/* The number is that of the sends so far: a datagram that was refused is no lost one. */
NP_LOOP_BODY enum np_need
transmit_sent(struct np_worker *w, struct np_conn *c, size_t n)
{
	uint64_t sent = np_add(&w->count->sent, n);

	np_add(&w->count->sends, 1);
	c->sent += n;
	c->number++;
	if (__builtin_expect((w->codec & NP_C_TIME) != 0, 0)) {
		lap(w, c);
	}
	return np_paced(w, __builtin_expect(sent < w->budget, 1) ? NP_SEND : NP_OVER);
}

static enum np_need
transmit_failed(struct np_worker *w, struct np_conn *c, enum np_need need, int error)
{
	if (!w->run->plan->transport->connected && (error == ENOBUFS || error == ENOMEM)) {
		np_add(&w->count->failed, 1);
		return need;
	}
	return np_step_failed(w, c, need, error);
}

static const struct np_steps transmit_steps = {
	.first = NP_SEND,
	.sent = transmit_sent,
	.failed = transmit_failed,
};

static int
transmit_sync(struct np_worker *w)
{
	return np_sync_drive(w, &transmit_steps);
}

const struct np_steps np_stream_file_steps = {
	.first = NP_SEND,
	.sends_file = true,
	.sent = transmit_sent,
	.failed = transmit_failed,
};

int
np_stream_file_sync(struct np_worker *w)
{
	return np_sync_drive(w, &np_stream_file_steps);
}

static int
transmit_setup(struct np_run *run, struct np_err *err)
{
	struct np_worker *w = &run->worker;

	if (np_run_send_ring(run, run->plan->near.call.send_size, true, err) != NP_OK) {
		return err->code;
	}
	if (np_sequence_wanted(run->plan) && w->send_size >= NP_SEQUENCE_HEADER) {
		w->codec |= NP_C_NUMBER;
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
	if (run->conn->fd < 0 || run->end.peer.len == 0 || run->plan->no_control) {
		return;
	}
	if (run->plan->transport->farewell != NULL) {
		run->plan->transport->farewell(run);
		return;
	}
	for (uint32_t i = 0; i < run->conns; i++) {
		sendto(run->conn[i].fd, "", 0, MSG_NOSIGNAL | MSG_DONTWAIT, to, len);
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
		np_run_shut(run);
	}
}

void
np_stream_nudge(struct np_run *run)
{
	if (!run->plan->transport->connected) {
		np_run_farewell(run);
	}
}

NP_LOOP_BODY enum np_need
receive_arrived(struct np_worker *w, struct np_conn *c, const char *buf, size_t n)
{
	uint64_t received;

	if (__builtin_expect(n == 0, 0)) {
		w->run->hung_up = true;
		return NP_OVER;
	}
	received = np_add(&w->count->received, n);
	np_add(&w->count->receives, 1);
	c->received += n;
	if (__builtin_expect(w->sequence != NULL, 0)) {
		np_sequence_arrived(w->sequence, buf, n, np_now(), false);
	}
	if (__builtin_expect((w->codec & NP_C_TIME) != 0, 0)) {
		lap(w, c);
	}
	return np_paced(w, __builtin_expect(received < w->budget, 1) ? NP_RECV : NP_OVER);
}

static const struct np_steps receive_steps = {
	.first = NP_RECV,
	.arrived = receive_arrived,
};

static int
receive_sync(struct np_worker *w)
{
	return np_sync_drive(w, &receive_steps);
}

static int
receive_setup(struct np_run *run, struct np_err *err)
{
	const struct np_plan *p = run->plan;
	struct np_worker *w = &run->worker;

	if (np_run_recv_ring(run, p->near.call.recv_size, true, err) != NP_OK) {
		return err->code;
	}
	if (p->transport->header > 0) {
		w->codec |= NP_C_FRAME;
	}
	if (np_sequence_wanted(p) && w->recv_size >= NP_SEQUENCE_HEADER) {
		w->sequence = np_sequence_new(err);
		if (w->sequence == NULL) {
			return err->code;
		}
	}
	if (p->copy_avoidance && p->transport->connected) {
		w->codec |= NP_C_SPLICE;
	}
	/*
	 * A connection has an end; of datagrams netperf's daemon sends no more than the count.
	 * Numbered ones may come twice, and all that come are accounted for.
	 */
	if (p->transport->connected || w->sequence != NULL) {
		w->budget = UINT64_MAX;
	}
	return NP_OK;
}

static void
receive_release(struct np_run *run)
{
	free(run->worker.sequence);
	run->worker.sequence = NULL;
}

/* Without waiting; but an end mark may overtake numbered datagrams, which have a moment then. */
static ssize_t
recv_left(struct np_run *run)
{
	struct pollfd more = { .fd = run->conn->fd, .events = POLLIN };
	ssize_t n = recv(run->conn->fd, run->worker.recv_ring.slots->buf, run->worker.recv_size,
			 MSG_DONTWAIT);

	if (n < 0 && run->worker.sequence != NULL && errno == EAGAIN &&
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
		if (n > 0 && run->worker.sequence != NULL) {
			np_sequence_arrived(run->worker.sequence, run->worker.recv_ring.slots->buf,
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
		np_run_shut(run);
	}
}

const struct np_side np_stream_receive = {
	.setup = receive_setup,
	.steps = &receive_steps,
	.sync = receive_sync,
	.finish = receive_finish,
	.release = receive_release,
	.pad_ns = 4 * NP_SEC,
};

static const struct np_side transmit = {
	.setup = transmit_setup,
	.steps = &transmit_steps,
	.sync = transmit_sync,
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
	.several = true,
	.sequence = true,
	.speaks_first = true,
};
