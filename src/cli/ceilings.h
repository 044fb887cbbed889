/* netperf --ceiling: compute what links can carry at most, for scripts. No test is run. */
#ifndef NP_CLI_CEILINGS_H
#define NP_CLI_CEILINGS_H

#include <stdio.h>

/*
 * Answer each line of `in` at once, by a line of JSON on `out`. doc/ceilings.md lists the words of
 * a question, and the members of an answer. The answer to a wrong line has the member "error".
 */
void np_ceilings_answer(FILE *in, FILE *out);

#endif
