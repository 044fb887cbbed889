#include "cli/args.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "bench/engine/calls.h"
#include "bench/engine/engine.h"
#include "bench/ids.h"
#include "sys/cpu.h"

enum {
	EXPLAIN_MS = 20, /* between samples for --explain, which finds delays in them */
	LENGTH_S = 10,   /* default of -l */
	CLEAN_TIMES = 4  /* default of --at-most, in lengths of --clean */
};

/* Keep the words in the user's order for COMMAND_LINE; secrets in them are overwritten already. */
static int
keep_words(struct np_cli *cli, int argc, char **words, struct np_err *err)
{
	size_t size = 1, len = 0;

	for (int i = 0; i < argc; i++) {
		size += strlen(words[i]) + 1;
	}
	cli->command_line = malloc(size);
	if (cli->command_line == NULL) {
		return np_fail(err, NP_ESYS, 0, "memory for a copy of the command line");
	}
	for (int i = 0; i < argc; i++) {
		len = np_text_add(cli->command_line, size, len, i > 0 ? " %s" : "%s", words[i]);
	}
	return NP_OK;
}

/* Parse the argument of -o, -O or -k, but not "?": main() lists the figures instead. */
static int
parse_selectors(struct np_cli_output *o, struct np_err *err)
{
	const struct np_selection *sel = &o->selection;
	int rc;

	if (o->selectors == NULL || strcmp(o->selectors, "?") == 0) {
		return NP_OK;
	}
	rc = np_selection_parse(o->selectors, &o->selection, err);
	/* netperf prints this if fopen(3) fails, not for a directory. NULL: stdout has JSON. */
	if (rc == NP_ECONTROL && err->sys != EISDIR) {
		np_text_to_script(o->json && o->json_file == NULL ? NULL : stdout,
				  "Could not open output selection file '%s' errno %d\n",
				  o->selectors, err->sys);
	}
	/* Neither a known figure nor a file, which may have no names at all. */
	if (rc == NP_OK ? sel->names > 0 && sel->names == sel->unknowns : err->sys == ENOENT) {
		return np_stray_selectors(o->selectors, rc == NP_OK ? NP_EUSAGE : NP_ECONTROL, err);
	}
	return rc;
}

/* Parse the options before and after --, and note other words. given: all, in their order. */
static int
parse_words(struct np_cli *cli, int argc, char **argv, char *const *given, struct np_err *err)
{
	int split = 1; /* the first "--", or argc */
	unsigned scope;

	while (split < argc && strcmp(argv[split], "--") != 0) {
		split++;
	}
	if (np_options_parse(&np_global_options, 0, split, argv, cli, &cli->notes, err) != NP_OK) {
		np_stray_unparsed(err);
		return err->code;
	}
	np_stray_words(cli, argv, 0, split, given);
	np_stray_options(cli);
	scope = np_cli_scope(cli);
	if (cli->usage || cli->help || cli->version || cli->program || split == argc) {
		return NP_OK;
	}
	if (scope == 0) {
		/* Unknown, or without test options: they can't be parsed, but -h can be seen. */
		cli->test_usage = split + 2 == argc && strcmp(argv[split + 1], "-h") == 0;
		return NP_OK;
	}
	/* netperf fails for an unknown option of another scope */
	cli->notes.skip_unknown = (scope & (NP_SCOPE_OMNI | NP_SCOPE_BSD)) != 0;
	if (np_options_parse(&np_test_options, scope, argc - split, argv + split, cli, &cli->notes,
			     err) != NP_OK ||
	    parse_selectors(&cli->output, err) != NP_OK) {
		char where[64];

		snprintf(where, sizeof(where), "test option of %.40s", cli->test);
		return np_fail_in(err, where);
	}
	np_stray_words(cli, argv, split, argc, given);
	return NP_OK;
}

