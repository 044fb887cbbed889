/*
 * The option parser over a small table, and the daemon's own.
 */
#include "opt/option.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include "netserver/args.h"
#include "tests/lib/check.h"
#include "tests/lib/root.h"
#include "tests/lib/words.h"

/* What the small table fills. */
struct values {
	bool a, b;
	int32_t n, limited, x, y;
	int64_t length;
	const char *text, *file;
	unsigned plain;
	char custom[16], first[4], second[4];
	unsigned maybe;
	const char *maybe_arg;
};

static int
note_plain(const struct np_setting *set)
{
	assert_null(set->arg);
	((struct values *)set->ctx)->plain++;
	return NP_OK;
}

static int
note_custom(const struct np_setting *set)
{
	struct values *v = set->ctx;

	snprintf(v->custom, sizeof(v->custom), "%s", set->arg);
	return strcmp(set->arg, "bad") == 0 ? np_fail(set->err, NP_EUSAGE, 0, "bad is not good")
					    : NP_OK;
}

static int
note_maybe(const struct np_setting *set)
{
	struct values *v = set->ctx;

	v->maybe++;
	v->maybe_arg = set->arg;
	return NP_OK;
}

static bool
is_lost(const char *arg)
{
	return strcmp(arg, "lost") == 0;
}

#define AT(member) offsetof(struct values, member)

static const struct np_option table[] = {
	{ .letter = 'a', .kind = NP_OPT_FLAG, .to = AT(a), .help = "a flag" },
	{ .letter = 'b', .name = "both", .kind = NP_OPT_FLAG, .to = AT(b), .help = "another" },
	{ .letter = 'n', .name = "number", .kind = NP_OPT_COUNT, .arg = "n", .to = AT(n) },
	{ .name = "limited",
	  .kind = NP_OPT_COUNT,
	  .arg = "n",
	  .to = AT(limited),
	  .min = 1,
	  .max = 10 },
	{ .letter = 'l', .kind = NP_OPT_LENGTH, .arg = "length", .to = AT(length) },
	{ .letter = 't', .name = "text", .kind = NP_OPT_TEXT, .arg = "word", .to = AT(text) },
	{ .letter = 'A', .kind = NP_OPT_BOTH, .arg = "x,y", .to = AT(x), .to2 = AT(y) },
	{ .letter = 'B', .kind = NP_OPT_EACH, .arg = "x,y", .to = AT(x), .to2 = AT(y) },
	{ .letter = 'W',
	  .kind = NP_OPT_BOTH_WORDS,
	  .arg = "x,y",
	  .set = np_option_set_name,
	  .to = AT(first),
	  .to2 = AT(second),
	  .max = 3 },
	{ .letter = 'E',
	  .kind = NP_OPT_EACH_WORD,
	  .arg = "x,y",
	  .set = np_option_set_name,
	  .to = AT(first),
	  .to2 = AT(second),
	  .max = 3 },
	{ .name = "name",
	  .kind = NP_OPT_CUSTOM,
	  .arg = "x",
	  .set = np_option_set_name,
	  .to = AT(first),
	  .max = 3 },
	{ .letter = 'p', .kind = NP_OPT_PLAIN, .set = note_plain, .help = "plain" },
	{ .letter = 'c', .name = "custom", .kind = NP_OPT_CUSTOM, .arg = "c", .set = note_custom },
	{ .letter = 'N',
	  .kind = NP_OPT_CUSTOM,
	  .arg = "n",
	  .set = note_custom,
	  .numbers = true,
	  .astray = is_lost,
	  .instead = "try -x" },
	{ .name = "file", .kind = NP_OPT_TEXT, .arg = "file", .to = AT(file) },
	{ .name = "maybe", .kind = NP_OPT_MAYBE, .arg = "file", .set = note_maybe, .help = "m" },
};

static const struct np_option_table options = { NP_OPT_TABLE(table) };

/* Parse a command line; x, y and n are -7 before it. Texts stay until the next one. */
static int
parse(const char *line, struct values *v, struct np_err *err)
{
	static struct words w;

	words_split(&w, line);
	*v = (struct values){ .x = -7, .y = -7, .n = -7 };
	err->code = NP_OK;
	err->msg[0] = '\0';
	return np_options_parse(&options, 0, w.count, w.at, v, NULL, err);
}

static struct values
parsed(const char *line)
{
	struct np_err err;
	struct values v;

	fail_if(parse(line, &v, &err) != NP_OK, "%s: %s", line, err.msg);
	return v;
}

