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
 * The session's test begins: its future threads get the kernel's usual time slices, or long ones if
 * the address has more threads than there are processors. A usual slice of 1.4 ms is shorter than
 * the kernel's tick: threads run three times as long, and the scheduler then puts a tenth of them
 * ahead of a session that begins.
 */
void ns_processors_begin(const struct ns_daemon *d, const struct ns_session *s);

/*
 * The address begins a session or a test. When several addresses have tests, their threads get less
 * weight than the daemon and new sessions, and each address a share. While only one address has
 * tests its threads are left alone: a weight can't be raised again.
 */
void ns_processors_share(struct ns_daemon *d, const struct np_addr *peer);

#endif
