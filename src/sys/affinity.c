#include "sys/affinity.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>

int
np_bind_cpu(int cpu, struct np_err *err)
{
	cpu_set_t *set;
	size_t size;
	int rc;

	if (cpu < 0 || cpu >= 65536) {
		return np_fail(err, NP_ESYS, EINVAL, "bind to processor %d", cpu);
	}
	set = CPU_ALLOC((size_t)cpu + 1);
	if (set == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "bind to processor %d", cpu);
	}
	size = CPU_ALLOC_SIZE((size_t)cpu + 1);
	CPU_ZERO_S(size, set);
	CPU_SET_S((size_t)cpu, size, set);
	rc = sched_setaffinity(0, size, set) == 0 ? 0 : errno;
	CPU_FREE(set);
	return rc == 0 ? NP_OK : np_fail(err, NP_ESYS, rc, "bind to processor %d", cpu);
}

void
np_cpus_save(struct np_cpus *c)
{
	_Static_assert(sizeof(cpu_set_t) <= sizeof(c->words), "a processor set fits");
	c->known = sched_getaffinity(0, sizeof(cpu_set_t), (cpu_set_t *)c->words) == 0;
}

void
np_cpus_restore(const struct np_cpus *c)
{
	if (c->known) {
		sched_setaffinity(0, sizeof(cpu_set_t), (const cpu_set_t *)c->words);
	}
}
