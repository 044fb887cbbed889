/*
 * The words behind -o, -O and -k.
 */
#include "out/select.h"

#include "tests/lib/check.h"
#include "tests/lib/root.h"

static struct np_selection
selected(const char *word)
{
	struct np_selection sel;
	struct np_err err = { .code = NP_OK };

	fail_if(np_selection_parse(word, &sel, &err) != NP_OK, "%s: %s", word, err.msg);
	return sel;
}

/* The names of a selection: commas in groups, semicolons between; "?" is an unknown one. */
static void
assert_selection(const struct np_selection *sel, const char *want)
{
	char text[8000] = "";

	for (size_t g = 0; g < NP_SELECT_GROUPS; g++) {
		for (size_t i = 0; i < sel->count[g]; i++) {
			int id = sel->id[g][i];

			strcat(text, i > 0 ? "," : "");
			strcat(text, id == NP_SELECT_UNKNOWN ? "?" : np_metrics[id].name);
		}
		strcat(text, g + 1 < NP_SELECT_GROUPS ? ";" : "");
	}
	assert_string_equal(text, want);
}

static void
assert_selects(const char *word, const char *want)
{
	struct np_selection sel = selected(word);

	assert_selection(&sel, want);
}

TEST(lists_are_read_as_netperf_does)
{
	assert_selects("THROUGHPUT", "THROUGHPUT;;;");
	assert_selects("throughput_units,Protocol", "THROUGHPUT_UNITS,PROTOCOL;;;");
	assert_selects("PROTOCOL DIRECTION,SOCKET_TYPE", "PROTOCOL,DIRECTION,SOCKET_TYPE;;;");
	assert_selects("THROUGHPUT, LOCAL_CPU_UTIL, CONFIDENCE_LEVEL",
		       "THROUGHPUT,LOCAL_CPU_UTIL,CONFIDENCE_LEVEL;;;");
	assert_selects(",PROTOCOL,,", "PROTOCOL;;;");
	assert_selects(" PROTOCOL ,", "PROTOCOL;;;");
	assert_selects(",", ";;;");
	/* The same name as often as it is asked for. */
	assert_selects("PROTOCOL,PROTOCOL", "PROTOCOL,PROTOCOL;;;");
}

TEST(semicolons_make_up_to_four_groups)
{
	assert_selects("THROUGHPUT;PROTOCOL,DIRECTION;SOCKET_TYPE",
		       "THROUGHPUT;PROTOCOL,DIRECTION;SOCKET_TYPE;");
	assert_selects("PROTOCOL;DIRECTION;SOCKET_TYPE;SD_UNITS;LSS_SIZE",
		       "PROTOCOL;DIRECTION;SOCKET_TYPE;SD_UNITS");
	assert_selects(";PROTOCOL", ";PROTOCOL;;");
	assert_selects("PROTOCOL;;DIRECTION", "PROTOCOL;;DIRECTION;");
	assert_selects(";", ";;;");
}

TEST(unknown_names_are_skipped)
{
	char longest[300];

	assert_selects("THROUGHPUT,NONSENSE,ELAPSED_TIME", "THROUGHPUT,?,ELAPSED_TIME;;;");
	assert_selects("NONSENSE,THROUGHPUTS;x", "?,?;?;;");
	/* Names of files' columns are none of lists. */
	assert_selects("THROUGHPUT,Socket Type", "THROUGHPUT,?,?;;;");
	memset(longest, 'x', sizeof(longest));
	strcpy(longest + 250, ",PROTOCOL");
	assert_selects(longest, "?,PROTOCOL;;;");
}

TEST(output_end_ends_its_group)
{
	assert_selects("PROTOCOL,OUTPUT_END,DIRECTION", "PROTOCOL;;;");
	assert_selects("OUTPUT_END,PROTOCOL;DIRECTION", ";DIRECTION;;");
	assert_selects("OUTPUT_NONE,PROTOCOL", "OUTPUT_NONE,PROTOCOL;;;");
}

TEST(names_say_what_to_collect)
{
	struct np_selection sel = selected("THROUGHPUT,RT_LATENCY");

	assert_false(sel.latency);
	assert_false(sel.congestion);
	sel = selected("THROUGHPUT;p99_latency");
	assert_true(sel.latency);
	assert_false(sel.congestion);
	sel = selected("REMOTE_CONG_CONTROL");
	assert_false(sel.latency);
	assert_true(sel.congestion);
	assert_false(sel.evidence);
	sel = selected("THROUGHPUT,receiver_span_throughput");
	assert_true(sel.evidence);
	assert_false(sel.latency || sel.congestion);
}

/* Figures that netperf does not have. */
enum { OURS = NP_METRICS - NP_M_OUTPUT_END - 1 };

