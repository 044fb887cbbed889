/*
 * Rings of io_uring(7), in uring_ring.c, or in uring_none.c for a build without liburing.
 *
 * A process makes them when it needs them. One that will be confined prepares its rings before
 * (np_urings_prepare()), restricted to what the engine does, and makes no others.
 */
#ifndef NP_BENCH_ENGINE_URING_H
#define NP_BENCH_ENGINE_URING_H

#include <stdint.h>

#include "base/err.h"

enum {
	NP_URINGS_MAX = 64,        /* the most rings that a process prepares */
	NP_URING_BYTES = 192 << 10 /* the kernel's memory for one: not in np_engine.bytes */
};

/*
 * Why this process cannot use io_uring, as text for a message; NULL: it can. Makes a ring to find
 * out, or looks whether any were prepared.
 */
const char *np_urings_lack(void);

/*
 * Make `count` restricted rings, which tests take and give back. From now on this process makes no
 * others. NP_ESYS if the kernel refuses: then there are fewer.
 */
int np_urings_prepare(uint32_t count, struct np_err *err);

/* Undo np_urings_prepare(): at its start, and in unit tests. */
void np_urings_release(void);

/* How many prepared rings are free; UINT32_MAX: this process makes as many as it needs. */
uint32_t np_urings_unused(void);

#endif
