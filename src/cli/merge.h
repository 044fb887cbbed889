/*
 * Several clients' runs of one test as one (--merge): the sum of their rates, and the percentiles
 * of all their times, from the histograms in their documents. Percentiles are never averaged.
 */
#ifndef NP_CLI_MERGE_H
#define NP_CLI_MERGE_H

#include <stdio.h>

#include "base/err.h"
#include "cli/args.h"

/*
 * A row for each document, one for all, and the table of --latency where all have times; notes on
 * standard error. What was read before one that can't be had is printed.
 */
int np_merge(const struct np_cli_output *o, FILE *out, struct np_err *err);

#endif
