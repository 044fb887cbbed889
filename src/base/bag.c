#include "base/bag.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* gcc's analyzer takes what is stored in an element of an array for leaked. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

struct item {
	struct np_bag_item value; /* its pointers are those below */
	char *name;
	size_t length; /* of the name; comparing it first is fast, since most differ */
	void *data;    /* a text or a list */
	size_t bytes;  /* of data */
};

struct np_bag {
	struct item *items;
	size_t count, room, bytes, left_out;
};

struct np_bag *
np_bag_new(void)
{
	return calloc(1, sizeof(struct np_bag));
}

void
np_bag_free(struct np_bag *b)
{
	np_bag_drop(b, "");
	if (b != NULL) {
		free(b->items);
	}
	free(b);
}

void
np_bag_drop(struct np_bag *b, const char *prefix)
{
	size_t kept = 0;

	if (b == NULL) {
		return;
	}
	for (size_t i = 0; i < b->count; i++) {
		struct item *it = &b->items[i];

		if (strncmp(it->name, prefix, strlen(prefix)) != 0) {
			b->items[kept++] = *it;
			continue;
		}
		b->bytes -= it->length + 1 + it->bytes;
		free(it->data);
		free(it->name);
	}
	b->count = kept;
}

bool
np_bag_clean_name(char *name)
{
	bool good = *name != '\0';
	char before = '.'; /* so that the first character can't be a dot */

	for (char *at = name; *at != '\0'; before = *at++) {
		bool fits = *at == '.' ? before != '.' && at[1] != '\0'
				       : isalnum((unsigned char)*at) || strchr("_-:", *at) != NULL;

		good = good && fits;
		*at = fits ? *at : '_';
	}
	return good;
}

/* The item of that name in a bag, which is not NULL. NULL: there is none. */
static struct item *
find_item(const struct np_bag *b, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < b->count; i++) {
		if (b->items[i].length == length && memcmp(b->items[i].name, name, length) == 0) {
			return &b->items[i];
		}
	}
	return NULL;
}

/* A new item of that name. NULL: memory ran out. */
static struct item *
append_item(struct np_bag *b, const char *name)
{
	struct item new = { .name = strdup(name), .length = strlen(name) };

	if (new.name == NULL) {
		return NULL;
	}
	if (b->count == b->room) {
		size_t room = b->room == 0 ? 64 : 2 * b->room;
		struct item *items = realloc(b->items, room * sizeof(*items));

		if (items == NULL) {
			free(new.name);
			return NULL;
		}
		b->items = items;
		b->room = room;
	}
	b->bytes += new.length + 1;
	b->items[b->count] = new;
	return &b->items[b->count++];
}

/* Store a value with a copy of its text or list. False: no room for it, or for the name (again). */
static bool
store(struct np_bag *b, const char *name, struct np_bag_item v, const void *data, size_t bytes)
{
	struct item *it = find_item(b, name);
	void *copy;

	if ((it == NULL && b->count >= NP_BAG_ITEMS) ||
	    b->bytes - (it != NULL ? it->bytes : 0) + bytes + strlen(name) + 1 > NP_BAG_BYTES) {
		return false;
	}
	copy = malloc(bytes + 1); /* never NULL for 0 bytes */
	if (copy == NULL || (it == NULL && (it = append_item(b, name)) == NULL)) {
		free(copy);
		return false;
	}
	if (bytes > 0) {
		memcpy(copy, data, bytes);
	}
	free(it->data);
	b->bytes += bytes - it->bytes;
	it->data = copy;
	it->bytes = bytes;
	v.name = it->name;
	v.text = v.text != NULL ? copy : NULL;
	v.reals = v.reals != NULL ? copy : NULL;
	v.ints = v.ints != NULL ? copy : NULL;
	it->value = v;
	return true;
}

static bool
is_finite(const struct np_bag_item *v)
{
	size_t i = 0;

	while (v->reals != NULL && i < v->count && isfinite(v->reals[i])) {
		i++;
	}
	return isfinite(v->r) && (v->reals == NULL || i == v->count);
}

/* Cut and clean a text. Much of it comes from the far end, and goes to terminals. */
static void
take_text(char out[NP_BAG_TEXT], const char *text)
{
	size_t len = strnlen(text, NP_BAG_TEXT - 1);

	memcpy(out, text, len);
	/* Don't cut inside a UTF-8 character: its later bytes begin with the bits 10. */
	while (text[len] != '\0' && len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) {
		len--;
	}
	out[len] = '\0';
	np_text_clean(out);
}

void
np_bag_put(struct np_bag *b, struct np_bag_item v, const char *name, ...)
{
	char full[NP_BAG_NAME], text[NP_BAG_TEXT] = "";
	const void *data = v.reals != NULL ? (const void *)v.reals : v.ints;
	size_t bytes = v.count * sizeof(v.i); /* of both kinds of lists */
	va_list args;
	int len;

	if (b == NULL) {
		return;
	}
	va_start(args, name);
	len = vsnprintf(full, sizeof(full), name, args);
	va_end(args);
	if (v.text != NULL) {
		take_text(text, v.text);
		data = text;
		bytes = strlen(text) + 1;
	}
	if ((size_t)len >= sizeof(full) || !np_bag_clean_name(full) || !is_finite(&v) ||
	    !store(b, full, v, data, bytes)) {
		b->left_out++;
	}
}

size_t
np_bag_left_out(const struct np_bag *b)
{
	return b != NULL ? b->left_out : 0;
}

size_t
np_bag_count(const struct np_bag *b)
{
	return b != NULL ? b->count : 0;
}

bool
np_bag_at(const struct np_bag *b, size_t i, struct np_bag_item *item)
{
	if (i >= np_bag_count(b)) {
		return false;
	}
	*item = b->items[i].value;
	return true;
}

bool
np_bag_find(const struct np_bag *b, const char *name, struct np_bag_item *item)
{
	const struct item *it = b != NULL ? find_item(b, name) : NULL;

	if (it == NULL) {
		return false;
	}
	*item = it->value;
	return true;
}

size_t
np_bag_list(const struct np_bag *b, const char *name, int kind, struct np_bag_item *list)
{
	bool found = np_bag_find(b, name, list) &&
		     (list->kind == NP_BAG_REALS || list->kind == NP_BAG_INTS) &&
		     (kind == 0 || (int)list->kind == kind);

	return found ? list->count : 0;
}

double
np_bag_value(const struct np_bag_item *list, size_t i)
{
	return list->kind == NP_BAG_REALS ? list->reals[i] : (double)list->ints[i];
}

double
np_bag_number(const struct np_bag *b, const char *name)
{
	struct np_bag_item it;

	if (!np_bag_find(b, name, &it) || (it.kind != NP_BAG_INT && it.kind != NP_BAG_REAL)) {
		return (double)NAN;
	}
	return it.kind == NP_BAG_INT ? (double)it.i : it.r;
}

const char *
np_bag_string(const struct np_bag *b, const char *name)
{
	struct np_bag_item it;

	return np_bag_find(b, name, &it) && it.kind == NP_BAG_STRING ? it.text : NULL;
}
