/*
 * Parts of the stream pattern that other patterns share.
 */
#ifndef NP_BENCH_PATTERN_STREAM_H
#define NP_BENCH_PATTERN_STREAM_H

#include "bench/run.h"

extern const struct np_side np_stream_receive;
/* A transmitter's steps, and the loop that drives them. */
extern const struct np_steps np_stream_transmit_steps;
int np_stream_transmit_sync(struct np_worker *w);

/* A transmitter's finish: tell the far end that this was all, and wait until it has got it. */
void np_stream_transmit_finish(struct np_worker *w);

/* A leader's nudge: say again that the test is over, where datagrams may have got lost. */
void np_stream_nudge(struct np_run *run);

#endif
