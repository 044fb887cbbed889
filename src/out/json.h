/* Results as JSON (doc/netperf-run.schema.json). Callers own values returned; NULL: no memory. */
#ifndef NP_OUT_JSON_H
#define NP_OUT_JSON_H

#include <jansson.h>

#include "base/bag.h"
#include "stats/hist.h"
#include "stats/record.h"

/* The name of the format, followed by a version: doc/json.md says when it changes. */
#define NP_JSON_SCHEMA "plumbline-netperf/"
enum { NP_JSON_NUMBER = 3 };

/* One line of ASCII, safe for a terminal, with doubles that are read back exactly. */
#define NP_JSON_FLAGS (JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17))

/* A text, with U+FFFD for bytes that are not UTF-8; null for NULL. */
json_t *np_json_text(const char *text);

/* A number; null if it is not finite. */
json_t *np_json_real(double v);

/* A time in ns as us; null if it is infinite or negative. */
json_t *np_json_us(double ns);

/* The object at a path such as "skew/near"; missing ones are made. NULL: no memory. */
json_t *np_json_part(json_t *o, const char *path);

/* Set the member at a path, unless v is null. Takes ownership of v. Returns 0; -1: no memory. */
int np_json_put(json_t *o, const char *path, json_t *v);

/* The type of a member of a struct; after it, the value that means none. */
enum np_json_kind {
	NP_JSON_FLAG,     /* bool */
	NP_JSON_SIGNED,   /* int32_t; below 0 */
	NP_JSON_COUNT,    /* uint32_t */
	NP_JSON_CHOICE,   /* uint32_t; 0, the default of the system */
	NP_JSON_PORT,     /* uint32_t; 0 */
	NP_JSON_SIGNED64, /* int64_t; below 0 */
	NP_JSON_COUNT64,  /* uint64_t */
	NP_JSON_SIZE,     /* size_t */
	NP_JSON_NS,       /* int64_t nanoseconds, as microseconds; below 0, and infinite */
	NP_JSON_US,       /* int64_t microseconds, as seconds; below 0 */
	NP_JSON_REAL,     /* double; not finite */
	NP_JSON_REAL_NS,  /* double nanoseconds, as microseconds; not finite */
	NP_JSON_TEXT,     /* char[]; "" */
	NP_JSON_STRING,   /* const char *; NULL */
	NP_JSON_HIST,     /* struct np_hist *; NULL, or empty */
};

struct np_json_member {
	const char *path; /* NULL: not here */
	enum np_json_kind kind;
	size_t at; /* its offset */
};

/* Set members from a struct. Returns 0; -1: no memory. */
int np_json_members(json_t *o, const struct np_json_member *m, size_t count, const void *base);

/* The measured figures by name, without those that netperf has withdrawn. Infinite: null. */
json_t *np_json_metrics(const struct np_record *r);

/* A histogram: the counts of its cells, -N for N empty ones. null for an empty one. */
json_t *np_json_hist(const struct np_hist *h);

/* A bag: dots in names nest objects; what could not be read is in "unread". null for NULL. */
json_t *np_json_bag(const struct np_bag *b);

#endif
