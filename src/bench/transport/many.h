/*
 * The data connections of a test beside its first one, which the transport makes. For all
 * transports whose sockets endpoint.h makes.
 */
#ifndef NP_BENCH_TRANSPORT_MANY_H
#define NP_BENCH_TRANSPORT_MANY_H

#include <stdint.h>

#include "base/err.h"

struct np_plan;
struct np_run;

/*
 * How many ports, or paths, the data sockets of a passive end are bound to; and how many of them
 * it can do without, since flows share them.
 */
uint32_t np_many_places(const struct np_plan *p, uint32_t *spare);

/* Behind np_transport.open: the sockets that are not made by accept(2). */
int np_many_open(struct np_run *run, struct np_err *err);

/* Behind np_transport.meet: connect or accept the others. Blocks until np_stopped(). */
int np_many_meet(struct np_run *run, struct np_err *err);

/* Begin to connect one of them: those that take time do so at once with all others. */
int np_many_begin(struct np_run *run, uint32_t number, struct np_err *err);

/* Until it is connected, or the run is stopped. */
int np_many_await(struct np_run *run, uint32_t number, struct np_err *err);

#endif
