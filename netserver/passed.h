/*
 * Descriptors that other processes pass over sockets of the UNIX domain (SCM_RIGHTS of unix(7)),
 * which nothing here has a use for: the kernel closes them. A TCP socket with SO_LINGER set and
 * unsent data makes that wait, in a daemon that must not wait.
 */
#ifndef NETSERVER_PASSED_H
#define NETSERVER_PASSED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Once, before the others: takes SIGALRM and ITIMER_REAL of this process. */
void ns_passed_begin(void);

/*
 * No descriptors are passed to this socket, and to connections that it accepts from now on: who
 * tries it gets EPERM. Kernels since Linux 6.16 know it; with others it stays as it is, and the two
 * below keep the daemon from waiting.
 */
void ns_passed_refuse(int fd);

/* recv(2) of a packet that is there, without waiting. *more: more came than these bytes, and is
 * gone.
 */
ssize_t ns_passed_recv(int from, void *bytes, size_t size, bool *more);

/* close(2) of a socket that things may have been passed to. Never lingers. */
void ns_passed_close(int fd);

#endif
