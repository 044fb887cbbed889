/*
 * The figures that the user selected, in the styles of -o, -O and -k.
 */
#include <string.h>

#include "out/format.h"

/* More than the longest number: "%f" of the largest double has 316 characters. */
enum { NUMBER_SIZE = 400 };

/* The value as it stands in the output. A letter that is a NUL byte shows as nothing. */
static void
put_value(FILE *out, const struct np_record *r, enum np_metric_id id)
{
	const struct np_metric *m = np_metric(id);
	char text[NUMBER_SIZE];

	if (m->type == NP_TYPE_TEXT) {
/* A literal of metrics.def, which takes a text. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		fprintf(out, m->print, np_record_get_text(r, id));
#pragma GCC diagnostic pop
		return;
	}
	np_record_format(r, id, text, sizeof(text));
	fputs(text, out);
}

/*
 * A text that was never set has no cell of its own: netperf leaves it out of -k, and prints it in
 * another way than "". Numbers always have a value, -1 at least.
 */
static bool
has_value(const struct np_record *r, int id)
{
	return id != NP_SELECT_UNKNOWN && (np_metric((enum np_metric_id)id)->type != NP_TYPE_TEXT ||
					   np_record_known(r, (enum np_metric_id)id));
}

/* How many characters put_value() prints; 0 without a value. */
static int
length(const struct np_record *r, enum np_metric_id id)
{
	char text[NUMBER_SIZE];
	size_t n = np_record_format(r, id, text, sizeof(text));

	if (!has_value(r, (int)id)) {
		return 0;
	}
	return (int)(n == 1 ? strlen(text) : n);
}

/* ---- -k ---- */

static void
print_keyval(FILE *out, const struct np_selection *sel, const struct np_record *r)
{
	for (size_t g = 0; g < NP_SELECT_GROUPS; g++) {
		for (size_t i = 0; i < sel->count[g]; i++) {
			int id = sel->id[g][i];

			if (has_value(r, id)) {
				fprintf(out, "%s=", np_metric((enum np_metric_id)id)->name);
				put_value(out, r, (enum np_metric_id)id);
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
			char title[NUMBER_SIZE] = "";
			int id = sel->id[g][i];

			if (id != NP_SELECT_UNKNOWN) {
				np_metric_title((enum np_metric_id)id, title, sizeof(title));
			}
			fprintf(out, "%s%s", between, title);
			between = ",";
		}
	}
	fputc('\n', out);
}

/* A missing value is followed by a comma and a blank. As many cells as there are heads. */
static void
print_csv_row(FILE *out, const struct np_selection *sel, const struct np_record *r)
{
	const char *between = "";

	for (size_t g = 0; g < NP_SELECT_GROUPS; g++) {
		for (size_t i = 0; i < sel->count[g]; i++) {
			bool there = has_value(r, sel->id[g][i]);

			fputs(between, out);
			if (there) {
				put_value(out, r, (enum np_metric_id)sel->id[g][i]);
			}
			between = there ? "," : ", ";
		}
	}
	fputc('\n', out);
}

/* ---- -O ---- */

/* The column of an unknown name is one blank. */
static int
column_width(const struct np_record *r, int id)
{
	int width;

	if (id == NP_SELECT_UNKNOWN) {
		return 1;
	}
	width = length(r, (enum np_metric_id)id) + 1;
	for (int h = 0; h < 4; h++) {
		int head = (int)strlen(np_metric((enum np_metric_id)id)->head[h]);

		width = head > width ? head : width;
	}
	return width + 1;
}

static void
print_human_heads(FILE *out, const int *ids, size_t count, const struct np_record *r)
{
	for (int h = 0; h < 4; h++) {
		for (size_t i = 0; i < count; i++) {
			const char *head = "";

			if (ids[i] != NP_SELECT_UNKNOWN) {
				head = np_metric((enum np_metric_id)ids[i])->head[h];
			}
			fprintf(out, "%-*s", column_width(r, ids[i]), head);
		}
		fputc('\n', out);
	}
}

static void
print_human_row(FILE *out, const int *ids, size_t count, const struct np_record *r)
{
	for (size_t i = 0; i < count; i++) {
		int blanks = column_width(r, ids[i]);

		if (has_value(r, ids[i])) {
			put_value(out, r, (enum np_metric_id)ids[i]);
			blanks -= length(r, (enum np_metric_id)ids[i]);
		}
		fprintf(out, "%*s", blanks, "");
	}
	fputc('\n', out);
}

static void
print_human(FILE *out, const struct np_selection *sel, bool headers, const struct np_record *r)
{
	for (size_t g = 0; g < NP_SELECT_GROUPS; g++) {
		if (sel->count[g] == 0) {
			continue;
		}
		if (g > 0) {
			fputc('\n', out);
		}
		if (headers) {
			print_human_heads(out, sel->id[g], sel->count[g], r);
		}
		print_human_row(out, sel->id[g], sel->count[g], r);
	}
}

void
np_omni_print(FILE *out, enum np_style style, const struct np_selection *sel, bool headers,
	      const struct np_record *r)
{
	switch (style) {
	case NP_STYLE_KEYVAL:
		print_keyval(out, sel, r);
		break;
	case NP_STYLE_CSV:
		/* netperf's rows hang on the first group. */
		if (sel->count[0] > 0) {
			if (headers) {
				print_csv_heads(out, sel);
			}
			print_csv_row(out, sel, r);
		}
		break;
	case NP_STYLE_CLASSIC:
	case NP_STYLE_HUMAN:
		print_human(out, sel, headers, r);
		break;
	}
}
