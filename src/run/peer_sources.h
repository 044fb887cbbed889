/*
 * Which sources a client's datagram socket accepts: those of its daemon, so that datagrams of
 * strangers do not count.
 */
#ifndef NP_RUN_PEER_SOURCES_H
#define NP_RUN_PEER_SOURCES_H

#include <stdint.h>

#include "base/err.h"
#include "bench/run.h"
#include "net/addr.h"
#include "net/sources.h"

/*
 * Where the far end's datagrams may come from: `data`, where this end's go to, and the host of the
 * control connection, control_fd; -1 or `daemon`->len 0: there is no control connection. A far end
 * on this machine may answer from any of its addresses. No sources for tests that receive no IP
 * datagrams, and where it is not known what will answer (a multicast group without a daemon, a
 * random host of a network).
 */
void np_peer_sources_find(const struct np_run *run, const struct np_addr *data,
			  const struct np_addr *daemon, int control_fd, struct np_sources *out);

/* The same when the daemon is known to be ours: it answers from the address that is sent to. */
void np_peer_sources_ours(const struct np_run *run, const struct np_addr *data,
			  const struct np_addr *daemon, struct np_sources *out);

/*
 * Make run's socket accept only these sources, from that port unless it is 0; no sources: all. The
 * kernel filters for a single address, the loop compares several. NP_ESYS.
 */
int np_peer_sources_accept(struct np_run *run, const struct np_sources *s, uint32_t port,
			   struct np_err *err);

#endif
