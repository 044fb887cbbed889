#include "wire/wire.h"

#include <string.h>

void
np_wire_read_from(struct np_wire *w, const uint8_t *buf, size_t size)
{
	*w = (struct np_wire){ .in = buf, .size = size };
}

void
np_wire_write_to(struct np_wire *w, uint8_t *buf, size_t size)
{
	*w = (struct np_wire){ .out = buf, .size = size };
}

size_t
np_wire_left(const struct np_wire *w)
{
	return w->size - w->at;
}

static bool
reading(const struct np_wire *w)
{
	return w->in != NULL;
}

/* Keep the first misfit, with the field at the cursor. */
static void
note_misfit(struct np_wire *w, enum np_misfit misfit, const char *field)
{
	if (w->misfit == NP_FITS) {
		w->misfit = misfit;
		w->misfit_field = field;
		w->misfit_at = w->at;
	}
}

/* Is there room for a field of n bytes? If not, that is a misfit. */
static bool
has_room(struct np_wire *w, const char *field, size_t n)
{
	if (n <= np_wire_left(w)) {
		return true;
	}
	note_misfit(w, NP_NO_ROOM, field);
	/* A later, smaller field must not land where this one belongs. */
	w->at = w->size;
	return false;
}

/* Read a big-endian word, for which there is room. */
static uint32_t
get_word(struct np_wire *w)
{
	const uint8_t *p = w->in + w->at;

	w->at += 4;
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Write a big-endian word, for which there is room. */
static void
put_word(struct np_wire *w, uint32_t v)
{
	uint8_t *p = w->out + w->at;

	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
	w->at += 4;
}

void
np_wire_u32(struct np_wire *w, const char *field, uint32_t *v)
{
	bool fits = has_room(w, field, 4);

	if (reading(w)) {
		*v = fits ? get_word(w) : 0;
	} else if (fits) {
		put_word(w, *v);
	}
}

void
np_wire_u64_hilo(struct np_wire *w, const char *field, uint64_t *v)
{
	bool fits = has_room(w, field, 8);

	if (reading(w)) {
		uint64_t high = fits ? get_word(w) : 0;

		*v = high << 32 | (fits ? get_word(w) : 0);
	} else if (fits) {
		put_word(w, (uint32_t)(*v >> 32));
		put_word(w, (uint32_t)*v);
	}
}

/* Other types go as words: memcpy() keeps every bit, even of a signalling NaN. */
void
np_wire_i32(struct np_wire *w, const char *field, int32_t *v)
{
	uint32_t bits = (uint32_t)*v;

	np_wire_u32(w, field, &bits);
	if (reading(w)) {
		memcpy(v, &bits, sizeof(*v));
	}
}

void
np_wire_f32(struct np_wire *w, const char *field, float *v)
{
	uint32_t bits;

	_Static_assert(sizeof(*v) == sizeof(bits), "float is not an IEEE single");
	memcpy(&bits, v, sizeof(bits));
	np_wire_u32(w, field, &bits);
	if (reading(w)) {
		memcpy(v, &bits, sizeof(*v));
	}
}

void
np_wire_f64(struct np_wire *w, const char *field, double *v)
{
	uint64_t bits;

	_Static_assert(sizeof(*v) == sizeof(bits), "double is not an IEEE double");
	memcpy(&bits, v, sizeof(bits));
	np_wire_u64_hilo(w, field, &bits);
	if (reading(w)) {
		memcpy(v, &bits, sizeof(*v));
	}
}

/* Copy a text of a field of `size` bytes: cut if it has no NUL, with zeros after it. */
static void
copy_text(struct np_wire *w, const char *field, char *to, const char *from, size_t size)
{
	size_t len = strnlen(from, size);

	if (len == size) {
		note_misfit(w, NP_NO_END, field);
		len = size - 1;
	}
	memcpy(to, from, len);
	memset(to + len, 0, size - len);
}

void
np_wire_text(struct np_wire *w, const char *field, char *text, size_t size)
{
	if (!has_room(w, field, size) || size == 0) {
		if (reading(w)) {
			memset(text, 0, size);
		}
		return;
	}
	if (reading(w)) {
		copy_text(w, field, text, (const char *)(w->in + w->at), size);
	} else {
		copy_text(w, field, (char *)(w->out + w->at), text, size);
	}
	w->at += size;
}

void
np_wire_text4(struct np_wire *w, const char *field, char *text, size_t size)
{
	size_t groups = size / 4, at = w->at;
	uint8_t native[NP_TEXT4_MAX] = { 0 };
	struct np_wire plain;

	if (!has_room(w, field, size) || size > sizeof(native)) {
		if (reading(w)) {
			memset(text, 0, size);
		}
		return;
	}
	/* `native` holds the text, `plain` is a cursor over it, and w has its words. */
	if (reading(w)) {
		for (size_t i = 0; i < groups; i++) {
			uint32_t word = get_word(w);

			memcpy(native + 4 * i, &word, sizeof(word));
		}
		np_wire_read_from(&plain, native, size);
	} else {
		np_wire_write_to(&plain, native, size);
	}
	np_wire_text(&plain, field, text, size);
	for (size_t i = 0; !reading(w) && i < groups; i++) {
		uint32_t word;

		memcpy(&word, native + 4 * i, sizeof(word));
		put_word(w, word);
	}
	if (plain.misfit != NP_FITS && w->misfit == NP_FITS) {
		w->misfit = plain.misfit;
		w->misfit_field = field;
		w->misfit_at = at;
	}
}

void
np_wire_bytes(struct np_wire *w, const char *field, uint8_t *bytes, size_t n)
{
	bool fits = has_room(w, field, n);

	if (reading(w) && !fits) {
		memset(bytes, 0, n);
	} else if (reading(w)) {
		memcpy(bytes, w->in + w->at, n);
	} else if (fits) {
		memcpy(w->out + w->at, bytes, n);
	}
	w->at += fits ? n : 0;
}

void
np_wire_skip(struct np_wire *w, size_t n)
{
	if (!has_room(w, "filler", n)) {
		return;
	}
	if (!reading(w)) {
		memset(w->out + w->at, 0, n);
	}
	w->at += n;
}

int
np_wire_check(const struct np_wire *w, struct np_err *err)
{
	const char *doing = reading(w) ? "reading" : "writing";

	switch (w->misfit) {
	case NP_FITS:
		return NP_OK;
	case NP_NO_ROOM:
		return np_fail(err, NP_EPEER, 0,
			       "%s a message of %zu bytes: no room for %s at byte %zu", doing,
			       w->size, w->misfit_field, w->misfit_at);
	case NP_NO_END:
		break;
	}
	return np_fail(err, NP_EPEER, 0, "%s a message of %zu bytes: %s at byte %zu has no end",
		       doing, w->size, w->misfit_field, w->misfit_at);
}
