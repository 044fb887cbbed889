/* Where the control connection and the data go, by the user's options. */
#ifndef NP_CLI_AIM_H
#define NP_CLI_AIM_H

#include "cli/args.h"
#include "cli/look.h"
#include "run/client.h"

/* Without -H the host is this one. */
void np_aim_default_host(struct np_cli_target *t);

/* The daemon, and what is wanted of it. The texts stay cli's own. */
void np_aim_control(const struct np_cli *cli, struct np_target *t);

/*
 * Find the data connection's ends, for *ends and the plan. c: the control connection; its address
 * is preferred. out: for netperf's words about a name that does not resolve; NULL: none.
 */
int np_aim_data(struct np_cli *cli, const struct np_client *c, struct np_ends *ends, FILE *out,
		struct np_err *err);

#endif
