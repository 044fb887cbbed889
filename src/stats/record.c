#include "stats/record.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *
np_subject_title(enum np_subject subject)
{
	static const char *const titles[NP_SUBJECTS] = {
		[NP_SUBJECT_NONE] = "",           [NP_SUBJECT_RESULT] = "Result",
		[NP_SUBJECT_LATENCY] = "Latency", [NP_SUBJECT_SURE] = "Confidence",
		[NP_SUBJECT_CPU] = "CPU",         [NP_SUBJECT_EVIDENCE] = "Evidence",
		[NP_SUBJECT_FLOWS] = "Flows",     [NP_SUBJECT_SIZES] = "Sizes and pacing",
		[NP_SUBJECT_SOCKET] = "Sockets",  [NP_SUBJECT_CALLS] = "Calls and buffers",
		[NP_SUBJECT_TEST] = "The test",   [NP_SUBJECT_HOST] = "Hosts",
		[NP_SUBJECT_NIC] = "Interfaces",  [NP_SUBJECT_OTHER] = "Marks in lists",
	};

	return titles[subject];
}

/* Is there such a row, and in that block (np_metric.block)? */
static bool
in_block(int id, int block)
{
	return id >= 0 && id < NP_METRICS && np_metrics[id].block == block;
}

/* A block has pairs of rows, near and far. List all near figures of a block, then all far ones. */
int
np_metric_next(int id)
{
	int block = np_metrics[id].block;

	if (block == 0) {
		return id + 1;
	}
	if (in_block(id + 2, block)) {
		return id + 2;
	}
	if (np_metrics[id].end == NP_METRIC_FAR) {
		return id + 1; /* the block's last row */
	}
	/* The last near figure: go back to the first, which the first far one follows. */
	while (in_block(id - 2, block)) {
		id -= 2;
	}
	return id + 1;
}

const char *
np_metric_name_at(size_t place)
{
	int id = 0;

	while (place > 0 && id < NP_METRICS) {
		id = np_metric_next(id);
		place--;
	}
	return id < NP_METRICS ? np_metrics[id].name : NULL;
}

int
np_metric_find(const char *name)
{
	for (int i = 0; i < NP_METRICS; i++) {
		if (strcasecmp(np_metrics[i].name, name) == 0) {
			return i;
		}
	}
	return -1;
}

void
np_record_int(struct np_record *r, enum np_metric_id id, int64_t v)
{
	assert(np_metrics[id].type == NP_TYPE_INT);
	r->value[id] = (struct np_value){ .known = true, .i = v, .r = (double)v };
}

void
np_record_real(struct np_record *r, enum np_metric_id id, double v)
{
	assert(np_metrics[id].type == NP_TYPE_REAL);
	r->value[id] = (struct np_value){ .known = true, .r = v };
}

void
np_record_char(struct np_record *r, enum np_metric_id id, char v)
{
	assert(np_metrics[id].type == NP_TYPE_CHAR);
	r->value[id] = (struct np_value){ .known = true, .i = (unsigned char)v };
}

void
np_record_text(struct np_record *r, enum np_metric_id id, const char *v)
{
	assert(np_metrics[id].type == NP_TYPE_TEXT);
	r->value[id] = (struct np_value){ .known = v != NULL, .t = v };
}

void
np_record_mark(struct np_record *r, const enum np_metric_id *ids)
{
	for (; *ids != NP_M_OUTPUT_END; ids++) {
		r->value[*ids].mark = true;
	}
}

bool
np_record_measured(const struct np_record *r, enum np_metric_id id)
{
	if (!np_record_known(r, id) || r->value[id].mark) {
		return false;
	}
	switch (np_metrics[id].type) {
	case NP_TYPE_INT:
		return r->value[id].i >= 0;
	case NP_TYPE_REAL:
		return isfinite(r->value[id].r) && r->value[id].r >= 0;
	case NP_TYPE_CHAR:
		return r->value[id].i != 'U' && r->value[id].i != '\0';
	case NP_TYPE_TEXT:
		break;
	}
	return np_record_get_text(r, id)[0] != '\0';
}

/* Does the metric's conversion print hexadecimal? */
static bool
in_hex(enum np_metric_id id)
{
	const char *print = np_metrics[id].print;

	return print[strlen(print) - 1] == 'x';
}

bool
np_metric_withdrawn(enum np_metric_id id)
{
	return np_metrics[id].collect == NP_COLLECT_GONE;
}

/* As in netperf, numbers that are printed in hexadecimal are -2, others 0. */
void
np_record_withdraw(struct np_record *r)
{
	for (int i = 0; i < NP_METRICS; i++) {
		enum np_metric_id id = (enum np_metric_id)i;

		if (!np_metric_withdrawn(id)) {
			continue;
		}
		if (np_metrics[id].type == NP_TYPE_TEXT) {
			np_record_text(r, id, "Deprecated");
		} else {
			np_record_int(r, id, in_hex(id) ? -2 : 0);
		}
		r->value[id].mark = true;
	}
}

bool
np_record_known(const struct np_record *r, enum np_metric_id id)
{
	return id == NP_M_OUTPUT_NONE || r->value[id].known;
}

