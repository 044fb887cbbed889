/*
 * netperf's classic tables. Blanks at line ends belong to the layout: scripts compare whole lines.
 * A layout has texts in which "%(NAME)-6.2f" prints a figure by printf(): NAME is that of
 * metrics.def, or one of find_number(). Conversions: d for integers, f and g for any number, c for
 * a letter, s for a text. Other percent signs are printed as they are.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "out/format.h"

/* What is printed, where to, and how. */
struct view {
	FILE *out;
	const struct np_classic *c;
	const struct np_record *r;
};

/* Are CPU figures in the table? For one end (-c or -C) netperf prints the columns of both. */
static bool
with_cpu(const struct np_classic *c)
{
	return c->local_cpu || c->remote_cpu;
}

/* The row of metrics.def of that name, which must exist. */
static enum np_metric_id
find_metric(const char *name)
{
	int id = np_metric_find(name);

	assert(id >= 0);
	return (enum np_metric_id)id;
}

/* The value of a row of metrics.def by name; -1: not known. */
static double
number(const struct view *v, const char *name)
{
	return np_record_get_real(v->r, find_metric(name));
}

/* The unit of bytes: that of throughput, or 10^6 bits if throughput is in transactions ('x'). */
static const struct np_unit *
message_unit(const struct view *v)
{
	return v->c->unit->letter == 'x' ? np_unit('m') : v->c->unit;
}

/* A figure by name: one that netperf computes when it prints, or a row of metrics.def. */
static double
find_number(const struct view *v, const char *name)
{
	static const struct {
		const char *name, *value, *by;
		bool divides; /* else it is a product, in the unit of messages */
	} rows[] = {
		{ "received per send", "REMOTE_BYTES_RECVD", "LOCAL_SEND_CALLS", true },
		{ "received per receive", "REMOTE_BYTES_RECVD", "REMOTE_RECV_CALLS", true },
		{ "outbound", "TRANSACTION_RATE", "REQUEST_SIZE", false },
		{ "inbound", "TRANSACTION_RATE", "RESPONSE_SIZE", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, name) == 0) {
			double value = number(v, rows[i].value), by = number(v, rows[i].by);

			return !rows[i].divides ? np_rate(message_unit(v), value * by, 1.0)
			       : by > 0         ? value / by
						: 0;
		}
	}
	/* "demand" is the single service demand: of the near end if -c was given. */
	return number(v, strcmp(name, "demand") != 0 ? name
			 : v->c->local_cpu           ? "LOCAL_SD"
						     : "REMOTE_SD");
}

/* A text by name: the brand, or the unit of throughput or of bytes. */
static const char *
find_text(const struct view *v, const char *name)
{
	if (strcmp(name, "brand") == 0) {
		return v->c->brand != NULL && !v->c->headers ? v->c->brand : "";
	}
	assert(strcmp(name, "unit") == 0 || strcmp(name, "message unit") == 0);
	return name[0] == 'u' ? v->c->unit->name : message_unit(v)->name;
}

/* Print the figure of a "%(NAME)-6.2f" at `at`. Returns the text after it. */
static const char *
put_figure(const struct view *v, const char *at)
{
	/* kind: the conversion, "f"; what is between ) and it are printf()'s flags and widths. */
	const char *close = strchr(at, ')'), *kind = close + 1 + strcspn(close + 1, "dfgcs");
	char name[32], format[16];

	snprintf(name, sizeof(name), "%.*s", (int)(close - at - 2), at + 2);
	snprintf(format, sizeof(format), "%%%.*s%s%c", (int)(kind - close - 1), close + 1,
		 *kind == 'd' ? "ll" : "", *kind);
/* Formats are made from literals of this file. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	switch (*kind) {
	case 'd':
		fprintf(v->out, format, (long long)np_record_get_int(v->r, find_metric(name)));
		break;
	case 's':
		fprintf(v->out, format, find_text(v, name));
		break;
	case 'c':
		/* The letter of a CPU method; "method" belongs to "demand". */
		fprintf(
		    v->out, format,
		    np_record_get_char(v->r, find_metric(strcmp(name, "method") != 0 ? name
							 : v->c->local_cpu ? "LOCAL_CPU_METHOD"
									   : "REMOTE_CPU_METHOD")));
		break;
	default:
		fprintf(v->out, format, find_number(v, name));
		break;
	}
