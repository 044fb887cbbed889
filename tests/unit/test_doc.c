/*
 * Manual pages and completions from option tables: each thing that can be filled in, over a small
 * table whose every line is known, and that no row of the programs' own tables is left out.
 */
#include "opt/doc.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/args.h"
#include "netserver/args.h"
#include "tests/lib/check.h"

static const struct np_option rows[] = {
	{ .letter = 'n',
	  .name = "number",
	  .kind = NP_OPT_COUNT,
	  .arg = "n",
	  .help = "a -n 5-9",
	  .min = 1,
	  .max = 9,
	  .scope = 1 },
	{ .letter = 'f', .kind = NP_OPT_FLAG, .help = "it's a well-known \\ flag", .scope = 3 },
	{ .name = "long", .kind = NP_OPT_TEXT, .arg = "x-y", .help = ".first" },
	{ .letter = 'k', .name = "keys", .kind = NP_OPT_NEXT, .arg = "list", .help = "keys" },
	{ .letter = 'n',
	  .kind = NP_OPT_BOTH,
	  .arg = "a,b",
	  .help = "another",
	  .min = 2,
	  .max = INT32_MAX,
	  .scope = 2 },
};

static const struct np_option paths[] = {
	{ .letter = 'F', .name = "to", .kind = NP_OPT_TEXT, .arg = "file", .help = "a file" },
	{ .name = "wire", .kind = NP_OPT_MAYBE, .arg = "pcap:file", .help = "maybe one" },
	{ .name = "in", .kind = NP_OPT_CUSTOM, .arg = "dir", .help = "a directory" },
	{ .name = "profile", .kind = NP_OPT_TEXT, .arg = "profile", .help = "no file", .group = 2 },
	{ .letter = 'w', .name = "when", .kind = NP_OPT_CUSTOM, .arg = "on|off-2", .help = "when" },
	{ .name = "which", .kind = NP_OPT_NEXT, .arg = "file|all|?", .help = "which" },
};

static const char *const groups[] = { "Others", "Nothing", "Words", NULL };
static const char *const scopes[] = { "odd tests", "even tests", NULL };

static const char *
colour_at(size_t i)
{
	static const char *const colours[] = { "RED", "BLUE_1", NULL };

	return colours[i];
}

static const struct np_doc_table tables[] = {
	{ "part", rows, LEN(rows), scopes, NULL },
	{ "flat", rows + 2, 2, NULL, NULL },
	{ "paths", paths, LEN(paths), NULL, groups },
	{ "unnamed", rows, LEN(rows), scopes + 1, NULL },
};
static const struct np_doc_list lists[] = { { "colours", colour_at } };
static const struct np_doc doc = { "thing 1.2", tables, LEN(tables), lists, LEN(lists) };

static int
fill(const char *text, char *out, size_t size, struct np_err *err)
{
	FILE *in = fmemopen((char *)(uintptr_t)text, strlen(text), "r");
	FILE *to = fmemopen(out, size, "w");
	int rc;

	assert_non_null(in);
	assert_non_null(to);
	memset(out, 0, size);
	rc = np_doc_fill(&doc, in, to, err);
	fclose(in);
	fclose(to);
	return rc;
}

static void
becomes(const char *text, const char *want)
{
	char out[4096];
	struct np_err err = { .code = NP_OK };

	if (fill(text, out, sizeof(out), &err) != NP_OK) {
		fail_msg("%s", err.msg);
	}
	assert_string_equal(out, want);
}

static void
refused(const char *text, const char *why)
{
	char out[4096];
	struct np_err err = { .code = NP_OK };

	assert_int_equal(fill(text, out, sizeof(out), &err), NP_EUSAGE);
	assert_has(err.msg, why);
}

TEST(other_lines_stay)
{
	becomes("one\n two @list colours\n\n.end", "one\n two @list colours\n\n.end");
}

