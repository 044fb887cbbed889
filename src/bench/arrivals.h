/*
 * Arrivals: when the operations of an open loop are due. The schedule depends neither on replies
 * nor on whether, or how late, earlier operations were sent.
 */
#ifndef NP_BENCH_ARRIVALS_H
#define NP_BENCH_ARRIVALS_H

#include <stdint.h>

/* np_plan.arrivals. K > NP_ARRIVE_EVENLY: K at once, in even intervals (burst:K). */
enum { NP_ARRIVE_POISSON, NP_ARRIVE_EVENLY, NP_ARRIVE_BURST_MAX = 65536 };

/* The schedule of one worker, which has every `of`th operation of the run. */
struct np_arrivals {
	uint64_t start_ns, due_ns; /* due: of the next operation */
	uint64_t place;            /* its number in the run, from 0 */
	double rate;               /* operations a second of all workers together */
	uint32_t of, how;          /* workers; np_plan.arrivals */
	uint64_t seed;
	double at; /* Poisson: when it is due, in ns after start_ns */
};

/* `rate` operations a second of all `of` workers, from start_ns on; this one is `number`. */
void np_arrivals_begin(struct np_arrivals *a, double rate, uint32_t how, uint32_t number,
		       uint32_t of, uint64_t start_ns);

/* The operation that was due has been taken: set a->due_ns to this worker's next one. */
void np_arrivals_next(struct np_arrivals *a);

/* `how` as users write it: "constant", "poisson", "burst:8" (in text). */
enum { NP_ARRIVALS_TEXT = 24 };
const char *np_arrivals_text(uint32_t how, char text[NP_ARRIVALS_TEXT]);

#endif
