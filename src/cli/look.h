/* How the result is to be printed, and the banner above it. */
#ifndef NP_CLI_LOOK_H
#define NP_CLI_LOOK_H

#include "cli/args.h"
#include "out/format.h"

/* The data connection's names and addresses, for the banner. */
struct np_ends {
	struct np_addrs remote, local;
};

/* Print the lines before a test: the banner or, for AF_UNIX, the table's heads. */
void np_cli_banner(FILE *out, const struct np_cli *cli, const struct np_look *look,
		   const struct np_ends *ends);

/* Fill in how the result is to be shown, except look->missed and look->human. */
void np_cli_look(const struct np_cli *cli, struct np_look *look);

/* Fill in the figures that repeat the user's options (names, ports, brand ...), as netperf does. */
void np_cli_record_options(const struct np_cli *cli, struct np_record *r);

/* The data's local name: its own; else the control connection's, if to the same host; else NULL. */
const struct np_name *np_cli_local_name(const struct np_cli *cli);

/* "Any address" as netperf writes it: "::0" for IPv6, "0.0.0.0" for all other families. */
const char *np_cli_any_address(int family);

#endif
