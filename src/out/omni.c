/* The selected figures in the styles of -o, -O and -k. id: of a figure, or NP_SELECT_UNKNOWN. */
#include <string.h>

#include "out/format.h"

enum { NUMBER_SIZE = 400 }; /* "%f" of the largest double has 316 characters */

/* Is the figure a text, which may be longer than NUMBER_SIZE? */
static bool
is_text(int id)
{
	return !np_figure_is_percentile(id) && np_metrics[id].type == NP_TYPE_TEXT;
}

/* Print a value. A letter that is a NUL byte prints nothing. */
static void
put_value(FILE *out, const struct np_figures *f, int id)
{
	char text[NUMBER_SIZE];

	if (is_text(id)) {
/* The format is a literal of metrics.def, for a text. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		fprintf(out, np_metrics[id].print,
			np_record_get_text(f->record, (enum np_metric_id)id));
#pragma GCC diagnostic pop
		return;
	}
	np_figure_format(f, id, text, sizeof(text));
	fputs(text, out);
}

/* Is there a value to print? Not of a text that was never set ("" was); numbers have one, or -1. */
static bool
has_value(const struct np_figures *f, int id)
{
	return id != NP_SELECT_UNKNOWN &&
	       (!is_text(id) || np_record_known(f->record, (enum np_metric_id)id));
}

/* How many characters put_value() prints; 0 without a value. */
static int
length(const struct np_figures *f, int id)
{
	char text[NUMBER_SIZE];
	size_t n;

	if (!has_value(f, id)) {
		return 0;
	}
	n = np_figure_format(f, id, text, sizeof(text));
	return (int)(n == 1 ? strlen(text) : n); /* 0 for a letter that is a NUL byte */
}

enum { VALUES = 4 }; /* number of the line of values; 0 to 3 are lines of heads */

/* How a style prints a figure in a line; *between is printed before the next figure. */
struct writer {
	void (*put)(FILE *out, const struct np_figures *f, int id, int line, const char **between);
	int heads;       /* lines of heads, the last ones before VALUES */
	bool apart;      /* each group has lines of its own, after an empty line */
	const char *end; /* of a line */
};

/* -O. A column is as wide as in netperf, where that of an unknown name is a blank. */
static void
put_column(FILE *out, const struct np_figures *f, int id, int line, const char **between)
{
	char text[NP_FIGURE_NAME];
	const char *head = "";
	int width = length(f, id) + 1, used = 0;

	for (int h = 0; h < 4 && id != NP_SELECT_UNKNOWN; h++) {
		int wide = (int)strlen(np_figure_head(id, h, text));

		width = wide > width ? wide : width;
	}
	width += id != NP_SELECT_UNKNOWN;
	if (line == VALUES && has_value(f, id)) {
		put_value(out, f, id);
		used = length(f, id);
	} else if (line < VALUES && id != NP_SELECT_UNKNOWN) {
		head = np_figure_head(id, line, text);
	}
	fprintf(out, "%-*s", width - used, head);
}

/* -k: a line NAME=value; nothing for a figure without a value. */
static void
put_line(FILE *out, const struct np_figures *f, int id, int line, const char **between)
{
	char name[NP_FIGURE_NAME];

	if (has_value(f, id)) {
		fprintf(out, "%s=", np_figure_name(id, name));
		put_value(out, f, id);
		fputc('\n', out);
	}
}

/* -o. An unknown name has an empty cell; a missing value is followed by a comma and a blank. */
static void
put_cell(FILE *out, const struct np_figures *f, int id, int line, const char **between)
{
	char title[4 * NP_FIGURE_NAME] = "";
	bool is_head = line < VALUES, has_cell = is_head || has_value(f, id);

	fputs(*between, out);
	if (is_head && id != NP_SELECT_UNKNOWN) {
		np_figure_title(id, title, sizeof(title));
		fputs(title, out);
	} else if (has_cell && !is_head) {
		put_value(out, f, id);
	}
	*between = has_cell ? "," : ", ";
}

/* Print a line (-k: lines) with the figures of groups [from, to). line: VALUES, or of the heads. */
static void
put_groups(FILE *out, const struct np_selection *sel, size_t from, size_t to, int line,
	   const struct np_figures *f, const struct writer *w)
{
	const char *between = "";

	for (size_t g = from; g < to; g++) {
		for (size_t i = 0; i < sel->count[g]; i++) {
			w->put(out, f, sel->id[g][i], line, &between);
		}
	}
	fputs(w->end, out);
}

void
np_omni_print(FILE *out, enum np_style style, const struct np_selection *sel, bool headers,
	      const struct np_figures *f)
{
	static const struct writer columns = { put_column, 4, true, "\n" },
				   cells = { put_cell, 1, false, "\n" },
				   lines = { put_line, 0, false, "" };
	const struct writer *w = style == NP_STYLE_CSV      ? &cells
				 : style == NP_STYLE_KEYVAL ? &lines
							    : &columns;

	for (size_t g = 0, to; g < NP_SELECT_GROUPS; g = to) {
		to = w->apart ? g + 1 : NP_SELECT_GROUPS;
		if (sel->count[g] == 0 && w != &lines) {
			continue; /* as in netperf, CSV prints nothing without a first group */
		}
		fputs(g > 0 ? "\n" : "", out);
		for (int line = headers ? VALUES - w->heads : VALUES; line <= VALUES; line++) {
			put_groups(out, sel, g, to, line, f, w);
		}
	}
}
