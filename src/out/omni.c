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
	return !np_figure_is_percentile(id) &&
	       np_metric((enum np_metric_id)id)->type == NP_TYPE_TEXT;
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
		fprintf(out, np_metric((enum np_metric_id)id)->print,
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
	size_t n = np_figure_format(f, id, text, sizeof(text));

	if (!has_value(f, id)) {
		return 0;
	}
	return (int)(n == 1 ? strlen(text) : n);
}

/* ---- -k ---- */

static void
print_keyval(FILE *out, const struct np_selection *sel, const struct np_figures *f)
{
	for (size_t g = 0; g < NP_SELECT_GROUPS; g++) {
		for (size_t i = 0; i < sel->count[g]; i++) {
			int id = sel->id[g][i];
			char name[NP_FIGURE_NAME];

			if (has_value(f, id)) {
				fprintf(out, "%s=", np_figure_name(id, name));
				put_value(out, f, id);
				fputc('\n', out);
			}
		}
	}
}

/* ---- -o ---- */

/* An unknown name has an empty cell here, as it has below. */
static void
print_csv_heads(FILE *out, const struct np_selection *sel)
{
	const char *between = "";

	for (size_t g = 0; g < NP_SELECT_GROUPS; g++) {
		for (size_t i = 0; i < sel->count[g]; i++) {
			char title[4 * NP_FIGURE_NAME] = "";

			if (sel->id[g][i] != NP_SELECT_UNKNOWN) {
				np_figure_title(sel->id[g][i], title, sizeof(title));
			}
			fprintf(out, "%s%s", between, title);
			between = ",";
		}
	}
	fputc('\n', out);
}

/* A missing value is followed by a comma and a blank. As many cells as there are heads. */
static void
print_csv_row(FILE *out, const struct np_selection *sel, const struct np_figures *f)
{
	const char *between = "";

	for (size_t g = 0; g < NP_SELECT_GROUPS; g++) {
		for (size_t i = 0; i < sel->count[g]; i++) {
			bool there = has_value(f, sel->id[g][i]);

			fputs(between, out);
			if (there) {
				put_value(out, f, sel->id[g][i]);
			}
			between = there ? "," : ", ";
		}
	}
	fputc('\n', out);
}

/* ---- -O ---- */

/* The column of an unknown name is one blank. */
static int
column_width(const struct np_figures *f, int id)
{
	char text[NP_FIGURE_NAME];
	int width;

	if (id == NP_SELECT_UNKNOWN) {
		return 1;
	}
	width = length(f, id) + 1;
	for (int h = 0; h < 4; h++) {
		int head = (int)strlen(np_figure_head(id, h, text));

		width = head > width ? head : width;
	}
	return width + 1;
}

static void
print_columns_heads(FILE *out, const int *ids, size_t count, const struct np_figures *f)
{
	for (int h = 0; h < 4; h++) {
		for (size_t i = 0; i < count; i++) {
			char text[NP_FIGURE_NAME];
			const char *head = "";

			if (ids[i] != NP_SELECT_UNKNOWN) {
				head = np_figure_head(ids[i], h, text);
			}
			fprintf(out, "%-*s", column_width(f, ids[i]), head);
		}
		fputc('\n', out);
	}
}

static void
print_columns_row(FILE *out, const int *ids, size_t count, const struct np_figures *f)
{
	for (size_t i = 0; i < count; i++) {
		int blanks = column_width(f, ids[i]);

		if (has_value(f, ids[i])) {
			put_value(out, f, ids[i]);
			blanks -= length(f, ids[i]);
		}
		fprintf(out, "%*s", blanks, "");
	}
	fputc('\n', out);
}

static void
print_columns(FILE *out, const struct np_selection *sel, bool headers, const struct np_figures *f)
{
	for (size_t g = 0; g < NP_SELECT_GROUPS; g++) {
		if (sel->count[g] == 0) {
			continue;
		}
		if (g > 0) {
			fputc('\n', out);
		}
		if (headers) {
			print_columns_heads(out, sel->id[g], sel->count[g], f);
		}
		print_columns_row(out, sel->id[g], sel->count[g], f);
	}
}

void
np_omni_print(FILE *out, enum np_style style, const struct np_selection *sel, bool headers,
	      const struct np_figures *f)
{
	switch (style) {
	case NP_STYLE_KEYVAL:
		print_keyval(out, sel, f);
		break;
	case NP_STYLE_CSV:
		/* netperf's rows hang on the first group. */
		if (sel->count[0] > 0) {
			if (headers) {
				print_csv_heads(out, sel);
			}
			print_csv_row(out, sel, f);
		}
		break;
	case NP_STYLE_CLASSIC:
	case NP_STYLE_COLUMNS:
	case NP_STYLE_HUMAN:
		print_columns(out, sel, headers, f);
		break;
	}
}
