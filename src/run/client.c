#include "run/client_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "bench/ids.h"
#include "bench/sequence.h"
#include "net/tcpinfo.h"
#include "sys/cpu.h"

enum { ESTABLISH_S = 10 }; /* for the data connection */

/* Deadlines, in milliseconds. */
enum {
	RESULTS_MS = 14000,    /* netperf's daemon may wait for four seconds at the end */
	CROWDED_MS = 120000,   /* if this machine is busy */
	SURPLUS_MS = 100,      /* that a sender may go on beyond two round trips */
	HURRY_MS = 5000,       /* after a signal; RESULTS_MS if this machine is busy */
	LAST_MS = 3000,        /* so long before giving up, a half-close ends the test there */
	HALF_CLOSED_MS = 2000, /* for spare results of a daemon that sends, NP_SPARED_MS included */
	LOOK_MS = 1000,        /* between two checks whether the path is silent */
	NUDGE_MS = 50,         /* between two end marks */
	QUIET_MS = 500 /* of silence at the end of a connection test: is the daemon alive? */
};

/* When the last transaction of a connection test ended, by CLOCK_MONOTONIC; 0: none has. */
static uint64_t
last_transaction_ns(const struct np_run *run)
{
	uint64_t last = 0;

	NP_EACH_WORKER (w, run) {
		last = np_max(last, w->last_ns);
	}
	return last;
}

/* Did a connection test end in silence? Its daemon may hang; the kernel accepts connections. */
static bool
ended_in_silence(const struct np_client_test *t)
{
	const struct np_run *run = &t->run;

	return run->plan->pattern->connection_test && t->out->cause == NP_BY_CLOCK &&
	       np_excess(run->window.ended_ns, last_transaction_ns(run)) >= QUIET_MS * NP_MSEC;
}

/*
 * Are the daemon's results not needed? A connection test is counted here, and netperf's daemon
 * takes four seconds; a daemon that sends may not notice an interruption. A probe has none.
 */
static bool
can_spare(const struct np_client *c, const struct np_client_test *t)
{
	const struct np_plan *p = t->run.plan;

	/* Evidence comes after the results; but after a signal a quick end matters more. */
	if ((c->want_far || (c->granted.caps & NP_CAPS_EVIDENCE) != 0) &&
	    t->out->cause != NP_BY_SIGNAL && !p->pattern->probe) {
		return false;
	}
	if (t->out->cause == NP_BY_CONTROL) {
		return false; /* the daemon ended the test, and has said why */
	}
	if (ended_in_silence(t)) {
		return false; /* does the daemon still answer? */
	}
	return p->pattern->connection_test || p->pattern->probe ||
	       (p->role == NP_FOLLOW && t->out->cause == NP_BY_SIGNAL);
}

/* Wait for the results, and repeat the end mark meanwhile. */
static int
await_results(struct np_client *c, struct np_client_test *t, uint64_t deadline, struct np_err *err)
{
	struct np_run *run = &t->run;
	int rc;

	for (;;) {
		uint64_t next = np_deadline(NUDGE_MS * NP_MSEC);
		bool nudge = run->side->nudge != NULL && next < deadline;

		rc = np_client_receive(c, "the test's results", nudge ? next : deadline, err);
		if (rc != NP_ETIME || err->sys == EINTR || !nudge) {
			return rc;
		}
		run->side->nudge(run);
	}
}

/* Wait a moment for results that are not needed. Ignores errors of the daemon. */
static int
collect_spare(struct np_client *c, struct np_client_test *t, struct np_err *err)
{
	const struct np_plan *p = t->run.plan;
	bool floods = !np_delivers(p->transport) && p->role == NP_FOLLOW;
	struct np_err ignored;
	int rc;

	c->owed = t->dialect->code + 2;
	if (floods && (c->granted.caps & NP_CAPS_EVIDENCE) != 0) {
		return NP_OK; /* the request for evidence ends the test there */
	}
	if (floods || p->pattern->connection_test) {
		/* Our daemon ends the test by this; netperf's does not look. */
		np_chan_half_close(&c->chan);
	}
	rc = await_results(c, t, np_deadline(NP_SPARED_MS * NP_MSEC), &ignored);
	if (rc == NP_ETIME && p->role == NP_FOLLOW) {
		/* The sender did not see it: a reset stops it. */
		np_run_close(&t->run);
		rc = await_results(c, t, np_deadline((HALF_CLOSED_MS - NP_SPARED_MS) * NP_MSEC),
				   &ignored);
	}
	c->owed = rc == NP_ETIME ? c->owed : 0; /* 0: they came, or the connection is lost */
	if (rc != NP_OK || np_client_answer_head(c).word != 0) {
		return NP_OK;
	}
	if (np_client_check_results(c, t->dialect->code, err) != NP_OK) {
		return err->code;
	}
	t->dialect->decode_results(t->dialect, np_chan_message(&c->chan), &t->out->far, &ignored);
	return NP_OK;
}

