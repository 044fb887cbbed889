/*
 * The sources that a client's datagram socket accepts: those of the daemon that it talks to, so
 * that nothing that others send to its port counts.
 */
#ifndef NP_RUN_HEAR_H
#define NP_RUN_HEAR_H

#include <stdint.h>

#include "base/err.h"
#include "bench/run.h"
#include "net/addr.h"
#include "net/sources.h"

/*
 * Where the far end's datagrams may come from: `data`, where this end's go to, and the host of the
 * control connection, control_fd, -1 or `daemon`->len 0 where there is none. A far end on this
 * machine may answer from any address that packets between the two bear. None for tests that hear
 * no datagrams of the Internet, and where it is not known what will answer (a multicast group
 * without a daemon, a random host of a network).
 */
void np_hear_find(const struct np_run *run, const struct np_addr *data,
		  const struct np_addr *daemon, int control_fd, struct np_sources *out);

/* The same once it is known that the daemon is ours: what is sent to answers. */
void np_hear_ours(const struct np_run *run, const struct np_addr *data,
		  const struct np_addr *daemon, struct np_sources *out);

/*
 * Have run's socket hear none but these, from that port unless it is 0; no sources: all. One
 * address is the kernel's to see to; several are compared by the loop. NP_ESYS.
 */
int np_hear_only(struct np_run *run, const struct np_sources *s, uint32_t port, struct np_err *err);

#endif
