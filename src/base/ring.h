/*
 * Rings of message buffers, as netperf's -W, -a and -o ask for them: `width` buffers of one size,
 * each at an aligned address plus an offset, used in turn so that the cache does not flatter.
 *
 * They begin where netperf's do, as far as that decides how fast the kernel copies: from 128 KiB on
 * 16 bytes behind a page, and smaller ones anywhere else.
 */
#ifndef NP_BASE_RING_H
#define NP_BASE_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { NP_RING_MAX = 256 << 20 }; /* bytes of a whole ring */

struct np_slot {
	char *buf;
	struct np_slot *next;
	void *memory; /* buf is in it; NULL: behind the slots */
};

struct np_ring {
	struct np_slot *slots; /* the first is where a loop starts; each names its successor */
	size_t width, size;
	void *zeros; /* a mapping of `mapped` bytes that all slots share; NULL: none */
	size_t mapped;
};

/*
 * Allocate and touch a ring of width >= 1 buffers of size >= 1 bytes, filled with netperf's text.
 * alignment is a power of two (0 counts as 1). NP_EUSAGE when it would be over NP_RING_MAX,
 * NP_ESYS without memory. What it holds is released by np_ring_free().
 */
int np_ring_make(struct np_ring *ring, size_t width, size_t size, size_t alignment, size_t offset,
		 struct np_err *err);

/*
 * The most bytes that np_ring_make() allocates for such a ring; UINT64_MAX if 64 bits can't count
 * them. Takes any numbers.
 */
uint64_t np_ring_bytes(uint64_t width, uint64_t size, uint64_t alignment, uint64_t offset);

/*
 * Fill the buffers one after another from a file, read again from its start as often as needed.
 * With a dir_fd the far end names the file: a regular one, no link, in that directory itself;
 * NP_EUNSUP with EACCES for any other name or kind of file. 0: any file.
 */
int np_ring_fill(struct np_ring *ring, int dir_fd, const char *name, struct np_err *err);

/*
 * Let all slots share one buffer, aligned as in np_ring_make(), that is never written: each of its
 * pages is the kernel's page of zeros, which stays in the processor's cache. Writing to it faults.
 */
int np_ring_zero(struct np_ring *ring, size_t alignment, size_t offset, struct np_err *err);

/* Safe on a zeroed struct, and twice. */
void np_ring_free(struct np_ring *ring);

#endif
