/*
 * What netperf prints on standard output where a run fails: scripts look for its words. Our own
 * line, which says more, stands on standard error. A terminal has that alone.
 */
#ifndef NP_CLI_PHRASES_H
#define NP_CLI_PHRASES_H

#include <stdio.h>

#include "cli/args.h"
#include "run/client.h"

/* Of a control connection that could not be made. Nothing where netperf has no words for why. */
void np_phrases_control(FILE *out, const struct np_cli_target *t, const struct np_client *c);

/* Of a name of the data connection that could not be resolved; gai: getaddrinfo(3)'s error. */
void np_phrases_data_name(FILE *out, const char *name, int family, int gai);

void np_phrases_unknown_test(FILE *out, const struct np_cli *cli);

/* Of a request that the daemon refused, or a test that failed there. */
void np_phrases_remote_error(FILE *out, int error);

/*
 * Of an option that does not exist, or has no argument, on standard error: getopt(3)'s line, with
 * the program's name as it was called, and the usage in one line.
 */
void np_phrases_option(FILE *out, const char *program, const struct np_option_notes *notes);

#endif
