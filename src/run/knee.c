#include "run/knee.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/hist.h"

/* First rate (operations or bits a second), highest one, and ratios: of steps, and at the end. */
static const double FIRST = 100, FIRST_BITS = 1e6, MOST_BITS = 1e12, STEP_RATIO = 4,
		    END_RATIO = 1.05, END_RATIO_NO_LOSS = 1.005;
static const double SENT = 0.999, LOST = 0.001; /* shares: sent at least, lost at most */
static const double LATE_S = 0.03; /* a late wake-up at the end of a stream is no shortfall */

enum { RUNS = 3 /* at most, if P99 is near the limit */ };

enum { P99 = 1 }; /* its index below */
static const double shares[NP_KNEE_SHARES] = { 0.5, 0.99, 0.999 };

/* The precision of the search, which ends when too_high / good is not above it. */
static double
end_ratio(const struct np_knee *k)
{
	return k->no_loss ? END_RATIO_NO_LOSS : END_RATIO;
}

/* The step of that rate; NULL: there is none. */
static struct np_knee_step *
find_step(struct np_knee *k, double rate)
{
	for (uint32_t i = 0; i < k->steps; i++) {
		if (k->step[i].rate == rate) {
			return &k->step[i];
		}
	}
	return NULL;
}

struct np_knee_step *
np_knee_next(struct np_knee *k, const struct np_plan *p)
{
	double max = p->pattern->offers ? MOST_BITS : NP_RATE_MAX, rate = 0;
	struct np_knee_step *bound = find_step(k, k->too_high);

	if (k->steps == 0) {
		rate = p->pattern->offers ? FIRST_BITS : FIRST;
	} else if (k->steps < NP_KNEE_STEPS && k->good > 0 && k->good < max && k->too_high <= 0) {
		rate = fmin(k->good * STEP_RATIO, max); /* no rate was too high yet */
	} else if (k->steps < NP_KNEE_STEPS && k->good > 0 && k->good < max &&
		   k->too_high / k->good > end_ratio(k)) {
		rate = round(sqrt(k->good * k->too_high));
		rate = rate > k->good && rate < k->too_high ? rate : 0; /* 0: none is between */
	}
	if (rate > 0) {
		k->step[k->steps] = (struct np_knee_step){ .rate = rate };
		return &k->step[k->steps++];
	}
	return bound != NULL && bound->failed == 1 ? bound : NULL; /* it may have been disturbed */
}

/* The limit of P99 in ns, from the first step with enough samples. */
static double
limit_of(const struct np_knee *k)
{
	for (uint32_t i = 0; i < k->steps; i++) {
		if (k->step[i].timed && k->step[i].high[P99] > 0) {
			return k->times * (double)k->step[i].ns[P99];
		}
	}
	return (double)INFINITY;
}

void
np_knee_judge(struct np_knee *k, struct np_knee_step *s)
{
	s->why_too_high = NULL;
	/* Comparisons with NAN are false: what is unknown makes no rate too high. */
	if (s->sent < SENT) {
		s->why_too_high = "less was sent than was due";
	} else if (s->lost > (k->no_loss ? 0 : LOST)) {
		s->why_too_high = "some of it was lost, or never answered";
	} else if (s->arrived * end_ratio(k) < 1) { /* by more than the search's precision */
		s->why_too_high = "it arrived more slowly than it was sent";
	} else if (s->timed && (double)s->ns[P99] > limit_of(k)) {
		s->why_too_high = "P99 is too long";
	}
	s->failed += s->why_too_high != NULL;
	k->good = k->too_high = 0; /* anew: the verdict of a step tried again may differ */
	for (uint32_t i = 0; i < k->steps; i++) {
		double rate = k->step[i].rate;

		if (k->step[i].why_too_high == NULL) {
			k->good = fmax(k->good, rate);
		} else {
			k->too_high = k->too_high > 0 ? fmin(k->too_high, rate) : rate;
		}
	}
}

/* A figure of a record; NAN: it was not measured. */
static double
measured(const struct np_record *r, enum np_metric_id id)
{
	double v = np_record_get_real(r, id);

	return v >= 0 ? v : (double)NAN;
}

/* The rate at which a stream left the path: over the time until buffers and queues were empty. */
static double
arrived_bps(const struct np_trial_result *r)
{
	const struct np_tally *t = &r->out.tally;
	double seconds = np_tally_seconds(t), /* until the far end's close, a round trip longer */
	    round_trip_s = fmax(np_bag_number(r->out.near_bag, "tcp.min_rtt_us"), 0) / 1e6;

	if (!np_delivers(t->plan->transport)) {
		return np_bag_number(r->out.far_bag, "udp.receive_span_bps");
	}
	return (double)t->end.count.sent * 8 /
	       (round_trip_s < seconds ? seconds - round_trip_s : seconds);
}

