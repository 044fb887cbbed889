#include "cli/show.h"

#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "bench/engine/engine.h"
#include "bench/ids.h"
#include "cli/document.h"
#include "cli/facts.h"

/* netperf shows a numeric address only where it has at most seven characters. */
static const char *
short_address(const struct np_addr *a, char text[NP_ADDR_TEXT])
{
	np_addr_host(a, text);
	if (strlen(text) > 7) {
		text[0] = '\0';
	}
	return text;
}

/* Nothing of what is usual: netperf's banner has no such words. */
static void
print_flows(FILE *out, const struct np_plan *p)
{
	fputs(p->both ? " : both ways" : "", out);
	if (p->flows > 1) {
		fprintf(out, " : %u flows", p->flows);
	}
	if (p->near.place.threads > 1 || p->far.place.threads > 1) {
		fprintf(out, " : threads %u,%u", p->near.place.threads, p->far.place.threads);
	}
	if (p->ramp > 0) {
		fprintf(out, " : ramp %u/s", p->ramp);
	}
	if (p->warm_up_ms > 0) {
		fprintf(out, " : warm-up %g s", p->warm_up_ms / 1e3);
	}
	if (p->near.place.engine != NULL || p->far.place.engine != NULL) {
		fprintf(out, " : engine %s,%s", np_engine_of(p)->name,
			p->far.place.engine != NULL ? p->far.place.engine->name : "");
	}
}

/* The features in use; scripts look for "demo" to see that interim results could be had. */
static void
print_features(FILE *out, const struct np_cli *cli)
{
	const struct np_plan *p = &cli->plan;

	if (cli->confidence.max > 1) {
		fprintf(out, " : +/-%.3f%% @ %2d%% conf. %s", cli->confidence.width / 2,
			cli->confidence.level,
			cli->confidence.result_only ? " on result only" : "");
	}
	fputs(p->nodelay ? " : nodelay" : "", out);
	fputs(p->copy_avoidance ? " : copy avoidance" : "", out);
	fputs(p->no_control ? " : no control" : "", out);
	fputs(cli->output.histogram ? " : histogram" : "", out);
	fputs(p->near.call.interval_burst > 0 || p->far.call.interval_burst > 0 ? " : interval"
										: "",
	      out);
	fputs(p->near.call.dirty >= 0 || p->far.call.dirty >= 0 ? " : dirty data" : "", out);
	fputs(" : demo", out);
	if (strstr(cli->bench.title, "REQUEST/RESPONSE") != NULL) {
		fprintf(out, " : first burst %u", p->burst);
	}
	fputs(cli->bound ? " : cpu bind" : "", out);
	print_flows(out, p);
}

static void
describe_classic(const struct np_cli *cli, struct np_classic *c)
{
	memset(c, 0, sizeof(*c));
	c->layout = cli->bench.layout;
	c->unit = np_cli_unit(cli);
	c->verbosity = cli->output.verbosity;
	c->headers = cli->output.headers != 0;
	c->local_cpu = cli->plan.near.place.measure_cpu;
	c->remote_cpu = cli->plan.far.place.measure_cpu;
	c->brand = cli->output.brand;
}