#pragma GCC diagnostic pop
	return kind + 1;
}

/* Print a text of a layout, with figures for each "%(NAME)-6.2f". */
static void
put(const struct view *v, const char *lines)
{
	while (*lines != '\0') {
		if (lines[0] == '%' && lines[1] == '(') {
			lines = put_figure(v, lines);
		} else {
			fputc(*lines++, v->out);
		}
	}
}

static const char stream_heads[] = "Recv   Send    Send                          \n"
				   "Socket Socket  Message  Elapsed              \n"
				   "Size   Size    Size     Time     Throughput  \n"
				   "bytes  bytes   bytes    secs.    %(unit)s/sec  \n\n";

/* near and far: what each end does. */
#define STREAM_CPU_HEADS(near, far)                                                                \
	"Recv   Send    Send                          Utilization       Service Demand\n"          \
	"Socket Socket  Message  Elapsed              " near "     " far "     " near "    " far   \
	"\n"                                                                                       \
	"Size   Size    Size     Time     Throughput  local    remote   local   remote\n"          \
	"bytes  bytes   bytes    secs.    %(unit)-8.8s/s  "                                        \
	"% %(LOCAL_CPU_METHOD)c      % %(REMOTE_CPU_METHOD)c      us/KB   us/KB\n\n"

static const char send_cpu_heads[] = STREAM_CPU_HEADS("Send", "Recv");
static const char unix_stream_cpu_heads[] =
    "Recv   Send    Send                          Utilization    Service Demand\n"
    "Socket Socket  Message  Elapsed              Send   Recv    Send    Recv\n"
    "Size   Size    Size     Time     Throughput  local  remote  local   remote\n"
    "bytes  bytes   bytes    secs.    %(unit)-8.8s/s  %      %       us/KB   us/KB\n\n";

#define BARE_STREAM_ROW(recv_buf, send_buf, send_size)                                             \
	"%(" recv_buf ")6d %(" send_buf ")6d %(" send_size ")6d    %(ELAPSED_TIME)-6.2f   "        \
	"%(THROUGHPUT)7.2f   "
#define STREAM_ROW(recv_buf, send_buf, send_size)                                                  \
	BARE_STREAM_ROW(recv_buf, send_buf, send_size) "%(brand)s\n"
#define BARE_STREAM_CPU_ROW(send_size)                                                             \
	"%(RSR_SIZE)6d %(LSS_SIZE)6d %(" send_size ")6d    %(ELAPSED_TIME)-6.2f     "              \
	"%(THROUGHPUT)7.2f   %(LOCAL_CPU_UTIL)-6.2f   %(REMOTE_CPU_UTIL)-6.2f   "                  \
	"%(LOCAL_SD)-6.3f  %(REMOTE_SD)-6.3f"
#define STREAM_CPU_ROW(send_size) BARE_STREAM_CPU_ROW(send_size) " %(brand)s\n"
#define UNIX_STREAM_SIZES                                                                          \
	"%(RSR_SIZE)5d  %(LSS_SIZE)5d  %(LOCAL_SEND_SIZE)6d    %(ELAPSED_TIME)-6.2f   "

static const char send_row[] = STREAM_ROW("RSR_SIZE", "LSS_SIZE", "LOCAL_SEND_SIZE");
static const char send_cpu_row[] = STREAM_CPU_ROW("LOCAL_SEND_SIZE");

#define STREAM_DETAILS(near, far)                                                                  \
	"\n"                                                                                       \
	"Alignment      Offset         Bytes    Bytes       " near "s   Bytes    " far "s\n"       \
	"Local  Remote  Local  Remote  Xfered   Per                 Per\n" near "   " far          \
	"    " near "   " far "             " near " (avg)          " far " (avg)\n"
#define SEND_PLACES                                                                                \
	"%(LOCAL_SEND_ALIGN)5d   %(REMOTE_RECV_ALIGN)5d  "                                         \
	"%(LOCAL_SEND_OFFSET)5d   %(REMOTE_RECV_OFFSET)5d "
#define SEGMENT_HEADS                                                                              \
	"Maximum\n"                                                                                \
	"Segment\n"                                                                                \
	"Size (bytes)\n"

