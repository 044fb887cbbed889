/* What netperf does instead of a test: help texts, --ceiling, --preflight, --engine list. */
#ifndef NP_CLI_MODES_H
#define NP_CLI_MODES_H

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

/*
 * Answer each line of `in` at once, by a line of JSON on `out`: the most that a link can carry, or
 * the member "error". doc/ceilings.md lists the words of questions and the members of answers.
 */
void np_ceilings_answer(FILE *in, FILE *out);

/*
 * Print what may disturb a measurement on this host and, with -H but not -N, on the daemon's if it
 * reports that. Connects, and closes; if that fails, nothing is printed.
 */
int np_preflight_run(struct np_cli *cli, struct np_client *c, struct np_err *err);

/* Each end's engines, by np_engine_tell(), and why one can't drive the test. */
struct np_engine_lists {
	struct np_bag *near, *far;
	char far_lacks[512]; /* why the far end's engines are unknown; empty: they are known */
};

/*
 * Print the list, or write it as a document; with -H, the daemon's too, or that it can't tell. If
 * it can't be reached or refuses the test, this end's is printed before the error is returned.
 */
int np_engines_list(struct np_cli *cli, struct np_client *c, struct np_err *err);

#endif
