/*
 * Data sockets at the port of the control connection (netserver --one-port): the daemon hands them
 * to the passive end; a token from the active end says to which test they belong (wire/token.h).
 */
#ifndef NP_BENCH_TRANSPORT_ONE_PORT_H
#define NP_BENCH_TRANSPORT_ONE_PORT_H

#include "base/err.h"

struct np_run;
struct pollfd;

/* np_transport.establish for datagram sockets handed over by the daemon. */
int np_handed_establish(struct np_run *run, struct np_err *err);
/* For np_many_wait() after that: wait for the first data on any socket, or until np_stopped(). */
int np_handed_await(struct np_run *run, struct pollfd *waits, struct np_err *err);

/*
 * For np_many_wait() at the active end: send the token on each socket until all are acknowledged. A
 * socket that reached another daemon behind the same address is made again, for NP_ELSEWHERE_S and
 * some round trips (NP_EPEER). Datagrams are sent again; after 10 s without an answer: NP_ETIME.
 */
enum { NP_ELSEWHERE_S = 2 };
int np_show_token(struct np_run *run, struct pollfd *waits, struct np_err *err);

/* Fail with NP_EPEER because data sockets kept reaching another daemon. */
int np_fail_elsewhere(const struct np_run *run, struct np_err *err);

#endif
