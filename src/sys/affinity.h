/* Binding threads to processors. */
#ifndef NP_SYS_AFFINITY_H
#define NP_SYS_AFFINITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpulist.h"
#include "base/err.h"

/* Bind this thread, and those it creates, to one processor. NP_ESYS: it can't be used. */
int np_bind_cpu(int cpu, struct np_err *err);

/* The processors that the calling thread may use. False, with errno and *l empty: not known. */
bool np_cpus_save(struct np_cpulist *l);

/* Let the calling thread use these again. An empty set has no effect. */
void np_cpus_restore(const struct np_cpulist *l);

/* Remove processors to which the calling thread can't be bound. Returns the first one; -1: none. */
int np_cpus_leave_out(struct np_cpu_turns *t);

/* The only processor that the calling thread may run on; -1: there are several. */
int np_cpu_bound(void);

/* How many processors the calling thread may run on; 0: not known. */
uint32_t np_cpus_usable(void);

#endif
