/*
 * What options add to the single operation of a loop beside pacing: the buffer is written to and
 * read (-k, -K), write(2) sends it (-I). Loops come in two kinds, one that knows nothing of this,
 * and one, picked by setup when any of it is wanted, whose calls go through here.
 */
#ifndef NP_BENCH_EXTRA_H
#define NP_BENCH_EXTRA_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

struct np_run;

/* Does the near end's part of the test take the other kind of loop? */
bool np_extra_wanted(const struct np_run *run);

/*
 * Before an operation on a buffer of that size: change its first `dirty` bytes, a value that
 * differs from the last one's in each, and read the `clean` bytes behind them, as far as it goes.
 */
void np_extra_touch(struct np_run *run, char *buf, size_t size);

/* Touch, then send: by write(2) where that was asked for and no address has to be named. */
ssize_t
np_extra_send(struct np_run *run, int fd, char *buf, size_t size, const void *to, socklen_t to_len);

/* The same without the touching, for who has to write to the buffer in between. */
ssize_t np_extra_put(struct np_run *run, int fd, const char *buf, size_t size, const void *to,
		     socklen_t to_len);

/* Touch, then receive. */
ssize_t np_extra_recv(struct np_run *run, int fd, char *buf, size_t size);

#endif
