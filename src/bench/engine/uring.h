/*
 * Rings of io_uring(7), by uring_ring.c, or uring_none.c without liburing. Processes make them when
 * needed, but one that will be confined prepares its own before (np_urings_prepare()), restricted
 * to what the engine does, and makes no others.
 */
#ifndef NP_BENCH_ENGINE_URING_H
#define NP_BENCH_ENGINE_URING_H

#include <stdint.h>

#include "base/err.h"

enum {
	NP_URINGS_MAX = 64,        /* the most rings that a process prepares */
	NP_URING_BYTES = 192 << 10 /* the kernel's memory for one: not in np_engine.bytes */
};

/* Why io_uring can't be used; NULL: it can. Tries to make a ring, or looks for prepared ones. */
const char *np_urings_lack(void);

/* Make `count` restricted rings, and no others from now on. NP_ESYS: the kernel made fewer. */
int np_urings_prepare(uint32_t count, struct np_err *err);

/* Undo np_urings_prepare(): at its start, and in unit tests. */
void np_urings_release(void);

/* How many prepared rings are free; UINT32_MAX: this process makes as many as it needs. */
uint32_t np_urings_unused(void);

#endif