/* The length of an iteration: by --clean, by -l, or the default. */
static int
settle_length(struct np_cli *cli, struct np_err *err)
{
	struct np_repeat_plan *plan = &cli->confidence;

	if (plan->clean_s == 0) {
		cli->plan.length =
		    cli->plan.length != NP_LENGTH_NOT_GIVEN ? cli->plan.length : LENGTH_S;
		return NP_OK;
	}
	plan->at_most_s = plan->at_most_s != 0 ? plan->at_most_s : CLEAN_TIMES * plan->clean_s;
	if (plan->at_most_s < plan->clean_s) {
		return np_usage(err, "--at-most %d: is less than --clean %d", plan->at_most_s,
				plan->clean_s);
	}
	cli->plan.length = plan->clean_s;
	cli->evidence.caps |= NP_CAP_TEST; /* shows disturbances */
	return NP_OK;
}

int
np_cli_parse(struct np_cli *cli, int argc, char **argv, struct np_err *err)
{
	/* The parser permutes the words and overwrites secrets. */
	char **words = calloc((size_t)argc + 1, sizeof(*words));
	const struct np_target *t = &cli->target;
	struct np_cli_output *o = &cli->output;
	int rc;

	memset(cli, 0, sizeof(*cli));
	np_plan_init(&cli->plan);
	cli->plan.length = NP_LENGTH_NOT_GIVEN;
	cli->test = "TCP_STREAM";
	snprintf(cli->target.port, sizeof(cli->target.port), "%d", NP_PORT);
	snprintf(cli->data.port, sizeof(cli->data.port), "0");
	snprintf(cli->data.local_port, sizeof(cli->data.local_port), "0");
	cli->output.verbosity = cli->output.headers = 1;
	cli->output.uuid = cli->output.uuid_made;
	cli->allow_routing = -1;
	cli->confidence.max = cli->confidence.min = 1;
	cli->confidence.width = -1;
	cli->plan.near.sock.mask = cli->plan.far.sock.mask = -1;
	if (words == NULL) { /* not before: *cli must be safe to free */
		return np_fail(err, NP_ESYS, 0, "memory for a copy of the command line");
	}
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	rc = parse_words(cli, argc, argv, words, err);
	if (rc == NP_OK) {
		rc = np_check_options(cli, err);
	}
	if (rc == NP_OK && (np_port_check(t->port, t->host.text, err) != NP_OK ||
			    np_port_check(t->local_port, t->host.text, err) != NP_OK)) {
		rc = np_fail_in(err, "-p");
	}
	if (cli->evidence.explain || o->json) {
		cli->evidence.caps |= NP_CAP_TEST | NP_CAP_HOST;
	}
	if (cli->evidence.wire || cli->plan.stations > 0) {
		cli->evidence.caps |= NP_CAP_TEST | (cli->evidence.wire ? NP_CAP_WIRE : 0U);
	}
	/* --latency implies -j; its table is printed only below a classic one. */
	o->latency |= o->times;
	o->times = o->times && o->style == NP_STYLE_CLASSIC;
	if (o->human) {
		o->style = NP_STYLE_HUMAN;
		o->selection.evidence = true; /* of loss, and of what disturbed the test */
	}
	if (rc == NP_OK) {
		np_stray_names(cli);
		rc = settle_length(cli, err);
	}
	if (rc == NP_OK) {
		rc = keep_words(cli, argc, words, err);
	}
	free(words);
	return rc;
}

void
np_cli_free(struct np_cli *cli)
{
	np_plan_free(&cli->plan);
	free(cli->command_line);
	cli->command_line = NULL;
	explicit_bzero(cli->passphrase, sizeof(cli->passphrase));
	explicit_bzero(&cli->key, sizeof(cli->key));
}

/* Put the test's row, or what the options of OMNI make of it, into the plan. */
static int
choose_test(struct np_cli *cli, struct np_err *err)
{
	struct np_plan *p = &cli->plan;

	if (np_omni_choose(cli, err) != NP_OK) {
		return err->code;
	}
	p->bench = &cli->bench;
	p->pattern = cli->bench.pattern;
	p->transport = cli->bench.transport;
	p->role = cli->bench.near_role;
	p->active = true; /* a client connects */
	if ((cli->bench.flags & NP_B_MANY) != 0 && cli->associations > 0) {
		p->flows = cli->associations;
	}
	if (p->both && cli->output.style == NP_STYLE_CLASSIC && cli->output.verbosity > 0) {
		cli->output.style = NP_STYLE_COLUMNS; /* no classic table has the rates of both */
	}
	return NP_OK;
}