static void
assert_wrong(const char *line, const char *message)
{
	struct np_err err;
	struct values v;

	assert_int_equal(parse(line, &v, &err), NP_EUSAGE);
	assert_int_equal(err.code, NP_EUSAGE);
	assert_string_equal(err.msg, message);
}

/* ---- Forms ---- */

TEST(an_argument_that_may_be_there_stands_behind_an_equals_sign)
{
	struct values v = parsed("--maybe word -a");

	assert_int_equal(v.maybe, 1);
	assert_null(v.maybe_arg);
	assert_true(v.a);
	v = parsed("--maybe=word");
	assert_string_equal(v.maybe_arg, "word");
	v = parsed("--maybe=");
	assert_string_equal(v.maybe_arg, "");
}

TEST(letters_may_be_bundled_and_arguments_glued_on)
{
	struct values v = parsed("-abn5");

	assert_true(v.a && v.b);
	assert_int_equal(v.n, 5);
	v = parsed("-bn 6 -pp");
	assert_true(!v.a && v.b);
	assert_int_equal(v.n, 6);
	assert_int_equal(v.plain, 2);
	v = parsed("--number=8 --text=a=b --both");
	assert_int_equal(v.n, 8);
	assert_string_equal(v.text, "a=b");
	assert_true(v.b);
	v = parsed("--number 9");
	assert_int_equal(v.n, 9);
}

TEST(stray_words_are_skipped)
{
	struct values v = parsed("stray -n 5 more words -a");

	assert_int_equal(v.n, 5);
	assert_true(v.a);
	assert_int_equal(parsed("").n, -7);
}

TEST(the_last_one_counts)
{
	assert_int_equal(parsed("-n 5 -n 6").n, 6);
	/* A negative number is an argument, not an option. */
	assert_int_equal(parsed("-n -5").n, -5);
}

/* ---- Values ---- */

static void
assert_pair(const char *line, int32_t x, int32_t y)
{
	struct values v = parsed(line);

	fail_if(v.x != x || v.y != y, "%s: %d,%d", line, v.x, v.y);
}

TEST(pairs_have_all_comma_forms)
{
	assert_pair("-A 5", 5, 5);
	assert_pair("-A 5,6", 5, 6);
	assert_pair("-A 5,", 5, -7);
	assert_pair("-A ,6", -7, 6);
	assert_pair("-A 1K,2k", 1024, 2000);
	assert_pair("-B 5", 5, -7);
	assert_pair("-B 5,6", 5, 6);
	assert_pair("-B 5,", 5, -7);
	assert_pair("-B ,6", -7, 6);
	assert_wrong("-A ,", "-A: ',' holds no value");
	assert_wrong("-A 5,6,7", "-A: 6,7 is not a number (try 64 or 64K)");
	assert_wrong("-B 5,x", "-B: x is not a number (try 64 or 64K)");
}

static void
assert_words(const char *line, const char *first, const char *second)
{
	struct values v = parsed(line);

	fail_if(strcmp(v.first, first) != 0 || strcmp(v.second, second) != 0, "%s: '%s', '%s'",
		line, v.first, v.second);
}

TEST(words_have_them_too)
{
	assert_words("-W abc", "abc", "abc");
	assert_words("-W a,b", "a", "b");
	assert_words("-W a,", "a", "");
	assert_words("-W ,b", "", "b");
	assert_words("-W ,", "", "");
	assert_words("-E abc", "abc", "");
	assert_words("-E ,b", "", "b");
	assert_words("--name a,b", "a,b", "");
	assert_wrong("-W a,abcd", "-W: a name of more than 3 characters");
	assert_wrong("--name abcd", "--name: a name of more than 3 characters");
}

TEST(a_pair_is_split_at_its_first_comma)
{
	struct np_pair pair;
	struct np_err err;
	char text[2000];

	assert_int_equal(np_pair_split("a,b,c", &pair, &err), NP_OK);
	assert_string_equal(pair.first, "a");
	assert_string_equal(pair.second, "b,c");
	assert_int_equal(np_pair_split("", &pair, &err), NP_OK);
	assert_true(pair.first == NULL && pair.second == NULL && !pair.comma);
	memset(text, 'x', sizeof(text));
	text[sizeof(pair.text) - 1] = '\0';
	assert_int_equal(np_pair_split(text, &pair, &err), NP_OK);
	text[sizeof(pair.text) - 1] = 'x';
	text[sizeof(pair.text)] = '\0';
	assert_int_equal(np_pair_split(text, &pair, &err), NP_EUSAGE);
	assert_has(err.msg, "longer than 1023 characters");
}

