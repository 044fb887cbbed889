/*
 * Passed descriptors (unix(7)), which the daemon does not want: closing one may block (SO_LINGER).
 */
#ifndef NETSERVER_PASSED_H
#define NETSERVER_PASSED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* To be called once, before the others. Uses SIGALRM and ITIMER_REAL of this process. */
void ns_passed_begin(void);

/* Refuse (EPERM) descriptors sent to it and to what it accepts. Before Linux 6.16: does nothing. */
void ns_passed_refuse(int fd);

/* recv(2) without waiting. *more: the packet had more bytes, or descriptors, which are lost. */
ssize_t ns_passed_recv(int from, void *bytes, size_t size, bool *more);

/* close(2), which never lingers, of a socket that descriptors may have been passed to. */
void ns_passed_close(int fd);

#endif
