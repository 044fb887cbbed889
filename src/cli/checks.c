#include "cli/args.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fds.h"
#include "bench/engine/calls.h"
#include "bench/engine/engine.h"
#include "bench/stamps.h"
#include "bench/transport/dccp.h"
#include "net/sources.h"
#include "sys/cpu.h"
#include "sys/host.h"

/* An option that is refused if the row applies. */
struct conflict {
	bool applies;
	const char *option;
	const char *test; /* a name to be put before the reason; NULL: none */
	const char *why;
};

/* Fail (NP_EUSAGE) by the first row that applies. */
static int
refuse(const struct conflict *rows, size_t count, struct np_err *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct conflict *c = &rows[i];

		if (c->applies) {
			return np_usage(err, "%s: %s%s%s", c->option,
					c->test != NULL ? c->test : "", c->test != NULL ? " " : "",
					c->why);
		}
	}
	return NP_OK;
}

#define REFUSE(rows, err) refuse(rows, sizeof(rows) / sizeof((rows)[0]), err)

int
np_check_options(const struct np_cli *cli, struct np_err *err)
{
	const struct np_cli_output *o = &cli->output;
	const struct np_repeat_plan *r = &cli->confidence;
	bool clean = r->clean_s > 0;
	/* -l with the length of --clean contradicts nothing. */
	bool other_length = cli->plan.length != NP_LENGTH_NOT_GIVEN &&
			    (cli->plan.length != r->clean_s || cli->plan.length_less_ms != 0);
	const struct conflict rows[] = {
		{ cli->target.passphrase != NULL && cli->target.key != NULL, "--key-file", NULL,
		  "together with -Z or --passphrase-file (choose one)" },
		{ !clean && r->at_most_s != 0, "--at-most", NULL,
		  "limits --clean, which is not given" },
		{ clean && other_length, "-l", NULL,
		  "--clean sets the length of the test (leave out -l)" },
		{ clean && (r->level != 0 || r->max > 1), "--clean", NULL,
		  "together with -i or -I (both set the number of iterations: choose one)" },
		{ cli->preflight && o->json, "--preflight", NULL,
		  "runs no test, so there is nothing for --json to write (choose one)" },
		{ o->human && o->style != NP_STYLE_CLASSIC, "--human", NULL,
		  "together with -k, -o or -O (choose one of them)" },
		{ o->human && o->json && o->json_file == NULL, "--human", NULL,
		  "--json prints the document in its place (try --json=FILE)" },
	};

	return REFUSE(rows, err);
}

static bool
is_power_of_two(uint32_t n)
{
	return (n & (n - 1)) == 0;
}

/* Is a congestion control named that is TCP's, not a CCID of DCCP? */
static bool
is_tcp_cong(const char *cong)
{
	return cong[0] != '\0' && np_dccp_ccid(cong) == 0;
}

/* Does that end's engine carry several datagrams in a call? */
static bool
carries_several(const struct np_end *e)
{
	return e->place.engine != NULL && e->place.engine->calls == &np_batch_turns;
}

/* Options that need a certain transport or engine, or a power of two. */
static int
check_support(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	const struct np_call_plan *near = &p->near.call, *far = &p->far.call;
	const char *test = cli->bench.name;
	bool also = cli->also[0][0] != '\0' || cli->also[1][0] != '\0';
	bool dccp = p->transport->ip_protocol == NP_IPPROTO_DCCP;
	bool ccid = np_dccp_ccid(p->near.sock.cong) != 0 || np_dccp_ccid(p->far.sock.cong) != 0;
	bool cong = is_tcp_cong(p->near.sock.cong) || is_tcp_cong(p->far.sock.cong);
	const struct conflict rows[] = {
		{ also && !p->transport->several_paths, "-- --also-bind", p->transport->name,
		  "has one path (try SCTP_STREAM, or -- -T sctp)" },
		{ cli->also[0][0] == '+' || cli->also[1][0] == '+', "-- --also-bind", NULL,
		  "an address is missing before +" },
		{ also && p->both, "-- --also-bind", NULL, "not with --both" },
		{ also && p->no_control, "-- --also-bind", NULL, "not with -N" },
		{ !is_power_of_two(near->send_align) || !is_power_of_two(near->recv_align), "-a",
		  NULL, "an alignment must be a power of two (try 4096)" },
		{ !is_power_of_two(far->send_align) || !is_power_of_two(far->recv_align), "-A",
		  NULL, "an alignment must be a power of two (try 4096)" },
		{ p->batch > 0 && !cli->list_engines && !carries_several(&p->near) &&
		      !carries_several(&p->far),
		  "--batch", NULL,
		  "needs an engine that carries several datagrams in a call (try --engine batch)" },
		{ p->tls_suite != 0 && !p->transport->encrypts, "--tls-cipher", test,
		  "does not encrypt (try TLS_STREAM or TLS_RR)" },
		{ p->service != 0 && !dccp, "--service-code", test,
		  "is no test of DCCP (try -t DCCP_STREAM)" },
		{ ccid && !dccp, "--ccid", test, "is no test of DCCP (try -t DCCP_STREAM)" },
		{ cong && dccp, "-K", NULL,
		  "DCCP has congestion controls of its own (try --ccid 2)" },
	};

	return REFUSE(rows, err);
}