/* Go on without the results. A half-close ends the test there; evidence can't be asked for then. */
static int
do_without(struct np_client *c, const struct np_client_test *t)
{
	c->owed = t->dialect->code + 2; /* the code of its results */
	np_chan_half_close(&c->chan);
	return NP_OK;
}

/* Await results, longer on a slow path or machine, briefly after a signal. NP_ETIME: none came. */
static int
await_needed(struct np_client *c, struct np_client_test *t, struct np_err *err)
{
	const bool hurries = np_hurried(t->run.stop);
	const uint64_t rest_ns =
	    hurries ? HURRY_MS * NP_MSEC + 2 * t->run.round_trips_ns : RESULTS_MS * NP_MSEC;
	uint64_t until = np_now() + rest_ns;
	uint64_t latest = np_deadline((hurries ? RESULTS_MS : CROWDED_MS) * NP_MSEC);
	int rc;

	if (t->run.plan->pattern->transactions && t->run.plan->warm_up_ms > 0 &&
	    !t->out->measured) {
		np_chan_half_close(&c->chan); /* the daemon may still wait for the first request */
	}
	do {
		rc = await_results(c, t, np_min(np_deadline(LOOK_MS * NP_MSEC), until), err);
		/* If the path was silent the daemon's time begins later. */
		until = np_run_extend(&t->run, -1, until - rest_ns) + rest_ns;
		/* Was the end of the data lost, and does the daemon not end by its clock? */
		if ((hurries || t->run.cut) && np_now() + LAST_MS * NP_MSEC >= until) {
			np_chan_half_close(&c->chan);
		}
		if (np_now() >= until && until < latest && np_cpu_crowded("")) {
			until = np_min(until + rest_ns, latest);
		}
	} while (rc == NP_ETIME && err->sys != EINTR && np_now() < until);
	return rc;
}

/* Collect the results into t->out->far. NP_ETIME: none came, and they are needed. */
static int
collect_needed(struct np_client *c, struct np_client_test *t, struct np_err *err)
{
	const struct np_plan *p = t->run.plan;
	struct np_far *far = &t->out->far;
	struct np_counts *n = &far->end.count;
	uint64_t sent = np_counts_of(&t->run).sent, since = np_now();
	/* Does this end know the rate: of transactions, of what arrived or was acknowledged? */
	bool knows_rate = p->pattern->transactions || p->role == NP_FOLLOW || t->run.resets;
	int rc = await_needed(c, t, err);

	if (rc == NP_ETIME && np_hurried(t->run.stop) && knows_rate) {
		return do_without(c, t);
	}
	if (rc == NP_ETIME && err->sys != EINTR) {
		char quiet[96] = "";

		if (ended_in_silence(t)) {
			snprintf(quiet, sizeof(quiet),
				 ", and no transaction in its last %.1f s (does that netserver "
				 "hang?)",
				 (double)(t->run.window.ended_ns - last_transaction_ns(&t->run)) /
				     1e9);
		}
		return np_fail(err, NP_ETIME, 0,
			       "no results from %s within %d s of the test's end%s", c->peer,
			       (int)((np_now() - since) / NP_SEC), quiet);
	}
	if (rc != NP_OK) {
		return rc;
	}
	if (np_client_check_results(c, t->dialect->code, err) != NP_OK) {
		return err->code;
	}
	if (np_client_answer_head(c).word != 0) {
		return np_client_remote_error(c, "reports", err);
	}
	if (t->dialect->decode_results(t->dialect, np_chan_message(&c->chan), far, err) != NP_OK) {
		return err->code;
	}
	if (far->truncated) {
		uint32_t missing = (uint32_t)(sent - n->received);

		/* Compute bytes, or the upper bits of a 32-bit count: at most what was sent. */
		if (p->pattern->sized) {
			n->received = n->transactions * (uint64_t)p->request;
			n->sent = n->transactions * (uint64_t)p->response;
		} else if (missing <= sent) {
			n->received = sent - missing;
		}
	}
	if (t->run.cut && (p->warm_up_ms == 0 || t->out->cause == NP_BY_SIGNAL)) {
		/* Data after a stream's end don't count, unless the far end had a whole window. */
		n->received = np_min(n->received, sent);
	}
	return NP_OK;
}

