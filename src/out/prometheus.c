#include "out/prometheus.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "stats/figure.h"

/* The unit of a rate: that of one end's messages is one of bytes, also where transactions count. */
static const char *
unit_of(enum np_metric_id id, const struct np_record *r)
{
	const char *unit = np_record_get_text(r, NP_M_THROUGHPUT_UNITS);

	switch (id) {
	case NP_M_THROUGHPUT:
		return unit;
	case NP_M_LOCAL_SEND_THROUGHPUT:
	case NP_M_LOCAL_RECV_THROUGHPUT:
	case NP_M_REMOTE_SEND_THROUGHPUT:
	case NP_M_REMOTE_RECV_THROUGHPUT:
		return strcmp(unit, "Trans") == 0 ? "10^6bits" : unit;
	default:
		return NULL;
	}
}

/* all: the labels of this result, and room for one of its own behind them. */
static void
put_metric(FILE *out, struct np_label *all, size_t count, const struct np_record *r,
	   enum np_metric_id id)
{
	const struct np_metric *m = np_metric(id);
	const char *unit = unit_of(id, r);
	char name[64] = "netperf_", help[128], per_second[40];
	size_t at = strlen(name);
	double value = np_record_is_never(r, id) ? (double)INFINITY
		       : m->type == NP_TYPE_REAL ? np_record_get_real(r, id)
						 : (double)np_record_get_int(r, id);

	if (!np_record_known(r, id) || r->value[id].mark || value < 0) {
		return;
	}
	for (const char *c = m->name; *c != '\0' && at < sizeof(name) - 1; c++) {
		name[at++] = (char)tolower((unsigned char)*c);
	}
	name[at] = '\0';
	np_figure_title(id, help, sizeof(help));
	snprintf(per_second, sizeof(per_second), "%.32s/s", unit != NULL ? unit : "");
	all[count] = (struct np_label){ "unit", unit != NULL ? per_second : NULL };
	np_prometheus_head(out, name, "gauge", help);
	np_prometheus_value(out, name, all, count + 1, value);
	all[count] = (struct np_label){ NULL, NULL };
}

/* What was never answered has no end, and is counted: nor has a sum with it. */
static double
seconds(uint64_t ns)
{
	return ns < NP_HIST_NEVER ? (double)ns / 1e9 : (double)INFINITY;
}

static void
put_times(FILE *out, struct np_label *all, size_t count, const struct np_hist *hist)
{
	static const char name[] = "netperf_latency_seconds";
	static const struct {
		const char *text;
		double share;
	} quantiles[] = { { "0.5", 0.5 }, { "0.9", 0.9 }, { "0.99", 0.99 }, { "0.999", 0.999 } };

	np_prometheus_head(out, name, "summary", "Times of transactions, or of calls in streams");
	for (size_t q = 0; q < sizeof(quantiles) / sizeof(quantiles[0]); q++) {
		all[count] = (struct np_label){ "quantile", quantiles[q].text };
		np_prometheus_value(out, name, all, count + 1,
				    seconds(np_hist_percentile(hist, quantiles[q].share)));
	}
	np_prometheus_value(out, "netperf_latency_seconds_sum", all, count,
			    seconds(hist->max < NP_HIST_NEVER ? hist->sum : NP_HIST_NEVER));
	np_prometheus_value(out, "netperf_latency_seconds_count", all, count,
			    (double)np_hist_count(hist));
}

void
np_prometheus_print(FILE *out, const struct np_label *labels, size_t count,
		    const struct np_record *r, const struct np_hist *hist)
{
	struct np_label all[NP_LABELS + 1];

	count = count < NP_LABELS ? count : NP_LABELS;
	for (size_t i = 0; i < count; i++) {
		all[i] = labels[i];
	}
	for (int id = 0; id < NP_METRICS; id = np_metric_next(id)) {
		enum np_metric_type type = np_metric((enum np_metric_id)id)->type;

		if (type == NP_TYPE_INT || type == NP_TYPE_REAL) {
			put_metric(out, all, count, r, (enum np_metric_id)id);
		}
	}
	if (hist != NULL && np_hist_count(hist) > 0) {
		put_times(out, all, count, hist);
	}
}
