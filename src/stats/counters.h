/*
 * What a worker counts and a sampler may read while it counts: one writer, any number of readers.
 * A relaxed store by the only writer is one plain move, so publishing costs a loop next to nothing.
 */
#ifndef NP_STATS_COUNTERS_H
#define NP_STATS_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

struct np_counters {
	_Alignas(64) _Atomic uint64_t sent; /* bytes the kernel took */
	_Atomic uint64_t sends;             /* calls that sent something */
	_Atomic uint64_t received;          /* bytes the kernel gave */
	_Atomic uint64_t receives;          /* calls that received something */
	_Atomic uint64_t transactions;
	_Atomic uint64_t failed; /* sends refused for want of buffer space */
	_Atomic uint64_t lost;   /* requests given up without a response */
	/* Responses as datagrams, told apart by ids (bench/ids.h), that were not the one waited
	 * for: */
	_Atomic uint64_t duplicated; /* of requests that had been answered */
	_Atomic uint64_t late;       /* of requests that had been given up */
	_Atomic uint64_t stray;      /* of no request */
	_Atomic uint64_t surplus;    /* without ids: those that were more than asked for */
	_Atomic uint64_t up;         /* data connections that a ramp has brought (bench/ramp.h) */
};

static inline void
np_show(_Atomic uint64_t *shown, uint64_t total)
{
	atomic_store_explicit(shown, total, memory_order_relaxed);
}

static inline uint64_t
np_seen(const _Atomic uint64_t *shown)
{
	return atomic_load_explicit(shown, memory_order_relaxed);
}

/* Count from 0 on again. The writer's. */
static inline void
np_counters_clear(struct np_counters *c)
{
	_Atomic uint64_t *const all[] = { &c->sent,     &c->sends,        &c->received,
					  &c->receives, &c->transactions, &c->failed,
					  &c->lost,     &c->duplicated,   &c->late,
					  &c->stray,    &c->surplus,      &c->up };

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		np_show(all[i], 0);
	}
}

/* Add to what nobody else writes to. Returns the total. */
static inline uint64_t
np_add(_Atomic uint64_t *shown, uint64_t n)
{
	uint64_t total = np_seen(shown) + n;

	np_show(shown, total);
	return total;
}

#endif
