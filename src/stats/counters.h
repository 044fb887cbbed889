/* A worker's counters: its thread writes, others read. Relaxed accesses: order does not matter. */
#ifndef NP_STATS_COUNTERS_H
#define NP_STATS_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/lines.h"

#define NP_COUNTERS(X)                                                                             \
	X(sent)     /* bytes that the kernel took */                                               \
	X(sends)    /* calls that sent something */                                                \
	X(received) /* bytes that the kernel gave */                                               \
	X(receives) /* calls that received something */                                            \
	X(ignored)  /* datagrams of the warm-up, which do not count */                             \
	X(transactions)                                                                            \
	X(failed) /* sends refused for lack of buffer space */                                     \
	X(lost)   /* requests given up without a response */                                       \
	/* Response datagrams that answer no request in flight, by ids (bench/ids.h): */           \
	X(duplicated) /* of requests that were answered before */                                  \
	X(late)       /* of requests that were given up */                                         \
	X(stray)      /* of no request */                                                          \
	X(surplus)    /* without ids: responses beyond the number of requests */                   \
	X(up)         /* connections that a ramp has established (bench/ramp.h) */

/* In cache lines that hold nothing else, so that no other thread's writes slow the loop down. */
struct np_counters {
#define NP_COUNTER(name) _Atomic uint64_t name;
	_Alignas(NP_CACHE_LINE) NP_COUNTERS(NP_COUNTER)
#undef NP_COUNTER
};

/* A snapshot of the counters, of one or several workers. */
struct np_counts {
#define NP_COUNTER(name) uint64_t name;
	NP_COUNTERS(NP_COUNTER)
#undef NP_COUNTER
};

/* Set a counter. Only for the writer. */
static inline void
np_set(_Atomic uint64_t *counter, uint64_t total)
{
	atomic_store_explicit(counter, total, memory_order_relaxed);
}

/* The value of a counter, for any thread. */
static inline uint64_t
np_get(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

/* Reset all to 0. Only for the writer. */
static inline void
np_counters_clear(struct np_counters *c)
{
#define NP_COUNTER(name) np_set(&c->name, 0);
	NP_COUNTERS(NP_COUNTER)
#undef NP_COUNTER
}

/* A sum that grows while the test makes progress: it stands still if the far end is gone. */
static inline uint64_t
np_counters_activity(const struct np_counters *c)
{
	return np_get(&c->receives) + np_get(&c->ignored) + np_get(&c->transactions) +
	       np_get(&c->sends);
}

/* Add a worker's current values to a snapshot. */
static inline void
np_counts_read(struct np_counts *sum, const struct np_counters *c)
{
#define NP_COUNTER(name) sum->name += np_get(&c->name);
	NP_COUNTERS(NP_COUNTER)
#undef NP_COUNTER
}

/* Add another snapshot. */
static inline void
np_counts_add(struct np_counts *sum, const struct np_counts *c)
{
#define NP_COUNTER(name) sum->name += c->name;
	NP_COUNTERS(NP_COUNTER)
#undef NP_COUNTER
}

/* Add to a counter, and return the total. Only for the writer: it needs no locked addition. */
static inline uint64_t
np_add(_Atomic uint64_t *counter, uint64_t n)
{
	uint64_t total = np_get(counter) + n;

	np_set(counter, total);
	return total;
}

#endif
