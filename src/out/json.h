/*
 * Results as JSON (by jansson), and back: figures, histograms, bags of evidence, and how a result
 * is shown. What these objects hold is said in doc/netperf-run.schema.json.
 *
 * Functions that make a value return it for the caller to own, NULL without memory. Those that read
 * one take whatever a stranger's file may hold: they return NP_EUSAGE and name what is wrong. Texts
 * that they hand out are the JSON value's own.
 */
#ifndef NP_OUT_JSON_H
#define NP_OUT_JSON_H

#include <jansson.h>

#include "base/bag.h"
#include "base/err.h"
#include "out/look.h"

/* What a document is named by, with a number behind it; the one that is written, and the highest
 * that is read. doc/json.md says what raises it. */
#define NP_JSON_SCHEMA "plumbline-netperf/"
enum { NP_JSON_NUMBER = 2 };

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

/* Into a zeroed record; unknown names are ignored, null leaves a figure without value. */
int np_json_read_metrics(const json_t *o, struct np_record *r, struct np_err *err);

/*
 * What netperf prints for figures that are null, in printf(3)'s words: where that is not the -1, U
 * or nothing of a figure without a value.
 */
json_t *np_json_oddities(const struct np_record *r);
int np_json_read_oddities(const json_t *o, struct np_record *r, struct np_err *err);

/*
 * The whole of a histogram: a pair [smallest time, count] for each cell in use. null for an empty
 * one. Reading adds to what is in h.
 */
json_t *np_json_hist(const struct np_hist *h);
int np_json_read_hist(const json_t *o, struct np_hist *h, struct np_err *err);

/* A bag; null for NULL. */
json_t *np_json_bag(const struct np_bag *b);
int np_json_read_bag(const json_t *o, struct np_bag *b, struct np_err *err);

json_t *np_json_look(const struct np_look *l);
int np_json_read_look(const json_t *o, struct np_look *l, struct np_err *err);

#endif
