#include "run/beside.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "net/tcpinfo.h"
#include "run/gate.h"

enum {
	LOOK_MS = 100,    /* between two looks at the load, unless its progress is shown */
	QUIET_MS = 1000,  /* a load may move nothing for so long */
	IDLE_LEAST_S = 1, /* length of the probe alone */
	IDLE_MOST_S = 5,
	SAMPLES_LEAST = 3 /* of np_beside_own_us() */
};

/* Responsiveness ignores this share of times, the longest ones. */
static const double LONGEST = 0.05;

/* Run the probe once. Beside a load (then there is a gate) it is the function of a thread. */
static void *
run_probe(void *arg)
{
	struct np_beside *b = arg;
	const struct np_trial *t = &b->probe;
	struct np_client *c = t->client;

	b->rc = c->chan.fd < 0 ? np_trial_connect(t, &b->err) : NP_OK;
	if (b->rc == NP_OK) {
		b->rc = np_client_run(c, t->plan, t->terms, t->peer, &b->out, &b->err);
	}
	if (b->gate != NULL) {
		b->first = b->rc != NP_OK && np_gate_state(b->gate) == NP_GATE_SHUT;
		/* So that the load does not wait; no effect once it is open. */
		np_gate_fail(b->gate);
	}
	return NULL;
}

/* Add the last run's latencies to *sum; under load also its limits and unanswered requests. */
static int
add_probe_run(struct np_beside *b, struct np_hist **sum, struct np_err *err)
{
	const struct np_open_result *open = &b->out.tally.open;

	if (*sum == NULL && (*sum = np_hist_new()) == NULL) {
		return np_fail(err, NP_ESYS, 0, "--beside: not enough memory for a histogram");
	}
	if (b->out.tally.hist != NULL) {
		np_hist_merge(*sum, b->out.tally.hist);
	}
	if (sum == &b->loaded) {
		if (open->limits[0] != '\0') {
			snprintf(b->limits, sizeof(b->limits), "%s", open->limits);
		}
		b->unanswered += open->count.due - open->answered;
	}
	return NP_OK;
}

int
np_beside_alone(struct np_beside *b, const struct np_trial *load, struct np_err *err)
{
	struct np_plan *p = b->probe.plan;
	int64_t length = load->plan->length;

	b->probe.client->signals = load->client->signals;
	p->length = length < IDLE_LEAST_S ? IDLE_LEAST_S : length;
	p->length = p->length > IDLE_MOST_S ? IDLE_MOST_S : p->length;
	p->length_less_ms = p->warm_up_ms = 0;
	run_probe(b);
	if (b->rc == NP_OK && b->out.cause == NP_BY_SIGNAL) {
		b->rc = np_fail(&b->err, NP_ETIME, 0, "interrupted before the test began");
	}
	if (b->rc != NP_OK) {
		*err = b->err;
		np_fail_in(err, "--beside");
	} else {
		b->rc = add_probe_run(b, &b->idle, err);
	}
	np_outcome_free(&b->out);
	return b->rc;
}

/* np_live.draw: note the load's longest time without a change, then draw its client's view. */
static void
note_load(void *ctx, const struct np_live_view *v)
{
	struct np_beside *b = ctx;
	const struct np_counts *n = &v->count;
	uint64_t moved = n->sent + n->received + n->transactions, now = np_now();

	/* The step lasts a little longer than the window: nothing moves then. */
	if (v->step == NP_LIVE_MEASURING && now - v->since_ns <= v->length_ns) {
		if (moved != b->moved || b->moved_ns == 0) {
			b->moved = moved;
			b->moved_ns = now;
		}
		if (now - b->moved_ns > b->quiet_ns) {
			b->quiet_ns = now - b->moved_ns;
		}
	}
	if (b->watched != NULL) {
		b->watched->draw(b->watched->ctx, v);
	}
}

/*
 * Set b->died if the load failed or stood still: for longer than QUIET_MS or three round trips
 * after its pause, and three times the mean time of a call, as a call is counted when it returns.
 */
