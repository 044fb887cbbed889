/* The sources that a client's datagram socket accepts: its daemon's addresses only. */
#ifndef NP_RUN_PEER_SOURCES_H
#define NP_RUN_PEER_SOURCES_H

#include <stdint.h>

#include "base/err.h"
#include "bench/run.h"
#include "net/addr.h"
#include "net/sources.h"

/*
 * Addresses that the far end's datagrams may come from: `data`, which this end sends to, and
 * `daemon`, the peer of control_fd (len 0 and -1: there is no control connection). A far end on
 * this machine may answer from any address of the machine. No sources for tests that receive no IP
 * datagrams, or if it is unknown who will answer (a multicast group without a daemon, a random host
 * of a network).
 */
void np_peer_sources_find(const struct np_run *run, const struct np_addr *data,
			  const struct np_addr *daemon, int control_fd, struct np_sources *out);

/* The same for our own daemon, which answers from the address that it receives at. */
void np_peer_sources_ours(const struct np_run *run, const struct np_addr *data,
			  const struct np_addr *daemon, struct np_sources *out);

/*
 * Let run's socket accept only these sources and, unless it is 0, that port. No sources: accept
 * all. The kernel filters for a single address; the loop compares if there are several. NP_ESYS.
 */
int np_peer_sources_accept(struct np_run *run, const struct np_sources *s, uint32_t port,
			   struct np_err *err);

#endif
