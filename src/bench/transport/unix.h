/*
 * What sockets of the UNIX domain leave where others look for them.
 */
#ifndef NP_BENCH_TRANSPORT_UNIX_H
#define NP_BENCH_TRANSPORT_UNIX_H

#include <sys/types.h>

/*
 * Remove the names that a process of this user's has left in /tmp, being dead without having had a
 * chance to do so itself.
 */
void np_unix_sweep(pid_t dead);

#endif
