/* The table of --human. A function X_row() adds the text of a row; empty ones are not printed. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "out/format.h"

enum { LABEL = 16, LINE = 79, ROW_TEXT = 2048 }; /* columns, columns, bytes */

/* The text of a row, without its label. */
struct row {
	char text[ROW_TEXT];
	size_t len;
};

#define ADD(row, ...)                                                                              \
	((row)->len = np_text_add((row)->text, sizeof((row)->text), (row)->len, __VA_ARGS__))

struct word {
	char text[32];
};

static struct word
si(double v, int digits, const char *unit)
{
	struct word w;

	np_si(v, digits, unit, w.text, sizeof(w.text));
	return w;
}

/* A rate, with decimals only below 100, also when rounded. */
static struct word
per_second(double v)
{
	struct word w;

	snprintf(w.text, sizeof(w.text), "%.*f/s", v >= 99.995 ? 0 : 2, v);
	return w;
}

/* v: a throughput in the unit of -f, shown in bit/s; or transactions a second. */
static struct word
rate(const struct np_look *l, double v)
{
	return l->transactions ? per_second(v) : si(v * l->classic.unit->divisor * 8, 4, "bit/s");
}

/* A time in ns, as seconds with an SI prefix. */
static struct word
seconds(double ns)
{
	/* "never" with a margin: figures in us are not exact. */
	return ns >= 0.999 * (double)NP_HIST_NEVER ? (struct word){ "never" }
						   : si(ns / 1e9, 3, "s");
}

/* Was the figure measured, counted or asked for? */
static bool
known(const struct np_figures *f, enum np_metric_id id)
{
	return np_record_measured(f->record, id);
}

static double
real(const struct np_figures *f, enum np_metric_id id)
{
	return np_record_get_real(f->record, id);
}

static bool
is_text(const char *text)
{
	return text != NULL && text[0] != '\0';
}

/* Is the test a stream each way? */
static bool
both_ways(const struct np_look *l, const struct np_figures *f)
{
	return !l->transactions && !known(f, NP_M_TRANSACTION_RATE) &&
	       real(f, NP_M_LOCAL_SEND_THROUGHPUT) > 0 && real(f, NP_M_LOCAL_RECV_THROUGHPUT) > 0;
}

/* Were the test's messages datagrams of UDP or UDP-Lite? */
static bool
is_datagrams(const struct np_figures *f)
{
	return strncasecmp(np_record_get_text(f->record, NP_M_PROTOCOL), "UDP", 3) == 0;
}

/* Print a label and a row, wrapped between words; nothing if the row is empty. Empties the row. */
static void
put_row(FILE *out, const char *label, struct row *row)
{
	const char *at = row->text;
	int column = LABEL;

	np_text_printable(row->text);
	if (row->len == 0) {
		return;
	}
	fprintf(out, "%-*s", LABEL, label);
	for (size_t n; (n = strcspn(at, " ")) > 0 || *at != '\0'; at += n, at += *at == ' ') {
		if (column > LABEL && column + 1 + (int)n > LINE) {
			fprintf(out, "\n%*s", LABEL, "");
			column = LABEL;
		}
		fprintf(out, "%s%.*s", column > LABEL ? " " : "", (int)n, at);
		column += (int)n + (column > LABEL);
	}
	putc('\n', out);
	row->len = 0;
}

/* Print a text as a row, if there is any. */
static void
put_text(FILE *out, const char *label, const char *text)
{
	struct row row = { .len = 0 };

	ADD(&row, "%s", text != NULL ? text : "");
	put_row(out, label, &row);
}

/* The test, the time that each iteration measured, and the engine unless it is the default. */
static void
test_row(const struct np_look *l, const struct np_figures *f, struct row *row)
{
	const char *engine = np_record_get_text(f->record, NP_M_LOCAL_ENGINE);

	ADD(row, "%s, %.2f s", is_text(l->human->test) ? l->human->test : "a test",
	    real(f, NP_M_ELAPSED_TIME));
	if (l->human->rates.count > 1) {
		ADD(row, " in each of %u iterations", l->human->rates.count);
	}
	if (is_text(engine) && strcmp(engine, "sync") != 0) {
		ADD(row, ", engine %s", engine);
	}
}

/* Add an end: address, the name if the address does not begin with it, what it does ("sends"). */
static void
end_row(const char *address, const char *name, const char *does, struct row *row)
{
	if (!is_text(address) && !is_text(name)) {
		return;
	}
	ADD(row, "%s", is_text(address) ? address : name);
	if (is_text(address) && is_text(name) &&
	    (strncmp(address, name, strlen(name)) != 0 || address[strlen(name)] != ' ')) {
		ADD(row, " (%s)", name);
	}
	ADD(row, "%s%s", is_text(does) ? ", " : "", does);
}

