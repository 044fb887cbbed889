/*
 * Descriptors: those that a program is started with, and what is done to them.
 */
#ifndef NP_BASE_FDS_H
#define NP_BASE_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Fill those of 0, 1 and 2 that are closed, so that no socket takes their place and gets what is
 * written for the user. Reading from them and writing to them fail.
 */
void np_fds_fill(void);

/* Close one; what is negative is none, and none is closed. */
void np_fds_close(int fd);

/* Let 0, 1 and 2 be /dev/null, whatever they are. Returns 0, or -1 with errno. */
int np_fds_empty(void);

/*
 * Close all above `last`, which is 2 but for sockets that were handed down: what a daemon has
 * inherited keeps its caller's pipes and locks alive.
 */
void np_fds_drop(int last);

/*
 * Close all above 2 but those to be kept, which are sorted by it; -1 is skipped. For a process that
 * was just forked.
 */
void np_fds_drop_but(int *keep, size_t count);

/*
 * Give the calling thread a table of descriptors of its own, with copies of 0, 1, 2 and those to be
 * kept, which are sorted by it; -1 is skipped. In a table that threads share the kernel counts
 * references in every call: a tenth of the time of a small send(2). What the thread opens from now
 * on others do not have, and the copies are its own to close. Returns false where that can't be
 * had.
 */
bool np_fds_own(int *keep, size_t count);

/*
 * Raise the soft limit (RLIMIT_NOFILE, getrlimit(2)) so that the process may open `count` more
 * descriptors, up to the hard limit. Returns the soft limit then.
 */
unsigned np_fds_allow(unsigned count);

/*
 * Send a packet, and with it copies of up to NP_FDS_PASSED descriptors, over a socket of the UNIX
 * domain (SCM_RIGHTS of unix(7)). False, with errno, when it did not go.
 */
enum { NP_FDS_PASSED = 2 };
bool np_fds_pass(int over, const void *bytes, size_t size, const int *fds, size_t count, int flags);

/*
 * recv(2) of such a packet: fd[] gets what came with it, close-on-exec, and -1 for the rest of
 * `count`.
 */
ssize_t np_fds_receive(int over, void *bytes, size_t size, int *fds, size_t count, int flags);

#endif
