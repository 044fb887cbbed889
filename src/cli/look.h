/* How the result is to be printed, and the banner above it. */
#ifndef NP_CLI_LOOK_H
#define NP_CLI_LOOK_H

#include "cli/args.h"
#include "out/look.h"

/* The data connection's names and addresses, for the banner. */
struct np_ends {
	struct np_addrs remote, local;
};

/* The lines before a test: what is missing, then the banner or, for AF_UNIX, the table's heads. */
void np_cli_banner(FILE *out, const struct np_cli *cli, const struct np_ends *ends);

/* Fill in how the result is to be shown, but not whether confidence was reached. */
void np_cli_look(const struct np_cli *cli, struct np_look *look);

#endif