void
np_show_banner(FILE *out, const struct np_cli *cli, const struct np_ends *ends)
{
	const char *family = np_family_name(cli->plan.family);
	const char *from = ends->local.name;
	unsigned port = cli->plan.far.sock.port;
	char here[NP_ADDR_TEXT], there[NP_ADDR_TEXT];
	struct np_classic classic;

	if (cli->output.style == NP_STYLE_HUMAN) {
		return;
	}
	if (cli->plan.copy_avoidance && (cli->bench.flags & NP_B_OLD) != 0) {
		/* netperf's older tests have no way to avoid copies, and say so. */
		fputs("Local send copy avoidance not available.\n"
		      "Local recv copy avoidance not available.\n",
		      out);
	}
	describe_classic(cli, &classic);
	np_classic_preface(out, &classic);
	if (cli->output.headers != 0 && cli->terms.eth != NULL) {
		fprintf(out, "%s from %s to %s of %s, ", cli->bench.title, cli->terms.eth->device,
			cli->data.far_device[0] != '\0' ? cli->data.far_device : "the interface",
			cli->target.host.text);
		if (cli->bench.transport->connected) {
			fputs("LLC2", out);
		} else {
			fprintf(out, "EtherType 0x%04x", NP_ETH_TYPE);
		}
		print_features(out, cli);
		putc('\n', out);
	}
	if (cli->output.headers != 0 && cli->bench.transport->named) {
		if (from[0] == '\0') {
			from = np_facts_any(cli->plan.family);
		}
		if (cli->plan.no_control) {
			port = np_addr_port(&ends->remote.at[0]); /* maybe the service's own */
		}
		fprintf(out, "%s from %s (%s) port %u %s to %s (%s) port %u %s", cli->bench.title,
			from, short_address(&ends->local.at[0], here), cli->plan.near.sock.port,
			family, ends->remote.name, short_address(&ends->remote.at[0], there), port,
			family);
		print_features(out, cli);
		putc('\n', out);
	}
	fflush(out);
}

void
np_show_sessions(const struct np_cli *cli, const struct np_client *c, uint32_t sessions)
{
	if (sessions > 2 || (sessions == 2 && !cli->plan.both)) {
		fprintf(stderr,
			"netperf: %s: %u sessions at once, of one flow each: the far end is as "
			"many processes of the netserver at %s\n",
			cli->bench.name, sessions, c->peer);
	}
}

void
np_show_ramp(const struct np_cli *cli, const struct np_tally *t)
{
	const struct np_ramp_result *r = &t->ramp;
	char reasons[256];

	if (r->failed.count > 0) {
		np_ramp_reasons(&r->failed, reasons, sizeof(reasons));
		fprintf(stderr, "netperf: %s: %u of %u data connections failed: %s\n",
			cli->bench.name, r->failed.count, r->asked, reasons);
	}
}

void
np_show_degraded(const struct np_cli *cli, const struct np_tally *t)
{
	if (t->closing.degraded) {
		fprintf(stderr, "netperf: %s: %s\n", cli->bench.name, t->closing.detail);
	}
}

double
np_show_work(const struct np_cli *cli, const struct np_plan *p, const struct np_counts *c)
{
	double transactions = (double)c->transactions;

	if (p->pattern->transactions) {
		bool bytes = np_cli_unit(cli)->letter != 'x' && p->pattern->sized;

		return bytes ? transactions * ((double)p->request + p->response) : transactions;
	}
	return (double)np_counts_bytes(c);
}

/* What was counted between the last time and `now`. */
static void
interim(struct np_show_interim *s, const struct np_plan *p, const struct np_counts *c,
	uint64_t started_ns, uint64_t now_ns)
{
	const struct np_unit *unit = np_cli_unit(s->cli);
	double work = np_show_work(s->cli, p, c);
	uint64_t then = s->then_ns != 0 ? s->then_ns : started_ns;
	struct np_interim i = {
		.number = s->number++,
		.seconds = (double)(now_ns - then) / 1e9,
		.ending_ms =
		    np_wall_ms(now_ns), /* of a run's end: told of after the far end's results */
	};

	if (p->pattern->transactions && !p->pattern->sized) {
		unit = np_unit('x'); /* connections are no bytes */
	}
	i.ramps = p->ramp > 0;
	i.flows_up = c->up;
	i.unit = unit->name;
	i.rate = np_rate(unit, work - s->work, i.seconds);
	s->work = work;
	s->then_ns = now_ns;
	if (s->out != NULL) {
		np_interim_print(s->out, s->cli->output.style, &i);
	}
	np_document_interim(s->doc, &i);
}

void
np_show_interim(void *ctx, const struct np_run *run, uint64_t due_ns, uint64_t now_ns)
{
	struct np_counts c = np_counts_of(run);

	(void)due_ns;
	interim(ctx, run->plan, &c, run->window.started_ns, now_ns);
}

void
np_show_interim_sum(void *ctx, const struct np_plan *whole, const struct np_counts *sum,
		    uint64_t started_ns, uint64_t now_ns)
{
	interim(ctx, whole, sum, started_ns, now_ns);
}