TEST(a_page_lists_options_by_scope)
{
	becomes("@title THING\n", ".TH THING 1 \"\" \"thing 1.2\" \"User Commands\"\n");
	becomes("@options part\n",
		".SS \"All tests\"\n"
		".TP\n\\fB\\-\\-long\\fR \\fIx-y\\fR\n\\&.first\n"
		".TP\n\\fB\\-k\\fR, \\fB\\-\\-keys\\fR [\\fIlist\\fR]\nkeys\n"
		".SS \"odd tests\"\n"
		".TP\n\\fB\\-n\\fR, \\fB\\-\\-number\\fR \\fIn\\fR\na \\-n 5\\-9, 1 to 9\n"
		".SS \"odd tests; even tests\"\n"
		".TP\n\\fB\\-f\\fR\nit's a well-known \\e flag\n"
		".SS \"even tests\"\n"
		".TP\n\\fB\\-n\\fR \\fIa,b\\fR\nanother, at least 2\n");
	becomes("@options flat\n", ".TP\n\\fB\\-\\-long\\fR \\fIx-y\\fR\n\\&.first\n"
				   ".TP\n\\fB\\-k\\fR, \\fB\\-\\-keys\\fR [\\fIlist\\fR]\nkeys\n");
}

TEST(a_page_lists_options_by_group)
{
	becomes("@options paths\n",
		".SS \"Others\"\n"
		".TP\n\\fB\\-F\\fR, \\fB\\-\\-to\\fR \\fIfile\\fR\na file\n"
		".TP\n\\fB\\-\\-wire\\fR[=\\fIpcap:file\\fR]\nmaybe one\n"
		".TP\n\\fB\\-\\-in\\fR \\fIdir\\fR\na directory\n"
		".TP\n\\fB\\-w\\fR, \\fB\\-\\-when\\fR \\fIon|off\\-2\\fR\nwhen\n"
		".TP\n\\fB\\-\\-which\\fR [\\fIfile|all|?\\fR]\nwhich\n"
		".SS \"Words\"\n"
		".TP\n\\fB\\-\\-profile\\fR \\fIprofile\\fR\nno file\n");
}

/* A heading without words is none. */
TEST(every_scope_has_a_name)
{
	size_t names = 0;

	refused("@options unnamed\n", "line 1: cannot be filled in: @options unnamed");
	while (np_test_scopes[names] != NULL) {
		assert_true(np_test_scopes[names++][0] != '\0');
	}
	for (size_t i = 0; i < np_test_options_count; i++) {
		assert_int_equal(np_test_options[i].scope >> names, 0);
	}
}

/* A letter that several scopes have stands there once. */
TEST(completions_list_options)
{
	becomes("@words part\n", "-n\n--number\n-f\n--long\n-k\n--keys\n");
	becomes("@case part n\n", "part:-n | part:--number)\n");
	becomes("@case flat k\n", "flat:-k | flat:--keys)\n");
	becomes("@arguments part\n", "part:-n | part:--number | part:--long)\n");
	becomes("@fish cmd part\n", "complete -c cmd -s n -l number -x -d 'a -n 5-9'\n"
				    "complete -c cmd -s f -d 'it\\'s a well-known \\\\ flag'\n"
				    "complete -c cmd -l long -x -d '.first'\n"
				    "complete -c cmd -s k -l keys -d 'keys'\n");
	becomes("@zsh _f part\n", "\t'*-n+[a -n 5-9]:n: _f part\\:-n' \\\n"
				  "\t'*--number=[a -n 5-9]:n: _f part\\:--number' \\\n"
				  "\t'*-f[it'\\''s a well-known \\\\ flag]' \\\n"
				  "\t'*--long=[.first]:x-y: _f part\\:--long' \\\n"
				  "\t'*-k+[keys]::list: _f part\\:-k' \\\n"
				  "\t'*--keys=[keys]::list: _f part\\:--keys' \\\n");
	becomes("@zsh _f paths\n", "\t'*-F+[a file]:file:_files' \\\n"
				   "\t'*--to=[a file]:file:_files' \\\n"
				   "\t'*--wire=-[maybe one]::pcap\\:file:_files' \\\n"
				   "\t'*--in=[a directory]:dir:_files' \\\n"
				   "\t'*--profile=[no file]:profile: _f paths\\:--profile' \\\n"
				   "\t'*-w+[when]:on|off-2:(on off-2)' \\\n"
				   "\t'*--when=[when]:on|off-2:(on off-2)' \\\n"
				   "\t'*--which=[which]::file|all|?: _f paths\\:--which' \\\n");
	becomes("@choices paths\n", "paths:-w | paths:--when)\n"
				    "\t\tmapfile -t COMPREPLY < <(compgen -W \"on off-2\" -- "
				    "\"$cur\")\n\t\treturn\n\t\t;;\n");
	becomes("@files paths\n", "paths:-F | paths:--to | paths:--in)\n");
	becomes("@glued-files paths\n", "paths:--wire)\n");
	becomes("@fish cmd paths\n", "complete -c cmd -s F -l to -r -F -d 'a file'\n"
				     "complete -c cmd -l wire -F -d 'maybe one'\n"
				     "complete -c cmd -l in -r -F -d 'a directory'\n"
				     "complete -c cmd -l profile -x -d 'no file'\n"
				     "complete -c cmd -s w -l when -x -a 'on off-2' -d 'when'\n"
				     "complete -c cmd -l which -d 'which'\n");
}

