/*
 * The classic tables, letter by letter as netperf 2.7.0 printed them, blanks at line ends included.
 */
#include <stdio.h>
#include <stdlib.h>

#include "out/format.h"
#include "tests/lib/check.h"

/* An INT or REAL figure of a record. */
struct figure {
	enum np_metric_id id;
	double value;
};

/* A recorded output: its table, in parts. */
struct golden {
	const char *layout;
	char unit;
	struct figure figures[17];
	const char *heads, *rows, *details;
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
	{ NP_M_LSS_SIZE, 16384 }, { NP_M_LSR_SIZE, 131072 }, { NP_M_RSS_SIZE, 16384 },             \
	    { NP_M_RSR_SIZE, 131072 }, { NP_M_REQUEST_SIZE, 1 }, { NP_M_RESPONSE_SIZE, 1 },        \
	    { NP_M_LOCAL_SEND_ALIGN, 8 }, { NP_M_REMOTE_RECV_ALIGN, 8 },                           \
	    { NP_M_LOCAL_SEND_OFFSET, 0 },                                                         \
	{                                                                                          \
		NP_M_REMOTE_RECV_OFFSET, 0                                                         \
	}

static const struct golden goldens[] = {
	{ "stream",
	  'm',
	  { { NP_M_RSR_SIZE, 131072 },
	    { NP_M_LSS_SIZE, 16384 },
	    { NP_M_LOCAL_SEND_SIZE, 16384 },
	    { NP_M_ELAPSED_TIME, 0.00216 },
	    { NP_M_THROUGHPUT, 14894.55 },
	    { NP_M_LOCAL_SEND_ALIGN, 8 },
	    { NP_M_REMOTE_RECV_ALIGN, 8 },
	    { NP_M_LOCAL_SEND_OFFSET, 0 },
	    { NP_M_REMOTE_RECV_OFFSET, 0 },
	    { NP_M_LOCAL_BYTES_SENT, 4014080 },
	    { NP_M_LOCAL_BYTES_PER_SEND, 16384 },
	    { NP_M_LOCAL_SEND_CALLS, 245 },
	    { NP_M_REMOTE_BYTES_PER_RECV, 50811.139 },
	    { NP_M_REMOTE_RECV_CALLS, 79 },
	    { NP_M_TRANSPORT_MSS, 65483 } },
	  STREAM_HEADS,
	  "131072  16384  16384    0.00     14894.55   \n",
	  SEND_HEADS
	  "    8       8      0       0 4014080  16384.00       245   50811.14     79\n" SEGMENT
	  " 65483\n" },
	{ "maerts",
	  'm',
	  { { NP_M_LSR_SIZE, 131072 },
	    { NP_M_RSS_SIZE, 16384 },
	    { NP_M_REMOTE_SEND_SIZE, 16384 },
	    { NP_M_ELAPSED_TIME, 0.001 },
	    { NP_M_THROUGHPUT, 22409.38 },
	    { NP_M_LOCAL_RECV_ALIGN, 8 },
	    { NP_M_REMOTE_RECV_ALIGN, 8 },
	    { NP_M_LOCAL_RECV_OFFSET, 0 },
	    { NP_M_REMOTE_RECV_OFFSET, 0 },
	    { NP_M_LOCAL_BYTES_RECVD, 4014080 },
	    { NP_M_LOCAL_BYTES_PER_RECV, 129486.45 },
	    { NP_M_LOCAL_RECV_CALLS, 31 },
	    { NP_M_REMOTE_BYTES_PER_SEND, 16384 },
	    { NP_M_REMOTE_SEND_CALLS, 245 },
	    { NP_M_TRANSPORT_MSS, 32768 } },
	  STREAM_HEADS,
	  "131072  16384  16384    0.00     22409.38   \n",
	  "\n"
	  "Alignment      Offset         Bytes    Bytes       Recvs   Bytes    Sends\n"
	  "Local  Remote  Local  Remote  Xfered   Per                 Per\n"
	  "Recv   Send    Recv   Send             Recv (avg)          Send (avg)\n"
	  "    8       8      0       0 4014080  129486.45        31   16384.00    245\n" SEGMENT
	  " 32768\n" },
	{ "sendfile",
	  'm',
	  { { NP_M_RSR_SIZE, 131072 },
	    { NP_M_LSS_SIZE, 16384 },
	    { NP_M_LOCAL_SEND_SIZE, 16384 },
	    { NP_M_ELAPSED_TIME, 0.00233 },
	    { NP_M_THROUGHPUT, 13800.02 },
	    { NP_M_LOCAL_SEND_ALIGN, 8 },
	    { NP_M_REMOTE_RECV_ALIGN, 8 },
	    { NP_M_LOCAL_SEND_OFFSET, 0 },
	    { NP_M_REMOTE_RECV_OFFSET, 0 },
	    { NP_M_REMOTE_BYTES_RECVD, 4014080 },
	    { NP_M_LOCAL_SEND_CALLS, 245 },
	    { NP_M_REMOTE_RECV_CALLS, 32 },
	    { NP_M_TRANSPORT_MSS, 54272 } },
	  STREAM_HEADS,
	  "131072  16384  16384    0.00     13800.02   \n",
	  SEND_HEADS
	  "    8       8      0       0 4.014e+06  16384.00       245   125440.00     32\n" SEGMENT
	  " 54272\n" },
	{ "rr",
	  'x',
	  { TRANSACTION_FIGURES,
	    { NP_M_ELAPSED_TIME, 0.123 },
	    { NP_M_THROUGHPUT, 16250.386 },
	    { NP_M_TRANSACTION_RATE, 16250.386 },
	    { NP_M_RT_LATENCY, 61.537 } },
	  TRANSACTION_HEADS,
	  "16384  131072 1        1       0.12     16250.39   \n"
	  "16384  131072\n",
	  "Alignment      Offset         RoundTrip  Trans    Throughput\n"
	  "Local  Remote  Local  Remote  Latency    Rate     10^6bits/s\n"
	  "Send   Recv    Send   Recv    usec/Tran  per sec  Outbound   Inbound\n"
	  "    8      0       0      0   61.537   16250.386 0.130     0.130 \n" },
	{ "rr",
	  'm',
	  { TRANSACTION_FIGURES,
	    { NP_M_ELAPSED_TIME, 0.0877 },
	    { NP_M_THROUGHPUT, 0.36475 },
	    { NP_M_TRANSACTION_RATE, 22796.960 },
	    { NP_M_RT_LATENCY, 43.865 } },
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
	{ "udp_rr",
	  'x',
	  { { NP_M_LSS_SIZE, 212992 },
	    { NP_M_LSR_SIZE, 212992 },
	    { NP_M_RSS_SIZE, 212992 },
	    { NP_M_RSR_SIZE, 212992 },
	    { NP_M_REQUEST_SIZE, 1 },
	    { NP_M_RESPONSE_SIZE, 1 },
	    { NP_M_ELAPSED_TIME, 1.0004 },
	    { NP_M_THROUGHPUT, 19067.43 } },
	  TRANSACTION_HEADS,
	  "212992 212992 1        1       1.00     19067.43   \n"
	  "212992 212992\n",
	  "" },
	{ "crr",
	  'x',
	  { TRANSACTION_FIGURES, { NP_M_ELAPSED_TIME, 0.0222 }, { NP_M_THROUGHPUT, 8992.81 } },
	  TRANSACTION_HEADS,
	  "16384  131072 1        1       0.02     8992.81   \n"
	  "16384  131072\n",
	  CONNECTION_HEADS "    8      8       0      0\n" },
	{ "cc",
	  'x',
	  { TRANSACTION_FIGURES, { NP_M_ELAPSED_TIME, 0.0096 }, { NP_M_THROUGHPUT, 20781.38 } },
	  TRANSACTION_HEADS,
	  "16384  131072 1        1       0.01     20781.38   \n"
	  "16384  131072\n",
	  CONNECTION_HEADS "    8      0       0      0\n" },
	{ "udp_stream",
	  'm',
	  { { NP_M_LSS_SIZE, 212992 },
	    { NP_M_LOCAL_SEND_SIZE, 65507 },
	    { NP_M_ELAPSED_TIME, 1.003 },
	    { NP_M_LOCAL_SEND_CALLS, 111976 },
	    { NP_M_FAILED_SENDS, 0 },
	    { NP_M_LOCAL_SEND_THROUGHPUT, 58498.13 },
	    { NP_M_RSR_SIZE, 212992 },
	    { NP_M_REMOTE_RECV_CALLS, 49237 },
	    { NP_M_REMOTE_RECV_THROUGHPUT, 25722.23 } },
	  "Socket  Message  Elapsed      Messages                \n"
	  "Size    Size     Time         Okay Errors   Throughput\n"
	  "bytes   bytes    secs            #      #   10^6bits/sec\n\n",
	  "212992   65507   1.00       111976      0    58498.13\n"
	  "212992           1.00        49237           25722.23\n\n",
	  "" },
};

/* The first row of the metric table is a text: 0 is the end. */
static void
add(struct np_record *r, const struct figure *f)
{
	for (; f->id != 0; f++) {
		switch (np_metric(f->id)->type) {
		case NP_TYPE_INT:
			np_record_int(r, f->id, (int64_t)f->value);
			break;
		case NP_TYPE_CHAR:
			np_record_char(r, f->id, (char)f->value);
			break;
		default:
			np_record_real(r, f->id, f->value);
			break;
		}
	}
}

static void
fill(struct np_record *r, const struct golden *g)
{
	memset(r, 0, sizeof(*r));
	add(r, g->figures);
}

static void
assert_prints(const struct np_classic *c, const struct np_record *r, const char *want)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	np_classic_print(out, c, r);
	fclose(out);
	assert_string_equal(text, want);
	free(text);
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
	assert_true(np_classic_known("stream"));
	assert_false(np_classic_known("STREAM"));
	assert_false(np_classic_known(""));
}

/* ---- With CPU figures ---- */

#define CPU(local_util, remote_util, local_sd, remote_sd, local_method, remote_method)             \
	{ NP_M_LOCAL_CPU_UTIL, local_util }, { NP_M_REMOTE_CPU_UTIL, remote_util },                \
	    { NP_M_LOCAL_SD, local_sd }, { NP_M_REMOTE_SD, remote_sd },                            \
	    { NP_M_LOCAL_CPU_METHOD, local_method },                                               \
	{                                                                                          \
		NP_M_REMOTE_CPU_METHOD, remote_method                                              \
	}

/* A run with -c or -C: what verbosity 1 and 0 print. */
struct loaded {
	const char *layout;
	char unit;
	bool local, remote;
	struct figure figures[24];
	const char *heads, *rows, *alone;
};

#define STREAM_SIZES                                                                               \
	{ NP_M_RSR_SIZE, 131072 }, { NP_M_LSS_SIZE, 16384 }, { NP_M_LOCAL_SEND_SIZE, 16384 },      \
	{                                                                                          \
		NP_M_ELAPSED_TIME, 1.0                                                             \
	}

#define DATAGRAM_SIZES                                                                             \
	{ NP_M_LSS_SIZE, 212992 }, { NP_M_RSR_SIZE, 212992 }, { NP_M_FAILED_SENDS, 0 },            \
	{                                                                                          \
		NP_M_ELAPSED_TIME, 1.0                                                             \
	}

#define SEND_CPU_HEADS(unit, local, remote)                                                        \
	"Recv   Send    Send                          Utilization       Service Demand\n"          \
	"Socket Socket  Message  Elapsed              Send     Recv     Send    Recv\n"            \
	"Size   Size    Size     Time     Throughput  local    remote   local   remote\n"          \
	"bytes  bytes   bytes    secs.    " unit "/s  % " local "      % " remote                  \
	"      us/KB   us/KB\n\n"

#define CONNECTION_CPU_HEADS                                                                       \
	"Local /Remote\n"                                                                          \
	"Socket Size   Request Resp.  Elapsed Trans.   CPU    CPU    S.dem   S.dem\n"              \
	"Send   Recv   Size    Size   Time    Rate     local  remote local   remote\n"             \
	"bytes  bytes  bytes   bytes  secs.   per sec  %      %      us/Tr   us/Tr\n\n"

#define RR_CPU_HEADS                                                                               \
	"Local /Remote\n"                                                                          \
	"Socket Size   Request Resp.  Elapsed Trans.   CPU    CPU    S.dem   S.dem\n"              \
	"Send   Recv   Size    Size   Time    Rate     local  remote local   remote\n"             \
	"bytes  bytes  bytes   bytes  secs.   per sec  % S    % S    us/Tr   us/Tr\n\n"

static const struct loaded loaded[] = {
	{ "stream",
	  'm',
	  true,
	  true,
	  { STREAM_SIZES,
	    { NP_M_THROUGHPUT, 33646.87 },
	    CPU(83.78, 83.78, 0.408, 0.408, 'S', 'S') },
	  SEND_CPU_HEADS("10^6bits", "S", "S"),
	  "131072  16384  16384    1.00       33646.87   83.78    83.78    0.408   0.408  \n",
	  " 0.408 S \n" },
	{ "stream",
	  'K',
	  true,
	  false,
	  { STREAM_SIZES, { NP_M_THROUGHPUT, 5188346.83 }, CPU(75.33, -1, 0.290, -1, 'S', 'U') },
	  SEND_CPU_HEADS("KBytes  ", "S", "U"),
	  "131072  16384  16384    1.00       5188346.83   75.33    -1.00    0.290   -1.000 \n",
	  " 0.290 S \n" },
	{ "maerts",
	  'm',
	  true,
	  true,
	  { { NP_M_RSR_SIZE, 131072 },
	    { NP_M_LSS_SIZE, 16384 },
	    { NP_M_REMOTE_SEND_SIZE, 16384 },
	    { NP_M_ELAPSED_TIME, 1.0 },
	    { NP_M_THROUGHPUT, 31344.91 },
	    CPU(81.26, 81.26, 0.425, 0.425, 'S', 'S') },
	  "Recv   Send    Send                          Utilization       Service Demand\n"
	  "Socket Socket  Message  Elapsed              Recv     Send     Recv    Send\n"
	  "Size   Size    Size     Time     Throughput  local    remote   local   remote\n"
	  "bytes  bytes   bytes    secs.    10^6bits/s  % S      % S      us/KB   us/KB\n\n",
	  "131072  16384  16384    1.00       31344.91   81.26    81.26    0.425   0.425  \n",
	  " 0.425 S \n" },
	{ "sendfile",
	  'm',
	  false,
	  true,
	  { STREAM_SIZES, { NP_M_THROUGHPUT, 26882.19 }, CPU(-1, 67.95, -1, 0.414, 'U', 'S') },
	  SEND_CPU_HEADS("10^6bits", "U", "S"),
	  "131072  16384  16384    1.00       26882.19   -1.00    67.95    -1.000  0.414  \n",
	  " 0.414 S \n" },
	{ "rr",
	  'x',
	  true,
	  true,
	  { TRANSACTION_FIGURES,
	    { NP_M_ELAPSED_TIME, 1.0 },
	    { NP_M_THROUGHPUT, 15710.07 },
	    CPU(30.04, 29.63, 38.238, 37.721, 'S', 'S') },
	  RR_CPU_HEADS,
	  "16384  131072 1       1      1.00    15710.07  30.04  29.63  38.238  37.721 \n"
	  "16384  131072\n",
	  "38.238 S \n" },
	{ "rr",
	  'k',
	  true,
	  true,
	  { TRANSACTION_FIGURES,
	    { NP_M_ELAPSED_TIME, 1.0 },
	    { NP_M_THROUGHPUT, 276.97 },
	    CPU(32.8, 32.8, 19404.184, 19404.184, 'S', 'S') },
	  "Local /Remote\n"
	  "Socket Size   Request Resp.  Elapsed Tput     CPU    CPU    S.dem   S.dem\n"
	  "Send   Recv   Size    Size   Time    10^3bits local  remote local   remote\n"
	  "bytes  bytes  bytes   bytes  secs.   per sec  % S    % S    us/KB   us/KB\n\n",
	  "16384  131072 1       1      1.00    276.97  32.80  32.80  19404.184  19404.184 \n"
	  "16384  131072\n",
	  "19404.184 S \n" },
	{ "udp_rr",
	  'x',
	  true,
	  true,
	  { { NP_M_LSS_SIZE, 212992 },
	    { NP_M_LSR_SIZE, 212992 },
	    { NP_M_RSS_SIZE, 212992 },
	    { NP_M_RSR_SIZE, 212992 },
	    { NP_M_REQUEST_SIZE, 1 },
	    { NP_M_RESPONSE_SIZE, 1 },
	    { NP_M_ELAPSED_TIME, 1.0 },
	    { NP_M_THROUGHPUT, 73804.71 },
	    CPU(100, 100, 27.099, 27.099, 'S', 'S') },
	  RR_CPU_HEADS,
	  "212992 212992 1       1      1.00    73804.71   100.00 100.00 27.099  27.099 \n"
	  "212992 212992\n",
	  "27.099 S \n" },
	{ "crr",
	  'x',
	  true,
	  true,
	  { TRANSACTION_FIGURES,
	    { NP_M_ELAPSED_TIME, 1.0 },
	    { NP_M_THROUGHPUT, 15273.23 },
	    CPU(84.91, 261.95, 111.183, 343.014, 'S', 'S') },
	  CONNECTION_CPU_HEADS,
	  "16384  131072 1       1      1.00    15273.23   84.91  261.95 111.183  343.014\n"
	  "16384  131072\n",
	  "111.183\n" },
	/* Counts and heads stay those of transactions when the unit is another. */
	{ "crr",
	  'm',
	  true,
	  false,
	  { TRANSACTION_FIGURES,
	    { NP_M_ELAPSED_TIME, 1.0 },
	    { NP_M_THROUGHPUT, 0.25 },
	    CPU(55.79, -1, 36701.121, -1, 'S', 'U') },
	  CONNECTION_CPU_HEADS,
	  "16384  131072 1       1      1.00    0.25     55.79  -1.00  36701.121  -1.000\n"
	  "16384  131072\n",
	  "36701.121\n" },
	{ "cc",
	  'x',
	  true,
	  true,
	  { TRANSACTION_FIGURES,
	    { NP_M_ELAPSED_TIME, 1.0 },
	    { NP_M_THROUGHPUT, 18463.82 },
	    CPU(91.46, 287.26, 99.071, 311.157, 'S', 'S') },
	  CONNECTION_CPU_HEADS,
	  "16384  131072 1       1      1.00    18463.82   91.46  287.26 99.071  311.157\n"
	  "16384  131072\n",
	  "99.071\n" },
	{ "udp_stream",
	  'm',
	  true,
	  true,
	  { DATAGRAM_SIZES,
	    { NP_M_LOCAL_SEND_SIZE, 65507 },
	    { NP_M_LOCAL_SEND_CALLS, 168003 },
	    { NP_M_LOCAL_SEND_THROUGHPUT, 88035.0 },
	    { NP_M_REMOTE_RECV_CALLS, 70491 },
	    { NP_M_REMOTE_RECV_THROUGHPUT, 36937.9 },
	    CPU(97.42, 97.43, 0.181, 0.181, 'S', 'S') },
	  "Socket  Message  Elapsed      Messages                   CPU      Service\n"
	  "Size    Size     Time         Okay Errors   Throughput   Util     Demand\n"
	  "bytes   bytes    secs            #      #   10^6bits/sec % SS     us/KB\n\n",
	  "212992   65507   1.00       168003      0    88035.0     97.42    0.181 \n"
	  "212992           1.00        70491           36937.9     97.43    0.181 \n\n",
	  "  0.18 S\n" },
	/* The lone letter is the near end's though its figure is the far end's. */
	{ "udp_stream",
	  'M',
	  false,
	  true,
	  { DATAGRAM_SIZES,
	    { NP_M_LOCAL_SEND_SIZE, 65507 },
	    { NP_M_LOCAL_SEND_CALLS, 195005 },
	    { NP_M_LOCAL_SEND_THROUGHPUT, 12181.1 },
	    { NP_M_REMOTE_RECV_CALLS, 167929 },
	    { NP_M_REMOTE_RECV_THROUGHPUT, 10489.8 },
	    CPU(-1, 72.39, -1, 0.336, 'U', 'S') },
	  "Socket  Message  Elapsed      Messages                   CPU      Service\n"
	  "Size    Size     Time         Okay Errors   Throughput   Util     Demand\n"
	  "bytes   bytes    secs            #      #   MBytes/sec % US     us/KB\n\n",
	  "212992   65507   1.00       195005      0    12181.1     -1.00    -1.000\n"
	  "212992           1.00       167929           10489.8     72.39    0.336 \n\n",
	  "  0.34 U\n" },
};

TEST(cpu_figures_have_layouts_of_their_own)
{
	for (size_t i = 0; i < LEN(loaded); i++) {
		const struct loaded *l = &loaded[i];
		struct np_classic c = { .layout = l->layout,
					.unit = np_unit(l->unit),
					.local_cpu = l->local,
					.remote_cpu = l->remote };
		struct np_record r = { .value[0].known = false };
		char want[1000];

		add(&r, l->figures);
		assert_prints(&c, &r, l->alone);
		c.verbosity = 1;
		assert_prints(&c, &r, l->rows);
		c.headers = true;
		snprintf(want, sizeof(want), "%s%s", l->heads, l->rows);
		assert_prints(&c, &r, want);
	}
}

TEST(a_brand_follows_cpu_figures)
{
	static const struct {
		size_t loaded;
		const char *row, *alone;
	} want[] = {
		{ 3,
		  "131072  16384  16384    1.00       26882.19   -1.00    67.95    -1.000  0.414  "
		  "tag\n",
		  " 0.414 S tag\n" },
		{ 4,
		  "16384  131072 1       1      1.00    15710.07  30.04  29.63  38.238  37.721 "
		  "tag\n16384  131072\n",
		  "38.238 S tag\n" },
		{ 6,
		  "212992 212992 1       1      1.00    73804.71   100.00 100.00 27.099  27.099 "
		  "tag\n212992 212992\n",
		  "27.099 S tag\n" },
	};

	for (size_t i = 0; i < LEN(want); i++) {
		const struct loaded *l = &loaded[want[i].loaded];
		struct np_classic c = { .layout = l->layout,
					.unit = np_unit(l->unit),
					.local_cpu = l->local,
					.remote_cpu = l->remote,
					.brand = "tag" };
		struct np_record r = { .value[0].known = false };

		add(&r, l->figures);
		assert_prints(&c, &r, want[i].alone);
		c.verbosity = 1;
		assert_prints(&c, &r, want[i].row);
	}
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
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	np_record_char(&r, NP_M_LOCAL_CPU_METHOD, 'S');
	np_record_char(&r, NP_M_REMOTE_CPU_METHOD, '\0');
	np_classic_print(out, &c, &r);
	fclose(out);
	assert_true(memmem(text, size, want, sizeof(want) - 1) != NULL);
	free(text);
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

#define UNIX_TRANSACTION_FIGURES                                                                   \
	{ NP_M_LSS_SIZE, 212992 }, { NP_M_LSR_SIZE, 212992 }, { NP_M_RSS_SIZE, 4608 },             \
	    { NP_M_RSR_SIZE, 2304 }, { NP_M_REQUEST_SIZE, 1 }, { NP_M_RESPONSE_SIZE, 1 },          \
	    { NP_M_ELAPSED_TIME, 1.0 }, { NP_M_LOCAL_SEND_ALIGN, 8 },                              \
	    { NP_M_REMOTE_RECV_ALIGN, 8 }, { NP_M_LOCAL_SEND_OFFSET, 0 },                          \
	{                                                                                          \
		NP_M_REMOTE_RECV_OFFSET, 0                                                         \
	}

/* What stands before the test, and what verbosity 0 to 3 print after it, without and with -c. */
static const struct {
	const char *layout;
	char unit;
	struct figure figures[24];
	const char *preface[2], *at[4][2];
} unix_tests[] = {
	{ "stream_stream",
	  'm',
	  { { NP_M_RSR_SIZE, 2304 },
	    { NP_M_LSS_SIZE, 212992 },
	    { NP_M_LOCAL_SEND_SIZE, 212992 },
	    { NP_M_ELAPSED_TIME, 0.001 },
	    { NP_M_THROUGHPUT, 28613.54 },
	    { NP_M_LOCAL_SEND_ALIGN, 8 },
	    { NP_M_REMOTE_RECV_ALIGN, 8 },
	    { NP_M_LOCAL_SEND_OFFSET, 0 },
	    { NP_M_REMOTE_RECV_OFFSET, 0 },
	    { NP_M_LOCAL_BYTES_SENT, 4259840 },
	    { NP_M_LOCAL_BYTES_PER_SEND, 224202.11 },
	    { NP_M_LOCAL_SEND_CALLS, 19 },
	    { NP_M_REMOTE_BYTES_PER_RECV, 2417.62 },
	    { NP_M_REMOTE_RECV_CALLS, 1762 },
	    CPU(93.97, 93.97, 0.559, 4688078.5, 'S', 'S') },
	  { "STREAM STREAM TEST\n" STREAM_HEADS,
	    "STREAM STREAM TEST\n"
	    "Recv   Send    Send                          Utilization    Service Demand\n"
	    "Socket Socket  Message  Elapsed              Send   Recv    Send    Recv\n"
	    "Size   Size    Size     Time     Throughput  local  remote  local   remote\n"
	    "bytes  bytes   bytes    secs.    10^6bits/s  %      %       us/KB   us/KB\n\n" },
	  { { "28613.54\n", " 0.559\n" },
	    { " 2304  212992  212992    0.00     28613.54   \n",
	      " 2304  212992  212992    0.00       28613.54   93.97  93.97   0.559   "
	      "4688078.500\n" },
	    { " 2304  212992  212992    0.00     28613.54   \n" SEND_HEADS
	      "    8       8      0       0 4.26e+06  224202.11         19 2417.62     1762\n",
	      NULL },
	    { SEND_HEADS
	      "    8       8      0       0 4.26e+06  224202.11         19 2417.62     1762\n",
	      NULL } } },
	{ "stream_rr",
	  'x',
	  { UNIX_TRANSACTION_FIGURES,
	    { NP_M_THROUGHPUT, 82881.52 },
	    CPU(99.5, 318.22, 24.01, 1968364.125, 'S', 'S') },
	  { "STREAM REQUEST/RESPONSE TEST\n" TRANSACTION_HEADS,
	    "STREAM REQUEST/RESPONSE TEST\n" CONNECTION_CPU_HEADS },
	  { { "82881.52\n", "24.010\n" },
	    { "212992 212992 1        1       1.00     82881.52   \n4608   2304  \n",
	      "212992 212992 1       1      1.00    82881.52   99.50  318.22 24.010  "
	      "1968364.125\n4608   2304  \n" },
	    { "Alignment      Offset\n"
	      "Local  Remote  Local  Remote\n"
	      "Send   Recv    Send   Recv\n"
	      "    8      8       0      0\n",
	      NULL },
	    { "Alignment      Offset\n"
	      "Local  Remote  Local  Remote\n"
	      "Send   Recv    Send   Recv\n"
	      "    8      8       0      0\n",
	      NULL } } },
	{ "dg_stream",
	  'm',
	  { { NP_M_LSS_SIZE, 212992 },
	    { NP_M_RSR_SIZE, 2304 },
	    { NP_M_LOCAL_SEND_SIZE, 1000 },
	    { NP_M_ELAPSED_TIME, 1.0 },
	    { NP_M_FAILED_SENDS, 0 },
	    { NP_M_LOCAL_SEND_CALLS, 415340 },
	    { NP_M_LOCAL_SEND_THROUGHPUT, 3322.4 },
	    { NP_M_REMOTE_RECV_CALLS, 415340 },
	    { NP_M_REMOTE_RECV_THROUGHPUT, 3322.4 },
	    CPU(93.87, 146.68, 4.629, 185411.578, 'S', 'S') },
	  { "DG UNIDIRECTIONAL SEND TEST\n"
	    "Socket  Message  Elapsed      Messages                \n"
	    "Size    Size     Time         Okay Errors   Throughput\n"
	    "bytes   bytes    secs            #      #   10^6bits/sec\n\n",
	    "DG UNIDIRECTIONAL SEND TEST\n"
	    "Socket  Message  Elapsed      Messages                   CPU     Service\n"
	    "Size    Size     Time         Okay Errors   Throughput   Util    Demand\n"
	    "bytes   bytes    secs            #      #   10^6bits/sec   %       us/KB\n\n" },
	  { { "3322.40\n", "  4.63\n" },
	    { "212992    1000    1.00       415340      0    3322.40\n"
	      " 2304            1.00       415340           3322.40\n\n",
	      "212992    1000    1.00       415340      0     3322.4      93.87   4.629 \n"
	      " 2304            1.00       415340            3322.4      146.68  185411.578\n\n" },
	    { "", "" },
	    { "", "" } } },
	{ "dg_rr",
	  'x',
	  { UNIX_TRANSACTION_FIGURES,
	    { NP_M_THROUGHPUT, 24128.94 },
	    CPU(33.97, 37.83, 28.161, 31.354, 'S', 'S') },
	  { "DG REQUEST/RESPONSE TEST\n" TRANSACTION_HEADS,
	    "DG REQUEST/RESPONSE TEST\n" CONNECTION_CPU_HEADS },
	  { { "24128.94\n", "28.161\n" },
	    { "212992 212992 1        1       1.00     24128.94   \n4608   2304  \n",
	      "212992 212992 1       1      1.00    24128.94   33.97  37.83  28.161  31.354\n"
	      "4608   2304  \n" },
	    { "212992 212992 1        1       1.00     24128.94   \n4608   2304  \n",
	      "212992 212992 1       1      1.00    24128.94   33.97  37.83  28.161  31.354\n"
	      "4608   2304  \n" },
	    { "", "" } } },
};

static void
assert_preface(const struct np_classic *c, const char *want)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	np_classic_preface(out, c);
	fclose(out);
	assert_string_equal(text, want);
	free(text);
}

TEST(unix_tests_print_their_heads_first)
{
	for (size_t i = 0; i < LEN(unix_tests); i++) {
		for (int cpu = 0; cpu < 2; cpu++) {
			struct np_classic c = { .layout = unix_tests[i].layout,
						.unit = np_unit(unix_tests[i].unit),
						.remote_cpu = cpu };

			/* Whatever the verbosity; never without headers. */
			for (c.verbosity = -1; c.verbosity <= 3; c.verbosity++) {
				c.headers = true;
				assert_preface(&c, unix_tests[i].preface[cpu]);
				c.headers = false;
				assert_preface(&c, "");
			}
		}
	}
	for (size_t i = 0; i < LEN(goldens); i++) {
		struct np_classic c = { .layout = goldens[i].layout,
					.unit = np_unit('m'),
					.headers = true };

		assert_preface(&c, "");
	}
}

TEST(unix_tests_print_rows_without_heads_or_brand)
{
	for (size_t i = 0; i < LEN(unix_tests); i++) {
		struct np_record r = { .value[0].known = false };

		add(&r, unix_tests[i].figures);
		for (int verbosity = 0; verbosity < 4; verbosity++) {
			for (int cpu = 0; cpu < 2; cpu++) {
				const char *want = unix_tests[i].at[verbosity][cpu];
				struct np_classic c = { .layout = unix_tests[i].layout,
							.unit = np_unit(unix_tests[i].unit),
							.verbosity = verbosity,
							.local_cpu = cpu,
							.brand = "tagged" };

				if (want == NULL) {
					continue;
				}
				assert_prints(&c, &r, want);
				c.headers = true;
				assert_prints(&c, &r, want);
			}
		}
	}
}

/* ---- Histograms ---- */

static const char *
histogram_text(const struct np_hist *h, char *text, size_t size)
{
	FILE *out = fmemopen(text, size, "w");

	assert_non_null(out);
	np_histogram_print(out, h);
	fclose(out);
	return text;
}

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
	struct np_hist *h = np_hist_new();
	char cells[2000], want[4000];

