/*
 * The omni outputs, letter by letter as netperf 2.7.0 printed them.
 */

#include "out/format.h"
#include "tests/lib/check.h"
#include "tests/lib/records.h"

/* A TCP_RR or its like. */
static struct np_record
transactions(void)
{
	struct np_record r = { .value[0].known = false };

	np_record_text(&r, NP_M_PROTOCOL, "TCP");
	np_record_text(&r, NP_M_DIRECTION, "Send|Recv");
	np_record_text(&r, NP_M_SOCKET_TYPE, "Stream");
	np_record_text(&r, NP_M_THROUGHPUT_UNITS, "Trans");
	np_record_text(&r, NP_M_SD_UNITS, "usec/Tran");
	np_record_text(&r, NP_M_LOCAL_FILL_FILE, "");
	put_figures(&r, "THROUGHPUT=21487.82 ELAPSED_TIME=0.094 LSS_SIZE_END=4194304 "
			"LSR_SIZE_END=131072 RSR_SIZE_END=131072 RSS_SIZE_END=4194304 "
			"REQUEST_SIZE=1 RESPONSE_SIZE=1 REMOTE_SOCKET_TOS=-1");
	return r;
}

/* For the caller to free. */
static char *
printed(enum np_style style, const struct np_selection *sel, bool headers,
	const struct np_record *r)
{
	return WRITTEN(
	    out, np_omni_print(out, style, sel, headers, &(struct np_figures){ .record = r }));
}

static void
assert_omni(enum np_style style, const struct np_selection *sel, bool headers,
	    const struct np_record *r, const char *want)
{
	FREED_BY(free_memory) char *text = printed(style, sel, headers, r);

	assert_string_equal(text, want);
}

/* What a list prints, with headers or without. */
struct list {
	const char *word, *with, *without;
};

static void
assert_lists(enum np_style style, const struct list *lists, size_t count)
{
	struct np_record r = transactions();

	for (size_t i = 0; i < count; i++) {
		struct np_selection sel;

		assert_int_equal(np_selection_parse(lists[i].word, &sel, NULL), NP_OK);
		if (lists[i].with != NULL) {
			assert_omni(style, &sel, true, &r, lists[i].with);
		}
		if (lists[i].without != NULL) {
			assert_omni(style, &sel, false, &r, lists[i].without);
		}
	}
}

TEST(keys_and_values_stand_on_lines_of_their_own)
{
	static const struct list lists[] = {
		{ "THROUGHPUT;PROTOCOL,DIRECTION;SOCKET_TYPE",
		  "THROUGHPUT=21487.82\nPROTOCOL=TCP\nDIRECTION=Send|Recv\nSOCKET_TYPE=Stream\n",
		  "THROUGHPUT=21487.82\nPROTOCOL=TCP\nDIRECTION=Send|Recv\nSOCKET_TYPE=Stream\n" },
		{ "THROUGHPUT,NONSENSE,ELAPSED_TIME", "THROUGHPUT=21487.82\nELAPSED_TIME=0.09\n",
		  NULL },
		{ "NONSENSE,PROTOCOL", "PROTOCOL=TCP\n", "PROTOCOL=TCP\n" },
		{ "RESULT_BRAND,PROTOCOL", "PROTOCOL=TCP\n", NULL },
		{ "OUTPUT_NONE,PROTOCOL", "OUTPUT_NONE= \nPROTOCOL=TCP\n", NULL },
		{ "PROTOCOL,LOCAL_FILL_FILE", "PROTOCOL=TCP\nLOCAL_FILL_FILE=\n", NULL },
		{ ";DIRECTION", "DIRECTION=Send|Recv\n", NULL },
		{ "MEAN_LATENCY,P99_LATENCY,REMOTE_SOCKET_TOS",
		  "MEAN_LATENCY=-1.00\nP99_LATENCY=-1\nREMOTE_SOCKET_TOS=0xffffffff\n", NULL },
		{ ",", "", "" },
	};

	assert_lists(NP_STYLE_KEYVAL, lists, LEN(lists));
}

