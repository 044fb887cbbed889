/* --beside TEST[:RATE]: the probe, and what is printed about it. */
#ifndef NP_CLI_BESIDE_H
#define NP_CLI_BESIDE_H

#include <stdio.h>

#include "base/err.h"
#include "cli/args.h"
#include "cli/look.h"
#include "net/addr.h"
#include "run/beside.h"

/* A probe, with all that it needs of its own. */
struct np_cli_beside {
	char name[32]; /* of its test */
	struct np_cli cli;
	struct np_client client;
	struct np_target target;
	struct np_ends ends;
	struct np_beside run;
};

/*
 * Make the probe that the settled options `of` ask for; NULL where they ask for none. NP_EUSAGE
 * says what prevents it. np_cli_beside_free() is always to be called.
 */
int np_cli_beside_new(const struct np_cli *of, struct np_cli_beside **probe, struct np_err *err);

/* Aim it where the load of that connected client goes. p NULL: no effect. */
int np_cli_beside_aim(struct np_cli_beside *p, const struct np_client *load, struct np_err *err);

/* Print its result, where the result itself (classic: a table) does not have it. */
void np_cli_beside_show(const struct np_cli_beside *p, bool classic, FILE *out);

void np_cli_beside_free(struct np_cli_beside *p);

#endif
