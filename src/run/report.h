/* From a test's outcome to named results. */
#ifndef NP_RUN_REPORT_H
#define NP_RUN_REPORT_H

#include "base/units.h"
#include "run/client.h"
#include "stats/record.h"

/*
 * Fill every row of the metric table that a test's outcome has a value for, in `unit`'s terms. Not
 * latency, means and confidence, which belong to all iterations: see run/repeat.h. The texts stay
 * the outcome's own.
 */
void np_report(const struct np_outcome *out, const struct np_unit *unit, struct np_record *r);

#endif
