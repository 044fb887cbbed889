#include "base/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lines.h"

enum {
	LARGE = 128 << 10,           /* bytes from which on glibc's malloc(3) maps pages */
	BEHIND = 2 * sizeof(size_t), /* malloc(3)'s header, and its alignment */
	PAGE = 4096,
	FILL_S = 5 /* how long a FIFO may be without data */
};

/*
 * Allocate `size` bytes, PAGE or more, at *begin. An AMD EPYC copies at half speed to 16 bytes past
 * the source, modulo the page. The kernel's data mostly begin at a page, glibc's large buffers 16
 * bytes later (unless some were freed, as by a daemon): netperf receives slowly into them, so we
 * do. Its smaller ones rarely are: ours begin at a cache line.
 */
static void *
new_buffer(size_t size, char **begin)
{
	size_t align = size >= LARGE ? PAGE : NP_CACHE_LINE, behind = size >= LARGE ? BEHIND : 0;
	char *memory = aligned_alloc(align, (size + behind + align - 1) / align * align);

	*begin = memory != NULL ? memory + behind : NULL;
	return memory;
}

/* The first aligned address from `begin` on, plus the offset. `align` is a power of two. */
static char *
aligned(char *begin, size_t align, size_t offset)
{
	return begin + (-(uintptr_t)begin & (align - 1)) + offset;
}

uint64_t
np_ring_bytes(uint64_t width, uint64_t size, uint64_t alignment, uint64_t offset)
{
	uint64_t each, all;

	alignment += alignment == 0; /* as np_ring_make() */
	if (__builtin_add_overflow(size, alignment, &each) ||
	    __builtin_add_overflow(each, offset, &each) ||
	    each > UINT64_MAX / 2 /* so that the sums below fit */) {
		return UINT64_MAX;
	}
	/* The most that new_buffer() adds to align and round up, then what malloc(3) does. */
	each += each >= LARGE ? 3 * PAGE : each >= PAGE ? 2 * NP_CACHE_LINE : 0;
	each += 3 * sizeof(size_t) + sizeof(struct np_slot);
	return __builtin_mul_overflow(each, width, &all) ||
		       __builtin_add_overflow(all, 3 * NP_CACHE_LINE, &all)
		   ? UINT64_MAX
		   : all;
}

int
np_ring_make(struct np_ring *ring, size_t width, size_t size, size_t alignment, size_t offset,
	     struct np_err *err)
{
	static const char text[8] = "netperf";
	size_t align = alignment > 0 ? alignment : 1, each = size + align + offset, slots, apart;

	memset(ring, 0, sizeof(*ring));
	if ((align & (align - 1)) != 0) {
		return np_usage(err, "alignment %zu is not a power of two", align);
	}
	if (width == 0 || size == 0 || np_ring_bytes(width, size, align, offset) > NP_RING_MAX) {
		return np_usage(err, "%zu buffers of %zu bytes take more than %d MiB", width, size,
				NP_RING_MAX >> 20);
	}
	/* Slots and small buffers together, spaced as by malloc(3), in their own cache lines. */
	slots =
	    (width * sizeof(struct np_slot) + NP_CACHE_LINE - 1) / NP_CACHE_LINE * NP_CACHE_LINE;
	apart = each < PAGE ? (each + 3 * sizeof(size_t) - 1) / BEHIND * BEHIND : 0;
	ring->slots = np_cache_lines_new(1, slots + width * apart);
	for (size_t i = 0; ring->slots != NULL && i < width; i++) {
		struct np_slot *s = &ring->slots[i];
		char *begin = (char *)ring->slots + slots + i * apart;

		if (apart == 0 && (s->memory = new_buffer(each, &begin)) == NULL) {
			np_ring_free(ring);
			break;
		}
		s->buf = aligned(begin, align, offset);
		s->next = &ring->slots[(i + 1) % width];
		for (size_t at = 0; at < size; at++) {
			s->buf[at] = text[at % sizeof(text)];
		}
		ring->width = i + 1;
	}
	if (ring->slots == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "%zu buffers of %zu bytes", width, size);
	}
	ring->size = size;
	return NP_OK;
}

/* Fill a buffer from the file, repeated. Fails if that is empty, or a FIFO silent for FILL_S. */
static int
fill_buffer(int fd, char *buf, size_t size, const char *path, struct np_err *err)
{
	size_t have = 0;
	bool rewound = false;

	while (have < size) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, FILL_S * 1000) == 0) {
			return np_fail(err, NP_ESYS, 0, "fill file %s had no data for %d s", path,
				       FILL_S);
		}
		n = read(fd, buf + have, size - have);
		if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
			continue;
		}
		if (n < 0) {
			return np_fail(err, NP_ESYS, errno, "read fill file %s", path);
		}
		if (n == 0 && rewound) {
			return np_fail(err, NP_ESYS, 0, "fill file %s is empty", path);
		}
		if (n == 0 && lseek(fd, 0, SEEK_SET) != 0) {
			return np_fail(err, NP_ESYS, 0,
				       "fill file %s ended too early, and can't be read again",
				       path);
		}
		rewound = n == 0;
		have += (size_t)n;
	}
	return NP_OK;
}

int
np_ring_fill(struct np_ring *ring, int dir_fd, const char *name, struct np_err *err)
{
	bool anywhere = dir_fd <= 0;
	/* Opening a FIFO must not wait for its other end. */
	int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (anywhere ? 0 : O_NOFOLLOW);
	struct stat st;
	int fd, rc = NP_OK;

	if (!anywhere &&
	    (strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)) {
		return np_fail(err, NP_EUNSUP, EACCES, "fill file %s is not a plain name", name);
	}
	fd = openat(anywhere ? AT_FDCWD : dir_fd, name, O_RDONLY | flags);
	if (fd < 0 && (anywhere || errno != ELOOP)) { /* ELOOP: a link, refused below */
		return np_fail(err, NP_ESYS, errno, "open fill file %s", name);
	}
	if (!anywhere && (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		return np_fail(err, NP_EUNSUP, EACCES, "fill file %s is not a regular file", name);
	}
	for (size_t i = 0; i < ring->width && rc == NP_OK; i++) {
		rc = fill_buffer(fd, ring->slots[i].buf, ring->size, name, err);
	}
	close(fd);
	return rc;
}

int
np_ring_zero(struct np_ring *ring, size_t alignment, size_t offset, struct np_err *err)
{
	size_t align = alignment > 0 ? alignment : 1, bytes = ring->size + align + offset;
	void *zeros = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (zeros == MAP_FAILED) {
		return np_fail(err, NP_ESYS, errno, "map %zu bytes of zeros", bytes);
	}
	/* A huge page of zeros, 2 MiB, is too large for a first-level cache. */
	(void)madvise(zeros, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < ring->width; i++) {
		free(ring->slots[i].memory);
		ring->slots[i].memory = NULL;
		ring->slots[i].buf = aligned(zeros, align, offset);
	}
	ring->zeros = zeros;
	ring->mapped = bytes;
	return NP_OK;
}

void
np_ring_free(struct np_ring *ring)
{
	for (size_t i = 0; i < ring->width; i++) {
		free(ring->slots[i].memory);
	}
	free(ring->slots);
	if (ring->zeros != NULL) {
		munmap(ring->zeros, ring->mapped);
	}
	memset(ring, 0, sizeof(*ring));
}
