/* Small files of /proc and /sys, or of a directory that a test puts in their place (root). */
#ifndef NP_SYS_FILE_H
#define NP_SYS_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Open root with the formatted path after it. Returns a descriptor, or a negative errno. */
int np_file_open(const char *root, const char *path, ...) __attribute__((format(printf, 2, 3)));

/*
 * Read up to size - 1 bytes and a NUL. Returns their number, or a negative errno and "". Those with
 * _of read from what np_file_open() returned, and close it; macros without take its arguments.
 */
long np_file_read_of(char *out, size_t size, int fd);
#define np_file_read(out, size, ...) np_file_read_of(out, size, np_file_open(__VA_ARGS__))

/* Read the first line without blanks around it. Returns its length, or a negative errno. */
long np_file_line_of(char *out, size_t size, int fd);
#define np_file_line(out, size, ...) np_file_line_of(out, size, np_file_open(__VA_ARGS__))

/* Read a decimal number with or without sign. Returns 0, or a negative errno: -EINVAL for none. */
int np_file_number_of(int64_t *out, int fd);
#define np_file_number(out, ...) np_file_number_of(out, np_file_open(__VA_ARGS__))

/* Read a whole file; free the result. NULL with errno, which is EFBIG beyond 64 MiB. */
char *np_file_all_of(int fd);
#define np_file_all(...) np_file_all_of(np_file_open(__VA_ARGS__))

/* np_file_read() of an open file, again from its beginning (of /proc: as it is now). */
long np_file_again(char *out, size_t size, int fd);

/* The last name in a symbolic link ("virtio2" of "../virtio2"). Its length, or a negative errno. */
long np_file_link(char *out, size_t size, const char *root, const char *path, ...)
    __attribute__((format(printf, 4, 5)));

#endif
