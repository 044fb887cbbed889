#include "sys/affinity.h"

#include <errno.h>
#include <string.h>

int
np_bind_cpu(int cpu, struct np_err *err)
{
	struct np_cpulist only;

	CPU_ZERO_S(sizeof(only.set), only.set);
	/* None is set for a number below 0 or too large: EINVAL. */
	CPU_SET_S((size_t)cpu, sizeof(only.set), only.set);
	return sched_setaffinity(0, sizeof(only.set), only.set) == 0
		   ? NP_OK
		   : np_fail(err, NP_ESYS, errno, "bind to processor %d", cpu);
}

bool
np_cpus_save(struct np_cpulist *l)
{
	memset(l, 0, sizeof(*l));
	return sched_getaffinity(0, sizeof(l->set), l->set) == 0;
}

void
np_cpus_restore(const struct np_cpulist *l)
{
	sched_setaffinity(0, sizeof(l->set), l->set);
}

int
np_cpus_leave_out(struct np_cpu_turns *t)
{
	uint32_t kept = 0;
	int missing = -1;
	struct np_cpulist before;

	np_cpus_save(&before); /* each trial changes it */
	for (uint32_t i = 0; i < t->count; i++) {
		if (np_bind_cpu(t->cpu[i], NULL) == NP_OK) {
			t->cpu[kept++] = t->cpu[i];
		} else if (missing < 0) {
			missing = t->cpu[i];
		}
	}
	t->count = kept;
	np_cpus_restore(&before);
	return missing;
}

int
np_cpu_bound(void)
{
	struct np_cpulist may;

	return np_cpus_usable() == 1 && np_cpus_save(&may) ? (int)np_cpulist_first(&may) : -1;
}

uint32_t
np_cpus_usable(void)
{
	struct np_cpulist may;

	np_cpus_save(&may);
	return (uint32_t)CPU_COUNT_S(sizeof(may.set), may.set);
}
