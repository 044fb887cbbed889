#include "wire/ext.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "wire/tagged.h"
#include "wire/wire.h"

/* --- HELLO and WELCOME -------------------------------------------------------------------------
 */

enum tag { TAG_VERSION = 1, TAG_CAPS = 2, TAG_EVERY = 3, TAG_IDENTITY = 4, TAG_DEVICE = 5 };

enum { HEAD = NP_TAGGED_AT };

static size_t
padded(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static void
put_number(struct np_wire *w, enum tag tag, uint32_t v)
{
	np_tag_put(w, tag, sizeof(v));
	np_wire_u32(w, "number", &v);
}

static void
put_string(struct np_wire *w, enum tag tag, const char *text, size_t size)
{
	size_t length = strnlen(text, size - 1);

	if (length > 0) {
		np_tag_put(w, tag, length);
		np_wire_bytes(w, "text", (uint8_t *)text, length);
		np_tag_pad(w, length);
	}
}

void
np_hello_put(uint8_t frame[NP_FRAME_SIZE], uint32_t code, const struct np_hello *m)
{
	struct np_head head = { .code = code, .word = code == NP_EXT_HELLO ? -1 : 0 };
	struct np_wire w;

	np_frame_put(frame, &head, NULL, NULL);
	np_wire_write_to(&w, frame + HEAD, NP_FRAME_SIZE - HEAD);
	put_number(&w, TAG_VERSION, m->version);
	put_number(&w, TAG_CAPS, m->caps);
	put_number(&w, TAG_EVERY, m->every_ms);
	put_string(&w, TAG_IDENTITY, m->identity, sizeof(m->identity));
	put_string(&w, TAG_DEVICE, m->device, sizeof(m->device));
}

static void
get_string(struct np_wire *w, size_t length, char *text, size_t size)
{
	size_t taken = length < size ? length : size - 1;

	np_wire_bytes(w, "text", (uint8_t *)text, taken);
	np_wire_skip(w, length - taken);
	text[taken] = '\0';
}

static void
get_number(struct np_wire *w, size_t length, uint32_t *v)
{
	if (length == sizeof(*v)) {
		np_wire_u32(w, "number", v);
	} else {
		np_wire_skip(w, length);
	}
}

static void
get_field(struct np_wire *w, uint32_t tag, size_t length, struct np_hello *m)
{
	switch (tag) {
	case TAG_VERSION:
		get_number(w, length, &m->version);
		break;
	case TAG_CAPS:
		get_number(w, length, &m->caps);
		break;
	case TAG_EVERY:
		get_number(w, length, &m->every_ms);
		break;
	case TAG_IDENTITY:
		get_string(w, length, m->identity, sizeof(m->identity));
		np_text_clean(m->identity);
		break;
	case TAG_DEVICE:
		get_string(w, length, m->device, sizeof(m->device));
		np_text_clean(m->device);
		break;
	default:
		np_wire_skip(w, length);
		break;
	}
}

int
np_hello_get(const uint8_t frame[NP_FRAME_SIZE], struct np_hello *m, struct np_err *err)
{
	struct np_wire w;

	memset(m, 0, sizeof(*m));
	np_wire_read_from(&w, frame + HEAD, NP_FRAME_SIZE - HEAD);
	for (;;) {
		uint32_t tag;
		size_t length;

		if (np_tag_next(&w, "greeting", &tag, &length, err) != NP_OK) {
			return err->code;
		}
		if (tag == 0) {
			break;
		}
		get_field(&w, tag, length, m);
		np_tag_pad(&w, length);
	}
	if (m->version == 0) {
		return np_fail(err, NP_EPEER, EINVAL, "a greeting without a version");
	}
	return NP_OK;
}

/* --- a bag -------------------------------------------------------------------------------------
 */

static size_t
value_size(const struct np_bag_item *it)
{
	switch (it->kind) {
	case NP_BAG_INT:
	case NP_BAG_REAL:
		return 8;
	case NP_BAG_STRING:
	case NP_BAG_UNREAD:
		return strlen(it->text);
	case NP_BAG_REALS:
	case NP_BAG_INTS:
		return 8 * it->count;
	}
	return 0;
}

static void
put_i64(struct np_wire *w, int64_t v)
{
	uint64_t bits = (uint64_t)v;

	np_wire_u64_hilo(w, "integer", &bits);
}

static void
put_value(struct np_wire *w, const struct np_bag_item *it)
{
	double real = it->r;

	switch (it->kind) {
	case NP_BAG_INT:
		put_i64(w, it->i);
		break;
	case NP_BAG_REAL:
		np_wire_f64(w, "real", &real);
		break;
	case NP_BAG_STRING:
	case NP_BAG_UNREAD:
		np_wire_bytes(w, "text", (uint8_t *)it->text, strlen(it->text));
		break;
	case NP_BAG_REALS:
		for (size_t i = 0; i < it->count; i++) {
			real = it->reals[i];
			np_wire_f64(w, "reals", &real);
		}
		break;
	case NP_BAG_INTS:
		for (size_t i = 0; i < it->count; i++) {
			put_i64(w, it->ints[i]);
		}
		break;
	}
}

static void
put_item(struct np_wire *w, const struct np_bag_item *it)
{
	size_t name = strlen(it->name), value = value_size(it);
	uint32_t kind = it->kind, name_size = (uint32_t)name, size = (uint32_t)value;

	np_wire_u32(w, "kind", &kind);
	np_wire_u32(w, "name's length", &name_size);
	np_wire_u32(w, "length", &size);
	np_wire_bytes(w, "name", (uint8_t *)it->name, name);
	np_wire_skip(w, padded(name) - name);
	put_value(w, it);
	np_wire_skip(w, padded(value) - value);
}

static size_t
item_size(const struct np_bag_item *it)
{
	return 12 + padded(strlen(it->name)) + padded(value_size(it));
}

int
np_bag_encode(const struct np_bag *b, uint8_t **bytes, size_t *size, struct np_err *err)
{
	struct np_bag_item it;
	struct np_wire w;

	*size = 0;
	for (size_t i = 0; np_bag_at(b, i, &it); i++) {
		*size += item_size(&it);
	}
	*bytes = malloc(*size > 0 ? *size : 1);
	if (*bytes == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for the evidence of a test");
	}
	np_wire_write_to(&w, *bytes, *size);
	for (size_t i = 0; np_bag_at(b, i, &it); i++) {
		put_item(&w, &it);
	}
	return NP_OK;
}

/* The list of 8-byte values into memory that is aligned for them. */
static void
get_list(struct np_wire *w, uint32_t kind, size_t count, const char *name, struct np_bag *into)
{
	union {
		double r;
		int64_t i;
		uint64_t u;
	} *list = malloc((count > 0 ? count : 1) * sizeof(*list));

	_Static_assert(sizeof(*list) == 8, "values of lists have 8 bytes");
	if (list == NULL) {
		np_wire_skip(w, 8 * count);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		np_wire_u64_hilo(w, "list", &list[i].u);
	}
	if (kind == NP_BAG_REALS) {
		np_bag_reals(into, &list->r, count, "%s", name);
	} else {
		np_bag_ints(into, &list->i, count, "%s", name);
	}
	free(list);
}

static void
get_value(struct np_wire *w, uint32_t kind, size_t size, const char *name, struct np_bag *into)
{
	char text[NP_BAG_TEXT];
	uint64_t bits;
	double real;

	if (kind == NP_BAG_INT && size == 8) {
		np_wire_u64_hilo(w, "integer", &bits);
		np_bag_int(into, (int64_t)bits, "%s", name);
	} else if (kind == NP_BAG_REAL && size == 8) {
		np_wire_f64(w, "real", &real);
		np_bag_real(into, real, "%s", name);
	} else if (kind == NP_BAG_STRING || kind == NP_BAG_UNREAD) {
		get_string(w, size, text, sizeof(text));
		if (kind == NP_BAG_STRING) {
			np_bag_text(into, text, "%s", name);
		} else {
			np_bag_unread(into, text, "%s", name);
		}
	} else if ((kind == NP_BAG_REALS || kind == NP_BAG_INTS) && size % 8 == 0) {
		get_list(w, kind, size / 8, name, into);
	} else {
		np_wire_skip(w, size);
	}
}

static int
get_item(struct np_wire *w, struct np_bag *into, struct np_err *err)
{
	char name[NP_BAG_NAME];
	uint32_t kind, name_size, size;

	np_wire_u32(w, "kind", &kind);
	np_wire_u32(w, "name's length", &name_size);
	np_wire_u32(w, "length", &size);
	if (name_size > NP_EXT_BYTES || size > NP_EXT_BYTES ||
	    padded(name_size) + padded(size) > np_wire_left(w)) {
		return np_fail(
		    err, NP_EPEER, EINVAL,
		    "a value whose length is given as %u and %u bytes, but %zu bytes are left",
		    name_size, size, np_wire_left(w));
	}
	if (name_size == 0 || name_size >= sizeof(name)) {
		np_wire_skip(w, padded(name_size) + padded(size));
		return NP_OK;
	}
	get_string(w, name_size, name, sizeof(name));
	np_wire_skip(w, padded(name_size) - name_size);
	get_value(w, kind, size, name, into);
	np_wire_skip(w, padded(size) - size);
	return NP_OK;
}

int
np_bag_decode(const uint8_t *bytes, size_t size, struct np_bag *into, struct np_err *err)
{
	struct np_wire w;

	if (size > NP_EXT_BYTES) {
		return np_fail(err, NP_EPEER, EINVAL, "%zu bytes of evidence: too many", size);
	}
	np_wire_read_from(&w, bytes, size);
	while (np_wire_left(&w) >= 12) {
		if (get_item(&w, into, err) != NP_OK) {
			return err->code;
		}
	}
	if (np_wire_left(&w) != 0) {
		return np_fail(err, NP_EPEER, EINVAL, "a value that is cut off");
	}
	return NP_OK;
}

/* --- EVIDENCE and PART -------------------------------------------------------------------------
 */

void
np_ext_ask_put(uint8_t frame[NP_FRAME_SIZE], enum np_ext_about about)
{
	struct np_head head = { .code = NP_EXT_EVIDENCE, .word = -1 };
	uint32_t word = about;
	struct np_wire w;

	np_frame_put(frame, &head, NULL, NULL);
	np_wire_write_to(&w, frame + HEAD, NP_FRAME_SIZE - HEAD);
	np_wire_u32(&w, "about", &word);
}

int
np_ext_ask_get(const uint8_t frame[NP_FRAME_SIZE], enum np_ext_about *about, struct np_err *err)
{
	struct np_wire w;
	uint32_t word;

	np_wire_read_from(&w, frame + HEAD, NP_FRAME_SIZE - HEAD);
	np_wire_u32(&w, "about", &word);
	if (word != NP_ABOUT_TEST && word != NP_ABOUT_HOST) {
		return np_fail(err, NP_EPEER, EINVAL, "evidence about %u", word);
	}
	*about = (enum np_ext_about)word;
	return NP_OK;
}

void
np_part_put(uint8_t frame[NP_FRAME_SIZE], const struct np_part *p)
{
	struct np_head head = { .code = NP_EXT_PART, .word = 0 };
	struct np_part m = *p;
	struct np_wire w;

	np_frame_put(frame, &head, NULL, NULL);
	np_wire_write_to(&w, frame + HEAD, NP_FRAME_SIZE - HEAD);
	np_wire_u32(&w, "total", &m.total);
	np_wire_u32(&w, "number", &m.number);
	np_wire_u32(&w, "size", &m.size);
	np_wire_bytes(&w, "bytes", (uint8_t *)m.bytes, m.size);
}

int
np_part_get(const uint8_t frame[NP_FRAME_SIZE], struct np_part *p, struct np_err *err)
{
	struct np_wire w;

	np_wire_read_from(&w, frame + HEAD, NP_FRAME_SIZE - HEAD);
	np_wire_u32(&w, "total", &p->total);
	np_wire_u32(&w, "number", &p->number);
	np_wire_u32(&w, "size", &p->size);
	p->bytes = frame + HEAD + w.at;
	if (np_frame_head(frame).code != NP_EXT_PART || p->size > NP_PART_MAX ||
	    p->total > NP_EXT_BYTES) {
		return np_fail(err, NP_EPEER, EINVAL, "part %u of evidence: %u bytes of %u",
			       p->number, p->size, p->total);
	}
	return NP_OK;
}
