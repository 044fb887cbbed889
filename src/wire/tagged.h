/*
 * Messages of ours: a type (no code of netperf's), the length of the fields, and fields of a tag, a
 * length and that many bytes, padded to 4. Unknown tags are skipped, so later versions may add
 * some. A table of fields describes each message and its largest length to the functions here.
 */
#ifndef NP_WIRE_TAGGED_H
#define NP_WIRE_TAGGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/msg.h"

struct np_wire;

/* The offset of the fields, after the type and the length. */
enum { NP_TAGGED_AT = NP_HEAD_SIZE };

/* Does a message with this first word belong to us, not to netperf? */
static inline bool
np_is_ours(uint32_t type)
{
	return type >> 4 == NP_PLAN >> 4;
}

enum np_tag_kind {
	NP_TAG_U32,
	NP_TAG_I32,
	NP_TAG_I64,
	NP_TAG_F64,
	NP_TAG_TEXT,  /* an array of characters */
	NP_TAG_BYTES, /* struct { uint32_t count; uint8_t at[]; } */
	NP_TAG_LIST   /* struct { uint32_t count; uint32_t at[]; } */
};

/* One field: the struct's member that holds it, and its valid values. */
struct np_tag_row {
	uint32_t tag;
	enum np_tag_kind kind;
	const char *name;
	size_t at;           /* the member's offset in the struct */
	uint32_t room;       /* size of a text with its NUL; most bytes or words of a list */
	int64_t least, most; /* bounds of a number */
	int64_t absent;      /* a number with this value is not sent; one not sent gets it */
};

/* One message. */
struct np_tagged {
	const char *name; /* for errors: "PLAN" */
	uint32_t type;
	size_t size; /* bytes of its struct */
	size_t most; /* bytes of all its fields at their longest */
	const struct np_tag_row *row;
	size_t rows;
};

/* Make every field absent: numbers get the value their row names, texts and lists are empty. */
void np_tagged_init(const struct np_tagged *t, void *m);

/* Write a message without its absent fields. Returns its size, up to NP_TAGGED_AT + t->most. */
size_t np_tagged_put(const struct np_tagged *t, const void *m, uint8_t *message);

/* Write the fields alone, without a head. Returns their size, up to t->most. */
size_t np_tagged_put_fields(const struct np_tagged *t, const void *m, uint8_t *fields);

/* Write the head of a message with that many bytes of fields. */
void np_tagged_head(uint8_t message[NP_TAGGED_AT], uint32_t type, size_t length);

/*
 * Read a whole message (length: in its head). NP_EPEER, EINVAL and the field's name: a number out
 * of bounds, a text or list too long, a field cut off. Texts end with NUL, but may hold any bytes.
 */
int np_tagged_get(const struct np_tagged *t, const uint8_t *message, void *m, struct np_err *err);

/* Read `size` bytes of fields without a head. Fails as np_tagged_get() does. */
int np_tagged_get_fields(const struct np_tagged *t, const uint8_t *fields, size_t size, void *m,
			 struct np_err *err);

/* The row with this tag, or NULL. */
const struct np_tag_row *np_tagged_row(const struct np_tagged *t, uint32_t tag);

/* --- field by field, for messages without a table -------------------------------------------- */

/* The length of a field with its padding. */
size_t np_tag_padded(size_t length);

/* Write the tag and the length that precede a field's bytes. */
void np_tag_put(struct np_wire *w, uint32_t tag, size_t length);

/* Write, or read past, the padding after a field's bytes. */
void np_tag_pad(struct np_wire *w, size_t length);

/* Read the next field's tag (0: no more) and length; what: the message. NP_EPEER: it is cut off. */
int
np_tag_next(struct np_wire *w, const char *what, uint32_t *tag, size_t *length, struct np_err *err);

#endif
