/*
 * --wire: the capture around the client's tests.
 */
#ifndef NP_CLI_WIRE_H
#define NP_CLI_WIRE_H

#include "cli/args.h"
#include "net/addr.h"
#include "run/evidence.h"

/*
 * Open the capture that was asked for into plan, and tell on standard error when it can't be had:
 * the test runs all the same. remote: where data will go. To be freed by np_capture_free().
 */
void np_wire_open(const struct np_cli *cli, const struct np_addr *local,
		  const struct np_addr *remote, struct np_evidence_plan *plan);

#endif
