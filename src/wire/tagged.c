#include "wire/tagged.h"

#include <errno.h>
#include <string.h>

#include "base/units.h"
#include "wire/wire.h"

size_t
np_tag_padded(size_t length)
{
	return (length + 3) & ~(size_t)3;
}

static size_t
padding(size_t n)
{
	return np_tag_padded(n) - n;
}

void
np_tag_put(struct np_wire *w, uint32_t tag, size_t length)
{
	uint32_t bytes = (uint32_t)length;

	np_wire_u32(w, "tag", &tag);
	np_wire_u32(w, "length", &bytes);
}

void
np_tag_pad(struct np_wire *w, size_t length)
{
	/* The last field of a message may have no padding. */
	if (padding(length) <= np_wire_left(w)) {
		np_wire_skip(w, padding(length));
	}
}

int
np_tag_next(struct np_wire *w, const char *what, uint32_t *tag, size_t *length, struct np_err *err)
{
	uint32_t bytes = 0;

	*tag = 0;
	*length = 0;
	if (np_wire_left(w) < 8) { /* not even a tag and a length */
		return NP_OK;
	}
	np_wire_u32(w, "tag", tag);
	np_wire_u32(w, "length", &bytes);
	if (*tag != 0 && bytes > np_wire_left(w)) { /* tag 0: zeros at the end of a frame */
		return np_fail(err, NP_EPEER, EINVAL,
			       "field %u of a %s has a wrong length of %u bytes", *tag, what,
			       bytes);
	}
	*length = bytes;
	return NP_OK;
}

const struct np_tag_row *
np_tagged_row(const struct np_tagged *t, uint32_t tag)
{
	for (size_t i = 0; i < t->rows; i++) {
		if (t->row[i].tag == tag) {
			return &t->row[i];
		}
	}
	return NULL;
}

/* The value of a number, except of kind F64. */
static int64_t
integer_of(const struct np_tag_row *r, const void *member)
{
	switch (r->kind) {
	case NP_TAG_U32:
		return *(const uint32_t *)member;
	case NP_TAG_I32:
		return *(const int32_t *)member;
	default:
		return *(const int64_t *)member;
	}
}

/* Bytes of a number; 0 for a text or a list. */
static size_t
number_width(const struct np_tag_row *r)
{
	static const size_t widths[] = {
		[NP_TAG_U32] = 4, [NP_TAG_I32] = 4,  [NP_TAG_I64] = 8,
		[NP_TAG_F64] = 8, [NP_TAG_LIST] = 0,
	};

	return widths[r->kind];
}

/* Bytes of a field in a message; 0: it is absent. A count beyond a list's room is not believed. */
static size_t
length_of(const struct np_tag_row *r, const void *member)
{
	double real;

	switch (r->kind) {
	case NP_TAG_F64:
		/* This form is false for NaN, which is not sent either. */
		real = *(const double *)member;
		return real < (double)r->absent || real > (double)r->absent ? number_width(r) : 0;
	case NP_TAG_TEXT:
		return strnlen(member, r->room - 1);
	case NP_TAG_BYTES:
		return np_min(*(const uint32_t *)member, r->room);
	case NP_TAG_LIST:
		return sizeof(uint32_t) * np_min(*(const uint32_t *)member, r->room);
	default:
		return integer_of(r, member) != r->absent ? number_width(r) : 0;
	}
}

void
np_tagged_init(const struct np_tagged *t, void *m)
{
	memset(m, 0, t->size);
	for (size_t i = 0; i < t->rows; i++) {
		const struct np_tag_row *r = &t->row[i];
		void *member = (uint8_t *)m + r->at;

		if (r->kind == NP_TAG_F64) {
			*(double *)member = (double)r->absent;
		} else if (r->kind == NP_TAG_I64) {
			*(int64_t *)member = r->absent;
		} else if (number_width(r) == sizeof(uint32_t)) {
			*(uint32_t *)member = (uint32_t)r->absent;
		}
	}
}

/* Read a field of `length` bytes into its member, or write it from there, as w reads or writes. */
static void
transfer(struct np_wire *w, const struct np_tag_row *r, void *member, size_t length)
{
	uint32_t *count = member;

	switch (r->kind) {
	case NP_TAG_U32:
	case NP_TAG_I32:
		np_wire_u32(w, r->name, member);
		break;
	case NP_TAG_I64:
		np_wire_u64_hilo(w, r->name, member);
		break;
	case NP_TAG_F64:
		np_wire_f64(w, r->name, member);
		break;
	case NP_TAG_TEXT:
		np_wire_bytes(w, r->name, member, length);
		break;
	case NP_TAG_BYTES:
		np_wire_bytes(w, r->name, (uint8_t *)&count[1], length);
		break;
	case NP_TAG_LIST:
		for (size_t i = 0; i < length / sizeof(*count); i++) {
			np_wire_u32(w, r->name, &count[1 + i]);
		}
		break;
	}
}

