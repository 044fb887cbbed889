#include "tests/lib/words.h"

#include "tests/lib/check.h"

void
words_split(struct words *w, const char *line)
{
	char *rest = NULL;

	memset(w, 0, sizeof(*w));
	assert_true((size_t)snprintf(w->text, sizeof(w->text), "program %s", line) <
		    sizeof(w->text));
	for (char *word = strtok_r(w->text, " ", &rest); word != NULL;
	     word = strtok_r(NULL, " ", &rest)) {
		assert_true((size_t)w->count < LEN(w->at) - 1);
		w->at[w->count++] = word;
	}
}

static void
assert_unique(const struct np_option *table, size_t i)
{
	for (size_t n = 0; n < i; n++) {
		fail_if(table[i].letter != '\0' && table[i].letter == table[n].letter &&
			    (table[i].scope == 0 || np_option_in(&table[n], table[i].scope)),
			"-%c stands there twice", table[i].letter);
		fail_if(table[i].name != NULL && table[n].name != NULL &&
			    strcmp(table[i].name, table[n].name) == 0,
			"--%s stands there twice", table[i].name);
	}
}

static void
assert_whole(const struct np_option *o)
{
	bool needs_set = o->kind == NP_OPT_CUSTOM || o->kind == NP_OPT_PLAIN ||
			 o->kind == NP_OPT_NEXT || o->kind == NP_OPT_MAYBE;
	bool has_none = strncmp(o->help != NULL ? o->help : "", "no effect", 9) == 0;
	bool needs_arg = o->kind == NP_OPT_COUNT || o->kind == NP_OPT_LENGTH ||
			 o->kind == NP_OPT_TEXT || o->kind == NP_OPT_BOTH ||
			 o->kind == NP_OPT_EACH || o->kind == NP_OPT_CUSTOM;

	fail_if(o->letter == '\0' && o->name == NULL, "an option without a letter and a name: '%s'",
		o->help);
	fail_if(o->kind == NP_OPT_MAYBE && (o->letter != '\0' || o->arg == NULL),
		"--%s can't have an argument by a letter, and must have a name for it", o->name);
	fail_if(o->secret && o->kind != NP_OPT_CUSTOM, "the value of --%s would be overwritten",
		o->name);
	fail_if(o->help == NULL || (o->set != NULL && o->read != NULL) ||
		    (needs_set && o->set == NULL && o->read == NULL && !has_none) ||
		    (o->read != NULL && o->what == NULL) || (needs_arg && o->arg == NULL) ||
		    o->min > o->max,
		"the row of -%c --%s is not whole", o->letter, o->name != NULL ? o->name : "");
}

/* Without its argument an option that takes one is named; the other ones are not asked. */
static void
assert_missing_argument_named(const struct np_option_table *t, const struct np_option *o, void *ctx)
{
	char line[] = "-?", want[64];
	struct words w;
	struct np_err err = { .code = NP_OK };

	if (o->letter == '\0' || o->arg == NULL || o->kind == NP_OPT_NEXT ||
	    o->kind == NP_OPT_NUMBER) {
		return;
	}
	line[1] = o->letter;
	snprintf(want, sizeof(want), "-%c: needs an argument (%s)", o->letter, o->arg);
	words_split(&w, line);
	assert_int_equal(np_options_parse(t, o->scope, w.count, w.at, ctx, NULL, &err), NP_EUSAGE);
	assert_string_equal(err.msg, want);
}

/* One blank in place of each end of a line with the blanks around it. */
static void
join_lines(char *text)
{
	char *to = text;

	for (const char *at = text; *at != '\0'; at++) {
		bool blank = *at == ' ' || *at == '\n';

		if (!blank || to == text || to[-1] != ' ') {
			*to++ = blank ? ' ' : *at;
		}
	}
	*to = '\0';
}

static void
assert_printed(const struct np_option_table *t)
{
	char *text = WRITTEN(out, np_help_print(out, t, 0, NULL, NULL));

	join_lines(text);
	for (size_t i = 0; i < t->count; i++) {
		fail_if(strstr(text, t->rows[i].help) == NULL, "no '%s' in the usage text",
			t->rows[i].help);
	}
	free(text);
}

void
assert_table_in_order(const struct np_option_table *t, void *ctx)
{
	/* The parser's grammar has room for that many. */
	assert_in_range(t->count, 1, 160);
	for (size_t i = 0; i < t->count; i++) {
		assert_whole(&t->rows[i]);
		assert_unique(t->rows, i);
		assert_missing_argument_named(t, &t->rows[i], ctx);
	}
	assert_printed(t);
}

void
assert_groups(const struct np_option_table *t)
{
	for (size_t i = 0; i < t->count; i++) {
		size_t g = 0;

		while (t->groups[g] != NULL && t->groups[g] != t->rows[i].group) {
			g++;
		}
		fail_if(t->groups[g] == NULL, "no group of '%s'", t->rows[i].help);
	}
}
