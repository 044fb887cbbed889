#include "bench/open.h"

#include <math.h>

#include "base/clock.h"
#include "base/lines.h"
#include "base/text.h"
#include "base/units.h"
#include "bench/run.h"
#include "sys/cpu.h"

/* Shares of the time that threads ran, or waited for a CPU, above which that is the bottleneck. */
static const double BUSY = 0.9, WAITED = 0.01;

/* How much longer latency may be from when requests were due; if too few for intervals. */
static const double LONGER = 1.1, LONGER_OF_FEW = 2;

/* Share of the due requests that are sent unless the generator limits. */
static const double SENT_LEAST = 0.999;

bool
np_open_make(struct np_worker *w)
{
	struct np_open *o;

	if (w->run->plan->rate == 0 || w->run->plan->role != NP_LEAD) {
		return true;
	}
	w->open = o = np_cache_lines_new(1, sizeof(*o));
	if (o == NULL) {
		return false;
	}
	o->sent = np_hist_new();
	o->lateness = np_hist_new();
	o->spin_ns = w->run->workers < np_cpus_usable() ? NP_OPEN_SPIN_NS : 0; /* leave a CPU */
	return o->sent != NULL && o->lateness != NULL;
}

void
np_open_start(struct np_worker *w)
{
	const struct np_run *run = w->run;
	uint64_t start_ns = run->window.started_ns;
	struct np_open *o = w->open;

	np_load_begin_due(&w->load, &np_load_open, run->plan->rate, run->plan->arrivals,
			  (uint32_t)(w - run->worker), run->workers, start_ns);
	o->opens_ns = start_ns + run->plan->warm_up_ms * NP_MSEC;
	o->closes_ns = np_window_closes(&run->window, o->opens_ns);
	np_open_mark(w);
}

bool
np_open_is_counted(const struct np_worker *w, uint64_t due_ns)
{
	return due_ns >= w->open->opens_ns;
}

void
np_open_mark(struct np_worker *w)
{
	struct np_open *o = w->open;

	if (o == NULL) {
		return;
	}
	o->outage.ns = 0;
	o->last_ns = w->began_ns;
	o->gaps = o->skipped = 0;
	o->skip = 1;
	for (uint32_t i = 0; i < w->conns && w->conn[i].ids != NULL; i++) {
		w->conn[i].ids->last_plus_1 = w->conn[i].ids->next;
		w->conn[i].ids->due_ns = w->conn[i].ids->answered_ns = w->began_ns;
	}
}

/* np_load_kind.wake: sleep until spin_ns before the next operation is due, then spin. */
static uint64_t
open_wake(struct np_worker *w)
{
	struct np_open *o = w->open;
	uint64_t wake = w->load.arrivals.due_ns - o->spin_ns;

	if (o->full || o->until_ns != 0) { /* a receive changes that; or the test is over */
		return UINT64_MAX;
	}
	o->sleeps = wake > o->looked_ns;
	return o->sleeps ? wake : 0;
}

/* Keep a gap between sends, for np_fit_p(). When full, drop every other one, now and later. */
static void
keep_gap(struct np_open *o, const struct np_arrivals *a, uint64_t now)
{
	double gap = (double)(now - o->last_ns) * a->rate / a->workers / 1e9;

	o->last_ns = now;
	if (++o->skipped < o->skip) {
		return;
	}
	o->skipped = 0;
	if (o->gaps == NP_OPEN_GAPS) {
		for (o->gaps = 0; o->gaps < NP_OPEN_GAPS / 2; o->gaps++) {
			o->gap[o->gaps] = o->gap[2 * o->gaps + 1];
		}
		o->skip *= 2;
		return; /* this one would be dropped, too */
	}
	o->gap[o->gaps++] = gap;
}

/* The next connection that can begin a request (or is closed, in a connection test). NULL: none. */
static struct np_conn *
next_free(struct np_worker *w, uint32_t *turn)
{
	for (uint32_t i = 0; i < w->conns; i++) {
		struct np_conn *c = &w->conn[*turn];

		*turn = *turn + 1 < w->conns ? *turn + 1 : 0;
		if (c->ids == NULL
			? c->need == NP_OPEN && c->fd < 0
			: c->need == NP_RECV && !c->is_aside && c->ids->in_flight < w->depth) {
			return c; /* no send is in progress or set aside, and there is room */
		}
	}
	return NULL;
}

/* The test is over: is a request that was due before still to be sent, of the last few? */
static bool
has_last(const struct np_worker *w)
{
	return w->open->sent_after_end < NP_OPEN_LAST && w->load.arrivals.due_ns < w->ended_ns;
}

