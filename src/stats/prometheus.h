/*
 * The text format that Prometheus scrapes, version 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/).
 */
#ifndef NP_STATS_PROMETHEUS_H
#define NP_STATS_PROMETHEUS_H

#include <stddef.h>
#include <stdio.h>

/* What tells a series from others; a value of NULL is left out. */
struct np_label {
	const char *name, *value;
};

/* What precedes the series of a metric: its help text and its type. */
void np_prometheus_head(FILE *out, const char *name, const char *type, const char *help);

/* One value of it. */
void np_prometheus_value(FILE *out, const char *name, const struct np_label *labels, size_t count,
			 double value);

#endif
