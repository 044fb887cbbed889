#include "opt/doc.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* --- what a row says ---------------------------------------------------------------------------
 */

static bool
needs_argument(const struct np_option *o)
{
	return o->arg != NULL && o->kind != NP_OPT_FLAG && o->kind != NP_OPT_PLAIN &&
	       o->kind != NP_OPT_NEXT && o->kind != NP_OPT_NUMBER && o->kind != NP_OPT_MAYBE;
}

/* By the last word that the argument is called. */
static bool
names_file(const struct np_option *o)
{
	const char *at = o->arg != NULL ? strrchr(o->arg, ':') : NULL;
	const char *word = at != NULL ? at + 1 : o->arg;

	return word != NULL && (strcmp(word, "file") == 0 || strcmp(word, "dir") == 0);
}

/* Is the argument one of a few words, "always|never|auto"? */
static bool
is_choice(const struct np_option *o)
{
	const char *words = "abcdefghijklmnopqrstuvwxyz0123456789-|";

	return o->arg != NULL && strchr(o->arg, '|') != NULL &&
	       o->arg[strspn(o->arg, words)] == '\0';
}

/* These words, with blanks between them. */
static void
put_choices(FILE *out, const struct np_option *o)
{
	for (const char *c = o->arg; *c != '\0'; c++) {
		putc(*c == '|' ? ' ' : *c, out);
	}
}

static bool
is_number(const struct np_option *o)
{
	return o->numbers || o->kind == NP_OPT_COUNT || o->kind == NP_OPT_LENGTH ||
	       o->kind == NP_OPT_BOTH || o->kind == NP_OPT_EACH;
}

/* Rows of different scopes repeat letters and names: is this the first row with its letter? */
static bool
is_first_letter(const struct np_doc_table *t, const struct np_option *o)
{
	const struct np_option *first = t->rows;

	while (first->letter != o->letter) {
		first++;
	}
	return o->letter != '\0' && first == o;
}

static bool
is_first_name(const struct np_doc_table *t, const struct np_option *o)
{
	const struct np_option *first = t->rows;

	while (o->name != NULL && (first->name == NULL || strcmp(first->name, o->name) != 0)) {
		first++;
	}
	return o->name != NULL && first == o;
}

/* --- manual pages ------------------------------------------------------------------------------
 */

/* Text as it stands: backslashes shown, and no minus of an option taken for a hyphen. */
static void
put_roff(FILE *out, const char *text)
{
	if (*text == '.' || *text == '\'') {
		fputs("\\&", out);
	}
	for (const char *c = text; *c != '\0'; c++) {
		bool hyphen =
		    c > text && isalpha((unsigned char)c[-1]) && isalpha((unsigned char)c[1]);

		if (*c == '\\') {
			fputs("\\e", out);
		} else if (*c == '-' && !hyphen) {
			fputs("\\-", out);
		} else {
			putc(*c, out);
		}
	}
}

/* What a number may be, unless the argument's name tells. */
static void
put_range(FILE *out, const struct np_option *o)
{
	if (!is_number(o) || o->arg == NULL || strchr(o->arg, '|') != NULL ||
	    (o->min == 0 && o->max == 0)) {
		return;
	}
	if (o->max >= INT32_MAX) {
		fprintf(out, ", at least %" PRId64, o->min);
	} else {
		fprintf(out, ", %" PRId64 " to %" PRId64, o->min, o->max);
	}
}

/* A tag such as "-t, --test name", and the help line. */
static void
put_option(FILE *out, const struct np_option *o)
{
	fputs(".TP\n", out);
	if (o->letter != '\0') {
		fprintf(out, "\\fB\\-%c\\fR%s", o->letter, o->name != NULL ? ", " : "");
	}
	if (o->name != NULL) {
		fputs("\\fB\\-\\-", out);
		put_roff(out, o->name);
		fputs("\\fR", out);
	}
	if (o->arg != NULL) {
		fputs(needs_argument(o)         ? " \\fI"
		      : o->kind == NP_OPT_MAYBE ? "[=\\fI"
						: " [\\fI",
		      out);
		put_roff(out, o->arg);
		fputs(needs_argument(o) ? "\\fR" : "\\fR]", out);
	}
	putc('\n', out);
	put_roff(out, o->help);
	put_range(out, o);
	putc('\n', out);
}

static void
put_heading(FILE *out, const struct np_doc_table *t, unsigned scope)
{
	const char *between = "";

	fputs(".SS \"", out);
	for (size_t i = 0; t->scopes[i] != NULL; i++) {
		if ((scope & 1U << i) != 0) {
			fprintf(out, "%s%s", between, t->scopes[i]);
			between = "; ";
		}
	}
	fprintf(out, "%s\"\n", scope == 0 ? "All tests" : "");
}

