#include "out/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A text with U+FFFD for each byte that is not UTF-8. */
static json_t *
replace_invalid(const char *text)
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
		json_t *one = i + n <= len ? json_stringn(&text[i], n) : NULL; /* NULL: no UTF-8 */

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
	return s != NULL ? s : replace_invalid(text);
}

json_t *
np_json_real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

/* v / divisor; null if v is negative, infinite (NP_HIST_NEVER) or NAN. */
static json_t *
scaled(double v, double divisor)
{
	return v >= 0 && v < (double)NP_HIST_NEVER ? json_real(v / divisor) : json_null();
}

json_t *
np_json_us(double ns)
{
	return scaled(ns, 1e3);
}

/* jansson's integers are signed: greater ones become the greatest. */
static json_t *
unsigned_integer(uint64_t v)
{
	return json_integer(v < INT64_MAX ? (json_int_t)v : (json_int_t)INT64_MAX);
}

/* Find or make the object for the last name of a path; *path becomes that name. NULL: failed. */
static json_t *
find_parent(json_t *o, const char **path, char separator)
{
	char name[NP_BAG_NAME + 1];
	const char *end;

	for (; (end = strchr(*path, separator)) != NULL && json_is_object(o); *path = end + 1) {
		json_t *outer = o;

		snprintf(name, sizeof(name), "%.*s", (int)(end - *path), *path);
		o = json_object_get(outer, name);
		if (o == NULL && json_object_set_new(outer, name, o = json_object()) != 0) {
			return NULL;
		}
	}
	return json_is_object(o) ? o : NULL;
}

json_t *
np_json_part(json_t *o, const char *path)
{
	json_t *inner;

	o = find_parent(o, &path, '/'); /* jansson's functions fail if it is NULL */
	inner = json_object_get(o, path);
	if (inner == NULL && json_object_set_new(o, path, inner = json_object()) != 0) {
		return NULL;
	}
	return inner;
}

int
np_json_put(json_t *o, const char *path, json_t *v)
{
	if (json_is_null(v)) {
		return 0;
	}
	o = find_parent(o, &path, '/');
	return json_object_set_new(o, path, v); /* frees v if o is NULL */
}

/* Return o; or, if a part of it could not be made (failures), free it and return NULL. */
static json_t *
unless_failed(json_t *o, int failures)
{
	if (failures != 0) {
		json_decref(o);
		return NULL;
	}
	return o;
}

/* A number; null below 0. */
static json_t *
from_zero(int64_t v)
{
	return v >= 0 ? json_integer(v) : json_null();
}

/* The value at an address. What stands for "not known" in its kind becomes null. */
static json_t *
member(const void *at, enum np_json_kind kind)
{
	switch (kind) {
	case NP_JSON_FLAG:
		return json_boolean(*(const bool *)at);
	case NP_JSON_SIGNED:
		return from_zero(*(const int32_t *)at);
	case NP_JSON_COUNT:
		return json_integer(*(const uint32_t *)at);
	case NP_JSON_CHOICE:
	case NP_JSON_PORT:
		return *(const uint32_t *)at != 0 ? json_integer(*(const uint32_t *)at)
						  : json_null();
	case NP_JSON_SIGNED64:
		return from_zero(*(const int64_t *)at);
	case NP_JSON_COUNT64:
		return unsigned_integer(*(const uint64_t *)at);
	case NP_JSON_SIZE:
		return unsigned_integer(*(const size_t *)at);
	case NP_JSON_NS:
		return np_json_us((double)*(const int64_t *)at);
	case NP_JSON_US:
		return scaled((double)*(const int64_t *)at, 1e6);
	case NP_JSON_REAL:
		return np_json_real(*(const double *)at);
	case NP_JSON_REAL_NS:
		return np_json_real(*(const double *)at / 1e3);
	case NP_JSON_TEXT:
		return np_json_text(*(const char *)at != '\0' ? at : NULL);
	case NP_JSON_STRING:
		return np_json_text(*(const char *const *)at);
	case NP_JSON_HIST:
		return np_json_hist(*(const struct np_hist *const *)at);
	}
	return NULL;
}

