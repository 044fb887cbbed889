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

/* A time in ns as us; null for one that has no end, or is below 0. */
json_t *np_json_us(double ns);

/*
 * A path is a member's name behind those of the objects that it stands in, "skew/near"; objects are
 * made where they are missing. The object at a path: NULL without memory.
 */
json_t *np_json_part(json_t *o, const char *path);

/* Set the member at a path; null is none. 0, or -1 without memory. The value is taken over. */
int np_json_put(json_t *o, const char *path, json_t *v);

/* How a member of a struct is read. What is said behind a type is no value. */
enum np_json_kind {
	NP_JSON_FLAG,     /* bool */
	NP_JSON_SIGNED,   /* int32_t; below 0 */
	NP_JSON_COUNT,    /* uint32_t */
	NP_JSON_CHOICE,   /* uint32_t; 0: left to the system */
	NP_JSON_PORT,     /* uint32_t; 0 */
	NP_JSON_SIGNED64, /* int64_t; below 0 */
	NP_JSON_COUNT64,  /* uint64_t */
	NP_JSON_SIZE,     /* size_t */
	NP_JSON_NS,       /* int64_t nanoseconds, as microseconds; below 0, and what has no end */
	NP_JSON_US,       /* int64_t microseconds, as seconds; below 0 */
	NP_JSON_REAL,     /* double; no finite number */
	NP_JSON_REAL_NS,  /* double nanoseconds, as microseconds; likewise */
	NP_JSON_TEXT,     /* char[]; "" */
	NP_JSON_PATH,     /* const char *; NULL */
	NP_JSON_HIST,     /* struct np_hist *; NULL, or empty */
};

struct np_json_member {
	const char *path; /* NULL: the document has it elsewhere, or not at all */
	enum np_json_kind kind;
	size_t at;
};

/* Set members by a struct. 0, or -1 without memory. */
int np_json_members(json_t *o, const struct np_json_member *m, size_t count, const void *of);

/* Figures by their names, but those that were not measured or that netperf has withdrawn. A time
 * without an end is null. */
json_t *np_json_metrics(const struct np_record *r);

/*
 * The whole of a histogram: the counts of its cells in their order, where a number below 0 is as
 * many cells without any. null for an empty one.
 */
json_t *np_json_hist(const struct np_hist *h);

/* A bag: dots of names make objects in objects. null for NULL. */
json_t *np_json_bag(const struct np_bag *b);

#endif
