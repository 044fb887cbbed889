/* What one thread writes in a hot loop must share no cache line with what another thread uses. */
#ifndef NP_BASE_LINES_H
#define NP_BASE_LINES_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NP_CACHE_LINE = 64 };

/* calloc(3) of whole cache lines, with every page in memory already; released with free(). */
static inline void *
np_cache_lines_new(size_t count, size_t size)
{
	size_t bytes;
	void *p;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - NP_CACHE_LINE) {
		return NULL;
	}
	bytes = (bytes + NP_CACHE_LINE - 1) / NP_CACHE_LINE * NP_CACHE_LINE;
	p = aligned_alloc(NP_CACHE_LINE, bytes);
	return p != NULL ? memset(p, 0, bytes) : NULL;
}

#endif