/* --rate, --beside, --clean and --warm-up. */
static int
check_load(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	const struct np_repeat_plan *r = &cli->confidence;
	const char *test = cli->bench.name;
	bool rate = cli->rate > 0, knee = cli->knee_times > 0;
	bool counted = p->length < 0 || cli->messages > 0;
	const struct conflict rows[] = {
		{ r->clean_s > 0 && (cli->bench.flags & NP_B_ONCE) != 0, "--clean", test,
		  "runs only once" },
		{ cli->far_rate > 0 && !p->both, "--rate", NULL, "two rates are for --both" },
		{ knee && (p->both || p->role != NP_LEAD), "--rate auto", NULL,
		  "not for what the far end sends" },
		{ p->arrivals != NP_ARRIVE_EVENLY && !rate, "--arrivals", NULL, "needs a --rate" },
		{ knee && cli->beside != NULL, "--rate auto", NULL,
		  "repeats the test by itself (leave out --beside)" },
		{ knee && r->clean_s > 0, "--rate auto", NULL,
		  "repeats the test by itself (leave out --clean)" },
		{ knee && r->max > 1, "--rate auto", NULL,
		  "repeats the test by itself (leave out -i and -I)" },
		{ rate && cli->no_loss && (!p->pattern->offers || np_delivers(p->transport)),
		  "--rate ndr", test,
		  "has no datagrams that can be lost (UDP_STREAM has; --rate auto is for others)" },
		{ p->warm_up_ms > 0 && counted && !p->pattern->transactions, "--warm-up", NULL,
		  "not for a stream that ends by a count (use a time, -l S)" },
		{ cli->beside != NULL && p->no_control, "--beside", NULL,
		  "needs a netserver, which -N leaves out" },
		{ cli->beside != NULL && (p->length == 0 || counted), "--beside", NULL,
		  "needs a test by time (-l with seconds)" },
	};

	return REFUSE(rows, err);
}

/* --both, --spread, --ramp, --source-range and --flows. */
static int
check_connections(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	const char *test = cli->bench.name;
	bool one = p->flows < 2;
	bool ramp = p->ramp > 0, sources = p->sources > 0;
	/* OMNI allows either role, over TCP (both flags) or UDP (neither), but not over DCCP. */
	bool can_both = p->pattern == &np_pattern_stream && cli->bench.code == NP_OMNI &&
			p->transport->connected == p->transport->reliable;
	const struct conflict rows[] = {
		{ p->both && !can_both, "--both", test,
		  "is not a stream that either end can send (try TCP_STREAM)" },
		{ p->both && p->no_control, "--both", NULL,
		  "needs a control connection, which -N leaves out" },
		{ p->spread && one, "--spread", NULL,
		  "one data connection uses one queue (try --flows 8)" },
		{ p->spread && p->fast_open, "--spread", NULL,
		  "not with TCP Fast Open, which connects with the first data (leave out -- -F)" },
		{ p->spread && p->both, "--spread", NULL,
		  "needs a single session (leave out --both)" },
		{ p->spread && !np_plan_spreads(p), "--spread", test,
		  "has no lasting IP connections to make again (try TCP_STREAM, TCP_MAERTS or "
		  "TCP_RR)" },
		{ ramp && one, "--ramp", NULL,
		  "one data connection is not a ramp (give their number with --flows)" },
		{ ramp && p->both, "--ramp", NULL,
		  "--both has several sessions, which begin to measure together (leave one of them "
		  "out)" },
		{ ramp && p->spread, "--ramp", NULL,
		  "--spread makes its connections before the test begins (leave one of them out)" },
		{ ramp && p->fast_open, "--ramp", NULL,
		  "with -- -F a connection begins with its first data, and cannot be timed (leave "
		  "one of them out)" },
		{ sources && one, "--source-range", NULL,
		  "one data connection has one address (give their number with --flows, or the "
		  "address with -- -L)" },
		{ sources && (p->transport != &np_transport_tcp || p->pattern->connection_test ||
			      p->no_control),
		  "--source-range", test, "cannot use it (try TCP_STREAM, TCP_MAERTS or TCP_RR)" },
		{ sources && cli->evidence.wire, "--source-range", NULL,
		  "--wire captures one address (leave one of them out)" },
		{ !one && p->no_control, "--flows", NULL,
		  "needs a control connection, which -N leaves out" },
	};

	return REFUSE(rows, err);
}