void
np_tagged_head(uint8_t message[NP_TAGGED_AT], uint32_t type, size_t length)
{
	uint32_t bytes = (uint32_t)length;
	struct np_wire w;

	np_wire_write_to(&w, message, NP_TAGGED_AT);
	np_wire_u32(&w, "type", &type);
	np_wire_u32(&w, "length", &bytes);
}

size_t
np_tagged_put_fields(const struct np_tagged *t, const void *m, uint8_t *fields)
{
	struct np_wire w;

	np_wire_write_to(&w, fields, t->most);
	for (size_t i = 0; i < t->rows; i++) {
		const struct np_tag_row *r = &t->row[i];
		void *member = (uint8_t *)m + r->at; /* not stored to by a write */
		size_t length = length_of(r, member);

		if (length > 0) {
			np_tag_put(&w, r->tag, length);
			transfer(&w, r, member, length);
			np_tag_pad(&w, length);
		}
	}
	return w.at;
}

size_t
np_tagged_put(const struct np_tagged *t, const void *m, uint8_t *message)
{
	size_t length = np_tagged_put_fields(t, m, message + NP_TAGGED_AT);

	np_tagged_head(message, t->type, length);
	return NP_TAGGED_AT + length;
}

/* May a field of this row have `length` bytes in a message? */
static bool
fits(const struct np_tag_row *r, size_t length)
{
	size_t unit = r->kind == NP_TAG_LIST ? sizeof(uint32_t) : 1;

	if (number_width(r) > 0) {
		return length == number_width(r);
	}
	return length % unit == 0 && length / unit + (r->kind == NP_TAG_TEXT) <= r->room;
}

/* Read a field, which has to fit its row. */
static int
get_field(struct np_wire *w, const struct np_tagged *t, const struct np_tag_row *r, void *member,
	  size_t length, struct np_err *err)
{
	if (!fits(r, length)) {
		return np_fail(err, NP_EPEER, EINVAL, "%s: %s has %zu bytes", t->name, r->name,
			       length);
	}
	if (r->kind == NP_TAG_TEXT) {
		memset(member, 0, r->room); /* an earlier field may have filled it */
	} else if (r->kind == NP_TAG_BYTES) {
		*(uint32_t *)member = (uint32_t)length;
	} else if (r->kind == NP_TAG_LIST) {
		*(uint32_t *)member = (uint32_t)(length / sizeof(uint32_t));
	}
	transfer(w, r, member, length);
	if (r->kind == NP_TAG_F64) {
		double v = *(const double *)member;

		/* This form catches NaN, too. */
		if (!(v >= (double)r->least && v <= (double)r->most)) {
			return np_fail(err, NP_EPEER, EINVAL, "%s: %s of %g (%lld to %lld)",
				       t->name, r->name, v, (long long)r->least,
				       (long long)r->most);
		}
	} else if (number_width(r) > 0) {
		int64_t v = integer_of(r, member);

		if (v < r->least || v > r->most) {
			return np_fail(err, NP_EPEER, EINVAL, "%s: %s of %lld (%lld to %lld)",
				       t->name, r->name, (long long)v, (long long)r->least,
				       (long long)r->most);
		}
	}
	return NP_OK;
}

int
np_tagged_get(const struct np_tagged *t, const uint8_t *message, void *m, struct np_err *err)
{
	return np_tagged_get_fields(t, message + NP_TAGGED_AT,
				    (uint32_t)np_frame_head(message).word, m, err);
}

int
np_tagged_get_fields(const struct np_tagged *t, const uint8_t *fields, size_t size, void *m,
		     struct np_err *err)
{
	struct np_wire w;

	np_tagged_init(t, m);
	np_wire_read_from(&w, fields, size);
	for (;;) {
		const struct np_tag_row *r;
		uint32_t tag;
		size_t length;

		if (np_tag_next(&w, t->name, &tag, &length, err) != NP_OK) {
			return err->code;
		}
		if (tag == 0) {
			return NP_OK;
		}
		r = np_tagged_row(t, tag);
		if (r == NULL) {
			np_wire_skip(&w, length);
		} else if (get_field(&w, t, r, (uint8_t *)m + r->at, length, err) != NP_OK) {
			return err->code;
		}
		np_tag_pad(&w, length);
	}
}
