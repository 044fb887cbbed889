/* Evidence of a test: opens the capture of --wire, and prints --explain, --wire and --cycles. */
#include <math.h>

#include "base/output.h"
#include "base/text.h"
#include "base/units.h"
#include "bench/engine/engine.h"
#include "cli/document.h"
#include "cli/show.h"
#include "net/capture.h"
#include "out/explain.h"
#include "out/format.h"
#include "stats/ceiling.h"

/* Captures that would see nothing are turned off here, since a daemon allows few of them. */
int
np_cli_capture_settle(struct np_cli *cli, struct np_err *err)
{
	const struct np_transport *t = cli->bench.transport;

	if (cli->evidence.wire_file != NULL &&
	    np_output_check(cli->evidence.wire_file, NP_OUTPUT_IN_PLACE, err) != NP_OK) {
		return np_fail_in(err, "--wire");
	}
	if (!cli->evidence.wire || np_cli_test(cli) != NP_TEST_BENCH ||
	    (t->ip_protocol != 0 && t->packets.no_capture == NULL)) {
		return NP_OK;
	}
	if (t->packets.no_capture != NULL) {
		fprintf(stderr, "netperf: --wire: %s\n", t->packets.no_capture);
	} else {
		fprintf(stderr, "netperf: --wire: tests over %s send no IP packets\n", t->name);
	}
	cli->evidence.wire = false;
	cli->evidence.wire_file = NULL;
	cli->evidence.caps &= ~(unsigned)NP_CAP_WIRE;
	return NP_OK;
}

int
np_cli_capture_open(const struct np_cli_evidence *wanted, const struct np_addr *local,
		    const struct np_addr *remote, struct np_evidence_wants *collect,
		    struct np_err *err)
{
	const struct np_capture_place place = { .near = *local,
						.far = *remote,
						.file = wanted->wire_file };

	if (!wanted->wire || np_capture_open(&collect->capture, &place, err) == NP_OK) {
		return NP_OK;
	}
	if (err->code == NP_EUSAGE) {
		return np_fail_in(err, "--wire");
	}
	collect->capture_why_not = "this end could not open a capture, see standard error";
	fprintf(stderr, "netperf: --wire: %s; this end gives the interface's counters instead\n",
		err->msg);
	err->code = NP_OK;
	return NP_OK;
}

/* 0 if there was no time. */
static double
per_second(double amount, double seconds)
{
	return seconds > 0 ? amount / seconds : 0;
}

/* Fill in the rates and latencies: what was sent and received, by the far end's report if any. */
static void
fill_rates(const struct np_outcome *out, struct np_explain_input *in)
{
	const struct np_counts *c = &out->tally.end.count, *far = &out->far.end.count;
	bool told = out->far.reported && !out->far.truncated;
	double sent = (double)c->sent, received = (double)c->received;
	const char *name = in->transactions     ? "flow.transactions"
			   : in->near_transmits ? "flow.bytes_sent"
						: "flow.bytes_received";
	double all = in->transactions     ? (double)c->transactions
		     : in->near_transmits ? sent
					  : received;
	/* Of several sessions only the first has evidence: its share of all that was moved. */
	double share = out->sessions < 2 ? 1 : np_bag_number(out->near_bag, name) / all;
	struct np_hist_summary times;

	share = share >= 0 && share <= 1 ? share : 1.0 / out->sessions; /* not known: an even one */
	if (in->near_transmits) {
		received = told ? (double)far->received : sent;
	} else if (!in->transactions) {
		sent = told ? (double)far->sent : received;
	}
	in->sent_bps = per_second(sent * 8, in->seconds);
	in->throughput_bps = per_second(received * 8, in->seconds);
	if (in->transactions) {
		in->per_second = per_second((double)c->transactions, in->seconds);
	}
	if (in->transactions && out->tally.hist != NULL && np_hist_count(out->tally.hist) > 0) {
		np_hist_summarise(out->tally.hist, &times);
		in->least_us = (double)times.min / 1e3;
		in->median_us = (double)times.p50 / 1e3;
		in->mean_us = times.mean / 1e3;
	}
	/* Of the first session, as the evidence is; `beside` has the rate of the others. */
	in->sessions = out->sessions;
	in->beside = (in->transactions ? in->per_second : in->throughput_bps) * (1 - share);
	in->sent_bps *= share;
	in->throughput_bps *= share;
	in->per_second *= share;
}

