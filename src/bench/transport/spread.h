/*
 * Data connections that are to lie on different receive queues of the end that connects (--spread).
 * By which queue packets come in follows from addresses and ports, and the kernel tells it as soon
 * as a connection stands (SO_INCOMING_NAPI_ID): those that share a queue with too many others are
 * made again, from another port. Each one that is kept says so by one byte, before anything else;
 * the end that accepts waits for these, and drops what is closed without it.
 */
#ifndef NP_BENCH_TRANSPORT_SPREAD_H
#define NP_BENCH_TRANSPORT_SPREAD_H

#include "base/err.h"

struct np_run;
struct pollfd;

/* Rounds of making connections again: as a rule, and at most, if there is time. */
enum { NP_SPREAD_ROUNDS = 16, NP_SPREAD_MOST = 64 };

/*
 * As np_many_meet() at the end that connects. Then make again those that share a queue with too
 * many, and keep the rest, where run->spread.agreed; else only see how they lie. Fills run->spread.
 */
int np_spread_connect(struct np_run *run, struct np_err *err);

/* np_many_wait(): accept until as many have said that they are kept, or np_stopped(). */
int np_spread_accept(struct np_run *run, struct pollfd *polls, struct np_err *err);

#endif
