/*
 * What manual pages and completions are made of: a small table whose every line is known, and that
 * no row of the programs' own tables is left out.
 */
#include "opt/option.h"

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

static const char rest[] = "Others", words[] = "Words";
static const struct np_option paths[] = {
	{ .letter = 'F',
	  .name = "to",
	  .kind = NP_OPT_TEXT,
	  .arg = "file",
	  .help = "a file",
	  .group = rest },
	{ .name = "wire",
	  .kind = NP_OPT_MAYBE,
	  .arg = "pcap:file",
	  .help = "maybe one",
	  .group = rest },
	{ .name = "in", .kind = NP_OPT_CUSTOM, .arg = "dir", .help = "a directory", .group = rest },
	{ .name = "profile",
	  .kind = NP_OPT_TEXT,
	  .arg = "profile",
	  .help = "no file",
	  .group = words },
	{ .letter = 'w',
	  .name = "when",
	  .kind = NP_OPT_CUSTOM,
	  .arg = "on|off-2",
	  .help = "when",
	  .group = rest },
	{ .name = "which",
	  .kind = NP_OPT_NEXT,
	  .arg = "file|all|?",
	  .help = "which",
	  .group = rest },
};

static const char *const groups[] = { rest, "Nothing", words, NULL };
static const char *const scopes[] = { "odd tests", "even tests", NULL };

static const char *
colour_at(size_t i)
{
	static const char *const colours[] = { "RED", "BLUE_1", NULL };

	return colours[i];
}

TEST(tables_and_lists_are_lines_of_columns)
{
	static const struct np_option_table part = { NP_OPT_TABLE(rows), .groups = groups,
						     .scopes = scopes };
	static const struct np_option_table others = { NP_OPT_TABLE(paths), .groups = groups };
	FREED_BY(free_memory)
	char *text =
	    WRITTEN(out, np_doc_table(out, "part", &part); np_doc_table(out, "paths", &others);
		    np_doc_list(out, "colours", colour_at));

	assert_string_equal(text, "table\tpart\n"
				  "scope\todd tests\n"
				  "scope\teven tests\n"
				  "row\tn\tnumber\tneeds\tn\t1 to 9\t1\ta -n 5-9\n"
				  "row\tf\t\tnone\t\t\t3\tit's a well-known \\ flag\n"
				  "row\t\tlong\tneeds\tx-y\t\t0\t.first\n"
				  "row\tk\tkeys\tmay\tlist\t\t0\tkeys\n"
				  "row\tn\t\tneeds\ta,b\tat least 2\t2\tanother\n"
				  "table\tpaths\n"
				  "group\tOthers\n"
				  "group\tNothing\n"
				  "group\tWords\n"
				  "row\tF\tto\tneeds\tfile\t\t0\ta file\n"
				  "row\t\twire\tglued\tpcap:file\t\t0\tmaybe one\n"
				  "row\t\tin\tneeds\tdir\t\t0\ta directory\n"
				  "row\t\tprofile\tneeds\tprofile\t\t2\tno file\n"
				  "row\tw\twhen\tneeds\ton|off-2\t\t0\twhen\n"
				  "row\t\twhich\tmay\tfile|all|?\t\t0\twhich\n"
				  "list\tcolours\n"
				  "item\tRED\n"
				  "item\tBLUE_1\n");
}

/* ---- The programs' own tables ---- */

/* A heading without words is none. */
TEST(every_scope_has_a_name)
{
	size_t names = 0;

	while (np_test_options.scopes[names] != NULL) {
		assert_true(np_test_options.scopes[names++][0] != '\0');
	}
	for (size_t i = 0; i < np_test_options.count; i++) {
		assert_int_equal(np_test_options.rows[i].scope >> names, 0);
	}
}

/* Columns are by tabs: none has one. */
static void
every_row_is_there(const struct np_option_table *t)
{
	char *text = WRITTEN(out, np_doc_table(out, "all", t)), *at = text;

	for (size_t i = 0; i < t->count; i++) {
		const struct np_option *o = &t->rows[i];
		char begin[80];
		size_t tabs = 0;

		snprintf(begin, sizeof(begin), "\nrow\t%.1s\t%s\t", &o->letter,
			 o->name != NULL ? o->name : "");
		assert_true(o->letter != '\0' || o->name != NULL);
		at = strstr(at, begin);
		assert_non_null(at);
		for (at++; *at != '\n'; at++) {
			tabs += *at == '\t';
		}
		assert_int_equal(tabs, 7);
	}
	assert_string_equal(at, "\n");
	free(text);
}

TEST(no_row_of_the_programs_is_left_out)
{
	every_row_is_there(&np_global_options);
	every_row_is_there(&np_test_options);
	every_row_is_there(&ns_options);
}

TEST_MAIN()