/* What tell_flow() and tell_thread() need. */
struct rows {
	const struct np_tally *tally;
	const struct np_explain_input *in;
};

/* NAN for a negative value, which is not known. */
static double
known(int64_t v)
{
	return v >= 0 ? (double)v : (double)NAN;
}

/* np_explain_flows.flow: the figures of a flow at the end that sends, NAN: not known. */
static void
tell_flow(const void *ctx, uint32_t i, struct np_explain_flow *row)
{
	const struct rows *r = ctx;
	const struct np_flow_result *f = &r->tally->flow[i];
	/* TCP_INFO of an end that only receives describes its acknowledgements. */
	bool sends = r->in->near_transmits || r->in->transactions;
	uint64_t there = r->in->near_transmits ? f->sent : f->received;
	uint64_t back = r->in->near_transmits ? f->received : f->sent;
	double work = r->in->transactions ? (double)f->transactions : (double)there * 8;
	/* --both: flows towards this end are not part of what it sends. */
	bool comes = !r->in->transactions && r->tally->plan->both && there == 0 && back > 0;

	*row = (struct np_explain_flow){
		.rate = comes ? (double)NAN : per_second(work, r->in->seconds),
		.segments = known(sends ? f->tcp.data_segments : -1),
		.again = known(sends ? f->tcp.retransmitted_segments : -1),
		.rtt_us = known(sends ? f->tcp.rtt_us : -1),
		.min_rtt_us = known(sends ? f->tcp.min_rtt_us : -1),
		.cwnd = known(sends ? f->tcp.cwnd : -1),
		.held = known(sends ? f->tcp.rwnd_limited_us : -1) / 1e6 / r->in->seconds,
		.thread = f->worker,
		.cpu = f->cpu,
	};
}

/* np_explain_flows.thread. A thread that never sleeps is always busy, which says nothing. */
static void
tell_thread(const void *ctx, uint32_t i, struct np_explain_thread *row)
{
	const struct rows *r = ctx;
	const struct np_worker_result *w = &r->tally->worker[i];
	bool is_told = w->user_us >= 0 && w->system_us >= 0 && w->ended_ns > w->began_ns &&
		       !r->tally->engine->spins;

	*row = (struct np_explain_thread){
		.busy = is_told ? (double)(w->user_us + w->system_us) * 1e3 /
				      (double)(w->ended_ns - w->began_ns)
				: (double)NAN,
		.on = w->cpu,
	};
}

/* Bytes of a request or response as sent, at least the transport's minimum. 0: it has no size. */
static uint32_t
sent_size(const struct np_plan *p, int32_t size)
{
	int32_t least = p->transport->message.min;

	return size <= 0 || !p->pattern->sized ? 0 : (uint32_t)(size < least ? least : size);
}

/* Find what limited an iteration, and what the link could have carried. iterations: so far. */
static void
explain(const struct np_cli *cli, const struct np_outcome *out, unsigned iterations,
	struct np_explanation *e)
{
	const struct np_plan *p = &cli->plan;
	const struct np_tally *t = &out->tally;
	struct np_explain_input in = {
		.near = out->near_bag,
		.far = out->far_bag,
		.far_lacks = out->far_lacks,
		.disturbed = out->clean != NULL ? 1 - out->clean->clean_s / out->clean->seconds : 0,
		.disturbed_by = out->clean != NULL ? out->reasons : NULL,
		.datagrams = !np_delivers(p->transport),
		.packet_header = p->transport->packets.header,
		.messages = p->transport->ip_protocol == IPPROTO_SCTP,
		.transactions = p->pattern->transactions,
		.near_transmits = !p->pattern->transactions && (p->role == NP_LEAD || p->both),
		.both = p->both,
		.options = p->pattern->connection_test ? 0
			   : p->pattern->transactions  ? p->transport->packets.turn_options
						       : p->transport->packets.stream_options,
		.family =
		    p->transport->link ? (int)NP_FRAMES : np_family(np_plan_family(p))->version,
		/* --both: of what this end sends */
		.seconds = p->both ? (double)t->led_ns / 1e9 : np_tally_seconds(t),
		.request = sent_size(p, p->request),
		.response = sent_size(p, p->response),
		.in_flight = p->flows * (1 + (p->pattern->connection_test ? 0 : p->burst)),
		.connections = p->pattern->connection_test,
		.closed = p->pattern->transactions && p->rate == 0 ? out->tally.hist : NULL,
		.link_rate_bps = cli->evidence.link_rate,
		.iterations = iterations,
	};
	struct rows rows = { .tally = t, .in = &in };

