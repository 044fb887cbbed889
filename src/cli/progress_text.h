/* The text of the progress line, which shows how far a test is. */
#ifndef NP_CLI_PROGRESS_TEXT_H
#define NP_CLI_PROGRESS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/live.h"

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
 * Write the line into out, without control characters and at most `columns` wide. If room is short,
 * the bar is left out first, then the test's name and iteration, then the rate; then the text is
 * cut. Returns the length in bytes.
 */
enum { NP_PROGRESS_TEXT = 1024 };
size_t np_progress_text(const struct np_progress *p, unsigned columns, char out[NP_PROGRESS_TEXT]);

#endif
