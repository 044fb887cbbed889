/*
 * A probe beside a load: transactions at a low rate, on a fixed schedule, with the same daemon. It
 * runs alone first, and then in the window of the load, so it shows what the load does to others'
 * latency.
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

/* Its figures are of all loads that it ran beside. */
struct np_beside {
	/* The caller's. The client has no connection; its signals and hooks are the load's. */
	struct np_trial probe;

	struct np_hist *idle, *loaded; /* latencies; NULL before the first one */
	uint64_t unanswered;           /* beside the load: they stand at the top */
	double own_us; /* the latency over the loads' own connections, their mean; NAN: not known */
	uint32_t loads;
	char limits[200]; /* why the probe beside the load was not what was asked for; empty: it was
			   */
	char died[160];   /* why the load was none; empty: it was one */

	/* Of the load that is under way: */
	struct np_gate *gate;
	pthread_t thread;
	sigset_t let_in;
	_Atomic int passed; /* signals to the probe */
	struct np_outcome out;
	struct np_err err;
	int rc;
	bool first;                    /* to fail, of both, before either began */
	struct np_live live, *watched; /* how the load is watched; the caller's own, or NULL */
	struct np_live was;
	uint64_t moved, moved_ns, quiet_ns; /* what it counted, when that changed, and the longest
					       time in which it did not */
};

/*
 * Run the probe alone, once, for as long as the load will run, but 1 s to 5 s. A daemon does not
 * wait for so long for what a connection is about: the load's is closed.
 */
int np_beside_alone(struct np_beside *b, const struct np_trial *load, struct np_err *err);

/*
 * Run the load with the probe beside it, as np_trial() does without. The load's outcome is in r,
 * the probe's is added to b. The error is the probe's where that could not run.
 */
int np_beside_trial(struct np_beside *b, const struct np_trial *load, struct np_trial_result *r,
		    struct np_err *err);

/*
 * Round trips a minute (draft-ietf-ippm-responsiveness), by the mean of the fastest 95 % of them;
 * 0 where one of these was never answered, NAN of an empty histogram.
 */
double np_beside_rpm(const struct np_hist *h);

/*
 * The mean time in us from sending a byte of a stream until it was acknowledged, by the sender's
 * evidence (Little's law). NAN: not known.
 */
double np_beside_own_us(const struct np_bag *sender);

/* Its figures, in the record of a load. b NULL: there is no probe. */
void np_beside_report(const struct np_beside *b, struct np_record *r);

/* Safe on a zeroed struct. */
void np_beside_free(struct np_beside *b);

#endif
