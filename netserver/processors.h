/*
 * How the processors are shared: the daemon and new sessions come first, and the tests of each
 * address get a share.
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
 * That address begins a session or a test. When several addresses have tests, their threads get
 * less weight than the daemon and new sessions, each address a share. The threads of a single
 * address are left alone: a weight can't be raised again, so that a session keeps a lower one to
 * its end.
 */
void ns_processors_share(struct ns_daemon *d, const struct np_addr *peer);

#endif