/* Add a run to a step. all: the latencies of all its runs. */
static void
add_run(struct np_knee_step *s, const struct np_trial_result *r, const struct np_hist *all)
{
	const struct np_tally *t = &r->out.tally;
	const struct np_open_counts *n = &t->open.count;
	double due = (double)n->due, sent = (double)n->begun;

	if (t->plan->pattern->offers) {
		double rate = np_plan_messages(t->plan, t->end.send_size);

		due = rate * np_tally_sending_s(t, true);
		sent = (double)t->end.count.sent / (double)t->end.send_size + LATE_S * rate +
		       t->plan->arrivals / 2.0; /* half a burst may be due outside the window */
		s->lost =
		    np_delivers(t->plan->transport) || !r->out.far.reported
			? (double)NAN
			: 1 - (double)r->out.far.end.count.received / (double)t->end.count.sent;
		s->arrived = arrived_bps(r) / s->rate;
		s->arrived = s->arrived > 0 ? fmin(s->arrived, 1) : (double)NAN;
	} else {
		s->lost = 1 - (double)t->open.answered / due;
		s->arrived = (double)NAN;
	}
	s->sent = fmin(sent / due, 1);
	s->runs++;
	s->near_cpu = measured(&r->record, NP_M_LOCAL_CPU_UTIL);
	s->far_cpu = measured(&r->record, NP_M_REMOTE_CPU_UTIL);
	s->timed = t->plan->rate > 0 && np_hist_count(all) > 0; /* a stream has no latencies */
	for (int i = 0; i < NP_KNEE_SHARES; i++) {
		s->ns[i] = np_hist_percentile(all, shares[i]);
		if (!np_hist_interval(all, shares[i], &s->low[i], &s->high[i])) {
			s->low[i] = s->high[i] = 0;
		}
	}
}

/* Set the rate of this end: bits a second of a stream, else operations a second. */
static void
set_rate(struct np_plan *p, double rate)
{
	p->near.call.offered = p->pattern->offers ? (int64_t)rate : 0;
	p->rate = p->pattern->offers ? 0 : (uint32_t)rate;
}

/* Run a step, again while P99 may be above or below the limit, and judge it. *r: the last run. */
static int
run_step(struct np_knee *k, struct np_knee_step *s, const struct np_trial *t, struct np_hist *all,
	 struct np_trial_result *r, struct np_err *err)
{
	uint32_t max_runs = s->runs + RUNS;
	bool unsure;
	int rc;

	set_rate(t->plan, s->rate);
	np_hist_clear(all);
	do {
		np_outcome_free(&r->out);
		rc = np_trial(t, r, err);
		if (rc != NP_OK) {
			return rc;
		}
		if (r->out.tally.hist != NULL) {
			np_hist_merge(all, r->out.tally.hist);
		}
		add_run(s, r, all);
		/* P99's interval includes the limit: try again. */
		unsure = s->timed && s->high[P99] > 0 && (double)s->low[P99] <= limit_of(k) &&
			 (double)s->high[P99] > limit_of(k);
	} while (unsure && s->runs < max_runs && np_signalled(&t->client->signals) == 0);
	np_knee_judge(k, s);
	return NP_OK;
}

int
np_knee_find(struct np_knee *k, const struct np_trial *t, struct np_trial_result *r,
	     struct np_err *err)
{
	struct np_hist *all = np_hist_new();
	struct np_trial_result one = { .out = { .measured = false } };
	struct np_knee_step *s;
	int rc = NP_OK;

	memset(r, 0, sizeof(*r));
	if (all == NULL) {
		return np_fail(err, NP_ESYS, 0, "--rate auto: not enough memory for a histogram");
	}
	while (!k->cut && (s = np_knee_next(k, t->plan)) != NULL) {
		k->cut = (k->step[0].runs > 0 && np_signalled(&t->client->signals) > 0) ||
			 (rc = run_step(k, s, t, all, &one, err)) != NP_OK;
		if (k->cut) {
			k->steps -= s->failed == 0; /* a new step, not judged */
			break;
		}
		if (k->tell != NULL) {
			k->tell(k->ctx, t->plan, s);
		}
		/* Keep the result of the highest good rate, or of the lowest if none is good. */
		if (k->steps == 1 || s->why_too_high == NULL) {
			np_outcome_free(&r->out);
			*r = one;
			np_report(&r->out, t->unit, &r->record); /* texts point into *r */
			memset(&one, 0, sizeof(one));
		}
	}
	s = find_step(k, k->good);
	set_rate(t->plan, s != NULL ? s->rate : k->step[0].rate);
	k->good = s != NULL && s->arrived < 1 ? floor(s->rate * s->arrived) : k->good;
	np_outcome_free(&one.out);
	free(all);
	/* A signal leaves the steps before it. */
	return r->out.measured && np_signalled(&t->client->signals) > 0 ? NP_OK : rc;
}