int64_t
np_record_get_int(const struct np_record *r, enum np_metric_id id)
{
	return r->value[id].known ? r->value[id].i : -1;
}

double
np_record_get_real(const struct np_record *r, enum np_metric_id id)
{
	return r->value[id].known ? r->value[id].r : -1.0;
}

char
np_record_get_char(const struct np_record *r, enum np_metric_id id)
{
	return (char)(r->value[id].known ? r->value[id].i : 'U');
}

const char *
np_record_get_text(const struct np_record *r, enum np_metric_id id)
{
	if (id == NP_M_OUTPUT_NONE) {
		return " ";
	}
	return r->value[id].known ? r->value[id].t : "";
}

void
np_record_us(struct np_record *r, enum np_metric_id id, uint64_t ns)
{
	r->value[id] = (struct np_value){ .known = true,
					  .never = ns >= NP_HIST_NEVER,
					  .i = (int64_t)(ns / 1000),
					  .r = (double)ns / 1e3 };
}

void
np_record_times(struct np_record *r, const char *source, const struct np_hist *h)
{
	size_t len = strlen(source);
	struct np_hist_summary s;

	np_hist_summarise(h, &s);
	for (int i = 0; i < NP_METRICS; i++) {
		enum np_metric_id id = (enum np_metric_id)i;
		const char *from = np_metrics[id].from, *statistic;

		if (from == NULL || strncmp(from, source, len) != 0 || from[len] != '.') {
			continue;
		}
		statistic = from + len + 1;
		if (statistic[0] == 'p') {
			np_record_us(r, id,
				     np_hist_percentile(h, strtod(statistic + 1, NULL) / 100));
		} else if (strcmp(statistic, "min") == 0 || strcmp(statistic, "max") == 0) {
			np_record_us(r, id, statistic[1] == 'i' ? s.min : s.max);
		} else { /* "mean", "stddev" */
			double ns = statistic[0] == 'm' ? s.mean : s.stddev;

			np_record_real(r, id, isnan(ns) ? -1 : ns / 1000);
		}
		r->value[id].mark = s.count == 0;
	}
}

bool
np_record_is_never(const struct np_record *r, enum np_metric_id id)
{
	return np_record_known(r, id) && r->value[id].never;
}

size_t
np_record_format(const struct np_record *r, enum np_metric_id id, char *out, size_t size)
{
	const struct np_metric *m = &np_metrics[id];
	int64_t v = np_record_get_int(r, id);
	int n = 0;

/* The conversions are literals of metrics.def, one for each type. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (np_record_is_never(r, id)) {
		n = snprintf(out, size, "%s", NP_NEVER_WORD);
		return n > 0 ? (size_t)n : 0;
	}
	switch (m->type) {
	case NP_TYPE_INT:
		/* Hexadecimal figures have 32 bits: -2 is fffffffe. */
		n = snprintf(out, size, m->print, (long long)(in_hex(id) ? (uint32_t)v : v));
		break;
	case NP_TYPE_REAL:
		n = snprintf(out, size, m->print, np_record_get_real(r, id));
		break;
	case NP_TYPE_CHAR:
		n = snprintf(out, size, m->print, np_record_get_char(r, id));
		break;
	case NP_TYPE_TEXT:
		n = snprintf(out, size, m->print, np_record_get_text(r, id));
		break;
	}
#pragma GCC diagnostic pop
	return n > 0 ? (size_t)n : 0;
}

/* ---- Rows of the table, and percentiles ---- */

/* The id of a percentile: a bit, one more for connect times, and millionths of a percent. */
enum {
	PERCENTILE = 1 << 28,
	CONNECT = 1 << 27,
	MILLIONTHS = 1000000, /* of 1 % */
	WHOLE = 100000000,    /* millionths of 100 % */
	DIGITS = 6            /* decimals of a percentage */
};

static const char prefix[] = "P", suffix[] = "_LATENCY", connect_prefix[] = "CONNECT_P";

/* Read a percentage such as "99.9", followed by `rest`, as millionths. -1: not a percentile. */
static int
read_percent(const char *text, const char *rest)
{
	int millionths = 0, digits = 0; /* whole percents at first; then one decimal at a time */

	if (!isdigit((unsigned char)*text)) {
		return -1;
	}
	for (; isdigit((unsigned char)*text) && millionths <= 100; text++) {
		millionths = millionths * 10 + (*text - '0');
	}
	if (millionths > 100) {
		return -1;
	}
	if (*text == '.') {
		for (text++; isdigit((unsigned char)*text) && digits < DIGITS; text++) {
			millionths = millionths * 10 + (*text - '0');
			digits++;
		}
		if (digits == 0) {
			return -1;
		}
	}
	for (; digits < DIGITS; digits++) {
		millionths *= 10;
	}
	return strcasecmp(text, rest) == 0 && millionths > 0 && millionths <= WHOLE ? millionths
										    : -1;
}

