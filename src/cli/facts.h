/*
 * The figures that are the user's own words, or the same for every test.
 */
#ifndef NP_CLI_FACTS_H
#define NP_CLI_FACTS_H

#include "cli/args.h"

/* Fill the rows of what was asked for (names, ports, brand ...), as netperf shows it. */
void np_facts(const struct np_cli *cli, struct np_record *r);

/* The local name of the data connection: its own, else that of the control connection, or NULL. */
const struct np_name *np_facts_local(const struct np_cli *cli);

/* How netperf writes "any address" of a family. */
const char *np_facts_any(int family);

#endif
