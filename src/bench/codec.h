/*
 * What options add to an operation, for all engines and patterns: writing to and reading buffers
 * (-k, -K), numbers of datagrams, ids of requests, and other calls than send(2) and recv(2).
 * w->codec has a flag for each; 0 costs one comparison per operation.
 */
#ifndef NP_BENCH_CODEC_H
#define NP_BENCH_CODEC_H

#include <stddef.h>
#include <sys/types.h>

#include "bench/worker.h"

struct np_plan;

/* The flags that follow from options of the near end: NP_C_TOUCH, WRITE, TIME, PACE. */
unsigned np_codec_of(const struct np_plan *p);

/* -k, -K, before a send or receive: set `dirty` bytes of a buffer, and read the next `clean`. */
void np_codec_touch(struct np_worker *w, char *buf, size_t size);

/* Touch, number and identify a message to be sent at now_ns (which only NP_C_NUMBER needs). */
void np_codec_prepare(struct np_worker *w, char *buf, uint64_t number, uint64_t now_ns);

/* Send or receive a message with all that the codec adds. Results are those of send(2), recv(2). */
ssize_t np_codec_send(struct np_worker *w, struct np_conn *c, char *buf);
ssize_t np_codec_recv(struct np_worker *w, struct np_conn *c, char *buf);

/* Receive a message of an allowed peer without waiting, as recv(2) with MSG_DONTWAIT. */
ssize_t np_codec_left(struct np_worker *w, struct np_conn *c, char *buf);

/* Close the pipe of splice(2). */
void np_codec_close(struct np_worker *w);

#endif
