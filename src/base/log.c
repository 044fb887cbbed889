#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "base/text.h"

enum { VALUE = 128 }; /* bytes of an event's value as written */

static bool
wants(const struct np_log *log, enum np_log_level level)
{
	return log != NULL && log->sink != NULL && level <= log->level;
}

void
np_log(const struct np_log *log, enum np_log_level level, const char *fmt, ...)
{
	char line[NP_LOG_TEXT];
	va_list ap;

	if (!wants(log, level)) {
		return;
	}
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/*
	 * What a peer sent may stand in here: it must neither look like lines of ours nor talk to a
	 * terminal, which some do with bytes above 127, too.
	 */
	np_text_printable(line);
	log->sink(log->ctx, level, false, line);
}

/* ---- Events ---- */

static bool
is_printable(unsigned char c)
{
	return c >= ' ' && c <= '~';
}

/* A word that every reader of logfmt takes as it stands. */
static bool
is_plain(const char *value)
{
	for (const char *c = value; *c != '\0'; c++) {
		if (!is_printable((unsigned char)*c) || strchr(" \"=\\", *c) != NULL) {
			return false;
		}
	}
	return value[0] != '\0';
}

/* How one byte is written inside quotes. Returns the length. */
static size_t
escaped(char out[8], unsigned char c)
{
	if (!is_printable(c)) {
		return (size_t)snprintf(out, 8, "\\u%04x", c);
	}
	return (size_t)snprintf(out, 8, c == '"' || c == '\\' ? "\\%c" : "%c", c);
}

/* Returns the length; always less than room, which is at least 3. */
static size_t
put_quoted(char *text, size_t room, const char *value)
{
	size_t n = 0;
	char byte[8];

	text[n++] = '"';
	for (const char *c = value; *c != '\0'; c++) {
		size_t len = escaped(byte, (unsigned char)*c);

		if (n + len + 2 > room) {
			break;
		}
		memcpy(text + n, byte, len);
		n += len;
	}
	text[n++] = '"';
	text[n] = '\0';
	return n;
}

size_t
np_logfmt(char *text, size_t size, size_t len, const char *key, const char *value, size_t max)
{
	size_t key_len = strlen(key) + (len > 0) + 1, room;

	if (len + key_len + 3 > size) {
		return len;
	}
	snprintf(text + len, size - len, "%s%s=", len > 0 ? " " : "", key);
	len += key_len;
	room = size - len;
	room = room < max + 1 ? room : max + 1;
	if (is_plain(value) && strlen(value) < room) {
		memcpy(text + len, value, strlen(value) + 1);
		return len + strlen(value);
	}
	return len + put_quoted(text + len, room, value);
}

void
np_event_begin(struct np_event *e, const char *name)
{
	e->len = 0;
	np_event_text(e, "event", name);
}

void
np_event_text(struct np_event *e, const char *key, const char *value)
{
	e->len = np_logfmt(e->line, sizeof(e->line), e->len, key, value, VALUE);
}

void
np_event_number(struct np_event *e, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	np_event_text(e, key, text);
}

void
np_log_event(const struct np_log *log, enum np_log_level level, const struct np_event *e,
	     const char *fmt, ...)
{
	struct np_event whole;
	char text[NP_LOG_TEXT];
	va_list ap;

	if (!wants(log, level)) {
		return;
	}
	memcpy(whole.line, e->line, e->len + 1);
	if (fmt != NULL) {
		va_start(ap, fmt);
		vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		np_logfmt(whole.line, sizeof(whole.line), e->len, "msg", text, sizeof(whole.line));
	}
	log->sink(log->ctx, level, true, whole.line);
}

/* ---- Sinks ---- */

void
np_log_to_stderr(void *ctx, enum np_log_level level, bool is_event, const char *line)
{
	char text[NP_LOG_EVENT + 80];
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	int n = snprintf(text, sizeof(text), "%s[%ld]: %s\n", program_invocation_short_name,
			 (long)getpid(), line);

	/* A pipe that nobody empties must not hold up a daemon and all of its clients. */
	if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) != 0) {
		(void)!write(STDERR_FILENO, text,
			     (size_t)n < sizeof(text) ? (size_t)n : sizeof(text));
	}
}

void
np_log_open_syslog(const char *ident)
{
	closelog();
	openlog(ident, LOG_PID | LOG_NDELAY, LOG_DAEMON);
}

void
np_log_to_syslog(void *ctx, enum np_log_level level, bool is_event, const char *line)
{
	static const int priority[] = { LOG_ERR, LOG_INFO, LOG_DEBUG };

	syslog(priority[level], "%s", line);
}