static void
put_scope(FILE *out, const struct np_doc_table *t, unsigned scope)
{
	for (size_t i = 0; i < t->count; i++) {
		if (t->rows[i].scope == scope) {
			put_option(out, &t->rows[i]);
		}
	}
}

/* What all tests know first, then each other set of scopes where its first row stands. */
static void
put_scopes(FILE *out, const struct np_doc_table *t)
{
	put_heading(out, t, 0);
	put_scope(out, t, 0);
	for (size_t i = 0; i < t->count; i++) {
		unsigned scope = t->rows[i].scope;
		size_t first = 0;

		while (t->rows[first].scope != scope) {
			first++;
		}
		if (scope != 0 && first == i) {
			put_heading(out, t, scope);
			put_scope(out, t, scope);
		}
	}
}

static void
put_group(FILE *out, const struct np_doc_table *t, int group)
{
	bool begun = false;

	for (size_t i = 0; i < t->count; i++) {
		if (t->rows[i].group != group) {
			continue;
		}
		if (!begun) {
			fprintf(out, ".SS \"%s\"\n", t->groups[group]);
			begun = true;
		}
		put_option(out, &t->rows[i]);
	}
}

/* Has every bit of every scope a name? */
static bool
scopes_are_named(const struct np_doc_table *t)
{
	size_t names = 0;

	while (t->scopes[names] != NULL) {
		names++;
	}
	for (size_t i = 0; i < t->count; i++) {
		if (t->rows[i].scope >> names != 0) {
			return false;
		}
	}
	return true;
}

int
np_doc_options(const struct np_doc_table *t, FILE *out)
{
	if (t->scopes != NULL) {
		if (!scopes_are_named(t)) {
			return -1;
		}
		put_scopes(out, t);
		return 0;
	}
	for (int g = 0; t->groups != NULL && t->groups[g] != NULL; g++) {
		put_group(out, t, g);
	}
	for (size_t i = 0; t->groups == NULL && i < t->count; i++) {
		put_option(out, &t->rows[i]);
	}
	return 0;
}

/* --- lines to be filled in ---------------------------------------------------------------------
 */

enum { WORDS = 2, LINE = 1024 };

struct fill {
	const struct np_doc *doc;
	FILE *out;
	const struct np_doc_table *table; /* that the line names, if it has to name one */
	const struct np_doc_list *list;   /* likewise */
	const char *word[WORDS];          /* behind the command; "" where there is none */
	bool hidden;                      /* in a passage that does not stand there */
	bool passage;
};

static int
put_title(struct fill *f)
{
	fprintf(f->out, ".TH %s 1 \"\" \"%s\" \"User Commands\"\n", f->word[0], f->doc->package);
	return 0;
}

static int
put_options(struct fill *f)
{
	return np_doc_options(f->table, f->out);
}

static int
put_words(struct fill *f)
{
	for (size_t i = 0; i < f->table->count; i++) {
		const struct np_option *o = &f->table->rows[i];

		if (is_first_letter(f->table, o)) {
			fprintf(f->out, "-%c\n", o->letter);
		}
		if (is_first_name(f->table, o)) {
			fprintf(f->out, "--%s\n", o->name);
		}
	}
	return 0;
}

/* One alternative of a pattern for each way to write the option. */
static const char *
put_pattern(struct fill *f, const struct np_option *o, const char *between)
{
	if (is_first_letter(f->table, o)) {
		fprintf(f->out, "%s%s:-%c", between, f->table->name, o->letter);
		between = " | ";
	}
	if (is_first_name(f->table, o)) {
		fprintf(f->out, "%s%s:--%s", between, f->table->name, o->name);
		between = " | ";
	}
	return between;
}

static int
put_case(struct fill *f)
{
	const char *between = "";

	for (size_t i = 0; i < f->table->count; i++) {
		const struct np_option *o = &f->table->rows[i];

		if (o->letter == f->word[1][0]) {
			between = put_pattern(f, o, between);
		}
	}
	fputs(")\n", f->out);
	return *between != '\0' ? 0 : -1;
}

static int
put_chosen(struct fill *f, bool (*is_chosen)(const struct np_option *o))
{
	const char *between = "";

	for (size_t i = 0; i < f->table->count; i++) {
		const struct np_option *o = &f->table->rows[i];

		if (is_chosen(o)) {
			between = put_pattern(f, o, between);
		}
	}
	fputs(")\n", f->out);
	return *between != '\0' ? 0 : -1;
}

