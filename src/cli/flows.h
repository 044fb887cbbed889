/*
 * Several data connections (--flows), and what drives them (--threads, --engine).
 */
#ifndef NP_CLI_FLOWS_H
#define NP_CLI_FLOWS_H

#include "cli/args.h"

/*
 * Can the test have that many flows, and this end's engine drive them? NP_EUSAGE names the option.
 */
int np_flows_check(const struct np_cli *cli, struct np_err *err);

/* The same for a test without data connections: refuses options about those. */
int np_flows_check_none(const struct np_cli *cli, struct np_err *err);

/* Can it run in `sessions` sessions at a time? The daemon is known now. */
int np_flows_check_sessions(const struct np_cli *cli, uint32_t sessions, struct np_err *err);

/* Print a note where more of this end's threads spin than there are processors. */
void np_flows_note(const struct np_cli *cli, uint32_t sessions, FILE *out);

#endif
