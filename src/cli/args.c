#include "cli/args.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/secret.h"
#include "base/text.h"
#include "bench/engine/calls.h"
#include "bench/engine/engine.h"
#include "bench/ids.h"
#include "bench/transport/dccp.h"
#include "cli/flows.h"
#include "cli/omni.h"
#include "cli/stray.h"
#include "cli/tests.h"
#include "sys/affinity.h"

/* Between samples for an explanation: the delays of both directions are told by these. */
enum { EXPLAIN_MS = 20 };
enum { LENGTH_S = 10, CLEAN_TIMES = 4 }; /* of -l, and of --at-most in --clean */

/* No number that people write: what -v and -P were is to be told from their defaults. */
enum { UNSAID = INT32_MIN };
static const int64_t no_length = INT64_MIN; /* -l was not given */

static void
cli_init(struct np_cli *cli)
{
	memset(cli, 0, sizeof(*cli));
	np_plan_init(&cli->plan);
	cli->plan.length = no_length;
	cli->test = "TCP_STREAM";
	snprintf(cli->target.port, sizeof(cli->target.port), "%d", NP_PORT);
	snprintf(cli->data.port, sizeof(cli->data.port), "0");
	snprintf(cli->data.local_port, sizeof(cli->data.local_port), "0");
	cli->output.verbosity = cli->output.headers = UNSAID;
	cli->allow_routing = -1;
	cli->target.family = AF_UNSPEC;
	cli->confidence.max = cli->confidence.min = 1;
	cli->confidence.width = -1;
	cli->plan.near.sock.mask = cli->plan.far.sock.mask = -1;
}

/* All words with a blank between them. */
static int
keep_words(struct np_cli *cli, int argc, char **words, struct np_err *err)
{
	size_t size = 1;
	char *at;

	for (int i = 0; i < argc; i++) {
		size += strlen(words[i]) + 1;
	}
	cli->command_line = at = malloc(size);
	if (at == NULL) {
		return np_fail(err, NP_ESYS, 0, "memory for a copy of the command line");
	}
	for (int i = 0; i < argc; i++) {
		size_t n = strlen(words[i]);

		memcpy(at, words[i], n);
		at += n;
		*at++ = ' ';
	}
	at[-1] = '\0';
	return NP_OK;
}

/* The first "--", or argc. */
static int
separator(int argc, char **argv)
{
	int i = 1;

	while (i < argc && strcmp(argv[i], "--") != 0) {
		i++;
	}
	return i;
}

/* Are there names in it, and is none of them a figure's? A file may have empty columns. */
static bool
names_none(const struct np_selection *sel)
{
	size_t names = 0, unknown = 0;

	for (int g = 0; g < NP_SELECT_GROUPS; g++) {
		for (size_t i = 0; i < sel->count[g]; i++) {
			names++;
			unknown += sel->id[g][i] == NP_SELECT_UNKNOWN;
		}
	}
	return names > 0 && unknown == names;
}

static int
parse_selectors(struct np_cli_output *o, struct np_err *err)
{
	int rc;

	if (o->selectors == NULL || strcmp(o->selectors, "?") == 0) {
		return NP_OK;
	}
	rc = np_selection_parse(o->selectors, &o->selection, err);
	if (rc == NP_ECONTROL && err->sys != EISDIR) {
		np_text_to_script(o->json && o->json_file == NULL ? NULL : stdout,
				  "Could not open output selection file '%s' errno %d\n",
				  o->selectors, err->sys);
	}
	if (rc == NP_OK ? names_none(&o->selection) : err->sys == ENOENT) {
		return np_stray_selectors(o->selectors, rc == NP_OK ? NP_EUSAGE : NP_ECONTROL, err);
	}
	return rc;
}

/* Words from..to of a command line that no option has taken. */
static void
note_stray(struct np_cli *cli, char **argv, int from, int to, const struct np_word_list *given)
{
	const struct np_word_list stray = { to - from - cli->notes.words,
					    argv + from + cli->notes.words };

	np_stray_words(cli, &stray, from > 0, given);
}