/* The throughput with its confidence interval, by default at 95 %. */
static void
throughput_row(const struct np_look *l, const struct np_figures *f, struct row *row)
{
	double mean = real(f, NP_M_THROUGHPUT), out = real(f, NP_M_LOCAL_SEND_THROUGHPUT);
	double in = real(f, NP_M_LOCAL_RECV_THROUGHPUT), width;
	int level = known(f, NP_M_CONFIDENCE_LEVEL) ? (int)real(f, NP_M_CONFIDENCE_LEVEL) : 95;

	ADD(row, "%s", rate(l, mean).text);
	width = np_series_width(&l->human->rates, level); /* full, as a share of the mean */
	if (l->human->rates.count > 1 && isfinite(width)) {
		ADD(row, " +- %s", rate(l, mean * width / 2).text);
		/* %.2g would print 1e+02. */
		ADD(row, 50 * width < 99.5 ? " (%.2g %%)" : " (%.0f %%)", 50 * width);
		ADD(row, " at %d %% confidence", level);
	}
	ADD(row, "%s", l->missed ? ", less sure than was asked for" : "");
	if (both_ways(l, f) && is_datagrams(f)) { /* what arrived, of what was sent */
		if (!known(f, NP_M_REMOTE_RECV_THROUGHPUT) ||
		    !known(f, NP_M_REMOTE_SEND_THROUGHPUT)) {
			return;
		}
		ADD(row, "; %s of %s arrived there, %s of %s here",
		    rate(l, real(f, NP_M_REMOTE_RECV_THROUGHPUT)).text, rate(l, out).text,
		    rate(l, in).text, rate(l, real(f, NP_M_REMOTE_SEND_THROUGHPUT)).text);
	} else if (both_ways(l, f)) {
		ADD(row, "; %s sent, %s received", rate(l, out).text, rate(l, in).text);
	}
}

/* The number of connections, how the throughput was divided among them, and threads. */
static void
flows_row(const struct np_look *l, const struct np_figures *f, struct row *row)
{
	if (real(f, NP_M_FLOWS) < 2 || !known(f, NP_M_JAIN_INDEX)) {
		return;
	}
	ADD(row, "%.0f", real(f, NP_M_FLOWS));
	/* Datagrams both ways: what arrived of each flow at the far end is not known. */
	if (!both_ways(l, f) || !is_datagrams(f)) {
		ADD(row, ", least %s, most %s, Jain's index %.3f",
		    rate(l, real(f, NP_M_MIN_FLOW_THROUGHPUT)).text,
		    rate(l, real(f, NP_M_MAX_FLOW_THROUGHPUT)).text, real(f, NP_M_JAIN_INDEX));
	}
	ADD(row, ", threads %.0f local", real(f, NP_M_THREADS));
	if (known(f, NP_M_REMOTE_THREADS)) {
		ADD(row, ", %.0f remote", real(f, NP_M_REMOTE_THREADS));
	}
}

/* Add "3 of 100 datagrams (3 %)", if there were any. what: "datagrams". */
static void
put_share(struct row *row, double lost, double all, const char *what)
{
	if (all > 0) {
		ADD(row, "%.0f of %.0f %s (%.3g %%)", lost, all, what, 100 * lost / all);
	}
}

/* Lost datagrams, by their numbers if known; of transactions, requests without a response. */
static void
loss_row(const struct np_figures *f, struct row *row)
{
	bool datagrams = is_datagrams(f);
	double lost = real(f, NP_M_LOST_DATAGRAMS), unique = real(f, NP_M_UNIQUE_DATAGRAMS);
	double sent = real(f, NP_M_LOCAL_SEND_CALLS), arrived = real(f, NP_M_REMOTE_RECV_CALLS);

	if (known(f, NP_M_LOST_DATAGRAMS) && known(f, NP_M_UNIQUE_DATAGRAMS)) {
		put_share(row, lost, lost + unique, "datagrams");
	} else if (datagrams && known(f, NP_M_TRANSACTION_RATE)) {
		put_share(row, real(f, NP_M_LOST_REQUESTS), sent, "requests");
	} else if (datagrams && known(f, NP_M_REMOTE_RECV_CALLS) &&
		   strcasecmp(np_record_get_text(f->record, NP_M_DIRECTION), "Send") == 0) {
		if (known(f, NP_M_REMOTE_SEND_CALLS)) { /* --both: the other direction, too */
			sent += real(f, NP_M_REMOTE_SEND_CALLS);
			arrived += real(f, NP_M_LOCAL_RECV_CALLS);
		}
		put_share(row, fmax(sent - arrived, 0), sent, "datagrams"); /* < 0: duplicates */
	}
}

