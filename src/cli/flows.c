#include "cli/flows.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fds.h"
#include "bench/engine/engine.h"
#include "bench/stamps.h"
#include "cli/tests.h"
#include "net/cidr.h"
#include "sys/affinity.h"
#include "sys/host.h"

/* Can the test have several data connections, as its other options are? */
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
 * Can the engines drive the test? The far end checks its own, since only it knows what its kernel
 * lacks. Here it is refused only if it can drive one connection, but not several.
 */
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
	if (why == NULL) {
		why = far != NULL ? far->why_not(&cli->plan) : NULL;
		return why == NULL || far->why_not(&one) != NULL
			   ? NP_OK
			   : np_usage(err, "--engine ,%s: not for %s with --flows %u: %s",
				      far->name, cli->bench.name, cli->plan.flows, why);
	}
	if (p->near.place.engine == NULL) {
		return np_usage(err, "--flows %u: needs the engine %s: %s", p->flows, near->name,
				why);
	}
	if (near->why_not(p) == NULL) {
		return np_usage(err, "--engine %s: is not available here: %s (try --engine list)",
				near->name, why);
	}
	return np_usage(err, "--engine %s: not for %s with --flows %u: %s", near->name,
			cli->bench.name, p->flows, why);
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
	/* an unknown test is reported after the control connection, as in netperf */
	if (option == NULL || np_cli_test(cli) == NP_TEST_UNKNOWN) {
		return NP_OK;
	}
	return np_usage(err, "%s: %s has no data connection", option, cli->test);
}

/* The kernel chooses local ports from a range: are there enough for a connection each? */
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

/* Each address has to be usable by sockets of this machine. */
static int
check_sources(const struct np_cli *cli, struct np_err *err)
{
	const struct np_plan *p = &cli->plan;
	struct np_addr at;

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
np_flows_settle_sessions(const struct np_cli *cli, const char *peer, uint32_t sessions,
			 struct np_err *err)
{
	const struct np_engine *engine = np_engine_of(&cli->plan);
	uint32_t threads = sessions > 1 ? sessions : np_plan_workers(&cli->plan);
	uint32_t cpus = np_cpus_usable();

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
	if (sessions > (cli->plan.both ? 2 : 1)) {
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
np_flows_check(const struct np_cli *cli, struct np_err *err)
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
