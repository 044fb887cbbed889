/*
 * A gate that the windows of several tests wait behind: the last one to arrive opens it, so that
 * all of them begin at the same moment. One that will never arrive fails it, for all.
 */
#ifndef NP_RUN_GATE_H
#define NP_RUN_GATE_H

#include <stdint.h>

struct np_gate;

/* A gate that opens when `count` have arrived. NULL without memory or descriptors; see errno. */
struct np_gate *np_gate_new(uint32_t count);

/* No thread may wait there any more. NULL is ignored. */
void np_gate_free(struct np_gate *g);

/* One more is ready. Each arrives once. */
void np_gate_arrive(struct np_gate *g);

/* One will never be: the gate stays shut for ever. Without effect on one that is open. */
void np_gate_fail(struct np_gate *g);

/* Readable once the gate is open or has failed, and for ever, as it is never read. */
int np_gate_fd(const struct np_gate *g);

/* 0: shut, 1: open, -1: failed. Any thread may ask. */
int np_gate_state(const struct np_gate *g);

/* When it opened, by CLOCK_MONOTONIC; the same for all. 0: it is not open. */
uint64_t np_gate_opened_ns(const struct np_gate *g);

#endif