int
np_check_test(const struct np_cli *cli, struct np_err *err)
{
	return check_load(cli, err) == NP_OK && check_connections(cli, err) == NP_OK
		   ? check_support(cli, err)
		   : (int)err->code;
}

/* Can the test have several data connections, as its other options are? */
static int
check_several(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;

	/* Any other test can have a session for each flow (run/group.c). */
	if (!np_plan_several(p) && (p->bench->code == NP_PLAN || p->pattern->probe)) {
		return np_usage(err,
				"--flows: %s has one data connection (try TCP_STREAM, TCP_MAERTS, "
				"TCP_RR, TCP_CRR, TCP_CC or UDP_RR)",
				cli->bench.name);
	}
	if (!np_plan_several(p) && p->far.place.engine != NULL) {
		return np_usage(
		    err,
		    "--engine ,%s: each flow of %s is a session with one connection (leave it out)",
		    p->far.place.engine->name, cli->bench.name);
	}
	if (p->pattern->connection_test && p->port_max > 0 &&
	    p->flows > p->port_max - p->port_min) {
		return np_usage(err,
				"--flows: each of %u connections at a time needs a local port (a "
				"wider range than -- -p %u,%u)",
				p->flows, p->port_min, p->port_max);
	}
	if (p->near.sock.port != 0) {
		return np_usage(err,
				"--flows: %u data connections cannot all come from port %u (leave "
				"the local port out: -- -P ,PORT)",
				p->flows, p->near.sock.port);
	}
	return NP_OK;
}

/* Can the engines drive the test? The far end checks its own; here only for several connections. */
static int
check_engines(const struct np_cli *cli, struct np_err *err)
{
	struct np_plan one = cli->plan;
	bool several = np_plan_several(&cli->plan); /* else each flow has a session of its own */
	const struct np_plan *p = several ? &cli->plan : &one;
	const struct np_engine *near, *far = cli->plan.far.place.engine;
	const char *why;

	one.flows = 1;
	near = np_engine_of(p);
	why = np_engine_why_not(near, p);
	if (why == NULL) { /* this end can */
		why = far != NULL ? far->why_not(&cli->plan) : NULL;
		return why == NULL || far->why_not(&one) != NULL
			   ? NP_OK
			   : np_usage(err, "--engine ,%s: not for %s with --flows %u: %s",
				      far->name, cli->bench.name, cli->plan.flows, why);
	}
	if (p->near.place.engine == NULL) {
		return np_usage(err, "%s: not for %s, as it needs the engine %s: %s",
				p->rate > 0 ? "--rate" : "--flows", cli->bench.name, near->name,
				why);
	}
	if (near->why_not(p) == NULL) { /* then this machine lacks something */
		return np_usage(err, "--engine %s: is not available here: %s (try --engine list)",
				near->name, why);
	}
	return np_usage(err, "--engine %s: not for %s with --flows %u: %s", near->name,
			cli->bench.name, p->flows, why);
}

int
np_check_no_flows(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	const char *option = np_plan_beyond(p);

	if (option == NULL) {
		option = p->spread                      ? "--spread"
			 : p->near.place.threads > 1    ? "--threads"
			 : p->near.place.engine != NULL ? "--engine"
			 : p->batch > 0                 ? "--batch"
			 : cli->segment_size > 0        ? "--segment-size"
							: NULL;
	}
	return option == NULL ? NP_OK
			      : np_usage(err, "%s: %s has no data connection", option, cli->test);
}

