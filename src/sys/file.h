/*
 * Small files of /proc and /sys, below a root that tests put elsewhere.
 */
#ifndef NP_SYS_FILE_H
#define NP_SYS_FILE_H

#include <stddef.h>
#include <stdint.h>

/* root, then the path by format. A descriptor, or a negative errno. */
int np_file_open(const char *root, const char *path, ...) __attribute__((format(printf, 2, 3)));

/*
 * Each takes what np_file_open() returned, and closes it; those without _of are given its
 * arguments.
 *
 * Everything up to size - 1 bytes, with a NUL behind it. Returns the number of bytes, or a negative
 * errno, and then the text is empty.
 */
long np_file_read_of(char *out, size_t size, int fd);
#define np_file_read(out, size, ...) np_file_read_of(out, size, np_file_open(__VA_ARGS__))

/* The first line, without blanks around it. Returns its length, or a negative errno. */
long np_file_line_of(char *out, size_t size, int fd);
#define np_file_line(out, size, ...) np_file_line_of(out, size, np_file_open(__VA_ARGS__))

/* The first number, decimal and signed. Returns 0, or a negative errno: -EINVAL for none. */
int np_file_number_of(int64_t *out, int fd);
#define np_file_number(out, ...) np_file_number_of(out, np_file_open(__VA_ARGS__))

/* All of a file, to be freed: NULL with *error when it can't be read or has more than 64 MiB. */
char *np_file_all_of(int *error, int fd);
#define np_file_all(error, ...) np_file_all_of(error, np_file_open(__VA_ARGS__))

/*
 * Of a file that is held open, from its beginning: up to size - 1 bytes, with a NUL behind them.
 * Returns the number of bytes, or a negative errno. A file of /proc that fits tells the present.
 */
long np_file_again(char *out, size_t size, int fd);

/* Where a symbolic link leads, its last word alone: "virtio2" of "../../../virtio2". As above. */
long np_file_link(char *out, size_t size, const char *root, const char *path, ...)
    __attribute__((format(printf, 4, 5)));

#endif
