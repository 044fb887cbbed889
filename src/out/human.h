/*
 * A result as one table in SI units (--human).
 */
#ifndef NP_OUT_HUMAN_H
#define NP_OUT_HUMAN_H

#include "base/bag.h"
#include "out/format.h"
#include "stats/confidence.h"

struct np_look;

/* What such a table says beside the figures. Texts that are NULL or empty are not known. */
struct np_human {
	const char *test, *host;
	const char *local, *remote;  /* addresses of the data connection's ends */
	struct np_series rates;      /* the throughput of each iteration */
	const struct np_bag *limits; /* explain.*; NULL: not asked for */
};

/* About 15 lines of less than 80 columns. Rows of what is not known are left out. */
void np_human_print(FILE *out, const struct np_look *l, const struct np_figures *f);

#endif
