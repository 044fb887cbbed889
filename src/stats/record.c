#include "stats/record.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct np_metric table[NP_METRICS] = {
#define NP_METRIC(name, type, print, group, collect, h1, h2, h3, h4)                               \
	{ #name, NP_TYPE_##type, print, group, NP_COLLECT_##collect, { h1, h2, h3, h4 } },
#include "stats/metrics.def"
#undef NP_METRIC
};

const struct np_metric *
np_metric(enum np_metric_id id)
{
	return &table[id];
}

bool
np_metric_of_evidence(enum np_metric_id id)
{
	return np_metric(id)->collect >= NP_COLLECT_NUMBERS;
}

int
np_metric_find(const char *name)
{
	for (int i = 0; i < NP_METRICS; i++) {
		if (strcasecmp(table[i].name, name) == 0) {
			return i;
		}
	}
	return -1;
}

void
np_metric_title(enum np_metric_id id, char *out, size_t size)
{
	const struct np_metric *m = &table[id];
	size_t used = 0;

	out[0] = '\0';
	for (size_t h = 0; h < sizeof(m->head) / sizeof(m->head[0]); h++) {
		if (m->head[h][0] == '\0' || used >= size) {
			return;
		}
		used +=
		    (size_t)snprintf(out + used, size - used, "%s%s", h > 0 ? " " : "", m->head[h]);
	}
}

void
np_record_int(struct np_record *r, enum np_metric_id id, int64_t v)
{
	assert(table[id].type == NP_TYPE_INT);
	r->value[id].known = true;
	r->value[id].i = v;
}

void
np_record_real(struct np_record *r, enum np_metric_id id, double v)
{
	assert(table[id].type == NP_TYPE_REAL);
	r->value[id].known = true;
	r->value[id].r = v;
}

void
np_record_char(struct np_record *r, enum np_metric_id id, char v)
{
	assert(table[id].type == NP_TYPE_CHAR);
	r->value[id].known = true;
	r->value[id].i = (unsigned char)v;
}

void
np_record_text(struct np_record *r, enum np_metric_id id, const char *v)
{
	assert(table[id].type == NP_TYPE_TEXT);
	r->value[id].known = v != NULL;
	r->value[id].t = v;
}

bool
np_record_known(const struct np_record *r, enum np_metric_id id)
{
	return id == NP_M_OUTPUT_NONE || r->value[id].known;
}

int64_t
np_record_get_int(const struct np_record *r, enum np_metric_id id)
{
	return r->value[id].known ? r->value[id].i : -1;
}

double
np_record_get_real(const struct np_record *r, enum np_metric_id id)
{
	return r->value[id].known ? r->value[id].r : -1.0;
}

char
np_record_get_char(const struct np_record *r, enum np_metric_id id)
{
	return (char)(r->value[id].known ? r->value[id].i : 'U');
}

const char *
np_record_get_text(const struct np_record *r, enum np_metric_id id)
{
	if (id == NP_M_OUTPUT_NONE) {
		return " ";
	}
	return r->value[id].known ? r->value[id].t : "";
}

static long long
shown_int(const struct np_record *r, enum np_metric_id id)
{
	int64_t v = np_record_get_int(r, id);
	const char *print = table[id].print;

	return print[strlen(print) - 1] == 'x' ? (long long)(uint32_t)v : (long long)v;
}

size_t
np_record_format(const struct np_record *r, enum np_metric_id id, char *out, size_t size)
{
	const struct np_metric *m = &table[id];
	int n = 0;

/* The conversions are literals of metrics.def, one for each type. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	switch (m->type) {
	case NP_TYPE_INT:
		n = snprintf(out, size, m->print, shown_int(r, id));
		break;
	case NP_TYPE_REAL:
		n = snprintf(out, size, m->print, np_record_get_real(r, id));
		break;
	case NP_TYPE_CHAR:
		n = snprintf(out, size, m->print, np_record_get_char(r, id));
		break;
	case NP_TYPE_TEXT:
		n = snprintf(out, size, m->print, np_record_get_text(r, id));
		break;
	}
#pragma GCC diagnostic pop
	return n > 0 ? (size_t)n : 0;
}
