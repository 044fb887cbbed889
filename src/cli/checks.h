/* Checks of the options, for each other and for the test. NP_EUSAGE names the option. */
#ifndef NP_CLI_CHECKS_H
#define NP_CLI_CHECKS_H

#include "cli/args.h"

/* Conflicts that do not depend on the test: before the length gets its default. */
int np_check_options(const struct np_cli *cli, struct np_err *err);

/* Conflicts that depend on the test, once it is chosen. */
int np_check_test(const struct np_cli *cli, struct np_err *err);

/* Once the plan is complete: can the test have these flows, and can the engines drive them? */
int np_check_flows(const struct np_cli *cli, struct np_err *err);

/* For a test without data connections: refuse options about them. */
int np_check_no_flows(const struct np_cli *cli, struct np_err *err);

/* Can the test run in that many sessions of the daemon at `peer`? Notes go to standard error. */
int np_check_sessions(const struct np_cli *cli, const char *peer, uint32_t sessions,
		      struct np_err *err);

#endif
