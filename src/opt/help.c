#include "opt/option.h"

#include <inttypes.h>
#include <string.h>

/* Columns where texts begin: help lines; in the short help, options and their brief texts. */
enum { WORDS_AT = 32, BRIEF_AT = 17, BRIEF_WORDS_AT = 41 };

void
np_help_fill(FILE *out, const char *text, int used, int at)
{
	bool begun = false;

	if (used >= at) { /* no room before the column: the words begin in the next line */
		putc('\n', out);
		used = 0;
	}
	while (*text != '\0') {
		int len = (int)strcspn(text, " ");

		if (begun && used + 1 + len > NP_HELP_WIDTH) {
			putc('\n', out);
			used = 0;
			begun = false;
		}
		if (begun) {
			used += fprintf(out, " %.*s", len, text);
		} else {
			used += fprintf(out, "%*s%.*s", at - used, "", len, text);
			begun = true;
		}
		text += len;
		text += strspn(text, " ");
	}
	putc('\n', out);
}

/* May its next word be an argument? */
static bool
is_optional(const struct np_option *o)
{
	return o->kind == NP_OPT_NEXT || o->kind == NP_OPT_NUMBER;
}

/* The argument as help texts write it after the letter or the name: " [rate]"; "" if none. */
static void
write_argument(const struct np_option *o, char *out, size_t size)
{
	if (o->arg == NULL) {
		out[0] = '\0';
		return;
	}
	snprintf(out, size,
		 o->kind == NP_OPT_MAYBE ? "[=%s]"
		 : is_optional(o)        ? " [%s]"
					 : " %s",
		 o->arg);
}

void
np_help_how(const struct np_option *o, char out[NP_HELP_HOW])
{
	char arg[48];

	write_argument(o, arg, sizeof(arg));
	if (o->letter == '\0') {
		snprintf(out, NP_HELP_HOW, "--%s%s", o->name, arg);
	} else {
		snprintf(out, NP_HELP_HOW, "-%c%s%s%s", o->letter, arg,
			 o->name != NULL ? ", --" : "", o->name != NULL ? o->name : "");
	}
}

/* A group without rows gets no title. */
void
np_help_print(FILE *out, const struct np_option_table *t, unsigned scope,
	      const char *(*words)(const struct np_option *o, void *ctx), void *ctx)
{
	for (size_t g = 0; t->groups[g] != NULL; g++) {
		const char *title = t->groups[g];

		for (size_t i = 0; i < t->count; i++) {
			const struct np_option *o = &t->rows[i];
			const char *text = words != NULL ? words(o, ctx) : o->help;
			char how[NP_HELP_HOW];

			if (!np_option_in(o, scope) || o->group != t->groups[g] || text == NULL) {
				continue;
			}
			if (title != NULL) {
				fprintf(out, "\n%s:\n", title);
				title = NULL;
			}
			np_help_how(o, how);
			np_help_fill(out, text, fprintf(out, "  %s", how), WORDS_AT);
		}
	}
}

/* Print the brief lines of one group (NULL: of all groups), the first one after the title. */
static void
print_brief_group(FILE *out, const struct np_option_table *t, const char *group, const char *title)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct np_option *o = &t->rows[i];

		if (o->brief != NULL && (group == NULL || o->group == group)) {
			char arg[48];
			int used = fprintf(out, "%-*s", BRIEF_AT, title);

			/* There is only room for the letter or the name. */
			write_argument(o, arg, sizeof(arg));
			if (o->letter != '\0') {
				used += fprintf(out, "-%c%s", o->letter, arg);
			} else {
				used += fprintf(out, "--%s%s", o->name, arg);
			}
			fprintf(out, "%*s%s\n", used < BRIEF_WORDS_AT ? BRIEF_WORDS_AT - used : 1,
				"", o->brief);
			title = "";
		}
	}
}

void
np_help_brief(FILE *out, const struct np_option_table *t, const char *title)
{
	if (title != NULL) {
		print_brief_group(out, t, NULL, title);
		return;
	}
	for (size_t g = 0; t->groups[g] != NULL; g++) {
		print_brief_group(out, t, t->groups[g], t->groups[g]);
	}
}

/* How the option takes its argument. */
static const char *
doc_argument(const struct np_option *o)
{
	if (o->arg == NULL || o->kind == NP_OPT_FLAG || o->kind == NP_OPT_PLAIN) {
		return "none";
	}
	return is_optional(o) ? "may" : o->kind == NP_OPT_MAYBE ? "glued" : "needs";
}

/* The range of a number, unless the argument's name tells it; "" if there is none. */
static void
doc_range(const struct np_option *o, char *out, size_t size)
{
	out[0] = '\0';
	if (!np_option_is_number(o) || o->arg == NULL || strchr(o->arg, '|') != NULL ||
	    (o->min == 0 && o->max == 0)) {
		return;
	}
	if (o->max >= INT32_MAX) {
		snprintf(out, size, "at least %" PRId64, o->min);
	} else {
		snprintf(out, size, "%" PRId64 " to %" PRId64, o->min, o->max);
	}
}

/* The bits of the row's scope, or the number of its group. */
static unsigned
doc_place(const struct np_option_table *t, const struct np_option *o)
{
	unsigned group = 0;

	while (t->groups[group] != NULL && t->groups[group] != o->group) {
		group++;
	}
	return t->scopes != NULL ? o->scope : group;
}

void
np_doc_table(FILE *out, const char *name, const struct np_option_table *t)
{
	const char *const *titles = t->scopes != NULL ? t->scopes : t->groups;

	fprintf(out, "table\t%s\n", name);
	for (size_t i = 0; titles[i] != NULL; i++) {
		fprintf(out, "%s\t%s\n", t->scopes != NULL ? "scope" : "group", titles[i]);
	}
	for (size_t i = 0; i < t->count; i++) {
		const struct np_option *o = &t->rows[i];
		char range[64];

		doc_range(o, range, sizeof(range));
		fprintf(out, "row\t%.1s\t%s\t%s\t%s\t%s\t%u\t%s\n", &o->letter,
			o->name != NULL ? o->name : "", doc_argument(o),
			o->arg != NULL ? o->arg : "", range, doc_place(t, o), o->help);
	}
}

void
np_doc_list(FILE *out, const char *name, const char *(*at)(size_t i))
{
	fprintf(out, "list\t%s\n", name);
	for (size_t i = 0; at(i) != NULL; i++) {
		fprintf(out, "item\t%s\n", at(i));
	}
}
