/* stream: one end transmits, the other counts. TCP ends by a close, UDP by an empty datagram. */
#include "bench/pattern/stream.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench/engine/calls.h"
#include "bench/engine/sync.h"
#include "bench/sequence.h"
#include "net/eth.h"
#include "net/tcpinfo.h"

enum {
	EMPTY_MS = 5,     /* between two checks for data that are left to send */
	END_MARKS = 3,    /* empty datagrams at the end, as netperf sends */
	ROOM_MS = 500,    /* wait for room to send the first of them */
	AFTER_S = 60,     /* longest wait of a receiver for the end of data after its window */
	UNREAD_MS = 1000, /* wait of a sender for data in flight, beside two trips: brief_ns() */
	LAGGARD_MS = 20,  /* wait for numbered datagrams after the end mark */
	SETTLE_MS = 300,  /* from the last acknowledgement to a close that drops data in flight */
	MARKS_MAX = 100,  /* more end marks than a live connection receives */
	DROP_MS = 100,    /* between two checks for the end */
};

/* Record the time of a call, from the end of the one before (np_plan.time_calls). */
NP_LOOP_BODY void
record_lap(struct np_worker *w, struct np_conn *c)
{
	uint64_t now = np_now();

	np_hist_record(w->hist, now - c->since_ns);
	c->since_ns = now;
}

/* The load paces whole messages, each of which may take several calls: c->part bytes are sent. */
static __attribute__((noinline)) enum np_need
paced_sent(struct np_worker *w, struct np_conn *c, size_t n, enum np_need need)
{
	c->part += n;
	if (c->part < w->send_size && need != NP_OVER) {
		return need;
	}
	/* What was sent beyond the message is of the next one. */
	c->part -= c->part < w->send_size ? c->part : w->send_size;
	return np_paced(w, c, need);
}

/* np_steps.sent. Also for a datagram that a lost route refused: it has a number, and is lost. */
NP_LOOP_BODY enum np_need
transmit_sent(struct np_worker *w, struct np_conn *c, size_t n)
{
	uint64_t sent = np_add(&w->count->sent, n);
	enum np_need need = __builtin_expect(sent < w->budget, 1) ? NP_SEND : NP_OVER;

	np_add(&w->count->sends, 1);
	c->sent += n;
	c->number++;
	if (__builtin_expect((w->codec & NP_C_TIME) != 0, 0)) {
		record_lap(w, c);
	}
	return __builtin_expect((w->codec & NP_C_PACE) != 0, 0) ? paced_sent(w, c, n, need) : need;
}

/* np_steps.sent_many: whole messages, which are neither timed nor paced. */
static enum np_need
transmit_sent_many(struct np_worker *w, struct np_conn *c, uint32_t count)
{
	uint64_t bytes = count * (uint64_t)w->send_size, sent = np_add(&w->count->sent, bytes);

	np_add(&w->count->sends, count);
	c->sent += bytes;
	c->number += count;
	return sent < w->budget ? NP_SEND : NP_OVER;
}

/* np_steps.failed. A datagram without room in the kernel: count it, send the same number again. */
static enum np_need
transmit_failed(struct np_worker *w, struct np_conn *c, enum np_need need, int error)
{
	if (!np_delivers(w->run->plan->transport) && (error == ENOBUFS || error == ENOMEM)) {
		np_add(&w->count->failed, 1);
		return need;
	}
	if (w->run->plan->transport->ends.closes_whole && !w->run->plan->active &&
	    (error == ESHUTDOWN || error == EPIPE)) {
		w->hung_up = true; /* the client has ended it, as elsewhere by a half-close */
		return NP_OVER;
	}
	return np_step_failed(w, c, need, error);
}

/* np_steps.ahead: messages left of the budget, and of the burst. */
static uint64_t
transmit_ahead(const struct np_worker *w, const struct np_conn *c)
{
	uint64_t left = w->budget - np_get(&w->count->sent);
	uint64_t messages = left / w->send_size + (left % w->send_size > 0);

	return np_paced_row(w, c, messages);
}

const struct np_steps np_stream_transmit_steps = {
	.first = NP_SEND,
	.takes_parts = true,
	.ahead = transmit_ahead,
	.sent = transmit_sent,
	.sent_many = transmit_sent_many,
	.failed = transmit_failed,
};

