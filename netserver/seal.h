/*
 * Random words in the two last arguments of a system call that takes at most four. The filter of
 * system calls that was installed with them lets a few calls pass only so: clone(2) that forks,
 * and those of landlock. A process that has wiped them can't make these calls any more: only root
 * can read a filter.
 */
#ifndef NETSERVER_SEAL_H
#define NETSERVER_SEAL_H

#include <stdint.h>

struct ns_seal {
	uint32_t word[2];
};

/* syscall(2) with it. */
long ns_sealed(const struct ns_seal *seal, long call, long a, long b, long c, long d);

#endif
