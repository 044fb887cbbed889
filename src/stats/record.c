#include "stats/record.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct np_metric table[NP_METRICS] = {
#define NP_METRIC(name, type, print, group, collect, h1, h2, h3, h4, ...)                          \
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
	r->value[id].mark = false;
	r->value[id].i = v;
}

void
np_record_real(struct np_record *r, enum np_metric_id id, double v)
{
	assert(table[id].type == NP_TYPE_REAL);
	r->value[id].known = true;
	r->value[id].mark = false;
	r->value[id].r = v;
}

void
np_record_char(struct np_record *r, enum np_metric_id id, char v)
{
	assert(table[id].type == NP_TYPE_CHAR);
	r->value[id].known = true;
	r->value[id].mark = false;
	r->value[id].i = (unsigned char)v;
}

void
np_record_text(struct np_record *r, enum np_metric_id id, const char *v)
{
	assert(table[id].type == NP_TYPE_TEXT);
	r->value[id].known = v != NULL;
	r->value[id].mark = false;
	r->value[id].t = v;
}

void
np_record_mark(struct np_record *r, const enum np_metric_id *ids)
{
	for (; *ids != NP_M_OUTPUT_END; ids++) {
		r->value[*ids].mark = true;
	}
}

bool
np_record_measured(const struct np_record *r, enum np_metric_id id)
{
	if (!np_record_known(r, id) || r->value[id].mark) {
		return false;
	}
	switch (table[id].type) {
	case NP_TYPE_INT:
		return r->value[id].i >= 0;
	case NP_TYPE_REAL:
		return isfinite(r->value[id].r) && r->value[id].r >= 0;
	case NP_TYPE_CHAR:
		return r->value[id].i != 'U' && r->value[id].i != '\0';
	case NP_TYPE_TEXT:
		break;
	}
	return np_record_get_text(r, id)[0] != '\0';
}

static const enum np_metric_id withdrawn[] = {
	NP_M_LOCAL_CPU_MODEL,
	NP_M_REMOTE_CPU_MODEL,
	NP_M_LOCAL_SYSNAME,
	NP_M_LOCAL_SYSTEM_MODEL,
	NP_M_LOCAL_RELEASE,
	NP_M_LOCAL_VERSION,
	NP_M_LOCAL_MACHINE,
	NP_M_REMOTE_SYSNAME,
	NP_M_REMOTE_SYSTEM_MODEL,
	NP_M_REMOTE_RELEASE,
	NP_M_REMOTE_VERSION,
	NP_M_REMOTE_MACHINE,
	NP_M_LOCAL_INTERFACE_NAME,
	NP_M_LOCAL_DRIVER_NAME,
	NP_M_LOCAL_DRIVER_VERSION,
	NP_M_LOCAL_DRIVER_FIRMWARE,
	NP_M_LOCAL_DRIVER_BUS,
	NP_M_LOCAL_INTERFACE_SLOT,
	NP_M_REMOTE_INTERFACE_NAME,
	NP_M_REMOTE_DRIVER_NAME,
	NP_M_REMOTE_DRIVER_VERSION,
	NP_M_REMOTE_DRIVER_FIRMWARE,
	NP_M_REMOTE_DRIVER_BUS,
	NP_M_REMOTE_INTERFACE_SLOT,
	NP_M_LOCAL_SECURITY_TYPE,
	NP_M_LOCAL_SECURITY_ENABLED,
	NP_M_LOCAL_SECURITY_SPECIFIC,
	NP_M_REMOTE_SECURITY_TYPE,
	NP_M_REMOTE_SECURITY_ENABLED,
	NP_M_REMOTE_SECURITY_SPECIFIC,
	NP_M_LOCAL_INTERFACE_VENDOR,
	NP_M_LOCAL_INTERFACE_DEVICE,
	NP_M_LOCAL_INTERFACE_SUBVENDOR,
	NP_M_LOCAL_INTERFACE_SUBDEVICE,
	NP_M_REMOTE_INTERFACE_VENDOR,
	NP_M_REMOTE_INTERFACE_DEVICE,
	NP_M_REMOTE_INTERFACE_SUBVENDOR,
	NP_M_REMOTE_INTERFACE_SUBDEVICE,
	NP_M_LOCAL_CPU_FREQUENCY,
	NP_M_REMOTE_CPU_FREQUENCY,
	NP_M_LOCAL_SECURITY_TYPE_ID,
	NP_M_LOCAL_SECURITY_ENABLED_NUM,
	NP_M_REMOTE_SECURITY_TYPE_ID,
	NP_M_REMOTE_SECURITY_ENABLED_NUM,
};

bool
np_metric_withdrawn(enum np_metric_id id)
{
	for (size_t i = 0; i < sizeof(withdrawn) / sizeof(withdrawn[0]); i++) {
		if (withdrawn[i] == id) {
			return true;
		}
	}
	return false;
}

/* Sic: the numbers that are printed in hexadecimal are -2, the other ones 0. */
void
np_record_withdraw(struct np_record *r)
{
	for (size_t i = 0; i < sizeof(withdrawn) / sizeof(withdrawn[0]); i++) {
		const struct np_metric *m = np_metric(withdrawn[i]);

		if (m->type == NP_TYPE_TEXT) {
			np_record_text(r, withdrawn[i], "Deprecated");
		} else {
			np_record_int(r, withdrawn[i],
				      m->print[strlen(m->print) - 1] == 'x' ? -2 : 0);
		}
		r->value[withdrawn[i]].mark = true;
	}
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
