/*
 * netperf --ceiling: what links can carry at most, line by line, for scripts. No test is run.
 */
#ifndef NP_CLI_CEILINGS_H
#define NP_CLI_CEILINGS_H

#include <stdio.h>

/*
 * Answer each line of `in` by one of JSON on `out`, at once: doc/ceilings.md lists the words of the
 * one and the members of the other. A line that can't be answered is answered by an "error".
 */
void np_ceilings_answer(FILE *in, FILE *out);

#endif
