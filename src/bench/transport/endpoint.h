/*
 * What transports share to make an endpoint.
 */
#ifndef NP_BENCH_TRANSPORT_ENDPOINT_H
#define NP_BENCH_TRANSPORT_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"

struct np_conn;
struct np_plan;
struct np_run;
struct np_sockopts;
struct np_transport;

enum { NP_BACKLOG = 128 }; /* of passive stream sockets */

/*
 * np_transport.open: a data socket with the run's options, bound where that is needed: listeners
 * and datagram sockets always, active stream sockets when an address or a port was asked for.
 * Passive stream sockets listen, and np_endpoint_take() admits peers by terms->only. Passive
 * datagram sockets receive only from these, or their loops compare (np_run_check_sources()). Notes
 * its address and the buffer sizes in the flow. A passive socket takes another port if its own is
 * in use, and says so in run->end.port_moved: the response names the port, and netperf's own
 * clients expect that.
 */
int np_endpoint_open(struct np_run *run, struct np_err *err);

/* The sizes of socket buffers that were asked for. */
void np_endpoint_ask_buffers(const struct np_plan *p, struct np_sockopts *o);

/* The sizes that a socket's buffers have; -1 where the kernel tells none. */
void np_endpoint_buffers(const struct np_transport *t, int fd, int *sndbuf, int *rcvbuf);

/*
 * Can this kernel carry it? NP_EUNSUP with what is missing if not; NP_ESYS where it may be able to
 * and this process not (a socket that needs a privilege).
 */
int np_transport_probe(const struct np_transport *t, struct np_err *err);

/* Does that errno, of this machine or the far end, say that a kernel has no such sockets? */
bool np_endpoint_is_missing(int sys);

/* Where *err says that: say what would bring them. */
void np_endpoint_say_missing(const struct np_transport *t, struct np_err *err);

/* Connect to run->end.peer, or accept one connection. Blocks until np_stopped(). */
int np_endpoint_meet(struct np_run *run, struct np_err *err);

/*
 * Connect the data socket to run->end.peer; where -H gave it a mask, to a random host of its
 * network.
 */
int np_endpoint_connect(struct np_run *run, struct np_err *err);

/*
 * Replace all but the first `mask` bits of the address by random ones, never all 0 or all 1 in
 * IPv4, where these are no hosts. 0, or as many bits as the address has: change nothing.
 */
void np_endpoint_spread(struct np_addr *a, int32_t mask);

/* Bytes that need not be unpredictable, only different. */
void np_endpoint_random(void *bytes, size_t count);

/*
 * Accept one connection that terms->only lets in. Returns the descriptor, or -1 with errno; a
 * stranger's is reset and counts as ECONNABORTED. flags as of
 * accept4(2). Where sockets are handed over (np_is_handed()) it is the next one, of any transport.
 */
int np_endpoint_take(struct np_run *run, int flags);

/* Make c->fd of the next connection to run->end.listen_fd. Blocks until np_stopped(). */
int np_endpoint_accept(struct np_run *run, struct np_conn *c, struct np_err *err);

/* np_transport.another: with a port of its own, that many above the one that the test names. */
int np_endpoint_another(struct np_run *run, uint32_t number, struct np_err *err);

/* How many connections may wait in a listener to be accepted: all flows of the plan. */
int np_endpoint_backlog(const struct np_plan *p);

#endif
