#include "out/explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "out/explain/rules.h"

/* The values of explain.flows, which is missing for NP_FLOWS_NONE. */
static const char *const kind_names[NP_FLOWS_KINDS] = {
	[NP_FLOWS_SHARED] = "shared",
	[NP_FLOWS_BY_THREAD] = "by-worker",
	[NP_FLOWS_OWN] = "own",
	[NP_FLOWS_UNCLEAR] = "unclear",
};

enum { TCP = 1, UDP = 2, TURNS = 4, UNIX = 8, ANY = TCP | UDP | TURNS | UNIX };
static const struct {
	unsigned tests; /* the kinds that it applies to */
	np_rule *judge;
} rules[] = {
#define NP_RULE(tests, name) { tests, np_rule_##name },
#include "out/explain/rules.def"
};
enum { RULES = sizeof(rules) / sizeof(rules[0]) };

/* The verdicts of all rules, best score first. */
struct verdicts {
	struct np_verdict v[RULES];
	size_t count;
};

/* Apply the rules for this kind of test, and sort their verdicts by score. */
static void
judge_all(const struct np_facts_of_test *f, struct verdicts *all)
{
	unsigned kind = f->in->transactions                        ? TURNS
			: np_ceiling_least_mtu(f->in->family) == 0 ? UNIX
			: f->in->datagrams                         ? UDP
								   : TCP;

	all->count = 0;
	for (size_t i = 0; i < RULES; i++) {
		struct np_verdict v = { .allows = f->measured };
		size_t at = all->count;

		if ((rules[i].tests & kind) == 0) {
			continue;
		}
		rules[i].judge(f, &v);
		while (at > 0 && all->v[at - 1].score < v.score) {
			all->v[at] = all->v[at - 1];
			at--;
		}
		all->v[at] = v;
		all->count++;
	}
}

/* The index of another cause to name beside the best one; 0: none. */
static size_t
rival_of(const struct verdicts *all)
{
	const struct np_verdict *best = &all->v[0];
	/* A small congestion window is a symptom if the best verdict says what keeps it small. */
	bool keeps_small = best->limit == NP_LIMIT_LOSS || best->limit == NP_LIMIT_PATH ||
			   best->limit == NP_LIMIT_REORDERING || best->limit == NP_LIMIT_LINK;

	for (size_t i = 1; i < all->count; i++) {
		const struct np_verdict *v = &all->v[i];

		if (v->score < NP_ENOUGH) {
			break;
		}
		if (v->limit != best->limit && v->limit != NP_LIMIT_UNCLEAR &&
		    v->limit != NP_LIMIT_TURNS && /* TURNS: whenever nothing else holds */
		    !(keeps_small && v->limit == NP_LIMIT_CWND) &&
		    (v->score >= best->score - NP_RIVAL || v->score >= NP_STRONG)) {
			return i;
		}
	}
	return 0;
}

/* A closed loop sends nothing during a stall, so its percentiles hide it (coordinated omission). */
static void
doubt_closed(const struct np_hist *h, char doubts[NP_EXPLAIN_TEXT])
{
	double p99 = (double)np_hist_percentile(h, 0.99) / 1e3,
	       stall_us = (double)np_hist_by_time(h, 0.01) / 1e3;

	if (stall_us > NP_STOOD_US && stall_us > NP_STOOD_TIMES * p99) {
		np_explain_add(doubts,
			       "for 1 %% of the time a transaction took %s or more, and P99 is %s: "
			       "no requests were sent meanwhile, so percentiles hide the stall "
			       "(use --rate)",
			       np_time_words(stall_us).text, np_time_words(p99).text);
	}
}

/* Some CPUs copy slowly to a buffer that begins just after a page boundary. */
static void
doubt_copies(const struct np_facts_of_test *f, char doubts[NP_EXPLAIN_TEXT])
{
	double offset = np_bag_number(f->rx, "flow.receive_offset");

	if (!f->in->transactions && offset > 0 && offset < NP_JUST_AFTER && !f->discards &&
	    f->reader.cpu >= NP_COPIES) {
		np_explain_add(
		    doubts,
		    "the receive buffers begin %.0f bytes after a page boundary, to where some "
		    "processors copy at half the speed (try %s 64)",
		    offset, f->in->near_transmits ? "-A" : "-a");
	}
}