/* --rate is in bits for a stream, for each end that sends, and in operations for other tests. */
static int
settle_rate(struct np_cli *cli, struct np_err *err)
{
	struct np_plan *p = &cli->plan;

	if (p->pattern->offers) {
		double far = cli->far_rate > 0 ? cli->far_rate : cli->rate;

		p->near.call.offered = p->role == NP_LEAD || p->both ? (int64_t)cli->rate : 0;
		p->far.call.offered = p->role == NP_FOLLOW || p->both ? (int64_t)far : 0;
		return NP_OK;
	}
	if (cli->rate_bits || cli->rate > NP_RATE_MAX) {
		return np_usage(
		    err, "--rate: %s counts operations a second, 1 to %d (streams count bits)",
		    cli->bench.name, NP_RATE_MAX);
	}
	p->rate = (uint32_t)cli->rate;
	return NP_OK;
}

/* The sizes of requests and responses, and the length of -- -N (SCTP) in bytes or transactions. */
static int
settle_messages(struct np_cli *cli, struct np_err *err)
{
	struct np_plan *p = &cli->plan;
	bool old = (cli->bench.flags & NP_B_OLD) != 0;
	int32_t size = p->near.call.send_size, default_size;

	if (p->pattern->sized || old) { /* TCP_CC is old: it has no messages, but asks with sizes */
		/* an id of one byte distinguishes too few requests in flight */
		default_size = p->rate > 0 && np_ids_useful(p) ? NP_IDS_WIDE : 1;
		p->request = p->request < 0 ? default_size : p->request;
		p->response = p->response < 0 ? default_size : p->response;
	}
	if (!p->pattern->transactions || (!old && !p->pattern->sized)) {
		p->request = p->response = -1;
	}
	if (p->no_control && p->pattern->sized && p->far.sock.port == 0) {
		p->response = p->request; /* an echo service returns what it gets */
	}
	if (cli->messages > 0 && !p->pattern->transactions && size <= 0) {
		return np_usage(err, "-- -N: the size of %d messages is not known (add -m)",
				cli->messages);
	}
	if (cli->messages > 0) {
		p->length = -(int64_t)cli->messages * (p->pattern->transactions ? 1 : size);
	}
	return NP_OK;
}

/* Set what the test implies: TCP_NODELAY, request ids, an end by reset, routing, -b's interval. */
static void
settle_implied(struct np_cli *cli)
{
	struct np_plan *p = &cli->plan;
	struct np_call_plan *calls[] = { &p->near.call, &p->far.call };
	bool sends_datagrams =
	    !p->transport->connected && p->transport->admit == NP_ADMIT_IP && p->role == NP_LEAD;

	/* so that a request leaves when it is due, not with the next acknowledgement */
	p->nodelay = p->nodelay || (p->rate > 0 && np_delivers(p->transport));
	/* Streams of datagrams have no ids: the flag tells the daemon that the client is ours. */
	p->ids = !p->no_control && (np_ids_useful(p) || sends_datagrams);
	p->resets = !p->no_control && np_plan_may_reset(p);
	p->no_route = cli->allow_routing == -1 ? (cli->bench.flags & NP_B_ROUTE_OFF) != 0
					       : cli->allow_routing == 0;
	for (int i = 0; i < 2; i++) {
		/* -b without -w: a burst each millisecond */
		if (calls[i]->interval_burst > 0 && calls[i]->interval_us == 0) {
			calls[i]->interval_us = 1000;
		}
	}
}

