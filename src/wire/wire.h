/*
 * A cursor that reads or writes a message, so that one layout function serves both. Words are big
 * endian; nothing is cast onto the buffer, no pointer into it is handed out. np_wire_check()
 * reports the first misfit, so a layout tests none. After a field without room reading gives zeros
 * and empty texts, writing does nothing; after a text without an end reading goes on.
 */
#ifndef NP_WIRE_WIRE_H
#define NP_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct np_wire {
	const uint8_t *in;  /* NULL when writing */
	uint8_t *out;       /* NULL when reading */
	size_t size, at;    /* bytes; the offset of the next field */
	const char *misfit; /* the first field that did not fit; NULL: all did */
	size_t misfit_at;   /* its offset */
	bool no_end;        /* it is a text without a NUL; else the message ends before it does */
};

/* Begin to read, or to write, at the first byte of a buffer. */
void np_wire_read_from(struct np_wire *w, const uint8_t *buf, size_t size);
void np_wire_write_to(struct np_wire *w, uint8_t *buf, size_t size);

/* The next field. Reading fills *v; writing never stores to it, so a message may be const. */
void np_wire_u32(struct np_wire *w, const char *field, uint32_t *v);
void np_wire_i32(struct np_wire *w, const char *field, int32_t *v);
void np_wire_f32(struct np_wire *w, const char *field, float *v);
void np_wire_f64(struct np_wire *w, const char *field, double *v);

/* A 64-bit count in two words, the upper half first. */
void np_wire_u64_hilo(struct np_wire *w, const char *field, uint64_t *v);

/* A text in an array of `size` bytes: cut to size - 1 if it lacks a NUL, and cleared after it. */
void np_wire_text(struct np_wire *w, const char *field, char *text, size_t size);

/*
 * Like np_wire_text(), for a text that netperf sends as words in its UNIX domain tests: a little
 * endian sender reverses each group of 4 bytes. `size` is a multiple of 4. Two machines of
 * different byte order can't use it.
 */
void np_wire_text4(struct np_wire *w, const char *field, char *text, size_t size);

/* n bytes unchanged. Reads zeros if there is no room. */
void np_wire_bytes(struct np_wire *w, const char *field, uint8_t *bytes, size_t n);

/* Read past n bytes, or write n zeros. */
void np_wire_skip(struct np_wire *w, size_t n);

/* Bytes from the position to the end of the buffer. */
size_t np_wire_left(const struct np_wire *w);

/* NP_OK, or NP_EPEER with the first misfit's field and position. */
int np_wire_check(const struct np_wire *w, struct np_err *err);

#endif