static const char stream_details[] = STREAM_DETAILS("Send", "Recv") SEND_PLACES
    "%(LOCAL_BYTES_SENT)6d  %(LOCAL_BYTES_PER_SEND)6.2f    %(LOCAL_SEND_CALLS)6d   "
    "%(REMOTE_BYTES_PER_RECV)6.2f %(REMOTE_RECV_CALLS)6d\n"
    "\n" SEGMENT_HEADS "%(TRANSPORT_MSS)6d\n";

static const char maerts_details[] =
    STREAM_DETAILS("Recv", "Send") "%(LOCAL_RECV_ALIGN)5d   %(REMOTE_RECV_ALIGN)5d  "
				   "%(LOCAL_RECV_OFFSET)5d   %(REMOTE_RECV_OFFSET)5d "
				   "%(LOCAL_BYTES_RECVD)6d  %(LOCAL_BYTES_PER_RECV)6.2f    "
				   "%(LOCAL_RECV_CALLS)6d   "
				   "%(REMOTE_BYTES_PER_SEND)6.2f %(REMOTE_SEND_CALLS)6d\n"
				   "\n" SEGMENT_HEADS "%(TRANSPORT_MSS)6d\n";

static const char sendfile_details[] = STREAM_DETAILS("Send", "Recv") SEND_PLACES
    "%(REMOTE_BYTES_RECVD)6.4g  %(received per send)6.2f    %(LOCAL_SEND_CALLS)6d   "
    "%(received per receive)6.2f %(REMOTE_RECV_CALLS)6d\n"
    "\n" SEGMENT_HEADS "%(TRANSPORT_MSS)6d\n";

static const char unix_stream_details[] = STREAM_DETAILS("Send", "Recv") SEND_PLACES
    "%(LOCAL_BYTES_SENT)6.4g  %(LOCAL_BYTES_PER_SEND)6.2f     %(LOCAL_SEND_CALLS)6d "
    "%(REMOTE_BYTES_PER_RECV)6.2f   %(REMOTE_RECV_CALLS)6d\n";

static const char send_times[] = "\n\nHistogram of time spent in send() call.\n";

static const char transaction_heads[] = "Local /Remote\n"
					"Socket Size   Request  Resp.   Elapsed  Trans.\n"
					"Send   Recv   Size     Size    Time     Rate         \n"
					"bytes  Bytes  bytes    bytes   secs.    per sec   \n\n";

static const char rr_byte_heads[] = "Local /Remote\n"
				    "Socket Size   Request  Resp.   Elapsed  \n"
				    "Send   Recv   Size     Size    Time     Throughput \n"
				    "bytes  Bytes  bytes    bytes   secs.    %(unit)s/sec   \n\n";

/* Heads of the rate and its unit; letters of the CPU methods; unit of work. */
#define TRANSACTION_CPU_HEADS(rate, unit, local, remote, per)                                      \
	"Local /Remote\n"                                                                          \
	"Socket Size   Request Resp.  Elapsed " rate "   CPU    CPU    S.dem   S.dem\n"            \
	"Send   Recv   Size    Size   Time    " unit " local  remote local   remote\n"             \
	"bytes  bytes  bytes   bytes  secs.   per sec  % " local "    % " remote "    us/" per     \
	"   us/" per "\n\n"

static const char connection_cpu_heads[] =
    TRANSACTION_CPU_HEADS("Trans.", "Rate    ", " ", " ", "Tr");
static const char rr_cpu_heads[] = TRANSACTION_CPU_HEADS(
    "Trans.", "Rate    ", "%(LOCAL_CPU_METHOD)c", "%(REMOTE_CPU_METHOD)c", "Tr");
static const char rr_byte_cpu_heads[] = TRANSACTION_CPU_HEADS(
    "Tput  ", "%(unit)-8.8s", "%(LOCAL_CPU_METHOD)c", "%(REMOTE_CPU_METHOD)c", "KB");

/* brand ends the first row, and may be empty. */
#define TRANSACTION_ROWS(brand)                                                                    \
	"%(LSS_SIZE)-6d %(LSR_SIZE)-6d %(REQUEST_SIZE)-6d   %(RESPONSE_SIZE)-6d  "                 \
	"%(ELAPSED_TIME)-6.2f   %(THROUGHPUT)7.2f   " brand "\n"                                   \
	"%(RSS_SIZE)-6d %(RSR_SIZE)-6d\n"
