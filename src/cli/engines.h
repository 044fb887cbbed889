/* --engine list: each end's engines, and why one can't drive the test of the other options. */
#ifndef NP_CLI_ENGINES_H
#define NP_CLI_ENGINES_H

#include "base/bag.h"
#include "cli/args.h"
#include "run/client.h"

/* Each end's engines, by np_engine_tell(). */
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
