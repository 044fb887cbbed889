/*
 * What sessions have for the log goes by way of the daemon. A session that had the log's
 * descriptor, or standard error, could rewrite what others wrote there once strangers have taken it
 * over.
 */
#ifndef NETSERVER_RELAY_H
#define NETSERVER_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "netserver/lines.h"

/* A line under way, one packet. */
struct ns_line {
	int verb;         /* which kind of packet, for its reader */
	int level;        /* enum np_log_level */
	uint32_t dropped; /* lines before it that had no room on the way */
	bool is_event;
	char text[NP_LOG_EVENT];
};

/* ---- In the session's process ---- */

struct ns_relay {
	int fd, verb;
	uint32_t dropped;
};

/* A sink, with the struct as its context. Never waits: what has no room is counted. */
void ns_relay_sink(void *ctx, enum np_log_level level, bool is_event, const char *line);

/* ---- In the daemon ---- */

enum { NS_RELAYED_SHARE = 4 }; /* of NS_LINES one session's in the long run */

/*
 * Write a session's line, which may say anything, as one of that process: made printable, and a
 * limited number a second. What the operator has asked for (debug lines, by -v 2) counts for the
 * session alone. quiet: nothing above the log's own level.
 */
void ns_relay_write(const struct np_log *log, struct ns_lines *all, struct ns_bucket *own,
		    struct ns_line *line, long process, bool quiet);

#endif
