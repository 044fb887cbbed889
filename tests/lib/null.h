/*
 * An engine that moves nothing: each call is at once done with all its bytes. What the steps
 * themselves cost, and how often each is called; for the tests and the benchmark.
 */
#ifndef NP_TESTS_NULL_H
#define NP_TESTS_NULL_H

#include <stdint.h>

struct np_worker;

struct null_calls {
	uint64_t sent, arrived; /* of each step */
};

/*
 * Drive the worker's connections in turn until their budget is spent, or `steps` steps were taken.
 * Returns 0, or -errno that a step left.
 */
int null_drive(struct np_worker *w, uint64_t steps, struct null_calls *calls);

#endif