int
np_stream_transmit_sync(struct np_worker *w)
{
	return np_sync_drive(w, &np_stream_transmit_steps);
}

/* np_side.setup: the ring of send buffers, and numbers if a message has room for them. */
static int
transmit_setup(struct np_worker *w, struct np_err *err)
{
	const struct np_plan *p = w->run->plan;

	if (np_worker_send_ring(w, p->near.call.send_size, true, err) != NP_OK) {
		return err->code;
	}
	if (np_sequence_wanted(p) && w->send_size >= NP_SEQUENCE_HEADER) {
		w->codec |= NP_C_NUMBER | (p->warm_up_ms > 0 ? NP_C_WARM : 0u);
	}
	return NP_OK;
}

/* Wait until the socket can send: in the UNIX domain not while the far end's queue is full. */
static void
await_room(int fd, uint64_t until)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	uint64_t now = np_now();

	if (now < until) {
		poll(&room, 1, (int)((until - now) / NP_MSEC) + 1);
	}
}

/* Send the end mark, an empty datagram, on each connection, if there is room until then. */
static void
send_end_mark(const struct np_worker *w, uint64_t until)
{
	struct np_run *run = w->run;
	/* An address only for sockets that are not connected. */
	bool connected = run->plan->transport->connected;
	bool named = !np_run_connected(run) && !connected;
	const void *to = named ? &run->end.peer.sa : NULL;
	socklen_t len = named ? run->end.peer.len : 0;

	/* No peer is known, or with -N it is a service without end marks: echo would return it. */
	if (w->conn->fd < 0 || (run->end.peer.len == 0 && !connected) || run->plan->no_control) {
		return;
	}
	if (run->plan->transport->ends.send_mark != NULL) {
		await_room(w->conn->fd, until);
		run->plan->transport->ends.send_mark(run);
		return;
	}
	NP_EACH_CONN (c, w) {
		int fd = c->fd;

		do {
			await_room(fd, until);
		} while (sendto(fd, "", 0, MSG_NOSIGNAL | MSG_DONTWAIT, to, len) < 0 &&
			 errno == EAGAIN && np_now() < until);
	}
}

/*
 * What the far end has not acknowledged, of all connections, as on a shared path one may stand
 * still: bytes or, over SCTP, chunks. To be compared with 0 and with earlier values.
 */
static int64_t
unacknowledged(const struct np_worker *w)
{
	const struct np_transport *t = w->run->plan->transport;
	int64_t sum = 0;

	NP_EACH_CONN (c, w) {
		int fd = c->fd;
		int64_t left =
		    t->ends.unacked != NULL ? t->ends.unacked(fd) : np_sock_queued(fd, SIOCOUTQ);

		sum += left > 0 ? left : 0;
	}
	return sum;
}

/* End the stream before data in flight, which the client discards. False: nothing is in flight. */
static bool
cut(struct np_worker *w)
{
	uint64_t left = 0;

	if (unacknowledged(w) == 0) { /* all has arrived meanwhile */
		return false;
	}
	NP_EACH_CONN (c, w) {
		c->sent -= c->part; /* bytes in flight, see end_stream() */
		left += c->part;
	}
	np_set(&w->count->sent, np_get(&w->count->sent) - left);
	w->run->cut = true;
	return true;
}

/* A second and two round trips: how long to wait for data in flight, or idle after a signal. */
static uint64_t
brief_ns(const struct np_worker *w)
{
	struct np_tcp_brief tcp; /* its round trip includes the queue on the path */
	bool known = np_tcp_read(w->conn->fd, &tcp, NULL) && tcp.rtt_us > 0;

	return UNREAD_MS * NP_MSEC + (known ? 2000 * (uint64_t)tcp.rtt_us : w->run->round_trips_ns);
}

/* When a wait ends in which nothing moves from now on; not later than last_ns. */
static uint64_t
idle_deadline(const struct np_worker *w, uint64_t last_ns)
{
	uint64_t idle_ns = np_hurried(&w->stop) ? brief_ns(w) : NP_PART_S * NP_SEC;

	return np_min(np_deadline(idle_ns), last_ns);
}

