/*
 * A cursor over the bytes of a message that either reads or writes, so that one layout function
 * serves both directions and they can't disagree. Words are big endian on the wire whatever this
 * machine is; nothing is cast onto the buffer and no pointer into it is handed out.
 *
 * The first misfit sticks and np_wire_check() reports it, so a layout need not test each field.
 * From a field that finds no room on, a reader gives zeros and empty texts and a writer writes
 * nothing. A text without an end is a misfit too, but leaves the position known: reading goes on.
 */
#ifndef NP_WIRE_WIRE_H
#define NP_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum np_misfit {
	NP_FITS = 0,
	NP_NO_ROOM, /* the message ends before the field does */
	NP_NO_END   /* a text without its NUL */
};

enum { NP_TEXT4_MAX = 64 };

struct np_wire {
	const uint8_t *in; /* NULL when writing */
	uint8_t *out;      /* NULL when reading */
	size_t size, at;
	enum np_misfit misfit;
	const char *misfit_field;
	size_t misfit_at;
};

/* Stand at the first byte of a buffer, to read it or to write it. */
void np_wire_read_from(struct np_wire *w, const uint8_t *buf, size_t size);
void np_wire_write_to(struct np_wire *w, uint8_t *buf, size_t size);

/*
 * Fields, each at the position the one before it ended. Reading fills *v; writing takes *v and
 * never stores to it, so that a message may be const.
 */
void np_wire_u32(struct np_wire *w, const char *field, uint32_t *v);
void np_wire_i32(struct np_wire *w, const char *field, int32_t *v);
void np_wire_f32(struct np_wire *w, const char *field, float *v);
void np_wire_f64(struct np_wire *w, const char *field, double *v);

/* A 64-bit count in two words, the upper half first. */
void np_wire_u64_hilo(struct np_wire *w, const char *field, uint64_t *v);

/*
 * Text in a field of `size` bytes, its NUL and padding included; text has as many. A text that is
 * not ended is cut to size - 1 characters, in either direction; what follows a read text's NUL is
 * cleared.
 */
void np_wire_text(struct np_wire *w, const char *field, char *text, size_t size);

/*
 * A text of `size` bytes, a multiple of 4 up to NP_TEXT4_MAX, that travels as words (netperf's UNIX
 * domain tests): it stands in groups of 4 bytes turned round wherever the sender is little endian.
 * What is true of np_wire_text() is true here; two machines of different byte order can't use it.
 */
void np_wire_text4(struct np_wire *w, const char *field, char *text, size_t size);

/* n bytes as they are. Zeros are read where there is no room. */
void np_wire_bytes(struct np_wire *w, const char *field, uint8_t *bytes, size_t n);

/* Pass over n bytes: zeros when writing. */
void np_wire_skip(struct np_wire *w, size_t n);

/* Bytes from the position to the end of the buffer. */
size_t np_wire_left(const struct np_wire *w);

/* NP_OK, or NP_EPEER with the first misfit's field and position. */
int np_wire_check(const struct np_wire *w, struct np_err *err);

#endif
