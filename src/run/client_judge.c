#include "run/client_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench/engine/engine.h"
#include "bench/ids.h"
#include "bench/ramp.h"
#include "net/race.h"
#include "run/gate.h"

enum {
	HINT = 256,           /* bytes of a hint's text */
	FIREWALL_NS = NP_SEC, /* an error that comes later in the window is not a firewall's, */
	UNREAD = 128 << 10,   /* nor after more bytes than the far end's kernel accepts by itself */
	LATE_START_MS = 1000, /* a far end may begin so late: did_sender_begin_late() */
	LATE_S = 4            /* no busy machine closes a window this late */
};

/* Tell how the connections of --spread are distributed. */
static void
tell_spread(struct np_client *c, const struct np_client_test *t)
{
	const struct np_spread *s = &t->run.spread;
	uint32_t flows = t->run.conns;

	if (!t->run.plan->spread || t->run.window.started_ns == 0) {
		return; /* not asked for, or the test failed before its window */
	}
	if (s->queues == 0) {
		np_client_tell(
		    c, "--spread: the receive queues of the data connections are not known, "
		       "so nothing was spread");
	} else {
		np_client_tell(
		    c,
		    "--spread: %u flows on %u receive queues, %u of them beyond an even share "
		    "(connected again: %u)",
		    flows, s->queues, s->collisions, s->reconnected);
	}
}

/* Does this end have a figure: a transaction, a probe's MSS, a byte of a stream? */
static bool
something_counted(const struct np_run *run)
{
	struct np_counts count = np_counts_of(run);

	if (run->plan->pattern->transactions) {
		return count.transactions > 0;
	}
	if (run->plan->pattern->probe) {
		return run->closing.mss > 0;
	}
	return np_counts_bytes(&count) > 0;
}

/* Has a daemon answered no request? (With -N a rate of 0 is reported.) */
static bool
is_unanswered(const struct np_run *run)
{
	const struct np_plan *p = run->plan;

	return !p->no_control && p->pattern->transactions && !something_counted(run);
}

/* What most often blocks data while the daemon can be reached. NULL: the test uses no network. */
static const char *
firewall_hint(const struct np_plan *p)
{
	if (p->transport->ip_protocol == 0) {
		return NULL;
	}
	return p->no_control ? "is that service there? a firewall?"
			     : "a firewall? see netserver --data-ports";
}

/* Was the time up before two round trips; of datagrams, which are not acknowledged, before one? */
static bool
is_test_too_short(const struct np_client_test *t)
{
	const struct np_plan *p = t->run.plan;
	double seconds = np_plan_time_s(p) + p->warm_up_ms / 1e3;
	double round_trips = p->transport->connected ? 2 : 1;

	return t->out->cause == NP_BY_CLOCK &&
	       seconds < round_trips * (double)t->run.round_trips_ns / 2 / NP_SEC;
}

/* Was so much acknowledged or received that a segment of the full size has passed? */
static bool
whole_segments_pass(const struct np_run *run)
{
	return run->closing.mss > 0 && run->closing.moved >= (uint64_t)run->closing.mss;
}

/*
 * Nothing arrived: were large segments lost, while small ones of control passed? Then this end has
 * sent some again or is about to, or the far end's results say that it has.
 */
static bool
are_segments_too_large(const struct np_client_test *t)
{
	const struct np_plan *p = t->run.plan;
	const struct np_closing *c = &t->run.closing;
	const struct np_result *far = &t->out->far.end;
	/* A lost SYN makes the first time-out 3 s: nothing may have been sent again yet. */
	bool unacked_here = c->info.tcpi_unacked > 0 &&
			    (c->info.tcpi_total_retrans > 0 || c->info.tcpi_rto >= 1000000);
	/* During a long warm-up the far end's retransmissions get so rare that the window may have
	 * none. Then this receiver has had no data since it connected. */
	bool received_nothing =
	    p->role == NP_FOLLOW && p->warm_up_ms >= LATE_START_MS &&
	    c->info.tcpi_last_data_recv >= p->warm_up_ms + 1e3 * np_plan_time_s(p);
	bool small =
	    p->pattern->transactions && p->request <= NP_RACE_MSS && p->response <= NP_RACE_MSS;

	/* A retransmission alone may be of the handshake: the far end must also have sent data. */
	return p->transport->tcp_info && !p->no_control && c->mss > NP_RACE_MSS && !small &&
	       !whole_segments_pass(&t->run) &&
	       (unacked_here || received_nothing ||
		((far->count.sent > 0 || p->warm_up_ms > 0) && far->closing.retrans > 0));
}