/* Add doubts about any verdict: what it does not cover, and what may have distorted the test. */
static void
doubt(const struct np_facts_of_test *f, char doubts[NP_EXPLAIN_TEXT])
{
	unsigned packets;
	double sent = np_bag_number(f->tx, "flow.send_size"),
	       taken = np_bag_number(f->rx, "flow.receive_size"),
	       mean = np_bag_number(f->rx, "flow.bytes_received") /
		      np_bag_number(f->rx, "flow.receives");

	if (f->in->far_lacks != NULL && f->in->far_lacks[0] != '\0') {
		np_explain_add(doubts, "the far end reported nothing about its side");
	}
	if (f->in->both) {
		np_explain_add(doubts, "this covers only what this end sends");
	}
	if (f->in->sessions > (f->in->both ? 2 : 1)) { /* --both has two of its own */
		np_explain_add(
		    doubts,
		    "this covers the first of %u sessions, and its rates are of that session",
		    (unsigned)f->in->sessions);
	}
	if (f->in->iterations > 1) {
		np_explain_add(doubts, "this covers only the last of %u iterations",
			       (unsigned)f->in->iterations);
	}
	if (f->in->datagrams && !f->in->transactions && sent > taken &&
	    fabs(mean / taken - 1) < 0.01) { /* nearly all receives were full */
		np_explain_add(
		    doubts,
		    "each datagram of %.0f bytes was cut to the %.0f bytes of a receive (-M)", sent,
		    taken);
	}
	packets = f->in->datagrams && sent >= 0 && sent <= UINT16_MAX
		      ? np_ceiling_fragments(&f->encap, (uint32_t)sent)
		      : 0;
	if (packets > 1) {
		np_explain_add(
		    doubts,
		    "datagrams of %.0f bytes are %u fragments each, and one that is lost "
		    "loses all (%u bytes are one)",
		    sent, packets, np_ceiling_datagram(&f->encap));
	}
	doubt_copies(f, doubts);
	if (f->in->disturbed > NP_DISTURBED && f->in->disturbed_by != NULL) {
		np_explain_add(doubts,
			       "other activity disturbed the test for %.0f %% of its time (%s s)",
			       100 * f->in->disturbed, f->in->disturbed_by);
	}
	if (f->in->closed != NULL) {
		doubt_closed(f->in->closed, doubts);
	}
	if (f->seconds < 0.5) {
		np_explain_add(doubts, "the test took only %.2g s", f->seconds);
	}
	if (f->same_machine && np_ceiling_least_mtu(f->in->family) > 0) {
		np_explain_add(doubts, "both ends share the processors of one machine");
	}
}

/* Why the cause is unclear. */
static const char *
missing(const struct np_facts_of_test *f)
{
	if (f->tx == NULL && f->rx == NULL) {
		return "neither end has any evidence";
	}
	if (f->seconds < NP_SHORT) {
		return "the test was too short to decide";
	}
	if (f->tx == NULL) {
		return "no figure stands out, and nothing is known about the sender";
	}
	if (f->rx == NULL) {
		return "no figure stands out, and nothing is known about the receiver";
	}
	if (isnan(f->sender.blocked) && isnan(f->reader.blocked) && !f->sender.spins &&
	    !f->reader.spins) {
		return "no figure stands out, and it is not known whether the ends were blocked in "
		       "calls or slept by choice";
	}
	return "no figure stands out";
}

/* No cause is clear enough: say what is missing, and what was measured nevertheless. */
static void
unclear(const struct np_facts_of_test *f, const struct np_verdict *best, struct np_verdict *out)
{
	snprintf(out->sentence, sizeof(out->sentence), "%s", missing(f));
	if (!isnan(f->sender.cpu) || f->sender.spins) {
		np_explain_add(out->sentence, "%s", np_cpu_words(&f->sender, "sending").text);
	}
	if (!isnan(f->reader.cpu) || f->reader.spins) {
		np_explain_add(out->sentence, "%s", np_reader_words(f).text);
	}
	if (f->rwnd >= 0) {
		np_explain_add(out->sentence, "the receiver's window limited it for %s of the time",
			       np_share_words(f->rwnd).text);
	}
	if (best->score >= 0.25) {
		np_explain_add(out->doubts,
			       "%s is the most likely cause, but the evidence is too weak",
			       np_limit_name(best->limit));
	}
}

