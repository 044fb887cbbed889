/*
 * Two random words after the (at most four) arguments of system calls. The filter allows some only
 * with them: clone(2) that forks, landlock's. Once wiped they are lost: only root reads filters.
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
