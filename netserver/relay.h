/*
 * Sessions send their log lines to the daemon, which writes them. A compromised session that had
 * the log's descriptor, or standard error, could overwrite the lines of others.
 */
#ifndef NETSERVER_RELAY_H
#define NETSERVER_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log.h"
#include "netserver/lines.h"

/* A line on its way to the daemon, one packet. */
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

/* A sink, with the struct as its context. Never waits: lines that find no room are counted. */
void ns_relay_sink(void *ctx, enum np_log_level level, bool is_event, const char *line);

/* ---- In the daemon ---- */

enum { NS_RELAYED_SHARE = 4 }; /* a session gets this part of NS_LINES in the long run */

/*
 * Log a line of a session's process. Its text is not trusted: it is made printable, and the lines
 * per second are limited. Debug lines that the operator has asked for (-v 2) count for the session
 * alone. quiet: nothing above the log's own level.
 */
void ns_relay_write(const struct np_log *log, struct ns_lines *all, struct ns_bucket *own,
		    struct ns_line *line, long process, bool quiet);

#endif
