/* A gate where tests wait to open their windows together. If one fails before, it fails for all. */
#ifndef NP_RUN_GATE_H
#define NP_RUN_GATE_H

#include <stdbool.h>
#include <stdint.h>

struct np_gate;
struct np_signals;

enum { NP_GATE_SHUT = 0, NP_GATE_OPEN = 1, NP_GATE_FAILED = -1 };

/* A gate that opens when `count` have arrived. NULL with errno: no memory or descriptors. */
struct np_gate *np_gate_new(uint32_t count);

/* Must not be called while a thread waits. NULL is ignored. */
void np_gate_free(struct np_gate *g);

/* One has arrived. Each arrives once. */
void np_gate_arrive(struct np_gate *g);

/* One will never arrive: the gate stays shut. No effect on an open gate. */
void np_gate_fail(struct np_gate *g);

/* Readable when the gate is open or has failed; nothing has to be read. */
int np_gate_fd(const struct np_gate *g);

/* NP_GATE_*. Any thread may ask. */
int np_gate_state(const struct np_gate *g);

/* Wait until only the caller is missing, or the gate has failed. False: time-out or signal. */
bool
np_gate_await_others(const struct np_gate *g, const struct np_signals *signals, uint64_t until_ns);

/* When it opened, by CLOCK_MONOTONIC; the same for all. 0: it is not open. */
uint64_t np_gate_opened_ns(const struct np_gate *g);

#endif
