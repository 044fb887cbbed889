/*
 * The table of latencies below a result (--latency).
 */
#include <inttypes.h>
#include <string.h>

#include "out/format.h"

enum { TIME_TEXT = 64 };

static const struct {
	const char *head;
	int width;
	double share; /* of a percentile; 0: it is none */
} columns[] = {
	{ "Count", 9, 0 },        { "Min/us", 8, 0 },   { "Mean/us", 8, 0 },
	{ "P50/us", 8, 0.5 },     { "P90/us", 8, 0.9 }, { "P99/us", 8, 0.99 },
	{ "P99.9/us", 9, 0.999 }, { "Max/us", 9, 0 },   { "Stddev/us", 10, 0 },
};
enum { COLUMNS = sizeof(columns) / sizeof(columns[0]), PERCENTILES_END = 7 };

struct cells {
	char text[COLUMNS][TIME_TEXT];
};

static void
put_row(FILE *out, const struct cells *row, int count)
{
	for (int i = 0; i < count; i++) {
		fprintf(out, "%s%*s", i > 0 ? " " : "", columns[i].width - (i > 0), row->text[i]);
	}
	putc('\n', out);
}

/* What is known of the percentiles: where they lie, or that the times are too few to tell. */
static bool
take_percentiles(const struct np_hist *h, struct cells *row, struct cells *from, struct cells *to)
{
	bool all = true;

	snprintf(from->text[0], TIME_TEXT, "95%% from");
	snprintf(to->text[0], TIME_TEXT, "to");
	for (int i = 1; i < COLUMNS; i++) {
		uint64_t low, high;

		if (columns[i].share > 0 && np_hist_interval(h, columns[i].share, &low, &high)) {
			np_hist_us((double)np_hist_percentile(h, columns[i].share), row->text[i],
				   TIME_TEXT);
			np_hist_us((double)low, from->text[i], TIME_TEXT);
			np_hist_us((double)high, to->text[i], TIME_TEXT);
		} else if (columns[i].share > 0) {
			for (int n = 0; n < 3; n++) {
				struct cells *const each[] = { row, from, to };

				snprintf(each[n]->text[i], TIME_TEXT, "-");
			}
			all = false;
		}
	}
	return all;
}

void
np_times_print(FILE *out, const struct np_hist *h, bool headers)
{
	struct cells heads = { .text = { "" } }, row = heads, from = heads, to = heads;
	struct np_hist_summary s = { .count = 0 };
	const char *between = "not enough operations for ";
	bool all = true;

	for (int i = 0; i < COLUMNS; i++) {
		snprintf(heads.text[i], TIME_TEXT, "%s", columns[i].head);
		snprintf(row.text[i], TIME_TEXT, "-");
	}
	if (h != NULL) {
		np_hist_summarise(h, &s);
	}
	if (s.count > 0) {
		snprintf(row.text[0], TIME_TEXT, "%" PRIu64, s.count);
		np_hist_us((double)s.min, row.text[1], TIME_TEXT);
		np_hist_us(s.mean, row.text[2], TIME_TEXT);
		np_hist_us((double)s.max, row.text[COLUMNS - 2], TIME_TEXT);
		np_hist_us(s.stddev, row.text[COLUMNS - 1], TIME_TEXT);
		all = take_percentiles(h, &row, &from, &to);
	}
	if (headers) {
		put_row(out, &heads, COLUMNS);
	}
	put_row(out, &row, COLUMNS);
	if (headers && s.count > 0) {
		put_row(out, &from, PERCENTILES_END);
		put_row(out, &to, PERCENTILES_END);
	}
	for (int i = 1; headers && !all && i < COLUMNS; i++) {
		if (columns[i].share > 0 && strcmp(row.text[i], "-") == 0) {
			fprintf(out, "%s%.*s", between, (int)strcspn(columns[i].head, "/"),
				columns[i].head);
			between = ", ";
		}
	}
	fputs(headers && !all ? "\n" : "", out);
}
