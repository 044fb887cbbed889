/*
 * Descriptors that other processes pass to the daemon over UNIX sockets (SCM_RIGHTS of unix(7)). It
 * wants none: the kernel closes them, which blocks for a TCP socket with SO_LINGER and unsent data.
 */
#ifndef NETSERVER_PASSED_H
#define NETSERVER_PASSED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* To be called once, before the others. Uses SIGALRM and ITIMER_REAL of this process. */
void ns_passed_begin(void);

/*
 * Refuse (EPERM) descriptors that are passed to this socket, or to connections that it accepts from
 * now on. Before Linux 6.16 that fails, and the two functions below keep the daemon from blocking.
 */
void ns_passed_refuse(int fd);

/* recv(2) without waiting. *more: the packet had more bytes, or descriptors, which are lost. */
ssize_t ns_passed_recv(int from, void *bytes, size_t size, bool *more);

/* close(2), which never lingers, of a socket that descriptors may have been passed to. */
void ns_passed_close(int fd);

#endif
