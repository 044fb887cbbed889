/*
 * --engine list: what each end's engines are, and why they can't drive the test of the other
 * options.
 */
#ifndef NP_CLI_ENGINES_H
#define NP_CLI_ENGINES_H

#include "base/bag.h"
#include "cli/args.h"
#include "run/client.h"

/* What each end can do, see np_engine_tell(). */
struct np_engine_lists {
	struct np_bag *near, *far;
	char far_lacks[512]; /* why the far end's are not known; empty: they are */
};

/*
 * Print the list, or write it as a document. With -H the daemon is asked for its own: one that does
 * not say is no error, the list says so. NP_ECONTROL and the like, when this end's are printed
 * already, for one that can't be asked or refuses the test whatever drives it.
 */
int np_engines_list(struct np_cli *cli, struct np_client *c, struct np_err *err);

#endif
