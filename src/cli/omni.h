/*
 * What the test-specific options make of a test: protocol, direction, connections.
 */
#ifndef NP_CLI_OMNI_H
#define NP_CLI_OMNI_H

#include "cli/args.h"

/* Fill cli->bench from the row that -t names, or for OMNI from the options. The test is known. */
int np_omni_choose(struct np_cli *cli, struct np_err *err);

#endif
