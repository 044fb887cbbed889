/*
 * The knee of an open loop (--rate auto): the highest rate that a test can keep. From a low rate
 * on, each step has four times the rate before, until one is too high; then the interval is
 * bisected, by ratio, to 5 %, or to 0.5 % if nothing may be lost (NDR, with the loss ratio and
 * width of draft-ietf-bmwg-mlrsearch). A rate is too high if less than 99.9 % of what was due was
 * sent (of a stream: except for 30 ms, as a wake-up may be late at its end), more than 0.1 % was
 * lost or never answered, data arrived more slowly than they were sent, which fills a queue, or P99
 * exceeds a given multiple of P99 at the lowest rate with enough samples. The lowest such rate is
 * tried again before the end, in case something else disturbed the machine.
 */
#ifndef NP_RUN_KNEE_H
#define NP_RUN_KNEE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "run/trial.h"

enum {
	NP_KNEE_STEPS = 40,
	NP_KNEE_TIMES = 10, /* default limit of P99, as a multiple of that of the lowest rate */
	NP_KNEE_SHARES = 3  /* P50, P99, P99.9 */
};

/* The result of a rate. */
struct np_knee_step {
	double rate;           /* operations a second, or bits of a stream */
	uint32_t runs, failed; /* runs in all; how often the rate was too high */
	double sent, lost;     /* shares of what was due, and of what was sent; NAN: unknown */
	double arrived;        /* rate of arrivals, as a share of this rate; NAN: unknown */
	/* Percentiles in ns, and their confidence intervals; high 0: too few samples. */
	uint64_t ns[NP_KNEE_SHARES], low[NP_KNEE_SHARES], high[NP_KNEE_SHARES];
	bool timed;               /* the percentiles are known */
	double near_cpu, far_cpu; /* percent; NAN: not measured */
	const char *why_too_high; /* why the rate is too high; NULL: it is not */
};

struct np_knee {
	double times; /* by the caller: limit of P99, in P99s of the lowest rate; 0: no search */
	bool no_loss; /* set by the caller: no datagram may be lost */
	/* Called after each step. May be NULL. */
	void (*tell)(void *ctx, const struct np_plan *p, const struct np_knee_step *s);
	void *ctx;

	struct np_knee_step step[NP_KNEE_STEPS];
	uint32_t steps;
	/* Highest rate that is kept (at the end: as it arrived), lowest that is not. 0: none. */
	double good, too_high;
	bool cut; /* a failure or a signal ended the search */
};

/*
 * Search by np_trial() until the knee is found, a trial fails or a signal comes. The trial's plan
 * gets the highest good rate, or else the lowest rate, and *r its result. Fails as a trial does.
 */
int np_knee_find(struct np_knee *k, const struct np_trial *t, struct np_trial_result *r,
		 struct np_err *err);

/* The next step, a new one or one to be tried again; NULL: the search is over. For tests, too. */
struct np_knee_step *np_knee_next(struct np_knee *k, const struct np_plan *p);

/* Judge a step after its runs, compared with the first one. */
void np_knee_judge(struct np_knee *k, struct np_knee_step *s);

#endif
