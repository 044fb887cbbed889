/* The output formats of a test's results. */
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

/* What a classic table needs besides the figures. */
struct np_classic {
	const char *layout; /* of the bench table's row: "stream", "rr" ... */
	const struct np_unit *unit;
	int verbosity;
	bool headers;               /* -P */
	bool local_cpu, remote_cpu; /* -c, -C: either of them chooses the layout with CPU figures */
	const char *brand;          /* shown without headers only; NULL or empty: none */
	const struct np_hist *hist; /* shown from verbosity 2 on; NULL: none */
};

/* Verbosity 0: one figure, 1: netperf's table, 2: and details, > 2: only details, < 0: nothing. */
void np_classic_print(FILE *out, const struct np_classic *c, const struct np_record *r);

/* Print the title and heads of a UNIX-domain test, before it runs, at every verbosity with -P 1. */
void np_classic_preface(FILE *out, const struct np_classic *c);

/* Warn as netperf does that the confidence asked for was not reached; full widths in percent. */
void np_confidence_warn(FILE *out, const struct np_record *r);

/* netperf's ten lines of a histogram: eight decades from 1 us, ten cells each. */
void np_histogram_print(FILE *out, const struct np_hist *h);

/* --latency: a line of values in us ("-": none). headers: with heads, and intervals below. */
void np_times_print(FILE *out, const struct np_hist *h, bool headers);

/* Print the selected figures, in the style of -o, -O or -k. headers: -P. */
void np_omni_print(FILE *out, enum np_style style, const struct np_selection *sel, bool headers,
		   const struct np_figures *f);

/* What --human prints besides the figures. Texts that are NULL or empty are not known. */
struct np_human {
	const char *test, *host;
	const char *local, *remote;  /* addresses of the data connection */
	struct np_series rates;      /* the throughput of each iteration */
	const struct np_bag *limits; /* explain.*; NULL: not asked for */
};

/* How to print a result. */
struct np_look {
	enum np_style style;
	struct np_classic classic;    /* unit, headers ... are for all styles; hist is not used */
	struct np_selection list;     /* for -o, -O and -k */
	bool histogram;               /* print the histogram of times */
	bool times;                   /* print a summary of the times below the result */
	const char *histogram_of;     /* what was timed: "send", "request/response" ... */
	bool average;                 /* print their average below the classic table instead */
	bool missed;                  /* the confidence that was asked for was not reached */
	bool transactions;            /* the throughput counts them; else it is in the unit */
	const struct np_human *human; /* for NP_STYLE_HUMAN */
	bool latency, congestion;     /* asked for; if not, do not print such figures */
};

/* Print a result. Latencies are of all iterations, connect times of the last one. */
void np_look_print(FILE *out, const struct np_look *l, const struct np_figures *f);

/* Print the known values as a table in SI units: about 15 lines of less than 80 columns. */
void np_human_print(FILE *out, const struct np_look *l, const struct np_figures *f);

struct np_datagrams {
	const char *bench;               /* the test's name */
	const struct np_bag *near, *far; /* evidence of both ends; NULL: none */
	double seconds;                  /* that the table divides by */
	const struct np_unit *unit;
	unsigned iterations; /* the evidence is that of the last one */
};

/*
 * Print where the receiver differs from netperf's table: by more than 1 % of the rate over its own
 * time (a queue may deliver after the end), or by duplicates, so that sent less received is not
 * what was lost. Nothing without numbered datagrams, or with several sessions.
 */
void np_datagrams_print(FILE *to, const struct np_datagrams *d);

/*
 * Print --wire's ledger: both captures without rows of zeros, or the reason and the interface's
 * counters. Bags may be NULL. far_lacks: why the far end is not known (NULL or empty: unknown).
 */
void np_ledger_print(FILE *out, const struct np_bag *near, const struct np_bag *far,
		     const char *far_lacks);

/* Compare both captures in each direction: wire.way.*. Nothing if one is missing or incomplete. */
void np_ledger_compare(const struct np_bag *near, const struct np_bag *far, struct np_bag *into);

/* One interim result of -D. */
struct np_interim {
	unsigned number;    /* from 0 */
	double rate;        /* units a second */
	const char *unit;   /* name, without "/s" */
	double seconds;     /* length of the interval */
	uint64_t ending_ms; /* its end by the wall clock, since 1970 */
	bool ramps;         /* --ramp: print flows_up, too */
	uint64_t flows_up;
	double *flow; /* rates of several connections, which the output may sort; NULL: not known */
	uint32_t flows;
};

/* Print one line (NP_STYLE_KEYVAL: four, five in a ramp), and flush. */
void np_interim_print(FILE *out, enum np_style style, const struct np_interim *i);

#endif
