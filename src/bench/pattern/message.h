/*
 * Whole messages over stream sockets, for the patterns that exchange requests and responses. The
 * usual case, one call that moves all of it, is inline; the rest is not.
 */
#ifndef NP_BENCH_PATTERN_MESSAGE_H
#define NP_BENCH_PATTERN_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "bench/engine/syscall.h"
#include "bench/extra.h"
#include "bench/run.h"

enum { NP_LEAVE = 1 }; /* told to stop, or the far end closed (run->hung_up) */

/* Go on after a first call that moved n bytes, or failed with errno. 0, NP_LEAVE or -errno. */
int np_message_send_rest(struct np_run *run, int fd, const char *buf, size_t size, ssize_t n);
int
np_message_recv_rest(struct np_run *run, int fd, char *buf, size_t size, ssize_t n, uint64_t *more);

/*
 * The descriptor comes by address so that the usual case need not keep it for the other one. With
 * extras the first call is what options make of it (extra.h).
 */
NP_LOOP_BODY int
np_message_send(struct np_run *run, const int *fd, char *buf, size_t size, const bool extras)
{
	ssize_t n =
	    extras ? np_extra_send(run, *fd, buf, size, NULL, 0) : np_sys_send(*fd, buf, size);

	return __builtin_expect(n == (ssize_t)size, 1)
		   ? 0
		   : np_message_send_rest(run, *fd, buf, size, n);
}

/* *more grows by the receives that gave something beyond one a message. */
NP_LOOP_BODY int
np_message_recv(struct np_run *run, const int *fd, char *buf, size_t size, uint64_t *more,
		const bool extras)
{
	ssize_t n = extras ? np_extra_recv(run, *fd, buf, size) : np_sys_recv(*fd, buf, size);

	return __builtin_expect(n == (ssize_t)size, 1)
		   ? 0
		   : np_message_recv_rest(run, *fd, buf, size, n, more);
}

#endif
