/* Log lines, free text or events with fields; main() chooses the sink (stderr, syslog). */
#ifndef NP_BASE_LOG_H
#define NP_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum np_log_level { NP_LOG_ERROR, NP_LOG_INFO, NP_LOG_DEBUG };

enum { NP_LOG_TEXT = 600, NP_LOG_EVENT = 1024 }; /* bytes of a line, its NUL included */

struct np_log {
	enum np_log_level level; /* lines above it are dropped */
	/* Called for each line, which is printable ASCII; is_event: it consists of key=value. */
	void (*sink)(void *ctx, enum np_log_level level, bool is_event, const char *line);
	void *ctx; /* for the sink */
};

/* Hand one line of text (cut at 599 bytes) to the sink. log NULL: do nothing. */
void np_log(const struct np_log *log, enum np_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * A line of logfmt: event=refused peer=192.0.2.1 reason=max-sessions msg="two words". A value that
 * is no plain word is quoted, with " and \ escaped and unprintable bytes as \u00XX: strangers' text
 * can't end it. Values are cut to 128 bytes as written; fields without room are left out.
 */
struct np_event {
	char line[NP_LOG_EVENT];
	size_t len;
};

/* Names of events and keys are our own words, and need no quotes. */
void np_event_begin(struct np_event *e, const char *name);
void np_event_text(struct np_event *e, const char *key, const char *value);
void np_event_number(struct np_event *e, const char *key, uint64_t value);

/* Hand it to the sink, with the text (fmt NULL: none) as field msg, cut to the room left. */
void np_log_event(const struct np_log *log, enum np_log_level level, const struct np_event *e,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The context of the sink below. It never waits: lines without room are lost, and counted. */
struct np_log_out {
	bool to_syslog; /* else to standard error */
	int fd;         /* of syslog's socket; -1: not connected */
	uint64_t lost;  /* how many lines were lost */
	uint64_t noted; /* how many of them were reported */
};

/* Connect to /dev/log, or anew. Close inherited descriptors before: later, out->fd may be lost. */
void np_log_open_syslog(struct np_log_out *out);

/*
 * A sink: "<program>[pid]: line" on standard error or, after np_log_open_syslog(), to syslog,
 * facility daemon. (libc's syslog(3) would wait for the reader.)
 */
void np_log_write(void *ctx, enum np_log_level level, bool is_event, const char *line);

#endif