static int
put_arguments(struct fill *f)
{
	return put_chosen(f, needs_argument);
}

static bool
needs_file(const struct np_option *o)
{
	return needs_argument(o) && names_file(o);
}

static int
put_files(struct fill *f)
{
	return put_chosen(f, needs_file);
}

static bool
may_have_file(const struct np_option *o)
{
	return o->kind == NP_OPT_MAYBE && names_file(o);
}

static int
put_glued_files(struct fill *f)
{
	return put_chosen(f, may_have_file);
}

static int
put_choice_cases(struct fill *f)
{
	for (size_t i = 0; i < f->table->count; i++) {
		const struct np_option *o = &f->table->rows[i];

		if (is_choice(o) && *put_pattern(f, o, "") != '\0') {
			fputs(")\n\t\tmapfile -t COMPREPLY < <(compgen -W \"", f->out);
			put_choices(f->out, o);
			fputs("\" -- \"$cur\")\n\t\treturn\n\t\t;;\n", f->out);
		}
	}
	return 0;
}

/* In single quotes, as fish reads them. */
static void
put_quoted(FILE *out, const char *text)
{
	putc('\'', out);
	for (; *text != '\0'; text++) {
		if (*text == '\'' || *text == '\\') {
			putc('\\', out);
		}
		putc(*text, out);
	}
	putc('\'', out);
}

static int
put_fish(struct fill *f)
{
	for (size_t i = 0; i < f->table->count; i++) {
		const struct np_option *o = &f->table->rows[i];

		bool letter = is_first_letter(f->table, o), name = is_first_name(f->table, o);

		if ((!letter && !name)) {
			continue;
		}
		fprintf(f->out, "complete -c %s", f->word[0]);
		if (letter) {
			fprintf(f->out, " -s %c", o->letter);
		}
		if (name) {
			fprintf(f->out, " -l %s", o->name);
		}
		fputs(needs_file(o)       ? " -r -F"
		      : may_have_file(o)  ? " -F"
		      : needs_argument(o) ? " -x"
					  : "",
		      f->out);
		if (is_choice(o)) {
			fputs(" -a '", f->out);
			put_choices(f->out, o);
			putc('\'', f->out);
		}
		fputs(" -d ", f->out);
		put_quoted(f->out, o->help);
		putc('\n', f->out);
	}
	return 0;
}

/* In the single quotes of a specification for zsh's _arguments. */
static void
put_spec(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (*text == '\'') {
			fputs("'\\'", out);
		} else if (strchr("[]:\\", *text) != NULL) {
			putc('\\', out);
		}
		putc(*text, out);
	}
}

/* What stands between the option and its help: how the argument is joined to it. */
static const char *
zsh_mark(const struct np_option *o, bool is_name)
{
	if (o->kind == NP_OPT_FLAG || o->kind == NP_OPT_PLAIN || o->arg == NULL) {
		return "";
	}
	return o->kind == NP_OPT_MAYBE ? "=-" : is_name ? "=" : "+";
}

/* A specification of one way to write an option; `word` is that way. */
static void
put_zsh_option(struct fill *f, const struct np_option *o, const char *word, bool is_name)
{
	const char *mark = zsh_mark(o, is_name);

	fprintf(f->out, "\t'*%s%s[", word, mark);
	put_spec(f->out, o->help);
	putc(']', f->out);
	if (*mark != '\0') {
		fputs(needs_argument(o) ? ":" : "::", f->out);
		put_spec(f->out, o->arg);
		if (names_file(o)) {
			fputs(":_files", f->out);
		} else if (is_choice(o)) {
			fputs(":(", f->out);
			put_choices(f->out, o);
			putc(')', f->out);
		} else {
			fprintf(f->out, ": %s %s\\:%s", f->word[0], f->table->name, word);
		}
	}
	fputs("' \\\n", f->out);
}

static int
put_zsh(struct fill *f)
{
	for (size_t i = 0; i < f->table->count; i++) {
		const struct np_option *o = &f->table->rows[i];
		char word[64];

		if (is_first_letter(f->table, o)) {
			snprintf(word, sizeof(word), "-%c", o->letter);
			put_zsh_option(f, o, word, false);
		}
		if (is_first_name(f->table, o)) {
			snprintf(word, sizeof(word), "--%s", o->name);
			put_zsh_option(f, o, word, true);
		}
	}
	return 0;
}

static int
put_list(struct fill *f)
{
	for (size_t i = 0; f->list->at(i) != NULL; i++) {
		fprintf(f->out, "%s\n", f->list->at(i));
	}
	return 0;
}

