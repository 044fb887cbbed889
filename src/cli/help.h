/* The help texts of netperf: the short one, that of all options, that of one test. */
#ifndef NP_CLI_HELP_H
#define NP_CLI_HELP_H

#include <stdio.h>

#include "cli/args.h"

/* What most people need, in two screens of 24 lines. */
void np_help_short(FILE *out);

/* Every global option and every test; begins as netperf's own usage does. */
void np_help_all(FILE *out);

/* The options that mean something in the test of -t, with the defaults they have there. */
void np_help_test(const struct np_cli *cli, FILE *out);

/* Every test, its protocol, and whether this machine can run it; if not, what it lacks. */
void np_help_tests(FILE *out);

/* Every figure for -o, -O and -k by subject, with its unit and what it means. */
void np_help_figures(FILE *out);

#endif
