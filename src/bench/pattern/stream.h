/* Parts of the stream pattern that other patterns share: its follower, and parts of its leader. */
#ifndef NP_BENCH_PATTERN_STREAM_H
#define NP_BENCH_PATTERN_STREAM_H

#include "bench/run.h"

extern const struct np_side np_stream_receive;
/* A transmitter's steps, and its np_side.sync with them inlined. */
extern const struct np_steps np_stream_transmit_steps;
int np_stream_transmit_sync(struct np_worker *w);

/* A transmitter's finish: end the data, and wait until the far end has received them. */
void np_stream_transmit_finish(struct np_worker *w);

/* A leader's nudge: send end marks again, as datagrams may get lost. */
void np_stream_nudge(struct np_run *run);

#endif
