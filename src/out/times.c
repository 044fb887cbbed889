/* Latencies below a result: the table of --latency, and netperf's histogram. */
#include <inttypes.h>
#include <string.h>

#include "out/format.h"

enum { TIME_TEXT = 64 }; /* bytes */

static const struct {
	const char *head;
	int width;
	double share; /* of a percentile; 0: not a percentile */
} columns[] = {
	{ "Count", 9, 0 },        { "Min/us", 8, 0 },   { "Mean/us", 8, 0 },
	{ "P50/us", 8, 0.5 },     { "P90/us", 8, 0.9 }, { "P99/us", 8, 0.99 },
	{ "P99.9/us", 9, 0.999 }, { "Max/us", 9, 0 },   { "Stddev/us", 10, 0 },
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]), PERCENTILES_END = 7 };

/* Those of the confidence interval of percentiles, FROM and TO, end with the last percentile. */
enum row { HEADS, VALUES, FROM, TO };

/* A cell's text; "-": none. FROM and TO begin with a label, and are empty but for percentiles. */
static void
fill_cell(const struct np_hist *h, const struct np_hist_summary *s, enum row row, int column,
	  char text[TIME_TEXT])
{
	const double values[COLUMNS] = { [1] = (double)s->min, /* ns */
					 [2] = s->mean,
					 [COLUMNS - 2] = (double)s->max,
					 [COLUMNS - 1] = s->stddev };
	static const char *const labels[] = { [FROM] = "95% from", [TO] = "to" };
	double share = columns[column].share;
	uint64_t low, high;

	snprintf(text, TIME_TEXT, "-");
	if (row == HEADS) {
		snprintf(text, TIME_TEXT, "%s", columns[column].head);
	} else if (s->count > 0 && share > 0 && np_hist_interval(h, share, &low, &high)) {
		np_hist_us((double)(row == VALUES ? np_hist_percentile(h, share)
				    : row == FROM ? low
						  : high),
			   text, TIME_TEXT);
	} else if (row != VALUES && share <= 0) {
		snprintf(text, TIME_TEXT, "%s", column == 0 ? labels[row] : "");
	} else if (s->count > 0 && column == 0) {
		snprintf(text, TIME_TEXT, "%" PRIu64, s->count);
	} else if (s->count > 0 && share <= 0) {
		np_hist_us(values[column], text, TIME_TEXT);
	}
}

void
np_times_print(FILE *out, const struct np_hist *h, bool headers)
{
	const char *between = "not enough operations for ";
	struct np_hist_summary s = { .count = 0 };
	char text[TIME_TEXT];
	uint64_t low, high;
	enum row last;

	if (h != NULL) {
		np_hist_summarise(h, &s);
	}
	last = headers && s.count > 0 ? TO : VALUES;
	for (enum row row = headers ? HEADS : VALUES; row <= last; row++) {
		for (int i = 0; i < (row < FROM ? COLUMNS : PERCENTILES_END); i++) {
			fill_cell(h, &s, row, i, text);
			fprintf(out, "%s%*s", i > 0 ? " " : "", columns[i].width - (i > 0), text);
		}
		putc('\n', out);
	}
	for (int i = 1; headers && s.count > 0 && i < COLUMNS; i++) {
		if (columns[i].share > 0 && !np_hist_interval(h, columns[i].share, &low, &high)) {
			fprintf(out, "%s%.*s", between, (int)strcspn(columns[i].head, "/"),
				columns[i].head);
			between = ", ";
		}
	}
	fputs(between[0] == ',' ? "\n" : "", out);
}

/* netperf's histogram: a decade has ten cells of one unit. */
enum { DECADES = 8, TENTHS = 10 };

void
np_histogram_print(FILE *out, const struct np_hist *h)
{
	static const char *const labels[DECADES] = {
		"UNIT_USEC", "TEN_USEC",     "HUNDRED_USEC", "UNIT_MSEC",
		"TEN_MSEC",  "HUNDRED_MSEC", "UNIT_SEC",     "TEN_SEC",
	};
	uint64_t count[DECADES][TENTHS] = { { 0 } }, over = 0, total = 0;

	for (unsigned i = np_hist_next(h, 0); i < NP_HIST_CELLS; i = np_hist_next(h, i + 1)) {
		uint64_t us = (uint64_t)np_hist_middle(i) / 1000; /* whole ones, as in netperf */
		uint64_t unit = 1;
		int d = 0;

		for (; d < DECADES && us >= unit * TENTHS; d++) {
			unit *= TENTHS;
		}
		*(d < DECADES ? &count[d][us / unit] : &over) += h->cell[i];
		total += h->cell[i];
	}
	for (int d = 0; d < DECADES; d++) {
		fprintf(out, "%-14s", labels[d]);
		for (int t = 0; t < TENTHS; t++) {
			fprintf(out, ": %4" PRIu64, count[d][t]);
		}
		fputc('\n', out);
	}
	fprintf(out, ">100_SECS: %" PRIu64 "\nHIST_TOTAL:      %" PRIu64 "\n", over, total);
}
