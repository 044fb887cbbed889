#include "out/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Parts ---- */

/* U+FFFD for each byte that is in no character. */
static json_t *
mended(const char *text)
{
	static const char unknown[] = "\xef\xbf\xbd";
	size_t len = strlen(text), used = 0;
	char *out = malloc(3 * len + 1);
	json_t *whole;

	if (out == NULL) {
		return NULL;
	}
	for (size_t i = 0; i < len;) {
		unsigned char lead = (unsigned char)text[i];
		size_t n = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
		json_t *one = i + n <= len ? json_stringn(&text[i], n) : NULL;

		memcpy(&out[used], one != NULL ? &text[i] : unknown, one != NULL ? n : 3);
		used += one != NULL ? n : 3;
		i += one != NULL ? n : 1;
		json_decref(one);
	}
	whole = json_stringn(out, used);
	free(out);
	return whole;
}

json_t *
np_json_text(const char *text)
{
	json_t *s;

	if (text == NULL) {
		return json_null();
	}
	s = json_string(text);
	return s != NULL ? s : mended(text);
}

json_t *
np_json_real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

/* JSON's integers have a sign here. */
static json_t *
unsigned_integer(uint64_t v)
{
	return json_integer(v < INT64_MAX ? (json_int_t)v : (json_int_t)INT64_MAX);
}

/* The object, unless a part of it found no memory. */
static json_t *
whole(json_t *o, int failures)
{
	if (failures != 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* ---- Figures ---- */

static json_t *
metric(const struct np_record *r, enum np_metric_id id)
{
	char letter = np_record_get_char(r, id);

	switch (np_metric(id)->type) {
	case NP_TYPE_INT:
		return json_integer(np_record_get_int(r, id));
	case NP_TYPE_REAL:
		return np_json_real(np_record_get_real(r, id));
	case NP_TYPE_CHAR:
		return json_stringn(&letter, letter != '\0');
	case NP_TYPE_TEXT:
		break;
	}
	return np_json_text(np_record_get_text(r, id));
}

json_t *
np_json_metrics(const struct np_record *r)
{
	json_t *o = json_object();
	int bad = o == NULL;

	for (int i = 0; i < NP_METRICS; i = np_metric_next(i)) {
		enum np_metric_id id = (enum np_metric_id)i;

		if (i != NP_M_OUTPUT_NONE && i != NP_M_OUTPUT_END && !np_metric_withdrawn(id)) {
			bool known = np_record_measured(r, id) && !np_record_is_never(r, id);

			bad |= json_object_set_new(o, np_metric(id)->name,
						   known ? metric(r, id) : json_null());
		}
	}
	return whole(o, bad);
}

/* ---- Histograms ---- */

json_t *
np_json_hist(const struct np_hist *h)
{
	uint64_t count = h != NULL ? np_hist_count(h) : 0;
	json_t *o, *cells;
	int bad;

	if (count == 0) {
		return json_null();
	}
	o = json_object();
	cells = json_array();
	bad = o == NULL || cells == NULL;
	for (unsigned c = np_hist_next(h, 0); c < NP_HIST_CELLS; c = np_hist_next(h, c + 1)) {
		json_t *pair = json_array();

		bad |= json_array_append_new(pair, unsigned_integer(np_hist_bottom(c)));
		bad |= json_array_append_new(pair, unsigned_integer(h->cell[c]));
		bad |= json_array_append_new(cells, pair);
	}
	bad |= json_object_set_new(o, "unit", json_string("ns"));
	bad |= json_object_set_new(o, "half_bits", json_integer(NP_HIST_HALF_BITS));
	bad |= json_object_set_new(o, "top_bits", json_integer(NP_HIST_TOP_BITS));
	bad |= json_object_set_new(o, "count", unsigned_integer(count));
	bad |= json_object_set_new(o, "sum", unsigned_integer(h->sum));
	bad |= json_object_set_new(o, "min", unsigned_integer(h->min));
	bad |= json_object_set_new(o, "max", unsigned_integer(h->max));
	bad |= json_object_set_new(o, "cells", cells);
	return whole(o, bad);
}

/* ---- Bags ---- */

static json_t *
list_of(const struct np_bag_item *it)
{
	json_t *list = json_array();
	int bad = list == NULL;

	for (size_t i = 0; i < it->count; i++) {
		bad |= json_array_append_new(list, it->kind == NP_BAG_INTS
						       ? json_integer(it->ints[i])
						       : np_json_real(it->reals[i]));
	}
	return whole(list, bad);
}

static json_t *
bag_value(const struct np_bag_item *it)
{
	switch (it->kind) {
	case NP_BAG_INT:
		return json_integer(it->i);
	case NP_BAG_REAL:
		return np_json_real(it->r);
	case NP_BAG_STRING:
	case NP_BAG_UNREAD:
		return np_json_text(it->text);
	case NP_BAG_REALS:
	case NP_BAG_INTS:
		break;
	}
	return list_of(it);
}

json_t *
np_json_bag(const struct np_bag *b)
{
	json_t *o = json_object(), *unread = json_object();
	struct np_bag_item it;
	int bad = o == NULL || unread == NULL;

	if (b == NULL) {
		json_decref(o);
		json_decref(unread);
		return json_null();
	}
	for (size_t i = 0; np_bag_at(b, i, &it); i++) {
		bad |= json_object_set_new(it.kind == NP_BAG_UNREAD ? unread : o, it.name,
					   bag_value(&it));
	}
	bad |= json_object_set_new(o, "unread", unread);
	return whole(o, bad);
}
