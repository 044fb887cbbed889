/*
 * The near interface of a test of the link layer.
 */
#ifndef NP_CLI_ETH_H
#define NP_CLI_ETH_H

#include "cli/args.h"

/*
 * Open the interface of --device, or that of the control connection's address. cli->plan refers to
 * *link from then on, and message sizes that were not chosen are its MTU. An error is a line that
 * says what to do.
 */
int np_cli_open_eth(struct np_cli *cli, const struct np_client *c, struct np_eth *link,
		    struct np_err *err);

#endif
