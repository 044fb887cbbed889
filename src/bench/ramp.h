/*
 * Ramps (--ramp): the data connections begin one after the other, N a second, and each
 * is driven from then on. The active end begins them by its clock, without waiting for any; the
 * passive end takes them as they come. There is no moment at which all have met: the window opens
 * before the first one.
 *
 * When they are due is the load's to say (np_load_ramp).
 */
#ifndef NP_BENCH_RAMP_H
#define NP_BENCH_RAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/load.h"
#include "stats/hist.h"

struct np_conn;
struct np_run;
struct np_worker;

enum { NP_RAMP_REASONS = 16 /* that are told apart */ };

/* Connections that failed, by reason; the last reason stands for all that found no room. */
struct np_ramp_failures {
	struct {
		int error; /* errno */
		uint32_t count;
	} by[NP_RAMP_REASONS];
	uint32_t reasons, count;
};

/* Of one worker of the active end, and owned by it. */
struct np_ramp {
	struct np_load load;  /* np_load_ramp: when the next one may begin */
	uint32_t begun;       /* of this worker's connections, in their order */
	struct np_hist *hist; /* from connect(2) on, until they were up */
	struct np_ramp_failures failed;
};

/* Has the worker a part in a ramp's begin? Returns false without memory for it. */
bool np_ramp_make(struct np_worker *w);

/* Release it. Safe twice, and of a worker without. */
void np_ramp_free(struct np_worker *w);

/* When it is to be looked for the next connection; UINT64_MAX: all have been begun. */
uint64_t np_ramp_due(const struct np_worker *w);

/*
 * Begin the next connection, which is due at that time: c->need is NP_COME, or NP_OVER where it
 * failed at once. NULL: none is due.
 */
struct np_conn *np_ramp_begin(struct np_worker *w, uint64_t now_ns);

/* The kernel has decided on a connection: it needs what comes first of a test, or NP_OVER. */
void np_ramp_decided(struct np_worker *w, struct np_conn *c);

/* A connection of either end is up. */
void np_ramp_up(struct np_worker *w, struct np_conn *c);

/* Count one more that failed by that errno, or all that others have counted. */
void np_ramp_failed(struct np_ramp_failures *f, int error);
void np_ramp_join(struct np_ramp_failures *into, const struct np_ramp_failures *from);

/* How many came about, of all workers; only when they are done. */
uint32_t np_ramp_came(const struct np_run *run);

/* "ECONNREFUSED 3, ETIMEDOUT 1": all reasons; cut to size. */
void np_ramp_reasons(const struct np_ramp_failures *f, char *out, size_t size);

/* errno as the manual pages write it, else "errno 123" in text. */
const char *np_ramp_reason(int error, char text[16]);

#endif