#define TRANSACTION_CPU_ROWS(blanks, brand)                                                        \
	"%(LSS_SIZE)-6d %(LSR_SIZE)-6d %(REQUEST_SIZE)-6d  %(RESPONSE_SIZE)-6d "                   \
	"%(ELAPSED_TIME)-6.2f  %(THROUGHPUT)-6.2f" blanks "%(LOCAL_CPU_UTIL)-6.2f "                \
	"%(REMOTE_CPU_UTIL)-6.2f %(LOCAL_SD)-6.3f  %(REMOTE_SD)-6.3f" brand "\n"                   \
	"%(RSS_SIZE)-6d %(RSR_SIZE)-6d\n"

static const char rr_rows[] = TRANSACTION_ROWS("%(brand)s");
static const char connection_rows[] = TRANSACTION_ROWS("");
static const char connection_cpu_rows[] = TRANSACTION_CPU_ROWS("   ", "");

/* The second column shows an offset under the head of an alignment, as netperf's does. */
static const char rr_details[] =
    "Alignment      Offset         RoundTrip  Trans    Throughput\n"
    "Local  Remote  Local  Remote  Latency    Rate     %(message unit)-8.8s/s\n"
    "Send   Recv    Send   Recv    usec/Tran  per sec  Outbound   Inbound\n"
    "%(LOCAL_SEND_ALIGN)5d  %(REMOTE_RECV_OFFSET)5d   %(LOCAL_SEND_OFFSET)5d  "
    "%(REMOTE_RECV_OFFSET)5d   %(RT_LATENCY)-6.3f   %(TRANSACTION_RATE)-6.3f "
    "%(outbound)-6.3f    %(inbound)-6.3f\n";

#define CONNECTION_DETAILS(second)                                                                 \
	"Alignment      Offset\n"                                                                  \
	"Local  Remote  Local  Remote\n"                                                           \
	"Send   Recv    Send   Recv\n"                                                             \
	"%(LOCAL_SEND_ALIGN)5d  %(" second ")5d   %(LOCAL_SEND_OFFSET)5d  "                        \
	"%(REMOTE_RECV_OFFSET)5d\n"

static const char round_times[] = "\nHistogram of request/response times\n";

/* UDP_RR: say how many responses and requests are not in the rate. A request is one send call. */
static void
remark_lost(const struct view *v)
{
	if (number(v, "DUPLICATE_RESPONSES") > 0 || number(v, "LATE_RESPONSES") > 0 ||
	    number(v, "STRAY_RESPONSES") > 0) {
		put(v, "%(DUPLICATE_RESPONSES)d duplicate, %(LATE_RESPONSES)d late and "
		       "%(STRAY_RESPONSES)d stray responses do not count\n");
	}
	if (number(v, "LOST_REQUESTS") > 0) {
		put(v, "%(LOST_REQUESTS)d of %(LOCAL_SEND_CALLS)d requests got no response in "
		       "time and count as lost\n");
	}
}

/* Print the mean of the transactions' times, unless one is infinite (NP_HIST_NEVER). */
static void
remark_mean(const struct view *v)
{
	struct np_hist_summary times = { .mean = (double)NAN };

	if (v->c->hist != NULL) {
		np_hist_summarise(v->c->hist, &times);
	}
	if (!isnan(times.mean)) {
		fprintf(v->out, "Average response time %llu usecs\n",
			(unsigned long long)times.mean / 1000);
	}
}

static const char datagram_heads[] = "Socket  Message  Elapsed      Messages                \n"
				     "Size    Size     Time         Okay Errors   Throughput\n"
				     "bytes   bytes    secs            #      #   %(unit)s/sec\n\n";

/* Texts named cpu_ are for -c or -C. */
struct layout {
	const char *name;
	/* For tests that print title and heads before they run; NULL: heads above the rows. */
	const char *title;
	const char *heads, *cpu_heads;
	const char *byte_heads, *byte_cpu_heads; /* for transactions in bytes (-f); may be NULL */
	const char *rows, *cpu_rows;
	const char *figure, *cpu_figure;      /* the only output at verbosity 0 */
	bool bare_at_2;                       /* no rows above verbosity 1; else above 2 */
	const char *details;                  /* from verbosity 2 on; may be NULL */
	void (*remark)(const struct view *v); /* below the details; may be NULL */
	const char *histogram;                /* its title; NULL: it is not shown */
};

