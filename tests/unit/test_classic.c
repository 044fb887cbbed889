/*
 * The classic tables, letter by letter as netperf 2.7.0 printed them, blanks at line ends included.
 */

#include "out/format.h"
#include "tests/lib/check.h"
#include "tests/lib/records.h"

/* A recorded output: its table, in parts. */
struct golden {
	const char *layout;
	char unit;
	const char *figures, *heads, *rows, *details;
};

#define STREAM_HEADS                                                                               \
	"Recv   Send    Send                          \n"                                          \
	"Socket Socket  Message  Elapsed              \n"                                          \
	"Size   Size    Size     Time     Throughput  \n"                                          \
	"bytes  bytes   bytes    secs.    10^6bits/sec  \n\n"

#define SEND_HEADS                                                                                 \
	"\n"                                                                                       \
	"Alignment      Offset         Bytes    Bytes       Sends   Bytes    Recvs\n"              \
	"Local  Remote  Local  Remote  Xfered   Per                 Per\n"                         \
	"Send   Recv    Send   Recv             Send (avg)          Recv (avg)\n"

#define SEGMENT                                                                                    \
	"\n"                                                                                       \
	"Maximum\n"                                                                                \
	"Segment\n"                                                                                \
	"Size (bytes)\n"

#define TRANSACTION_HEADS                                                                          \
	"Local /Remote\n"                                                                          \
	"Socket Size   Request  Resp.   Elapsed  Trans.\n"                                         \
	"Send   Recv   Size     Size    Time     Rate         \n"                                  \
	"bytes  Bytes  bytes    bytes   secs.    per sec   \n\n"

#define CONNECTION_HEADS                                                                           \
	"\n"                                                                                       \
	"Alignment      Offset\n"                                                                  \
	"Local  Remote  Local  Remote\n"                                                           \
	"Send   Recv    Send   Recv\n"

#define TRANSACTION_FIGURES                                                                        \
	" LSS_SIZE=16384 LSR_SIZE=131072 RSS_SIZE=16384 RSR_SIZE=131072 REQUEST_SIZE=1"            \
	" RESPONSE_SIZE=1 LOCAL_SEND_ALIGN=8 REMOTE_RECV_ALIGN=8 LOCAL_SEND_OFFSET=0"              \
	" REMOTE_RECV_OFFSET=0"