static int
parse_words(struct np_cli *cli, int argc, char **argv, const struct np_word_list *given,
	    struct np_err *err)
{
	int split = separator(argc, argv);
	unsigned scope;

	if (np_options_parse(np_global_options, np_global_options_count, 0, split, argv, cli,
			     &cli->notes, err) != NP_OK) {
		np_stray_letter(err);
		np_stray_reader(cli, err);
		return err->code;
	}
	note_stray(cli, argv, 0, split, given);
	np_stray_options(cli);
	scope = np_cli_scope(cli);
	if (cli->usage || cli->help || cli->version || cli->program || split == argc) {
		return NP_OK;
	}
	if (scope == 0) {
		/* Its options are not known; but that its help is wanted can be seen. */
		cli->test_usage = split + 2 == argc && strcmp(argv[split + 1], "-h") == 0;
		return NP_OK;
	}
	cli->notes.skip_unknown = (scope & (NP_SCOPE_OMNI | NP_SCOPE_BSD)) != 0;
	if (np_options_parse(np_test_options, np_test_options_count, scope, argc - split,
			     argv + split, cli, &cli->notes, err) != NP_OK ||
	    parse_selectors(&cli->output, err) != NP_OK) {
		char where[64];

		snprintf(where, sizeof(where), "test option of %.40s", cli->test);
		return np_fail_in(err, where);
	}
	note_stray(cli, argv, split, argc, given);
	return NP_OK;
}

static void
settle_loudness(struct np_cli_output *o)
{
	o->verbosity = o->verbosity != UNSAID ? o->verbosity : 1;
	o->headers = o->headers != UNSAID ? o->headers : 1;
}

/* Who selects figures has named what is wanted: then the times are only kept. */
static void
settle_times(struct np_cli_output *o)
{
	o->latency |= o->times;
	o->times = o->times && o->style == NP_STYLE_CLASSIC;
}

static int
settle_human(struct np_cli *cli, struct np_err *err)
{
	struct np_cli_output *o = &cli->output;

	if (!o->human) {
		return NP_OK;
	}
	if (o->style != NP_STYLE_CLASSIC) {
		return np_usage(err, "--human: together with -k, -o or -O (choose one of them)");
	}
	if (o->json && o->json_file == NULL) {
		return np_usage(
		    err, "--human: --json prints the document in its place (try --json=FILE)");
	}
	o->style = NP_STYLE_HUMAN;
	o->limits = cli->evidence.explain;
	o->selection.evidence = true; /* of loss, and of who disturbed the test */
	return NP_OK;
}

/* Undisturbed time is gathered by iterations, so the user cannot choose their length. */
static int
settle_clean(struct np_cli *cli, struct np_err *err)
{
	struct np_repeat_plan *plan = &cli->confidence;
	bool said = cli->plan.length != no_length;

	if (plan->clean_s == 0) {
		cli->plan.length = said ? cli->plan.length : LENGTH_S;
		return plan->at_most_s == 0
			   ? NP_OK
			   : np_usage(err, "--at-most: limits --clean, which is not given");
	}
	if (said && (cli->plan.length != plan->clean_s || cli->plan.length_less_ms != 0)) {
		return np_usage(err, "-l: --clean %d sets the length of the test (leave out -l)",
				plan->clean_s);
	}
	if (plan->level != 0 || plan->max > 1) {
		return np_usage(err, "--clean: together with -i or -I (both set the number of "
				     "iterations: choose one)");
	}
	plan->at_most_s = plan->at_most_s != 0 ? plan->at_most_s : CLEAN_TIMES * plan->clean_s;
	if (plan->at_most_s < plan->clean_s) {
		return np_usage(err, "--at-most %d: is less than --clean %d", plan->at_most_s,
				plan->clean_s);
	}
	cli->plan.length = plan->clean_s;
	cli->evidence.caps |= NP_CAP_TEST;
	return NP_OK;
}