static const char branded_figure[] = "%(THROUGHPUT)7.2f %(brand)s\n";
static const char branded_demand[] = "%(demand)6.3f %(method)c %(brand)s\n";
static const char bare_figure[] = "%(THROUGHPUT)7.2f\n";
static const char bare_demand[] = "%(demand)6.3f\n";
static const char lettered_demand[] = "%(demand)6.3f %(method)c\n";

/* Members that several layouts share. */
#define CONNECTION_TABLE                                                                           \
	.heads = transaction_heads, .cpu_heads = connection_cpu_heads, .rows = connection_rows,    \
	.cpu_rows = connection_cpu_rows, .figure = bare_figure, .cpu_figure = bare_demand
#define REQUEST_TABLE                                                                              \
	.heads = transaction_heads, .cpu_heads = rr_cpu_heads, .byte_heads = rr_byte_heads,        \
	.byte_cpu_heads = rr_byte_cpu_heads, .rows = rr_rows, .figure = branded_figure,            \
	.cpu_figure = branded_demand
#define SEND_TABLE                                                                                 \
	.heads = stream_heads, .cpu_heads = send_cpu_heads, .rows = send_row,                      \
	.cpu_rows = send_cpu_row, .figure = branded_figure, .cpu_figure = branded_demand

static const struct layout layouts[] = {
	{ .name = "stream", SEND_TABLE, .details = stream_details, .histogram = send_times },
	/* With CPU figures the buffer sizes are those of TCP_STREAM (RSR, LSS), as in netperf. */
	{ .name = "maerts",
	  .heads = stream_heads,
	  .cpu_heads = STREAM_CPU_HEADS("Recv", "Send"),
	  .rows = STREAM_ROW("LSR_SIZE", "RSS_SIZE", "REMOTE_SEND_SIZE"),
	  .cpu_rows = STREAM_CPU_ROW("REMOTE_SEND_SIZE"),
	  .figure = branded_figure,
	  .cpu_figure = branded_demand,
	  .details = maerts_details,
	  .histogram = "\n\nHistogram of time spent in recv() call.\n" },
	{ .name = "sendfile", SEND_TABLE, .details = sendfile_details, .histogram = send_times },
	{ .name = "sctp_stream",
	  .heads = stream_heads,
	  .cpu_heads = send_cpu_heads,
	  .rows = BARE_STREAM_ROW("RSR_SIZE", "LSS_SIZE", "LOCAL_SEND_SIZE") "\n",
	  .cpu_rows = BARE_STREAM_CPU_ROW("LOCAL_SEND_SIZE") "\n",
	  .figure = bare_figure,
	  .cpu_figure = lettered_demand,
	  .details = sendfile_details,
	  .histogram = send_times },
	{ .name = "sctp_rr",
	  .heads = transaction_heads,
	  .cpu_heads = rr_cpu_heads,
	  .rows = connection_rows,
	  .cpu_rows = TRANSACTION_CPU_ROWS("  ", ""),
	  .figure = bare_figure,
	  .cpu_figure = lettered_demand,
	  .details = CONNECTION_DETAILS("REMOTE_RECV_OFFSET"),
	  .histogram = round_times },
	{ .name = "rr",
	  REQUEST_TABLE,
	  .cpu_rows = TRANSACTION_CPU_ROWS("  ", " %(brand)s"),
	  .details = rr_details,
	  .histogram = round_times },
	{ .name = "udp_rr",
	  REQUEST_TABLE,
	  .cpu_rows = TRANSACTION_CPU_ROWS("   ", " %(brand)s"),
	  .remark = remark_lost,
	  .histogram = "\nHistogram of request/reponse times.\n" },
	{ .name = "crr",
	  CONNECTION_TABLE,
	  .details = "\n" CONNECTION_DETAILS("REMOTE_RECV_ALIGN"),
	  .histogram = round_times },
	{ .name = "cc",
	  CONNECTION_TABLE,
	  .details = "\n" CONNECTION_DETAILS("REMOTE_RECV_OFFSET"),
	  .histogram = round_times },
	/* At verbosity 0 the letter of the CPU method is the near end's, even with -C alone. */
	{ .name = "udp_stream",
	  .heads = datagram_heads,
	  .cpu_heads = "Socket  Message  Elapsed      Messages                   CPU      Service\n"
		       "Size    Size     Time         Okay Errors   Throughput   Util     Demand\n"
		       "bytes   bytes    secs            #      #   %(unit)s/sec % "
		       "%(LOCAL_CPU_METHOD)c%(REMOTE_CPU_METHOD)c     us/KB\n\n",
	  .rows = "%(LSS_SIZE)6d  %(LOCAL_SEND_SIZE)6d   %(ELAPSED_TIME)-7.2f   "
		  "%(LOCAL_SEND_CALLS)7d %(FAILED_SENDS)6d    %(LOCAL_SEND_THROUGHPUT)7.2f\n"
		  "%(RSR_SIZE)6d           %(ELAPSED_TIME)-7.2f   "
		  "%(REMOTE_RECV_CALLS)7d           %(REMOTE_RECV_THROUGHPUT)7.2f\n\n",
	  .cpu_rows = "%(LSS_SIZE)6d  %(LOCAL_SEND_SIZE)6d   %(ELAPSED_TIME)-7.2f   "
		      "%(LOCAL_SEND_CALLS)7d %(FAILED_SENDS)6d    %(LOCAL_SEND_THROUGHPUT)7.1f     "
		      "%(LOCAL_CPU_UTIL)-6.2f   %(LOCAL_SD)-6.3f\n"
		      "%(RSR_SIZE)6d           %(ELAPSED_TIME)-7.2f   "
		      "%(REMOTE_RECV_CALLS)7d           %(REMOTE_RECV_THROUGHPUT)7.1f     "
		      "%(REMOTE_CPU_UTIL)-6.2f   %(REMOTE_SD)-6.3f\n\n",
	  .figure = "%(LOCAL_SEND_THROUGHPUT)7.2f\n",
	  .cpu_figure = "%(demand)6.2f %(LOCAL_CPU_METHOD)c\n",
	  .histogram = "\nHistogram of time spent in send() call\n" },
	{ .name = "mss",
	  .heads = SEGMENT_HEADS "\n",
	  .cpu_heads = SEGMENT_HEADS "\n",
	  .rows = "%(TRANSPORT_MSS)d %(brand)s\n",
	  .cpu_rows = "%(TRANSPORT_MSS)d %(brand)s\n",
	  .figure = "%(TRANSPORT_MSS)d %(brand)s\n",
	  .cpu_figure = "%(TRANSPORT_MSS)d %(brand)s\n" },
	{ .name = "stream_stream",
	  .title = "STREAM STREAM TEST\n",
	  .heads = stream_heads,
	  .cpu_heads = unix_stream_cpu_heads,
	  .rows = UNIX_STREAM_SIZES "%(THROUGHPUT)7.2f   \n",
	  .cpu_rows = UNIX_STREAM_SIZES
	  "  %(THROUGHPUT)7.2f   %(LOCAL_CPU_UTIL)-6.2f %(REMOTE_CPU_UTIL)-6.2f  "
	  "%(LOCAL_SD)-6.3f  %(REMOTE_SD)-6.3f\n",
	  .figure = bare_figure,
	  .cpu_figure = bare_demand,
	  .details = unix_stream_details },
	{ .name = "stream_rr",
	  .title = "STREAM REQUEST/RESPONSE TEST\n",
	  CONNECTION_TABLE,
	  .bare_at_2 = true,
	  .details = CONNECTION_DETAILS("REMOTE_RECV_ALIGN") },
	{ .name = "dg_stream",
	  .title = "DG UNIDIRECTIONAL SEND TEST\n",
	  .heads = datagram_heads,
	  .cpu_heads = "Socket  Message  Elapsed      Messages                   CPU     Service\n"
		       "Size    Size     Time         Okay Errors   Throughput   Util    Demand\n"
		       "bytes   bytes    secs            #      #   %(unit)s/sec   %       "
		       "us/KB\n\n",
	  .rows = "%(LSS_SIZE)5d   %(LOCAL_SEND_SIZE)5d    %(ELAPSED_TIME)-7.2f   "
		  "%(LOCAL_SEND_CALLS)7d %(FAILED_SENDS)6d    %(LOCAL_SEND_THROUGHPUT)7.2f\n"
		  "%(RSR_SIZE)5d            %(ELAPSED_TIME)-7.2f   "
		  "%(REMOTE_RECV_CALLS)7d           %(REMOTE_RECV_THROUGHPUT)7.2f\n\n",
	  .cpu_rows = "%(LSS_SIZE)5d   %(LOCAL_SEND_SIZE)5d    %(ELAPSED_TIME)-7.2f   "
		      "%(LOCAL_SEND_CALLS)7d %(FAILED_SENDS)6d    %(LOCAL_SEND_THROUGHPUT)7.1f"
		      "      %(LOCAL_CPU_UTIL)-6.2f  %(LOCAL_SD)-6.3f\n"
		      "%(RSR_SIZE)5d            %(ELAPSED_TIME)-7.2f   "
		      "%(REMOTE_RECV_CALLS)7d           %(REMOTE_RECV_THROUGHPUT)7.1f"
		      "      %(REMOTE_CPU_UTIL)-6.2f  %(REMOTE_SD)-6.3f\n\n",
	  .figure = "%(LOCAL_SEND_THROUGHPUT)7.2f\n",
	  .cpu_figure = "%(demand)6.2f\n",
	  .bare_at_2 = true },
	{ .name = "dg_rr",
	  .title = "DG REQUEST/RESPONSE TEST\n",
	  CONNECTION_TABLE,
	  .remark = remark_mean },
};

