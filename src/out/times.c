/*
 * The table of latencies below a result (--latency).
 */
#include <inttypes.h>

#include "out/format.h"

enum { TIME_TEXT = 64 };

static const struct {
	const char *head;
	int width;
} columns[] = {
	{ "Count", 9 },  { "Min/us", 8 },   { "Mean/us", 8 }, { "P50/us", 8 },     { "P90/us", 8 },
	{ "P99/us", 8 }, { "P99.9/us", 9 }, { "Max/us", 9 },  { "Stddev/us", 10 },
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

static void
put_row(FILE *out, const char *const cells[COLUMNS])
{
	for (int i = 0; i < COLUMNS; i++) {
		fprintf(out, "%s%*s", i > 0 ? " " : "", columns[i].width - (i > 0), cells[i]);
	}
	putc('\n', out);
}

void
np_times_print(FILE *out, const struct np_hist *h, bool headers)
{
	char text[COLUMNS][TIME_TEXT] = { "" };
	const char *heads[COLUMNS], *cells[COLUMNS];
	struct np_hist_summary s = { .count = 0 };

	if (h != NULL) {
		np_hist_summarise(h, &s);
	}
	if (s.count > 0) {
		const double ns[COLUMNS] = { 0,
					     (double)s.min,
					     s.mean,
					     (double)s.p50,
					     (double)s.p90,
					     (double)s.p99,
					     (double)np_hist_percentile(h, 0.999),
					     (double)s.max,
					     s.stddev };

		snprintf(text[0], TIME_TEXT, "%" PRIu64, s.count);
		for (int i = 1; i < COLUMNS; i++) {
			np_hist_us(ns[i], text[i], TIME_TEXT);
		}
	}
	for (int i = 0; i < COLUMNS; i++) {
		heads[i] = columns[i].head;
		cells[i] = s.count > 0 ? text[i] : "-";
	}
	if (headers) {
		put_row(out, heads);
	}
	put_row(out, cells);
}
