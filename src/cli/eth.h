/*
 * The near interface of a test of the link layer.
 */
#ifndef NP_CLI_ETH_H
#define NP_CLI_ETH_H

#include "cli/args.h"

/*
 * Open it, once the control connection c stands: the one of --device, else that of the connection's
 * address. cli->plan refers to *link from then on, and the sizes of messages that were not chosen
 * are its MTU. A failure has one line that says what to do.
 */
int np_cli_open_eth(struct np_cli *cli, const struct np_client *c, struct np_eth *link,
		    struct np_err *err);

#endif
