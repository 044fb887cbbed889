#include "bench/worker.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/units.h"
#include "bench/codec.h"
#include "bench/engine/syscall.h"
#include "bench/open.h"
#include "bench/ramp.h"
#include "bench/run.h"
#include "bench/stamps.h"
#include "net/sock.h"

enum { FIRST_MS = 500 }; /* an error for the first datagrams of a stream arrives within that time */

/*
 * Set closes_ns: when the window closes, not known in a warm-up. The load does not pace after it:
 * of an offered rate nothing is due, and a receiver without flow control reads on without pauses.
 */
static void
set_deadlines(struct np_worker *w)
{
	const struct np_run *run = w->run;
	bool drains = run->plan->role == NP_FOLLOW && !np_delivers(run->plan->transport);
	bool warm = run->plan->warm_up_ms > 0 && !w->goes_on;

	w->closes_ns = warm ? UINT64_MAX : np_window_closes(&run->window, run->window.started_ns);
	if (w->load.kind == &np_load_offered && warm) {
		/* What is due at the end of the warm-up is of the window, which is told late. */
		w->load.until_ns = run->window.started_ns + run->plan->warm_up_ms * NP_MSEC;
	} else if (w->load.kind == &np_load_offered || drains) {
		w->load.until_ns = w->closes_ns;
	} else if (run->plan->role == NP_LEAD) { /* others are read until their sender ends */
		w->load.closes_ns = w->closes_ns;
	}
}

/*
 * Begin the schedule of a stream with a rate, at the start of the warm-up or of the window. After a
 * warm-up the ends open their windows not quite at once: the first operations are due half an
 * interval later, so that they are in both.
 */
static void
begin_offered(struct np_worker *w)
{
	const struct np_run *run = w->run;
	double rate = np_plan_messages(run->plan, w->send_size);
	uint64_t half_ns = (uint64_t)(run->plan->arrivals * 1e9 / rate / 2);

	half_ns = w->goes_on ? np_min(half_ns, run->window.length_ns / 2) : 0;
	np_load_begin_due(&w->load, &np_load_offered, rate, run->plan->arrivals,
			  (uint32_t)(w - run->worker), run->workers,
			  run->window.started_ns + half_ns);
}

void
np_worker_begin(struct np_worker *w, uint64_t now_ns)
{
	const struct np_run *run = w->run;

	w->began_ns = now_ns;
	/* A responder has w->from: it answers the source. */
	if (w->from == NULL && !run->plan->transport->connected && !np_run_connected(run)) {
		w->to = (const struct sockaddr *)&run->end.peer.sa;
		w->to_len = run->end.peer.len;
	}
	NP_EACH_CONN (c, w) {
		c->since_ns = now_ns;
		c->timeout_check_ns = now_ns + w->timeout_ns;
	}
	if ((w->codec & NP_C_SHARE) != 0) { /* each connection begins with one request */
		w->in_flight = w->conns < w->budget ? w->conns : w->budget;
	}
	if (w->ramp != NULL) {
		np_load_begin_due(&w->ramp->load, &np_load_ramp, run->plan->ramp, NP_ARRIVE_EVENLY,
				  (uint32_t)(w - run->worker), run->workers, now_ns);
	}
	w->acked_before = np_worker_acked(w);
	if (w->open != NULL) {
		np_open_start(w);
	} else if (np_plan_messages(run->plan, w->send_size) > 0) {
		begin_offered(w);
	} else {
		np_load_begin(&w->load, &run->plan->near, now_ns);
		/* A follower's first operations are already under way. */
		np_load_add(&w->load, &run->plan->near, run->plan->ramp > 0 ? 0 : w->conns,
			    run->plan->role == NP_FOLLOW);
	}
	set_deadlines(w);
}

uint64_t
np_conn_queued(const struct np_conn *c)
{
	return (uint64_t)np_sock_queued(c->fd, SIOCOUTQ);
}

/*
 * Reset the counts at the end of the warm-up, while the loop stands still. Of open-loop requests
 * and numbered datagrams only those of the window were counted: keep them, and reset refused sends
 * and what belonged to none of them.
 */
static void
forget_counts(struct np_worker *w)
{
	if (w->load.is_open || (w->codec & NP_C_WINDOW) != 0) {
		np_set(&w->count->failed, 0);
		np_set(&w->count->duplicated, 0);
		np_set(&w->count->late, 0);
		np_set(&w->count->stray, 0);
		np_set(&w->count->surplus, 0);
		return;
	}
	NP_EACH_CONN (c, w) {
		enum np_need need = c->need & ~(unsigned)NP_PART;
		/* A request in flight counts when it is answered. TCP_MSS has no steps. */
		bool in_flight = w->steps != NULL && w->steps->sent != NULL && w->depth == 1 &&
				 c->number > 0 &&
				 (need == NP_RECV || (need >= NP_SHUT && need <= NP_CLOSE));

		c->before = c->number - in_flight;
		/* Queued data arrive in the window; those queued at its end may be cut off. */
		c->sent = w->run->resets ? np_conn_queued(c) : 0;
		c->received = c->transactions = 0;
		c->lost = 0;
		if ((w->codec & NP_C_WARM) != 0) {
			c->number = c->before = c->icmp_at = 0; /* the window counts from 0 */
		}
	}
	np_counters_clear(w->count);
	NP_EACH_CONN (c, w) {
		np_add(&w->count->sent, c->sent);
	}
	np_hist_clear(w->hist);
	/* With several in flight, those count as sent in the window. */
	w->sends = (w->codec & NP_C_MANY) != 0 ? w->in_flight : 0;
}

