/*
 * The figures that the user selected, in the styles of -o, -O and -k.
 */
#include <string.h>

#include "out/format.h"

/* More than the longest number: "%f" of the largest double has 316 characters. */
enum { NUMBER_SIZE = 400 };

static bool
is_text(int id)
{
	return !np_figure_is_percentile(id) && np_metrics[id].type == NP_TYPE_TEXT;
}

/* The value as it stands in the output. A letter that is a NUL byte shows as nothing. */
static void
put_value(FILE *out, const struct np_figures *f, int id)
{
	char text[NUMBER_SIZE];

	if (is_text(id)) {
/* A literal of metrics.def, which takes a text. */
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

/*
 * A text that was never set has no cell of its own: netperf leaves it out of -k, and prints it in
 * another way than "". Numbers always have a value, -1 at least.
 */
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
	return (int)(n == 1 ? strlen(text) : n);
}

/* A line of heads, or the values. */
enum { VALUES = 4 };

/* -O: the column of an unknown name is one blank. */
static void
put_column(FILE *out, const struct np_figures *f, int id, int line)
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

static void
print_columns(FILE *out, const struct np_selection *sel, bool headers, const struct np_figures *f)
{
	for (size_t g = 0; g < NP_SELECT_GROUPS; g++) {
		if (g > 0 && sel->count[g] > 0) {
			fputc('\n', out);
		}
		for (int line = headers ? 0 : VALUES; line <= VALUES && sel->count[g] > 0; line++) {
			for (size_t i = 0; i < sel->count[g]; i++) {
				put_column(out, f, sel->id[g][i], line);
			}
			fputc('\n', out);
		}
	}
}

/* -k */
static void
put_line(FILE *out, const struct np_figures *f, int id)
{
	char name[NP_FIGURE_NAME];

	if (has_value(f, id)) {
		fprintf(out, "%s=", np_figure_name(id, name));
		put_value(out, f, id);
		fputc('\n', out);
	}
}

/* -o: an unknown name has an empty cell. A missing value is followed by a comma and a blank. */
static void
put_cell(FILE *out, const struct np_figures *f, int id, bool head, const char **between)
{
	char title[4 * NP_FIGURE_NAME] = "";
	bool there = head || has_value(f, id);

	fputs(*between, out);
	if (head && id != NP_SELECT_UNKNOWN) {
		np_figure_title(id, title, sizeof(title));
		fputs(title, out);
	} else if (there && !head) {
		put_value(out, f, id);
	}
	*between = there ? "," : ", ";
}

/* All groups are one. */
static void
print_list(FILE *out, const struct np_selection *sel, bool head, const struct np_figures *f,
	   enum np_style style)
{
	const char *between = "";

	for (size_t g = 0; g < NP_SELECT_GROUPS; g++) {
		for (size_t i = 0; i < sel->count[g]; i++) {
			if (style == NP_STYLE_KEYVAL) {
				put_line(out, f, sel->id[g][i]);
			} else {
				put_cell(out, f, sel->id[g][i], head, &between);
			}
		}
	}
	fputs(style == NP_STYLE_KEYVAL ? "" : "\n", out);
}

void
np_omni_print(FILE *out, enum np_style style, const struct np_selection *sel, bool headers,
	      const struct np_figures *f)
{
	switch (style) {
	case NP_STYLE_CSV:
		if (sel->count[0] == 0) {
			break; /* netperf's rows hang on the first group */
		}
		if (headers) {
			print_list(out, sel, true, f, style);
		}
		print_list(out, sel, false, f, style);
		break;
	case NP_STYLE_KEYVAL:
		print_list(out, sel, false, f, style);
		break;
	case NP_STYLE_CLASSIC:
	case NP_STYLE_COLUMNS:
	case NP_STYLE_HUMAN:
		print_columns(out, sel, headers, f);
		break;
	}
}
