#include "stats/figure.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A percentile's number: this bit, perhaps that of connect times, and millionths of a percent. */
enum {
	PERCENTILE = 1 << 28,
	CONNECT = 1 << 27,
	MILLIONTHS = 1000000,
	WHOLE = 100000000,
	DIGITS = 6
};

static const char before[] = "P", behind[] = "_LATENCY", connect_before[] = "CONNECT_P";

/* Read "99.9" in front of `rest` as millionths. -1: it is no percentile. */
static int
read_percent(const char *text, const char *rest)
{
	int millionths = 0, digits = 0;

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
	int id = np_metric_find(name), percent;

	if (id >= 0) {
		return id;
	}
	if (strncasecmp(name, connect_before, strlen(connect_before)) == 0) {
		percent = read_percent(name + strlen(connect_before), "");
		return percent > 0 ? PERCENTILE | CONNECT | percent : -1;
	}
	if (strncasecmp(name, before, strlen(before)) != 0) {
		return -1;
	}
	percent = read_percent(name + strlen(before), behind);
	return percent > 0 ? PERCENTILE | percent : -1;
}

bool
np_figure_is_percentile(int id)
{
	return id >= PERCENTILE;
}

static bool
of_connect(int id)
{
	return (id & CONNECT) != 0;
}

static int
millionths_of(int id)
{
	return id & (CONNECT - 1);
}

/* "99.9": no zeros at the end, but at least `least` digits behind the point. */
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

static void
put_name(int id, int digits, char text[NP_FIGURE_NAME])
{
	char percent[NP_FIGURE_NAME];

	put_percent(id, digits, percent);
	if (of_connect(id)) {
		snprintf(text, NP_FIGURE_NAME, "%s%.20s", connect_before, percent);
	} else {
		snprintf(text, NP_FIGURE_NAME, "%s%.20s%s", before, percent, behind);
	}
}

const char *
np_figure_name(int id, char text[NP_FIGURE_NAME])
{
	if (!np_figure_is_percentile(id)) {
		return np_metrics[id].name;
	}
	put_name(id, 0, text);
	if (np_metric_find(text) >= 0) { /* netperf's whole microseconds have this name */
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
	bool plain;

	if (!np_figure_is_percentile(id)) {
		return np_metrics[id].head[line];
	}
	if (line > 0) {
		return rest[line];
	}
	/* "99.9th", "91st" */
	whole = millionths_of(id) / MILLIONTHS;
	last = whole % 10;
	plain = millionths_of(id) % MILLIONTHS != 0 || last > 3 || whole / 10 == 1;
	put_percent(id, 0, percent);
	snprintf(text, NP_FIGURE_NAME, "%.20s%s", percent, endings[plain ? 0 : last]);
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
	/* In whole numbers: 99.99 % of 10,000 are 9,999, and not a little more. */
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