TEST(numbers_have_ranges)
{
	assert_int_equal(parsed("--limited 1").limited, 1);
	assert_int_equal(parsed("--limited 10").limited, 10);
	assert_wrong("--limited 0", "--limited: 0 is out of range (1 to 10)");
	assert_wrong("--limited 11", "--limited: 11 is out of range (1 to 10)");
	/* Without a range of their own, that of the type. */
	assert_int_equal(parsed("-n 2147483647").n, INT32_MAX);
	assert_int_equal(parsed("-n -2147483648").n, INT32_MIN);
	assert_wrong("-n 2G", "-n: 2G is out of range (-2147483648 to 2147483647)");
	assert_wrong("-n 64Q", "-n: 64Q is not a number (try 64 or 64K)");
	assert_int_equal(parsed("-l 1m30s").length, 90);
	assert_int_equal(parsed("-l -1000").length, -1000);
	assert_wrong("-l soon", "-l: soon is not a length (try 10, 1m30s or -1000000)");
}

/* ---- Mistakes ---- */

TEST(mistakes_name_the_option)
{
	assert_wrong("-a -q", "-q: no such option (-h lists them)");
	assert_wrong("-aq", "-q: no such option (-h lists them)");
	assert_wrong("--quux", "--quux: no such option (-h lists them)");
	assert_wrong("--nubmer=3",
		     "--nubmer=3: no such option, the nearest is --number (-h lists them)");
	assert_wrong("--both=3", "--both=3: takes no argument");
	assert_wrong("-n", "-n: needs an argument (n)");
	assert_wrong("-an", "-n: needs an argument (n)");
	assert_wrong("--text", "--text: needs an argument (word)");
	assert_wrong("-c bad", "-c: bad is not good");
	assert_wrong("--custom=bad", "--custom: bad is not good");
}

/* ---- Numbers as netperf reads them ---- */

TEST(numbers_are_made_tidy)
{
	static const struct {
		const char *word, *out;
		enum np_tidy what;
	} rows[] = {
		{ "1.0", "1", NP_TIDY_SAME },
		{ "1.", "1", NP_TIDY_SAME },
		{ "-100.000", "-100", NP_TIDY_SAME },
		{ "64.0K", "64K", NP_TIDY_SAME },
		{ "1.0,2.0", "1,2", NP_TIDY_SAME },
		{ "1.5", "1", NP_TIDY_CUT },
		{ "-1.5", "-1", NP_TIDY_CUT },
		{ "1.5s", "1s", NP_TIDY_CUT },
		{ "1.0,2.5", "1,2", NP_TIDY_CUT },
		{ ",2.5", ",2", NP_TIDY_CUT },
		{ "2.5,", "2,", NP_TIDY_CUT },
		{ "0-t", "0", NP_TIDY_RUN_ON },
		{ "1.0-t", "1", NP_TIDY_RUN_ON },
		{ "1,10s-tX", "1,10s", NP_TIDY_RUN_ON },
		/* What is right stays, and what has no plain meaning: parsers refuse that. */
		{ "10", NULL, NP_TIDY_AS_IS },
		{ "64K", NULL, NP_TIDY_AS_IS },
		{ "1h0m5s", NULL, NP_TIDY_AS_IS },
		{ "1.5K", NULL, NP_TIDY_AS_IS },
		{ "1.5m", NULL, NP_TIDY_AS_IS },
		{ "0.5", NULL, NP_TIDY_AS_IS },
		{ ".5", NULL, NP_TIDY_AS_IS },
		{ "1.0.0", NULL, NP_TIDY_AS_IS },
		{ "ten", NULL, NP_TIDY_AS_IS },
		{ "1e6", NULL, NP_TIDY_AS_IS },
		{ "5-", NULL, NP_TIDY_AS_IS },
		{ "5-7", NULL, NP_TIDY_AS_IS },
		{ "5-t,6", NULL, NP_TIDY_AS_IS },
		{ "", NULL, NP_TIDY_AS_IS },
		{ "-", NULL, NP_TIDY_AS_IS },
		{ "1.0000000000000000000000", NULL, NP_TIDY_AS_IS }, /* too long for out */
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		char out[16];

		fail_if(np_tidy_numbers(rows[i].word, out, sizeof(out)) != rows[i].what,
			"%s is taken for something else", rows[i].word);
		if (rows[i].out != NULL) {
			assert_string_equal(out, rows[i].out);
		}
	}
}

