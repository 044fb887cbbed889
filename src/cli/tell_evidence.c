#include "cli/tell_evidence.h"

#include <sys/socket.h>

#include "base/text.h"
#include "out/datagrams.h"
#include "out/explain.h"
#include "out/ledger_table.h"
#include "out/look.h"
#include "stats/ceiling.h"

static double
per_second(double amount, double seconds)
{
	return seconds > 0 ? amount / seconds : 0;
}

/* The receiver's figures where it told any; a stream's bytes arrive. */
static void
fill_rates(const struct np_outcome *out, struct np_explain_input *in)
{
	const struct np_counts *c = &out->tally.count;
	double sent = (double)c->sent, received = (double)c->received;

	if (in->near_transmits) {
		received = out->far.reported && !out->far.brief ? (double)out->far.received : sent;
	} else if (!in->transactions) {
		sent = out->far.reported && !out->far.brief ? (double)out->far.sent : received;
	}
	in->sent_bps = per_second(sent * 8, in->seconds);
	in->throughput_bps = per_second(received * 8, in->seconds);
	if (in->transactions) {
		in->per_second = per_second((double)c->transactions, in->seconds);
	}
}

static uint32_t
message_size(const struct np_plan *p, int32_t size)
{
	int32_t least = p->transport->min_message;

	return size <= 0 ? 0 : (uint32_t)(size < least ? least : size);
}

/* What limited that run, and what the link could have carried. */
static void
explain(const struct np_cli *cli, const struct np_outcome *out, unsigned iterations,
	struct np_explanation *e)
{
	const struct np_plan *p = &cli->plan;
	struct np_explain_input in = {
		.near = out->near_bag,
		.far = out->far_bag,
		.far_lacks = out->far_lacks,
		.lossy = !p->transport->connected,
		.transactions = p->pattern->transactions,
		.near_transmits = !p->pattern->transactions && p->role == NP_LEAD,
		.family =
		    p->transport->link ? (int)NP_FRAMES : np_family_version(np_plan_family(p)),
		.seconds = np_tally_seconds(&out->tally),
		.request = message_size(p, p->request),
		.response = message_size(p, p->response),
		.in_flight = p->flows * (1 + (p->pattern->connection_test ? 0 : p->burst)),
		.connections = p->pattern->connection_test,
		.link_rate_bps = cli->evidence.link_rate,
		.iterations = iterations,
	};

	fill_rates(out, &in);
	np_explain(&in, e);
}

/* Who sees the table beside the evidence is told where it misleads; the table stays netperf's. */
static void
tell_of_datagrams(const struct np_cli *cli, const struct np_outcome *out, unsigned iterations,
		  FILE *to)
{
	const struct np_datagrams d = {
		.bench = cli->bench.name,
		.near = out->near_bag,
		.far = out->far_bag,
		.unit = np_cli_unit(cli),
		.iterations = iterations,
	};

	if (cli->evidence.explain || cli->evidence.wire || cli->output.json_file != NULL) {
		np_datagrams_print(to, &d);
	}
}

void
np_cli_tell_evidence(const struct np_cli *cli, const struct np_outcome *out, unsigned iterations,
		     bool whole, struct np_document *doc, FILE *to)
{
	struct np_explanation e;
	struct np_bag *values;

	if (out->near_bag == NULL || !out->measured) {
		return; /* nobody wants to know, or there is nothing to be known */
	}
	if (out->sessions < 2) { /* else the evidence is that of the first one */
		explain(cli, out, iterations, &e);
		values = np_bag_new();
		np_explain_put(&e, cli->plan.pattern->transactions, values);
		np_ledger_compare(out->near_bag, out->far_bag, values);
		np_document_explain(doc, e.sentence, values);
		if (cli->evidence.explain) {
			np_explain_print(to, values);
		}
		np_bag_free(values);
	}
	if (cli->evidence.wire && out->sessions > 1) {
		fprintf(to, "netperf: --wire: packets of the first one of %u sessions\n",
			out->sessions);
	}
	if (cli->evidence.wire) {
		np_look_which(to, iterations);
		np_ledger_print(to, out->near_bag, out->far_bag, out->far_lacks);
	}
	tell_of_datagrams(cli, out, iterations, to);
	if (out->far_lacks[0] != '\0' && whole) {
		np_text_line(to, "netperf: evidence of this end only: %s", out->far_lacks);
	}
}
