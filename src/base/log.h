/*
 * Log lines of the daemon and of what both programs share: free text, or events with fields
 * that machines can read. The sink (stderr, syslog) belongs to main(), which hands the struct
 * down.
 */
#ifndef NP_BASE_LOG_H
#define NP_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum np_log_level { NP_LOG_ERROR, NP_LOG_INFO, NP_LOG_DEBUG };

enum { NP_LOG_TEXT = 600, NP_LOG_EVENT = 1024 }; /* bytes of a line, its NUL included */

struct np_log {
	enum np_log_level level; /* lines above it are dropped */
	/* One line of printable ASCII; is_event: it is key=value already. */
	void (*sink)(void *ctx, enum np_log_level level, bool is_event, const char *line);
	void *ctx; /* for the sink */
};

/* Hand one line of text (cut at 599 bytes) to the sink. log may be NULL: silence. */
void np_log(const struct np_log *log, enum np_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * An event is a line of logfmt: event=refused peer=192.0.2.1 reason=max-sessions msg="two words".
 * A value that is more than a plain word stands in quotes, with \" and \\ escaped, and every byte
 * that is no printable ASCII character as \u00XX: what strangers influence can end neither value
 * nor line. Values are cut at 128 bytes as written, and a field that finds no room is left out.
 */
struct np_event {
	char line[NP_LOG_EVENT];
	size_t len;
};

/* Names of events and keys are our own words. */
void np_event_begin(struct np_event *e, const char *name);
void np_event_text(struct np_event *e, const char *key, const char *value);
void np_event_number(struct np_event *e, const char *key, uint64_t value);

/* Hand it to the sink, with the text (NULL: none) as field msg, as far as there is room. */
void np_log_event(const struct np_log *log, enum np_log_level level, const struct np_event *e,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * Where lines go, the context of the sinks below. They wait for no reader: a line that finds no
 * room is lost and counted, and the next one that finds some tells how many were.
 */
struct np_log_out {
	int fd;         /* of syslog's socket; -1: not connected */
	uint64_t lost;  /* lines, in all */
	uint64_t noted; /* of them, those that a line has told of */
};

/* A sink: "<program>[pid]: line" on standard error. */
void np_log_to_stderr(void *ctx, enum np_log_level level, bool is_event, const char *line);

/*
 * Connect to /dev/log. A process that closed what it inherited has to do that anew, or it would go
 * on writing to the number that the socket had, whatever that is now.
 */
void np_log_open_syslog(struct np_log_out *out);

/* A sink: to syslog, facility daemon. libc's syslog(3) waits for a reader. */
void np_log_to_syslog(void *ctx, enum np_log_level level, bool is_event, const char *line);

#endif
