/*
 * Options that exclude each other, or that a test has no use for: a list, of which the first row
 * that applies is the error.
 */
#ifndef NP_CLI_CONFLICTS_H
#define NP_CLI_CONFLICTS_H

#include "cli/args.h"

/* Those that are seen in the options alone, whatever the test. NP_EUSAGE. */
int np_conflicts_of_options(const struct np_cli *cli, struct np_err *err);

/* Those that depend on the test, which is chosen. */
int np_conflicts_of_test(const struct np_cli *cli, struct np_err *err);

#endif