TEST(csv_is_a_row_below_its_heads)
{
	static const struct list lists[] = {
		{ "THROUGHPUT", "Throughput\n21487.82\n", "21487.82\n" },
		{ "THROUGHPUT;PROTOCOL,DIRECTION;SOCKET_TYPE",
		  "Throughput,Protocol,Direction,Socket Type\n21487.82,TCP,Send|Recv,Stream\n",
		  "21487.82,TCP,Send|Recv,Stream\n" },
		{ "PROTOCOL,OUTPUT_END,DIRECTION", "Protocol\nTCP\n", "TCP\n" },
		{ "OUTPUT_NONE,PROTOCOL", " ,Protocol\n ,TCP\n", " ,TCP\n" },
		/* All hangs on the first group. */
		{ ";DIRECTION", "", "" },
		{ "OUTPUT_END;DIRECTION", "", "" },
	};

	assert_lists(NP_STYLE_CSV, lists, LEN(lists));
}

TEST(csv_cells_without_a_value_leave_a_blank_behind)
{
	static const struct list lists[] = {
		{ "THROUGHPUT,NONSENSE,ELAPSED_TIME",
		  "Throughput,,Elapsed Time (sec)\n21487.82,, 0.09\n", "21487.82,, 0.09\n" },
		{ "RESULT_BRAND,PROTOCOL", "Result Tag,Protocol\n, TCP\n", ", TCP\n" },
		{ "PROTOCOL,RESULT_BRAND", "Protocol,Result Tag\nTCP,\n", "TCP,\n" },
		{ "PROTOCOL,NONSENSE", "Protocol,\nTCP,\n", "TCP,\n" },
		{ "PROTOCOL,RESULT_BRAND,RESULT_BRAND,DIRECTION",
		  "Protocol,Result Tag,Result Tag,Direction\nTCP,, , Send|Recv\n",
		  "TCP,, , Send|Recv\n" },
		{ "RESULT_BRAND,NONSENSE", "Result Tag,\n, \n", ", \n" },
		{ "RESULT_BRAND", "Result Tag\n\n", "\n" },
		/* netperf dies of this one with headers. */
		{ "NONSENSE,PROTOCOL", ",Protocol\n, TCP\n", ", TCP\n" },
		{ "NONSENSE,FOO", ",\n, \n", NULL },
		/* An empty text is a value. */
		{ "LOCAL_FILL_FILE,PROTOCOL", "Local Fill File,Protocol\n,TCP\n", ",TCP\n" },
		{ "PROTOCOL,LOCAL_FILL_FILE", "Protocol,Local Fill File\nTCP,\n", "TCP,\n" },
	};

	assert_lists(NP_STYLE_CSV, lists, LEN(lists));
}

static size_t
commas_before(const char *text, char end)
{
	size_t n = 0;

	for (; *text != end && *text != '\0'; text++) {
		n += *text == ',';
	}
	return n;
}

/* Whatever the list names, and whether there is a value for it or not. */
TEST(csv_rows_have_as_many_cells_as_their_heads)
{
	static const char *const words[] = { "PROTOCOL", "RESULT_BRAND", "NONSENSE", "DIRECTION" };
	struct np_record r = transactions();

	for (size_t n = 0; n < 4 * 4 * 4; n++) {
		struct np_selection sel;
		char list[80], *text;
		size_t row;

		snprintf(list, sizeof(list), "%s,%s,%s", words[n % 4], words[n / 4 % 4],
			 words[n / 16]);
		assert_int_equal(np_selection_parse(list, &sel, NULL), NP_OK);
		text = printed(NP_STYLE_CSV, &sel, true, &r);
		row = strcspn(text, "\n") + 1;
		assert_true(row < strlen(text));
		assert_int_equal(commas_before(text, '\n'), 2);
		assert_int_equal(commas_before(text + row, '\n'), 2);
		free(text);
	}
}