void
np_show_interim_end(struct np_show_interim *i, const struct np_tally *t)
{
	uint64_t then = i->then_ns != 0 ? i->then_ns : t->started_ns;

	if ((i->cli->bench.flags & NP_B_OLD) == 0 && t->ended_ns > then) {
		interim(i, t->plan, &t->count, t->started_ns, t->ended_ns);
	}
	i->work = 0;
	i->then_ns = 0;
}

void
np_show_look(const struct np_cli *cli, struct np_look *look)
{
	const struct np_plan *p = &cli->plan;

	memset(look, 0, sizeof(*look));
	look->style = cli->output.style;
	describe_classic(cli, &look->classic);
	look->histogram = cli->output.histogram;
	look->histogram_of = np_plan_words(p)->timed;
	look->times = cli->output.times;
	look->transactions = p->pattern->transactions && (look->classic.unit->letter == 'x' ||
							  (cli->bench.flags & NP_B_OLD) != 0);
	look->limits = cli->output.limits;
	look->average = (cli->bench.flags & NP_B_SPARSE) != 0;
	look->latency = cli->output.latency;
	look->congestion = cli->output.selection.congestion;
	if (cli->output.selectors != NULL) {
		look->list = cli->output.selection;
	} else {
		enum np_select_kind kind = p->both                    ? NP_SELECT_BOTH
					   : p->pattern->transactions ? NP_SELECT_TRANSACTIONS
					   : p->role == NP_LEAD       ? NP_SELECT_SEND
								      : NP_SELECT_RECEIVE;

		np_selection_default(kind, p->near.place.measure_cpu || p->far.place.measure_cpu,
				     &look->list);
	}
}

void
np_show_tcp_info(const struct np_tally *t)
{
	const struct tcp_info *i = &t->closing.info;

	/* Sic, tpci: the words are netperf's, and parsed. */
	fprintf(stderr,
		"tcpi_rto %u tcpi_ato %u tcpi_pmtu %u tcpi_rcv_ssthresh %u\n"
		"tcpi_rtt %u tcpi_rttvar %u tcpi_snd_ssthresh %u tpci_snd_cwnd %u\n"
		"tcpi_reordering %u tcpi_total_retrans %u\n",
		i->tcpi_rto, i->tcpi_ato, i->tcpi_pmtu, i->tcpi_rcv_ssthresh, i->tcpi_rtt,
		i->tcpi_rttvar, i->tcpi_snd_ssthresh, i->tcpi_snd_cwnd, i->tcpi_reordering,
		i->tcpi_total_retrans);
}

void
np_show_plan(FILE *out, const struct np_cli *cli, const struct np_client *c)
{
	const struct np_plan *p = &cli->plan;
	char text[NP_ADDR_TEXT], length[NP_LENGTH_TEXT];

	if (!p->no_control) {
		fprintf(out, "debug: control connection to %s, which is %s\n", c->peer,
			np_addr_text(&c->used, text));
	}
	if (cli->unbound) {
		fprintf(out, "debug: not bound to processor %d\n", p->near.place.cpu);
	}
	fprintf(out, "debug: %s is %s over %s, this end %s; request code %u, length %s\n",
		cli->bench.name, p->pattern->name, p->transport->name,
		p->role == NP_LEAD ? "leads" : "follows", cli->bench.code,
		np_plan_length_text(p, length));
}

void
np_show_surplus(FILE *out, const struct np_cli *cli, uint64_t surplus)
{
	if (surplus > 0) {
		fprintf(
		    out,
		    "netperf: %s: %" PRIu64 " response%s came twice or too late, and could not be "
		    "matched: rate and latencies may be wrong (%s)\n",
		    cli->bench.name, surplus, surplus == 1 ? "" : "s", np_ids_why_none(&cli->plan));
	}
}