static const struct golden goldens[] = {
	{ "stream", 'm',
	  " RSR_SIZE=131072 LSS_SIZE=16384 LOCAL_SEND_SIZE=16384 ELAPSED_TIME=0.00216"
	  " THROUGHPUT=14894.55 LOCAL_SEND_ALIGN=8 REMOTE_RECV_ALIGN=8 LOCAL_SEND_OFFSET=0"
	  " REMOTE_RECV_OFFSET=0 LOCAL_BYTES_SENT=4014080 LOCAL_BYTES_PER_SEND=16384"
	  " LOCAL_SEND_CALLS=245 REMOTE_BYTES_PER_RECV=50811.139 REMOTE_RECV_CALLS=79"
	  " TRANSPORT_MSS=65483",
	  STREAM_HEADS, "131072  16384  16384    0.00     14894.55   \n",
	  SEND_HEADS
	  "    8       8      0       0 4014080  16384.00       245   50811.14     79\n" SEGMENT
	  " 65483\n" },
	{ "maerts", 'm',
	  " LSR_SIZE=131072 RSS_SIZE=16384 REMOTE_SEND_SIZE=16384 ELAPSED_TIME=0.001"
	  " THROUGHPUT=22409.38 LOCAL_RECV_ALIGN=8 REMOTE_RECV_ALIGN=8 LOCAL_RECV_OFFSET=0"
	  " REMOTE_RECV_OFFSET=0 LOCAL_BYTES_RECVD=4014080 LOCAL_BYTES_PER_RECV=129486.45"
	  " LOCAL_RECV_CALLS=31 REMOTE_BYTES_PER_SEND=16384 REMOTE_SEND_CALLS=245"
	  " TRANSPORT_MSS=32768",
	  STREAM_HEADS, "131072  16384  16384    0.00     22409.38   \n",
	  "\n"
	  "Alignment      Offset         Bytes    Bytes       Recvs   Bytes    Sends\n"
	  "Local  Remote  Local  Remote  Xfered   Per                 Per\n"
	  "Recv   Send    Recv   Send             Recv (avg)          Send (avg)\n"
	  "    8       8      0       0 4014080  129486.45        31   16384.00    245\n" SEGMENT
	  " 32768\n" },
	{ "sendfile", 'm',
	  " RSR_SIZE=131072 LSS_SIZE=16384 LOCAL_SEND_SIZE=16384 ELAPSED_TIME=0.00233"
	  " THROUGHPUT=13800.02 LOCAL_SEND_ALIGN=8 REMOTE_RECV_ALIGN=8 LOCAL_SEND_OFFSET=0"
	  " REMOTE_RECV_OFFSET=0 REMOTE_BYTES_RECVD=4014080 LOCAL_SEND_CALLS=245"
	  " REMOTE_RECV_CALLS=32 TRANSPORT_MSS=54272",
	  STREAM_HEADS, "131072  16384  16384    0.00     13800.02   \n",
	  SEND_HEADS
	  "    8       8      0       0 4.014e+06  16384.00       245   125440.00     32\n" SEGMENT
	  " 54272\n" },
	{ "rr", 'x',
	  TRANSACTION_FIGURES " ELAPSED_TIME=0.123 THROUGHPUT=16250.386 TRANSACTION_RATE=16250.386"
			      " RT_LATENCY=61.537",
	  TRANSACTION_HEADS,
	  "16384  131072 1        1       0.12     16250.39   \n"
	  "16384  131072\n",
	  "Alignment      Offset         RoundTrip  Trans    Throughput\n"
	  "Local  Remote  Local  Remote  Latency    Rate     10^6bits/s\n"
	  "Send   Recv    Send   Recv    usec/Tran  per sec  Outbound   Inbound\n"
	  "    8      0       0      0   61.537   16250.386 0.130     0.130 \n" },
	{ "rr", 'm',
	  TRANSACTION_FIGURES " ELAPSED_TIME=0.0877 THROUGHPUT=0.36475 TRANSACTION_RATE=22796.960"
			      " RT_LATENCY=43.865",
	  "Local /Remote\n"
	  "Socket Size   Request  Resp.   Elapsed  \n"
	  "Send   Recv   Size     Size    Time     Throughput \n"
	  "bytes  Bytes  bytes    bytes   secs.    10^6bits/sec   \n\n",
	  "16384  131072 1        1       0.09        0.36   \n"
	  "16384  131072\n",
	  "Alignment      Offset         RoundTrip  Trans    Throughput\n"
	  "Local  Remote  Local  Remote  Latency    Rate     10^6bits/s\n"
	  "Send   Recv    Send   Recv    usec/Tran  per sec  Outbound   Inbound\n"
	  "    8      0       0      0   43.865   22796.960 0.182     0.182 \n" },
	{ "udp_rr", 'x',
	  " LSS_SIZE=212992 LSR_SIZE=212992 RSS_SIZE=212992 RSR_SIZE=212992 REQUEST_SIZE=1"
	  " RESPONSE_SIZE=1 ELAPSED_TIME=1.0004 THROUGHPUT=19067.43",
	  TRANSACTION_HEADS,
	  "212992 212992 1        1       1.00     19067.43   \n"
	  "212992 212992\n",
	  "" },
	{ "crr", 'x', TRANSACTION_FIGURES " ELAPSED_TIME=0.0222 THROUGHPUT=8992.81",
	  TRANSACTION_HEADS,
	  "16384  131072 1        1       0.02     8992.81   \n"
	  "16384  131072\n",
	  CONNECTION_HEADS "    8      8       0      0\n" },
	{ "cc", 'x', TRANSACTION_FIGURES " ELAPSED_TIME=0.0096 THROUGHPUT=20781.38",
	  TRANSACTION_HEADS,
	  "16384  131072 1        1       0.01     20781.38   \n"
	  "16384  131072\n",
	  CONNECTION_HEADS "    8      0       0      0\n" },
	{ "udp_stream", 'm',
	  " LSS_SIZE=212992 LOCAL_SEND_SIZE=65507 ELAPSED_TIME=1.003 LOCAL_SEND_CALLS=111976"
	  " FAILED_SENDS=0 LOCAL_SEND_THROUGHPUT=58498.13 RSR_SIZE=212992"
	  " REMOTE_RECV_CALLS=49237 REMOTE_RECV_THROUGHPUT=25722.23",
	  "Socket  Message  Elapsed      Messages                \n"
	  "Size    Size     Time         Okay Errors   Throughput\n"
	  "bytes   bytes    secs            #      #   10^6bits/sec\n\n",
	  "212992   65507   1.00       111976      0    58498.13\n"
	  "212992           1.00        49237           25722.23\n\n",
	  "" },
};

