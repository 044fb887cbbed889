/* The progress line on standard error; the waiting thread (run/live.h) draws it each 250 ms. */
#ifndef NP_CLI_PROGRESS_H
#define NP_CLI_PROGRESS_H

#include <stdatomic.h>
#include <stdio.h>

#include "cli/args.h"
#include "run/live.h"

struct np_progress_line; /* a line that may be drawn */

/*
 * Begin. NULL, which all functions accept: no line. *drawn: 0, or the descriptor that shows it.
 * *live: what the test's client reports its steps to; NULL: to nothing.
 */
struct np_progress_line *
np_progress_begin(const struct np_cli *cli, atomic_int *drawn, struct np_live **live);

/* Erase the line, if it is visible. May be called by a signal handler. */
void np_progress_erase(atomic_int *drawn);

/* This iteration begins, from 1 on. Has no effect where a test runs once. */
void np_progress_iteration(struct np_progress_line *s, unsigned number);

/*
 * Call these around writes to `to`, standard output or error: the line is erased before, and drawn
 * again after. May be nested; other threads wait from the first pause to its resume.
 */
void np_progress_pause(struct np_progress_line *s, FILE *to);
void np_progress_resume(struct np_progress_line *s, FILE *to);

/* Erase the line for good. Twice is the same as once. */
void np_progress_end(struct np_progress_line *s);

void np_progress_free(struct np_progress_line *s);

/* What a rate counts. */
enum np_progress_rate { NP_PROGRESS_BITS, NP_PROGRESS_TRANSACTIONS, NP_PROGRESS_UNITS };

struct np_progress {
	const char *test, *host; /* "TCP_STREAM"; the daemon's, as the user wrote it */
	enum np_live_step step;
	double elapsed_s, total_s;    /* of this step; total 0: unknown */
	double done;                  /* of a test by count, 0 to 1; < 0: a test by time */
	unsigned iteration, min, max; /* iteration 0: there is only one; max 0: no limit */
	uint32_t connections;         /* data connections of the test */
	bool ramps;                   /* --ramp: connections begin one after the other */
	uint64_t up;                  /* then: how many are connected */
	double rate;                  /* a second; < 0: unknown */
	enum np_progress_rate of;
	const char *unit; /* of NP_PROGRESS_UNITS: "MBytes" */
	bool sent;        /* the rate counts what was sent: less may arrive */
};

/*
 * Write the line in printable ASCII ('?' for the rest), at most `columns` wide. If room is short,
 * leave out first the bar, then test, iteration and rate; then cut the step. Returns bytes.
 */
enum { NP_PROGRESS_TEXT = 1024 };
size_t np_progress_text(const struct np_progress *p, unsigned columns, char out[NP_PROGRESS_TEXT]);

#endif