TEST(all_is_every_figure_in_netperfs_groups)
{
	struct np_selection sel = selected("aLL");
	static const struct {
		int first, last;
		size_t count;
	} groups[NP_SELECT_GROUPS] = {
		{ NP_M_SOCKET_TYPE, NP_M_RESPONSE_SIZE, 24 },
		{ NP_M_LOCAL_CPU_UTIL, NP_M_TRANSPORT_MSS, 29 },
		{ NP_M_LOCAL_SEND_THROUGHPUT, NP_M_REMOTE_CORK, 58 },
		{ NP_M_LOCAL_SYSNAME, NP_METRICS - 1, 62 + OURS },
	};
	size_t total = 0;

	for (size_t g = 0; g < NP_SELECT_GROUPS; g++) {
		total += sel.count[g];
		assert_int_equal(sel.count[g], groups[g].count);
		assert_int_equal(sel.id[g][0], groups[g].first);
		assert_int_equal(sel.id[g][sel.count[g] - 1], groups[g].last);
	}
	/* Without OUTPUT_NONE and OUTPUT_END. Ours are last. */
	assert_int_equal(total, NP_METRICS - 2);
	assert_int_equal(sel.id[3][sel.count[3] - OURS - 1], NP_M_COMMAND_LINE);
	assert_true(sel.latency);
	assert_true(sel.congestion);
	assert_false(sel.evidence); /* these change what is sent */
}

/* ---- Files ---- */

static void
assert_file_selects(const char *text, const char *want)
{
	struct np_selection sel;
	struct np_err err = { .code = NP_OK };
	char path[32];

	temp_file(path, text, strlen(text), 0600);
	assert_int_equal(np_selection_parse(path, &sel, &err), NP_OK);
	unlink(path);
	assert_selection(&sel, want);
	assert_false(sel.latency || sel.congestion);
}

TEST(a_file_has_a_group_a_line)
{
	assert_file_selects("PROTOCOL,Throughput Units\nsocket type\n",
			    "PROTOCOL,THROUGHPUT_UNITS;SOCKET_TYPE;;");
	assert_file_selects("PROTOCOL,DIRECTION", "PROTOCOL,DIRECTION;;;");
	assert_file_selects("", ";;;");
	assert_file_selects("PRO\tTOCOL\r\n", "PROTOCOL;;;");
	assert_file_selects("PROTOCOL,OUTPUT_END,DIRECTION\nDIRECTION\n", "PROTOCOL;DIRECTION;;");
	/* Latencies are named, and not collected for that. */
	assert_file_selects("MEAN_LATENCY,LOCAL_CONG_CONTROL",
			    "MEAN_LATENCY,LOCAL_CONG_CONTROL;;;");
}

TEST(what_a_file_does_not_know_is_a_filler)
{
	assert_file_selects("bogus, PROTOCOL\n\nDIRECTION,\n",
			    "OUTPUT_NONE,OUTPUT_NONE;OUTPUT_NONE;DIRECTION,OUTPUT_NONE;");
	assert_file_selects("\nPROTOCOL", "OUTPUT_NONE;PROTOCOL;;");
}

/* netperf forgets them. */
TEST(lines_behind_the_fourth_go_to_the_last_group)
{
	assert_file_selects("PROTOCOL\nDIRECTION\nUUID\nLSS_SIZE,OUTPUT_END,UUID\nLSR_SIZE\nUUID",
			    "PROTOCOL;DIRECTION;UUID;LSS_SIZE,LSR_SIZE,UUID");
}

static void
assert_refused(const char *word, int code, const char *part)
{
	struct np_selection sel;
	struct np_err err = { .code = NP_OK };

	assert_int_equal(np_selection_parse(word, &sel, &err), code);
	assert_has(err.msg, part);
}

TEST(names_in_files_have_up_to_79_characters)
{
	char text[100], path[32];

	memset(text, 'x', sizeof(text));
	text[79] = '\0';
	assert_file_selects(text, "OUTPUT_NONE;;;");
	strcpy(text, "PROTOCOL\n");
	memset(text + 9, 'x', 80);
	temp_file(path, text, 89, 0600);
	assert_refused(path, NP_EPLAIN, "starting column 2 on line 81 is too long");
	unlink(path);
}

TEST(files_that_cannot_be_read_are_named)
{
	assert_refused("nosuchfile", NP_ECONTROL, "'nosuchfile': No such file");
	assert_refused("", NP_ECONTROL, "No such file");
	/* Neither a comma nor the name of a figure. */
	assert_refused("PROTOCOL DIRECTION", NP_ECONTROL, "'PROTOCOL DIRECTION'");
	assert_refused("/", NP_ECONTROL, "'/'");
}

TEST(too_many_of_a_group_are_refused)
{
	char *list = calloc(1, (NP_SELECT_MAX + 2) * 5 + 1), path[32];

	for (int i = 0; i < NP_SELECT_MAX; i++) {
		strcat(list, "UUID,");
	}
	assert_int_equal(selected(list).count[0], NP_SELECT_MAX);
	strcat(list, "UUID,");
	assert_refused(list, NP_EUSAGE, "more than 512 output selectors in group 1");
	temp_file(path, list, strlen(list), 0600);
	assert_refused(path, NP_EUSAGE, "more than 512 output selectors in group 1");
	unlink(path);
	free(list);
}