/*
 * Did the far end begin to send in the second half of the window, or not at all? It accepts a
 * connection a second late if the last segment of the handshake is lost, unless this end sends more
 * (TLS, --one-port). After a warm-up its socket may be full, so that it sends nothing more.
 */
static bool
did_sender_begin_late(const struct np_client_test *t)
{
	const struct np_plan *p = t->run.plan;
	const struct np_far *far = &t->out->far;

	return t->out->cause == NP_BY_CLOCK && p->role == NP_FOLLOW && p->transport->tcp_info &&
	       p->warm_up_ms == 0 &&
	       (far->end.count.sent == 0 || far->elapsed < np_plan_time_s(p) / 2);
}

/* The likely reason why no data arrived, perhaps in `text`; NULL: none is known. */
static const char *
loss_hint(const struct np_client_test *t, char text[HINT])
{
	const struct np_plan *p = t->run.plan;
	const char *detail = t->run.closing.detail;

	if (is_test_too_short(t)) {
		snprintf(text, HINT, "a round trip takes %.2g s",
			 (double)t->run.round_trips_ns / 2 / NP_SEC);
		return text;
	}
	if (did_sender_begin_late(t)) {
		return "the far end began to send too late: was the last segment of the handshake "
		       "lost? try a longer -l";
	}
	if (are_segments_too_large(t)) {
		snprintf(text, HINT,
			 "nothing was acknowledged: small segments pass, those of %d bytes do not; "
			 "a smaller MTU on the path? try -G %d",
			 t->run.closing.mss, NP_RACE_MSS);
		return text;
	}
	if (p->transport->connected || detail[0] == '\0') { /* else fragments: udp_read_closing() */
		return whole_segments_pass(&t->run) ? NULL : firewall_hint(p);
	}
	snprintf(text, HINT, "%s%s; %s", detail,
		 p->pattern->transactions ? "" : ": try a smaller -m", firewall_hint(p));
	return text;
}

/*
 * Hint at a firewall if nothing arrived, and the error came before the window or soon after it
 * opened. ENETUNREACH with SO_DONTROUTE gets its hint in np_client_run().
 */
static void
hint_at_firewall(const struct np_run *run, struct np_err *err)
{
	static const int by_firewall[] = { ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH,
					   EPERM,        EACCES,    ENOPROTOOPT,  ECONNRESET };
	struct np_counts c = np_counts_of(run);
	const char *hint = firewall_hint(run->plan);
	uint64_t started = run->window.started_ns;

	if ((err->sys == ENETUNREACH && run->plan->no_route) || run->closing.moved > UNREAD ||
	    (started != 0 && np_now() - started > FIREWALL_NS)) {
		return;
	}
	if (hint != NULL && (err->sys == EPERM || err->sys == EACCES)) {
		hint = "a firewall of this host?";
	}
	/* The daemon resets connections that come from another address than the control one's. */
	if (hint != NULL && err->sys == ECONNRESET && !run->plan->no_control) {
		hint = "a NAT with several addresses? see netserver --one-port";
	}
	for (size_t i = 0; i < sizeof(by_firewall) / sizeof(by_firewall[0]); i++) {
		if (err->sys == by_firewall[i] && c.received == 0 && c.transactions == 0) {
			np_fail_hint(err, hint);
		}
	}
}

/* Fail because nothing moved any more, or no data connection was made. */
static int
fail_silent(const struct np_drive *d, struct np_err *err)
{
	const struct np_run *run = d->run;
	const char *hint = firewall_hint(run->plan);
	const char *peer = NP_ADDR_STR(&run->end.peer);

	if (run->window.started_ns != 0) {
		return np_fail(err, NP_ETIME, 0, "nothing moved for %d s between here and %s",
			       NP_STALL_S, peer);
	}
	np_fail(err, NP_ETIME, 0, "no data connection with %s within %.0f s", peer,
		(double)d->establish_ns / 1e9);
	np_fail_hint(err, hint);
	return err->code;
}

