/* Which buffers of MSG_ZEROCOPY sends the kernel still uses, by messages of the error queue. */
#ifndef NP_BENCH_ENGINE_ZEROCOPY_H
#define NP_BENCH_ENGINE_ZEROCOPY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* Sends that the kernel is done with, first to last; numbered per socket from 0, modulo 2^32. */
struct np_released {
	uint32_t first, last;
	bool copied; /* the kernel made a copy after all */
};

/* The buffers of a connection that the kernel has in use. Sends take its `depth` slots in turn. */
struct np_borrowed {
	uint32_t next;  /* number of the next send */
	uint32_t count; /* sends that the kernel is not done with */
	uint32_t depth; /* slots, a power of two */
	uint64_t since; /* sends since the warm-up: only their releases count */
	bool *held;     /* for each slot: the kernel may still read it */
};

/* The slot of the next send. It must not be held. */
static inline uint32_t
np_borrowed_slot(const struct np_borrowed *b)
{
	return b->next & (b->depth - 1);
}

/* The next slot was sent: the kernel uses it now. */
static inline void
np_borrowed_add(struct np_borrowed *b)
{
	b->held[np_borrowed_slot(b)] = true;
	b->next++;
	b->count++;
	b->since++;
}

/*
 * Mark these sends as released. Returns how many were in use, without those of the warm-up. Does
 * nothing if they are not among the last `depth` sends.
 */
uint32_t np_borrowed_release(struct np_borrowed *b, const struct np_released *r);

/* Find releases in a message of the error queue. False: about something else, or cut off. */
bool np_released_of(struct msghdr *m, struct np_released *out);

#endif
