/*
 * A result in the text format that Prometheus scrapes
 * (https://prometheus.io/docs/instrumenting/exposition_formats/), version 0.0.4.
 */
#ifndef NP_OUT_PROMETHEUS_H
#define NP_OUT_PROMETHEUS_H

#include <stddef.h>
#include <stdio.h>

#include "stats/hist.h"
#include "stats/record.h"

/* What tells this result from others; a value of NULL is left out. */
struct np_label {
	const char *name, *value;
};

/*
 * A gauge for each number that is known, "netperf_" and its name in small letters, and a summary of
 * the times (hist may be NULL) in seconds. What nobody measured is
 * left out. Rates have a label "unit", too. At most NP_LABELS labels.
 */
enum { NP_LABELS = 8 };
void np_prometheus_print(FILE *out, const struct np_label *labels, size_t count,
			 const struct np_record *r, const struct np_hist *hist);

/* One value of a gauge, under its head lines. */
void np_prometheus_gauge(FILE *out, const char *name, const char *help,
			 const struct np_label *labels, size_t count, double value);

#endif