	assert_int_equal(LEN(titles), LEN(goldens));
	np_hist_record(h, 12345);
	histogram_text(h, cells, sizeof(cells));
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
	free(h);
}

TEST(dg_rr_shows_the_mean_of_its_times)
{
	struct np_classic c = { .layout = "dg_rr", .unit = np_unit('x'), .verbosity = 3 };
	struct np_record r = { .value[0].known = false };
	struct np_hist *h = np_hist_new();

	c.hist = h;
	np_hist_record(h, 60000);
	np_hist_record(h, 79999);
	assert_prints(&c, &r, "Average response time 69 usecs\n");
	free(h);
}

/* ---- Confidence ---- */

TEST(a_missed_confidence_is_told_in_netperfs_words)
{
	char text[1000];
	FILE *out = fmemopen(text, sizeof(text), "w");

	np_confidence_warn(out, 884.645, 0, 12.3456);
	fclose(out);
	assert_string_equal(
	    text, "!!! WARNING\n"
		  "!!! Desired confidence was not achieved within the specified iterations.\n"
		  "!!! This implies that there was variability in the test environment that\n"
		  "!!! must be investigated before going further.\n"
		  "!!! Confidence intervals: Throughput      : 884.645%\n"
		  "!!!                       Local CPU util  : 0.000%\n"
		  "!!!                       Remote CPU util : 12.346%\n"
		  "\n");
}

TEST_MAIN()
