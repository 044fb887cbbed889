#include "cli/flows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/arrivals.h"
#include "bench/engine/engine.h"
#include "bench/stamps.h"
#include "cli/tests.h"
#include "net/cidr.h"
#include "sys/affinity.h"
#include "sys/host.h"

static int
check_several(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;

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
	if (p->no_control) {
		return np_usage(err, "--flows: needs a control connection, which -N leaves out");
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

/*
 * What a kernel lacks only its own end knows. But an engine that could drive one connection, and
 * not several, can do so nowhere.
 */
static int
check_far(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	const struct np_engine *far = p->far.place.engine;
	const char *why = far != NULL ? far->why_not(p) : NULL;
	struct np_plan one = *p;

	one.flows = 1;
	if (why == NULL || far->why_not(&one) != NULL) {
		return NP_OK;
	}
	return np_usage(err, "--engine ,%s: not for %s with --flows %u: %s", far->name,
			cli->bench.name, p->flows, why);
}

static int
check_threads(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	bool far = p->near.place.threads <= p->flows;
	uint32_t threads = far ? p->far.place.threads : p->near.place.threads;

	if (threads <= p->flows) {
		return NP_OK;
	}
	return np_usage(
	    err,
	    "--threads %s%u: is more than the %u data connection%s to drive (a larger --flows)",
	    far ? "," : "", threads, p->flows, p->flows > 1 ? "s" : "");
}

int
np_flows_check_none(const struct np_cli *cli, struct np_err *err)
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
	/* That there is no such test is said behind the control connection, as netperf does. */
	if (option == NULL || np_cli_test(cli) == NP_TEST_UNKNOWN) {
		return NP_OK;
	}
	return np_usage(err, "%s: %s has no data connection", option, cli->test);
}

/* The kernel picks the local ports of a connection from few of them: one is of one connection. */
static int
check_ports(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	unsigned long first, last;

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

/* Each has to be an address that sockets of this machine can have. */
static int
check_address(const struct np_addr *at, struct np_err *err)
{
	int fd = socket(at->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[NP_ADDR_TEXT];

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&at->sa, at->len) == 0) {
		close(fd);
		return NP_OK;
	}
	np_fail(err, NP_EUSAGE, errno,
		"--source-range: use the local address %s (ip addr add, ip route add local, or "
		"net.ipv4.ip_nonlocal_bind makes it local)",
		np_addr_host(at, text));
	if (fd >= 0) {
		close(fd);
	}
	return err->code;
}

static int
check_sources(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	char text[NP_ADDR_TEXT];
	struct np_addr at;

	if (p->flows < 2) {
		return np_usage(err,
				"--source-range: one data connection has one address (give their "
				"number with --flows, or the address with -- -L)");
	}
	if (p->transport != &np_transport_tcp || p->pattern->connection_test || p->no_control) {
		return np_usage(err,
				"--source-range: not for this %s (try TCP_STREAM, TCP_MAERTS or "
				"TCP_RR)",
				cli->bench.name);
	}
	if (strcmp(cli->data.local.text, np_addr_host(&cli->source, text)) != 0) {
		return np_usage(
		    err,
		    "--source-range: -- -L also names a local address (leave one of them out)");
	}
	if (cli->evidence.wire) {
		return np_usage(
		    err, "--source-range: --wire captures one address (leave one of them out)");
	}
	for (uint32_t i = 0; i < p->sources; i++) {
		np_range_at(&cli->source, i, &at);
		if (check_address(&at, err) != NP_OK) {
			return err->code;
		}
	}
	return NP_OK;
}

/* Refuse the option where there is a reason why such a test can't have it; NULL: it can. */
static int
not_for_this(const struct np_cli *cli, const char *option, const char *why, struct np_err *err)
{
	return why == NULL ? NP_OK
			   : np_usage(err, "%s: not for this %s: %s", option, cli->bench.name, why);
}

/* Connections that come about while others are driven. */
static int
check_ramp(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;

	if (not_for_this(cli, "--ramp", np_plan_no_ramp(p), err) != NP_OK) {
		return err->code;
	}
	if (p->flows < 2) {
		return np_usage(
		    err,
		    "--ramp: one data connection is not a ramp (give their number with --flows)");
	}
	if (p->both) {
		return np_usage(err, "--ramp: --both has several sessions, which begin to measure "
				     "together (leave one of them out)");
	}
	if (p->spread) {
		return np_usage(err,
				"--ramp: --spread makes its connections before the test begins "
				"(leave one of them out)");
	}
	if (p->fast_open) {
		return np_usage(err,
				"--ramp: with -- -F a connection begins with its first data, and "
				"cannot be timed (leave one of them out)");
	}
	return NP_OK;
}

/* Requests that are due by the clock. */
static int
check_rate(const struct np_cli *cli, struct np_err *err)
{
	if (cli->rate <= 0) {
		return np_usage(err, "--arrivals: needs a --rate");
	}
	if (cli->knee_times > 0 &&
	    (cli->beside != NULL || cli->confidence.max > 1 || cli->confidence.clean_s > 0)) {
		return np_usage(err, "--rate auto: repeats the test by itself (leave out %s)",
				cli->beside != NULL           ? "--beside"
				: cli->confidence.clean_s > 0 ? "--clean"
							      : "-i and -I");
	}
	if (cli->no_loss && (!cli->plan.pattern->offers || np_delivers(cli->plan.transport))) {
		return np_usage(err,
				"--rate ndr: %.40s has no datagrams that can be lost "
				"(UDP_STREAM has; --rate auto is for others)",
				cli->bench.name);
	}
	return not_for_this(cli, "--rate", np_plan_no_rate(&cli->plan), err);
}

static int
check_both(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	bool stream = p->pattern == &np_pattern_stream && np_delivers(p->transport);

	if (!stream || cli->bench.code != NP_OMNI) {
		return np_usage(
		    err, "--both: %s is not a stream that either end can send (try TCP_STREAM)",
		    cli->bench.name);
	}
	if (p->no_control) {
		return np_usage(err, "--both: needs a control connection, which -N leaves out");
	}
	return NP_OK;
}

static int
check_spread(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;

	if (p->flows < 2) {
		return np_usage(err,
				"--spread: one data connection uses one queue (try --flows 8)");
	}
	if (p->fast_open) {
		return np_usage(err,
				"--spread: not with TCP Fast Open, which connects with the first "
				"data (leave out -- -F)");
	}
	if (p->both) {
		return np_usage(err, "--spread: needs a single session (leave out --both)");
	}
	if (!np_plan_spreads(p)) {
		return np_usage(err,
				"--spread: %s has no lasting IP connections to make again (try "
				"TCP_STREAM, TCP_MAERTS or TCP_RR)",
				cli->bench.name);
	}
	return NP_OK;
}

/* What is under way at its begin arrives behind it, and would be in a count that is not of it. */
static int
check_warm_up(const struct np_plan *p, struct np_err *err)
{
	if (p->warm_up_ms == 0 || p->length >= 0 || p->pattern->transactions) {
		return NP_OK;
	}
	return np_usage(
	    err, "--warm-up: not for a stream that ends by a count, -l %lld (use a time, -l S)",
	    (long long)p->length);
}

int
np_flows_check_sessions(const struct np_cli *cli, uint32_t sessions, struct np_err *err)
{
	if (sessions > 1 && cli->plan.spread) {
		return np_usage(err,
				"--spread: not with the %u sessions that this netserver needs "
				"(leave it out, or use Plumbline's netserver)",
				sessions);
	}
	if (sessions > (cli->plan.both ? 2 : 1) && cli->rate > 0) {
		return np_usage(err,
				"--rate: not with the %u sessions that this netserver needs (leave "
				"--flows out, or use Plumbline's netserver)",
				sessions);
	}
	return NP_OK;
}

int
np_flows_check(const struct np_cli *cli, struct np_err *err)
{
	struct np_plan one = cli->plan;
	const struct np_plan *p = &cli->plan;
	const struct np_engine *engine;
	const char *why;

	if ((p->both && check_both(cli, err) != NP_OK) ||
	    (p->spread && check_spread(cli, err) != NP_OK) ||
	    (p->ramp > 0 && check_ramp(cli, err) != NP_OK) ||
	    ((cli->rate > 0 || p->arrivals != NP_ARRIVE_EVENLY) && check_rate(cli, err) != NP_OK) ||
	    (p->stations > 0 &&
	     not_for_this(cli, "--stations", np_stamps_why_none(p), err) != NP_OK) ||
	    (p->sources > 0 && check_sources(cli, err) != NP_OK)) {
		return err->code;
	}
	if ((p->flows > 1 &&
	     (check_several(cli, err) != NP_OK || check_ports(cli, err) != NP_OK)) ||
	    check_threads(cli, err) != NP_OK || check_warm_up(p, err) != NP_OK) {
		return err->code;
	}
	if (cli->list_engines) {
		return NP_OK; /* which of them can, the list says */
	}
	if (!np_plan_several(p)) {
		one.flows = 1; /* in as many sessions */
		p = &one;
	}
	engine = np_engine_of(p);
	why = np_engine_why_not(engine, p);
	if (why == NULL) {
		return check_far(cli, err);
	}
	if (p->near.place.engine == NULL) {
		return np_usage(err, "--flows %u: needs the engine %s: %s", p->flows, engine->name,
				why);
	}
	if (engine->why_not(p) == NULL) {
		return np_usage(err, "--engine %s: is not available here: %s (try --engine list)",
				engine->name, why);
	}
	return np_usage(err, "--engine %s: not for %s with --flows %u: %s", engine->name,
			cli->bench.name, p->flows, why);
}

void
np_flows_note(const struct np_cli *cli, uint32_t sessions, FILE *out)
{
	const struct np_plan *p = &cli->plan;
	const struct np_engine *engine = np_engine_of(p);
	uint32_t threads = sessions > 1 ? sessions : np_plan_workers(p), cpus = np_cpus_usable();

	if (engine->spins && cpus > 0 && threads > cpus) {
		fprintf(out,
			"netperf: --engine %s: %u threads that never sleep share %u processor%s\n",
			engine->name, threads, cpus, cpus > 1 ? "s" : "");
	}
}
