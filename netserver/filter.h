/*
 * What a session may do: system calls by seccomp(2) (filter_none.c: without libseccomp), and files
 * by landlock(7), which has no wrappers in libc (landlock.c).
 */
#ifndef NETSERVER_FILTER_H
#define NETSERVER_FILTER_H

#include <linux/filter.h>
#include <sched.h>
#include <signal.h>

#include "base/err.h"
#include "netserver/confine.h"

/* Why there is no filter in this build or kernel; NULL: there is one. */
const char *ns_filter_lacks(void);

/* Make a program (left empty without seccomp), in 1 to 2 ms. Always free its filter. NP_ESYS. */
int ns_filter_make(const struct ns_sandbox *s, struct sock_fprog *program, struct np_err *err);

/*
 * Two random words after the (at most four) arguments of system calls. The filter allows some only
 * with them: clone(2) that forks, landlock's. Once wiped they are lost: only root reads filters.
 */
struct ns_seal {
	uint32_t word[2];
};

/* syscall(2), with the words as the last two arguments. Leaves no copy of them. */
long ns_sealed(const struct ns_seal *seal, long call, long a, long b, long c, long d);

/* Flags of clone(2), by which a process with the seal forks a child of its own parent. */
#define NS_FORK (CLONE_PARENT | SIGCHLD)

/* Which argument of clone(2) they are; the other one of the first two is the stack. */
#if defined(__s390__)
enum { NS_FORK_ARG = 1 };
#else
enum { NS_FORK_ARG = 0 };
#endif

/*
 * Draw a seal, put it into the program, install that for this thread and what it starts, and wipe
 * it. Needs no_new_privs. Calls not on the list give EPERM; an attacker's (for another program,
 * user, or memory) end the process by SIGSYS. NP_ESYS: refused. Empty: NP_OK, *seal stays as is.
 */
int ns_filter_install(struct sock_fprog *program, struct ns_seal *seal, struct np_err *err);

/*
 * Before ns_filter_install(): this packet socket can't be rebound, nor send or, if it `sends`, only
 * by sendto(2) and send(2). The filter knows its descriptor: no call on the list duplicates it, and
 * open UNIX sockets can't reach a peer that passes it back (SCM_RIGHTS). NP_OK without seccomp.
 */
int ns_filter_socket(int fd, bool sends, struct np_err *err);

/* The version of the kernel's landlock; 0: none, or off. seal: NULL before there is a filter. */
int ns_landlock_version(const struct ns_seal *seal);

/*
 * Confine this thread and those it makes; needs no_new_privs, and the seal if a filter of system
 * calls is installed already. NP_ESYS if the kernel refuses; NP_OK if it has no landlock.
 */
int ns_landlock_install(const struct ns_sandbox *s, const struct ns_seal *seal, struct np_err *err);

#endif