static void
fill(struct np_record *r, const struct golden *g)
{
	memset(r, 0, sizeof(*r));
	put_figures(r, g->figures);
}

static void
assert_prints(const struct np_classic *c, const struct np_record *r, const char *want)
{
	assert_writes(out, np_classic_print(out, c, r), want);
}

TEST(tables_are_netperfs_at_every_verbosity)
{
	for (size_t i = 0; i < LEN(goldens); i++) {
		const struct golden *g = &goldens[i];
		struct np_classic c = { .layout = g->layout, .unit = np_unit(g->unit) };
		struct np_record r;
		char want[2000];

		fill(&r, g);
		for (int headers = 0; headers < 2; headers++) {
			c.headers = headers;
			c.verbosity = -1;
			assert_prints(&c, &r, "");
			c.verbosity = 1;
			snprintf(want, sizeof(want), "%s%s", headers ? g->heads : "", g->rows);
			assert_prints(&c, &r, want);
			c.verbosity = 2;
			strncat(want, g->details, sizeof(want) - strlen(want) - 1);
			assert_prints(&c, &r, want);
			c.verbosity = 3;
			assert_prints(&c, &r, g->details);
		}
	}
}

TEST(the_figure_stands_alone_at_verbosity_0)
{
	static const char *const want[] = { "14894.55 \n", "22409.38 \n", "13800.02 \n",
					    "16250.39 \n", "   0.36 \n",  "19067.43 \n",
					    "8992.81\n",   "20781.38\n",  "58498.13\n" };

	assert_int_equal(LEN(want), LEN(goldens));
	for (size_t i = 0; i < LEN(goldens); i++) {
		struct np_classic c = { .layout = goldens[i].layout,
					.unit = np_unit(goldens[i].unit) };
		struct np_record r;

		fill(&r, &goldens[i]);
		assert_prints(&c, &r, want[i]);
		c.headers = true;
		assert_prints(&c, &r, want[i]);
	}
}

TEST(a_brand_is_shown_without_headers)
{
	static const char *const want[] = {
		"131072  16384  16384    0.00     14894.55   tagged\n",
		"131072  16384  16384    0.00     22409.38   tagged\n",
		"131072  16384  16384    0.00     13800.02   tagged\n",
		"16384  131072 1        1       0.12     16250.39   tagged\n16384  131072\n",
		"16384  131072 1        1       0.09        0.36   tagged\n16384  131072\n",
		"212992 212992 1        1       1.00     19067.43   tagged\n212992 212992\n",
		NULL,
		NULL,
		NULL,
	};

	for (size_t i = 0; i < LEN(goldens); i++) {
		const struct golden *g = &goldens[i];
		struct np_classic c = { .layout = g->layout,
					.unit = np_unit(g->unit),
					.verbosity = 1,
					.brand = "tagged" };
		struct np_record r;
		char with_heads[1000];

		fill(&r, g);
		assert_prints(&c, &r, want[i] != NULL ? want[i] : g->rows);
		snprintf(with_heads, sizeof(with_heads), "%s%s", g->heads, g->rows);
		c.headers = true;
		assert_prints(&c, &r, with_heads);
	}
}

TEST(a_brand_follows_the_lone_figure)
{
	struct np_classic c = { .layout = "stream", .unit = np_unit('m'), .brand = "tagged" };
	struct np_record r;

	fill(&r, &goldens[0]);
	assert_prints(&c, &r, "14894.55 tagged\n");
	c.layout = "crr";
	assert_prints(&c, &r, "14894.55\n");
}

TEST(lost_requests_are_told_below_the_table)
{
	struct np_classic c = { .layout = "udp_rr", .unit = np_unit('x'), .verbosity = 3 };
	struct np_record r = { .value[0].known = false };

	np_record_int(&r, NP_M_LOST_REQUESTS, 0);
	np_record_int(&r, NP_M_LOCAL_SEND_CALLS, 1000);
	assert_prints(&c, &r, "");
	np_record_int(&r, NP_M_LOST_REQUESTS, 3);
	assert_prints(&c, &r, "3 of 1000 requests got no response in time and count as lost\n");
}

TEST(what_is_not_known_is_minus_one)
{
	struct np_classic c = { .layout = "stream", .unit = np_unit('m'), .verbosity = 1 };
	struct np_record r = { .value[0].known = false };

	assert_prints(&c, &r, "    -1     -1     -1    -1.00      -1.00   \n");
}

