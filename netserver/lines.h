/*
 * A limit for log lines that clients cause: a number a second, further ones are only counted. The
 * daemon has a bucket for its own lines, and all sessions share another one.
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
	uint64_t all;      /* that were left out before that */
};

/* May one more be written at that time? If not, it is counted. */
bool ns_lines_take(struct ns_lines *l, uint64_t now_ns);

/* Log how many were left out, as an event of that kind, if any were. */
void ns_lines_tell(struct ns_lines *l, const struct np_log *log, const char *kind);

/* May one more be written now? If so, log first how many were left out. */
bool ns_lines_may(struct ns_lines *l, const struct np_log *log);

/*
 * A sink before another one. It passes on the lines that may be written, and all debug lines, which
 * only the operator can have asked for.
 */
struct ns_limited {
	struct np_log log; /* with the sink behind it, and the level that the operator wants */
	struct ns_lines *lines;
};

/* Put it before the log's sink. */
void ns_limit_log(struct ns_limited *ctx, struct np_log *log, struct ns_lines *lines);

#endif
