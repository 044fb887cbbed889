/*
 * What options add to an operation, once for all engines and patterns: buffers are written to and
 * read (-k, -K), datagrams of a stream are numbered, requests have ids. And the calls that replace
 * send(2) and recv(2): write(2), sendfile(2), splice(2), sendmsg(2). w->codec has a flag for each;
 * a codec of 0 costs one comparison per operation.
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
 * Change the first `dirty` bytes of a buffer, to another value each time, and read the `clean`
 * bytes behind them, as far as they fit.
 */
void np_codec_touch(struct np_worker *w, char *buf, size_t size);

/* Prepare message `number` for sending at now_ns. */
void np_codec_prepare(struct np_worker *w, char *buf, uint64_t number, uint64_t now_ns);

/*
 * Send or receive a message with all that the codec adds. Return values as of sendto(2) and
 * recvfrom(2).
 */
ssize_t np_codec_send(struct np_worker *w, struct np_conn *c, char *buf);
ssize_t np_codec_recv(struct np_worker *w, struct np_conn *c, char *buf);

/* Receive without waiting, as recv(2) with MSG_DONTWAIT. */
ssize_t np_codec_left(struct np_worker *w, struct np_conn *c, char *buf);

/* Release what the calls have opened. */
void np_codec_close(struct np_worker *w);

#endif