TEST(lists_are_words_or_a_paragraph)
{
	becomes("<\n@list colours\n>\n", "<\nRED\nBLUE_1\n>\n");
	becomes("@names colours\n", ".nh\n.ad l\nRED,\nBLUE_1.\n.ad\n.hy\n");
}

TEST(a_passage_depends_on_a_name)
{
	becomes("@if red\na\n@end\n@if green\nb\n@words nothing\n@end\n@if BLUE_1\nc\n@end\nd\n",
		"a\nc\nd\n");
	refused("@if red\na\n", "an @if without its @end");
	refused("@end\n", "line 1: ");
	refused("@if red\n@if red\n@end\n@end\n", "line 2: ");
}

TEST(what_makes_no_sense_is_named)
{
	refused("a\nb\n@option part\n", "line 3: cannot be filled in: @option part");
	refused("@\n", "line 1: ");
	refused("@options none\n", "@options none");
	refused("@options\n", "@options");
	refused("@list part\n", "@list part");
	refused("@case part q\n", "@case part q");
	refused("@case part z\n", "@case part z");
	refused("@arguments colours\n", "@arguments colours");
}

TEST(full_disks_are_noticed)
{
	FILE *in = fmemopen((char[]){ "text\n" }, 5, "r"), *to = fopen("/dev/full", "w");
	struct np_err err;

	assert_non_null(in);
	assert_non_null(to);
	assert_int_equal(np_doc_fill(&doc, in, to, &err), NP_ESYS);
	assert_has(err.msg, "No space left");
	fclose(in);
	fclose(to);
}

/* ---- The programs' own tables ---- */

static void
every_row_is_there(const struct np_option *table, size_t count)
{
	const struct np_doc_table t = { "all", table, count, NULL, NULL };
	size_t size, tags = 0;
	char *page = NULL;
	FILE *out = open_memstream(&page, &size);

	assert_non_null(out);
	np_doc_options(&t, out);
	fclose(out);
	for (size_t i = 0; i < count; i++) {
		char word[64];

		if (table[i].letter != '\0') {
			snprintf(word, sizeof(word), "\\fB\\-%c\\fR", table[i].letter);
			assert_has(page, word);
		}
		if (table[i].name != NULL && strchr(table[i].name, '-') == NULL) {
			snprintf(word, sizeof(word), "\\fB\\-\\-%s\\fR", table[i].name);
			assert_has(page, word);
		}
		assert_true(table[i].letter != '\0' || table[i].name != NULL);
	}
	for (const char *at = page; (at = strstr(at, ".TP\n")) != NULL; at++) {
		tags++;
	}
	assert_int_equal(tags, count);
	free(page);
}

TEST(no_row_of_the_programs_is_left_out)
{
	every_row_is_there(np_global_options, np_global_options_count);
	every_row_is_there(np_test_options, np_test_options_count);
	every_row_is_there(ns_options, ns_options_count);
}

TEST_MAIN()
