/*
 * Log lines of the daemon and of what both programs share. The sink (stderr, syslog) belongs to
 * main(), which hands the struct down.
 */
#ifndef NP_BASE_LOG_H
#define NP_BASE_LOG_H

enum np_log_level { NP_LOG_ERROR, NP_LOG_INFO, NP_LOG_DEBUG };

struct np_log {
	enum np_log_level level; /* lines above it are dropped */
	void (*sink)(enum np_log_level level, const char *line);
};

/* Hand one line (without newline, cut at 600 bytes) to the sink. log may be NULL: silence. */
void np_log(const struct np_log *log, enum np_log_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A sink: "<program>[pid]: line" on stderr. */
void np_log_to_stderr(enum np_log_level level, const char *line);

/* A sink: syslog(3), facility daemon; the identity is that of openlog(3). */
void np_log_to_syslog(enum np_log_level level, const char *line);

#endif
