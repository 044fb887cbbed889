#include "sys/affinity.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

int
np_bind_cpu(int cpu, struct np_err *err)
{
	struct np_cpulist only = { .words = { 0 } };

	if (cpu < 0 || cpu >= NP_CPULIST_MOST) {
		return np_fail(err, NP_ESYS, EINVAL, "bind to processor %d", cpu);
	}
	np_cpulist_set(&only, (unsigned)cpu);
	return sched_setaffinity(0, sizeof(only.words), (const cpu_set_t *)only.words) == 0
		   ? NP_OK
		   : np_fail(err, NP_ESYS, errno, "bind to processor %d", cpu);
}

bool
np_cpus_save(struct np_cpulist *l)
{
	memset(l, 0, sizeof(*l));
	return sched_getaffinity(0, sizeof(l->words), (cpu_set_t *)l->words) == 0;
}

void
np_cpus_restore(const struct np_cpulist *l)
{
	sched_setaffinity(0, sizeof(l->words), (const cpu_set_t *)l->words);
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
	unsigned cpu = 0;

	if (np_cpus_usable() != 1 || !np_cpus_save(&may)) {
		return -1;
	}
	while (cpu < NP_CPULIST_MOST - 1 && !np_cpulist_has(&may, cpu)) {
		cpu++;
	}
	return (int)cpu;
}

uint32_t
np_cpus_usable(void)
{
	struct np_cpulist may;
	uint32_t count = 0;

	np_cpus_save(&may);
	for (size_t i = 0; i < sizeof(may.words) / sizeof(may.words[0]); i++) {
		count += (uint32_t)__builtin_popcountl(may.words[i]);
	}
	return count;
}