	fill_rates(out, &in);
	if (t->flow != NULL && (!p->both || t->flows >= 4)) { /* several flows each way */
		in.flows = (struct np_explain_flows){ .count = t->flows,
						      .threads = t->worker != NULL ? t->workers : 0,
						      .ramped = p->ramp > 0,
						      .flow = tell_flow,
						      .thread = tell_thread,
						      .of = &rows };
	}
	np_explain(&in, e);
}

/* Print what --cycles counted, which a document would have; or why it was not counted. */
static void
tell_cycles(const struct np_bag *b, FILE *to)
{
	double cycles = np_bag_number(b, "work.cycles"),
	       instructions = np_bag_number(b, "work.instructions"),
	       bytes =
		   np_bag_number(b, "flow.bytes_sent") + np_bag_number(b, "flow.bytes_received"),
	       transactions = np_bag_number(b, "flow.transactions");
	struct np_bag_item item;

	if (cycles > 0) {
		np_text_line(to,
			     "cycles: %.4g, and %.4g instructions (%.2f a cycle), of this end's "
			     "threads (%s): %.12g cycles a %s",
			     cycles, instructions, instructions / cycles,
			     np_bag_string(b, "work.counted"),
			     np_significant(cycles / (transactions > 0 ? transactions : bytes), 3),
			     transactions > 0 ? "transaction" : "byte");
	} else if (np_bag_find(b, "work.cycles", &item) && item.kind == NP_BAG_UNREAD) {
		np_text_line(to, "cycles: not counted: %s", item.text);
	}
}

struct np_bag *
np_cli_explain(const struct np_cli *cli, const struct np_outcome *out, unsigned iterations)
{
	struct np_explanation e;
	struct np_bag *values;

	if (out->near_bag == NULL || !out->measured) {
		return NULL; /* it was not collected, or the test failed early */
	}
	explain(cli, out, iterations, &e);
	values = np_bag_new();
	np_explain_put(&e, cli->plan.pattern->transactions, values);
	np_ledger_compare(out->near_bag, out->far_bag, values);
	return values;
}

void
np_cli_tell_evidence(const struct np_cli *cli, const struct np_outcome *out, unsigned iterations,
		     bool whole, struct np_document *doc, FILE *to)
{
	const struct np_datagrams d = { .bench = cli->bench.name,
					.near = out->near_bag,
					.far = out->far_bag,
					.seconds = np_tally_seconds(&out->tally),
					.unit = np_cli_unit(cli),
					.iterations = iterations };
	struct np_bag *values;
	const char *sentence;

	if (out->near_bag == NULL || !out->measured ||
	    (cli->evidence.caps & (NP_CAP_TEST | NP_CAP_WIRE)) == 0) {
		return; /* it was collected only for a figure */
	}
	values = np_cli_explain(cli, out, iterations);
	sentence = np_bag_string(values, "explain.sentence");
	np_document_explain(doc, sentence != NULL ? sentence : "", values);
	if (cli->evidence.explain && cli->output.style != NP_STYLE_HUMAN) {
		np_explain_print(to, values);
	}
	np_bag_free(values);
	if (cli->evidence.wire && out->sessions > 1) {
		fprintf(to, "netperf: --wire: packets of the first of %u sessions\n",
			out->sessions);
	}
	if (cli->evidence.wire && iterations > 1) {
		fprintf(to, "ledger: the last of %u iterations\n", iterations);
	}
	if (cli->evidence.wire) {
		np_ledger_print(to, out->near_bag, out->far_bag, out->far_lacks);
	}
	if (cli->evidence.cycles && !cli->output.json) {
		tell_cycles(out->near_bag, to);
	}
	/* Tell where the table misleads. (A document on standard output replaces the table.) */
	if (cli->evidence.explain || cli->evidence.wire || cli->output.json_file != NULL) {
		np_datagrams_print(to, &d);
	}
	if (out->far_lacks[0] != '\0' && whole && !cli->evidence.for_beside) {
		np_text_line(to, "netperf: evidence of this end only: %s", out->far_lacks);
	}
}