TEST(only_layouts_of_the_table_are_known)
{
	struct np_classic c = { .layout = "STREAM", .unit = np_unit('m'), .verbosity = 1 };
	struct np_record r = { .value[0].known = false };

	assert_prints(&c, &r, "");
	c.layout = "";
	assert_prints(&c, &r, "");
}

/* ---- With CPU figures ---- */

/* golden.py compares heads and layouts with recordings; here no figure is another's. */
static const char apart[] =
    " LSS_SIZE=11 LSR_SIZE=12 RSS_SIZE=13 RSR_SIZE=14 LOCAL_SEND_SIZE=15"
    " REMOTE_SEND_SIZE=16 REQUEST_SIZE=17 RESPONSE_SIZE=18 ELAPSED_TIME=19"
    " THROUGHPUT=20 LOCAL_SEND_CALLS=21 FAILED_SENDS=22 LOCAL_SEND_THROUGHPUT=23"
    " REMOTE_RECV_CALLS=24 REMOTE_RECV_THROUGHPUT=25 LOCAL_CPU_UTIL=26"
    " REMOTE_CPU_UTIL=27 LOCAL_SD=0.028 REMOTE_SD=290.0 LOCAL_CPU_METHOD=S"
    " REMOTE_CPU_METHOD=P LOCAL_SEND_ALIGN=31 REMOTE_RECV_ALIGN=32"
    " LOCAL_SEND_OFFSET=33 REMOTE_RECV_OFFSET=34 LOCAL_BYTES_SENT=35"
    " LOCAL_BYTES_PER_SEND=36 REMOTE_BYTES_PER_RECV=37";

/* What verbosity 0 and 1 print with CPU figures; of tests without a golden above also 3, and 1
 * without. */
static const struct {
	const char *layout;
	char unit;
	const char *alone, *row, *details, *without;
} figures_apart[] = {
	{ "stream", 'm', " 0.028 S tag\n",
	  "    14     11     15    19.00        20.00   26.00    27.00    0.028   290.000 tag\n",
	  NULL, NULL },
	{ "maerts", 'm', " 0.028 S tag\n",
	  "    14     11     16    19.00        20.00   26.00    27.00    0.028   290.000 tag\n",
	  NULL, NULL },
	{ "sendfile", 'm', " 0.028 S tag\n",
	  "    14     11     15    19.00        20.00   26.00    27.00    0.028   290.000 tag\n",
	  NULL, NULL },
	{ "rr", 'x', " 0.028 S tag\n",
	  "11     12     17      18     19.00   20.00   26.00  27.00  0.028   290.000 tag\n"
	  "13     14    \n",
	  NULL, NULL },
	{ "rr", 'k', " 0.028 S tag\n",
	  "11     12     17      18     19.00   20.00   26.00  27.00  0.028   290.000 tag\n"
	  "13     14    \n",
	  NULL, NULL },
	{ "udp_rr", 'x', " 0.028 S tag\n",
	  "11     12     17      18     19.00   20.00    26.00  27.00  0.028   290.000 tag\n"
	  "13     14    \n",
	  NULL, NULL },
	{ "crr", 'x', " 0.028\n",
	  "11     12     17      18     19.00   20.00    26.00  27.00  0.028   290.000\n"
	  "13     14    \n",
	  NULL, NULL },
	{ "cc", 'x', " 0.028\n",
	  "11     12     17      18     19.00   20.00    26.00  27.00  0.028   290.000\n"
	  "13     14    \n",
	  NULL, NULL },
	{ "udp_stream", 'm', "  0.03 S\n",
	  "    11      15   19.00          21     22       23.0     26.00    0.028 \n"
	  "    14           19.00          24              25.0     27.00    290.000\n"
	  "\n",
	  NULL, NULL },
	{ "stream_stream", 'm', " 0.028\n",
	  "   14     11      15    19.00        20.00   26.00  27.00   0.028   290.000\n",
	  SEND_HEADS "   31      32     33      34     35   36.00         21  37.00       24\n",
	  "   14     11      15    19.00      20.00   \n" },
	{ "stream_rr", 'x', " 0.028\n",
	  "11     12     17      18     19.00   20.00    26.00  27.00  0.028   290.000\n"
	  "13     14    \n",
	  "Alignment      Offset\n"
	  "Local  Remote  Local  Remote\n"
	  "Send   Recv    Send   Recv\n"
	  "   31     32      33     34\n",
	  "11     12     17       18      19.00      20.00   \n"
	  "13     14    \n" },
	{ "dg_stream", 'm', "  0.03\n",
	  "   11      15    19.00          21     22       23.0      26.00   0.028 \n"
	  "   14            19.00          24              25.0      27.00   290.000\n"
	  "\n",
	  "",
	  "   11      15    19.00          21     22      23.00\n"
	  "   14            19.00          24             25.00\n"
	  "\n" },
	{ "dg_rr", 'x', " 0.028\n",
	  "11     12     17      18     19.00   20.00    26.00  27.00  0.028   290.000\n"
	  "13     14    \n",
	  "",
	  "11     12     17       18      19.00      20.00   \n"
	  "13     14    \n" },
};

