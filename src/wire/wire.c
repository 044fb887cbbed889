#include "wire/wire.h"

#include <arpa/inet.h>
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

/* Keep the first misfit, with the field that begins at an offset. */
static void
note_misfit(struct np_wire *w, const char *field, size_t at, bool no_end)
{
	if (w->misfit == NULL) {
		w->misfit = field;
		w->misfit_at = at;
		w->no_end = no_end;
	}
}

/* Is there room for a field of n bytes? If not, that is a misfit. */
static bool
has_room(struct np_wire *w, const char *field, size_t n)
{
	if (n <= np_wire_left(w)) {
		return true;
	}
	note_misfit(w, field, w->at, false);
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

/* Reverse the bytes of each word, between this machine's order and the wire's. */
static void
swap_words(char *text, size_t size)
{
	uint32_t word;

	for (size_t i = 0; i + sizeof(word) <= size; i += sizeof(word)) {
		memcpy(&word, text + i, sizeof(word));
		word = htonl(word);
		memcpy(text + i, &word, sizeof(word));
	}
}

/* Pass the bytes, then cut the text where they went to if it has no NUL, and clear what follows. */
static void
pass_text(struct np_wire *w, const char *field, char *text, size_t size, bool in_words)
{
	size_t at = w->at, len;

	np_wire_bytes(w, field, (uint8_t *)text, size);
	if (size == 0 || w->at - at != size) { /* there was no room */
		return;
	}
	if (!reading(w)) {
		text = (char *)(w->out + at);
	} else if (in_words) {
		swap_words(text, size);
	}
	len = strnlen(text, size);
	if (len == size) {
		note_misfit(w, field, at, true);
		len = size - 1;
	}
	memset(text + len, 0, size - len);
	if (!reading(w) && in_words) {
		swap_words(text, size);
	}
}

void
np_wire_text(struct np_wire *w, const char *field, char *text, size_t size)
{
	pass_text(w, field, text, size, false);
}

void
np_wire_text4(struct np_wire *w, const char *field, char *text, size_t size)
{
	pass_text(w, field, text, size, true);
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
	if (w->misfit == NULL) {
		return NP_OK;
	}
	return np_fail(err, NP_EPEER, 0,
		       w->no_end ? "%s a message of %zu bytes: %s at byte %zu has no end"
				 : "%s a message of %zu bytes: no room for %s at byte %zu",
		       reading(w) ? "reading" : "writing", w->size, w->misfit, w->misfit_at);
}
