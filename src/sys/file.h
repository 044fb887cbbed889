/*
 * Small files of /proc and /sys, below a root that tests put elsewhere.
 */
#ifndef NP_SYS_FILE_H
#define NP_SYS_FILE_H

#include <stddef.h>
#include <stdint.h>

/* root, then the path by format. Everything up to size - 1 bytes, with a NUL behind it. Returns the
 * number of bytes, or a negative errno. */
long np_file_read(char *out, size_t size, const char *root, const char *path, ...)
    __attribute__((format(printf, 4, 5)));

/* The first line, without blanks around it. Returns its length, or a negative errno. */
long np_file_line(char *out, size_t size, const char *root, const char *path, ...)
    __attribute__((format(printf, 4, 5)));

/* The first number, decimal and signed. Returns 0, or a negative errno: -EINVAL for none. */
int np_file_number(int64_t *out, const char *root, const char *path, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * All of a file, to be freed: NULL with *error when it can't be read or has more than 64 MiB. *len
 * in bytes, without the NUL behind them.
 */
char *np_file_all(size_t *len, int *error, const char *root, const char *path, ...)
    __attribute__((format(printf, 4, 5)));

/* A descriptor for np_file_again(), or a negative errno. */
int np_file_open(const char *root, const char *path, ...) __attribute__((format(printf, 2, 3)));

/*
 * Of a file that is held open, from its beginning: up to size - 1 bytes, with a NUL behind them.
 * Returns the number of bytes, or a negative errno. A file of /proc that fits tells the present.
 */
long np_file_again(char *out, size_t size, int fd);

/* Where a symbolic link leads, its last word alone: "virtio2" of "../../../virtio2". As above. */
long np_file_link(char *out, size_t size, const char *root, const char *path, ...)
    __attribute__((format(printf, 4, 5)));

#endif