TEST(each_figure_has_its_place)
{
	for (size_t i = 0; i < LEN(figures_apart); i++) {
		struct np_classic c = { .layout = figures_apart[i].layout,
					.unit = np_unit(figures_apart[i].unit),
					.local_cpu = true,
					.remote_cpu = true,
					.brand = "tag" };
		struct np_record r = { .value[0].known = false };

		put_figures(&r, apart);
		assert_prints(&c, &r, figures_apart[i].alone);
		c.verbosity = 1;
		assert_prints(&c, &r, figures_apart[i].row);
		if (figures_apart[i].details != NULL) {
			c.local_cpu = c.remote_cpu = false;
			assert_prints(&c, &r, figures_apart[i].without);
			c.verbosity = 3;
			assert_prints(&c, &r, figures_apart[i].details);
		}
	}
}

/* The figure of the end that has one, and the near end's letter. */
TEST(lone_cpu_figures_and_their_heads)
{
	struct np_classic c = { .unit = np_unit('m'), .remote_cpu = true };
	struct np_record r = { .value[0].known = false };

	put_figures(&r, apart);
	np_record_char(&r, NP_M_LOCAL_CPU_METHOD, 'U');
	c.layout = "sendfile";
	assert_prints(&c, &r, "290.000 P \n");
	c.layout = "udp_stream";
	assert_prints(&c, &r, "290.00 U\n");
	c = (struct np_classic){ .layout = "stream_rr", .unit = np_unit('x'), .brand = "tag" };
	assert_prints(&c, &r, "  20.00\n");
	c.layout = "dg_stream";
	assert_prints(&c, &r, "  23.00\n");
	/* Heads stay those of transactions when the unit is another. */
	c = (struct np_classic){ .layout = "crr",
				 .unit = np_unit('m'),
				 .local_cpu = true,
				 .headers = true,
				 .verbosity = 1 };
	assert_prints(
	    &c, &r,
	    "Local /Remote\n"
	    "Socket Size   Request Resp.  Elapsed Trans.   CPU    CPU    S.dem   S.dem\n"
	    "Send   Recv   Size    Size   Time    Rate     local  remote local   remote\n"
	    "bytes  bytes  bytes   bytes  secs.   per sec  %      %      us/Tr   us/Tr\n\n"
	    "11     12     17      18     19.00   20.00    26.00  27.00  0.028   290.000\n13     "
	    "14    \n");
}

/* Without a control connection netperf knows no letter for the far end, and prints its 0. */
TEST(the_letter_of_a_silent_far_end_is_a_nul_byte)
{
	static const char want[] = "bytes  bytes   bytes    secs.    10^6bits/s  % S      % \0"
				   "      us/KB   us/KB\n";
	struct np_classic c = { .layout = "stream",
				.unit = np_unit('m'),
				.verbosity = 1,
				.headers = true,
				.local_cpu = true };
	struct np_record r = { .value[0].known = false };
	FREED_BY(free_memory) char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	np_record_char(&r, NP_M_LOCAL_CPU_METHOD, 'S');
	np_record_char(&r, NP_M_REMOTE_CPU_METHOD, '\0');
	np_classic_print(out, &c, &r);
	fclose(out);
	assert_true(memmem(text, size, want, sizeof(want) - 1) != NULL);
}

/* ---- TCP_MSS ---- */

