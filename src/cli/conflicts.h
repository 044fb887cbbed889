/*
 * Options that exclude each other, or that make no sense for a test. They are lists: the first row
 * that applies is the error.
 */
#ifndef NP_CLI_CONFLICTS_H
#define NP_CLI_CONFLICTS_H

#include "cli/args.h"

/* Conflicts that do not depend on the test: before the length gets its default. NP_EUSAGE. */
int np_conflicts_of_options(const struct np_cli *cli, struct np_err *err);

/* Conflicts that depend on the test, once it is chosen. */
int np_conflicts_of_test(const struct np_cli *cli, struct np_err *err);

#endif