/* Decide which times and evidence to collect: those asked for, and those that figures need. */
static void
settle_collecting(struct np_cli *cli)
{
	const struct np_plan *p = &cli->plan;
	struct np_cli_output *o = &cli->output;
	bool offers = p->near.call.offered > 0 || p->far.call.offered > 0;

	o->latency = o->latency || o->selection.latency;
	o->histogram = o->latency && o->verbosity >= 2;
	cli->plan.time_calls = o->latency;
	/* Outages show in the numbers of datagrams, or in what a connection has acknowledged; the
	 * numbers also show which datagrams belong to a warm-up. */
	if (offers ||
	    (p->rate > 0 && !p->pattern->connection_test && p->transport->acked != NULL) ||
	    (p->warm_up_ms > 0 && p->pattern->sequence)) {
		cli->evidence.caps |= NP_CAP_SEQUENCE;
	}
	if (o->selection.evidence || cli->evidence.cycles || cli->knee_times > 0) {
		cli->evidence.caps |= NP_CAP_TEST; /* figures of these are in the evidence */
	}
	if (cli->beside != NULL && (cli->evidence.caps & NP_CAP_TEST) == 0) {
		cli->evidence.caps |= NP_CAP_TEST;
		cli->evidence.for_beside = true;
	}
	if (cli->evidence.explain && cli->evidence.sample_ms == 0) {
		cli->evidence.sample_ms = EXPLAIN_MS;
	}
}

/* As in netperf: with 0,0 the kernel chooses; a range that ends before it begins: one port. */
static int
settle_ports(struct np_cli *cli, struct np_err *err)
{
	struct np_plan *p = &cli->plan;
	uint32_t last = p->port_max > p->port_min ? p->port_max : p->port_min;
	uint32_t max_port = np_family_ports(p->transport->family);
	uint32_t near = p->near.sock.port, far = p->far.sock.port;

	if (p->pattern->connection_test && last > UINT16_MAX) {
		return np_usage(err, "test option -p: %u is not a port (0 to 65535, or a service)",
				last);
	}
	if (near > max_port || far > max_port) {
		return np_usage(err, "test option -P: %u is not a port (0 to %u, or a service)",
				near > max_port ? near : far, max_port);
	}
	if (p->pattern->connection_test && p->port_min == 0 && p->port_max > 0) {
		/* 0,N: netperf begins somewhere below N; if possible not at a reserved port */
		p->port_min = p->port_max > IPPORT_RESERVED ? IPPORT_RESERVED : 1;
	}
	if (p->pattern->connection_test && p->port_max < p->port_min) {
		NP_NOTE(&cli->notes, "-p %u,%u: all connections come from port %u, as in netperf\n",
			p->port_min, p->port_max, p->port_min);
		p->port_max = p->port_min;
	}
	return NP_OK;
}

/* --segment-size is the size of a datagram; then -m is that of a call, which sends several. */
static int
settle_segments(struct np_cli *cli, struct np_err *err)
{
	struct np_plan *p = &cli->plan;
	struct np_end *sender = p->role == NP_LEAD ? &p->near : &p->far;
	uint32_t size = cli->segment_size, max_datagrams = size > 0 ? np_segment_most(p, size) : 0;
	int32_t call = sender->call.send_size;

	if (size == 0 || cli->list_engines) { /* a list runs nothing */
		return NP_OK;
	}
	if (p->pattern->sized) {
		return np_usage(
		    err, "--segment-size: not for %s, which sends requests and responses (-- -r)",
		    cli->bench.name);
	}
	if (sender->place.engine != &np_engine_segment) {
		return np_usage(
		    err,
		    "--segment-size: the sending end uses another engine (try --engine segment)");
	}
	if (call > 0 && (uint32_t)call < size) {
		return np_usage(err,
				"--segment-size %u: is more than the %d bytes of a call (-- -m)",
				size, call);
	}
	if (call > 0 && (uint32_t)call / size > max_datagrams) {
		return np_usage(err,
				"--segment-size %u: a call of %d bytes (-- -m) is more than %u "
				"datagrams (try -- -m %u)",
				size, call, max_datagrams, max_datagrams * size);
	}
	p->batch = call > 0 ? (uint32_t)call / size : p->batch;
	sender->call.send_size = (int32_t)size;
	return NP_OK;
}

