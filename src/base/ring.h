/*
 * Rings of buffers for netperf's -W, -a, -o: `width` of one size, at aligned addresses plus an
 * offset, used in turn so that data are not always cached. As in netperf those of 128 KiB or more
 * begin 16 bytes into a page, smaller ones don't: it decides how fast the kernel copies.
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
 * Allocate `width` buffers of `size` bytes with netperf's text, for np_ring_free(). NP_EUSAGE:
 * none, over NP_RING_MAX bytes, or alignment no power of two (0 is 1); NP_ESYS: no memory.
 */
int np_ring_make(struct np_ring *ring, size_t width, size_t size, size_t alignment, size_t offset,
		 struct np_err *err);

/* The most bytes that np_ring_make() takes, for any numbers; UINT64_MAX: beyond 64 bits. */
uint64_t np_ring_bytes(uint64_t width, uint64_t size, uint64_t alignment, uint64_t offset);

/*
 * Fill the buffers from file `name`, read over and over. dir_fd 0: any file; else the far end named
 * it: a regular one, no link, directly in that directory; if not, NP_EUNSUP with EACCES. NP_ESYS:
 * unreadable or empty.
 */
int np_ring_fill(struct np_ring *ring, int dir_fd, const char *name, struct np_err *err);

/* All slots share one read-only buffer: the kernel's page of zeros, which stays in the cache. */
int np_ring_zero(struct np_ring *ring, size_t alignment, size_t offset, struct np_err *err);

/* May be called with a zeroed struct, and twice. */
void np_ring_free(struct np_ring *ring);

#endif
