/*
 * Rings of io_uring(7). Two files stand behind this: uring_ring.c, where configure found liburing,
 * else uring_none.c.
 *
 * A process makes them when it needs them, but for one that is going to be confined: that has the
 * rings it was given before (np_urings_prepare()), restricted to what the engine does, and makes
 * none.
 */
#ifndef NP_BENCH_ENGINE_URING_H
#define NP_BENCH_ENGINE_URING_H

#include <stdint.h>

#include "base/err.h"

/* The most rings that a process is given. */
enum { NP_URINGS_MAX = 64 };

/* What a ring takes of the kernel's memory, beside what is counted for the test. */
enum { NP_URING_BYTES = 192 << 10 };

/* Why no ring can be had, found by trying unless it makes none; NULL: it can. */
const char *np_urings_lack(void);

/*
 * From now on this process makes no ring: it has these, made and restricted at once, which its
 * tests take and give back. 0 is none. NP_ESYS when the kernel refuses, and there are fewer.
 */
int np_urings_prepare(uint32_t count, struct np_err *err);

/* Give those back, too, and be free to make some: for tests of this. */
void np_urings_release(void);

/* How many of those no test has; UINT32_MAX: it makes as many as it needs. */
uint32_t np_urings_free(void);

#endif
