#include "base/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void
fill_pattern(char *buf, size_t size)
{
	static const char text[8] = "netperf";

	for (size_t i = 0; i < size; i++) {
		buf[i] = text[i % sizeof(text)];
	}
}

static int
check_geometry(size_t width, size_t size, size_t alignment, size_t offset, struct np_err *err)
{
	if ((alignment & (alignment - 1)) != 0) {
		return np_fail(err, NP_EUSAGE, 0, "alignment %zu is not a power of two", alignment);
	}
	if (width == 0 || size == 0 || alignment > NP_RING_MAX || offset > NP_RING_MAX ||
	    size > NP_RING_MAX ||
	    width > NP_RING_MAX / (size + alignment + offset + sizeof(struct np_slot))) {
		return np_fail(err, NP_EUSAGE, 0, "%zu buffers of %zu bytes take more than %d MiB",
			       width, size, NP_RING_MAX >> 20);
	}
	return NP_OK;
}

uint64_t
np_ring_bytes(uint64_t width, uint64_t size, uint64_t alignment, uint64_t offset)
{
	uint64_t step, all;

	if (__builtin_add_overflow(size, alignment, &step) ||
	    __builtin_add_overflow(step, offset, &step) ||
	    __builtin_add_overflow(step, sizeof(struct np_slot), &step) ||
	    __builtin_mul_overflow(step, width, &all) ||
	    __builtin_add_overflow(all, alignment, &all)) {
		return UINT64_MAX;
	}
	return all;
}

int
np_ring_make(struct np_ring *ring, size_t width, size_t size, size_t alignment, size_t offset,
	     struct np_err *err)
{
	size_t align = alignment > 0 ? alignment : 1;
	size_t step = (size + offset + align - 1) / align * align;
	uintptr_t base;

	memset(ring, 0, sizeof(*ring));
	if (check_geometry(width, size, align, offset, err) != NP_OK) {
		return err->code;
	}
	ring->slots = calloc(width, sizeof(*ring->slots));
	ring->memory = malloc(width * step + align);
	if (ring->slots == NULL || ring->memory == NULL) {
		np_ring_free(ring);
		return np_fail(err, NP_ESYS, ENOMEM, "%zu buffers of %zu bytes", width, size);
	}
	base = ((uintptr_t)ring->memory + align - 1) / align * align;
	for (size_t i = 0; i < width; i++) {
		ring->slots[i].buf =
		    (char *)ring->memory + (base - (uintptr_t)ring->memory + i * step + offset);
		ring->slots[i].next = &ring->slots[(i + 1) % width];
		fill_pattern(ring->slots[i].buf, size);
	}
	ring->width = width;
	ring->size = size;
	return NP_OK;
}

/* Fill one buffer; at the end of the file start over. An empty file is an error. */
static int
fill_buffer(int fd, char *buf, size_t size, const char *path, struct np_err *err)
{
	size_t have = 0;
	bool rewound = false;

	while (have < size) {
		ssize_t n = read(fd, buf + have, size - have);

		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return np_fail(err, NP_ESYS, errno, "read fill file %s", path);
		}
		if (n == 0 && (rewound || lseek(fd, 0, SEEK_SET) != 0)) {
			return np_fail(err, NP_ESYS, 0, "fill file %s is empty", path);
		}
		rewound = n == 0;
		have += (size_t)n;
	}
	return NP_OK;
}

static int
fill_all(struct np_ring *ring, int fd, const char *path, struct np_err *err)
{
	int rc = NP_OK;

	for (size_t i = 0; i < ring->width && rc == NP_OK; i++) {
		rc = fill_buffer(fd, ring->slots[i].buf, ring->size, path, err);
	}
	close(fd);
	return rc;
}

int
np_ring_fill(struct np_ring *ring, const char *path, struct np_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		return np_fail(err, NP_ESYS, errno, "open fill file %s", path);
	}
	return fill_all(ring, fd, path, err);
}

int
np_ring_fill_at(struct np_ring *ring, int dir_fd, const char *name, struct np_err *err)
{
	struct stat st;
	int fd;

	if (strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
		return np_fail(err, NP_EUNSUP, EACCES, "fill file %s is not a plain name", name);
	}
	/* Opening a FIFO must not wait for its other end. */
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno != ELOOP) {
		return np_fail(err, NP_ESYS, errno, "open fill file %s", name);
	}
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return np_fail(err, NP_EUNSUP, EACCES, "fill file %s is not a regular file", name);
	}
	return fill_all(ring, fd, name, err);
}

void
np_ring_free(struct np_ring *ring)
{
	free(ring->slots);
	free(ring->memory);
	memset(ring, 0, sizeof(*ring));
}
