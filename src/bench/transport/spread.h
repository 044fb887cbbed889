/*
 * Spread data connections over the receive queues of the end that connects (--spread). Addresses
 * and ports determine the queue, and the kernel reports it once a connection is made
 * (SO_INCOMING_NAPI_ID). Those that share a queue with too many others are made again from another
 * port. The first byte on a connection says that it is kept: the end that accepts waits for these
 * bytes, and drops connections that are closed without one.
 */
#ifndef NP_BENCH_TRANSPORT_SPREAD_H
#define NP_BENCH_TRANSPORT_SPREAD_H

#include "base/err.h"

struct np_run;
struct pollfd;

/* Rounds of making connections again: usually, and at most, if there is time. */
enum { NP_SPREAD_ROUNDS = 16, NP_SPREAD_MOST = 64 };

/*
 * As np_many_establish() at the end that connects, then spread the connections, if
 * run->spread.agreed. Fills run->spread.
 */
int np_spread_connect(struct np_run *run, struct np_err *err);

/* For np_many_wait(): accept until enough connections are kept, or np_stopped(). */
int np_spread_accept(struct np_run *run, struct pollfd *polls, struct np_err *err);

#endif
