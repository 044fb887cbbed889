#include "cli/modes.h"

#include <math.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "bench/bench.h"
#include "stats/ceiling.h"

static const double MOST_RATE = 1e18, MOST_DELAY = 1e9; /* so that all figures are finite */

/* One line of input. */
struct question {
	const struct np_bench *bench;
	struct np_encap encap;
	uint32_t family, timestamps;
	uint32_t size, request, response, in_flight;
	double rate_bps, delay_s; /* of the link, each way; rate 0: not given */
	bool sized;               /* size was given; else a message fills a packet */
	char error[256];          /* set if a function below returns false */
};

/* Words with whole numbers, and where these are in a question (uint32_t). */
static const struct field {
	const char *name;
	size_t at;
	uint32_t least, most;
} fields[] = {
	{ "mtu", offsetof(struct question, encap.mtu), 1, UINT32_MAX },
	{ "mss", offsetof(struct question, encap.mss), 0, UINT32_MAX },
	{ "header", offsetof(struct question, encap.framing.header), 0, 1 << 20 },
	{ "rest", offsetof(struct question, encap.framing.rest), 0, 1 << 20 },
	{ "least", offsetof(struct question, encap.framing.least), 0, 1 << 20 },
	{ "family", offsetof(struct question, family), 0, UINT32_MAX },
	{ "timestamps", offsetof(struct question, timestamps), 0, 1 },
	{ "size", offsetof(struct question, size), 0, UINT32_MAX },
	{ "request", offsetof(struct question, request), 0, UINT32_MAX },
	{ "response", offsetof(struct question, response), 0, UINT32_MAX },
	{ "in_flight", offsetof(struct question, in_flight), 1, UINT32_MAX },
};

/* Set the error of the answer. Returns false. */
static bool __attribute__((format(printf, 2, 3))) refuse(struct question *q, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(q->error, sizeof(q->error), fmt, ap);
	va_end(ap);
	return false;
}

/* A finite number that is not negative. */
static bool
read_real(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end != text && *end == '\0' && isfinite(*out) && *out >= 0;
}

/* Take one NAME=VALUE of a question. False: it is wrong. */
static bool
read_word(struct question *q, const char *name, const char *value)
{
	int64_t whole;

	if (strcmp(name, "test") == 0) {
		q->bench = np_bench_find(value);
		return q->bench != NULL || refuse(q, "%s: not a test of this netperf", value);
	}
	if (strcmp(name, "rate") == 0) {
		return ((read_real(value, &q->rate_bps) ||
			 np_parse_rate(value, &q->rate_bps) == 0) &&
			q->rate_bps >= 1 && q->rate_bps <= MOST_RATE) ||
		       refuse(q, "rate=%s: not a rate (try 100mbit)", value);
	}
	if (strcmp(name, "delay") == 0) {
		return (read_real(value, &q->delay_s) && q->delay_s <= MOST_DELAY) ||
		       refuse(q, "delay=%s: not a number of seconds", value);
	}
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		const struct field *f = &fields[i];

		if (strcmp(name, f->name) != 0) {
			continue;
		}
		if (np_parse_int(value, &whole) != 0 || whole < f->least || whole > f->most) {
			return refuse(q, "%s=%s: not a number from %u to %u", name, value, f->least,
				      f->most);
		}
		memcpy((char *)q + f->at, &(uint32_t){ (uint32_t)whole }, sizeof(uint32_t));
		q->sized = q->sized || strcmp(name, "size") == 0;
		return true;
	}
	return refuse(q, "%s: not a name that a question has", name);
}

/* Fill *q with the defaults, then by the line's words NAME=VALUE. False: q->error says why. */
static bool
parse_line(struct question *q, char *line)
{
	char *rest = NULL;

	*q = (struct question){ .bench = np_bench_find("TCP_STREAM"),
				.encap = { .mtu = 1500, .framing = NP_FRAMING_ETHERNET },
				.family = 4,
				.timestamps = 1,
				.request = 1,
				.response = 1,
				.in_flight = 1 };
	for (char *word = strtok_r(line, " \t\r\n", &rest); word != NULL;
	     word = strtok_r(NULL, " \t\r\n", &rest)) {
		char *equals = strchr(word, '=');

		if (equals == NULL) {
			return refuse(q, "%s: not a word such as mtu=1500", word);
		}
		*equals = '\0';
		if (!read_word(q, word, equals + 1)) {
			return false;
		}
	}
	q->encap.family = (int)q->family;
	q->encap.message_header = q->bench->transport->packets.header;
	q->encap.timestamps = q->timestamps == 1;
	return true;
}

static bool
is_sctp(const struct np_bench *b)
{
	return b->transport->ip_protocol == IPPROTO_SCTP;
}

/* Does such a link exist, and do messages of both sizes fit? Only datagrams have a limit. */
static bool
check_sizes(struct question *q, uint32_t size, uint32_t other)
{
	uint32_t least = np_ceiling_least_mtu(q->encap.family), most;

	if (q->encap.family != 4 && q->encap.family != 6) {
		return refuse(q, "IP version %d: 4 or 6", q->encap.family);
	}
	if (!np_ceiling_possible(&q->encap)) {
		return refuse(q, "MTU %u: IPv%d needs %u", q->encap.mtu, q->encap.family, least);
	}
	if (is_sctp(q->bench)) {
		return np_ceiling_fragment(&q->encap) > 0 ||
		       refuse(q, "MTU %u: leaves no room for payload", q->encap.mtu);
	}
	if (q->bench->transport->reliable) {
		return np_ceiling_segment(&q->encap) > 0 ||
		       refuse(q, "MSS %u: leaves no room for payload", q->encap.mss);
	}
	most = np_ceiling_most_datagram(&q->encap);
	size = size > other ? size : other;
	return size <= most || refuse(q, "a datagram of %u bytes: %s over IPv%d takes %u at most",
				      size, q->bench->transport->name, q->encap.family, most);
}