static int
put_names(struct fill *f)
{
	fputs(".nh\n.ad l\n", f->out);
	for (size_t i = 0; f->list->at(i) != NULL; i++) {
		put_roff(f->out, f->list->at(i));
		fputs(f->list->at(i + 1) != NULL ? ",\n" : ".\n", f->out);
	}
	fputs(".ad\n.hy\n", f->out);
	return 0;
}

static int
begin_passage(struct fill *f)
{
	bool found = false;

	if (f->passage) {
		return -1;
	}
	for (size_t l = 0; l < f->doc->list_count; l++) {
		const struct np_doc_list *list = &f->doc->lists[l];

		for (size_t i = 0; list->at(i) != NULL; i++) {
			found = found || strcasecmp(list->at(i), f->word[0]) == 0;
		}
	}
	f->passage = true;
	f->hidden = !found;
	return 0;
}

static int
end_passage(struct fill *f)
{
	bool passage = f->passage;

	f->passage = f->hidden = false;
	return passage ? 0 : -1;
}

/* --- the whole text ----------------------------------------------------------------------------
 */

enum { NO_WORD = -1 };

static const struct command {
	const char *name;
	int table; /* which word names a table */
	int list;
	int (*put)(struct fill *f); /* -1: the line makes no sense */
} commands[] = {
	{ "title", NO_WORD, NO_WORD, put_title },
	{ "options", 0, NO_WORD, put_options },
	{ "words", 0, NO_WORD, put_words },
	{ "case", 0, NO_WORD, put_case },
	{ "arguments", 0, NO_WORD, put_arguments },
	{ "fish", 1, NO_WORD, put_fish },
	{ "files", 0, NO_WORD, put_files },
	{ "glued-files", 0, NO_WORD, put_glued_files },
	{ "choices", 0, NO_WORD, put_choice_cases },
	{ "zsh", 1, NO_WORD, put_zsh },
	{ "list", NO_WORD, 0, put_list },
	{ "names", NO_WORD, 0, put_names },
	{ "if", NO_WORD, NO_WORD, begin_passage },
	{ "end", NO_WORD, NO_WORD, end_passage },
};

static const struct command *
find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (strcmp(commands[i].name, name) == 0) {
			return &commands[i];
		}
	}
	return NULL;
}

/* Find the table and the list that the line names. */
static int
look_up(struct fill *f, const struct command *c)
{
	f->table = NULL;
	f->list = NULL;
	for (size_t i = 0; c->table != NO_WORD && i < f->doc->table_count; i++) {
		if (strcmp(f->doc->tables[i].name, f->word[c->table]) == 0) {
			f->table = &f->doc->tables[i];
		}
	}
	for (size_t i = 0; c->list != NO_WORD && i < f->doc->list_count; i++) {
		if (strcmp(f->doc->lists[i].name, f->word[c->list]) == 0) {
			f->list = &f->doc->lists[i];
		}
	}
	return (c->table == NO_WORD || f->table != NULL) && (c->list == NO_WORD || f->list != NULL)
		   ? 0
		   : -1;
}

/* "@command word word": returns 0, or -1 when it makes no sense. */
static int
fill_in(struct fill *f, const char *line)
{
	const struct command *c;
	char copy[LINE], *rest = NULL;
	char *name;

	snprintf(copy, sizeof(copy), "%s", line + 1);
	name = strtok_r(copy, " \n", &rest);
	c = name != NULL ? find_command(name) : NULL;
	if (c == NULL) {
		return -1;
	}
	for (int i = 0; i < WORDS; i++) {
		char *word = strtok_r(NULL, " \n", &rest);

		f->word[i] = word != NULL ? word : "";
	}
	if (f->hidden && c->put != end_passage) {
		return 0;
	}
	return look_up(f, c) == 0 ? c->put(f) : -1;
}

int
np_doc_fill(const struct np_doc *doc, FILE *in, FILE *out, struct np_err *err)
{
	struct fill f = { .doc = doc, .out = out };
	char line[LINE];

	for (int number = 1; fgets(line, sizeof(line), in) != NULL; number++) {
		if (line[0] == '@' && fill_in(&f, line) != 0) {
			line[strcspn(line, "\n")] = '\0';
			return np_fail(err, NP_EUSAGE, 0, "line %d: cannot be filled in: %s",
				       number, line);
		}
		if (line[0] != '@' && !f.hidden) {
			fputs(line, out);
		}
	}
	if (f.passage) {
		return np_fail(err, NP_EUSAGE, 0, "an @if without its @end");
	}
	if (ferror(in) || fflush(out) != 0 || ferror(out)) {
		return np_fail(err, NP_ESYS, errno, "copy the text");
	}
	return NP_OK;
}
