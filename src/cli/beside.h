/* --beside TEST[:RATE]: the probe, and what is printed about it. */
#ifndef NP_CLI_BESIDE_H
#define NP_CLI_BESIDE_H

#include <stdio.h>

#include "base/err.h"
#include "cli/args.h"
#include "cli/look.h"
#include "run/beside.h"

/* The probe: a test with options, client and addresses of its own. */
struct np_cli_beside {
	char name[32]; /* of its test */
	struct np_cli cli;
	struct np_client client;
	struct np_ends ends;
	struct np_beside run;
};

/* *probe: NULL without --beside. load: settled options. Always free it, even after NP_EUSAGE. */
int np_cli_beside_new(const struct np_cli *load, struct np_cli_beside **probe, struct np_err *err);

/* Find the probe's data addresses by the load's client, which is connected. p NULL: no effect. */
int np_cli_beside_aim(struct np_cli_beside *p, const struct np_client *load, struct np_err *err);

/* Print what limited the probe; and if `line`, the result in one line. p NULL: nothing. */
void np_cli_beside_show(const struct np_cli_beside *p, bool line, FILE *out);

void np_cli_beside_free(struct np_cli_beside *p);

#endif