/* Print payload, bytes on the wire and share of a message or, over TCP, of a full segment. */
static bool
answer_stream(struct question *q, FILE *out)
{
	bool sctp = is_sctp(q->bench), tcp = q->bench->transport->reliable && !sctp;
	uint32_t full = sctp ? np_ceiling_fragment(&q->encap) : np_ceiling_datagram(&q->encap);
	double wire, share;

	q->encap.options = q->bench->transport->packets.stream_options;
	q->size = q->sized ? q->size : full;
	if (!check_sizes(q, q->size, 0)) {
		return false;
	}
	/* Bytes on the wire for each message: a fraction if messages share packets. */
	wire = sctp  ? q->size / np_ceiling_sctp(&q->encap, q->size)
	       : tcp ? (double)np_ceiling_segment_cost(&q->encap)
		     : (double)np_ceiling_datagram_cost(&q->encap, q->size);
	if (!(wire > 0)) {
		return refuse(
		    q, sctp ? "messages without any bytes on the wire (size, least, header, rest)"
			    : "packets without any bytes on the wire (least, header, rest)");
	}
	q->size = tcp ? np_ceiling_segment(&q->encap) : q->size;
	share = sctp  ? np_ceiling_sctp(&q->encap, q->size)
		: tcp ? np_ceiling_tcp(&q->encap)
		      : q->size / wire;
	fprintf(out, "{\"test\": \"%s\", \"payload\": %u, \"wire\": %.17g, \"share\": %.17g",
		q->bench->name, q->size, wire, share);
	if (q->rate_bps > 0) {
		fprintf(out, ", \"bits_per_s\": %.17g", q->rate_bps * share);
	}
	fprintf(out, "}\n");
	return true;
}

/* Print the bytes of a transaction on the wire, and how many fit into the rate. */
static bool
answer_transactions(struct question *q, FILE *out)
{
	const struct np_bench *b = q->bench;
	enum np_turns test = !b->transport->reliable        ? NP_TURNS_UDP_RR
			     : is_sctp(b)                   ? NP_TURNS_SCTP_RR
			     : !b->pattern->connection_test ? NP_TURNS_TCP_RR
			     : b->pattern->sized            ? NP_TURNS_TCP_CRR
							    : NP_TURNS_TCP_CC;
	struct np_ceiling_exchange x;
	uint64_t fuller; /* bytes in the direction that has more of them */

	/* The ceiling of MPTCP_CRR is that of TCP_CRR (doc/ceilings.md). */
	q->encap.options =
	    q->bench->pattern->connection_test ? 0 : q->bench->transport->packets.turn_options;
	if (!check_sizes(q, q->request, q->response)) {
		return false;
	}
	if (!np_ceiling_exchange(&q->encap, test, q->request, q->response, &x) ||
	    (fuller = x.there > x.back ? x.there : x.back) == 0) {
		return refuse(q, "a transaction without bytes needs no packet");
	}
	fprintf(out, "{\"test\": \"%s\", \"there\": %llu, \"back\": %llu, \"turns\": %u",
		q->bench->name, (unsigned long long)x.there, (unsigned long long)x.back, x.turns);
	if (q->rate_bps > 0) {
		fprintf(out, ", \"per_s\": %.17g, \"at_once_per_s\": %.17g",
			np_ceiling_turns(&q->encap, test, q->request, q->response, q->rate_bps,
					 q->delay_s, q->in_flight),
			q->rate_bps / ((double)fuller * 8));
	}
	for (uint32_t i = 0; i < x.parts; i++) {
		fprintf(out, "%s{\"name\": \"%s\", \"packets\": %llu, \"wire\": %llu}",
			i == 0 ? ", \"sent\": [" : ", ", x.part[i].name,
			(unsigned long long)x.part[i].packets, (unsigned long long)x.part[i].wire);
	}
	fprintf(out, "]}\n");
	return true;
}

/* Print the most that the link can carry in that test, as JSON. False: q->error says why not. */
static bool
print_ceiling(struct question *q, FILE *out)
{
	const struct np_bench *b = q->bench;

	if (b->transport->encrypts) {
		q->encap.tls_send = q->sized && q->size > 0 ? q->size : NP_TLS_RECORD_MAX;
	}
	if (b->transport->encrypts && b->pattern->connection_test) {
		return refuse(q, "%s: what a handshake takes is the library's to say", b->name);
	}
	if (b->pattern->probe || b->transport->ip_protocol == 0 || b->transport->link ||
	    (is_sctp(b) && b->pattern->connection_test)) {
		return refuse(q, "%s: has no ceiling (try TCP_STREAM, UDP_STREAM, TCP_RR)",
			      b->name);
	}
	return b->pattern->transactions ? answer_transactions(q, out) : answer_stream(q, out);
}

void
np_ceilings_answer(FILE *in, FILE *out)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, in) > 0) {
		struct question q;

		if (!parse_line(&q, line) || !print_ceiling(&q, out)) {
			/* It may contain words of the question: make it a string of JSON. */
			np_text_printable(q.error);
			for (char *c = q.error; *c != '\0'; c++) {
				*c = *c == '"' || *c == '\\' ? '\'' : *c;
			}
			fprintf(out, "{\"error\": \"%s\"}\n", q.error);
		}
		fflush(out);
	}
	free(line);
}
