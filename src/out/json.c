#include "out/json.h"

#include <errno.h>
#include <inttypes.h>
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

static bool
is_mark(int id)
{
	return id == NP_M_OUTPUT_NONE || id == NP_M_OUTPUT_END;
}

/* JSON has no number for a time without an end. */
static const char never[] = "never";

static bool
is_number(const struct np_record *r, enum np_metric_id id)
{
	return np_record_measured(r, id) && !np_record_is_never(r, id);
}

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

		if (!is_mark(i) && !np_metric_withdrawn(id)) {
			bad |= json_object_set_new(o, np_metric(id)->name,
						   is_number(r, id) ? metric(r, id) : json_null());
		}
	}
	return whole(o, bad);
}

/* Returns 0, or -1: the value is of another type than the figure. */
static int
read_metric(const json_t *v, enum np_metric_id id, struct np_record *r)
{
	if (json_is_null(v)) {
		return 0;
	}
	switch (np_metric(id)->type) {
	case NP_TYPE_INT:
		np_record_int(r, id, json_integer_value(v));
		return json_is_integer(v) ? 0 : -1;
	case NP_TYPE_REAL:
		np_record_real(r, id, json_number_value(v));
		return json_is_number(v) ? 0 : -1;
	case NP_TYPE_CHAR:
		np_record_char(r, id, json_is_string(v) ? json_string_value(v)[0] : '\0');
		return json_is_string(v) && json_string_length(v) < 2 ? 0 : -1;
	case NP_TYPE_TEXT:
		np_record_text(r, id, json_string_value(v));
		return json_is_string(v) ? 0 : -1;
	}
	return -1;
}

/* The figure of that name; -1 when there is none that a document may hold. */
static int
find_metric(const char *name)
{
	int id = np_metric_find(name);

	return id >= 0 && !is_mark(id) ? id : -1;
}

int
np_json_read_metrics(const json_t *o, struct np_record *r, struct np_err *err)
{
	const char *name;
	json_t *v;

	if (!json_is_object(o)) {
		return np_usage(err, "there are no metrics");
	}
	json_object_foreach((json_t *)o, name, v)
	{
		int id = find_metric(name);

		if (id >= 0 && read_metric(v, (enum np_metric_id)id, r) != 0) {
			return np_usage(err, "the metric %.40s has another type", name);
		}
	}
	return NP_OK;
}

/* Room for any number as printf(3) writes it. */
enum { WORD_SIZE = 32 };

/* What stands in the record where nothing was measured, in words; NULL: what any figure has then.
 */
static const char *
odd_word(const struct np_record *r, enum np_metric_id id, char text[WORD_SIZE])
{
	int64_t i = np_record_get_int(r, id);
	double v = np_record_get_real(r, id);

	switch (np_metric(id)->type) {
	case NP_TYPE_INT:
		snprintf(text, WORD_SIZE, "%lld", (long long)i);
		return i != -1 ? text : NULL;
	case NP_TYPE_REAL:
		snprintf(text, WORD_SIZE, "%.17g", v);
		return isfinite(v) && v <= -1 && v >= -1 ? NULL : text;
	case NP_TYPE_CHAR:
		return np_record_get_char(r, id) == '\0' ? "" : NULL;
	case NP_TYPE_TEXT:
		break;
	}
	return np_record_get_text(r, id);
}

json_t *
np_json_oddities(const struct np_record *r)
{
	json_t *o = json_object();
	int bad = o == NULL;

	for (int i = 0; i < NP_METRICS; i = np_metric_next(i)) {
		enum np_metric_id id = (enum np_metric_id)i;
		char text[WORD_SIZE];
		const char *word;

		if (is_mark(i) || np_metric_withdrawn(id) || !r->value[id].known ||
		    is_number(r, id)) {
			continue;
		}
		word = np_record_is_never(r, id) ? never : odd_word(r, id, text);
		if (word != NULL) {
			bad |= json_object_set_new(o, np_metric(id)->name, np_json_text(word));
		}
	}
	return whole(o, bad);
}

