/*
 * rr over datagrams whose responses are told apart by ids: one request in flight or several, each
 * given up when its own time is over. And what is left to be counted when the test is.
 */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/ids.h"
#include "bench/pattern/rr.h"

enum { DRAIN_MS = 100 }; /* the longest that is looked for what came late */

static void
show_astray(struct np_run *run)
{
	np_show(&run->worker.count->duplicated, run->worker.ids->duplicated);
	np_show(&run->worker.count->late, run->worker.ids->late);
	np_show(&run->worker.count->stray, run->worker.ids->stray);
}

/*
 * The controller interrupts a wait in which nothing has been answered for run->worker.patience_ns:
 * then every request in flight is older than that. Returns 0 or -errno.
 */
static int
give_up(struct np_run *run, uint64_t *lost)
{
	if (errno != EINTR && errno != ECONNREFUSED) {
		return -errno;
	}
	if (!np_stopped(run->stop)) {
		*lost += np_ids_give_up(run->worker.ids, UINT64_MAX);
		np_show(&run->worker.count->lost, *lost);
	}
	return 0;
}

/* While others are answered nobody interrupts: look at the time now and then. */
static uint64_t
give_up_old(struct np_run *run, uint64_t now, uint64_t *lost)
{
	*lost += np_ids_give_up(run->worker.ids, now - run->worker.patience_ns);
	np_show(&run->worker.count->lost, *lost);
	return now + run->worker.patience_ns / 8;
}

/* Request `number`, counted from 0. */
NP_LOOP_BODY ssize_t
send_one(struct np_run *run, struct np_id_place place, uint64_t number, char *buf, const void *to,
	 socklen_t to_len, const bool extras)
{
	if (extras) {
		np_extra_touch(run, buf, run->worker.send_size);
	}
	np_id_write(place, number, buf);
	return extras ? np_extra_put(run, run->conn->fd, buf, run->worker.send_size, to, to_len)
		      : np_sys_sendto(run->conn->fd, buf, run->worker.send_size, to, to_len);
}

/* A connected socket may bring the news of an ICMP message to a send, too. */
static int
send_failed(void)
{
	return errno == EINTR || errno == ECONNREFUSED ? 0 : -errno;
}

/* Count a message that does not answer the last of so many requests. */
static __attribute__((noinline)) void
count_astray(struct np_run *run, uint64_t requests, const char *message, size_t size)
{
	run->worker.ids->next = requests;
	np_ids_astray(run->worker.ids, message, size);
	show_astray(run);
}

/*
 * Until the answer to the last of so many requests, sent at that time, has come. False, with errno
 * EINTR or another one, where the wait was ended: while others' messages come one upon the other
 * nobody can interrupt it.
 */
NP_LOOP_BODY bool
await_answer(struct np_run *run, struct np_id_place place, uint64_t requests, uint64_t sent_ns,
	     char *buf, const bool extras)
{
	for (;;) {
		ssize_t n = np_rr_recv_response(run, buf, extras);

		if (__builtin_expect(n > 0 && np_id_is(place, requests - 1, buf, (size_t)n), 1)) {
			return true;
		}
		if (n < 0) {
			return false;
		}
		if (n > 0) {
			count_astray(run, requests, buf, (size_t)n);
		}
		if (np_stopped(run->stop) || np_now() - sent_ns >= run->worker.patience_ns) {
			errno = EINTR;
			return false;
		}
	}
}

/* A request under way at the end may be answered yet: np_rr_drain() is to know it. */
static void
leave_under_way(struct np_ids *ids, uint64_t requests, bool answered)
{
	ids->next = requests;
	if (!answered && requests > 0) {
		ids->slots[(requests - 1) & ids->slot_mask].number_and_1 = requests;
	}
}

/* One request in flight: the number of those sent is all there is to remember. */
NP_LOOP_BODY int
request_one(struct np_run *run, const void *to, socklen_t to_len, const bool extras)
{
	const struct np_id_place place = run->worker.ids->place;
	const struct np_slot *out = run->worker.send_ring.slots, *in = run->worker.recv_ring.slots;
	uint64_t done = 0, sends = 0, lost = 0, then = run->window.started_ns;
	int rc = 0;

	while (!np_stopped(run->stop) && done < run->worker.budget && rc == 0) {
		if (send_one(run, place, sends, out->buf, to, to_len, extras) < 0) {
			rc = send_failed();
			continue;
		}
		sends++;
		out = out->next;
		if (__builtin_expect(await_answer(run, place, sends, then, in->buf, extras), 1)) {
			uint64_t now = np_now();

			np_hist_record(run->worker.hist, now - then);
			then = now;
			np_show(&run->worker.count->transactions, ++done);
			in = in->next;
			if (extras && np_pace(run)) {
				then = np_now();
			}
			continue;
		}
		if (errno != EINTR && errno != ECONNREFUSED) {
			rc = -errno;
		} else if (!np_stopped(run->stop)) {
			np_ids_gave_up_last(run->worker.ids, sends);
			np_show(&run->worker.count->lost, ++lost);
			then = np_now();
		}
	}
	leave_under_way(run->worker.ids, sends, sends == done + lost);
	np_rr_settle(run, sends, done);
	return rc;
}

