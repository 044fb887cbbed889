/*
 * What options add to an operation, written once for all engines and patterns: buffers are written
 * to and read (-k, -K), datagrams of a stream are numbered, requests have ids. And the calls that
 * take the place of send(2) and recv(2) where an option asks for others: write(2), sendfile(2),
 * splice(2), sendmsg(2) with the address to answer from. w->codec says which of them are wanted; a
 * worker with a codec of 0 pays one comparison an operation.
 */
#ifndef NP_BENCH_CODEC_H
#define NP_BENCH_CODEC_H

#include <stddef.h>
#include <sys/types.h>

#include "bench/worker.h"

struct np_plan;

/* What the options of the near end ask for: NP_C_TOUCH, WRITE, TIME, PACE. */
unsigned np_codec_of(const struct np_plan *p);

/*
 * Before an operation on a buffer of that size: change its first `dirty` bytes, a value that
 * differs from the last one's in each, and read the `clean` bytes behind them, as far as it goes.
 */
void np_codec_touch(struct np_worker *w, char *buf, size_t size);

/* Make the message of that number ready to be sent, at a time that np_now() told. */
void np_codec_prepare(struct np_worker *w, char *buf, uint64_t number, uint64_t now_ns);

/*
 * Send a message, receive one: with all that the codec adds. Return what sendto(2) and recvfrom(2)
 * do.
 */
ssize_t np_codec_send(struct np_worker *w, struct np_conn *c, char *buf);
ssize_t np_codec_recv(struct np_worker *w, struct np_conn *c, char *buf);

/*
 * What sendfile(2) has returned at the end of the file: it begins again. One that has become
 * shorter: -1 with EIO.
 */
ssize_t np_codec_file_ends(struct np_worker *w, ssize_t n);

/* One that has come already: what recv(2) does with MSG_DONTWAIT. */
ssize_t np_codec_left(struct np_worker *w, struct np_conn *c, char *buf);

/* Release what the calls have opened. */
void np_codec_close(struct np_worker *w);

#endif
