/*
 * Descriptors that other processes pass over sockets of the UNIX domain (SCM_RIGHTS of unix(7)).
 * The receiver closes each of them, read or not. A TCP socket with SO_LINGER set and unsent data
 * makes that close(2) wait, in a daemon that must not wait.
 */
#ifndef NETSERVER_PASSED_H
#define NETSERVER_PASSED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Once, before the others: takes SIGALRM and ITIMER_REAL of this process. */
void ns_passed_begin(void);

/*
 * May descriptors be passed to this socket, and to connections that it accepts from now on? Who
 * passes some in spite of it gets EPERM. Kernels since Linux 6.16 know it; with others it stays as
 * it is, and the two below keep the daemon from waiting.
 */
void ns_passed_let(int fd, bool may);

/*
 * recv(2) of a packet that is there, without waiting, and the one descriptor that came with it,
 * else -1. *truncated: more came than these two, and is gone.
 */
ssize_t ns_passed_recv(int from, void *bytes, size_t size, int *fd, bool *truncated);

/* close(2) of what was passed, or of a socket that things may have been passed to. Never lingers.
 */
void ns_passed_close(int fd);

#endif
