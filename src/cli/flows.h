/*
 * Several data connections (--flows), and what drives them (--threads, --engine).
 */
#ifndef NP_CLI_FLOWS_H
#define NP_CLI_FLOWS_H

#include "cli/args.h"

/* May the test have that many flows, and can this end's engine drive them? NP_EUSAGE names the
 * option. */
int np_flows_check(const struct np_cli *cli, struct np_err *err);

/* The same of a test that has no data connection: refuses what is about those. */
int np_flows_check_none(const struct np_cli *cli, struct np_err *err);

/* May it take `sessions` sessions at a time? The daemon is known by now. */
int np_flows_check_sessions(const struct np_cli *cli, uint32_t sessions, struct np_err *err);

/*
 * What the result has to be read with: more of this end's threads never sleep than there are
 * processors for them.
 */
void np_flows_note(const struct np_cli *cli, uint32_t sessions, FILE *out);

#endif