TEST(human_columns_are_as_wide_as_head_and_value)
{
	static const struct list lists[] = {
		{ "THROUGHPUT;PROTOCOL,DIRECTION;SOCKET_TYPE",
		  "Throughput \n"
		  "           \n"
		  "           \n"
		  "           \n"
		  "21487.82   \n"
		  "\n"
		  "Protocol Direction  \n"
		  "                    \n"
		  "                    \n"
		  "                    \n"
		  "TCP      Send|Recv  \n"
		  "\n"
		  "Socket  \n"
		  "Type    \n"
		  "        \n"
		  "        \n"
		  "Stream  \n",
		  "21487.82   \n\nTCP      Send|Recv  \n\nStream  \n" },
		{ "OUTPUT_NONE,PROTOCOL",
		  "   Protocol \n"
		  "            \n"
		  "            \n"
		  "            \n"
		  "   TCP      \n",
		  NULL },
		{ ";PROTOCOL",
		  "\n"
		  "Protocol \n"
		  "         \n"
		  "         \n"
		  "         \n"
		  "TCP      \n",
		  "\nTCP      \n" },
		{ "PROTOCOL;;DIRECTION", NULL, "TCP      \n\nSend|Recv  \n" },
		{ ",", "", "" },
	};

	assert_lists(NP_STYLE_COLUMNS, lists, LEN(lists));
	/* What an OMNI test prints when no style was asked for. */
	assert_lists(NP_STYLE_CLASSIC, lists, LEN(lists));
}

TEST(human_columns_without_a_value_are_blank)
{
	static const struct list lists[] = {
		{ "THROUGHPUT,NONSENSE,ELAPSED_TIME",
		  "Throughput  Elapsed \n"
		  "            Time    \n"
		  "            (sec)   \n"
		  "                    \n"
		  "21487.82    0.09    \n",
		  NULL },
		{ "NONSENSE,PROTOCOL",
		  " Protocol \n"
		  "          \n"
		  "          \n"
		  "          \n"
		  " TCP      \n",
		  NULL },
		{ "PROTOCOL,RESULT_BRAND",
		  "Protocol Result \n"
		  "         Tag    \n"
		  "                \n"
		  "                \n"
		  "TCP             \n",
		  NULL },
		{ "RESULT_BRAND,NONSENSE",
		  "Result  \n"
		  "Tag     \n"
		  "        \n"
		  "        \n"
		  "        \n",
		  NULL },
		{ "LOCAL_FILL_FILE,PROTOCOL", NULL, "      TCP      \n" },
	};

	assert_lists(NP_STYLE_COLUMNS, lists, LEN(lists));
}

TEST(the_defaults_look_as_netperfs)
{
	struct np_record r = transactions();
	struct np_selection sel;

	np_record_real(&r, NP_M_THROUGHPUT, 15827.54);
	np_record_real(&r, NP_M_ELAPSED_TIME, 0.13);
	np_selection_default(NP_SELECT_TRANSACTIONS, false, &sel);
	assert_omni(
	    NP_STYLE_COLUMNS, &sel, true, &r,
	    "Local       Local       Remote      Remote      Request Response Elapsed Throughput "
	    "Throughput \n"
	    "Send Socket Recv Socket Recv Socket Send Socket Size    Size     Time               "
	    "Units      \n"
	    "Size        Size        Size        Size        Bytes   Bytes    (sec)              "
	    "           \n"
	    "Final       Final       Final       Final                                           "
	    "           \n"
	    "4194304     131072      131072      4194304     1       1        0.13    15827.54   "
	    "Trans/s    \n");
	assert_omni(NP_STYLE_CSV, &sel, true, &r,
		    "Local Send Socket Size Final,Local Recv Socket Size Final,Remote Recv Socket "
		    "Size Final,Remote Send Socket Size Final,Request Size Bytes,Response Size "
		    "Bytes,Elapsed Time (sec),Throughput,Throughput Units\n"
		    "4194304,131072,131072,4194304,1,1,0.13,15827.54,Trans/s\n");
}

