/*
 * How many lines strangers can have written to the log: a number a second, then they are counted
 * only. The daemon has a bucket for what it says itself, and all sessions share another one.
 */
#ifndef NETSERVER_LINES_H
#define NETSERVER_LINES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"

enum { NS_LINES = 100 }; /* a second, twice as many in one go */

/* Zeroed: full. */
struct ns_lines {
	_Atomic uint64_t due_ns;   /* when the bucket would be full again */
	_Atomic uint64_t left_out; /* lines since the last one that was written */
};

/*
 * One that processes share which are forked later; NULL when there is no memory. A session that was
 * taken over can write anything to it: it gains what it could have by logging all the time.
 */
struct ns_lines *ns_lines_new(void);
void ns_lines_free(struct ns_lines *l);

/* May one more be written at that time? If not, it counts. */
bool ns_lines_take(struct ns_lines *l, uint64_t now_ns);

/* The same now; if so, the log is told first how many were left out. */
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

/* Put it before the log's sink; without a bucket all is as it was. */
void ns_limit_log(struct ns_limited *ctx, struct np_log *log, struct ns_lines *lines);

#endif
