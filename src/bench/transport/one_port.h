/*
 * Data connections, or data sockets of datagrams, at the port of the control connection (netserver
 * --one-port). The passive end is handed them by the daemon that has the port, and never listens;
 * the active end shows the token by which they are known (wire/token.h).
 */
#ifndef NP_BENCH_TRANSPORT_ONE_PORT_H
#define NP_BENCH_TRANSPORT_ONE_PORT_H

#include "base/err.h"

struct np_run;
struct pollfd;

/* np_transport.meet of datagrams that are handed over; and np_many_wait() until data come. */
int np_handed_meet(struct np_run *run, struct np_err *err);
int np_handed_await(struct np_run *run, struct pollfd *waits, struct np_err *err);

/*
 * np_many_wait() of the active end, when its sockets are there: show the token by each, until all
 * are known to be taken. What another daemon behind the same address has got is made again.
 */
enum { NP_ELSEWHERE_S = 2 };
int np_show_token(struct np_run *run, struct pollfd *waits, struct np_err *err);

/* Say that NP_ELSEWHERE_S were not enough. */
int np_fail_elsewhere(const struct np_run *run, struct np_err *err);

#endif
