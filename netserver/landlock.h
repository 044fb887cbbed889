/* Files of a session, by landlock(7). libc has no wrappers for its system calls. */
#ifndef NETSERVER_LANDLOCK_H
#define NETSERVER_LANDLOCK_H

#include "base/err.h"
#include "netserver/confine.h"

/* The version of the kernel's landlock; 0: none, or off. seal: NULL before there is a filter. */
int ns_landlock_version(const struct ns_seal *seal);

/*
 * Confine this thread and those it makes; needs no_new_privs, and the seal if a filter of system
 * calls is installed already. NP_ESYS if the kernel refuses; NP_OK if it has no landlock.
 */
int ns_landlock_install(const struct ns_sandbox *s, const struct ns_seal *seal, struct np_err *err);

#endif