/* np_load_kind.next: the connection for the request that is due now; NULL: wait. */
static struct np_conn *
open_next(struct np_worker *w, uint32_t *turn)
{
	struct np_open *o = w->open;
	uint64_t now = o->looked_ns = np_now();
	struct np_conn *c;
	bool counts;

	/* The window has opened: skip what the warm-up did not get to. */
	while (w->load.arrivals.due_ns < o->opens_ns && now >= o->opens_ns) {
		np_arrivals_next(&w->load.arrivals);
	}
	o->full = w->load.arrivals.due_ns >= o->closes_ns || /* or too late for what is due */
		  (now > o->closes_ns && now - o->closes_ns > NP_OPEN_LAST_NS);
	if (now < w->load.arrivals.due_ns || o->full || (o->until_ns != 0 && !has_last(w))) {
		return NULL;
	}
	c = next_free(w, turn);
	counts = np_open_is_counted(w, w->load.arrivals.due_ns);
	o->full = c == NULL;
	/* Not held while a connection that has room is in the midst of a send. */
	if (c == NULL && w->in_flight >= (uint64_t)w->depth * w->conns) {
		o->count.held += counts;
		o->held_ns = now;
	}
	if (c == NULL || !np_load_may(&w->load, now)) {
		return NULL;
	}
	/* A wake-up was late: begin to spin earlier from now on. */
	if (o->sleeps && now - w->load.due_ns > NP_OPEN_LATE_NS) {
		o->spin_ns = np_min(2 * o->spin_ns, NP_OPEN_SPIN_MOST_NS);
	}
	o->sleeps = false;
	o->sent_after_end += o->until_ns != 0;
	c->since_ns = w->load.due_ns;
	if (c->ids == NULL) { /* a connection test */
		c->begun_ns = now;
		w->in_flight++;
	} else {
		c->need = NP_SEND;
		c->ids->begun_ns = now;
	}
	if (!counts) {
		return c;
	}
	o->count.begun++;
	o->count.late += now - c->since_ns > NP_OPEN_LATE_NS;
	np_hist_record(o->lateness, now - c->since_ns);
	if (w->load.arrivals.how == NP_ARRIVE_POISSON) {
		keep_gap(o, &w->load.arrivals, now);
	}
	return c;
}

/*
 * All requests between the last answered one and the one due at due_ns were lost. The outage is the
 * time between both, or between both answers if that is shorter, less the usual interval.
 */
static void
keep_outage(struct np_worker *w, const struct np_conn *c, uint64_t due_ns, uint64_t now_ns)
{
	const struct np_run *run = w->run;
	uint64_t ns = np_min(np_excess(due_ns, c->ids->due_ns), now_ns - c->ids->answered_ns);

	ns = np_excess(ns, (uint64_t)run->conns * NP_SEC / run->plan->rate);
	if (ns > w->open->outage.ns) {
		w->open->outage = (struct np_outage){ .ns = ns,
						      .at_ns = c->ids->answered_ns - w->began_ns,
						      .flow = (uint32_t)(c - run->conn) };
	}
}

bool
np_open_answered(struct np_worker *w, struct np_conn *c, uint64_t due_ns, uint64_t now_ns)
{
	bool counts = np_open_is_counted(w, due_ns);
	struct np_ids *ids = c->ids;

	w->in_flight--;
	w->reached = true;
	if (counts) {
		np_hist_record(w->hist, now_ns - due_ns);
		np_hist_record(w->open->sent,
			       now_ns - (ids == NULL ? c->begun_ns : ids->departed_ns));
		np_add(&w->count->transactions, 1);
		c->transactions++;
	}
	if (ids == NULL || due_ns <= ids->due_ns) { /* connections, or out of order */
		return counts;
	}
	if (w->id.width > 0 && ids->answered_plus_1 > ids->last_plus_1 + 1) { /* with a gap */
		/* The outage ended when this was due; or sent, if it was held as all were lost. */
		keep_outage(w, c, due_ns > w->open->held_ns ? due_ns : ids->departed_ns, now_ns);
	}
	ids->last_plus_1 = ids->answered_plus_1;
	ids->due_ns = due_ns;
	ids->answered_ns = now_ns;
	return counts;
}

void
np_open_lost(struct np_worker *w, uint64_t n)
{
	np_hist_record_never(w->hist, n);
	np_hist_record_never(w->open->sent, n);
}

/* How many requests of the window were answered or lost. */
static uint64_t
finished(const struct np_worker *w)
{
	return np_get(&w->count->transactions) + np_get(&w->count->lost);
}