int
np_figure_find(const char *name)
{
	int id = np_metric_find(name), percent = -1, connect = 0;

	if (id >= 0) {
		return id;
	}
	if (strncasecmp(name, connect_prefix, strlen(connect_prefix)) == 0) {
		percent = read_percent(name + strlen(connect_prefix), "");
		connect = CONNECT;
	} else if (strncasecmp(name, prefix, strlen(prefix)) == 0) {
		percent = read_percent(name + strlen(prefix), suffix);
	}
	return percent > 0 ? PERCENTILE | connect | percent : -1;
}

bool
np_figure_is_percentile(int id)
{
	return id >= PERCENTILE;
}

/* Is the percentile one of connect times? Else of latencies. */
static bool
of_connect(int id)
{
	return (id & CONNECT) != 0;
}

/* A percentile's percentage, in millionths of 1 %. */
static int
millionths_of(int id)
{
	return id & (CONNECT - 1);
}

/* Write a percentile's percentage, "99.9": without zeros at the end, but `least` decimals. */
static void
put_percent(int id, int least, char out[NP_FIGURE_NAME])
{
	int millionths = millionths_of(id), digits = DIGITS;
	int fraction = millionths % MILLIONTHS;

	while (digits > least && fraction % 10 == 0) {
		fraction /= 10;
		digits--;
	}
	if (digits == 0) {
		snprintf(out, NP_FIGURE_NAME, "%d", millionths / MILLIONTHS);
	} else {
		snprintf(out, NP_FIGURE_NAME, "%d.%0*d", millionths / MILLIONTHS, digits, fraction);
	}
}

/* Write a percentile's name, such as "P99.9_LATENCY", with at least `least` decimals. */
static void
put_name(int id, int least, char text[NP_FIGURE_NAME])
{
	char percent[NP_FIGURE_NAME];

	put_percent(id, least, percent);
	if (of_connect(id)) {
		snprintf(text, NP_FIGURE_NAME, "%s%.20s", connect_prefix, percent);
	} else {
		snprintf(text, NP_FIGURE_NAME, "%s%.20s%s", prefix, percent, suffix);
	}
}

const char *
np_figure_name(int id, char text[NP_FIGURE_NAME])
{
	if (!np_figure_is_percentile(id)) {
		return np_metrics[id].name;
	}
	put_name(id, 0, text);
	if (np_metric_find(text) >= 0) { /* netperf's row has this name: write P50.0 */
		put_name(id, 1, text);
	}
	return text;
}

const char *
np_figure_head(int id, int line, char text[NP_FIGURE_NAME])
{
	const char *const rest[] = { "", "Percentile", of_connect(id) ? "Connect Time" : "Latency",
				     "Microseconds" };
	static const char *const endings[] = { "th", "st", "nd", "rd" };
	int whole, last;
	char percent[NP_FIGURE_NAME];
	bool takes_th;

	if (!np_figure_is_percentile(id)) {
		return np_metrics[id].head[line];
	}
	if (line > 0) {
		return rest[line];
	}
	/* "99.9th", "91st", "11th" */
	whole = millionths_of(id) / MILLIONTHS;
	last = whole % 10;
	takes_th = millionths_of(id) % MILLIONTHS != 0 || last > 3 || whole / 10 == 1;
	put_percent(id, 0, percent);
	snprintf(text, NP_FIGURE_NAME, "%.20s%s", percent, endings[takes_th ? 0 : last]);
	return text;
}

void
np_figure_title(int id, char *out, size_t size)
{
	char text[NP_FIGURE_NAME];
	size_t used = 0;

	out[0] = '\0';
	for (int h = 0; h < 4 && used < size && np_figure_head(id, h, text)[0] != '\0'; h++) {
		used += (size_t)snprintf(out + used, size - used, "%s%s", h > 0 ? " " : "",
					 np_figure_head(id, h, text));
	}
}

enum np_metric_collect
np_figure_collect(int id)
{
	if (np_figure_is_percentile(id)) {
		/* --ramp always takes connect times. */
		return of_connect(id) ? NP_COLLECT_NONE : NP_COLLECT_LATENCY;
	}
	return np_metrics[id].collect;
}

double
np_figure_percentile(const struct np_figures *f, int id)
{
	const struct np_hist *h = of_connect(id) ? f->connect : f->latency;
	uint64_t count = h != NULL ? np_hist_count(h) : 0;
	const uint64_t whole = WHOLE, millionths = (uint64_t)millionths_of(id);

	if (count == 0) {
		return -1;
	}
	/* count * millionths / whole, rounded up: in integers, without overflow or rounding. */
	return (double)np_hist_ranked(h, count / whole * millionths +
					     (count % whole * millionths + whole - 1) / whole);
}

size_t
np_figure_format(const struct np_figures *f, int id, char *out, size_t size)
{
	double ns;

	if (!np_figure_is_percentile(id)) {
		return np_record_format(f->record, (enum np_metric_id)id, out, size);
	}
	ns = np_figure_percentile(f, id);
	if (ns < 0 || ns >= (double)NP_HIST_NEVER) {
		int n = snprintf(out, size, "%s", ns < 0 ? "-1" : NP_NEVER_WORD);

		return n > 0 ? (size_t)n : 0;
	}
	return np_hist_us(ns, out, size);
}
