/* Named results: for each row of the metric table (metrics.def) a value, or none. */
#ifndef NP_STATS_RECORD_H
#define NP_STATS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stats/hist.h"

/* If both ends have a figure, that of the far end is the next row: np_metric_of(). */
enum np_metric_id {
#define NP_FIGURE(end, block, name, ...) NP_M_##name,
#include "stats/metrics.def"
	NP_METRICS
};

enum np_metric_type { NP_TYPE_INT, NP_TYPE_REAL, NP_TYPE_CHAR, NP_TYPE_TEXT };

/* What has to be collected during the test when an output selector names the metric. */
enum np_metric_collect {
	NP_COLLECT_NONE,
	NP_COLLECT_GONE, /* nothing: netperf 2.7 still prints it, but without a value */
	NP_COLLECT_LATENCY,
	NP_COLLECT_CONGESTION,
	NP_COLLECT_EVIDENCE
};

/* Headings in lists for people, in this order. */
enum np_subject {
	NP_SUBJECT_NONE,
	NP_SUBJECT_RESULT,
	NP_SUBJECT_LATENCY,
	NP_SUBJECT_SURE,
	NP_SUBJECT_CPU,
	NP_SUBJECT_EVIDENCE,
	NP_SUBJECT_FLOWS,
	NP_SUBJECT_SIZES,
	NP_SUBJECT_SOCKET,
	NP_SUBJECT_CALLS,
	NP_SUBJECT_TEST,
	NP_SUBJECT_HOST,
	NP_SUBJECT_NIC,
	NP_SUBJECT_OTHER,
	NP_SUBJECTS
};

/* What a figure is of: the whole test, this end, or the far end. */
enum np_metric_end { NP_METRIC_ALONE, NP_METRIC_NEAR, NP_METRIC_FAR };

struct np_metric {
	const char *name; /* as output selectors spell it */
	enum np_metric_type type;
	enum np_subject subject;
	const char *print; /* conversion for its type: long long, double, int or const char * */
	int group;         /* block of `-o all`, 1 to 4; 0: none */
	enum np_metric_collect collect;
	const char *head[4];
	enum np_metric_end end;
	int block;         /* rows listed together, see np_metric_next(); 0: none */
	const char *unit;  /* "": none; "-f": as that option says */
	const char *words; /* description */
	const char *from;  /* evidence or histogram that has it; NULL: it is computed */
};

struct np_value {
	bool known;
	bool mark;  /* not measured, but netperf prints this value */
	bool never; /* an infinite time */
	int64_t i;
	double r;      /* also of an INT, with the fractions of a time */
	const char *t; /* not owned */
};

struct np_record {
	struct np_value value[NP_METRICS];
};

/* The table, by enum np_metric_id. */
extern const struct np_metric np_metrics[NP_METRICS];

/* A figure of an end, by the row of the near end. */
static inline enum np_metric_id
np_metric_of(enum np_metric_id near, bool far)
{
	return (enum np_metric_id)((int)near + far);
}

/* The row after `id` in netperf's order, which begins with row 0; NP_METRICS: none. */
int np_metric_next(int id);

/* The name of the row at a place in that order, from 0; NULL: none. */
const char *np_metric_name_at(size_t place);

/* The heading of a subject. */
const char *np_subject_title(enum np_subject subject);

/* The metric of that name, in upper or lower case; -1 when there is none. */
int np_metric_find(const char *name);

/*
 * Set a value of the metric's type. A text is not copied; NULL is no value, "" is one. A letter may
 * be a NUL byte, as netperf prints for a far end without a CPU method.
 */
void np_record_int(struct np_record *r, enum np_metric_id id, int64_t v);
void np_record_real(struct np_record *r, enum np_metric_id id, double v);
void np_record_char(struct np_record *r, enum np_metric_id id, char v);
void np_record_text(struct np_record *r, enum np_metric_id id, const char *v);

/* Set a time in ns as microseconds, whole ones of an INT. NP_HIST_NEVER prints NP_NEVER_WORD. */
#define NP_NEVER_WORD "inf"
void np_record_us(struct np_record *r, enum np_metric_id id, uint64_t ns);
bool np_record_is_never(const struct np_record *r, enum np_metric_id id);