/* np_load_kind.waits: a begun request has no answer yet, or a last one is still to be sent. */
static bool
open_waits(const struct np_worker *w)
{
	const struct np_open_counts *n = &w->open->count;

	return (n->begun > finished(w) || has_last(w)) && w->error == 0 &&
	       np_now() < w->open->until_ns && !np_abandoned(&w->stop);
}

const struct np_load_kind np_load_open = {
	.more = np_load_next_due, .next = open_next, .wake = open_wake, .waits = open_waits
};

bool
np_open_drains(struct np_worker *w)
{
	const uint64_t most =
	    np_max(NP_OPEN_GRACE_MS * NP_MSEC, w->run->round_trips_ns + NP_SEC / 10);

	if (w->open == NULL || w->error != 0) {
		return false;
	}
	w->ended_ns = np_min(w->left_ns, w->open->closes_ns);
	w->open->until_ns =
	    w->ended_ns + (w->timeout_ns > 0 && w->timeout_ns < most ? w->timeout_ns : most);
	w->load.drains = w->goes_on = true;
	return true;
}

void
np_open_settle(struct np_worker *w)
{
	struct np_open *o = w->open;
	struct np_open_counts *n;

	if (o == NULL) {
		return;
	}
	n = &o->count;
	n->due = n->begun; /* and those that were never sent: */
	for (; w->load.arrivals.due_ns < w->ended_ns; np_arrivals_next(&w->load.arrivals)) {
		n->due += np_open_is_counted(w, w->load.arrivals.due_ns);
	}
	np_open_lost(w, np_excess(n->due, finished(w)));
	/* Connections that were not answered any more: their outage lasts until the end. */
	for (uint32_t i = 0; i < w->conns && w->id.width > 0; i++) {
		if (w->conn[i].ids->next > w->conn[i].ids->last_plus_1) {
			keep_outage(w, &w->conn[i], w->ended_ns, np_now());
		}
	}
}

/*
 * Is this percentile of latency longer if counted from when requests were due? By LONGER, without
 * overlap of their intervals; by LONGER_OF_FEW if there are too few requests for intervals.
 */
static bool
is_longer(const struct np_hist *due, const struct np_hist *sent, double share)
{
	double ratio = (double)np_hist_percentile(due, share) /
		       fmax((double)np_hist_percentile(sent, share), 1);
	uint64_t low, high, ignored;

	if (ratio <= LONGER || !np_hist_interval(due, share, &low, &ignored) ||
	    !np_hist_interval(sent, share, &ignored, &high)) {
		return ratio > LONGER_OF_FEW;
	}
	return low > high;
}

void
np_open_judge(struct np_open_result *r, const struct np_hist *latency)
{
	double due = (double)r->count.due, sent = (double)r->count.begun;
	static const unsigned percent[] = { 50, 90, 99 };
	unsigned p = 0; /* the percentile that lateness has changed; 0: none */
	char *text = r->limits;
	size_t n;

	for (size_t i = 0; i < sizeof(percent) / sizeof(percent[0]) && p == 0; i++) {
		p = is_longer(latency, r->sent, percent[i] / 100.0) ? percent[i] : 0;
	}
	if (sent < SENT_LEAST * due) {
		n = np_text_add(text, sizeof(r->limits), 0, "%.4g %% of the due requests were sent",
				100 * sent / due);
	} else if (p != 0) {
		n = np_text_add(
		    text, sizeof(r->limits), 0,
		    "P%u is %.12g ms from when requests were due, %.12g ms from when "
		    "they were sent",
		    p, np_significant((double)np_hist_percentile(latency, p / 100.0) / NP_MSEC, 4),
		    np_significant((double)np_hist_percentile(r->sent, p / 100.0) / NP_MSEC, 4));
	} else {
		text[0] = '\0';
		return;
	}
	if (r->count.held > 0) {
		np_text_add(text, sizeof(r->limits), n,
			    "; each connection had its maximum of %u requests in flight (try more "
			    "--flows, or a lower --rate)",
			    r->depth);
	} else if (r->ran >= BUSY) {
		np_text_add(text, sizeof(r->limits), n, "; its threads ran %.0f %% of the time",
			    100 * r->ran);
	} else if (r->waited >= WAITED) {
		np_text_add(text, sizeof(r->limits), n,
			    "; its threads waited for a processor %.3g %% of the time",
			    100 * r->waited);
	} else if (r->ran >= 0) {
		np_text_add(
		    text, sizeof(r->limits), n,
		    "; its threads ran %.2g %% of the time: they were woken late, or stopped",
		    100 * r->ran);
	}
}