/* Fail a ramp without a single connection. */
static int
fail_no_flow(const struct np_run *run, struct np_err *err)
{
	struct np_ramp_failures failed = { .count = 0 };
	char reasons[256];

	NP_EACH_WORKER (w, run) {
		np_ramp_join(&failed, &w->ramp->failed);
	}
	np_ramp_reasons(&failed, reasons, sizeof(reasons));
	np_fail(err, NP_EPEER, 0, "none of %u data connections with %s was made within %.1f s: %s",
		run->conns, NP_ADDR_STR(&run->end.peer),
		(double)(run->window.ended_ns - run->window.started_ns) / 1e9,
		failed.count > 0 ? reasons : "no answer");
	np_fail_hint(err, firewall_hint(run->plan));
	return err->code;
}

/* Fail if this end noticed the end of the test so late that the figures are wrong. */
static int
fail_if_stood_still(const struct np_drive *d, struct np_err *err)
{
	if (d->late_ns < LATE_S * NP_SEC) {
		return NP_OK;
	}
	return np_fail(
	    err, NP_ETIME, 0,
	    "this end stood still, and its window of %g s was closed %.1f s too late (was "
	    "netperf stopped?)",
	    (double)d->length_ns / 1e9, (double)d->late_ns / 1e9);
}

int
np_client_judge_drive(struct np_client *c, const struct np_drive *d, struct np_client_test *t,
		      struct np_err *err)
{
	const struct np_run *run = d->run;

	tell_spread(c, t);
	np_run_read_closing(&t->run);
	t->out->cause = d->cause;
	t->out->measured = run->window.ended_ns > run->window.started_ns && something_counted(run);
	if ((d->lost != 0 || run->err.code != NP_OK) && fail_if_stood_still(d, err) != NP_OK) {
		return err->code; /* which is why the daemon gave up */
	}
	if (d->lost != 0) {
		uint64_t ran_ns = run->window.ended_ns - run->window.started_ns;

		return np_fail(err, NP_EPEER, d->lost,
			       "lost the control connection to %s after %.1f s of the test",
			       c->peer, run->window.started_ns != 0 ? (double)ran_ns / 1e9 : 0);
	}
	if (d->cause == NP_BY_SIGNAL && run->err.sys == EINTR) { /* while it was connecting */
		return np_fail(err, NP_ETIME, 0, "interrupted before the test began");
	}
	/* With these two causes an error is a consequence. */
	if (run->err.code != NP_OK && d->cause != NP_BY_SILENCE && d->cause != NP_BY_CONTROL) {
		*err = run->err;
		hint_at_firewall(run, err);
		return err->code;
	}
	if (run->plan->ramp > 0 && d->cause != NP_BY_CONTROL && np_counts_of(run).up == 0) {
		if (d->cause == NP_BY_SIGNAL) {
			return np_fail(err, NP_ETIME, 0,
				       "interrupted before a data connection was made");
		}
		return fail_no_flow(run, err);
	}
	if (d->cause == NP_BY_SILENCE) {
		return fail_silent(d, err);
	}
	if (d->gate != NULL && np_gate_state(d->gate) == NP_GATE_FAILED) {
		return np_fail(err, NP_ETIME, 0,
			       d->cause == NP_BY_SIGNAL
				   ? "interrupted before the test began"
				   : "another session failed before the test began");
	}
	if (d->cause == NP_BY_SIGNAL && run->plan->warm_up_ms > 0 && run->window.started_ns == 0) {
		return np_fail(err, NP_ETIME, 0, "interrupted within the %g s of --warm-up",
			       run->plan->warm_up_ms / 1e3);
	}
	if (d->cause == NP_BY_SIGNAL && is_unanswered(run) && d->gate == NULL) {
		/* With a gate there are other sessions, which may have completed some. */
		return np_fail(err, NP_ETIME, 0, "interrupted before a transaction was completed");
	}
	if (np_abandoned(run->stop) && !run->plan->pattern->transactions) {
		/* By a signal: do not wait for results, either. */
		return np_fail(err, NP_ETIME, 0,
			       "interrupted before the far end had received all data");
	}
	return NP_OK;
}

