/*
 * Arrivals: when the operations of an open loop are due. The schedule knows nothing of answers, and
 * of operations that were not sent: each has its time, whenever it is asked for.
 */
#ifndef NP_BENCH_ARRIVALS_H
#define NP_BENCH_ARRIVALS_H

#include <stdint.h>

/* np_plan.arrivals; a larger one is that many at once, evenly (burst:K). */
enum { NP_ARRIVE_POISSON, NP_ARRIVE_EVENLY, NP_ARRIVE_BURST_MAX = 65536 };

/* Of one worker, which has each `of`th place of the run's. */
struct np_arrivals {
	uint64_t start_ns, due_ns; /* due: of the next operation */
	uint64_t place;            /* its place */
	double rate;               /* operations a second of all workers together */
	uint32_t of, how;
	uint64_t seed;
	double at; /* ns from the start on, of Poisson's */
};

/* `rate` a second in all begin at start_ns, of which worker `number` of `of` has its part. */
void np_arrivals_begin(struct np_arrivals *a, double rate, uint32_t how, uint32_t number,
		       uint32_t of, uint64_t start_ns);

/* The operation at a->due_ns has been taken: a->due_ns is the next one's. */
void np_arrivals_next(struct np_arrivals *a);

/* "constant", "poisson", "burst:8". Returns text. */
enum { NP_ARRIVALS_TEXT = 24 };
const char *np_arrivals_text(uint32_t how, char text[NP_ARRIVALS_TEXT]);

#endif
