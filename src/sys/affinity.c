#include "sys/affinity.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>

int
np_bind_cpu(int cpu, struct np_err *err)
{
	enum { BITS = 8 * sizeof(unsigned long) };
	struct np_cpus only = { .known = true };

	if (cpu < 0 || cpu >= NP_CPULIST_MOST) {
		return np_fail(err, NP_ESYS, EINVAL, "bind to processor %d", cpu);
	}
	only.words[cpu / BITS] = 1UL << cpu % BITS;
	return sched_setaffinity(0, sizeof(only.words), (const cpu_set_t *)only.words) == 0
		   ? NP_OK
		   : np_fail(err, NP_ESYS, errno, "bind to processor %d", cpu);
}

void
np_cpus_save(struct np_cpus *c)
{
	c->known = sched_getaffinity(0, sizeof(c->words), (cpu_set_t *)c->words) == 0;
}

void
np_cpus_restore(const struct np_cpus *c)
{
	if (c->known) {
		sched_setaffinity(0, sizeof(c->words), (const cpu_set_t *)c->words);
	}
}

int
np_cpus_leave_out(struct np_cpu_turns *t)
{
	uint32_t kept = 0;
	int missing = -1;
	struct np_cpus before;
	struct np_err err;

	np_cpus_save(&before);
	for (uint32_t i = 0; i < t->count; i++) {
		if (np_bind_cpu(t->cpu[i], &err) == NP_OK) {
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
	enum { BITS = 8 * sizeof(unsigned long) };
	struct np_cpus may;
	int bound = -1;

	np_cpus_save(&may);
	if (!may.known) {
		return -1;
	}
	for (size_t i = 0; i < NP_CPULIST_MOST / BITS; i++) {
		unsigned long word = may.words[i];

		if (word != 0 && (bound >= 0 || (word & (word - 1)) != 0)) {
			return -1;
		}
		if (word != 0) {
			bound = (int)(i * BITS) + __builtin_ctzl(word);
		}
	}
	return bound;
}

uint32_t
np_cpus_usable(void)
{
	struct np_cpus may;
	uint32_t count = 0;

	np_cpus_save(&may);
	for (size_t i = 0; may.known && i < sizeof(may.words) / sizeof(may.words[0]); i++) {
		count += (uint32_t)__builtin_popcountl(may.words[i]);
	}
	return count;
}
