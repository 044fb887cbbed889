/*
 * Log lines that clients cause, limited per second: further ones are counted. One limit is for the
 * daemon, one for all sessions. These send theirs to the daemon: with the log's descriptor or
 * standard error, a compromised one could overwrite the lines of others.
 */
#ifndef NETSERVER_LINES_H
#define NETSERVER_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "netserver/guard.h"

enum {
	NS_LINES = 100,      /* a second, */
	NS_LINES_S = 2,      /* and those of two seconds in a burst */
	NS_RELAYED_SHARE = 4 /* a session gets this part of NS_LINES in the long run */
};

/* Zeroed: a whole burst is allowed. */
struct ns_lines {
	struct ns_share share;
	uint64_t left_out; /* so far */
	uint64_t told;     /* how many of them a line has told of */
};

/* May one more be written then, about a client from there (NULL: any)? If not, it is counted. */
bool ns_lines_take(struct ns_lines *l, const struct ns_place *who, uint64_t now_ns);

/* May one more be written now? If so, log first how many were left out. */
bool ns_lines_may(struct ns_lines *l, const struct ns_place *who, const struct np_log *log);

/* A sink before another one: lines within the limit, and all debug lines with -v 2. */
struct ns_limited {
	struct np_log log; /* with the sink behind it, and the level that the operator wants */
	struct ns_lines *lines;
};

/* Put *ctx before the log's sink. It has to live as long. */
void ns_limit_log(struct ns_limited *ctx, struct np_log *log, struct ns_lines *lines);

/* A line on its way from a session's process to the daemon, one packet. */
struct ns_line {
	int type;         /* of the message (enum ns_message_type) */
	int level;        /* enum np_log_level */
	uint32_t dropped; /* lines before it that could not be sent */
	bool is_event;
	char text[NP_LOG_EVENT];
};

struct ns_relay {
	int fd, type;
	uint32_t dropped;
};

/* A sink, with a struct ns_relay as its context. Never waits: counts lines that can't be sent. */
void ns_relay_sink(void *ctx, enum np_log_level level, bool is_event, const char *line);

/*
 * In the daemon: log a session's line, made printable and limited per second. The operator's debug
 * lines (-v 2) count for the session alone. quiet: nothing above the log's own level.
 */
void ns_relay_write(const struct np_log *log, struct ns_lines *all, struct ns_session *s,
		    struct ns_line *line, bool quiet);

#endif
