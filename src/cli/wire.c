#include "cli/wire.h"

#include <stdio.h>

#include "net/capture.h"

void
np_wire_open(const struct np_cli *cli, const struct np_addr *local, const struct np_addr *remote,
	     struct np_evidence_plan *plan)
{
	const struct np_capture_place place = { .near = *local,
						.far = *remote,
						.file = cli->wire_file };
	struct np_err err = { .code = NP_OK };

	if (cli->wire && cli->bench.transport->family == AF_UNIX) {
		fputs("netperf: --wire: tests of the UNIX domain send no packets\n", stderr);
		return;
	}
	if (!cli->wire || np_capture_open(&plan->capture, &place, &err) == NP_OK) {
		return;
	}
	plan->capture_why_not = "this end could not open a capture, see standard error";
	fprintf(stderr, "netperf: --wire: %s; this end gives the interface's counters instead\n",
		err.msg);
}
