#include "tests/lib/records.h"

#include <float.h>

#include "tests/lib/bags.h"
#include "tests/lib/check.h"

/* The next of them; false: there is none. */
static bool
next_figure(const char **words, enum np_metric_id *id, char value[40])
{
	char name[40];
	int used;

	if (sscanf(*words, " %39[^= ]=%39[^ ]%n", name, value, &used) != 2) {
		assert_int_equal((*words)[strspn(*words, " ")], '\0');
		return false;
	}
	fail_if(np_metric_find(name) < 0, "no figure %s", name);
	*id = (enum np_metric_id)np_metric_find(name);
	*words += used;
	return true;
}

void
put_figures(struct np_record *r, const char *words)
{
	enum np_metric_id id;
	char value[40];

	while (next_figure(&words, &id, value)) {
		if (np_metrics[id].type == NP_TYPE_INT) {
			np_record_int(r, id, strtoll(value, NULL, 10));
		} else if (np_metrics[id].type == NP_TYPE_CHAR) {
			np_record_char(r, id, value[0]);
		} else {
			np_record_real(r, id, strtod(value, NULL));
		}
	}
}

static bool
is_figure(const struct np_record *r, enum np_metric_id id, const char *want)
{
	if (strcmp(want, "none") == 0) {
		return !np_record_known(r, id);
	}
	switch (np_metrics[id].type) {
	case NP_TYPE_INT:
		return (double)np_record_get_int(r, id) == computed(want);
	case NP_TYPE_CHAR:
		return np_record_get_char(r, id) == want[0];
	case NP_TYPE_TEXT:
		return strcmp(np_record_get_text(r, id), want) == 0;
	default:
		return fabs(np_record_get_real(r, id) - computed(want)) <=
		       DBL_EPSILON * fabs(computed(want));
	}
}

void
assert_figures(const struct np_record *r, const char *words)
{
	enum np_metric_id id;
	char value[40], have[80];

	while (next_figure(&words, &id, value)) {
		np_record_format(r, id, have, sizeof(have));
		fail_if(!is_figure(r, id, value), "%s is %s, not %s", np_metrics[id].name, have,
			value);
	}
}
