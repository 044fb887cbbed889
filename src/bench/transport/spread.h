/*
 * Spread data connections over the receive queues of the end that connects (--spread). Addresses
 * and ports determine the queue; the kernel reports it after connecting (SO_INCOMING_NAPI_ID).
 * Those in a crowded queue are made again from another port. The first byte on a connection says
 * that it is kept: the end that accepts waits for it, and drops connections closed without it.
 */
#ifndef NP_BENCH_TRANSPORT_SPREAD_H
#define NP_BENCH_TRANSPORT_SPREAD_H

#include "base/err.h"

struct np_run;
struct pollfd;

/* Rounds of making connections again: usually, and at most, if there is time. */
enum { NP_SPREAD_ROUNDS = 16, NP_SPREAD_MOST = 64 };

/* np_many_establish() at the end that connects; then spread its connections, fill run->spread. */
int np_spread_connect(struct np_run *run, struct np_err *err);

/* For np_many_wait(): accept until enough connections are kept, or np_stopped(). */
int np_spread_accept(struct np_run *run, struct pollfd *polls, struct np_err *err);

#endif
