/*
 * Random words that a process passes as the last two arguments of system calls that take at most
 * four. Its filter allows a few calls only with these words: clone(2) that forks, and those of
 * landlock. Once it has wiped them it can't make these calls any more: only root can read a filter.
 */
#ifndef NETSERVER_SEAL_H
#define NETSERVER_SEAL_H

#include <stdint.h>

struct ns_seal {
	uint32_t word[2];
};

/* syscall(2), with the words as the last two arguments. Leaves no copy of them. */
long ns_sealed(const struct ns_seal *seal, long call, long a, long b, long c, long d);

#endif
