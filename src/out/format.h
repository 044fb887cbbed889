/*
 * The views over a test's named results. A formatter knows results, not sockets.
 */
#ifndef NP_OUT_FORMAT_H
#define NP_OUT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/units.h"
#include "out/select.h"
#include "stats/record.h"

/* What a classic table needs beside the figures. */
struct np_classic {
	const char *layout; /* of the bench table's row: "stream", "rr" ... */
	const struct np_unit *unit;
	int verbosity;
	bool headers;               /* -P */
	bool local_cpu, remote_cpu; /* -c, -C: either of them chooses the layout with CPU figures */
	const char *brand;          /* shown without headers only; NULL or empty: none */
	const struct np_hist *hist; /* shown from verbosity 2 on; NULL: none */
};

/*
 * netperf's table of that layout: one figure at verbosity 0, the table at 1, and below it the
 * verbose block at 2; only that block at 3 and more, nothing below 0. The layout must be known.
 */
void np_classic_print(FILE *out, const struct np_classic *c, const struct np_record *r);

/*
 * The title and column heads that the UNIX-domain tests print before they run, at every verbosity;
 * nothing for other layouts, or without headers.
 */
void np_classic_preface(FILE *out, const struct np_classic *c);

/* Is there a classic layout of that name? The tests ask for each row of the bench table. */
bool np_classic_known(const char *layout);

/* The warning that the confidence asked for was not reached; full widths in percent. */
void np_confidence_warn(FILE *out, double throughput, double local_cpu, double remote_cpu);

/* netperf's ten lines of a histogram: eight decades from 1 us, ten cells each. */
void np_histogram_print(FILE *out, const struct np_hist *h);

/*
 * A line of column heads, if headers, and one of values: how many times there are, and what they
 * come to, in microseconds. "-" for each where there are none.
 */
void np_times_print(FILE *out, const struct np_hist *h, bool headers);

/* The figures selected, in the style of -o, -O or -k. headers: -P. */
void np_omni_print(FILE *out, enum np_style style, const struct np_selection *sel, bool headers,
		   const struct np_figures *f);

/* One interim result of -D. */
struct np_interim {
	unsigned number; /* from 0 */
	double rate;
	const char *unit;   /* name, without "/s" */
	double seconds;     /* that it is over */
	uint64_t ending_ms; /* of the wall clock, since 1970 */
	bool ramps;         /* --ramp: how many data connections are up is told, too */
	uint64_t flows_up;
	double *flow; /* the rate of each of several connections, which may be sorted; NULL: not
			 known */
	uint32_t flows;
};

/* One line (four for NP_STYLE_KEYVAL, five in a ramp), flushed. */
void np_interim_print(FILE *out, enum np_style style, const struct np_interim *i);

#endif
