#include "tests/lib/records.h"

#include "tests/lib/check.h"

void
put_figures(struct np_record *r, const char *words)
{
	char name[40], value[40];
	int used;

	for (; sscanf(words, " %39[^= ]=%39s%n", name, value, &used) == 2; words += used) {
		int id = np_metric_find(name);

		fail_if(id < 0, "no figure %s", name);
		if (np_metrics[id].type == NP_TYPE_INT) {
			np_record_int(r, (enum np_metric_id)id, strtoll(value, NULL, 10));
		} else if (np_metrics[id].type == NP_TYPE_CHAR) {
			np_record_char(r, (enum np_metric_id)id, value[0]);
		} else {
			np_record_real(r, (enum np_metric_id)id, strtod(value, NULL));
		}
	}
	assert_int_equal(words[strspn(words, " ")], '\0');
}
