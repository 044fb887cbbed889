/*
 * How a result is shown: everything but its figures.
 */
#ifndef NP_OUT_LOOK_H
#define NP_OUT_LOOK_H

#include "out/human.h"

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

#endif