/* The kernel chooses local ports from a range: are there enough for a connection each? */
static int
check_ports(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	unsigned long first, last;

	/* Connection tests choose their ports themselves (-- -p). */
	if (p->transport->ip_protocol == 0 || p->pattern->connection_test ||
	    !np_host_ports(&first, &last) ||
	    p->flows <= (last - first + 1) * (p->sources > 0 ? p->sources : 1)) {
		return NP_OK;
	}
	return np_usage(
	    err,
	    "--flows %u: an address has only %lu local ports (a smaller --flows, a "
	    "--source-range of more addresses, or a wider net.ipv4.ip_local_port_range, "
	    "now %lu to %lu, by sysctl -w)",
	    p->flows, last - first + 1, first, last);
}

/* --source-range: each address has to be usable by sockets of this machine. */
static int
check_sources(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	struct np_addr at;

	/* The range put its first address there; if it differs, a -- -L came after the range. */
	if (strcmp(cli->data.local.text, NP_HOST_STR(&cli->source)) != 0) {
		return np_usage(
		    err,
		    "--source-range: -- -L also names a local address (leave one of them out)");
	}
	for (uint32_t i = 0; i < p->sources; i++) {
		bool usable;
		int fd;

		np_range_at(&cli->source, i, &at);
		fd = socket(at.sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		usable = fd >= 0 && bind(fd, (const struct sockaddr *)&at.sa, at.len) == 0;
		if (!usable) {
			np_fail(err, NP_EUSAGE, errno,
				"--source-range: use the local address %s (ip addr add, ip route "
				"add local, or net.ipv4.ip_nonlocal_bind makes it local)",
				NP_HOST_STR(&at));
		}
		np_fds_close(fd);
		if (!usable) {
			return err->code;
		}
	}
	return NP_OK;
}

int
np_check_sessions(const struct np_cli *cli, const char *peer, uint32_t sessions, struct np_err *err)
{
	const struct np_engine *engine = np_engine_of(&cli->plan);
	/* --both has a session each way anyway. */
	bool one_flow_each = sessions > (cli->plan.both ? 2 : 1);
	uint32_t threads = one_flow_each ? sessions : sessions * np_plan_workers(&cli->plan);
	uint32_t cpus = np_cpus_usable();

	if (sessions > 1 && cli->plan.spread) {
		return np_usage(err,
				"--spread: not with the %u sessions that this netserver needs "
				"(leave it out, or use Plumbline's netserver)",
				sessions);
	}
	if (one_flow_each && cli->rate > 0) {
		return np_usage(err,
				"--rate: not with the %u sessions that this netserver needs (leave "
				"--flows out, or use Plumbline's netserver)",
				sessions);
	}
	if (one_flow_each) {
		fprintf(stderr,
			"netperf: %s: %u sessions at once, of one flow each: the far end is as "
			"many processes of the netserver at %s\n",
			cli->bench.name, sessions, peer);
	}
	if (engine->spins && cpus > 0 && threads > cpus) {
		fprintf(stderr,
			"netperf: --engine %s: %u threads that never sleep share %u processor%s\n",
			engine->name, threads, cpus, cpus > 1 ? "s" : "");
	}
	return NP_OK;
}

int
np_check_flows(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	const struct {
		const char *option, *why_not;
	} loads[] = {
		{ "--ramp", p->ramp > 0 ? np_plan_no_ramp(p) : NULL },
		{ "--rate", cli->rate > 0 ? np_plan_no_rate(p) : NULL },
		{ "--stations", p->stations > 0 ? np_stamps_why_none(p) : NULL },
		{ "-F " NP_FILL_ZEROS, np_plan_no_zeros(p) },
	};
	uint32_t near = p->near.place.threads, far = p->far.place.threads;

	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		if (loads[i].why_not != NULL) {
			return np_usage(err, "%s: not for this %s: %s", loads[i].option,
					cli->bench.name, loads[i].why_not);
		}
	}
	if ((p->sources > 0 && check_sources(cli, err) != NP_OK) ||
	    (p->flows > 1 &&
	     (check_several(cli, err) != NP_OK || check_ports(cli, err) != NP_OK))) {
		return err->code;
	}
	if (near > p->flows || far > p->flows) {
		return np_usage(err,
				"--threads %s%u: is more than the %u data connection%s to drive (a "
				"larger --flows)",
				near > p->flows ? "" : ",", near > p->flows ? near : far, p->flows,
				p->flows > 1 ? "s" : "");
	}
	/* The list says itself which engines can. */
	return cli->list_engines ? NP_OK : check_engines(cli, err);
}