static int
request_one_connected(struct np_run *run)
{
	return request_one(run, NULL, 0, false);
}

static int
request_one_to(struct np_run *run)
{
	return request_one(run, &run->end.peer.sa, run->end.peer.len, false);
}

static int
request_one_extras(struct np_run *run)
{
	bool named = !np_run_connected(run);

	np_pace_begin(run);
	return request_one(run, named ? &run->end.peer.sa : NULL, named ? run->end.peer.len : 0,
			   true);
}

/* Several requests in flight. */
NP_LOOP_BODY int
request_many(struct np_run *run, const void *to, socklen_t to_len, const bool extras)
{
	struct np_ids *ids = run->worker.ids;
	const struct np_slot *out = run->worker.send_ring.slots, *in = run->worker.recv_ring.slots;
	uint64_t done = 0, sends = 0, lost = 0;
	uint64_t now = run->window.started_ns, look_at = now + run->worker.patience_ns;
	int rc = 0;

	while (!np_stopped(run->stop) && done < run->worker.budget && rc == 0) {
		uint64_t then;
		ssize_t n;

		if (ids->in_flight < ids->depth && done + ids->in_flight < run->worker.budget) {
			uint64_t number = np_ids_next(ids);

			if (send_one(run, ids->place, number, out->buf, to, to_len, extras) < 0) {
				rc = send_failed();
				continue;
			}
			np_ids_sent(ids, now);
			sends++;
			out = out->next;
			if (__builtin_expect(ids->in_flight < ids->depth, 0)) {
				now = np_now();
				continue;
			}
		}
		n = np_rr_recv_response(run, in->buf, extras);
		now = np_now();
		if (__builtin_expect(n <= 0, 0)) {
			rc = give_up(run, &lost);
			continue;
		}
		if (__builtin_expect(np_ids_answers(ids, in->buf, (size_t)n, &then), 1)) {
			np_hist_record(run->worker.hist, now - then);
			np_show(&run->worker.count->transactions, ++done);
			in = in->next;
			now = extras && np_pace(run) ? np_now() : now;
		} else {
			show_astray(run);
		}
		if (__builtin_expect(now >= look_at, 0)) {
			look_at = give_up_old(run, now, &lost);
		}
	}
	np_rr_settle(run, sends, done);
	return rc;
}

static int
request_many_plain(struct np_run *run)
{
	bool named = !np_run_connected(run);

	return request_many(run, named ? &run->end.peer.sa : NULL, named ? run->end.peer.len : 0,
			    false);
}

static int
request_many_extras(struct np_run *run)
{
	bool named = !np_run_connected(run);

	np_pace_begin(run);
	return request_many(run, named ? &run->end.peer.sa : NULL, named ? run->end.peer.len : 0,
			    true);
}

void
np_rr_choose_ids_loop(struct np_run *run, bool extras)
{
	if (run->plan->burst > 0) {
		run->worker.loop = extras ? request_many_extras : request_many_plain;
	} else if (extras) {
		run->worker.loop = request_one_extras;
	} else {
		run->worker.loop = np_run_connected(run) ? request_one_connected : request_one_to;
	}
}

/* Without results to wait for, a response gets about as long as two took, on average. */
static int
drain_ms(const struct np_run *run)
{
	uint64_t done = np_seen(&run->worker.count->transactions);
	uint64_t ms =
	    done > 0 ? 2 * (run->window.ended_ns - run->window.started_ns) / done / NP_MSEC + 1 : 0;

	return !run->plan->no_control ? 0 : ms < DRAIN_MS ? (int)ms : DRAIN_MS;
}

/*
 * The far end's results are in, so all its responses were sent before. The response to a request
 * that was under way at the end is none too many.
 */
void
np_rr_drain(struct np_run *run)
{
	const struct np_counters *c = run->worker.count;
	uint64_t under_way = np_seen(&c->sends) - np_seen(&c->transactions) - np_seen(&c->lost);
	uint64_t came = np_seen(&c->surplus), sent_ns;
	uint64_t until = np_deadline(DRAIN_MS * NP_MSEC);
	struct pollfd more = { .fd = run->conn->fd, .events = POLLIN };
	char *buf = run->worker.recv_ring.slots->buf;
	ssize_t n = 0;

	if (run->plan->transport->connected || run->conn->fd < 0) {
		return;
	}
	poll(&more, 1, drain_ms(run));
	while (np_now() < until &&
	       (n = recv(run->conn->fd, buf, run->worker.recv_size, MSG_DONTWAIT)) >= 0) {
		if (n > 0 && run->worker.ids != NULL) {
			np_ids_answers(run->worker.ids, buf, (size_t)n, &sent_ns);
		}
		came += n > 0;
	}
	if (run->worker.ids != NULL) {
		show_astray(run);
	} else {
		np_show(&run->worker.count->surplus, came > under_way ? came - under_way : 0);
	}
}
