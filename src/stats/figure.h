/*
 * What an output selector can name: a row of the metric table, or a percentile of the times of a
 * test. Both have one number, so that lists of selectors are lists of numbers.
 *
 *   P99.9_LATENCY     a percentile of the latencies
 *   CONNECT_P99.9     a percentile of the connect times of --ramp
 *
 * The percentile lies above 0, is at most 100, and has at most 6 digits behind its point. netperf's
 * names (P50_LATENCY ...) are rows of the table, whole microseconds; P50.0_LATENCY has fractions.
 */
#ifndef NP_STATS_FIGURE_H
#define NP_STATS_FIGURE_H

#include "stats/hist.h"
#include "stats/record.h"

/* The figures of a result: the record, and the times that percentiles are taken from. */
struct np_figures {
	const struct np_record *record;
	const struct np_hist *latency; /* NULL: no times are known */
	const struct np_hist *connect; /* of --ramp; NULL: there was none */
};

/* Room for the longest name and its NUL. */
enum { NP_FIGURE_NAME = 48 };

/* The figure of that name in any case; -1 when there is none. */
int np_figure_find(const char *name);

/* Is it a percentile, and not a row of the metric table? */
bool np_figure_is_percentile(int id);

/* Its name. text: room for a name that has to be made. */
const char *np_figure_name(int id, char text[NP_FIGURE_NAME]);

/* Line 0 to 3 of its column heads. */
const char *np_figure_head(int id, int line, char text[NP_FIGURE_NAME]);

/* These up to the first empty one, joined by blanks: the name of a column of -o. */
void np_figure_title(int id, char *out, size_t size);

/* What has to be collected during the test. */
enum np_metric_collect np_figure_collect(int id);

/* A percentile in nanoseconds; -1: there are no times. */
double np_figure_percentile(const struct np_figures *f, int id);

/* The value as np_record_format() writes it; a percentile in microseconds, -1 without times. */
size_t np_figure_format(const struct np_figures *f, int id, char *out, size_t size);

#endif
