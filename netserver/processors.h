/*
 * How processors are shared: the daemon and new sessions come first, each address gets a share.
 */
#ifndef NETSERVER_PROCESSORS_H
#define NETSERVER_PROCESSORS_H

#include "netserver/daemon.h"

/* How long a thread may run while others wait; a short slice comes sooner (Linux 6.12). */
enum ns_slice { NS_SLICE_USUAL, NS_SLICE_SHORT, NS_SLICE_LONG };

/* Set the time slice of a process (0: this one), and of what it forks from now on. */
void ns_processors_set_slice(pid_t pid, enum ns_slice slice);

/*
 * An address begins a session or, with `test`, its test. If several have tests, each gets a share,
 * and less weight than the daemon and new sessions. One alone keeps its weight, which can't be
 * raised again. The test's future threads get usual time slices or, if the address has more threads
 * than processors, long ones. A usual slice of 1.4 ms is shorter than a tick, so that threads run
 * three times as long, and one in ten would run before a session that begins.
 */
void
ns_processors_share(struct ns_daemon *d, const struct np_addr *peer, const struct ns_session *test);

#endif
