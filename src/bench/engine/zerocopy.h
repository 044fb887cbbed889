/*
 * What the kernel says of buffers that MSG_ZEROCOPY gave to it: messages of a socket's
 * error queue.
 */
#ifndef NP_BENCH_ENGINE_ZEROCOPY_H
#define NP_BENCH_ENGINE_ZEROCOPY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * The sends of a socket are numbered from 0 on, modulo 2^32; these, first and last included, are
 * done with.
 */
struct np_released {
	uint32_t first, last;
	bool copied; /* the kernel made a copy after all */
};

/*
 * What the kernel has in use of a connection. Its buffers are `depth` slots, a power of two, which
 * its sends have in turn.
 */
struct np_lent {
	uint32_t next;  /* number of the next send */
	uint32_t count; /* sends that the kernel is not done with */
	uint32_t depth;
	uint64_t since; /* sends that count: since the warm-up */
	bool *held;     /* of each slot: the kernel reads it */
};

static inline uint32_t
np_lent_slot(const struct np_lent *l)
{
	return l->next & (l->depth - 1);
}

/* The kernel has the next slot in use, too. */
static inline void
np_lent_add(struct np_lent *l)
{
	l->held[np_lent_slot(l)] = true;
	l->next++;
	l->count++;
	l->since++;
}

/* Returns how many of the sends that count are released by that. One that is not in use is not
 * counted. */
uint32_t np_lent_release(struct np_lent *l, const struct np_released *r);

/* Which sends such a message tells of. False: of none, it is of something else or cut off. */
bool np_released_of(struct msghdr *m, struct np_released *out);

#endif
