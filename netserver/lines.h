/*
 * How many lines strangers can have written to the log: a number a second, then they are counted
 * only. The daemon has a bucket for what it says itself, and all sessions share another one.
 */
#ifndef NETSERVER_LINES_H
#define NETSERVER_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "netserver/guard.h"

enum { NS_LINES = 100 }; /* a second, twice as many in one go */

/* Zeroed: full. */
struct ns_lines {
	struct ns_bucket bucket;
	uint64_t left_out; /* lines since the last one that was written */
	uint64_t all;      /* that were left out before */
};

/* May one more be written at that time? If not, it counts. */
bool ns_lines_take(struct ns_lines *l, uint64_t now_ns);

/* Tell the log how many were left out, by an event of that kind, if any were. */
void ns_lines_tell(struct ns_lines *l, const struct np_log *log, const char *kind);

/* May one more be written now? If so, the log is told first how many were left out. */
bool ns_lines_may(struct ns_lines *l, const struct np_log *log);

/*
 * A sink before another one, which gets the lines that may be written, and those that only the
 * operator can have asked for.
 */
struct ns_limited {
	struct np_log log; /* with the sink behind it, and the level that the operator wants */
	struct ns_lines *lines;
};
void ns_limited_sink(void *ctx, enum np_log_level level, bool is_event, const char *line);

/* Put it before the log's sink. */
void ns_limit_log(struct ns_limited *ctx, struct np_log *log, struct ns_lines *lines);

#endif