/* Wait until no data are left in the kernel. 0: also if abandoned; -ETIMEDOUT: nothing moved. */
static int
await_empty(struct np_worker *w)
{
	uint64_t until = idle_deadline(w, NP_NEVER);
	int64_t before = INT64_MAX;

	while (!np_abandoned(&w->stop)) {
		int64_t left = 0; /* bytes of the kernel's memory, on all connections */

		NP_EACH_CONN (c, w) {
			left += np_sock_memory(c->fd, SK_MEMINFO_WMEM_ALLOC);
		}
		if (left <= 0) {
			break;
		}
		if (left != before) {
			before = left;
			until = idle_deadline(w, NP_NEVER);
		}
		until = np_run_extend(w->run, w->conn->fd, until);
		if (np_now() >= until) {
			return -ETIMEDOUT;
		}
		poll(NULL, 0, EMPTY_MS);
	}
	return 0;
}

/* Wait for a close. Data or ACKs that move put off *until, up to last_ns. 0, -ETIMEDOUT, -errno. */
static int
await_close(struct np_worker *w, struct np_conn *c, uint64_t *until, uint64_t last_ns)
{
	const struct np_transport *t = w->run->plan->transport;
	const bool service = w->run->plan->no_control;
	/* Where no close may be received, poll(2) does not wake: look often. */
	uint64_t step_ms = t->ends.unacked != NULL || service ? 1 : 100;
	int64_t queued = -1;
	char sink[4096];

	while (!np_abandoned(&w->stop) && np_now() < *until) {
		struct pollfd p = { .fd = c->fd, .events = POLLIN };
		int64_t now_queued;

		if (t->ends.unacked != NULL && t->ends.unacked(c->fd) < 0) { /* it is over */
			return 0;
		}
		if (poll(&p, 1, (int)np_min(step_ms, np_excess(*until, np_now()) / NP_MSEC + 1)) >
		    0) {
			/* POLLERR may mean that the kernel has released a buffer. */
			bool released = (p.revents & POLLERR) != 0 && w->calls != NULL &&
					w->calls->take_back != NULL && w->calls->take_back(w, c);
			ssize_t n = released ? 1 : recv(c->fd, sink, sizeof(sink), MSG_DONTWAIT);

			if (n == 0 || (n < 0 && np_run_has_ended(w->run, c->fd, errno))) {
				return 0;
			}
			if (n < 0 && errno != EAGAIN && errno != EINTR) {
				return -errno;
			}
			*until = idle_deadline(w, last_ns);
			continue;
		}
		now_queued = unacknowledged(w);
		if (now_queued == 0 && service) {
			return 0; /* it has received everything, and need not close */
		}
		if (now_queued != queued) {
			queued = now_queued;
			*until = idle_deadline(w, last_ns);
		}
		*until = np_min(np_run_extend(w->run, c->fd, *until), last_ns);
	}
	return -ETIMEDOUT;
}

/*
 * Shut down the sending halves, and discard data until the far end has closed each connection.
 * -ETIMEDOUT: nothing moved for NP_PART_S, most_ns are over (0: no limit), or the test was
 * abandoned. Otherwise returns 0, or -errno of a broken connection.
 */
static int
end_all(struct np_worker *w, uint64_t most_ns)
{
	uint64_t last_ns = most_ns > 0 ? np_deadline(most_ns) : NP_NEVER;
	uint64_t until = idle_deadline(w, last_ns);
	int rc = 0;

	np_worker_read_closing(w);
	np_worker_shut(w);
	for (uint32_t i = 0; i < w->conns && rc != -ETIMEDOUT; i++) {
		bool was_connected = w->run->plan->ramp == 0 || w->conn[i].is_up;
		int one = was_connected ? await_close(w, &w->conn[i], &until, last_ns) : 0;

		rc = one != 0 ? one : rc;
	}
	return rc;
}

/* Did the wait with this result end in time? If not, it is an error unless a signal has come. */
static bool
was_in_time(struct np_worker *w, int rc, const char *failure)
{
	if (rc == -ETIMEDOUT && !np_hurried(&w->stop)) {
		np_fail(&w->err, NP_ETIME, 0, "%s within %d s", failure, NP_PART_S);
	}
	return rc != -ETIMEDOUT;
}

/* As in netperf, the time of a stream goes on until now; with a warm-up its length is fixed. */
static void
end_window(struct np_worker *w)
{
	if (w->run->plan->warm_up_ms == 0 && !w->run->plan->pattern->transactions) {
		w->ended_ns = np_now();
	}
}

