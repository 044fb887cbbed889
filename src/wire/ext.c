#include "wire/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "wire/wire.h"

void
np_hello_put(uint8_t frame[NP_FRAME_SIZE], uint32_t code, const struct np_hello_message *m)
{
	/* As in netperf's messages: bind to no processor; no error. */
	struct np_head head = { .code = code, .word = code == NP_EXT_HELLO ? -1 : 0 };

	np_frame_put(frame, &head, NULL, NULL);
	np_tagged_put_fields(&np_tagged_hello, m, frame + NP_TAGGED_AT);
}

int
np_hello_get(const uint8_t frame[NP_FRAME_SIZE], struct np_hello_message *m, struct np_err *err)
{
	if (np_tagged_get_fields(&np_tagged_hello, frame + NP_TAGGED_AT,
				 NP_FRAME_SIZE - NP_TAGGED_AT, m, err) != NP_OK) {
		return err->code;
	}
	np_text_clean(m->identity);
	np_text_clean(m->device);
	if (m->version == 0) {
		return np_fail(err, NP_EPEER, EINVAL, "a greeting without a version");
	}
	return NP_OK;
}

/* Bytes of a value's field, without the padding after it. */
static size_t
field_size(const struct np_bag_item *it)
{
	bool text = it->kind == NP_BAG_STRING || it->kind == NP_BAG_UNREAD;
	bool number = it->kind == NP_BAG_INT || it->kind == NP_BAG_REAL;

	return 4 + np_tag_padded(strlen(it->name)) +
	       (text ? strlen(it->text) : 8 * (number ? 1 : it->count));
}

int
np_bag_encode(const struct np_bag *b, uint8_t **message, struct np_err *err)
{
	struct np_bag_item it;
	struct np_wire w;
	size_t size = 0;
	uint64_t bits;

	for (size_t i = 0; np_bag_at(b, i, &it); i++) {
		size += 8 + np_tag_padded(field_size(&it));
	}
	*message = malloc(NP_TAGGED_AT + size);
	if (*message == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for the evidence of a test");
	}
	np_tagged_head(*message, NP_EXT_BAG, size);
	np_wire_write_to(&w, *message + NP_TAGGED_AT, size);
	for (size_t i = 0; np_bag_at(b, i, &it); i++) {
		size_t name = strlen(it.name), bytes = field_size(&it);
		uint32_t name_size = (uint32_t)name;

		np_tag_put(&w, it.kind, bytes);
		np_wire_u32(&w, "name's length", &name_size);
		np_wire_bytes(&w, "name", (uint8_t *)it.name, name);
		np_tag_pad(&w, name);
		switch (it.kind) {
		case NP_BAG_INT:
			bits = (uint64_t)it.i;
			np_wire_u64_hilo(&w, "integer", &bits);
			break;
		case NP_BAG_REAL:
			np_wire_f64(&w, "real", &it.r);
			break;
		case NP_BAG_STRING:
		case NP_BAG_UNREAD:
			np_wire_bytes(&w, "text", (uint8_t *)it.text, strlen(it.text));
			break;
		case NP_BAG_REALS:
		case NP_BAG_INTS:
			for (size_t n = 0; n < it.count; n++) {
				memcpy(&bits,
				       it.kind == NP_BAG_INTS ? (const void *)&it.ints[n]
							      : &it.reals[n],
				       sizeof(bits));
				np_wire_u64_hilo(&w, "list", &bits);
			}
			break;
		}
		np_tag_pad(&w, bytes);
	}
	return NP_OK;
}

/* Read a text of `length` bytes, and skip those for which text[size] has no room. */
static void
get_string(struct np_wire *w, size_t length, char *text, size_t size)
{
	size_t taken = length < size ? length : size - 1;

	np_wire_bytes(w, "text", (uint8_t *)text, taken);
	np_wire_skip(w, length - taken);
	text[taken] = '\0';
}

/* Put a list of 8-byte values into the bag, by way of aligned memory; without any, skip it. */
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

/* Put a value of a message into the bag. Skip one of an unknown kind, or with a wrong size. */
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

int
np_bag_decode(const uint8_t *message, struct np_bag *into, struct np_err *err)
{
	struct np_wire w;

	np_wire_read_from(&w, message + NP_TAGGED_AT, (uint32_t)np_frame_head(message).word);
	for (;;) {
		uint32_t tag;
		size_t length;
		char name[NP_BAG_NAME];
		uint32_t name_size;
		size_t value_size;

		if (np_tag_next(&w, "bag", &tag, &length, err) != NP_OK) {
			return err->code;
		}
		if (tag == 0 && np_wire_left(&w) > 0) {
			return np_fail(err, NP_EPEER, EINVAL, "a value that is cut off");
		}
		if (tag == 0) {
			return NP_OK;
		}
		name_size = 0;
		if (length >= 4) {
			np_wire_u32(&w, "name's length", &name_size);
		}
		if (length < 4 || name_size > length - 4 || np_tag_padded(name_size) > length - 4) {
			return np_fail(err, NP_EPEER, EINVAL,
				       "a value of %zu bytes with a name of %u bytes", length,
				       name_size);
		}
		value_size = length - 4 - np_tag_padded(name_size);
		if (name_size == 0 || name_size >= sizeof(name)) { /* a bag can't have it */
			np_wire_skip(&w, length - 4);
		} else {
			get_string(&w, name_size, name, sizeof(name));
			np_wire_skip(&w, np_tag_padded(name_size) - name_size);
			get_value(&w, tag, value_size, name, into);
		}
		np_tag_pad(&w, length);
	}
}
