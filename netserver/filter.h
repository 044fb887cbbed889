/*
 * System calls of a session, by seccomp(2): filter_seccomp.c; without libseccomp, filter_none.c.
 */
#ifndef NETSERVER_FILTER_H
#define NETSERVER_FILTER_H

#include <sched.h>
#include <signal.h>
#include <stddef.h>

#include "base/err.h"
#include "netserver/confine.h"

/* Why there is no filter in this build or kernel; NULL: there is one. */
const char *ns_filter_lacks(void);

/*
 * Make the filter, a program for the kernel: *code, to be freed on failure, too, and *size in
 * bytes, 0 without seccomp. Takes a millisecond or two. NP_ESYS.
 */
int ns_filter_make(const struct ns_sandbox *s, void **code, size_t *size, struct np_err *err);

/* Flags of clone(2), by which a process with the seal forks a child of its own parent. */
#define NS_FORK (CLONE_PARENT | SIGCHLD)

/*
 * Draw a seal, and install such a program with it: for this thread, and the threads and processes
 * that it makes from now on. Needs no_new_privs. A call that is not on the list fails with EPERM;
 * one that only an attacker makes (another program, another user, another process's memory) ends
 * the process by SIGSYS. NP_ESYS if the kernel refuses; size 0 is NP_OK.
 */
int ns_filter_install(const void *code, size_t size, struct ns_seal *seal, struct np_err *err);

/*
 * Before ns_filter_install(): this packet socket can't be bound to another interface, and can't
 * send, or if it `sends`, by sendto(2) and send(2) only. The filter knows it by its descriptor, so
 * no duplicate may be made: no call on the list makes one, and the UNIX sockets that are open now
 * can't be connected to a peer that would pass one back (SCM_RIGHTS). NP_OK without seccomp.
 */
int ns_filter_socket(int fd, bool sends, struct np_err *err);

#endif
