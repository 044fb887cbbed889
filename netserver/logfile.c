#include "netserver/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/trusted.h"

/* As much as a pipe takes whole; a line of text fits even if each byte of it is escaped. */
enum { LINE = 4096 };

static const char stderr_name[] = "/dev/stderr";

/* ---- Opening ---- */

/* A descriptor to append to, or -1 with err filled. */
static int
open_file(const char *path, bool *regular, struct np_err *err)
{
	int fd;

	*regular = strcmp(path, stderr_name) != 0;
	if (!*regular) {
		fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
		if (fd < 0) {
			np_fail(err, NP_ESYS, errno, "%s", path);
		}
		return fd;
	}
	return np_trusted_open(path, NP_TRUSTED_LOG, err);
}

int
ns_logfile_open(struct ns_logfile *f, const char *path, const struct np_log *before,
		struct np_err *err)
{
	memset(f, 0, sizeof(*f));
	f->fd = -1;
	f->before = *before;
	if (np_trusted_path(f->path, sizeof(f->path), path, err) != NP_OK) {
		return err->code;
	}
	f->fd = open_file(f->path, &f->regular, err);
	return f->fd >= 0 ? NP_OK : err->code;
}

/* To the sink that was there first; but that may be the standard error that is stuck just now. */
#define tell_before(f, ...)                                                                        \
	((f)->regular ? np_log(&(f)->before, NP_LOG_ERROR, __VA_ARGS__) : (void)0)

int
ns_logfile_reopen(struct ns_logfile *f, struct np_err *err)
{
	bool regular;
	int fd = open_file(f->path, &regular, err);

	if (fd < 0) {
		struct np_log own = { .sink = ns_logfile_sink, .ctx = f };

		np_log(&own, NP_LOG_ERROR, "log file: %s; the old one is kept", err->msg);
		tell_before(f, "log file: %s; the old one is kept", err->msg);
		return err->code;
	}
	/* The number stays: sessions are told which descriptor to keep. */
	if (dup3(fd, f->fd, O_CLOEXEC) < 0) {
		close(fd);
		return np_fail(err, NP_ESYS, errno, "use %s for the log", f->path);
	}
	close(fd);
	f->torn = false;
	return NP_OK;
}

void
ns_logfile_close(struct ns_logfile *f)
{
	if (f->fd >= 0) {
		close(f->fd);
	}
	f->fd = -1;
}

/* ---- Writing ---- */

/* Would write(2) wait? A terminal, a pipe or a socket may be anybody's. */
static bool
has_room(const struct ns_logfile *f)
{
	struct pollfd p = { .fd = f->fd, .events = POLLOUT };

	return f->regular || poll(&p, 1, 0) != 0;
}

/* Returns 0, or the errno. */
static int
write_line(struct ns_logfile *f, const char *line, size_t len)
{
	ssize_t n;

	if (!has_room(f)) {
		return EAGAIN;
	}
	do {
		n = write(f->fd, line, len);
	} while (n < 0 && errno == EINTR);
	if (n == (ssize_t)len) {
		f->torn = false;
		return 0;
	}
	if (n >= 0) {
		/* What does not fit on a disk says so by the next call only. */
		f->torn = f->torn || n > 0;
		return ENOSPC;
	}
	return errno;
}

/* "time=... pid=... level=..." and a newline before it where a torn line stands. Its length. */
static size_t
begin_line(char line[LINE], bool torn, enum np_log_level level)
{
	struct timespec now;
	struct tm tm;
	size_t n = torn ? 1 : 0;

	line[0] = '\n';
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	n += strftime(line + n, LINE - n, "time=%Y-%m-%dT%H:%M:%S", &tm);
	n += (size_t)snprintf(line + n, LINE - n, ".%06ldZ pid=%ld level=%s", now.tv_nsec / 1000,
			      (long)getpid(), np_log_level_name(level));
	return n;
}

static int
end_line(struct ns_logfile *f, char line[LINE], size_t len)
{
	line[len++] = '\n';
	return write_line(f, line, len);
}

/* Returns 0, or why that could not be told either. */
static int
tell_dropped(struct ns_logfile *f)
{
	char line[LINE];
	size_t n = begin_line(line, f->torn, NP_LOG_ERROR);

	n += (size_t)snprintf(line + n, sizeof(line) - n, " event=log-lines-dropped lines=%" PRIu64,
			      f->dropped);
	n = np_logfmt(line, sizeof(line) - 1, n, "reason", strerror(f->why), LINE);
	return end_line(f, line, n);
}

static void
note_dropped(struct ns_logfile *f, int why)
{
	if (f->dropped++ == 0) {
		f->why = why;
		tell_before(f, "log file: write to %.300s: %s; lines are lost", f->path,
			    strerror(why));
	}
}

void
ns_logfile_sink(void *ctx, enum np_log_level level, bool is_event, const char *line)
{
	struct ns_logfile *f = ctx;
	int why = f->dropped > 0 ? tell_dropped(f) : 0;
	char whole[LINE];
	size_t n;

	if (why == 0) {
		f->dropped = 0;
		n = begin_line(whole, f->torn, level);
		if (is_event) {
			n += (size_t)snprintf(whole + n, sizeof(whole) - 1 - n, " %s", line);
		} else {
			n = np_logfmt(whole, sizeof(whole) - 1, n, "msg", line, LINE);
		}
		why = end_line(f, whole, n);
	}
	if (why != 0) {
		note_dropped(f, why);
	}
}
