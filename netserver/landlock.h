/*
 * Files of a session, by landlock(7), whose system calls libc does not know.
 */
#ifndef NETSERVER_LANDLOCK_H
#define NETSERVER_LANDLOCK_H

#include "base/err.h"
#include "netserver/confine.h"

/* The version of its interface that the kernel has; 0: none, or it is switched off. */
int ns_landlock_version(void);

/*
 * Confine this thread and those it makes; needs no_new_privs. NP_ESYS when the kernel refuses;
 * lacking it, NP_OK.
 */
int ns_landlock_install(const struct ns_sandbox *s, struct np_err *err);

#endif
