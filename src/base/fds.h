/* Descriptors: fill, close and pass them, and raise their limit. */
#ifndef NP_BASE_FDS_H
#define NP_BASE_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Open those of 0, 1 and 2 that are closed, to fail when used: no socket gets such a number. */
void np_fds_fill(void);

/* close(2) a descriptor, unless it is negative. */
void np_fds_close(int fd);

/* Replace 0, 1 and 2 by /dev/null. Returns 0, or -1 with errno. */
int np_fds_to_null(void);

/*
 * For a new process: close all descriptors above 2 except those to keep: inherited ones keep pipes
 * and locks alive. Sorts keep; skips -1.
 */
void np_fds_close_except(int *keep, size_t count);

/*
 * Give the thread its own table of descriptors, with copies of 0, 1, 2 and those to keep (sorted;
 * skips -1), which it may close. In a shared one the kernel counts references, a tenth of the time
 * of a small send(2). Other threads don't have what it opens. False: not possible.
 */
bool np_fds_unshare(int *keep, size_t count);

/*
 * Raise the soft RLIMIT_NOFILE, up to the hard one, for `count` descriptors and 128 others. Returns
 * the soft limit as it then is; UINT_MAX: not known, or none.
 */
unsigned np_fds_raise_limit(unsigned count);

/* Send bytes, and copies of up to NP_FDS_PASSED descriptors (unix(7)); don't wait. False: errno. */
enum { NP_FDS_PASSED = 2 };
bool np_fds_pass(int over, const void *bytes, size_t size, const int *fds, size_t count);

/* recv(2) with flags. fds[count]: the packet's descriptors, close-on-exec, then -1 to the end. */
ssize_t np_fds_receive(int over, void *bytes, size_t size, int *fds, size_t count, int flags);

#endif
