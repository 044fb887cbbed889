/*
 * Which transports this kernel lacks. A socket of one may have the kernel load a module: a daemon
 * does that at its start if the operator asks for it, and never for a client.
 */
#ifndef NP_BENCH_LACKS_H
#define NP_BENCH_LACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct np_transport;

/* Bits of np_limits.lacks: row i of the table of transports, by IPv6 or otherwise. */
static inline uint64_t
np_lacks_bit(size_t i, bool six)
{
	return UINT64_C(1) << (six ? i + 32 : i);
}

/* The transports that this kernel lacks now, by the files below root. Loads no module. */
uint64_t np_lacks_now(const char *root);

/* Is this transport among them? The family (AF_*) only matters over IP. */
bool np_lacks(uint64_t lacks, const struct np_transport *t, int family);

/* The error for a client: NP_EUNSUP, with what the operator can do. */
int np_lacks_fail(uint64_t lacks, const struct np_transport *t, struct np_err *err);

/* Have the kernel load the modules of a transport, also for IPv6. NP_EUNSUP: what is missing. */
int np_lacks_load(const struct np_transport *t, struct np_err *err);

#endif
