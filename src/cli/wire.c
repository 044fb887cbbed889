#include "cli/wire.h"

#include <stdio.h>
#include <sys/socket.h>

#include "net/capture.h"
#include "wire/ext.h"

/* What it would take of the daemon, which has captures for few, is not asked for in vain. */
void
np_wire_settle(struct np_cli *cli)
{
	bool tests = np_cli_test(cli) == NP_TEST_BENCH;

	if (!cli->wire || !tests || cli->bench.transport->family != AF_UNIX) {
		return;
	}
	fputs("netperf: --wire: tests of the UNIX domain send no packets\n", stderr);
	cli->wire = false;
	cli->wire_file = NULL;
	cli->caps &= ~(unsigned)NP_CAP_WIRE;
}

void
np_wire_open(const struct np_cli *cli, const struct np_addr *local, const struct np_addr *remote,
	     struct np_evidence_plan *plan)
{
	const struct np_capture_place place = { .near = *local,
						.far = *remote,
						.file = cli->wire_file };
	struct np_err err = { .code = NP_OK };

	if (!cli->wire || np_capture_open(&plan->capture, &place, &err) == NP_OK) {
		return;
	}
	plan->capture_why_not = "this end could not open a capture, see standard error";
	fprintf(stderr, "netperf: --wire: %s; this end gives the interface's counters instead\n",
		err.msg);
}