/* Receive the daemon's results; if they are not needed, only wait a moment for them. */
static int
collect(struct np_client *c, struct np_client_test *t, struct np_err *err)
{
	if (np_abandoned(t->run.stop)) {
		return do_without(c, t);
	}
	return can_spare(c, t) ? collect_spare(c, t, err) : collect_needed(c, t, err);
}

/* The test failed here: get the daemon's reason if data broke off; else its results are c->owed. */
static void
ask_why(struct np_client *c, const struct np_client_test *t, const struct np_drive *d,
	struct np_err *err)
{
	const struct np_run *run = &t->run;
	struct np_err why = { .code = NP_OK };

	if (d->control == NULL || d->lost != 0 || d->cause == NP_BY_CONTROL) {
		return;
	}
	c->owed = t->dialect->code + 2;
	/* Not if this end has failed by itself: it had no route, or sent a datagram that no ICMP
	 * message refused. Then the daemon is still at its test. */
	if (run->err.code == NP_OK || d->cause != NP_BY_LOOP ||
	    (run->err.sys == ENETUNREACH ||
	     (!run->plan->transport->connected && run->err.sys != ECONNREFUSED)) ||
	    np_client_receive(c, "the test's results", np_deadline(NP_SPARED_MS * NP_MSEC), &why) !=
		NP_OK) {
		return;
	}
	c->owed = 0;
	if (np_client_answer_head(c).word != 0) {
		np_client_remote_error(c, "reports", err);
	}
}

/*
 * np_sequence_join()'s surplus, a share of the window: a sender goes on for a round trip after a
 * signal has ended its receiver. Allow two, and a little for busy machines: more is an outage.
 */
static double
surplus_part(const struct np_client_test *t)
{
	const struct np_window *win = &t->run.window;
	uint64_t surplus_ns = SURPLUS_MS * NP_MSEC + t->run.round_trips_ns;

	return t->out->cause == NP_BY_SIGNAL && win->ended_ns > win->started_ns
		   ? (double)surplus_ns / (double)(win->ended_ns - win->started_ns)
		   : 0;
}

/*
 * Fetch the daemon's evidence if this end has some, and compute what needs both; else
 * out->far_lacks says why: rc (of the test) is NP_ETIME, a half-close, or the request fails.
 */
static void
ask_far(struct np_client *c, struct np_client_test *t, int rc)
{
	struct np_outcome *out = t->out;
	const char *why = "";
	/* After a signal, is it still unknown whether the far end answers? */
	bool hurries = np_hurried(t->run.stop) && c->owed != 0;
	uint64_t hurry_ms = HURRY_MS + 2 * t->run.round_trips_ns / NP_MSEC;
	struct np_err err = { .code = NP_OK };

	if (out->near_bag == NULL) {
		return;
	}
	if (t->run.plan->no_control) {
		why = "there is no control connection (-N)";
	} else if (rc == NP_ETIME) {
		why = "the test was aborted";
	} else if (c->chan.half_closed && (c->granted.caps & NP_CAPS_EVIDENCE) != 0) {
		why = np_hurried(t->run.stop)
			  ? "the test was interrupted, which ends the control connection"
			  : "the control connection was closed to end the test";
	} else if (np_client_fetch(c, NP_ABOUT_TEST, hurries ? hurry_ms : NP_ANSWER_MS,
				   &out->far_bag, &err) != NP_OK) {
		why = err.msg;
	}
	snprintf(out->far_lacks, sizeof(out->far_lacks), "%s", why);
	out->stations = np_stations_join(&t->run, out->far_bag);
	np_stations_put(out->stations, out->near_bag);
	if (t->run.plan->role == NP_LEAD) {
		np_sequence_join(out->near_bag, out->far_bag, 0);
	} else {
		np_sequence_join(out->far_bag, out->near_bag, surplus_part(t));
	}
}

