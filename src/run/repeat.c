#include "run/repeat.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const enum np_metric_id metric_of[NP_REPEAT_FIGURES] = {
	[NP_REPEAT_THROUGHPUT] = NP_M_THROUGHPUT,      [NP_REPEAT_LOCAL_CPU] = NP_M_LOCAL_CPU_UTIL,
	[NP_REPEAT_REMOTE_CPU] = NP_M_REMOTE_CPU_UTIL, [NP_REPEAT_LOCAL_SD] = NP_M_LOCAL_SD,
	[NP_REPEAT_REMOTE_SD] = NP_M_REMOTE_SD,
};

/* Add the clean time of an iteration. */
static void
add_clean(struct np_repeat_clean *sum, const struct np_record *record, const struct np_clean *clean)
{
	double throughput = fmax(np_record_get_real(record, NP_M_CLEAN_THROUGHPUT), 0);

	sum->seconds += clean->seconds;
	sum->clean += clean->clean_s;
	if (clean->clean_s > 0) { /* in this form, the mean of one value is exactly that value */
		sum->throughput += (throughput - sum->throughput) * (clean->clean_s / sum->clean);
	}
	for (int i = 0; i < NP_REASONS; i++) {
		sum->reason_s[i] += clean->reason_s[i];
	}
}

int
np_repeat_add(struct np_repeat *r, const struct np_record *record, const struct np_hist *hist,
	      const struct np_clean *clean, struct np_err *err)
{
	double seconds = np_record_get_real(record, NP_M_ELAPSED_TIME);

	if (r->hist == NULL && (r->hist = np_hist_new()) == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for a histogram");
	}
	np_hist_merge(r->hist, hist);
	for (int i = 0; i < NP_REPEAT_FIGURES; i++) {
		double v = np_record_get_real(record, metric_of[i]);

		if (v >= 0) { /* else unknown, as of a far end that did not report */
			np_series_add(&r->figure[i], v);
			r->by_time[i] += v * seconds;
			r->known_s[i] += seconds;
		}
	}
	if (clean != NULL) {
		add_clean(&r->clean, record, clean);
	}
	r->elapsed_s += seconds;
	r->done++;
	return NP_OK;
}

/* The confidence interval's full width, in percent of the mean; 0 if it was never measured. */
static double
width_percent(const struct np_repeat *r, int figure)
{
	const struct np_series *s = &r->figure[figure];

	return s->count > 0 ? 100 * np_series_width(s, r->plan.level) : 0;
}

/* Is the confidence reached that -I asks for? One value has no interval. */
static bool
confidence_reached(const struct np_repeat *r)
{
	if (r->done < 2 || width_percent(r, NP_REPEAT_THROUGHPUT) > r->plan.width) {
		return false;
	}
	return r->plan.result_only || (width_percent(r, NP_REPEAT_LOCAL_CPU) <= r->plan.width &&
				       width_percent(r, NP_REPEAT_REMOTE_CPU) <= r->plan.width);
}

/* Tolerated, as a far end's window is a little shorter than this end's: one interval. */
static const double tolerance_s = 0.1;

/* Clean seconds that are still missing, less the tolerance; 0 or less: there are enough. */
static double
missing_s(const struct np_repeat *r)
{
	return r->plan.clean_s - tolerance_s - r->clean.clean;
}

int
np_repeat_next_s(const struct np_repeat *r)
{
	double left = r->plan.at_most_s - r->elapsed_s + tolerance_s, missing = missing_s(r);

	return (int)fmax(1, fmin(ceil(missing), left));
}

bool
np_repeat_unclean(const struct np_repeat *r)
{
	return r->plan.clean_s > 0 && missing_s(r) > 0;
}

bool
np_repeat_more(const struct np_repeat *r)
{
	int done = (int)r->done;

	if (r->plan.clean_s > 0) { /* without evidence of clean time there is nothing to wait for */
		return np_repeat_unclean(r) && r->clean.seconds > 0 &&
		       r->elapsed_s + 1 <= r->plan.at_most_s + tolerance_s; /* 1 s is the least */
	}
	return done < r->plan.min || (done < r->plan.max && !confidence_reached(r));
}

bool
np_repeat_missed(const struct np_repeat *r)
{
	return r->plan.level != 0 && r->plan.max > 1 && !confidence_reached(r); /* one has none */
}

/* Put a figure's width, in percent; 0 if it is unknown, as of a single value. */
static void
conclude_width(const struct np_repeat *r, int figure, enum np_metric_id id,
	       struct np_record *record)
{
	double percent = width_percent(r, figure);

	np_record_real(record, id, isfinite(percent) ? percent : 0);
	NP_MARK_IF(!isfinite(percent) || !np_record_measured(record, metric_of[figure]), record,
		   id);
}

void
np_repeat_conclude(struct np_repeat *r, bool latency, struct np_record *record)
{
	struct np_repeat_clean *c = &r->clean;
	bool by_time = (r->plan.clean_s > 0 || (r->cut && r->done > 1)) && r->elapsed_s > 0;

	for (int i = 0; i < NP_REPEAT_FIGURES; i++) {
		const struct np_series *s = &r->figure[i];

		np_record_real(record, metric_of[i],
			       s->count == 0 ? -1 /* never known */
			       : by_time     ? r->by_time[i] / r->known_s[i]
					     : s->mean);
	}
	/* With --clean the sum, else the mean. */
	np_record_real(record, NP_M_ELAPSED_TIME,
		       r->elapsed_s / (r->plan.clean_s > 0 ? 1 : r->done));
	np_record_int(record, NP_M_CONFIDENCE_ITERATION, r->done);
	np_record_int(record, NP_M_CONFIDENCE_LEVEL, r->plan.level);
	np_record_real(record, NP_M_CONFIDENCE_INTERVAL, r->plan.level != 0 ? r->plan.width : -1);
	NP_MARK_IF(r->plan.level == 0, record, NP_M_CONFIDENCE_LEVEL);
	if (r->plan.level != 0) { /* else the widths stay unknown */
		conclude_width(r, NP_REPEAT_THROUGHPUT, NP_M_THROUGHPUT_CONFID, record);
		conclude_width(r, NP_REPEAT_LOCAL_CPU, NP_M_LOCAL_CPU_CONFID, record);
		conclude_width(r, NP_REPEAT_REMOTE_CPU, NP_M_REMOTE_CPU_CONFID, record);
	}
	if (c->seconds > 0) {
		np_clean_reasons(c->reason_s, c->reasons);
		np_record_real(record, NP_M_DISTURBED_SHARE, 1 - c->clean / c->seconds);
		np_record_real(record, NP_M_CLEAN_SECONDS, c->clean);
		np_record_text(record, NP_M_DISTURBED_REASONS, c->reasons);
	}
	if (c->clean > 0) {
		np_record_real(record, NP_M_CLEAN_THROUGHPUT, c->throughput);
	}
	if (latency) {
		np_record_times(record, "latency", r->hist);
	}
}

void
np_repeat_free(struct np_repeat *r)
{
	free(r->hist);
	r->hist = NULL;
}