/* ---- Lists of netperf's ---- */

#define RESULT "ELAPSED_TIME,THROUGHPUT,THROUGHPUT_UNITS"
#define LOAD(end)                                                                                  \
	end "_CPU_UTIL," end "_CPU_PERCENT_USER," end "_CPU_PERCENT_SYSTEM," end                   \
	    "_CPU_PERCENT_IOWAIT," end "_CPU_PERCENT_IRQ," end "_CPU_PERCENT_SWINTR," end          \
	    "_CPU_METHOD"

TEST(defaults_depend_on_the_direction)
{
	static const char *const first[] = {
		[NP_SELECT_SEND] = "LSS_SIZE_END,RSR_SIZE_END,LOCAL_SEND_SIZE",
		[NP_SELECT_RECEIVE] = "RSS_SIZE_END,LSR_SIZE_END,REMOTE_SEND_SIZE",
		[NP_SELECT_BOTH_LOSSY] = "LOCAL_SEND_SIZE,REMOTE_SEND_SIZE,LOCAL_SEND_THROUGHPUT,"
					 "REMOTE_RECV_THROUGHPUT,REMOTE_SEND_THROUGHPUT,"
					 "LOCAL_RECV_THROUGHPUT",
		[NP_SELECT_BOTH] = "LOCAL_SEND_SIZE,REMOTE_SEND_SIZE,"
				   "LOCAL_SEND_THROUGHPUT,LOCAL_RECV_THROUGHPUT",
		[NP_SELECT_TRANSACTIONS] = ("LSS_SIZE_END,LSR_SIZE_END,RSR_SIZE_END,RSS_SIZE_END,"
					    "REQUEST_SIZE,RESPONSE_SIZE"),
	};

	for (size_t i = 0; i < LEN(first); i++) {
		struct np_selection sel;
		char want[1000];

		np_selection_default((enum np_select_kind)i, false, &sel);
		snprintf(want, sizeof(want), "%s," RESULT ";;;", first[i]);
		assert_selection(&sel, want);
		np_selection_default((enum np_select_kind)i, true, &sel);
		snprintf(want, sizeof(want),
			 "%s," RESULT
			 "," LOAD("LOCAL") "," LOAD("REMOTE") ",LOCAL_SD,REMOTE_SD,SD_UNITS;;;",
			 first[i]);
		assert_selection(&sel, want);
		assert_false(sel.latency || sel.congestion);
	}
}

TEST(names_are_listed_on_one_line_or_on_their_own)
{
	static const struct {
		enum np_style style;
		char between;
	} lists[] = { { NP_STYLE_CSV, ',' }, { NP_STYLE_KEYVAL, ',' }, { NP_STYLE_COLUMNS, '\n' } };

	for (size_t i = 0; i < LEN(lists); i++) {
		FREED_BY(free_memory)
		char *text = WRITTEN(out, np_selection_names(out, lists[i].style));
		const char *at = text;

		for (int id = NP_M_OUTPUT_NONE; id < NP_METRICS; id = np_metric_next(id)) {
			const char *name = np_metrics[id].name;

			assert_memory_equal(at, name, strlen(name));
			at += strlen(name);
			assert_int_equal(*at,
					 np_metric_next(id) < NP_METRICS ? lists[i].between : '\n');
			at++;
		}
		assert_int_equal(*at, '\0');
	}
	assert_int_equal(NP_M_OUTPUT_END + 1, 175);
}

/* A figure without words would stand nowhere in the list for people. */
TEST(every_figure_has_a_meaning)
{
	for (int id = NP_M_OUTPUT_NONE; id < NP_METRICS; id++) {
		const struct np_metric *m = &np_metrics[id];

		fail_if(m->subject == NP_SUBJECT_NONE || m->words[0] == '\0',
			"%s: no words in metrics.def", m->name);
		assert_in_range(strlen(m->unit), 0, 8);
		assert_in_range(strlen(np_subject_title(m->subject)), 2, 30);
	}
}

/* The heads of netperf's columns that are units, where a figure has one. */
TEST(units_agree_with_the_heads)
{
	static const struct {
		const char *head, *unit;
	} same[] = { { "Microseconds", "usec" }, { "%", "%" }, { "MHz", "MHz" }, { "(sec)", "s" } };
	unsigned seen = 0;

	for (int id = NP_M_OUTPUT_NONE; id < NP_METRICS; id++) {
		const struct np_metric *m = &np_metrics[id];

		for (size_t i = 0; i < 4 * LEN(same); i++) {
			if (strcmp(m->head[i % 4], same[i / 4].head) == 0) {
				assert_string_equal(m->unit, same[i / 4].unit);
				seen++;
			}
		}
	}
	assert_in_range(seen, 25, NP_METRICS);
}

TEST_MAIN()