/* Run a test that was agreed on, collect evidence and the far end's results, and judge both. */
static int
measure(struct np_client *c, struct np_client_test *t, struct np_evidence *ev, struct np_err *err)
{
	struct np_run *run = &t->run;
	struct np_drive d = {
		.run = run,
		.control = run->plan->no_control ? NULL : &c->chan,
		.length_ns = np_plan_time_ns(run->plan),
		.establish_ns =
		    ESTABLISH_S * NP_SEC + NP_ESTABLISH_TRIPS * np_tcp_round_trip_ns(c->chan.fd),
		.signals = c->signals,
		.gate = c->gate,
		.opens_first = c->opens_first,
		.live = c->live,
		.watch = { c->watch },
	};
	int rc;

	np_evidence_watches(ev, &d.watch[1]);
	rc = np_drive(&d, err);
	t->out->near_bag = np_evidence_end(ev, run);
	if (rc != NP_OK) {
		return rc;
	}
	if (np_client_judge_drive(c, &d, t, err) != NP_OK) {
		ask_why(c, t, &d, err);
		return err->code;
	}
	if (run->cut) { /* a reset tells the daemon of the end; first read the open sockets */
		if (np_tally_take(run, &t->out->tally, err) != NP_OK) {
			return err->code;
		}
		np_run_reset(run);
	}
	if (!run->plan->no_control && collect(c, t, err) != NP_OK) {
		return err->code;
	}
	NP_EACH_WORKER (w, run) {
		if (run->side->drain != NULL) {
			run->side->drain(w); /* count what is still in the socket */
		}
	}
	return np_client_judge_results(c, &d, t, err);
}

int
np_client_run(struct np_client *c, const struct np_plan *p, const struct np_terms *terms,
	      const struct np_addr *peer, struct np_outcome *out, struct np_err *err)
{
	/* To begin takes time: do it before a daemon without evidence opens its window, by its
	 * answer, or this end's is later. Else after it: a wait for other tests is no evidence. */
	bool collects_first = (c->granted.caps & NP_CAPS_EVIDENCE) == 0;
	struct np_client_test test = { .dialect = np_dialect_of(p), .out = out };
	struct np_evidence *ev = NULL;
	struct np_stop stop = { 0 };
	struct np_err why;
	int rc;

	memset(out, 0, sizeof(*out));
	np_far_init(&out->far);
	np_live_step(c->live, p->no_control ? NP_LIVE_ESTABLISHING : NP_LIVE_ASKING, 0);
	if (np_run_open(&test.run, p, terms, &stop, err) != NP_OK) {
		return err->code;
	}
	test.run.end.peer = *peer;
	if (collects_first) {
		ev = np_evidence_begin(&c->collect, &test.run);
	}
	rc = np_client_agree(c, &test, err);
	if (rc != NP_OK) {
		np_bag_free(np_evidence_end(ev, &test.run));
	} else {
		ev = collects_first ? ev : np_evidence_begin(&c->collect, &test.run);
		np_evidence_capture(ev, &test.run);
		rc = measure(c, &test, ev, err);
		np_ids_put(&test.run, out->near_bag);
		ask_far(c, &test, rc);
	}
	if (c->chan.half_closed || c->owed != 0) { /* no further test can use it */
		np_chan_close(&c->chan);
	}
	if (rc != NP_OK && err->sys == ENETUNREACH && p->no_route) {
		np_fail_hint(err, "no router is used: try -R 1");
	}
	/* Unless measure() has taken it. */
	if (out->tally.plan == NULL && np_tally_take(&test.run, &out->tally, &why) != NP_OK &&
	    rc == NP_OK) {
		*err = why;
		rc = why.code;
	}
	np_run_free(&test.run);
	return rc;
}

const struct np_bag *
np_outcome_receiver(const struct np_outcome *out)
{
	const struct np_plan *p = out->tally.plan;

	if (p == NULL || p->pattern->transactions || out->sessions > 1) {
		return NULL;
	}
	return p->role == NP_LEAD ? out->far_bag : out->near_bag;
}

void
np_outcome_free(struct np_outcome *out)
{
	np_tally_free(&out->tally);
	np_bag_free(out->near_bag);
	np_bag_free(out->far_bag);
	np_stations_free(out->stations);
	free(out->clean);
	out->near_bag = out->far_bag = NULL;
	out->stations = NULL;
	out->clean = NULL;
}