static void
judge_load(struct np_beside *b, int rc, const struct np_outcome *out, const struct np_trial *load)
{
	const struct np_counts *n = &out->tally.end.count;
	uint64_t calls = n->sends + n->receives + 1;
	uint64_t trip = np_tcp_round_trip_ns(load->client->chan.fd);
	double quiet_s = (double)b->quiet_ns / 1e9;

	if (rc != NP_OK) {
		snprintf(b->died, sizeof(b->died), "the load failed");
	} else if (n->sent + n->received + n->transactions == 0) {
		snprintf(b->died, sizeof(b->died), "the load moved nothing");
	} else if (b->quiet_ns > np_load_pause(load->plan) + np_max(3 * trip, QUIET_MS * NP_MSEC) &&
		   quiet_s * (double)calls > 3 * np_tally_seconds(&out->tally)) {
		snprintf(b->died, sizeof(b->died), "the load moved nothing for %.1f s", quiet_s);
	}
}

double
np_beside_own_us(const struct np_bag *sender)
{
	struct np_bag_item t, acked, queued;
	size_t n = np_bag_list(sender, "tcp.samples.t_s", NP_BAG_REALS, &t);
	double queued_sum = 0, bytes, seconds, us;

	if (n < SAMPLES_LEAST ||
	    np_bag_list(sender, "tcp.samples.bytes_acked", NP_BAG_INTS, &acked) != n ||
	    np_bag_list(sender, "tcp.samples.queued_out", NP_BAG_INTS, &queued) != n) {
		return (double)NAN;
	}
	for (size_t i = 0; i < n; i++) {
		queued_sum += (double)queued.ints[i];
	}
	bytes = (double)acked.ints[n - 1] - (double)acked.ints[0];
	seconds = t.reals[n - 1] - t.reals[0];
	us = 1e6 * queued_sum / (double)n * seconds / bytes;
	return bytes > 0 && seconds > 0 && queued_sum >= 0 && isfinite(us) ? us : (double)NAN;
}

/* Start the probe's thread, for the load's warm-up and window. NP_PASS_SIGNAL ends it early. */
static int
start_probe(struct np_beside *b, const struct np_trial *load, struct np_err *err)
{
	struct np_plan *p = b->probe.plan;
	uint32_t sessions;
	sigset_t block;
	int failed;

	if (np_trial_sessions(load, &sessions, err) != NP_OK) {
		return err->code;
	}
	p->length = load->plan->length;
	p->length_less_ms = load->plan->length_less_ms;
	p->warm_up_ms = load->plan->warm_up_ms;
	b->gate = np_gate_new(sessions + 1); /* one for the probe */
	if (b->gate == NULL) {
		return np_fail(err, NP_ESYS, errno, "--beside: make ready");
	}
	/* The thread starts with the signal blocked: it may interrupt only waits. */
	sigemptyset(&block);
	sigaddset(&block, NP_PASS_SIGNAL);
	pthread_sigmask(SIG_BLOCK, &block, &b->let_in);
	b->passed = 0;
	b->probe.client->signals =
	    (struct np_signals){ .let_in = &b->let_in, .received = &b->passed };
	b->probe.client->gate = b->gate;
	/* Once connected, its daemon sends, and does not wait for the gate. */
	load->client->awaits = sessions == 1 && load->plan->role == NP_FOLLOW;
	failed = pthread_create(&b->thread, NULL, run_probe, b);
	pthread_sigmask(SIG_SETMASK, &b->let_in, NULL);
	return failed == 0 ? NP_OK : np_fail(err, NP_ESYS, failed, "--beside: start a thread");
}

/* Undo start_probe(), once the probe's thread has ended or if there is none. */
static void
release_probe(struct np_beside *b)
{
	b->probe.client->gate = NULL;
	np_gate_free(b->gate);
	b->gate = NULL;
	np_outcome_free(&b->out);
}

int
np_beside_trial(struct np_beside *b, const struct np_trial *load, struct np_trial_result *r,
		struct np_err *err)
{
	struct np_client *c = load->client;
	double us;
	int rc;

