/* Descriptors: fill, close and pass them, and raise their limit. */
#ifndef NP_BASE_FDS_H
#define NP_BASE_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Occupy those of 0, 1 and 2 that are closed, so that no socket gets such a number and with it the
 * text written for the user. Reading from them and writing to them fail.
 */
void np_fds_fill(void);

/* close(2) a descriptor, unless it is negative. */
void np_fds_close(int fd);

/* Replace 0, 1 and 2 by /dev/null. Returns 0, or -1 with errno. */
int np_fds_to_null(void);

/*
 * Close all descriptors above `last`: those a daemon has inherited would keep its caller's pipes
 * and locks alive. `last` is 2, or more if sockets were handed down.
 */
void np_fds_close_above(int last);

/* For a new process: close all descriptors above 2 except those to keep. Sorts keep; skips -1. */
void np_fds_close_except(int *keep, size_t count);

/*
 * Give the calling thread its own table of descriptors, with copies of 0, 1, 2 and those to keep,
 * which the thread may close. Sorts keep; skips -1. In a table that threads share, the kernel
 * counts references in every call, which takes a tenth of the time of a small send(2). Other
 * threads don't have what this one opens from now on. Returns false if there is no such table.
 */
bool np_fds_unshare(int *keep, size_t count);

/*
 * Raise the soft limit (RLIMIT_NOFILE, getrlimit(2)), up to the hard one, so that the process may
 * have `count` descriptors beside 128 for other purposes. Returns the soft limit as it then is;
 * UINT_MAX: not known.
 */
unsigned np_fds_raise_limit(unsigned count);

/*
 * Send a packet with copies of up to NP_FDS_PASSED descriptors over a socket of the UNIX domain
 * (SCM_RIGHTS of unix(7)), without waiting. False, with errno, if it was not sent.
 */
enum { NP_FDS_PASSED = 2 };
bool np_fds_pass(int over, const void *bytes, size_t size, const int *fds, size_t count);

/* recv(2) such a packet, with these flags: fds[count] gets its descriptors, close-on-exec, then -1
 * to the end. */
ssize_t np_fds_receive(int over, void *bytes, size_t size, int *fds, size_t count, int flags);

#endif