/* Tell the user the likely reason if no data of a stream arrived, by the far end's results. */
static void
tell_none_arrived(const struct np_client *c, const struct np_client_test *t)
{
	const struct np_plan *p = t->run.plan;
	const struct np_counts *far = &t->out->far.end.count;
	struct np_counts near = np_counts_of(&t->run);
	bool leads = p->role == NP_LEAD;
	uint64_t sent = leads ? near.sent : far->sent;
	uint64_t received = leads ? far->received : near.received;
	char more[HINT];
	const char *hint = loss_hint(t, more);

	if (hint == NULL || p->pattern->transactions || p->both || !t->out->far.reported ||
	    received != 0 ||
	    !(is_test_too_short(t) || did_sender_begin_late(t) ||
	      (p->transport->connected ? are_segments_too_large(t) : sent > 0))) {
		return;
	}
	t->out->measured = true; /* the sender's evidence can explain it */
	np_client_tell(c, "%s: nothing of what was sent has arrived %s %s (%s)", p->bench->name,
		       leads ? "at" : "from", NP_ADDR_STR(&t->run.end.peer), hint);
}

int
np_client_judge_results(struct np_client *c, const struct np_drive *d,
			const struct np_client_test *t, struct np_err *err)
{
	const struct np_plan *p = t->run.plan;
	struct np_counts near = np_counts_of(&t->run);
	uint64_t copied = 0, given = 0, sent = near.sent;
	bool is_empty = is_unanswered(&t->run), counts = p->pattern->transactions;
	uint64_t work = counts ? near.transactions : near.received;

	t->out->unanswered = is_empty && (d->cause == NP_BY_SIGNAL || d->cause == NP_BY_CLOCK);
	if (is_empty && d->cause == NP_BY_CLOCK) {
		char more[HINT];
		const char *hint = loss_hint(t, more);

		return np_fail(err, NP_ETIME, 0,
			       "not one transaction was completed within %g s (a longer -l? a "
			       "smaller -r or -b?%s%s)",
			       np_plan_time_s(p), hint != NULL ? " " : "",
			       hint != NULL ? hint : "");
	}
	t->out->measured |= t->run.cut; /* it sent, but nothing may have arrived */
	tell_none_arrived(c, t);
	if (near.lost > 0 && np_ids_useful(p) && t->run.worker->depth > 1 &&
	    t->run.worker->id.width == 0) {
		np_client_tell(c,
			       "%s: lost requests or responses: %" PRIu64 "; later responses may "
			       "have been taken for theirs, so latencies may be too long (%s)",
			       p->bench->name, near.lost, np_ids_why_none(p));
	}
	/*
	 * The far end sent the whole count, then results (NP_BY_CONTROL): the rest was lost. To
	 * netperf's daemon a response that was lost counts, too.
	 */
	if (d->cause == NP_BY_CONTROL && p->length < 0 && work < (uint64_t)-p->length &&
	    (counts ? !np_delivers(p->transport)
		    : p->role == NP_FOLLOW && np_delivers(p->transport))) {
		np_client_tell(c,
			       "%s: %" PRIu64 " of %" PRIi64
			       " %s have arrived from %s, which has ended the test",
			       p->bench->name, work, -p->length, counts ? "responses" : "bytes",
			       NP_ADDR_STR(&t->run.end.peer));
	}
	/* LLC2: a close drops data in flight, and the kernel loses some. Without a warm-up, both
	 * ends count the same data. */
	if (p->transport->ends.shut_drops && !p->pattern->transactions && p->warm_up_ms == 0 &&
	    t->out->far.reported && t->out->far.end.count.received < sent) {
		np_client_tell(
		    c,
		    "%s: %" PRIu64 " of %" PRIu64
		    " bytes were acknowledged, and did not arrive: the kernel's LLC2 has "
		    "lost them, and the rate is that of what was sent",
		    p->bench->name, sent - t->out->far.end.count.received, sent);
	}
	/* The engine zerocopy copied after all: the result is not what was asked for. */
	NP_EACH_WORKER (w, &t->run) {
		copied += w->engine.count[NP_E_REFUSED];
		given += w->engine.count[NP_E_BORROWED];
	}
	if (copied > given) {
		np_client_tell(
		    c,
		    "--engine zerocopy: %.0f %% of the sends were copied, for the kernel "
		    "may not pin more memory (ulimit -l, net.core.optmem_max)",
		    100 * (double)copied / (double)(copied + given));
	}
	return fail_if_stood_still(d, err);
}
