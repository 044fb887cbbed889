/*
 * The data connections of a test beside its first one, which the transport makes. For all
 * transports that make their sockets by endpoint.h.
 */
#ifndef NP_BENCH_TRANSPORT_MANY_H
#define NP_BENCH_TRANSPORT_MANY_H

#include <stdint.h>

#include "base/err.h"

struct np_run;
struct pollfd;

/*
 * Behind np_transport.open: the sockets that are not made by accept(2). Where a passive end finds
 * no more ports free the run has only as many connections.
 */
int np_many_open(struct np_run *run, struct np_err *err);

/* Behind np_transport.meet: connect or accept the others. Blocks until np_stopped(). */
int np_many_meet(struct np_run *run, struct np_err *err);

/*
 * The two steps of np_many_meet() at the active end: connect the others, by non-blocking sockets;
 * then, when all are connected, make these block if the worker does.
 */
int np_many_connect(struct np_run *run, struct np_err *err);
void np_many_connected(const struct np_run *run);

/* Begin to connect one of them: those that take time do so at once with all others. */
int np_many_begin(struct np_run *run, uint32_t number, struct np_err *err);

/* Until it is connected, or the run is stopped. */
int np_many_await(struct np_run *run, uint32_t number, struct np_err *err);

/*
 * What waits at all data sockets at a time, with a row of poll(2) for each, and one more behind
 * them that has no descriptor yet.
 */
int np_many_wait(struct np_run *run,
		 int (*what)(struct np_run *run, struct pollfd *waits, struct np_err *err),
		 struct np_err *err);

#endif
