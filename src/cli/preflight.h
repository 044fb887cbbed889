/* netperf --preflight: what may disturb a measurement on both hosts. */
#ifndef NP_CLI_PREFLIGHT_H
#define NP_CLI_PREFLIGHT_H

#include "cli/args.h"
#include "run/client.h"

/*
 * Print this end's findings and, if a host was named and -N was not given, the daemon's. Connects
 * by *target, and closes; runs no test. An unreachable daemon is an error, after this end is
 * printed.
 */
int np_preflight_run(const struct np_cli *cli, struct np_client *c, const struct np_target *target,
		     struct np_err *err);

#endif
