/*
 * Results as JSON (by jansson): figures, histograms, bags of evidence. What these objects hold is
 * said in doc/netperf-run.schema.json. Functions return a value for the caller to own, NULL without
 * memory.
 */
#ifndef NP_OUT_JSON_H
#define NP_OUT_JSON_H

#include <jansson.h>

#include "base/bag.h"
#include "stats/hist.h"
#include "stats/record.h"

/* What a document is named by, with a number behind it: doc/json.md says what raises it. */
#define NP_JSON_SCHEMA "plumbline-netperf/"
enum { NP_JSON_NUMBER = 3 };

/* How the document is written: in one line of ASCII, for a terminal may show it, and so that each
 * double is read back as it was. */
#define NP_JSON_FLAGS (JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17))

/* A text, in which bytes that are no UTF-8 become U+FFFD; null for NULL. */
json_t *np_json_text(const char *text);

/* A number; null for what is not finite. */
json_t *np_json_real(double v);

/* Every figure by its name, null for what was not measured; but those that netperf has withdrawn.
 */
json_t *np_json_metrics(const struct np_record *r);

/*
 * The whole of a histogram: a pair [smallest time, count] for each cell in use. null for an empty
 * one.
 */
json_t *np_json_hist(const struct np_hist *h);

/* A bag; null for NULL. */
json_t *np_json_bag(const struct np_bag *b);

#endif
