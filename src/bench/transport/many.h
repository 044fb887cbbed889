/*
 * The data sockets of a test: those beside the first one, for transports that use endpoint.h
 * (many.c), how they are spread over receive queues (spread.c), and those at the port of the
 * control connection (one_port.c).
 */
#ifndef NP_BENCH_TRANSPORT_MANY_H
#define NP_BENCH_TRANSPORT_MANY_H

#include <stdint.h>

#include "base/err.h"

struct np_conn;
struct np_run;
struct pollfd;

/* After np_transport.open: open further sockets; a passive end out of ports gets fewer. */
int np_many_open(struct np_run *run, struct np_err *err);

/* Called after np_transport.establish: connect or accept the others, until done or np_stopped(). */
int np_many_establish(struct np_run *run, struct np_err *err);

/* The active end's first step of np_many_establish(): connect all at once, non-blocking. */
int np_many_connect(struct np_run *run, struct np_err *err);
/* The last one: make the sockets blocking again, unless workers wait for events (wake_fd). */
void np_many_connected(const struct np_run *run);

/* Begin to connect a socket. */
int np_many_begin(struct np_run *run, struct np_conn *c, struct np_err *err);

/* After np_many_begin(): wait until it is connected. Fails with EINTR if the run is stopped. */
int np_many_await(struct np_run *run, struct np_conn *c, struct np_err *err);

/* Call `step` for each connection from number `first` on, up to the first that fails. */
int np_many_each(struct np_run *run, uint32_t first,
		 int (*step)(struct np_run *run, struct np_conn *c, struct np_err *err),
		 struct np_err *err);

/* Call `wait` with an array for poll(2): all data sockets, and one spare entry (fd -1). */
int np_many_wait(struct np_run *run,
		 int (*wait)(struct np_run *run, struct pollfd *waits, struct np_err *err),
		 struct np_err *err);

/* np_many_establish() at the end that connects; then spread its connections, fill run->spread. */
int np_spread_connect(struct np_run *run, struct np_err *err);

/* For np_many_wait(): accept until enough connections are kept, or np_stopped(). */
int np_spread_accept(struct np_run *run, struct pollfd *polls, struct np_err *err);

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
