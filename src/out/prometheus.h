/*
 * A result in the text format that Prometheus scrapes.
 */
#ifndef NP_OUT_PROMETHEUS_H
#define NP_OUT_PROMETHEUS_H

#include <stddef.h>
#include <stdio.h>

#include "stats/hist.h"
#include "stats/prometheus.h"
#include "stats/record.h"

/*
 * A gauge for each number that is known, "netperf_" and its name in small letters, and a summary of
 * the times (hist may be NULL) in seconds. What was not measured is
 * left out. Rates have a label "unit", too. At most NP_LABELS labels, which tell this result from
 * others.
 */
enum { NP_LABELS = 8 };
void np_prometheus_print(FILE *out, const struct np_label *labels, size_t count,
			 const struct np_record *r, const struct np_hist *hist);

#endif
