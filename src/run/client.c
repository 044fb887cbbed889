#include "run/client_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ids.h"
#include "net/tcpinfo.h"

enum { ESTABLISH_S = 10 }; /* for the data connection */

/* Run a test that was agreed on, collect evidence and the far end's results, and judge both. */
static int
measure(struct np_client *c, const struct np_dialect *dialect, struct np_client_test *t,
	struct np_evidence *ev, struct np_err *err)
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
		np_client_ask_why(c, dialect, &d, err);
		return err->code;
	}
	if (run->cut) { /* a reset tells the daemon of the end; first read the open sockets */
		if (np_tally_take(run, &t->out->tally, err) != NP_OK) {
			return err->code;
		}
		np_run_reset(run);
	}
	if (!run->plan->no_control && np_client_collect(c, dialect, t, err) != NP_OK) {
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
	/* A daemon without evidence opens its window with its answer: begin to collect before that,
	 * so as not to end later. Else begin after it: a wait for other tests is not evidence. */
	bool collects_first = (c->granted.caps & NP_CAPS_EVIDENCE) == 0;
	struct np_client_test test = { .out = out };
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
	if (collects_first) {
		test.run.end.peer = *peer; /* evidence is of the interface towards it */
		ev = np_evidence_begin(&c->collect, &test.run);
	}
	rc = np_client_agree(c, p, peer, &test, err);
	if (rc != NP_OK) {
		np_bag_free(np_evidence_end(ev, &test.run));
	} else {
		ev = collects_first ? ev : np_evidence_begin(&c->collect, &test.run);
		np_evidence_capture(ev, &test.run);
		rc = measure(c, np_dialect_of(p), &test, ev, err);
		np_ids_put(&test.run, out->near_bag);
		np_client_ask_far(c, &test, rc);
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
