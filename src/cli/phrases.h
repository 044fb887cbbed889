/*
 * netperf's own messages for failures, which scripts look for, on standard output. A line on
 * standard error says more; a terminal gets only that.
 */
#ifndef NP_CLI_PHRASES_H
#define NP_CLI_PHRASES_H

#include <stdio.h>

#include "cli/args.h"
#include "run/client.h"

/* For a control connection that could not be made, if netperf has a message for the reason. */
void np_phrases_control(FILE *out, const struct np_cli_target *t, const struct np_client *c);

void np_phrases_unknown_test(FILE *out, const struct np_cli *cli);

/*
 * For an unknown option, or one without its argument, on standard error: getopt(3)'s line with the
 * program's name, and the usage.
 */
void np_phrases_option(FILE *out, const char *program, const struct np_option_notes *notes);

#endif