/* -T. The processors of a list must be available; a single one may be offline, as in netperf. */
static int
settle_processors(struct np_cli *cli, struct np_err *err)
{
	struct np_plan *p = &cli->plan;
	struct np_cpu_turns available = p->near.place.turns;
	int missing = np_cpus_leave_out(&available), cpu;
	char text[NP_CPU_TURNS_TEXT];

	if (missing >= 0) {
		bool any = available.count > 0 && np_cpu_turns_text(&available, text, sizeof(text));

		return np_usage(err, "-T: processor %d is not available at this end (%s%s)",
				missing, any ? text : "leave it out", any ? " is" : "");
	}
	np_plan_place(p, 0); /* the first session, the only one of most tests */
	cpu = p->near.place.cpu;
	cli->unbound = cpu >= 0 && np_bind_cpu(cpu, err) != NP_OK;
	if (cli->unbound) {
		NP_NOTE(&cli->notes, "-T: processor %d was refused at this end\n", cpu);
	}
	if (p->far.place.cpu >= 0) {
		cli->evidence.caps |= NP_CAP_HOST; /* tells whether the far end was bound to it */
	}
	return NP_OK;
}

static uint32_t
common_factor(uint32_t a, uint32_t b)
{
	return b == 0 ? a : common_factor(b, a % b);
}

/* Make it coprime to -b: else all samples may be bursts' first, late by a CPU's wake-up. */
static void
settle_stations(struct np_plan *p)
{
	uint32_t near = np_max(p->near.call.interval_burst, 1);
	uint32_t far = np_max(p->far.call.interval_burst, 1);

	while (p->stations > 0 &&
	       (common_factor(p->stations, near) > 1 || common_factor(p->stations, far) > 1)) {
		p->stations++;
	}
}

int
np_cli_settle(struct np_cli *cli, struct np_err *err)
{
	if (choose_test(cli, err) != NP_OK || np_check_test(cli, err) != NP_OK ||
	    settle_rate(cli, err) != NP_OK || settle_messages(cli, err) != NP_OK) {
		return err->code;
	}
	settle_implied(cli);
	settle_collecting(cli);
	settle_stations(&cli->plan);
	/* Processors last: this process is bound to one. */
	if (settle_ports(cli, err) != NP_OK || settle_segments(cli, err) != NP_OK ||
	    np_check_flows(cli, err) != NP_OK || settle_processors(cli, err) != NP_OK) {
		return err->code;
	}
	np_stray_settled(cli);
	return NP_OK;
}

const struct np_unit *
np_cli_unit(const struct np_cli *cli)
{
	/* As in netperf: does the test's name contain RR, or does an OMNI test do transactions? */
	bool rr = strcasecmp(cli->test, "OMNI") == 0 ? cli->bench.pattern->transactions
						     : strstr(cli->bench.name, "RR") != NULL;
	char letter = cli->output.unit;

	if (letter == '\0') {
		letter = rr ? 'x' : 'm';
	} else if (letter == 'x' && !rr) {
		letter = 'm';
	}
	return np_unit(letter);
}

double
np_cli_work(const struct np_cli *cli, const struct np_plan *p, const struct np_counts *c)
{
	double transactions = (double)c->transactions;

	if (p->pattern->transactions) {
		/* TCP_CC has no bytes, whatever the unit */
		bool bytes = np_cli_unit(cli)->letter != 'x' && p->pattern->sized;

		return bytes ? transactions * ((double)p->request + p->response) : transactions;
	}
	return (double)np_counts_bytes(c);
}

bool
np_cli_repeats(const struct np_cli *cli)
{
	return (cli->bench.flags & NP_B_ONCE) == 0;
}

void
np_cli_plan_repeats(const struct np_cli *cli, struct np_repeat_plan *plan)
{
	*plan = cli->confidence;
	if (!np_cli_repeats(cli)) {
		plan->max = plan->min = 1;
	} else if ((cli->bench.flags & NP_B_OLD) != 0 && plan->max > plan->min) {
		plan->max--; /* netperf's older tests run one iteration less */
	}
}