/* Both figures: the table has that of all seconds, as netperf's. */
void
np_show_clean(FILE *out, const struct np_cli *cli, const struct np_repeat *r)
{
	const struct np_repeat_clean *c = &r->clean;
	const struct np_unit *unit = np_cli_unit(cli);
	char figures[200] = "";

	if (r->plan.clean_s == 0) {
		return;
	}
	if (c->seconds <= 0) {
		fprintf(out,
			"netperf: --clean %d: this end could not measure what disturbs the test\n",
			r->plan.clean_s);
		return;
	}
	if (c->clean > 0) {
		snprintf(figures, sizeof(figures), ": %.2f %s/s in these, %.2f in all",
			 c->amount / c->clean, unit->name, r->by_time[0] / r->elapsed_s);
	}
	fprintf(out, "netperf: %s%.1f of %.1f s were clean%s\n",
		np_repeat_unclean(r) ? "no more than " : "", c->clean, c->seconds, figures);
	if (c->seconds > c->clean) {
		fprintf(out, "netperf: disturbed for %.1f s (seconds by reason: %s)%s\n",
			c->seconds - c->clean, c->reasons,
			np_repeat_unclean(r) ? "; for more time: --at-most" : "");
	}
}

void
np_show_agreed(FILE *out, const struct np_run *run)
{
	/* netperf's lines, which parsers look for while the test runs. */
	if (np_addr_port(&run->end.peer) != 0) {
		fprintf(out, "remote listen done.\nremote port is %u\n",
			np_addr_port(&run->end.peer));
		fflush(out);
	}
}

void
np_show_outcome(FILE *out, const struct np_outcome *o)
{
	static const char *const causes[] = {
		[NP_BY_LOOP] = "its count or the far end's close",
		[NP_BY_CLOCK] = "the clock",
		[NP_BY_SIGNAL] = "a signal",
		[NP_BY_CONTROL] = "the control connection",
		[NP_BY_SILENCE] = "silence",
	};
	const struct np_tally *t = &o->tally;
	const struct np_far *far = &o->far;
	char here[NP_ADDR_TEXT], there[NP_ADDR_TEXT];

	fprintf(out, "debug: data from %s to %s, ended by %s after %.6f s\n",
		np_addr_text(&t->local, here), np_addr_text(&t->peer, there), causes[o->cause],
		np_tally_seconds(t));
	fprintf(out,
		"debug: here: %" PRIu64 " bytes in %" PRIu64 " sends, %" PRIu64 " bytes in %" PRIu64
		" receives, %" PRIu64 " transactions\n",
		t->count.sent, t->count.sends, t->count.received, t->count.receives,
		t->count.transactions);
	if (far->reported) {
		fprintf(out,
			"debug: there: %" PRIu64 " bytes in %lld sends, %" PRIu64
			" bytes in %lld receives, %.6f s\n",
			far->sent, (long long)far->sends, far->received, (long long)far->receives,
			far->elapsed);
	}
}

void
np_show_partial(char *text, size_t size, const struct np_outcome *out, const struct np_plan *p,
		unsigned done)
{
	double seconds = np_tally_seconds(&out->tally);
	char which[40] = "it", of[80] = "", length[NP_LENGTH_TEXT];

	if (!out->measured) {
		snprintf(text, size, "the result is partial: it covers %u whole iteration%s", done,
			 done == 1 ? "" : "s");
		return;
	}
	if (done > 1) {
		snprintf(which, sizeof(which), "iteration %u", done);
	}
	if (p->length > 0 && seconds >= np_plan_time_s(p)) {
		snprintf(text, size, "the result is partial: %s %s", which,
			 p->no_control ? "counts data that the far end did not read"
				       : "is without the far end's figures");
		return;
	}
	if (p->length > 0) {
		snprintf(of, sizeof(of), " of %s s", np_plan_length_text(p, length));
	} else if (p->length < 0) {
		bool counts = p->pattern->transactions;
		const struct np_counts *c = &out->tally.count;
		uint64_t work = counts ? c->transactions : np_counts_bytes(c);

		snprintf(of, sizeof(of), " and %llu of %lld %s", (unsigned long long)work,
			 (long long)-p->length, counts ? "transactions" : "bytes");
	}
	snprintf(text, size, "the result is partial: %s covers %.2f s%s", which, seconds, of);
}