/* Returns 0, or -1: the word is none that such a figure could have. */
static int
read_odd(const char *word, enum np_metric_id id, struct np_record *r)
{
	char *end = NULL;

	errno = 0;
	if (np_metric(id)->type <= NP_TYPE_REAL && strcmp(word, never) == 0) {
		np_record_us(r, id, NP_HIST_NEVER);
		return 0;
	}
	switch (np_metric(id)->type) {
	case NP_TYPE_INT:
		np_record_int(r, id, strtoll(word, &end, 10));
		break;
	case NP_TYPE_REAL:
		np_record_real(r, id, strtod(word, &end));
		break;
	case NP_TYPE_CHAR:
		np_record_char(r, id, '\0');
		return word[0] == '\0' ? 0 : -1;
	case NP_TYPE_TEXT:
		np_record_text(r, id, word);
		return 0;
	}
	return errno == 0 && end != word && *end == '\0' ? 0 : -1;
}

int
np_json_read_oddities(const json_t *o, struct np_record *r, struct np_err *err)
{
	const char *name;
	json_t *v;

	if (!json_is_object(o)) {
		return np_usage(err, "there is no list of what null figures show");
	}
	json_object_foreach((json_t *)o, name, v)
	{
		const char *word = json_string_value(v);
		int id = find_metric(name);

		if (word == NULL || (id >= 0 && read_odd(word, (enum np_metric_id)id, r) != 0)) {
			return np_usage(err, "%.40s: a null figure can't show this", name);
		}
		if (id >= 0 && !np_record_is_never(r, (enum np_metric_id)id)) {
			const enum np_metric_id ids[] = { (enum np_metric_id)id, NP_M_OUTPUT_END };

			np_record_mark(r, ids);
		}
	}
	return NP_OK;
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

/* The integer of that name, which is not negative; -1 without one. */
static json_int_t
natural(const json_t *o, const char *name)
{
	const json_t *v = json_object_get(o, name);

	return json_is_integer(v) && json_integer_value(v) >= 0 ? json_integer_value(v) : -1;
}

/* One pair; *total counts what is in the histogram, which never overflows. 0, or -1. */
static int
read_cell(const json_t *pair, struct np_hist *h, uint64_t *total)
{
	const json_t *bottom = json_array_get(pair, 0), *count = json_array_get(pair, 1);
	unsigned cell;

	if (json_array_size(pair) != 2 || !json_is_integer(bottom) || !json_is_integer(count) ||
	    json_integer_value(bottom) < 0 || json_integer_value(count) < 0 ||
	    (uint64_t)json_integer_value(count) > (uint64_t)INT64_MAX - *total) {
		return -1;
	}
	cell = np_hist_cell((uint64_t)json_integer_value(bottom));
	if (np_hist_bottom(cell) != (uint64_t)json_integer_value(bottom)) {
		return -1;
	}
	h->cell[cell] += (uint64_t)json_integer_value(count);
	*total += (uint64_t)json_integer_value(count);
	return 0;
}

int
np_json_read_hist(const json_t *o, struct np_hist *h, struct np_err *err)
{
	const json_t *cells = json_object_get(o, "cells");
	json_int_t min = natural(o, "min"), max = natural(o, "max"), sum = natural(o, "sum");
	uint64_t total = np_hist_count(h);
	const json_t *pair;
	size_t i;

	if (json_is_null(o)) {
		return NP_OK;
	}
	if (!json_is_array(cells) || min < 0 || max < min || sum < 0 ||
	    natural(o, "half_bits") != NP_HIST_HALF_BITS ||
	    natural(o, "top_bits") != NP_HIST_TOP_BITS) {
		return np_usage(err, "a histogram is incomplete, or of another kind");
	}
	json_array_foreach((json_t *)cells, i, pair)
	{
		if (read_cell(pair, h, &total) != 0) {
			return np_usage(err, "cell %zu of a histogram is not valid", i);
		}
	}
	h->sum += (uint64_t)sum;
	h->min = (uint64_t)min < h->min ? (uint64_t)min : h->min;
	h->max = (uint64_t)max > h->max ? (uint64_t)max : h->max;
	return NP_OK;
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

/* A list of integers if it has no other numbers. 0, or -1: it has something else. */
static int
read_list(const json_t *list, const char *name, struct np_bag *b)
{
	size_t n = json_array_size(list);
	double *reals = malloc((n + 1) * sizeof(*reals));
	int64_t *ints = malloc((n + 1) * sizeof(*ints));
	bool whole_numbers = true;
	int rc = reals != NULL && ints != NULL ? 0 : -1;

	for (size_t i = 0; rc == 0 && i < n; i++) {
		const json_t *v = json_array_get(list, i);

		rc = json_is_number(v) ? 0 : -1;
		whole_numbers = whole_numbers && json_is_integer(v);
		reals[i] = json_number_value(v);
		ints[i] = json_integer_value(v);
	}
	if (rc == 0 && whole_numbers) {
		np_bag_ints(b, ints, n, "%s", name);
	} else if (rc == 0) {
		np_bag_reals(b, reals, n, "%s", name);
	}
	free(reals);
	free(ints);
	return rc;
}

static int
read_unread(const json_t *o, struct np_bag *b)
{
	const char *name;
	json_t *v;
	int rc = json_is_object(o) ? 0 : -1;

	json_object_foreach((json_t *)o, name, v)
	{
		if (!json_is_string(v)) {
			return -1;
		}
		np_bag_unread(b, json_string_value(v), "%s", name);
	}
	return rc;
}

static int
read_bag_value(const json_t *v, const char *name, struct np_bag *b)
{
	if (strcmp(name, "unread") == 0) {
		return read_unread(v, b);
	}
	switch (json_typeof(v)) {
	case JSON_INTEGER:
		np_bag_int(b, json_integer_value(v), "%s", name);
		return 0;
	case JSON_REAL:
		np_bag_real(b, json_real_value(v), "%s", name);
		return 0;
	case JSON_STRING:
		np_bag_text(b, json_string_value(v), "%s", name);
		return 0;
	case JSON_ARRAY:
		return read_list(v, name, b);
	case JSON_OBJECT:
	case JSON_TRUE:
	case JSON_FALSE:
	case JSON_NULL:
		break;
	}
	return -1;
}

int
np_json_read_bag(const json_t *o, struct np_bag *b, struct np_err *err)
{
	const char *name;
	json_t *v;

	if (!json_is_object(o)) {
		return np_usage(err, "evidence is not an object");
	}
	json_object_foreach((json_t *)o, name, v)
	{
		if (read_bag_value(v, name, b) != 0) {
			return np_usage(err, "the evidence %.40s is not a valid value", name);
		}
	}
	return NP_OK;
}

/* ---- How a result is shown ---- */

static const char *const styles[] = {
	[NP_STYLE_CLASSIC] = "classic", [NP_STYLE_COLUMNS] = "columns", [NP_STYLE_CSV] = "csv",
	[NP_STYLE_KEYVAL] = "keyval",   [NP_STYLE_HUMAN] = "human",
};
enum { STYLES = sizeof(styles) / sizeof(styles[0]) };

/* The groups of selected figures; null for a name that was none. */
static json_t *
selection(const struct np_selection *sel)
{
	json_t *groups = json_array();
	int bad = groups == NULL;

	for (size_t g = 0; g < NP_SELECT_GROUPS; g++) {
		json_t *list = json_array();

		for (size_t i = 0; i < sel->count[g]; i++) {
			int id = sel->id[g][i];
			char made[NP_FIGURE_NAME];
			const char *name =
			    id != NP_SELECT_UNKNOWN ? np_figure_name(id, made) : NULL;

			bad |= json_array_append_new(list, np_json_text(name));
		}
		bad |= json_array_append_new(groups, list);
	}
	return whole(groups, bad);
}

json_t *
np_json_look(const struct np_look *l)
{
	const struct np_classic *c = &l->classic;
	json_t *o = json_object();
	int bad = o == NULL;

	bad |= json_object_set_new(o, "style", json_string(styles[l->style]));
	bad |= json_object_set_new(o, "layout", np_json_text(c->layout));
	bad |= json_object_set_new(o, "unit", json_stringn(&c->unit->letter, 1));
	bad |= json_object_set_new(o, "verbosity", json_integer(c->verbosity));
	bad |= json_object_set_new(o, "headers", json_boolean(c->headers));
	bad |= json_object_set_new(o, "local_cpu", json_boolean(c->local_cpu));
	bad |= json_object_set_new(o, "remote_cpu", json_boolean(c->remote_cpu));
	bad |= json_object_set_new(o, "brand", np_json_text(c->brand));
	bad |= json_object_set_new(o, "figures", selection(&l->list));
	bad |= json_object_set_new(o, "histogram", json_boolean(l->histogram));
	bad |= json_object_set_new(o, "histogram_of", np_json_text(l->histogram_of));
	bad |= json_object_set_new(o, "times", json_boolean(l->times));
	bad |= json_object_set_new(o, "transactions", json_boolean(l->transactions));
	bad |= json_object_set_new(o, "limits", json_boolean(l->limits));
	bad |= json_object_set_new(o, "average", json_boolean(l->average));
	bad |= json_object_set_new(o, "missed", json_boolean(l->missed));
	bad |= json_object_set_new(o, "latency", json_boolean(l->latency));
	bad |= json_object_set_new(o, "congestion", json_boolean(l->congestion));
	return whole(o, bad);
}

static int
read_selection(const json_t *groups, struct np_selection *sel)
{
	const json_t *list, *name;
	size_t g, i;

	if (json_array_size(groups) != NP_SELECT_GROUPS) {
		return -1;
	}
	json_array_foreach((json_t *)groups, g, list)
	{
		if (!json_is_array(list) || json_array_size(list) > NP_SELECT_MAX) {
			return -1;
		}
		json_array_foreach((json_t *)list, i, name)
		{
			const char *text = json_string_value(name);

			if (text == NULL && !json_is_null(name)) {
				return -1;
			}
			sel->id[g][i] = text != NULL ? np_figure_find(text) : NP_SELECT_UNKNOWN;
		}
		sel->count[g] = json_array_size(list);
	}
	return 0;
}

static int
read_flags(const json_t *o, struct np_look *l, struct np_err *err)
{
	const struct {
		const char *name;
		bool *to;
		bool later; /* older documents have none */
	} flags[] = {
		{ "headers", &l->classic.headers, false },
		{ "local_cpu", &l->classic.local_cpu, false },
		{ "remote_cpu", &l->classic.remote_cpu, false },
		{ "histogram", &l->histogram, false },
		{ "times", &l->times, true },
		{ "transactions", &l->transactions, true },
		{ "limits", &l->limits, true },
		{ "average", &l->average, false },
		{ "missed", &l->missed, false },
		{ "latency", &l->latency, false },
		{ "congestion", &l->congestion, false },
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		const json_t *v = json_object_get(o, flags[i].name);

		if (v == NULL && flags[i].later) {
			continue;
		}
		if (!json_is_boolean(v)) {
			return np_usage(err, "display: %s is neither true nor false",
					flags[i].name);
		}
		*flags[i].to = json_is_true(v);
	}
	return NP_OK;
}

/* The unit of exactly that letter, or NULL. */
static const struct np_unit *
read_unit(const json_t *v)
{
	const char *letter = json_string_length(v) == 1 ? json_string_value(v) : "";

	return np_unit(*letter)->letter == *letter ? np_unit(*letter) : NULL;
}

int
np_json_read_look(const json_t *o, struct np_look *l, struct np_err *err)
{
	const char *style = json_string_value(json_object_get(o, "style"));
	const char *layout = json_string_value(json_object_get(o, "layout"));
	const json_t *verbosity = json_object_get(o, "verbosity");
	const json_t *brand = json_object_get(o, "brand");
	json_int_t verbose = json_integer_value(verbosity);
	int s = 0;

	memset(l, 0, sizeof(*l));
	while (s < STYLES && (style == NULL || strcmp(styles[s], style) != 0)) {
		s++;
	}
	l->style = (enum np_style)s;
	l->classic.layout = layout;
	l->classic.unit = read_unit(json_object_get(o, "unit"));
	l->classic.verbosity = verbose > 3 ? 3 : verbose < -1 ? -1 : (int)verbose;
	l->classic.brand = json_string_value(brand);
	l->histogram_of = json_string_value(json_object_get(o, "histogram_of"));
	if (s == STYLES || layout == NULL || !np_classic_known(layout) || l->classic.unit == NULL ||
	    l->histogram_of == NULL || !json_is_integer(verbosity) ||
	    (l->classic.brand == NULL && !json_is_null(brand)) ||
	    read_selection(json_object_get(o, "figures"), &l->list) != 0) {
		return np_usage(err, "display: does not say how to show the result");
	}
	l->transactions = l->classic.unit->letter == 'x'; /* older documents do not say */
	return read_flags(o, l, err);
}
