/*
 * Messages of ours: a type, the length of the fields behind it, and these. Each field has a tag, a
 * length and that many bytes, padded to 4. Unknown tags are skipped, so that later versions may
 * have more of them. Such a message is described by a table of its fields, from which its largest
 * length follows; what is true of one is true of all. The first word tells it from netperf's
 * messages.
 */
#ifndef NP_WIRE_TAGGED_H
#define NP_WIRE_TAGGED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "wire/msg.h"

struct np_wire;

/* Where the fields begin: behind the type and the length. */
enum { NP_TAGGED_AT = NP_HEAD_SIZE };

/* Is it the type of a message of ours? */
static inline bool
np_is_ours(uint32_t type)
{
	return type >> 4 == NP_PLAN >> 4;
}

enum np_tag_kind {
	NP_TAG_U32,
	NP_TAG_I32,
	NP_TAG_I64,
	NP_TAG_U64, /* without bounds */
	NP_TAG_F64,
	NP_TAG_TEXT,  /* an array of characters */
	NP_TAG_BYTES, /* struct { uint32_t count; uint8_t at[]; } */
	NP_TAG_LIST   /* struct { uint32_t count; uint32_t at[]; } */
};

/* One field: its member in the struct of the message, and what may stand in it. */
struct np_tag_row {
	uint32_t tag;
	enum np_tag_kind kind;
	const char *name;
	size_t at;           /* of the member, in bytes */
	uint32_t room;       /* bytes of a text with its NUL, bytes or words of a list; else 0 */
	int64_t least, most; /* of numbers */
	int64_t absent; /* a number that is absent has this value, and this value is not sent */
};

/* One message. */
struct np_tagged {
	const char *name; /* for errors: "PLAN" */
	uint32_t type;
	size_t size; /* bytes of its struct */
	size_t most; /* bytes that all of its fields can have */
	const struct np_tag_row *row;
	size_t rows;
	/* Read more than it should be: a number of another length is skipped, a text that is too
	 * long is cut. Else they are refused. */
	bool lenient;
};

/* Every field absent: numbers as their rows say, no text, empty lists. */
void np_tagged_init(const struct np_tagged *t, void *m);

/*
 * Write a whole message, for which there are NP_TAGGED_AT and t->most bytes. Fields that are absent
 * are left out. Returns how many bytes it has.
 */
size_t np_tagged_put(const struct np_tagged *t, const void *m, uint8_t *message);

/* The same of the fields alone. */
size_t np_tagged_put_fields(const struct np_tagged *t, const void *m, uint8_t *fields);

/* Write the head of a message with that many bytes of fields. */
void np_tagged_head(uint8_t message[NP_TAGGED_AT], uint32_t type, size_t length);

/*
 * Read a whole message, of as many bytes as its head says. NP_EPEER with EINVAL, and the field's
 * name, for a number outside its bounds, a text or a list that is too long, and a field that is cut
 * off. Texts come as they are, but ended.
 */
int np_tagged_get(const struct np_tagged *t, const uint8_t *message, void *m, struct np_err *err);

/* The same of `size` bytes of fields. */
int np_tagged_get_fields(const struct np_tagged *t, const uint8_t *fields, size_t size, void *m,
			 struct np_err *err);

/* The row of that tag, or NULL. */
const struct np_tag_row *np_tagged_row(const struct np_tagged *t, uint32_t tag);

/* --- field by field, for messages without a table -------------------------------------------- */

/* A field's length with its padding. */
size_t np_tag_padded(size_t length);

/* Write what precedes a field's bytes. */
void np_tag_put(struct np_wire *w, uint32_t tag, size_t length);

/* Write, or read past, the padding behind them. */
void np_tag_pad(struct np_wire *w, size_t length);

/* The next field; tag 0: there is none. NP_EPEER for one with more bytes than are left. */
int
np_tag_next(struct np_wire *w, const char *what, uint32_t *tag, size_t *length, struct np_err *err);

#endif
