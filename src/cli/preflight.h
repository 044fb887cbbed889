/* netperf --preflight: what may disturb a measurement on both hosts. */
#ifndef NP_CLI_PREFLIGHT_H
#define NP_CLI_PREFLIGHT_H

#include "cli/args.h"
#include "run/client.h"

/*
 * Print this end's findings, and the daemon's unless no host was named or there is no control
 * connection (-N). Connects by *target, and closes. An unreachable daemon is an error, after this
 * end is printed; no test is run.
 */
int np_preflight_run(const struct np_cli *cli, struct np_client *c, const struct np_target *target,
		     struct np_err *err);

#endif