/*
 * End a client's stream. As in netperf, its time goes on until the far end has received everything
 * and closed. If that takes long on a slow path, or does not count, data in flight are cut off.
 */
static void
end_stream(struct np_worker *w)
{
	static const char unread[] = "the far end did not read the end of the data";
	const struct np_run *run = w->run;
	bool failed = w->err.code != NP_OK; /* then what was not acknowledged does not count */
	/* Not after a complete count: all of it has to arrive. */
	bool may_cut = run->resets && (np_stopped(&w->stop) || failed);
	uint64_t most_ns = brief_ns(w);
	int rc = -ETIMEDOUT;

	/* Without any response the path may be dead: do not report a time-out as an error. */
	if (run->plan->pattern->transactions && np_stopped(&w->stop) &&
	    np_get(&w->count->transactions) == 0) {
		(void)end_all(w, most_ns);
		return;
	}
	for (uint32_t i = 0; may_cut && i < w->conns; i++) { /* bytes in flight, for cut() */
		w->conn[i].part = np_min(np_conn_queued(&w->conn[i]), w->conn[i].sent);
	}
	if (!may_cut || run->plan->warm_up_ms == 0) { /* after a warm-up, a wait would not count */
		rc = end_all(w, may_cut ? most_ns : 0);
	}
	if (may_cut && (rc != 0 || failed) && cut(w)) {
		return;
	}
	if (may_cut && rc == -ETIMEDOUT && !np_abandoned(&w->stop)) {
		end_window(w); /* all data have arrived; only the far end's close is missing */
		(void)was_in_time(w, end_all(w, 0), unread);
	} else if (was_in_time(w, rc, unread)) {
		end_window(w);
	}
}

void
np_stream_transmit_finish(struct np_worker *w)
{
	const struct np_plan *p = w->run->plan;

	if (!np_delivers(p->transport)) {
		/* Congestion control may take seconds to send what is in the socket's buffer. */
		if (p->transport->connected && p->active &&
		    was_in_time(w, await_empty(w), "the rest of the data was not sent")) {
			end_window(w);
		}
		send_end_mark(w, np_deadline(ROOM_MS * NP_MSEC));
		for (uint32_t i = 1; i < END_MARKS; i++) {
			send_end_mark(w, 0);
		}
	} else if (p->active && p->transport->ends.shut_drops) {
		/* A shutdown drops what the far end has not read: leave it time, too. */
		(void)was_in_time(w, await_empty(w),
				  "the far end did not acknowledge the end of the data");
		end_window(w);
		np_worker_read_closing(w);
		poll(NULL, 0, SETTLE_MS);
		np_worker_shut(w);
	} else if (p->active) {
		end_stream(w);
	} else { /* a daemon: its client waits for the end, and counts */
		np_worker_read_closing(w);
		np_worker_shut(w);
	}
}

void
np_stream_nudge(struct np_run *run)
{
	NP_EACH_WORKER (w, run) {
		if (!np_delivers(run->plan->transport)) {
			send_end_mark(w, 0);
		}
	}
}

/*
 * Does a datagram belong to the window? Numbered ones say so. For others, the receiver's window
 * starts one warm-up after the first datagram, and is as long as the sender's.
 */
static bool
judge_datagram(struct np_worker *w, const struct np_conn *c, const char *buf, size_t n,
	       uint64_t now_ns, bool late)
{
	const struct np_run *run = w->run;
	uint64_t warm_up_ns = run->plan->warm_up_ms * NP_MSEC, opens_ns;
	enum np_sequence_is kind = NP_IS_FOREIGN;

	w->first_ns = w->first_ns == 0 ? now_ns : w->first_ns;
	opens_ns = w->first_ns + warm_up_ns;
	if (w->sequence != NULL) {
		kind = np_sequence_arrived(&w->sequence[c - w->conn], buf, n, now_ns, late);
	} else if (warm_up_ns == 0) {
		w->codec &= ~(unsigned)NP_C_WINDOW; /* all others count, too: stop asking */
	}
	if (kind == NP_IS_OF_WARM_UP ||
	    (kind == NP_IS_FOREIGN && warm_up_ns > 0 &&
	     (now_ns < opens_ns || now_ns >= np_window_closes(&run->window, opens_ns)))) {
		np_add(&w->count->ignored, kind == NP_IS_OF_WARM_UP);
		return false;
	}
	w->opened_ns = w->opened_ns == 0 ? now_ns : w->opened_ns;
	return true;
}

