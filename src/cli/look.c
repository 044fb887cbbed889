#include "cli/look.h"

#include <string.h>
#include <sys/socket.h>

#include "bench/engine/engine.h"

/* As in netperf, an address of more than seven characters is left out. */
static const char *
short_address(const struct np_addr *a, char text[NP_ADDR_TEXT])
{
	np_addr_host(a, text);
	if (strlen(text) > 7) {
		text[0] = '\0';
	}
	return text;
}

/* Print settings that netperf does not have, if they differ from their defaults. */
static void
print_extensions(FILE *out, const struct np_cli *cli)
{
	const struct np_plan *p = &cli->plan;

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
	if (p->rate > 0) {
		char text[NP_ARRIVALS_TEXT], rate[32];

		snprintf(rate, sizeof(rate), cli->knee_times > 0 ? "auto" : "%u/s", p->rate);
		fprintf(out, " : rate %s %s", rate, np_arrivals_text(p->arrivals, text));
	}
	if (p->warm_up_ms > 0) {
		fprintf(out, " : warm-up %g s", p->warm_up_ms / 1e3);
	}
	if (p->near.place.engine != NULL || p->far.place.engine != NULL) {
		fprintf(out, " : engine %s,%s", np_engine_of(p)->name,
			p->far.place.engine != NULL ? p->far.place.engine->name : "");
	}
}

/* Print the features in use; scripts look for "demo": interim results are available. */
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
	print_extensions(out, cli);
}

void
np_cli_banner(FILE *out, const struct np_cli *cli, const struct np_look *look,
	      const struct np_ends *ends)
{
	const char *family = np_family(cli->plan.family)->name;
	const char *from = ends->local.name;
	unsigned port = cli->plan.far.sock.port;
	char here[NP_ADDR_TEXT], there[NP_ADDR_TEXT];

	if (look->style == NP_STYLE_HUMAN) {
		return;
	}
	if (cli->plan.copy_avoidance && (cli->bench.flags & NP_B_OLD) != 0) {
		/* netperf's older tests can't avoid copies, and print this. */
		fputs("Local send copy avoidance not available.\n"
		      "Local recv copy avoidance not available.\n",
		      out);
	}
	np_classic_preface(out, &look->classic);
	if (look->classic.headers && cli->terms.eth != NULL) { /* a test of the link layer */
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
	if (look->classic.headers && cli->bench.transport->named) {
		if (from[0] == '\0') { /* the wildcard */
			from = np_cli_any_address(cli->plan.family);
		}
		if (cli->plan.no_control) {
			port = np_addr_port(
			    &ends->remote.at[0]); /* a service's port may come with its name */
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
np_cli_look(const struct np_cli *cli, struct np_look *look)
{
	const struct np_plan *p = &cli->plan;
	const struct np_cli_output *o = &cli->output;
	unsigned flags = cli->bench.flags;

	*look = (struct np_look){ .style = o->style,
				  .classic = { .layout = cli->bench.layout,
					       .unit = np_cli_unit(cli),
					       .verbosity = o->verbosity,
					       .headers = o->headers != 0,
					       .local_cpu = p->near.place.measure_cpu,
					       .remote_cpu = p->far.place.measure_cpu,
					       .brand = o->brand },
				  .histogram = o->histogram,
				  .histogram_of = p->pattern->words[p->role].timed,
				  .times = o->times,
				  .average = (flags & NP_B_SPARSE) != 0,
				  .latency = o->latency,
				  .congestion = o->selection.congestion };
	look->transactions = p->pattern->transactions &&
			     (look->classic.unit->letter == 'x' || (flags & NP_B_OLD) != 0);
	if (cli->output.selectors != NULL) {
		look->list = cli->output.selection;
	} else {
		enum np_select_kind kind = p->both && !np_delivers(p->transport)
					       ? NP_SELECT_BOTH_LOSSY
					   : p->both                  ? NP_SELECT_BOTH
					   : p->pattern->transactions ? NP_SELECT_TRANSACTIONS
					   : p->role == NP_LEAD       ? NP_SELECT_SEND
								      : NP_SELECT_RECEIVE;

		np_selection_default(kind, p->near.place.measure_cpu || p->far.place.measure_cpu,
				     &look->list);
	}
}

const struct np_name *
np_cli_local_name(const struct np_cli *cli)
{
	if (cli->data.local.given) {
		return &cli->data.local;
	}
	return cli->target.local.given && !cli->data.host.given ? &cli->target.local : NULL;
}

const char *
np_cli_any_address(int family)
{
	return np_family(family)->version == 6 ? "::0" : "0.0.0.0";
}

static const char *
text_or_none(const char *text)
{
	return text != NULL ? text : "";
}

void
np_cli_record_options(const struct np_cli *cli, struct np_record *r)
{
	/* As in netperf, of the test that -t names, whatever its test options -T and -t say. */
	const struct np_bench *row = np_bench_find(cli->test);
	const struct np_transport *t = row != NULL ? row->transport : NULL;
	const struct np_name *local = np_cli_local_name(cli);
	int family = cli->data.family;
	int asked_family = np_family_or(cli->data.host.family, cli->target.host.family);

	np_record_text(r, NP_M_OUTPUT_NONE, " ");
	np_record_text(r, NP_M_SOCKET_TYPE,
		       t != NULL && t->socktype == SOCK_SEQPACKET ? "Seqpacket"
		       : t != NULL && t->bounded                  ? "Datagram"
								  : "Stream");
	np_record_int(r, NP_M_LOCAL_CPU_BIND, cli->plan.near.place.cpu);
	np_record_int(r, NP_M_REMOTE_CPU_BIND, cli->plan.far.place.cpu);
	np_record_text(r, NP_M_LOCAL_FILL_FILE, text_or_none(cli->plan.near.call.fill_file));
	np_record_text(r, NP_M_REMOTE_FILL_FILE, text_or_none(cli->plan.far.call.fill_file));
	np_record_text(r, NP_M_COMMAND_LINE, cli->command_line);
	np_record_text(r, NP_M_UUID, cli->output.uuid);
	if (cli->output.brand != NULL) {
		np_record_text(r, NP_M_RESULT_BRAND, cli->output.brand);
	}
	if (cli->data.local.given) {
		family = np_family_or(family, cli->data.local.family);
	}
	np_record_text(r, NP_M_SOURCE_PORT, cli->data.local_port);
	np_record_text(r, NP_M_SOURCE_ADDR,
		       local != NULL ? local->text : np_cli_any_address(cli->plan.family));
	np_record_int(r, NP_M_SOURCE_FAMILY, family);
	np_record_text(r, NP_M_DEST_PORT, cli->data.port);
	np_record_text(r, NP_M_DEST_ADDR,
		       cli->data.host.given ? cli->data.host.text : cli->target.host.text);
	/* As in netperf: with a control connection the family of the data, else what was asked. */
	np_record_int(r, NP_M_DEST_FAMILY, cli->plan.no_control ? asked_family : cli->plan.family);
	NP_MARK_IF(family == AF_UNSPEC, r, NP_M_SOURCE_FAMILY); /* none was given: not known */
	np_record_withdraw(r);
}
