/*
 * The views over a test's named results. A formatter knows results, not sockets.
 */
#ifndef NP_OUT_FORMAT_H
#define NP_OUT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bag.h"
#include "base/units.h"
#include "out/select.h"
#include "stats/confidence.h"
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

/* What the table of --human says beside the figures. Texts that are NULL or empty are not known. */
struct np_human {
	const char *test, *host;
	const char *local, *remote;  /* addresses of the data connection's ends */
	struct np_series rates;      /* the throughput of each iteration */
	const struct np_bag *limits; /* explain.*; NULL: not asked for */
};

/* How a result is shown: everything but its figures. */
struct np_look {
	enum np_style style;
	struct np_classic classic;    /* unit, headers and more of it serve all styles; not hist */
	struct np_selection list;     /* of the styles that are not classic */
	bool histogram;               /* show the times */
	bool times;                   /* show what they come to, below the result */
	const char *histogram_of;     /* what was timed: "send", "request/response" ... */
	bool average;                 /* the classic table has an average of the times instead */
	bool missed;                  /* the confidence that was asked for was not reached */
	bool transactions;            /* the throughput counts them, whatever the unit */
	bool limits;                  /* --human: show what limited the test */
	const struct np_human *human; /* what NP_STYLE_HUMAN needs beside */
	bool latency, congestion;     /* asked for; if not, such figures are known and not shown */
};

/* The result. The latencies are those of all iterations, connect times the last one's. */
void np_look_print(FILE *out, const struct np_look *l, const struct np_figures *f);

/*
 * A result as one table in SI units: about 15 lines of less than 80 columns. Rows of what is not
 * known are left out.
 */
void np_human_print(FILE *out, const struct np_look *l, const struct np_figures *f);

struct np_datagrams {
	const char *bench;               /* the test's name */
	const struct np_bag *near, *far; /* evidence of both ends; NULL: none */
	double seconds;                  /* that the table divides by */
	const struct np_unit *unit;
	unsigned iterations; /* the evidence is of the last of these */
};

/*
 * Where the receiver's own account of a stream of datagrams says otherwise than netperf's table: a
 * line when the rate over the receiver's own time differs from the table's by more than 1 %: a
 * queue on the way goes on when the sender has ended. Another when datagrams came twice, since the
 * table's difference of sent and received is then no longer what was lost. Nothing of a receiver
 * that has no account, or of one session among several.
 */
void np_datagrams_print(FILE *to, const struct np_datagrams *d);

/*
 * The wire ledger: both ends' figures side by side, and where each of them was taken; rows of zeros
 * are left out. An end without a ledger is named with the reason and, where they are known, the
 * counters of its interface. Bags may be NULL: nothing is known of that end, for the far one
 * because of far_lacks (NULL or empty: not known why).
 */
void np_ledger_print(FILE *out, const struct np_bag *near, const struct np_bag *far,
		     const char *far_lacks);

/*
 * What both taps together say of each direction: wire.way.* as in doc/evidence.md. Nothing where
 * one of them is missing, or the capture itself lost packets.
 */
void np_ledger_compare(const struct np_bag *near, const struct np_bag *far, struct np_bag *into);

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