	memset(r, 0, sizeof(*r));
	if (c->chan.fd < 0 && np_trial_connect(load, err) != NP_OK) {
		return err->code;
	}
	if (start_probe(b, load, err) != NP_OK) {
		release_probe(b);
		return err->code;
	}
	b->moved_ns = b->quiet_ns = 0;
	b->watched = c->live;
	b->live = (struct np_live){ .every_ns = LOOK_MS * NP_MSEC, .due_ns = np_now() };
	if (c->live != NULL) {
		b->live = *c->live;
	}
	b->live.draw = note_load;
	b->live.ctx = b;
	c->live = &b->live;
	c->gate = b->gate;
	rc = np_trial(load, r, err);
	c->gate = NULL;
	c->awaits = false;
	if (b->watched != NULL) {
		b->watched->view = b->live.view;
		b->watched->due_ns = b->live.due_ns;
	}
	c->live = b->watched;
	np_gate_fail(b->gate); /* the probe may wait for a load that failed */
	if (rc != NP_OK || np_signalled(&c->signals) > 0) {
		b->passed++; /* before the signal, after which the probe reads it */
		pthread_kill(b->thread, NP_PASS_SIGNAL);
	}
	pthread_join(b->thread, NULL);
	judge_load(b, rc, &r->out, load);
	us = np_beside_own_us(load->plan->role == NP_LEAD ? r->out.near_bag : r->out.far_bag);
	if (load->plan->pattern->transactions || load->plan->both) {
		us = (double)NAN; /* no single sender of a stream */
	}
	b->own_us += (us - b->own_us) / ++b->loads;
	if (b->rc == NP_ETIME && b->out.unanswered) {
		b->rc = NP_OK; /* a result: answers waited in a queue for longer than the test */
	}
	if (b->rc != NP_OK && (rc == NP_OK || b->first)) { /* not if the load failed first */
		*err = b->err;
		rc = np_fail_in(err, "--beside");
	} else if (rc != NP_OK && np_gate_opened_ns(b->gate) == 0) {
		np_fail_in(err, "with --beside"); /* perhaps no room for the probe's session */
	} else if (b->rc == NP_OK && add_probe_run(b, &b->loaded, &b->err) != NP_OK &&
		   rc == NP_OK) {
		*err = b->err;
		rc = err->code;
	}
	release_probe(b);
	return rc;
}

double
np_beside_rpm(const struct np_hist *h)
{
	return 60e9 / np_hist_mean_of(h, 1 - LONGEST);
}

void
np_beside_report(const struct np_beside *b, struct np_record *r)
{
	np_record_text(r, NP_M_LOAD_DIED, ""); /* without a probe it is not known */
	if (b == NULL || b->idle == NULL || np_hist_count(b->idle) == 0) {
		return;
	}
	np_record_times(r, "idle", b->idle);
	np_record_real(r, NP_M_IDLE_RPM, np_beside_rpm(b->idle));
	np_record_text(r, NP_M_LOAD_DIED, b->died[0] == '\0' ? "no" : b->died);
	if (b->loaded == NULL || np_hist_count(b->loaded) == 0 || b->died[0] != '\0') {
		return;
	}
	np_record_times(r, "loaded", b->loaded);
	np_record_real(r, NP_M_LOADED_RPM, np_beside_rpm(b->loaded));
	np_record_int(r, NP_M_LOADED_UNANSWERED, (int64_t)b->unanswered);
	if (!isnan(b->own_us)) { /* by the mean of the probe's and the load's latency */
		np_record_real(r, NP_M_LOAD_LATENCY, b->own_us);
		np_record_real(r, NP_M_RESPONSIVENESS,
			       60e6 / ((60e6 / np_beside_rpm(b->loaded) + b->own_us) / 2));
	}
}

void
np_beside_free(struct np_beside *b)
{
	free(b->idle);
	free(b->loaded);
	if (b->probe.client != NULL && b->probe.client->chan.fd >= 0) {
		np_chan_close(&b->probe.client->chan);
	}
}
