#include "opt/help.h"

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

/* The argument as help texts write it after the letter or the name: " [rate]"; "" if none. */
static void
write_argument(const struct np_option *o, char *out, size_t size)
{
	bool is_optional = o->kind == NP_OPT_NEXT || o->kind == NP_OPT_NUMBER;

	if (o->arg == NULL) {
		out[0] = '\0';
		return;
	}
	snprintf(out, size,
		 o->kind == NP_OPT_MAYBE ? "[=%s]"
		 : is_optional           ? " [%s]"
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
np_help_print(FILE *out, const struct np_help *h)
{
	for (int g = 0; h->groups[g] != NULL; g++) {
		const char *title = h->groups[g];

		for (size_t i = 0; i < h->count; i++) {
			const struct np_option *o = &h->rows[i];
			const char *words = h->words != NULL ? h->words(o, h->ctx) : o->help;
			char how[NP_HELP_HOW];

			if (!np_option_in(o, h->scope) || o->group != g || words == NULL) {
				continue;
			}
			if (title != NULL) {
				fprintf(out, "\n%s:\n", title);
				title = NULL;
			}
			np_help_how(o, how);
			np_help_fill(out, words, fprintf(out, "  %s", how), WORDS_AT);
		}
	}
}

/* Print the brief lines of one group (-1: of all groups), the first one after the title. */
static void
print_brief_group(FILE *out, const struct np_help *h, int group, const char *title)
{
	for (size_t i = 0; i < h->count; i++) {
		if (h->rows[i].brief != NULL && (group < 0 || h->rows[i].group == group)) {
			char arg[48];
			int used = fprintf(out, "%-*s", BRIEF_AT, title);

			/* There is only room for the letter or the name. */
			write_argument(&h->rows[i], arg, sizeof(arg));
			if (h->rows[i].letter != '\0') {
				used += fprintf(out, "-%c%s", h->rows[i].letter, arg);
			} else {
				used += fprintf(out, "--%s%s", h->rows[i].name, arg);
			}
			fprintf(out, "%*s%s\n", used < BRIEF_WORDS_AT ? BRIEF_WORDS_AT - used : 1,
				"", h->rows[i].brief);
			title = "";
		}
	}
}

void
np_help_brief(FILE *out, const struct np_help *h, const char *title)
{
	if (title != NULL) {
		print_brief_group(out, h, -1, title);
		return;
	}
	for (int g = 0; h->groups[g] != NULL; g++) {
		print_brief_group(out, h, g, h->groups[g]);
	}
}
