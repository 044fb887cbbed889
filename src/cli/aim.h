/* The addresses and interfaces of the control and data connections, by the user's options. */
#ifndef NP_CLI_AIM_H
#define NP_CLI_AIM_H

#include "cli/args.h"
#include "cli/look.h"
#include "run/client.h"

/* Without -H the host is this one: "localhost", or "::1" if -H or -L asks for IPv6. */
void np_aim_default_host(struct np_target *t);

/* Complete cli->target: what to ask the daemon for. */
void np_aim_control(struct np_cli *cli);

/*
 * Find the data addresses for *ends and the plan; preferred is the remote one of c, the control
 * connection (not used with -N). out: for netperf's message if a name does not resolve, or NULL.
 */
int np_aim_data(struct np_cli *cli, const struct np_client *c, struct np_ends *ends, FILE *out,
		struct np_err *err);

/*
 * For a test of the link layer: open the interface of --device, or that of the control connection's
 * address. cli->terms points to *link from then on. The message size is its MTU by default.
 */
int np_cli_open_eth(struct np_cli *cli, const struct np_client *c, struct np_eth *link,
		    struct np_err *err);

#endif
