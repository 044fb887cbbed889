/*
 * System calls of a session, by seccomp(2). Two files stand behind this: filter_seccomp.c, where
 * configure found libseccomp, else filter_none.c.
 */
#ifndef NETSERVER_FILTER_H
#define NETSERVER_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Why there is no filter in this build or kernel; NULL: there is one. */
const char *ns_filter_lacks(void);

/*
 * The filter as a program for the kernel, to be freed; *size in bytes, 0 where it is lacking. Takes
 * a millisecond or two. NP_ESYS when it can't be made.
 */
int ns_filter_make(bool unix_tests, void **code, size_t *size, struct np_err *err);

/*
 * Install such a program, for this thread and those it makes; needs no_new_privs. What is not on
 * the list fails with EPERM; what no accident explains (another program, another user, another
 * process's memory) ends the process by SIGSYS. NP_ESYS when the kernel refuses; size 0 is NP_OK.
 */
int ns_filter_install(const void *code, size_t size, struct np_err *err);

#endif