/* Has something got through: an answer, or datagrams of a stream without an error? */
static bool
was_reached(const struct np_worker *w)
{
	const struct np_plan *p = w->run->plan;

	return p->pattern->transactions || p->pattern->connection_test
		   ? np_get(&w->count->transactions) > 0
		   : np_get(&w->count->sends) > 0 && np_now() - w->began_ns >= FIRST_MS * NP_MSEC;
}

void
np_worker_forget(struct np_worker *w)
{
	struct np_run *run = w->run;

	w->reached = w->reached || was_reached(w);
	for (uint32_t i = 0; i < w->conns && run->before != NULL; i++) {
		np_tcp_read(w->conn[i].fd, &run->before[&w->conn[i] - run->conn], &w->tcp_before);
	}
	if (w == run->worker && np_delivers(run->plan->transport) &&
	    !run->plan->pattern->connection_test) {
		np_run_read_closing(run);
		run->retrans_before = run->closing.retrans;
	}
	forget_counts(w);
	w->acked_before = np_worker_acked(w);
	memset(w->engine.count, 0, sizeof(w->engine.count));
	w->more = w->load.paced_ns = 0;
	w->retransmitted = 0;
	if (w->use.root != NULL) {
		np_thread_begin(&w->use);
	}
	w->began_ns = np_now();
	np_open_mark(w);
	np_stamps_forget(w->stamps);
	w->codec &= ~(unsigned)NP_C_WARM;
	if (run->engine->mark != NULL) {
		run->engine->mark(w);
	}
}

bool
np_worker_mark(struct np_worker *w)
{
	np_worker_forget(w);
	w->goes_on = true;
	if (w->load.kind == &np_load_offered) {
		begin_offered(w); /* restart the schedule without what the warm-up did not get to */
		for (uint32_t i = 0; i < w->conns; i++) { /* what was allowed before is not now */
			w->conn[i].need |= w->conn[i].need == NP_SEND ? NP_HELD : 0;
		}
	}
	w->budget = w->budget_after;
	set_deadlines(w);
	return true;
}

void
np_worker_settle(struct np_worker *w, uint64_t sends, uint64_t receives)
{
	uint64_t done = np_get(&w->count->transactions);

	np_set(&w->count->sends, sends);
	np_set(&w->count->receives, receives);
	np_set(&w->count->sent, sends * w->send_size);
	np_set(&w->count->received, done * w->recv_size);
}

void
np_worker_end(struct np_worker *w)
{
	for (uint32_t i = 0; i < w->conns && w->steps != NULL && w->steps->open != NULL; i++) {
		int *fd = &w->conn[i].fd;

		if (*fd >= 0 && !w->run->plan->active &&
		    np_conn_queued(&w->conn[i]) > NP_LEFT_UNACKED) {
			np_sock_reset(*fd);
		} else if (*fd >= 0) {
			np_sys_close(*fd);
		}
		*fd = -1;
	}
	np_codec_close(w);
}

bool
np_worker_route_is_lost(const struct np_worker *w, int error)
{
	const struct np_plan *p = w->run->plan;

	if (p->transport->link) {
		return false; /* no routes on the link layer: a down interface is an error */
	}
	if (error != ENETUNREACH && error != EHOSTUNREACH && error != ENETDOWN &&
	    (error != ECONNREFUSED || np_delivers(p->transport) || p->no_control)) {
		return false;
	}
	return w->reached || was_reached(w);
}

enum np_need
np_step_failed(struct np_worker *w, struct np_conn *c, enum np_need need, int error)
{
	if (error == EINTR) {
		return need;
	}
	w->error = error;
	return NP_OVER;
}

enum np_need
np_step_hung_up(struct np_worker *w, struct np_conn *c, size_t n)
{
	w->hung_up = true;
	if (w->run->plan->role == NP_LEAD) {
		w->error = ECONNRESET;
	}
	return NP_OVER;
}

uint64_t
np_worker_acked(const struct np_worker *w)
{
	const struct np_plan *p = w->run->plan;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < w->conns && p->role == NP_LEAD && np_plan_may_reset(p); i++) {
		struct np_acked a;

		sum += w->conn[i].fd >= 0 && p->transport->acked(w->conn[i].fd, &a) ? a.bytes : 0;
	}
	return sum;
}

void
np_worker_read_closing(struct np_worker *w)
{
	if (w == w->run->worker) {
		np_run_read_closing(w->run);
	}
}

void
np_worker_shut(struct np_worker *w)
{
	/* The user who interrupts a test waits a second at most. */
	uint64_t until = np_deadline((np_hurried(&w->stop) ? 1 : NP_SHUT_S) * NP_SEC);

	NP_EACH_CONN (c, w) {
		struct pollfd p = { .fd = c->fd, .events = POLLRDHUP };
		/* A receiver that has closed its half reads no more: do not wait for room. */
		bool closed = poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP)) != 0;

		np_run_shut_one(w->run, &w->stop, p.fd, closed ? 0 : until);
	}
}
