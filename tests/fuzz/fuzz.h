/*
 * What the fuzz targets share. A target is a file fuzz_NAME.c with LLVMFuzzerTestOneInput(): built
 * with libFuzzer (scripts/fuzz), or with replay.c, which runs it over files (make check).
 */
#ifndef NP_TESTS_FUZZ_H
#define NP_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns 0. A finding is what ends the process: must(), a sanitizer, a time or memory limit. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Called once before the first input, where a target has it. Returns 0. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

/* An assertion that no -DNDEBUG takes out. */
#define must(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* Copy what fits, and zeros for the rest. Returns the bytes of data taken. */
static inline size_t
fuzz_fill(void *out, size_t room, const uint8_t *data, size_t size)
{
	size_t n = size < room ? size : room;

	memset(out, 0, room);
	if (n > 0) {
		memcpy(out, data, n);
	}
	return n;
}

/* What is left of an input that is read piece by piece. */
struct fuzz_input {
	const uint8_t *at;
	size_t left;
};

/* The next bytes, `most` of them at most, as by fuzz_fill(). */
static inline size_t
fuzz_take(struct fuzz_input *in, void *out, size_t room, size_t most)
{
	size_t n = fuzz_fill(out, room, in->at, most < in->left ? most : in->left);

	in->at += n;
	in->left -= n;
	return n;
}

static inline uint8_t
fuzz_byte(struct fuzz_input *in)
{
	uint8_t b;

	fuzz_take(in, &b, 1, 1);
	return b;
}

#endif