static int
check_control_ports(const struct np_cli_target *t, struct np_err *err)
{
	if (np_port_check(t->port, t->host.text, err) != NP_OK ||
	    np_port_check(t->local_port, t->host.text, err) != NP_OK) {
		return np_fail_in(err, "-p");
	}
	return NP_OK;
}

int
np_cli_parse(struct np_cli *cli, int argc, char **argv, struct np_err *err)
{
	/* The parser moves the words about, and overwrites the secrets among them. */
	char **words = malloc((size_t)argc * sizeof(*words));
	int rc;

	cli_init(cli);
	if (words == NULL) {
		return np_fail(err, NP_ESYS, 0, "memory for a copy of the command line");
	}
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	rc = parse_words(cli, argc, argv, &(const struct np_word_list){ argc, words }, err);
	if (rc == NP_OK && cli->target.passphrase != NULL && cli->target.key.count > 0) {
		rc =
		    np_usage(err, "--key-file: together with -Z or --passphrase-file (choose one)");
	}
	if (rc == NP_OK) {
		rc = check_control_ports(&cli->target, err);
	}
	settle_loudness(&cli->output);
	settle_times(&cli->output);
	if (rc == NP_OK) {
		np_stray_names(cli);
		rc = settle_clean(cli, err);
	}
	if (rc == NP_OK && cli->preflight && cli->output.json) {
		rc = np_usage(err, "--preflight: runs no test, so there is nothing for --json to "
				   "write (choose one)");
	}
	if (rc == NP_OK) {
		rc = settle_human(cli, err);
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
	np_secret_wipe(cli->target.passphrase_text, sizeof(cli->target.passphrase_text));
	np_secret_wipe(&cli->target.key, sizeof(cli->target.key));
}

/* Before anything is connected or printed. */
static int
check_alignments(const struct np_plan *p, struct np_err *err)
{
	const uint32_t near[] = { p->near.call.send_align, p->near.call.recv_align };
	const uint32_t far[] = { p->far.call.send_align, p->far.call.recv_align };

	for (int i = 0; i < 2; i++) {
		if ((near[i] & (near[i] - 1)) != 0 || (far[i] & (far[i] - 1)) != 0) {
			return np_usage(err, "-%c: an alignment must be a power of two (try 4096)",
					(near[i] & (near[i] - 1)) != 0 ? 'a' : 'A');
		}
	}
	return NP_OK;
}

/* A burst without an interval is one of a millisecond. */
static void
settle_pacing(struct np_end *e)
{
	if (e->call.interval_burst > 0 && e->call.interval_us == 0) {
		e->call.interval_us = 1000;
	}
}

static void
settle_collecting(struct np_cli *cli)
{
	cli->output.latency = cli->output.latency || cli->output.selection.latency;
	cli->output.histogram = cli->output.latency && cli->output.verbosity >= 2;
	cli->plan.time_calls = cli->output.latency;
	if (cli->plan.near.call.offered > 0 || cli->plan.far.call.offered > 0 ||
	    (cli->plan.rate > 0 && !cli->plan.pattern->connection_test &&
	     cli->plan.transport->acked != NULL)) {
		cli->evidence.caps |= NP_CAP_SEQUENCE; /* of outages */
	}
	if (cli->plan.warm_up_ms > 0 && cli->plan.pattern->sequence) {
		cli->evidence.caps |= NP_CAP_SEQUENCE; /* datagrams say whether they count */
	}
	cli->evidence.caps |= cli->beside != NULL || cli->output.selection.evidence ||
				      cli->evidence.cycles || cli->knee_times > 0
				  ? NP_CAP_TEST
				  : 0u;
	if (cli->evidence.explain && cli->evidence.sample_ms == 0) {
		cli->evidence.sample_ms = EXPLAIN_MS;
	}
}

/* Lists are not netperf's: what can't be had of them is an error. */
static int
check_places(const struct np_plan *p, struct np_err *err)
{
	struct np_cpu_turns left = p->near.place.turns;
	int missing = np_cpus_leave_out(&left);
	char text[NP_CPU_TURNS_TEXT];

	if (missing < 0) {
		return NP_OK;
	}
	if (left.count == 0 || !np_cpu_turns_text(&left, text, sizeof(text))) {
		return np_usage(err, "-T: processor %d is not available at this end (leave it out)",
				missing);
	}
	return np_usage(err, "-T: processor %d is not available at this end (%s is)", missing,
			text);
}

static bool
carries_several(const struct np_end *e)
{
	return e->place.engine != NULL && e->place.engine->calls == &np_batch_turns;
}

static int
check_batch(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;

	if (p->batch == 0 || cli->list_engines || carries_several(&p->near) ||
	    carries_several(&p->far)) {
		return NP_OK;
	}
	return np_usage(err,
			"--batch: needs an engine that carries several datagrams in a call (try "
			"--engine batch)");
}

static int
check_cipher(const struct np_cli *cli, struct np_err *err)
{
	if (cli->plan.tls_suite == 0 || cli->plan.transport->encrypts) {
		return NP_OK;
	}
	return np_usage(err, "--tls-cipher: %s does not encrypt (try TLS_STREAM or TLS_RR)",
			cli->bench.name);
}

/* Bytes of a datagram and of a call are said in the place of messages and how many a call. */
static int
settle_segments(struct np_cli *cli, struct np_err *err)
{
	struct np_plan *p = &cli->plan;
	struct np_end *sender = p->role == NP_LEAD ? &p->near : &p->far;
	uint32_t size = cli->segment_size, most = size > 0 ? np_segment_most(p, size) : 0;
	int32_t call = sender->call.send_size;

	if (size == 0 || cli->list_engines) {
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
	if (call > 0 && (uint32_t)call / size > most) {
		return np_usage(err,
				"--segment-size %u: a call of %d bytes (-- -m) is more than %u "
				"datagrams (try -- -m %u)",
				size, call, most, most * size);
	}
	p->batch = call > 0 ? (uint32_t)call / size : p->batch;
	sender->call.send_size = (int32_t)size;
	return NP_OK;
}

/* DCCP has congestion controls of its own and service codes, and only DCCP has them. */
static int
check_dccp(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	const struct np_end *ends[] = { &p->near, &p->far };
	bool is_dccp = p->transport->ip_protocol == NP_IPPROTO_DCCP;

	if (p->service != 0 && !is_dccp) {
		return np_usage(err, "--service-code: %s is no test of DCCP (try -t DCCP_STREAM)",
				cli->bench.name);
	}
	for (int i = 0; i < 2; i++) {
		const char *name = ends[i]->sock.cong;

		if (np_dccp_ccid(name) > 0 && !is_dccp) {
			return np_usage(err, "--ccid: %s is no test of DCCP (try -t DCCP_STREAM)",
					cli->bench.name);
		}
		if (name[0] != '\0' && np_dccp_ccid(name) == 0 && is_dccp) {
			return np_usage(err, "-K: DCCP has no '%s' (try --ccid 2)", name);
		}
	}
	return NP_OK;
}

/* As netperf reads the range of -p: 0,0 leaves ports to the kernel, one that ends before it begins
 * is its first port. Tests without a connection for each transaction do not look at it. */
static int
settle_port_range(struct np_cli *cli, struct np_err *err)
{
	struct np_plan *p = &cli->plan;
	uint32_t most = p->port_max > p->port_min ? p->port_max : p->port_min;

	if (!p->pattern->connection_test) {
		return NP_OK;
	}
	if (most > UINT16_MAX) {
		return np_usage(err, "test option -p: %u is not a port (0 to 65535, or a service)",
				most);
	}
	if (p->port_min == 0 && p->port_max > 0) {
		p->port_min = p->port_max > IPPORT_RESERVED ? IPPORT_RESERVED : 1;
	}
	if (p->port_max < p->port_min) {
		NP_NOTE(&cli->notes, "-p %u,%u: all connections come from port %u, as in netperf\n",
			p->port_min, p->port_max, p->port_min);
		p->port_max = p->port_min;
	}
	return NP_OK;
}

static int
check_data_ports(const struct np_plan *p, struct np_err *err)
{
	uint32_t most = np_family_ports(p->transport->family);
	uint32_t near = p->near.sock.port, far = p->far.sock.port;

	if (near > most || far > most) {
		return np_usage(err, "test option -P: %u is not a port (0 to %u, or a service)",
				near > most ? near : far, most);
	}
	return NP_OK;
}

/* A count of messages as the length of a test: in bytes, or transactions. */
static int
settle_messages(struct np_cli *cli, struct np_err *err)
{
	struct np_plan *p = &cli->plan;
	int32_t size = p->near.call.send_size;

	if (!p->pattern->transactions && size <= 0) {
		return np_usage(err,
				"-- -N: how many bytes %d messages are, only their size tells (add "
				"-m)",
				cli->messages);
	}
	p->length = -(int64_t)cli->messages * (p->pattern->transactions ? 1 : size);
	return NP_OK;
}

/* A stream of them: the daemon is told that who sends it is ours, which says where it sends them.
 */
static bool
sends_datagrams(const struct np_plan *p)
{
	return !p->transport->connected && p->transport->admit == NP_ADMIT_IP && p->role == NP_LEAD;
}

/* The options of tests over SCTP. */
static int
settle_sctp(struct np_cli *cli, struct np_err *err)
{
	bool also = cli->also[0][0] != '\0' || cli->also[1][0] != '\0';

	if (also && !cli->bench.transport->several_paths) {
		return np_usage(err,
				"-- --also-bind: %s has one path (try SCTP_STREAM, or -- -T sctp)",
				cli->bench.transport->name);
	}
	if (also && (cli->plan.no_control || cli->plan.both)) {
		return np_usage(err, "-- --also-bind: not with %s",
				cli->plan.both ? "--both" : "-N");
	}
	if ((cli->bench.flags & NP_B_MANY) != 0 && cli->associations > 0) {
		cli->plan.flows = cli->associations;
	}
	return cli->messages > 0 ? settle_messages(cli, err) : NP_OK;
}

/* Of a stream in bits, of all else in operations. */
static int
settle_rate(struct np_cli *cli, struct np_err *err)
{
	struct np_plan *p = &cli->plan;

	if (cli->far_rate > 0 && !p->both) {
		return np_usage(err, "--rate: two rates are for --both");
	}
	if (cli->knee_times > 0 && (p->both || p->role != NP_LEAD)) {
		return np_usage(err, "--rate auto: not for what the far end sends");
	}
	if (p->pattern->offers) {
		double far = cli->far_rate > 0 ? cli->far_rate : cli->rate;

		p->near.call.offered = p->role == NP_LEAD || p->both ? (int64_t)cli->rate : 0;
		p->far.call.offered = p->role == NP_FOLLOW || p->both ? (int64_t)far : 0;
		return NP_OK;
	}
	if (cli->rate_bits || cli->rate > NP_RATE_MAX) {
		return np_usage(
		    err,
		    "--rate: of %s it is the operations a second, 1 to %d (streams have "
		    "one in bits)",
		    cli->bench.name, NP_RATE_MAX);
	}
	p->rate = (uint32_t)cli->rate;
	return NP_OK;
}

int
np_cli_settle(struct np_cli *cli, struct np_err *err)
{
	struct np_plan *p = &cli->plan;
	const struct np_bench *bench;
	int32_t least;
	bool old;

	if (np_omni_choose(cli, err) != NP_OK) {
		return err->code;
	}
	if (p->both && cli->output.style == NP_STYLE_CLASSIC && cli->output.verbosity > 0) {
		cli->output.style = NP_STYLE_COLUMNS; /* no classic table has the rates of both */
	}
	bench = &cli->bench;
	old = (bench->flags & NP_B_OLD) != 0;
	p->bench = bench;
	p->pattern = bench->pattern;
	p->transport = bench->transport;
	p->role = bench->near_role;
	p->active = true;
	if (settle_rate(cli, err) != NP_OK) {
		return err->code;
	}
	if (p->pattern->sized || old) {
		/* Ids of one byte tell few apart that are in flight. */
		least = p->rate > 0 && np_ids_useful(p) ? NP_IDS_WIDE : 1;
		p->request = p->request < 0 ? least : p->request;
		p->response = p->response < 0 ? least : p->response;
	}
	if (!p->pattern->transactions || (!old && !p->pattern->sized)) {
		p->request = p->response = -1;
	}
	if (p->no_control && p->pattern->sized && p->far.sock.port == 0) {
		p->response = p->request; /* as an echo service answers */
	}
	/* A request that is due does not wait for the acknowledgement of the one before. */
	p->nodelay = p->nodelay || (p->rate > 0 && np_delivers(p->transport));
	if (settle_sctp(cli, err) != NP_OK) {
		return err->code;
	}
	p->ids = !p->no_control && (np_ids_useful(p) || sends_datagrams(p));
	p->resets = !p->no_control && np_plan_may_reset(p);
	p->no_route = cli->allow_routing == -1 ? (bench->flags & NP_B_ROUTE_OFF) != 0
					       : cli->allow_routing == 0;
	settle_pacing(&p->near);
	settle_pacing(&p->far);
	settle_collecting(cli);
	if (cli->confidence.clean_s > 0 && !np_cli_repeats(cli)) {
		return np_usage(err, "--clean: %s runs only once", bench->name);
	}
	if (settle_port_range(cli, err) != NP_OK || check_data_ports(p, err) != NP_OK ||
	    check_alignments(p, err) != NP_OK || check_batch(cli, err) != NP_OK ||
	    settle_segments(cli, err) != NP_OK || check_cipher(cli, err) != NP_OK) {
		return err->code;
	}
	if (check_dccp(cli, err) != NP_OK || np_flows_check(cli, err) != NP_OK) {
		return err->code;
	}
	np_plan_place(p, 0);
	if (check_places(p, err) != NP_OK) {
		return err->code;
	}
	cli->evidence.caps |= p->far.place.cpu >= 0 ? NP_CAP_HOST : 0u; /* does it get that? */
	/* netperf says nothing of a processor that can't be had: scripts name one that may be
	 * offline. */
	cli->unbound = p->near.place.cpu >= 0 && np_bind_cpu(p->near.place.cpu, err) != NP_OK;
	if (cli->unbound) {
		NP_NOTE(&cli->notes, "-T: processor %d was refused at this end\n",
			p->near.place.cpu);
	}
	np_stray_settled(cli);
	return NP_OK;
}

/* netperf goes by the letters RR in the test's name, for OMNI by what the test does. */
static bool
counts_transactions(const struct np_cli *cli)
{
	if (strcasecmp(cli->test, "OMNI") == 0) {
		return cli->bench.pattern->transactions;
	}
	return strstr(cli->bench.name, "RR") != NULL;
}

const struct np_unit *
np_cli_unit(const struct np_cli *cli)
{
	bool rr = counts_transactions(cli);
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
		plan->max--; /* netperf's older tests stop one earlier */
	}
}

/*
 * A figure that comes with the daemon's results or behind them: REMOTE_ ones, its socket buffers at
 * the end, what its evidence tells.
 */
static bool
is_far(enum np_metric_id id)
{
	return id == NP_M_RSS_SIZE_END || id == NP_M_RSR_SIZE_END || np_metric_of_evidence(id) ||
	       strncmp(np_metric(id)->name, "REMOTE_", strlen("REMOTE_")) == 0;
}

bool
np_cli_wants_far(const struct np_cli *cli)
{
	if (cli->plan.far.place.measure_cpu || cli->output.json ||
	    (cli->output.style != NP_STYLE_CLASSIC && cli->output.selectors == NULL)) {
		return true;
	}
	for (int g = 0; cli->output.style != NP_STYLE_CLASSIC && g < NP_SELECT_GROUPS; g++) {
		for (size_t i = 0; i < cli->output.selection.count[g]; i++) {
			int id = cli->output.selection.id[g][i];

			if (id >= 0 && id < NP_METRICS && is_far((enum np_metric_id)id)) {
				return true;
			}
		}
	}
	return false;
}
