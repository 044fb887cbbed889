#include "sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEP = 16 << 10, MOST = 64 << 20 };

static int __attribute__((format(printf, 3, 0)))
path_of(char path[PATH_MAX], const char *root, const char *fmt, va_list args)
{
	int at = snprintf(path, PATH_MAX, "%s", root != NULL ? root : "");
	int n = at < PATH_MAX ? vsnprintf(path + at, (size_t)(PATH_MAX - at), fmt, args) : -1;

	return n < 0 || n >= PATH_MAX - at ? -ENAMETOOLONG : 0;
}

/* A descriptor, or a negative errno. */
static int __attribute__((format(printf, 2, 0)))
open_path(const char *root, const char *fmt, va_list args)
{
	char path[PATH_MAX];
	int rc = path_of(path, root, fmt, args), fd;

	if (rc != 0) {
		return rc;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

int
np_file_open(const char *root, const char *path, ...)
{
	va_list args;
	int fd;

	va_start(args, path);
	fd = open_path(root, path, args);
	va_end(args);
	return fd;
}

/* Fill what there is. Returns the bytes, or a negative errno. */
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

static long __attribute__((format(printf, 4, 0)))
read_small(char *out, size_t size, const char *root, const char *fmt, va_list args)
{
	int fd = open_path(root, fmt, args);
	long n;

	out[0] = '\0';
	if (fd < 0) {
		return fd;
	}
	n = read_up_to(fd, out, size - 1);
	close(fd);
	out[n > 0 ? n : 0] = '\0';
	return n;
}

static long __attribute__((format(printf, 4, 0)))
read_line(char *out, size_t size, const char *root, const char *fmt, va_list args)
{
	long n = read_small(out, size, root, fmt, args);
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

long
np_file_read(char *out, size_t size, const char *root, const char *path, ...)
{
	va_list args;
	long n;

	va_start(args, path);
	n = read_small(out, size, root, path, args);
	va_end(args);
	return n;
}

long
np_file_line(char *out, size_t size, const char *root, const char *path, ...)
{
	va_list args;
	long n;

	va_start(args, path);
	n = read_line(out, size, root, path, args);
	va_end(args);
	return n;
}

int
np_file_number(int64_t *out, const char *root, const char *path, ...)
{
	char line[64], *end;
	va_list args;
	long n;

	va_start(args, path);
	n = read_line(line, sizeof(line), root, path, args);
	va_end(args);
	if (n < 0) {
		return (int)n;
	}
	errno = 0;
	*out = strtoll(line, &end, 10);
	return end == line || errno != 0 ? -EINVAL : 0;
}

static char *
read_whole(int fd, size_t *len, int *error)
{
	size_t room = STEP;
	char *text = malloc(room);

	*len = 0;
	*error = ENOMEM;
	while (text != NULL) {
		long n = read_up_to(fd, text + *len, room - *len - 1);
		char *more;

		if (n < 0) {
			*error = (int)-n;
			break;
		}
		*len += (size_t)n;
		if (*len < room - 1) {
			text[*len] = '\0';
			*error = 0;
			return text;
		}
		room *= 2;
		more = room <= MOST ? realloc(text, room) : NULL;
		if (more == NULL) {
			*error = room <= MOST ? ENOMEM : EFBIG;
			break;
		}
		text = more;
	}
	free(text);
	return NULL;
}

char *
np_file_all(size_t *len, int *error, const char *root, const char *path, ...)
{
	va_list args;
	char *text;
	int fd;

	va_start(args, path);
	fd = open_path(root, path, args);
	va_end(args);
	if (fd < 0) {
		*error = -fd;
		return NULL;
	}
	text = read_whole(fd, len, error);
	close(fd);
	return text;
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
