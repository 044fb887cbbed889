/* How transports open, connect and accept their sockets. */
#ifndef NP_BENCH_TRANSPORT_ENDPOINT_H
#define NP_BENCH_TRANSPORT_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"

struct np_bag;
struct np_conn;
struct np_plan;
struct np_run;
struct np_sockopts;
struct np_transport;

enum { NP_BACKLOG = 128 }; /* of passive stream sockets */

/*
 * np_transport.open: open the data socket or listener with the run's options; fill run->end with
 * its address and buffer sizes. An active stream socket is bound only if asked for an address or
 * port. A passive socket takes another port if its own is in use (run->end.port_moved); the
 * response names it, as netperf's clients expect. Only peers of terms->only are admitted: streams
 * by np_endpoint_take(), datagrams by the kernel or the loops (np_run_check_sources()).
 */
int np_endpoint_open(struct np_run *run, struct np_err *err);

/* Append options for the sizes of socket buffers that the near end asked for. */
void np_endpoint_ask_buffers(const struct np_plan *p, struct np_sockopts *o);

/* Read the sizes of a socket's buffers; -1: not known. */
void np_endpoint_buffers(const struct np_transport *t, int fd, int *sndbuf, int *rcvbuf);

/* Is it supported? NP_EUNSUP: no, *err says what is missing. NP_ESYS: unknown (no privilege). */
int np_transport_probe(const struct np_transport *t, struct np_err *err);

/* Does this errno, of either end, mean that the kernel has no such sockets? */
bool np_endpoint_is_missing(int sys);

/*
 * If *err has such an errno and no socket of the transport can be made, replace it by NP_EUNSUP
 * with what the kernel lacks: the module or option, how to switch it on, or the release that
 * dropped it.
 */
void np_endpoint_say_missing(const struct np_transport *t, struct np_err *err);

/* Connect to run->end.peer, or accept one connection. Blocks until done or np_stopped(). */
int np_endpoint_establish(struct np_run *run, struct np_err *err);

/* Connect the data socket to run->end.peer; if -H gave a mask, to a random host of that network. */
int np_endpoint_connect(struct np_run *run, struct np_err *err);

/* Make all but the first `mask` bits random, in IPv4 never all 0 or all 1. 0 or all: no change. */
void np_endpoint_spread(struct np_addr *a, int32_t mask);

/* Random bytes that need not be unpredictable. */
void np_endpoint_random(void *bytes, size_t count);

/*
 * Accept a connection, with flags of accept4(2); -1 with errno, ECONNABORTED also for a peer
 * outside terms->only, which gets a reset. With np_is_handed() receive the next socket of any kind.
 */
int np_endpoint_take(struct np_run *run, int flags);

/* Accept the next connection as c->fd. Blocks until done, or np_stopped(): c->fd stays -1. */
int np_endpoint_accept(struct np_run *run, struct np_conn *c, struct np_err *err);

/* np_transport.another: a passive end gets the port `number` above the one that the test names. */
int np_endpoint_another(struct np_run *run, uint32_t number, struct np_err *err);

/* Listen on a socket that is bound to `at`, with room for all flows of the plan. */
int
np_endpoint_listen(const struct np_plan *p, int fd, const struct np_addr *at, struct np_err *err);

/* Put the value of a socket option into a bag by that name, if there is one above 0. */
void np_endpoint_put_option(int fd, int level, int option, const char *name, struct np_bag *bag);

#endif