/* judge_datagram() in the loop: late after the flow's end mark, or once this end is to leave. */
static bool
judge_arrival(struct np_worker *w, const struct np_conn *c, const char *buf, size_t n,
	      uint64_t now_ns)
{
	bool late = (w->conns == 1 && w->hung_up) || np_told_to_leave(&w->stop);

	return judge_datagram(w, c, buf, n, now_ns, late);
}

/* np_steps.arrived: count a message, unless it is a datagram from outside the window. */
NP_LOOP_BODY enum np_need
receive_arrived(struct np_worker *w, struct np_conn *c, const char *buf, size_t n)
{
	uint64_t received;

	if (__builtin_expect((w->codec & NP_C_WINDOW) != 0, 0) &&
	    !judge_arrival(w, c, buf, n, np_now())) {
		c->since_ns = np_now(); /* the next call begins */
		return np_paced(w, c, NP_RECV);
	}
	received = np_add(&w->count->received, n);
	np_add(&w->count->receives, 1);
	c->received += n;
	if (__builtin_expect((w->codec & NP_C_TIME) != 0, 0)) {
		record_lap(w, c);
	}
	return np_paced(w, c, __builtin_expect(received < w->budget, 1) ? NP_RECV : NP_OVER);
}

/* np_steps.arrived_many: messages of `size` bytes in a row, which are neither timed nor paced. */
static enum np_need
receive_arrived_many(struct np_worker *w, struct np_conn *c, const char *buf, size_t bytes,
		     size_t size, uint64_t now_ns)
{
	uint64_t received, count = bytes <= size ? 1 : (bytes + size - 1) / size;

	for (size_t left = bytes; (w->codec & NP_C_WINDOW) != 0 && left > 0; buf += size) {
		size_t n = left < size ? left : size;

		left -= n;
		if (!judge_arrival(w, c, buf, n, now_ns)) {
			bytes -= n;
			count--;
		}
	}
	received = np_add(&w->count->received, bytes);
	np_add(&w->count->receives, count);
	c->received += bytes;
	return received < w->budget ? NP_RECV : NP_OVER;
}

/* np_steps.failed. A client may end its stream by a reset, if both ends agreed (np_plan.resets). */
static enum np_need
receive_failed(struct np_worker *w, struct np_conn *c, enum np_need need, int error)
{
	const struct np_plan *p = w->run->plan;

	return error == ECONNRESET && p->resets && !p->active ? np_step_hung_up(w, c, 0)
							      : np_step_failed(w, c, need, error);
}

static const struct np_steps receive_steps = {
	.first = NP_RECV,
	.arrived = receive_arrived,
	.arrived_many = receive_arrived_many,
	.ended = np_step_hung_up,
	.failed = receive_failed,
};

NP_SYNC_LOOP(receive_sync, receive_steps)

/* np_side.setup: the ring, and how to tell which datagrams belong to the window. */
static int
receive_setup(struct np_worker *w, struct np_err *err)
{
	const struct np_plan *p = w->run->plan;

	if (np_worker_recv_ring(w, p->near.call.recv_size, true, err) != NP_OK) {
		return err->code;
	}
	w->whole = 1; /* any message counts */
	if (p->transport->header > 0) {
		w->codec |= NP_C_FRAME;
	}
	if (np_sequence_wanted(p) && w->recv_size >= NP_SEQUENCE_HEADER) {
		w->sequence = np_sequence_new(p, w->conns, err);
		if (w->sequence == NULL) {
			return err->code;
		}
	}
	/* A client takes the sender's window, which begins with the first datagram. */
	if (!np_delivers(p->transport) && (w->sequence != NULL || p->warm_up_ms > 0 || p->active)) {
		w->codec |= NP_C_WINDOW;
	}
	if (p->copy_avoidance && np_delivers(p->transport)) {
		w->codec |= NP_C_SPLICE;
	}
	/*
	 * The count ends only plain datagrams, of which netperf's daemon sends no more. Connections
	 * have an end of data, numbered datagrams may be duplicated, flows may exceed their share.
	 */
	if (p->transport->connected || w->sequence != NULL || p->flows > 1) {
		w->budget = UINT64_MAX;
	}
	return NP_OK;
}