/* --rate: what should be sent, and what was. */
static void
rate_row(const struct np_figures *f, struct row *row)
{
	if (!known(f, NP_M_ASKED_RATE)) {
		return;
	}
	ADD(row, "%s of %s asked for", per_second(real(f, NP_M_SENT_RATE)).text,
	    per_second(real(f, NP_M_ASKED_RATE)).text);
	if (!known(f, NP_M_DUE_OPERATIONS)) {
		return; /* messages of a stream */
	}
	ADD(row, "; of %.0f due %.0f sent (%.0f late), %.0f not answered; lateness P99 %s, max %s",
	    real(f, NP_M_DUE_OPERATIONS), real(f, NP_M_SENT_OPERATIONS),
	    real(f, NP_M_LATE_OPERATIONS), real(f, NP_M_UNANSWERED_OPERATIONS),
	    seconds(1e3 * real(f, NP_M_P99_LATENESS)).text,
	    seconds(1e3 * real(f, NP_M_MAX_LATENESS)).text);
	if (known(f, NP_M_ARRIVALS_P_VALUE) && real(f, NP_M_ARRIVALS_P_VALUE) < 0.001) {
		ADD(row, "; arrivals were not Poisson (Anderson-Darling p < 0.001)");
	}
	if (known(f, NP_M_OUTAGE_BEGIN)) {
		ADD(row, "; longest outage %s at %s", seconds(1e6 * real(f, NP_M_OUTAGE)).text,
		    seconds(1e9 * real(f, NP_M_OUTAGE_BEGIN)).text);
	}
	if (strcmp(np_record_get_text(f->record, NP_M_GENERATOR_LIMITS), "no") != 0) {
		ADD(row, "; the load generator was the bottleneck");
	}
}

/* The latency that --beside measured before the test (idle) and during it (loaded). */
static void
latency_beside_row(const struct np_figures *f, struct row *row)
{
	static const struct {
		const char *when;
		enum np_metric_id p50, p99, rpm;
	} parts[] = {
		{ "idle", NP_M_IDLE_P50_LATENCY, NP_M_IDLE_P99_LATENCY, NP_M_IDLE_RPM },
		{ "loaded", NP_M_LOADED_P50_LATENCY, NP_M_LOADED_P99_LATENCY, NP_M_LOADED_RPM },
	};
	const char *died = np_record_get_text(f->record, NP_M_LOAD_DIED);

	for (size_t i = 0; i < 2; i++) {
		if (known(f, parts[i].p50)) {
			ADD(row, "%s%s P50 %s, P99 %s, %.0f round trips a minute",
			    row->len > 0 ? "; " : "", parts[i].when,
			    seconds(1e3 * real(f, parts[i].p50)).text,
			    seconds(1e3 * real(f, parts[i].p99)).text, real(f, parts[i].rpm));
		}
	}
	if (is_text(died) && strcmp(died, "no") != 0) {
		ADD(row, "%s%s", row->len > 0 ? "; " : "", died);
	}
}

/* Print two rows: the extremes and the mean of the test's times, and their percentiles. */
static void
latency_rows(FILE *out, const struct np_look *l, const struct np_figures *f)
{
	static const struct {
		const char *name;
		double share;
	} percentiles[] = { { "P50", 0.5 }, { "P90", 0.9 }, { "P99", 0.99 }, { "P99.9", 0.999 } };
	struct row row = { .len = 0 };
	struct np_hist_summary s;

	if (f->latency == NULL || np_hist_count(f->latency) == 0) {
		return;
	}
	np_hist_summarise(f->latency, &s);
	ADD(&row, "min %s, ", seconds((double)s.min).text);
	if (!isnan(s.mean)) {
		ADD(&row, "mean %s, ", seconds(s.mean).text);
	}
	ADD(&row, "max %s of %" PRIu64 " times (%s)", seconds((double)s.max).text, s.count,
	    is_text(l->histogram_of) ? l->histogram_of : "");
	put_row(out, "Latency", &row);
	for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++) {
		double ns = (double)np_hist_percentile(f->latency, percentiles[i].share);
		uint64_t low, high;
		/* Too few times for a confidence interval are too few for the percentile. */
		bool known = np_hist_interval(f->latency, percentiles[i].share, &low, &high);

		ADD(&row, "%s%s %s", i > 0 ? ", " : "", percentiles[i].name,
		    known ? seconds(ns).text : "not known (too few)");
	}
	put_row(out, "", &row);
}

