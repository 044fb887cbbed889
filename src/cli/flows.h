/* Checks of several data connections (--flows), and of what drives them (--threads, --engine). */
#ifndef NP_CLI_FLOWS_H
#define NP_CLI_FLOWS_H

#include "cli/args.h"

/* Can the test have these flows, and can the engines drive them? NP_EUSAGE names the option. */
int np_flows_check(const struct np_cli *cli, struct np_err *err);

/* For a test without data connections: refuse options about them. */
int np_flows_check_none(const struct np_cli *cli, struct np_err *err);

/*
 * Can the test run in that many sessions of the daemon at `peer`, once connected to it? Notes on
 * standard error if each flow takes one, and if more of this end's threads spin than there are
 * processors.
 */
int np_flows_settle_sessions(const struct np_cli *cli, const char *peer, uint32_t sessions,
			     struct np_err *err);

#endif
