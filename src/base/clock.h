/* Time: monotonic nanoseconds, and deadlines as absolute monotonic times. */
#ifndef NP_BASE_CLOCK_H
#define NP_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NP_SEC UINT64_C(1000000000)
#define NP_MSEC UINT64_C(1000000)
#define NP_NEVER UINT64_MAX /* a deadline that does not pass */

static inline uint64_t
np_clock_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * NP_SEC + (uint64_t)t->tv_nsec;
}

/* One of the clocks of clock_gettime(2), in ns (through the vDSO: about 20 ns a call). */
static inline uint64_t
np_clock(clockid_t which)
{
	struct timespec t;

	clock_gettime(which, &t);
	return np_clock_ns(&t);
}

/* CLOCK_MONOTONIC in ns: all times named _ns and all deadlines, unless stated otherwise. */
static inline uint64_t
np_now(void)
{
	return np_clock(CLOCK_MONOTONIC);
}

/* The time `ns` from now. */
static inline uint64_t
np_deadline(uint64_t ns)
{
	return np_now() + ns;
}

/* The time left, for ppoll(2): 0 if it has passed. Returns out; NULL (no limit) for NP_NEVER. */
struct timespec *np_left(uint64_t deadline, struct timespec *out);

/*
 * When to wake up first, to be in time at `deadline`: poll(2) may be late by a thousandth of its
 * time-out, by five at a higher nice value. So it is 1/128 of the wait earlier, and then the caller
 * waits again. Of a wait of less than 100 ms that is too little to matter: it is the deadline.
 */
uint64_t np_first_wake(uint64_t deadline, uint64_t now);

/* Convert a monotonic time to milliseconds since 1970, by what both clocks show now. */
uint64_t np_wall_ms(uint64_t then_ns);

#endif
