/* What netperf does instead of a test: --ceiling, --preflight, --engine list. */
#ifndef NP_CLI_MODES_H
#define NP_CLI_MODES_H

#include <stdio.h>

#include "cli/args.h"

/*
 * Compute what links can carry at most, for scripts: answer each line of `in` at once, by a line of
 * JSON on `out`. doc/ceilings.md lists the words of a question, and the members of an answer. The
 * answer to a wrong line has the member "error".
 */
void np_ceilings_answer(FILE *in, FILE *out);

/*
 * Print what may disturb a measurement on this host and, if a host was named and -N was not given,
 * on the daemon's. Connects by *target, and closes. If the daemon can't be reached, nothing is
 * printed; if it reports nothing, only this end's findings are.
 */
int np_preflight_run(const struct np_cli *cli, struct np_client *c, const struct np_target *target,
		     struct np_err *err);

/* Each end's engines, by np_engine_tell(), and why one can't drive the test. */
struct np_engine_lists {
	struct np_bag *near, *far;
	char far_lacks[512]; /* why the far end's engines are unknown; empty: they are known */
};

/*
 * Print the list, or write it as a document. With -H the daemon is asked for its engines; if it
 * can't tell, the list says so. If it can't be reached or refuses the test, this end's engines are
 * printed before the error is returned.
 */
int np_engines_list(struct np_cli *cli, struct np_client *c, struct np_err *err);

#endif