int
np_json_members(json_t *o, const struct np_json_member *m, size_t count, const void *base)
{
	int bad = 0;

	for (size_t i = 0; i < count; i++) {
		if (m[i].path != NULL) {
			bad |= np_json_put(o, m[i].path,
					   member((const char *)base + m[i].at, m[i].kind));
		}
	}
	return bad;
}

/* The value of a known metric. A time keeps the fractions that netperf cuts off, below 2^53. */
static json_t *
metric(const struct np_record *r, enum np_metric_id id)
{
	const int64_t exact = INT64_C(1) << 53;
	char letter = np_record_get_char(r, id);

	switch (np_metrics[id].type) {
	case NP_TYPE_INT:
		return r->value[id].i < exact && r->value[id].r > (double)r->value[id].i
			   ? np_json_real(r->value[id].r)
			   : json_integer(r->value[id].i);
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
	int bad = 0;

	for (int i = 0; i < NP_METRICS; i = np_metric_next(i)) {
		enum np_metric_id id = (enum np_metric_id)i;

		if (i == NP_M_OUTPUT_NONE || i == NP_M_OUTPUT_END || np_metric_withdrawn(id) ||
		    !np_record_measured(r, id)) {
			continue;
		}
		bad |= json_object_set_new(o, np_metrics[id].name,
					   np_record_is_never(r, id) ? json_null() : metric(r, id));
	}
	return unless_failed(o, bad);
}

json_t *
np_json_hist(const struct np_hist *h)
{
	json_t *cells;
	unsigned next = 0; /* the cell after the last one written */
	int bad = 0;

	if (h == NULL || np_hist_count(h) == 0) {
		return json_null();
	}
	cells = json_array();
	for (unsigned c = np_hist_next(h, 0); c < NP_HIST_CELLS; c = np_hist_next(h, c + 1)) {
		if (c > next) {
			bad |= json_array_append_new(cells, json_integer(-(json_int_t)(c - next)));
		}
		bad |= json_array_append_new(cells, unsigned_integer(h->cell[c]));
		next = c + 1;
	}
	return json_pack("{s:o, s:o, s:o, s:o}", "sum", unsigned_integer(h->sum), "min",
			 unsigned_integer(h->min), "max", unsigned_integer(h->max), "cells",
			 unless_failed(cells, bad));
}

/* The value of an item of a bag. NULL: memory ran out. */
static json_t *
bag_value(const struct np_bag_item *it)
{
	json_t *list;
	int bad = 0;

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
	list = json_array();
	for (size_t i = 0; i < it->count; i++) {
		bad |= json_array_append_new(list, it->kind == NP_BAG_INTS
						       ? json_integer(it->ints[i])
						       : np_json_real(it->reals[i]));
	}
	return unless_failed(list, bad);
}

json_t *
np_json_bag(const struct np_bag *b)
{
	json_t *o, *unread;
	struct np_bag_item it;
	int bad = 0;

	if (b == NULL) {
		return json_null();
	}
	o = json_object();
	unread = json_object();
	for (size_t i = 0; np_bag_at(b, i, &it); i++) {
		/* "tcp.rtt_us" is the member rtt_us of tcp. If "tcp" is a value, or an object
		 * stands where the value should go, the full name is the member. */
		const char *name = it.name;
		json_t *at = it.kind != NP_BAG_UNREAD ? find_parent(o, &name, '.') : unread;
		bool flat = at == NULL || json_is_object(json_object_get(at, name));

		bad |= json_object_set_new(flat ? o : at, flat ? it.name : name, bag_value(&it));
	}
	bad |= json_object_set_new(o, "unread", unread);
	return unless_failed(o, bad);
}
