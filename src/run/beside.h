/*
 * A probe beside a load: it sends requests at a low rate on a fixed schedule, at first alone and
 * then in the load's window, which shows what the load does to others' latency.
 */
#ifndef NP_RUN_BESIDE_H
#define NP_RUN_BESIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "run/trial.h"
#include "stats/hist.h"
#include "stats/record.h"

struct np_gate;

/* The probe's figures are those of all its runs beside a load. */
struct np_beside {
	/* Set by the caller: a client without a connection, with the load's hooks. */
	struct np_trial probe;

	struct np_hist *idle, *loaded; /* latencies; NULL before the first one */
	uint64_t unanswered;           /* under load; in `loaded` they are the longest */
	double own_us;    /* mean of np_beside_own_us() over the loads; NAN: one is unknown */
	uint32_t loads;   /* number of loads that it ran beside */
	char limits[200]; /* why the probe could not keep its rate under load; empty: it could */
	char died[160];   /* why the load does not count as one; empty: it does */

	/* While a load runs: */
	struct np_gate *gate; /* opens the windows of load and probe together */
	pthread_t thread;
	sigset_t let_in;    /* signal mask while the probe waits */
	_Atomic int passed; /* signals to the probe */
	struct np_outcome out;
	struct np_err err;
	int rc;
	bool first;                         /* it failed before the windows opened, and first */
	struct np_live live;                /* the load's, in the place of its client's */
	struct np_live *watched;            /* that of the load's client, or NULL */
	uint64_t moved, moved_ns, quiet_ns; /* the load's work, when it last changed, and the
					       longest time without a change */
};

/*
 * Run the probe alone, for as long as the load will run, but between 1 s and 5 s. The load's client
 * must not be connected: a daemon does not wait that long for a request.
 */
int np_beside_alone(struct np_beside *b, const struct np_trial *load, struct np_err *err);

/* Like np_trial() with the probe beside it: adds to b. If the probe could not run, err says why. */
int np_beside_trial(struct np_beside *b, const struct np_trial *load, struct np_trial_result *r,
		    struct np_err *err);

/*
 * Round trips a minute (draft-ietf-ippm-responsiveness), by the mean of the fastest 95 % of them. 0
 * if one of these was never answered, NAN for an empty histogram.
 */
double np_beside_rpm(const struct np_hist *h);

/* Mean time in us until a stream's byte is acknowledged (Little's law). NAN: unknown. */
double np_beside_own_us(const struct np_bag *sender);

/* Add the probe's figures to the record of a load. b NULL: there is no probe. */
void np_beside_report(const struct np_beside *b, struct np_record *r);

/* Free the histograms, and close the probe's connection. Safe on a zeroed struct. */
void np_beside_free(struct np_beside *b);

#endif
