/*
 * A result as one table in SI units (--human).
 */
#ifndef NP_OUT_HUMAN_H
#define NP_OUT_HUMAN_H

#include "base/bag.h"
#include "out/format.h"
#include "stats/confidence.h"

/* What such a table says beside the figures. Texts that are NULL or empty are not known. */
struct np_human {
	const char *test, *host;
	const char *local, *remote;  /* addresses of the data connection's ends */
	const char *timed;           /* what the latencies are of */
	bool transactions;           /* the throughput counts them */
	bool segment;                /* the result is the maximum segment size */
	const struct np_unit *unit;  /* else it is in this one */
	struct np_series rates;      /* the throughput of each iteration */
	bool missed;                 /* they differ more than was asked for */
	const struct np_bag *limits; /* explain.*; NULL: nobody asked */
};

/* About 15 lines of less than 80 columns. Rows of what is not known are left out. */
void np_human_print(FILE *out, const struct np_human *h, const struct np_figures *f);

#endif