/* Parse a command line as netperf's is; what was noted. */
static const char *
noted(const char *line, struct values *v)
{
	static struct np_option_notes notes;
	static struct words w;
	struct np_err err;

	words_split(&w, line);
	*v = (struct values){ .x = -7, .y = -7, .n = -7 };
	memset(&notes, 0, sizeof(notes));
	fail_if(np_options_parse(&options, 0, w.count, w.at, v, &notes, &err) != NP_OK, "%s: %s",
		line, err.msg);
	return notes.len > 0 ? strchr(notes.text, ' ') + 1 : ""; /* behind "netperf: " */
}

TEST(a_text_that_another_one_follows_is_said)
{
	struct values v;

	assert_string_equal(noted("--file a --file b", &v),
			    "--file a: ignored: the one after it counts\n");
	assert_string_equal(v.file, "b");
	assert_string_equal(noted("-t a -t b", &v), ""); /* netperf's */
}

TEST(numbers_of_every_kind_may_be_untidy)
{
	struct values v;

	assert_string_equal(noted("-n 1.0 -l 2.0 -A 3.0 -B 4.0,5.0 --limited 6.0 -c 7.5", &v), "");
	assert_int_equal(v.n, 1);
	assert_int_equal(v.length, 2);
	assert_int_equal(v.x, 4);
	assert_int_equal(v.y, 5);
	assert_int_equal(v.limited, 6);
	assert_string_equal(v.custom, "7.5"); /* not one of numbers */
	assert_string_equal(noted("-n1.5 --number 0-t -N 2.5 -t 1.5", &v),
			    "-n 1.5: read as 1: whole numbers only\n"
			    "netperf: --number 0-t: read as 0: what follows without a blank has no "
			    "effect, as in netperf\n"
			    "netperf: -N 2.5: read as 2: whole numbers only\n");
	assert_int_equal(v.n, 0);
	assert_string_equal(v.custom, "2");
	assert_string_equal(v.text, "1.5");
}

TEST(an_argument_may_have_gone_astray)
{
	struct values v;

	assert_string_equal(noted("-N lost -a", &v), "-N lost: ignored, as in netperf: try -x\n");
	assert_string_equal(v.custom, "");
	assert_true(v.a);
}

TEST(who_does_not_ask_for_notes_gets_an_error)
{
	assert_wrong("-n 1.0", "-n: 1.0 is not a number (try 64 or 64K)");
	assert_wrong("-n 0-t", "-n: 0-t is not a number (try 64 or 64K)");
}

static const char first[] = "First", last[] = "Last";
static const struct np_option grouped[] = {
	{ .letter = 'a', .kind = NP_OPT_FLAG, .group = last, .help = "last", .brief = "short" },
	{ .name = "maybe", .kind = NP_OPT_MAYBE, .arg = "file", .group = first, .help = "m" },
	{ .letter = 'n',
	  .name = "next",
	  .kind = NP_OPT_NEXT,
	  .arg = "a-word-that-is-long",
	  .group = first,
	  .help = "twelve words that do not go into one line of the help text of ours",
	  .brief = "as well" },
};
static const char *const titles[] = { first, last, NULL };
static const struct np_option_table listed = { NP_OPT_TABLE(grouped), .groups = titles };

TEST(the_usage_text_has_groups_in_their_order)
{
	assert_writes(
	    out, np_help_print(out, &listed, 0, NULL, NULL),
	    "\nFirst:\n"
	    "  --maybe[=file]                m\n"
	    "  -n [a-word-that-is-long], --next\n"
	    "                                twelve words that do not go into one line of the\n"
	    "                                help text of ours\n"
	    "\nLast:\n"
	    "  -a                            last\n");
}

TEST(the_short_text_has_a_line_each)
{
	assert_writes(out, np_help_brief(out, &listed, NULL);
		      np_help_brief(out, &listed, "All"),
		      "First            -n [a-word-that-is-long] as well\n"
		      "Last             -a                      short\n"
		      "All              -a                      short\n"
		      "                 -n [a-word-that-is-long] as well\n");
}

TEST(every_option_has_a_group)
{
	assert_groups(&ns_options);
}

/* ---- The daemon's ---- */

