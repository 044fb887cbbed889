/*
 * How the processors are shared: the daemon and what begins come first, and each address's tests
 * have a share.
 */
#ifndef NETSERVER_PROCESSORS_H
#define NETSERVER_PROCESSORS_H

#include "netserver/daemon.h"

/*
 * Run in short turns, which the kernel lets begin sooner (Linux 6.12), or as others do. pid 0: this
 * process, and what it forks from now on.
 */
void ns_processors_prompt(pid_t pid, bool prompt);

/*
 * That address begins a session or a test. Beside tests of other addresses, threads have less
 * weight than the daemon and what begins, and an address has its share. Where an address is alone
 * its threads are left as they are: no weight can be raised again, so that a session keeps a lower
 * one to its end.
 */
void ns_processors_share(struct ns_daemon *d, const struct np_addr *peer);

#endif