TEST(a_segment_size_stands_alone)
{
	static const char row[] = "32741 \n";
	static const char with_heads[] = "Maximum\nSegment\nSize (bytes)\n\n32741 \n";
	struct np_classic c = { .layout = "mss", .unit = np_unit('m'), .headers = true };
	struct np_record r = { .value[0].known = false };

	np_record_int(&r, NP_M_TRANSPORT_MSS, 32741);
	/* -c changes nothing here. */
	for (int cpu = 0; cpu < 2; cpu++) {
		c.local_cpu = cpu;
		for (c.verbosity = 0; c.verbosity <= 3; c.verbosity++) {
			assert_prints(&c, &r,
				      c.verbosity == 0   ? row
				      : c.verbosity == 3 ? ""
							 : with_heads);
		}
	}
	c.headers = false;
	c.verbosity = 1;
	c.brand = "tagged";
	assert_prints(&c, &r, "32741 tagged\n");
}

/* ---- UNIX-domain tests ---- */

TEST(unix_tests_print_their_heads_first)
{
	static const char *const unix_tests[] = { "stream_stream", "stream_rr", "dg_stream",
						  "dg_rr" };

	for (size_t i = 0; i < LEN(unix_tests) + LEN(goldens); i++) {
		bool unix_test = i < LEN(unix_tests);
		struct np_classic c = { .unit = np_unit('m') };

		c.layout = unix_test ? unix_tests[i] : goldens[i - LEN(unix_tests)].layout;
		/* Whatever the verbosity; never without headers. */
		for (c.verbosity = -1; c.verbosity <= 3; c.verbosity++) {
			FREED_BY(free_memory) char *text = NULL;

			c.headers = true;
			text = WRITTEN(out, np_classic_preface(out, &c));
			assert_int_equal(unix_test, strlen(text) > 100);
			c.headers = false;
			assert_writes(out, np_classic_preface(out, &c), "");
		}
	}
}

/* ---- Histograms ---- */

TEST(histograms_stand_below_the_details)
{
	static const char *const titles[] = {
		"\n\nHistogram of time spent in send() call.\n",
		"\n\nHistogram of time spent in recv() call.\n",
		"\n\nHistogram of time spent in send() call.\n",
		"\nHistogram of request/response times\n",
		"\nHistogram of request/response times\n",
		"\nHistogram of request/reponse times.\n",
		"\nHistogram of request/response times\n",
		"\nHistogram of request/response times\n",
		"\nHistogram of time spent in send() call\n",
	};
	FREED_BY(free_memory) struct np_hist *h = np_hist_new();
	FREED_BY(free_memory) char *cells = NULL;
	char want[4000];

	assert_int_equal(LEN(titles), LEN(goldens));
	np_hist_record(h, 12345);
	cells = WRITTEN(out, np_histogram_print(out, h));
	for (size_t i = 0; i < LEN(goldens); i++) {
		const struct golden *g = &goldens[i];
		struct np_classic c = {
			.layout = g->layout, .unit = np_unit(g->unit), .verbosity = 1, .hist = h
		};
		struct np_record r;

		fill(&r, g);
		assert_prints(&c, &r, g->rows);
		c.verbosity = 3;
		snprintf(want, sizeof(want), "%s%s%s", g->details, titles[i], cells);
		assert_prints(&c, &r, want);
		c.verbosity = 2;
		snprintf(want, sizeof(want), "%s%s%s%s", g->rows, g->details, titles[i], cells);
		assert_prints(&c, &r, want);
	}
}

TEST(dg_rr_shows_the_mean_of_its_times)
{
	struct np_classic c = { .layout = "dg_rr", .unit = np_unit('x'), .verbosity = 3 };
	struct np_record r = { .value[0].known = false };
	FREED_BY(free_memory) struct np_hist *h = np_hist_new();

	c.hist = h;
	np_hist_record(h, 60000);
	np_hist_record(h, 79999);
	assert_prints(&c, &r, "Average response time 69 usecs\n");
}

/* ---- Confidence ---- */

TEST(a_missed_confidence_is_told_in_netperfs_words)
{
	struct np_record r = { .value[0].known = false };

	np_record_real(&r, NP_M_THROUGHPUT_CONFID, 884.645);
	np_record_real(&r, NP_M_LOCAL_CPU_CONFID, 0);
	np_record_real(&r, NP_M_REMOTE_CPU_CONFID, 12.3456);
	assert_writes(out, np_confidence_warn(out, &r),
		      "!!! WARNING\n"
		      "!!! Desired confidence was not achieved within the specified iterations.\n"
		      "!!! This implies that there was variability in the test environment that\n"
		      "!!! must be investigated before going further.\n"
		      "!!! Confidence intervals: Throughput      : 884.645%\n"
		      "!!!                       Local CPU util  : 0.000%\n"
		      "!!!                       Remote CPU util : 12.346%\n"
		      "\n");
}

TEST_MAIN()
