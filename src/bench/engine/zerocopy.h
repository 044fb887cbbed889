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
struct np_borrowed {
	uint32_t next;  /* number of the next send */
	uint32_t count; /* sends that the kernel is not done with */
	uint32_t depth;
	uint64_t since; /* sends that count: since the warm-up */
	bool *held;     /* of each slot: the kernel reads it */
};

static inline uint32_t
np_borrowed_slot(const struct np_borrowed *b)
{
	return b->next & (b->depth - 1);
}

/* The kernel has the next slot in use, too. */
static inline void
np_borrowed_add(struct np_borrowed *b)
{
	b->held[np_borrowed_slot(b)] = true;
	b->next++;
	b->count++;
	b->since++;
}

/* Returns how many of the sends that count are released by that. One that is not in use is not
 * counted. */
uint32_t np_borrowed_release(struct np_borrowed *b, const struct np_released *r);

/* Which sends such a message tells of. False: of none, it is of something else or cut off. */
bool np_released_of(struct msghdr *m, struct np_released *out);

#endif
