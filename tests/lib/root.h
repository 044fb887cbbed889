/*
 * A folder that stands for the root of the file system, for what reads /proc and /sys.
 */
#ifndef NP_TESTS_ROOT_H
#define NP_TESTS_ROOT_H

#include <sys/types.h>

/* cmocka's setup and teardown: *state is the folder's path. */
int root_make(void **state);
int root_remove(void **state);

/* A file with that text, or a symbolic link, with the folders above it. */
void put_file(const char *root, const char *path, const char *text);
void put_bytes_into(const char *root, const char *path, const void *bytes, size_t n);
void put_link(const char *root, const char *path, const char *to);

/* A file's text, as much as there is room for; and how many names a directory has. */
void read_file(const char *path, char *text, size_t room);
unsigned names_in(const char *dir);

/* A file of its own below /tmp; unlink() it. */
void temp_file(char path[32], const char *text, size_t n, mode_t mode);

/* One datagram to this machine itself. */
void send_over_loopback(void);

/* `count` datagrams of 1000 bytes to where nobody listens, without waiting for anything. */
void flood_loopback(int count);

#endif