/*
 * Set the rows from a histogram; source: its name there, "latency" for latency.p99, .min, .max,
 * .mean, .stddev. If h is empty they are 0, and marked. Infinite times make .mean and .stddev -1.
 */
void np_record_times(struct np_record *r, const char *source, const struct np_hist *h);

/* Mark values as not measured, until set again; they print as they are. ids ends in OUTPUT_END. */
void np_record_mark(struct np_record *r, const enum np_metric_id *ids);
#define NP_MARK_IF(unmeasured, r, ...)                                                             \
	do {                                                                                       \
		if (unmeasured) {                                                                  \
			np_record_mark(                                                            \
			    r, (const enum np_metric_id[]){ __VA_ARGS__, NP_M_OUTPUT_END });       \
		}                                                                                  \
	} while (0)

/* Was the value measured, counted or asked for? Not if marked, below 0, NAN, 'U' or empty text. */
bool np_record_measured(const struct np_record *r, enum np_metric_id id);

/* Does netperf 2.7 still print the row, but without a value? */
bool np_metric_withdrawn(enum np_metric_id id);

/* Set all withdrawn rows to what netperf prints. */
void np_record_withdraw(struct np_record *r);

/* Was a value set? OUTPUT_NONE always has one. */
bool np_record_known(const struct np_record *r, enum np_metric_id id);

/* The value of an INT or REAL metric; -1 when it is not known, as netperf prints it. */
int64_t np_record_get_int(const struct np_record *r, enum np_metric_id id);
double np_record_get_real(const struct np_record *r, enum np_metric_id id);

/* The letter of a CHAR metric; 'U' when it is not known. */
char np_record_get_char(const struct np_record *r, enum np_metric_id id);

/* The value of a TEXT metric, "" if it is not known; of OUTPUT_NONE a blank. */
const char *np_record_get_text(const struct np_record *r, enum np_metric_id id);

/*
 * Write the value as its row says, cut to size - 1 bytes and a NUL; an unknown one as -1, 'U' or
 * empty. Hexadecimal INT metrics show their low 32 bits, as netperf's -1 does. Returns the length
 * of the whole text, in which a letter may be a NUL byte; out may be NULL when size is 0.
 */
size_t np_record_format(const struct np_record *r, enum np_metric_id id, char *out, size_t size);

/*
 * A figure is what an output selector can name, as a number: a row of the metric table, or a
 * percentile of latencies (P99.9_LATENCY) or of the connect times of --ramp (CONNECT_P99.9). A
 * percentile is above 0, at most 100, and has at most 6 decimals. netperf's own names (P50_LATENCY
 * ...) are rows of the table, in whole microseconds; P50.0_LATENCY has fractions.
 */

/* The figures of a result: the record, and the histograms for percentiles. */
struct np_figures {
	const struct np_record *record;
	const struct np_hist *latency; /* NULL: no times are known */
	const struct np_hist *connect; /* of --ramp; NULL: there was none */
};

/* Room for the longest name and its NUL. */
enum { NP_FIGURE_NAME = 48 };

/* The figure of that name, in upper or lower case; -1 when there is none. */
int np_figure_find(const char *name);

/* Is it a percentile, and not a row of the metric table? */
bool np_figure_is_percentile(int id);

/* Its name: the metric's own, or that of a percentile, written to `text`. */
const char *np_figure_name(int id, char text[NP_FIGURE_NAME]);

/* Line 0 to 3 of its column heads, which may be written to `text`. */
const char *np_figure_head(int id, int line, char text[NP_FIGURE_NAME]);

/* The lines of its column heads up to the first empty one, joined by blanks, as for -o. */
void np_figure_title(int id, char *out, size_t size);

/* What has to be collected during the test to know it. */
enum np_metric_collect np_figure_collect(int id);

/* A percentile in nanoseconds; -1: there are no times. */
double np_figure_percentile(const struct np_figures *f, int id);

/* As np_record_format(); a percentile in microseconds: -1 without times, NP_NEVER_WORD. */
size_t np_figure_format(const struct np_figures *f, int id, char *out, size_t size);

#endif
