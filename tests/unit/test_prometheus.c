/*
 * The text format that Prometheus scrapes.
 */
#include "stats/prometheus.h"

#include <math.h>

#include "tests/lib/check.h"

static void
put(FILE *out)
{
	static const struct np_label labels[] = { { "test", "TCP_STREAM" },
						  { "brand", NULL },
						  { "host", "a\"b\\c\nd" } };

	np_prometheus_head(out, "up", "gauge", "1: it\nis");
	np_prometheus_value(out, "up", labels, LEN(labels), 0.1);
	np_prometheus_value(out, "up", NULL, 0, 16384);
	np_prometheus_value(out, "up", NULL, 0, (double)NAN);
	np_prometheus_value(out, "up", NULL, 0, HUGE_VAL);
}

TEST(values_have_labels_and_every_digit)
{
	FREED_BY(free_memory) char *text = WRITTEN(out, put(out));

	assert_string_equal(text,
			    "# HELP up 1: it\\nis\n# TYPE up gauge\n"
			    "up{test=\"TCP_STREAM\",host=\"a\\\"b\\\\c\\nd\"} 0.10000000000000001\n"
			    "up 16384\nup NaN\nup +Inf\n");
}

TEST_MAIN()