void
np_explain(const struct np_explain_input *in, struct np_explanation *out)
{
	struct np_flows_found flows;
	struct np_facts_of_test f;
	const struct np_verdict *best, *rival;
	struct verdicts all;
	size_t also;

	memset(out, 0, sizeof(*out));
	out->best.share = out->best.allows = out->next.allows = (double)NAN;
	np_facts_of_test(in, &f);
	np_flows_find(&f, &flows); /* before anything judges by facts that it corrects */
	np_ceiling_tell(&f, out);
	judge_all(&f, &all);
	best = &all.v[0];
	also = rival_of(&all);
	rival = &all.v[also];
	if (best->score < NP_ENOUGH || f.seconds < NP_SHORT) {
		unclear(&f, best, &out->best);
	} else if (also == 1 && best->score < NP_WEAK && best->score - rival->score < NP_TIE) {
		/* Two fit equally well, and neither fits well. */
		snprintf(out->best.sentence, NP_EXPLAIN_TEXT, "%s or %s: both fit equally well",
			 np_limit_name(best->limit), np_limit_name(rival->limit));
		out->also = *rival;
		np_explain_add(out->best.doubts, "%s", best->sentence);
	} else {
		out->best = *best;
		/* The sentence about the MTU names the processor or the link that it burdens. */
		if (also > 0 && best->limit != NP_LIMIT_UNCLEAR && best->limit != NP_LIMIT_MTU) {
			out->also = *rival;
		}
		/* The next limit: the cause with the lowest rate above the measured one. */
		for (size_t i = 0; i < all.count && f.measured > 0; i++) {
			const struct np_verdict *v = &all.v[i];

			if (v->limit != best->limit && v->limit != out->also.limit &&
			    v->allows > NP_WITHIN * f.measured &&
			    v->allows <= NP_NEXT * f.measured && !(v->allows >= out->next.allows)) {
				out->next = *v;
			}
		}
	}
	np_flows_tell(&flows, &f, out);
	np_calls_tell(&f, out);
	doubt(&f, out->best.doubts);
}

/* Put a figure if it is known. */
static void
put(struct np_bag *into, double v, const char *name)
{
	if (isfinite(v)) {
		np_bag_real(into, v, "explain.%s", name);
	}
}

void
np_explain_put(const struct np_explanation *e, bool transactions, struct np_bag *into)
{
	const struct np_explain_ceiling *c = &e->ceiling;

	np_bag_text(into, np_limit_name(e->best.limit), "explain.limit");
	np_bag_text(into, e->best.sentence, "explain.sentence");
	np_bag_text(into, e->best.doubts, "explain.doubts");
	np_bag_text(into, e->calls, "explain.calls");
	np_bag_text(into, e->ceiling_text, "explain.ceiling");
	if (e->also.limit != NP_LIMIT_UNCLEAR) {
		np_bag_text(into, np_limit_name(e->also.limit), "explain.also");
		np_bag_text(into, e->also.sentence, "explain.also_sentence");
	}
	put(into, e->best.allows, transactions ? "allows_transactions_per_s" : "allows_bps");
	if (e->next.limit != NP_LIMIT_UNCLEAR) {
		np_bag_text(into, np_limit_name(e->next.limit), "explain.next");
		put(into, e->next.allows, transactions ? "next_transactions_per_s" : "next_bps");
	}
	if (e->flows != NP_FLOWS_NONE) {
		np_bag_text(into, kind_names[e->flows], "explain.flows");
		np_bag_text(into, e->flows_sentence, "explain.flows_sentence");
	}
	put(into, e->best.score, "score");
	put(into, e->best.share, "share");
	put(into, c->rate_bps, "link_rate_bps");
	put(into, c->most, transactions ? "ceiling_transactions_per_s" : "ceiling_bps");
	put(into, c->reached, "reached");
	put(into, c->retransmits, "retransmitted");
	put(into, c->small_segments, "small_segments");
	put(into, c->acks, "acks");
	put(into, c->lost, "lost");
	put(into, c->idle, "idle");
}

/* Print "head: name: text", by the values of these names, if there are both. name may be NULL. */
static void
print_row(FILE *out, const struct np_bag *values, const char *head, const char *name,
	  const char *text)
{
	name = name != NULL ? np_bag_string(values, name) : "";
	text = np_bag_string(values, text);
	if (name != NULL && text != NULL && text[0] != '\0') {
		np_text_line(out, "%s: %s%s%s", head, name, name[0] != '\0' ? ": " : "", text);
	}
}

/* What would limit if this cause were gone. */
static void
print_next(FILE *out, const struct np_bag *values)
{
	const char *name = np_bag_string(values, "explain.next");
	double bps = np_bag_number(values, "explain.next_bps");
	double per_second = np_bag_number(values, "explain.next_transactions_per_s");

	if (name != NULL && bps > 0) {
		np_text_line(out, "next: %s would limit at %s", name, np_rate_words(bps).text);
	} else if (name != NULL && per_second > 0) {
		np_text_line(out, "next: %s would limit at %.0f transactions a second", name,
			     per_second);
	}
}

void
np_explain_print(FILE *out, const struct np_bag *values)
{
	print_row(out, values, "explain", "explain.limit", "explain.sentence");
	print_row(out, values, "also", "explain.also", "explain.also_sentence");
	print_next(out, values);
	print_row(out, values, "calls", NULL, "explain.calls");
	print_row(out, values, "flows", "explain.flows", "explain.flows_sentence");
	print_row(out, values, "doubts", NULL, "explain.doubts");
	print_row(out, values, "ceiling", NULL, "explain.ceiling");
}
