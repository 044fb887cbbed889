/*
 * System calls of a session, by seccomp(2). Two files stand behind this: filter_seccomp.c, where
 * configure found libseccomp, else filter_none.c.
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
 * The filter as a program for the kernel, to be freed; *size in bytes, 0 where it is lacking. Takes
 * a millisecond or two. NP_ESYS when it can't be made.
 */
int ns_filter_make(const struct ns_sandbox *s, void **code, size_t *size, struct np_err *err);

/* clone(2) by which a process with the seal forks a child of its parent's: flags. */
#define NS_FORK (CLONE_PARENT | SIGCHLD)

/*
 * Draw a seal, and install such a program with it, for this thread, those it makes, and processes
 * that it forks; needs no_new_privs. What is not on
 * the list fails with EPERM; what no accident explains (another program, another user, another
 * process's memory) ends the process by SIGSYS. NP_ESYS when the kernel refuses; size 0 is NP_OK.
 */
int ns_filter_install(const void *code, size_t size, struct ns_seal *seal, struct np_err *err);

/*
 * Before that: this descriptor, of a packet socket, is for hearing only. Nothing is sent by it and
 * it is bound to nothing else. Its number stays its only one: no call on the list duplicates
 * descriptors, and the sockets of the UNIX domain that are open now, by which a process can hand
 * one to itself, stay with the peers that they have. NP_OK where filters are lacking.
 */
int ns_filter_mute(int fd, struct np_err *err);

/*
 * As that, for a packet socket that tests send frames by: it is bound to nothing else, and
 * sendto(2) is the only call that sends by it.
 */
int ns_filter_fix(int fd, struct np_err *err);

#endif