/* A figure of each end, as far as they are known. */
static void
ends_row(const struct np_figures *f, enum np_metric_id local, enum np_metric_id remote,
	 int decimals, const char *unit, struct row *row)
{
	if (known(f, local)) {
		ADD(row, "%.*f%s local", decimals, real(f, local), unit);
	}
	if (known(f, remote)) {
		ADD(row, "%s%.*f%s remote", row->len > 0 ? ", " : "", decimals, real(f, remote),
		    unit);
	}
}

/* The part of the time in which nothing else on the machines disturbed the test. */
static void
undisturbed_row(const struct np_look *l, const struct np_figures *f, struct row *row)
{
	double share = real(f, NP_M_DISTURBED_SHARE);

	if (!known(f, NP_M_DISTURBED_SHARE)) {
		return;
	}
	ADD(row, "%.1f %% of the time", 100 * (1 - share));
	ADD(row, "%s",
	    both_ways(l, f) ? ", other programs aside: they are not told from the other session"
			    : "");
	/* In less than an interval there is no rate. */
	if (share > 0 && known(f, NP_M_CLEAN_THROUGHPUT) && real(f, NP_M_CLEAN_SECONDS) >= 0.1) {
		ADD(row, ", with %s", rate(l, real(f, NP_M_CLEAN_THROUGHPUT)).text);
	}
	if (share > 0 && known(f, NP_M_DISTURBED_REASONS)) {
		ADD(row, " (disturbed, in seconds: %s)",
		    np_record_get_text(f->record, NP_M_DISTURBED_REASONS));
	}
}

void
np_human_print(FILE *out, const struct np_look *l, const struct np_figures *f)
{
	const struct np_human *h = l->human;
	struct row row = { .len = 0 };
	const char *way = np_record_get_text(f->record, NP_M_DIRECTION);
	/* If true, neither end is "the sender". "Send|Recv": each end does both. */
	bool both = l->transactions || both_ways(l, f) || strchr(way, '|') != NULL;
	bool sends = !both && strcasecmp(way, "Send") == 0;
	bool receives = !both && !sends && is_text(way);

	test_row(l, f, &row);
	put_row(out, "Test", &row);
	end_row(h->local, NULL, sends ? "sends" : receives ? "receives" : "", &row);
	put_row(out, "Local end", &row);
	end_row(h->remote, h->host, sends ? "receives" : receives ? "sends" : "", &row);
	put_row(out, "Remote end", &row);
	if (strcmp(l->classic.layout, "mss") == 0) { /* TCP_MSS sends no data */
		if (known(f, NP_M_TRANSPORT_MSS)) {
			ADD(&row, "%.0f bytes", real(f, NP_M_TRANSPORT_MSS));
		}
		put_row(out, "Segment size", &row);
	} else {
		throughput_row(l, f, &row);
		put_row(out, l->transactions ? "Transactions" : "Throughput", &row);
	}
	flows_row(l, f, &row);
	put_row(out, "Flows", &row);
	rate_row(f, &row);
	put_row(out, known(f, NP_M_DUE_OPERATIONS) ? "Requests" : "Messages", &row);
	loss_row(f, &row);
	put_row(out, "Loss", &row);
	if (is_datagrams(f)) {
		put_text(out, "Fragments", np_record_get_text(f->record, NP_M_PROTOCOL_DETAIL));
	}
	latency_rows(out, l, f);
	latency_beside_row(f, &row);
	put_row(out, "Beside", &row);
	ends_row(f, NP_M_LOCAL_CPU_UTIL, NP_M_REMOTE_CPU_UTIL, 1, " %", &row);
	ADD(&row, "%s", row.len > 0 ? ", of all processors" : "");
	put_row(out, "Processors", &row);
	ends_row(f, NP_M_LOCAL_TRANSPORT_RETRANS, NP_M_REMOTE_TRANSPORT_RETRANS, 0, "", &row);
	put_row(out, "Retransmitted", &row);
	undisturbed_row(l, f, &row);
	put_row(out, "Undisturbed", &row);
	/* What --explain found, without its names of causes. */
	put_text(out, "Limit", np_bag_string(h->limits, "explain.sentence"));
	put_text(out, "Calls", np_bag_string(h->limits, "explain.calls"));
	put_text(out, "Doubts", np_bag_string(h->limits, "explain.doubts"));
	put_text(out, "Ceiling", np_bag_string(h->limits, "explain.ceiling"));
}