static int
parse_daemon(const char *line, struct ns_args *a, struct np_err *err)
{
	struct words w;

	words_split(&w, line);
	return ns_args_parse(a, w.count, w.at, err);
}

TEST(the_daemons_options_are_netperfs)
{
	struct np_err err;
	struct ns_args a;

	assert_int_equal(parse_daemon("", &a, &err), NP_OK);
	assert_string_equal(a.port, "12865");
	assert_int_equal(a.family, AF_UNSPEC);
	assert_int_equal(a.verbose, 1);
	assert_false(a.no_inetd);
	assert_int_equal(parse_daemon("-Df -L ::1,6 -p 99 -v 2 -N -- -q", &a, &err), NP_OK);
	assert_true(a.foreground && a.no_fork && a.quiet && a.no_inetd && !a.debug);
	assert_string_equal(a.host, "::1");
	assert_int_equal(a.family, AF_INET6);
	assert_string_equal(a.port, "99");
	assert_int_equal(a.verbose, 2);
	assert_int_equal(parse_daemon("-p 65536", &a, &err), NP_EUSAGE);
	assert_has(err.msg, "-p: 65536 is not a port");
	assert_int_equal(parse_daemon("-v 10", &a, &err), NP_EUSAGE);
	assert_int_equal(parse_daemon("-4", &a, &err), NP_OK);
	assert_int_equal(a.family, AF_INET);
	assert_false(a.no_inetd);
}

TEST(limits_of_memory_have_no_small_end)
{
	struct np_err err;
	struct ns_args a;

	assert_int_equal(parse_daemon("--max-total-memory 8G --max-memory 0", &a, &err), NP_OK);
	assert_true(a.limits.all[NP_RES_MEMORY] == UINT64_C(8) << 30);
	assert_true(a.limits.each.bytes == 0);
	assert_int_equal(parse_daemon("--max-memory -1", &a, &err), NP_EUSAGE);
	assert_has(err.msg, "-1 is not a number of bytes");
}

TEST(a_passphrase_may_come_from_a_file)
{
	static const struct {
		const char *text;
		mode_t mode;
		const char *says; /* NULL: it is taken */
	} rows[] = {
		{ "sesame", 0600, NULL },         { "sesame\nand more\n", 0400, NULL },
		{ "sesame", 0640, "chmod 600" },  { "sesame", 0604, "chmod 600" },
		{ "sesame", 0602, "chmod 600" },  { "", 0600, "1 to 647" },
		{ "\nsesame", 0600, "1 to 647" },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		char path[32], line[80];
		struct np_err err = { .code = NP_OK };
		struct ns_args a;

		temp_file(path, rows[i].text, strlen(rows[i].text), rows[i].mode);
		snprintf(line, sizeof(line), "--passphrase-file %s", path);
		if (rows[i].says == NULL) {
			assert_int_equal(parse_daemon(line, &a, &err), NP_OK);
			assert_string_equal(a.passphrase, "sesame");
		} else {
			assert_int_equal(parse_daemon(line, &a, &err), NP_EUSAGE);
			assert_has(err.msg, "--passphrase-file: ");
			assert_has(err.msg, path);
			assert_has(err.msg, rows[i].says);
		}
		unlink(path);
	}
}

TEST(the_daemon_takes_processors_and_a_passphrase)
{
	struct np_err err;
	struct ns_args a;
	struct words w;

	assert_int_equal(parse_daemon("-n 256 -Z sesame word -N", &a, &err), NP_OK);
	assert_int_equal(a.cpus, 256);
	assert_string_equal(a.passphrase, "sesame");
	assert_true(a.quiet);
	words_split(&w, "-D -Z sesame");
	assert_int_equal(ns_args_parse(&a, w.count, w.at, &err), NP_OK);
	assert_string_equal(a.passphrase, "sesame");
	assert_string_equal(w.at[3], "*");
	assert_null(memmem(w.text, sizeof(w.text), "sesame", strlen("sesame")));
	assert_int_equal(parse_daemon("-n 257", &a, &err), NP_EUSAGE);
	assert_has(err.msg, "-n: 257 is out of range");
	assert_int_equal(parse_daemon("", &a, &err), NP_OK);
	assert_string_equal(a.passphrase, "");
	assert_null(a.fill_dir);
}

TEST(the_daemons_table_is_in_order)
{
	struct ns_args a;

	assert_table_in_order(&ns_options, &a);
}

TEST_MAIN()
