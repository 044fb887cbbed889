#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/text.h"

#ifndef RWF_NOWAIT /* older C libraries */
#define RWF_NOWAIT 8
#endif

enum { VALUE = 128 }; /* bytes of an event's value as written */

/* Are lines of this level to be written? */
static bool
is_wanted(const struct np_log *log, enum np_log_level level)
{
	return log != NULL && log->sink != NULL && level <= log->level;
}

void
np_log(const struct np_log *log, enum np_log_level level, const char *fmt, ...)
{
	char line[NP_LOG_TEXT];
	va_list ap;

	if (!is_wanted(log, level)) {
		return;
	}
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	/* A peer's text must not fake a line or control terminals; some obey bytes above 127. */
	np_text_printable(line);
	log->sink(log->ctx, level, false, line);
}

static bool
is_printable(unsigned char c)
{
	return c >= ' ' && c <= '~';
}

/* May the value be written without quotes? */
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

/* Write the value in quotes, cut to the room (3 or more). Returns the length, below room. */
static size_t
put_quoted(char *text, size_t room, const char *value)
{
	size_t n = 0;
	char one[8];

	text[n++] = '"';
	for (const char *c = value; *c != '\0'; c++) {
		unsigned char byte = (unsigned char)*c;
		int len = is_printable(byte)
			      ? snprintf(one, sizeof(one),
					 byte == '"' || byte == '\\' ? "\\%c" : "%c", byte)
			      : snprintf(one, sizeof(one), "\\u%04x", byte);

		if (n + (size_t)len + 2 > room) {
			break;
		}
		memcpy(text + n, one, (size_t)len);
		n += (size_t)len;
	}
	text[n++] = '"';
	text[n] = '\0';
	return n;
}

/*
 * Append " key=value" (no blank if first), the value cut to max as written. Returns the new length;
 * len if there is no room for the key, two quotes and a NUL.
 */
static size_t
add_field(char *text, size_t size, size_t len, const char *key, const char *value, size_t max)
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
	e->len = add_field(e->line, sizeof(e->line), e->len, key, value, VALUE);
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

	if (!is_wanted(log, level)) {
		return;
	}
	memcpy(whole.line, e->line, e->len + 1);
	if (fmt != NULL) {
		va_start(ap, fmt);
		vsnprintf(text, sizeof(text), fmt, ap);
		va_end(ap);
		add_field(whole.line, sizeof(whole.line), e->len, "msg", text, sizeof(whole.line));
	}
	log->sink(log->ctx, level, true, whole.line);
}

enum { LINE = NP_LOG_EVENT + 80 }; /* a line after its priority, date, program and process */

/*
 * write(2) that does not wait for a reader: send() on a socket, RWF_NOWAIT on a pipe. Pipes before
 * Linux 6.4 lack that: poll(2) first, and wait only if another writer fills the pipe meanwhile.
 */
static ssize_t
write_now(int fd, const char *text, size_t size)
{
	const struct iovec part = { .iov_base = (char *)text, .iov_len = size };
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	ssize_t n = send(fd, text, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	struct stat st;

	if (n >= 0 || errno != ENOTSOCK) {
		return n;
	}
	if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)) {
		n = syscall(SYS_pwritev2, fd, &part, 1, -1L, -1L, RWF_NOWAIT);
		if (n >= 0 || (errno != EOPNOTSUPP && errno != EINVAL && errno != ENOSYS)) {
			return n;
		}
		if (poll(&p, 1, 0) != 1 || (p.revents & POLLOUT) == 0) {
			return -1;
		}
	}
	return write(fd, text, size);
}

/* Write a line on standard error, which has no priorities. */
static bool
put_on_stderr(struct np_log_out *out, int priority, const char *line)
{
	char text[LINE];
	int n = snprintf(text, sizeof(text), "%s[%ld]: %s\n", program_invocation_short_name,
			 (long)getpid(), line);
	size_t size = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text);

	return write_now(STDERR_FILENO, text, size) == (ssize_t)size;
}

void
np_log_open_syslog(struct np_log_out *out)
{
	static const struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = _PATH_LOG };
	static const int types[] = { SOCK_DGRAM, SOCK_STREAM }; /* daemons have one of them */

	np_fds_close(out->fd);
	out->fd = -1;
	out->to_syslog = true;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]) && out->fd < 0; i++) {
		out->fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (out->fd >= 0 &&
		    connect(out->fd, (const struct sockaddr *)&at, sizeof(at)) != 0) {
			np_fds_close(out->fd);
			out->fd = -1;
		}
	}
}

/* Send a line in RFC 3164's format; a NUL ends it on a stream. Half a line ends the connection. */
static bool
put_in_syslog(struct np_log_out *out, int priority, const char *line)
{
	time_t now = time(NULL);
	char text[LINE], date[32];
	struct tm tm;
	size_t size;

	strftime(date, sizeof(date), "%h %e %T", localtime_r(&now, &tm));
	size = (size_t)snprintf(text, sizeof(text), "<%d>%s %s[%ld]: %s", LOG_DAEMON | priority,
				date, program_invocation_short_name, (long)getpid(), line);
	size = size < sizeof(text) ? size : sizeof(text) - 1;
	for (int i = 0; i <= 1; i++) {
		int type = 0;
		socklen_t len = sizeof(type);
		bool is_stream = getsockopt(out->fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 &&
				 type == SOCK_STREAM;
		size_t whole = size + is_stream;
		ssize_t n = send(out->fd, text, whole, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n == (ssize_t)whole) {
			return true;
		}
		if (n < 0 && (errno == EAGAIN || errno == ENOBUFS)) {
			return false;
		}
		np_log_open_syslog(out); /* syslog may have been restarted: try once more */
	}
	return false;
}

void
np_log_write(void *ctx, enum np_log_level level, bool is_event, const char *line)
{
	static const int priorities[] = { LOG_ERR, LOG_INFO, LOG_DEBUG };
	struct np_log_out *out = ctx;
	bool (*put)(struct np_log_out * out, int priority, const char *line) =
	    out->to_syslog ? put_in_syslog : put_on_stderr;
	struct np_event e;

	if (out->lost > out->noted) {
		uint64_t lost = out->lost;

		np_event_begin(&e, "lines-lost");
		np_event_number(&e, "lines", lost - out->noted);
		out->noted = put(out, LOG_INFO, e.line) ? lost : out->noted;
	}
	out->lost += !put(out, priorities[level], line);
}