static const struct layout *
find_layout(const char *name)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (strcmp(layouts[i].name, name) == 0) {
			return &layouts[i];
		}
	}
	return NULL;
}

static void
put_heads(const struct view *v, const struct layout *l)
{
	bool cpu = with_cpu(v->c);

	if (l->byte_heads != NULL && v->c->unit->letter != 'x') { /* in bytes (-f) */
		put(v, cpu ? l->byte_cpu_heads : l->byte_heads);
	} else {
		put(v, cpu ? l->cpu_heads : l->heads);
	}
}

void
np_classic_preface(FILE *out, const struct np_classic *c)
{
	const struct np_record nothing = { .value[0].known = false }; /* before the test */
	const struct view v = { .out = out, .c = c, .r = &nothing };
	const struct layout *l = find_layout(c->layout);

	if (l != NULL && l->title != NULL && c->headers) {
		fputs(l->title, out);
		put_heads(&v, l);
	}
}

void
np_classic_print(FILE *out, const struct np_classic *c, const struct np_record *r)
{
	const struct view v = { .out = out, .c = c, .r = r };
	const struct layout *l = find_layout(c->layout);
	bool cpu = with_cpu(c);

	if (l == NULL || c->verbosity < 0) {
		return;
	}
	if (c->verbosity == 0) {
		put(&v, cpu ? l->cpu_figure : l->figure);
		return;
	}
	if (c->verbosity == 1 || (c->verbosity == 2 && !l->bare_at_2)) {
		if (c->headers && l->title == NULL) { /* else np_classic_preface() has */
			put_heads(&v, l);
		}
		put(&v, cpu ? l->cpu_rows : l->rows);
	}
	if (c->verbosity < 2) {
		return;
	}
	if (l->details != NULL) {
		put(&v, l->details);
	}
	if (l->remark != NULL) {
		l->remark(&v);
	}
	if (l->histogram != NULL && c->hist != NULL) {
		fputs(l->histogram, out);
		np_histogram_print(out, c->hist);
	}
}

void
np_confidence_warn(FILE *out, const struct np_record *r)
{
	fprintf(out,
		"!!! WARNING\n"
		"!!! Desired confidence was not achieved within the specified iterations.\n"
		"!!! This implies that there was variability in the test environment that\n"
		"!!! must be investigated before going further.\n"
		"!!! Confidence intervals: Throughput      : %4.3f%%\n"
		"!!!                       Local CPU util  : %4.3f%%\n"
		"!!!                       Remote CPU util : %4.3f%%\n\n",
		np_record_get_real(r, NP_M_THROUGHPUT_CONFID),
		np_record_get_real(r, NP_M_LOCAL_CPU_CONFID),
		np_record_get_real(r, NP_M_REMOTE_CPU_CONFID));
}