/* As np_io_left(); 0 also for the end mark of frames. */
static ssize_t
recv_left(struct np_worker *w, struct np_conn *c, char **buf)
{
	ssize_t n = np_io_left(w, c, buf);

	if (n > 0 && w->run->plan->transport->header > 0 && np_eth_is_end(*buf)) {
		return 0;
	}
	return n;
}

/*
 * Count the datagrams that are queued; stop at `until` (np_now()). As long as a client has seen no
 * end mark, its window lasts until the last one. True: something was read, if only an end mark. On
 * a connection that does not count: a closed one returns 0 bytes for ever.
 */
static bool
drain_queues(struct np_worker *w, uint64_t until)
{
	bool connected = w->run->plan->transport->connected, any = false;
	uint32_t marks_left;
	char *buf;
	ssize_t n;

	NP_EACH_CONN (c, w) {
		marks_left = connected ? MARKS_MAX : UINT32_MAX;
		while (marks_left > 0 && np_now() < until && (n = recv_left(w, c, &buf)) >= 0) {
			marks_left -= n == 0;
			any |= n > 0 || !connected;
			if ((w->codec & NP_C_WINDOW) != 0 && n > 0 &&
			    !judge_datagram(w, c, buf, (size_t)n, np_now(), true)) {
				continue;
			}
			c->received += (uint64_t)n;
			np_add(&w->count->received, (uint64_t)n);
			np_add(&w->count->receives, n > 0);
			if (n > 0 && w->run->plan->active && !w->hung_up) {
				w->ended_ns = np_now();
			}
		}
	}
	return any;
}

/* Count what came before the end mark, or the end of the time, and what the mark has overtaken. */
static void
drain_datagrams(struct np_worker *w)
{
	uint64_t until = np_deadline(NP_SEC); /* strangers may send for ever */
	struct pollfd only = { .fd = w->conn->fd, .events = POLLIN };
	bool waits = w->sequence != NULL && w->hung_up;

	(void)drain_queues(w, until);
	for (bool more = waits; more; more = drain_queues(w, until)) {
		poll(&only, w->conns == 1, LAGGARD_MS);
	}
}

/*
 * Discard what arrives after the window of a test with a warm-up, until the end marks. Only the
 * far end knows when it ends, and its sends would fail if this socket were closed before.
 */
static void
drop_datagrams(struct np_worker *w)
{
	uint64_t until = np_deadline(AFTER_S * NP_SEC);

	NP_EACH_CONN (c, w) {
		struct pollfd more = { .fd = c->fd, .events = POLLIN };
		bool over = false;
		char *buf;

		while (!over && !np_abandoned(&w->stop) && np_now() < until) {
			ssize_t n = recv_left(w, c, &buf);

			over = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
			if (n < 0) {
				poll(&more, 1, DROP_MS);
			}
		}
	}
}

/* np_side.finish: count or discard what arrives after the loop, or end the connection. */
static void
receive_finish(struct np_worker *w)
{
	const struct np_plan *p = w->run->plan;

	if (!p->transport->connected && w->sequence == NULL && p->warm_up_ms > 0 && !p->active &&
	    !w->hung_up) { /* the window was judged by time, and the client still sends */
		drop_datagrams(w);
	} else if (!np_delivers(p->transport)) {
		drain_datagrams(w); /* late ones count */
	} else if (p->active && !w->hung_up) {
		/* The far end ends at our half-close; nothing more counts. */
		np_worker_read_closing(w);
		np_worker_shut(w);
	} else if (!p->active && p->warm_up_ms > 0) {
		/* Discard data from after the window, which the client may send for ever. */
		(void)end_all(w, AFTER_S * NP_SEC);
	}
}

const struct np_side np_stream_receive = {
	.setup = receive_setup,
	.steps = &receive_steps,
	.sync = receive_sync,
	.finish = receive_finish,
	.pad_ns = 4 * NP_SEC,
};

static const struct np_side transmit = {
	.setup = transmit_setup,
	.steps = &np_stream_transmit_steps,
	.sync = np_stream_transmit_sync,
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
	.ramps = true,
	.sequence = true,
	.offers = true,
	.speaks_first = true,
};