TEST(cpu_figures_stand_behind_the_defaults)
{
	struct np_record r = { .value[0].known = false };
	struct np_selection sel;

	put_figures(&r, "LSS_SIZE_END=4194304 RSR_SIZE_END=2778152 LOCAL_SEND_SIZE=16384 "
			"ELAPSED_TIME=1.0 THROUGHPUT=37480.05");
	np_record_text(&r, NP_M_THROUGHPUT_UNITS, "10^6bits");
	for (int far = 0; far < 2; far++) {
		np_record_real(&r, np_metric_of(NP_M_LOCAL_CPU_UTIL, far), 71.88);
		np_record_real(&r, np_metric_of(NP_M_LOCAL_CPU_PERCENT_USER, far), 2.30);
		np_record_real(&r, np_metric_of(NP_M_LOCAL_CPU_PERCENT_SYSTEM, far), 44.88);
		np_record_real(&r, np_metric_of(NP_M_LOCAL_CPU_PERCENT_IOWAIT, far), 0);
		np_record_real(&r, np_metric_of(NP_M_LOCAL_CPU_PERCENT_IRQ, far), 0);
		np_record_real(&r, np_metric_of(NP_M_LOCAL_CPU_PERCENT_SWINTR, far), 24.69);
		np_record_char(&r, np_metric_of(NP_M_LOCAL_CPU_METHOD, far), 'S');
		np_record_real(&r, np_metric_of(NP_M_LOCAL_SD, far), 0.314);
	}
	np_record_text(&r, NP_M_SD_UNITS, "usec/KB");
	np_selection_default(NP_SELECT_SEND, true, &sel);
	assert_omni(
	    NP_STYLE_CSV, &sel, true, &r,
	    "Local Send Socket Size Final,Remote Recv Socket Size Final,Local Send Size,Elapsed "
	    "Time (sec),Throughput,Throughput Units,Local CPU Util %,Local CPU User %,Local CPU "
	    "System %,Local CPU I/O %,Local CPU IRQ %,Local CPU swintr %,Local CPU Util "
	    "Method,Remote CPU Util %,Remote CPU User %,Remote CPU System %,Remote CPU I/O "
	    "%,Remote CPU IRQ %,Remote CPU swintr %,Remote CPU Util Method,Local Service "
	    "Demand,Remote Service Demand,Service Demand Units\n"
	    "4194304,2778152,16384,1.00,37480.05,10^6bits/s,71.88,2.30,44.88,0.00,0.00,24.69,S,"
	    "71.88,2.30,44.88,0.00,0.00,24.69,S,0.314,0.314,usec/KB\n");
}

TEST(quotes_are_those_of_the_table)
{
	struct np_record r = transactions();
	struct np_selection sel;

	np_record_text(&r, NP_M_RESULT_BRAND, "one \"two\", three");
	assert_int_equal(np_selection_parse("RESULT_BRAND,PROTOCOL", &sel, NULL), NP_OK);
	assert_omni(NP_STYLE_KEYVAL, &sel, true, &r,
		    "RESULT_BRAND=\"one \"two\", three\"\nPROTOCOL=TCP\n");
	assert_omni(NP_STYLE_CSV, &sel, false, &r, "\"one \"two\", three\",TCP\n");
}

TEST(long_texts_are_not_cut)
{
	enum { LONG = 100000 };
	struct np_record r = transactions();
	struct np_selection sel;
	FREED_BY(free_memory) char *line = malloc(LONG + 1), *want = malloc(2 * LONG);

	memset(line, 'x', LONG);
	line[LONG] = '\0';
	np_record_text(&r, NP_M_COMMAND_LINE, line);
	assert_int_equal(np_selection_parse("PROTOCOL,COMMAND_LINE", &sel, NULL), NP_OK);
	snprintf(want, (size_t)2 * LONG, "TCP,\"%s\"\n", line);
	assert_omni(NP_STYLE_CSV, &sel, false, &r, want);
	snprintf(want, (size_t)2 * LONG, "PROTOCOL=TCP\nCOMMAND_LINE=\"%s\"\n", line);
	assert_omni(NP_STYLE_KEYVAL, &sel, false, &r, want);
	snprintf(want, (size_t)2 * LONG, "TCP      \"%s\"  \n", line);
	assert_omni(NP_STYLE_COLUMNS, &sel, false, &r, want);
}

/* netperf ends its row there; the cells behind it are worth more than that. */
TEST(a_letter_that_is_a_nul_byte_shows_as_nothing)
{
	struct np_record r = transactions();
	struct np_selection sel;

	np_record_char(&r, NP_M_REMOTE_CPU_METHOD, '\0');
	np_record_char(&r, NP_M_LOCAL_CPU_METHOD, 'S');
	assert_int_equal(
	    np_selection_parse("LOCAL_CPU_METHOD,REMOTE_CPU_METHOD,PROTOCOL", &sel, NULL), NP_OK);
	assert_omni(NP_STYLE_KEYVAL, &sel, false, &r,
		    "LOCAL_CPU_METHOD=S\nREMOTE_CPU_METHOD=\nPROTOCOL=TCP\n");
	assert_omni(NP_STYLE_CSV, &sel, false, &r, "S,,TCP\n");
	assert_omni(NP_STYLE_COLUMNS, &sel, false, &r, "S             TCP      \n");
}

TEST_MAIN()
