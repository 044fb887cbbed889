/*
 * Rings of message buffers, for netperf's -W, -a and -o: `width` buffers of one size, each at an
 * aligned address plus an offset, used in turn so that data are not always in the cache.
 *
 * As in netperf, buffers of 128 KiB or more begin 16 bytes into a page, and smaller ones don't:
 * the address decides how fast the kernel copies.
 */
#ifndef NP_BASE_RING_H
#define NP_BASE_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { NP_RING_MAX = 256 << 20 }; /* bytes of a whole ring */

struct np_slot {
	char *buf;
	struct np_slot *next; /* the last one's is the first */
	void *memory;         /* the allocation that holds buf; NULL: that of the slots does */
};

struct np_ring {
	struct np_slot *slots; /* the first is where a loop starts */
	size_t width, size;
	void *zeros; /* a mapping of `mapped` bytes that all slots share; NULL: none */
	size_t mapped;
};

/*
 * Allocate a ring of width >= 1 buffers of size >= 1 bytes, filled with netperf's text. alignment
 * is a power of two (0 counts as 1). NP_EUSAGE for more than NP_RING_MAX bytes, NP_ESYS without
 * memory. np_ring_free() releases it.
 */
int np_ring_make(struct np_ring *ring, size_t width, size_t size, size_t alignment, size_t offset,
		 struct np_err *err);

/*
 * The most bytes that np_ring_make() allocates for such a ring; UINT64_MAX if 64 bits can't count
 * them. Takes any numbers.
 */
uint64_t np_ring_bytes(uint64_t width, uint64_t size, uint64_t alignment, uint64_t offset);

/*
 * Fill the buffers one after another from the file `name`, read again from its start as often as
 * needed. dir_fd 0: any file. Otherwise the far end named it, and it has to be a regular file, no
 * link, directly in the directory of that descriptor: NP_EUNSUP with EACCES if it is not. NP_ESYS:
 * it cannot be read, or is empty.
 */
int np_ring_fill(struct np_ring *ring, int dir_fd, const char *name, struct np_err *err);

/*
 * Make all slots share one read-only buffer, aligned as in np_ring_make(): each of its pages is the
 * kernel's page of zeros, which stays in the processor's cache. Writing to it is a fault.
 */
int np_ring_zero(struct np_ring *ring, size_t alignment, size_t offset, struct np_err *err);

/* May be called with a zeroed struct, and twice. */
void np_ring_free(struct np_ring *ring);

#endif
