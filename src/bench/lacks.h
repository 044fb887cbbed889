/*
 * Which transports this kernel has already. To make a socket of another one has the kernel load a
 * module, if there is one: a daemon does that at its start for the operator, and never for a
 * client.
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

/* All that it lacks now, by its lists below root. Nothing is loaded. */
uint64_t np_lacks_now(const char *root);

/* Is that among them? Of a transport without IP the family does not matter. */
bool np_lacks(uint64_t lacks, const struct np_transport *t, int family);

/* Say to a client that it is: NP_EUNSUP, with what would bring it. */
int np_lacks_tell(uint64_t lacks, const struct np_transport *t, struct np_err *err);

/* Have the kernel load what that one takes, by IPv6, too. NP_EUNSUP says what is missing. */
int np_lacks_load(const struct np_transport *t, struct np_err *err);

#endif
