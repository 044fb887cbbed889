#include "sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fds.h"

enum { STEP = 16 << 10, MOST = 64 << 20 }; /* bytes read of a whole file: at first, and at most */

/* Write root and the formatted path after it. 0, or -ENAMETOOLONG. */
static int __attribute__((format(printf, 3, 0)))
path_of(char path[PATH_MAX], const char *root, const char *fmt, va_list args)
{
	int at = snprintf(path, PATH_MAX, "%s", root != NULL ? root : "");
	int n = at < PATH_MAX ? vsnprintf(path + at, (size_t)(PATH_MAX - at), fmt, args) : -1;

	return n < 0 || n >= PATH_MAX - at ? -ENAMETOOLONG : 0;
}

int
np_file_open(const char *root, const char *path, ...)
{
	char full[PATH_MAX];
	va_list args;
	int rc, fd;

	va_start(args, path);
	rc = path_of(full, root, path, args);
	va_end(args);
	fd = rc == 0 ? open(full, O_RDONLY | O_CLOEXEC) : rc;
	return rc == 0 && fd < 0 ? -errno : fd;
}

/* Read until out is full or the file ends. Returns the bytes, or a negative errno. */
static long
read_up_to(int fd, char *out, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = read(fd, out + len, size - len);

		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n < 0) {
			return -errno;
		}
		if (n == 0) {
			break;
		}
		len += (size_t)n;
	}
	return (long)len;
}

long
np_file_read_of(char *out, size_t size, int fd)
{
	long n = fd < 0 ? fd : read_up_to(fd, out, size - 1);

	np_fds_close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n;
}

long
np_file_line_of(char *out, size_t size, int fd)
{
	long n = np_file_read_of(out, size, fd);
	size_t from;

	if (n < 0) {
		return n;
	}
	out[strcspn(out, "\n")] = '\0';
	from = strspn(out, " \t");
	n = (long)strlen(out + from);
	memmove(out, out + from, (size_t)n + 1);
	while (n > 0 && (out[n - 1] == ' ' || out[n - 1] == '\t')) {
		out[--n] = '\0';
	}
	return n;
}

int
np_file_number_of(int64_t *out, int fd)
{
	char line[64], *end;
	long n = np_file_line_of(line, sizeof(line), fd);

	if (n < 0) {
		return (int)n;
	}
	errno = 0;
	*out = strtoll(line, &end, 10);
	return end == line || errno != 0 ? -EINVAL : 0;
}

char *
np_file_all_of(int fd)
{
	size_t room = STEP / 2, len = 0;
	int failed = fd < 0 ? -fd : 0;
	char *text = NULL;

	while (failed == 0) {
		char *more = room < MOST ? realloc(text, 2 * room) : NULL;
		long n;

		if (more == NULL) {
			failed = room < MOST ? ENOMEM : EFBIG;
			break;
		}
		text = more;
		room *= 2;
		n = read_up_to(fd, text + len, room - len - 1);
		failed = n < 0 ? (int)-n : 0;
		len += n > 0 ? (size_t)n : 0;
		if (len < room - 1) { /* the file has ended */
			text[len] = '\0';
			break;
		}
	}
	np_fds_close(fd);
	if (failed == 0) {
		return text;
	}
	free(text);
	errno = failed;
	return NULL;
}

long
np_file_again(char *out, size_t size, int fd)
{
	ssize_t n;

	do {
		n = pread(fd, out, size - 1, 0);
	} while (n < 0 && errno == EINTR);
	out[n > 0 ? n : 0] = '\0';
	return n < 0 ? -errno : n;
}

long
np_file_link(char *out, size_t size, const char *root, const char *path, ...)
{
	char full[PATH_MAX], to[PATH_MAX];
	const char *last;
	va_list args;
	ssize_t n;
	int rc;

	out[0] = '\0';
	va_start(args, path);
	rc = path_of(full, root, path, args);
	va_end(args);
	if (rc != 0) {
		return rc;
	}
	n = readlink(full, to, sizeof(to) - 1);
	if (n < 0) {
		return -errno;
	}
	to[n] = '\0';
	last = strrchr(to, '/');
	last = last != NULL ? last + 1 : to;
	return snprintf(out, size, "%s", last);
}
