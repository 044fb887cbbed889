/*
 * The knee of an open loop (--rate auto): the highest rate at which a test still gets all that it
 * asks for. From a low rate on each step has four times the rate of the one before, until one is
 * too much; then steps halve what is between in proportion, to 5 %; or to 0.5 %, if none may be
 * lost (NDR, with the loss ratio and the width of draft-ietf-bmwg-mlrsearch).
 *
 * A rate is too much if less than 99.9 % of what was due was sent (of a stream, which a wake-up
 * that comes late may end, but for 30 ms), if more than 0.1 % was lost or never answered, if
 * datagrams arrived more slowly than that, as a queue took what was beyond the path's rate, or if
 * P99 is above a given multiple of what it was at the lowest rate that had enough times to tell it.
 * The lowest rate that was too much is tried once more before the search ends: what else the
 * machine did for a moment is no bound.
 */
#ifndef NP_RUN_KNEE_H
#define NP_RUN_KNEE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "run/trial.h"

enum {
	NP_KNEE_STEPS = 40,
	NP_KNEE_TIMES = 10, /* P99 at the lowest rate, if the user says nothing else */
	NP_KNEE_SHARES = 3  /* P50, P99, P99.9 */
};

/* What a rate came to. */
struct np_knee_step {
	double rate;           /* operations a second, or bits of a stream */
	uint32_t runs, failed; /* runs in all; how often it was too much */
	double sent, lost;     /* shares of what was due, and of what was sent; NAN: not known */
	double arrived;        /* the rate of what arrived, as a share of this one; NAN */
	/* ns, and between which times each lies; high 0: the times are too few to tell. */
	uint64_t ns[NP_KNEE_SHARES], low[NP_KNEE_SHARES], high[NP_KNEE_SHARES];
	bool timed;
	double near_cpu, far_cpu; /* percent; NAN: not measured */
	const char *much;         /* why it is too much; NULL: it is not */
};

struct np_knee {
	double times; /* the caller's: how often P99 of the lowest rate; 0: there is no search */
	bool no_loss; /* of datagrams: none may be lost, and the rate is known to 0.5 % */
	/* Told of each step. NULL. */
	void (*tell)(void *ctx, const struct np_plan *p, const struct np_knee_step *s);
	void *ctx;

	struct np_knee_step step[NP_KNEE_STEPS];
	uint32_t steps;
	/* The highest rate that is not too much, at the end as it arrived, and the lowest that is.
	 * 0: none. */
	double good, much;
};

extern const double np_knee_shares[NP_KNEE_SHARES];

/*
 * Search. The trial's plan has the rate that was found from then on, and r is what it came to, as
 * np_trial() leaves it; if the lowest rate is too much, it is that one.
 */
int np_knee_find(struct np_knee *k, const struct np_trial *t, struct np_trial_result *r,
		 struct np_err *err);

/* The step to be made next, a new one or one that is tried again; NULL: there is none. */
struct np_knee_step *np_knee_next(struct np_knee *k, const struct np_plan *p);

/* Judge a step that was made, by the first one. */
void np_knee_judge(struct np_knee *k, struct np_knee_step *s);

#endif
