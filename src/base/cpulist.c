#include "base/cpulist.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/text.h"

void
np_cpulist_set(struct np_cpulist *l, unsigned cpu)
{
	if (cpu < NP_CPULIST_MOST) {
		l->bits[cpu / 64] |= UINT64_C(1) << cpu % 64;
	}
}

bool
np_cpulist_has(const struct np_cpulist *l, unsigned cpu)
{
	return cpu < NP_CPULIST_MOST && (l->bits[cpu / 64] >> cpu % 64 & 1) != 0;
}

bool
np_cpulist_add(struct np_cpulist *l, const char *text)
{
	bool any = false;

	while (isdigit((unsigned char)*text)) {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (*end == '-' && isdigit((unsigned char)end[1])) {
			last = strtoul(end + 1, &end, 10);
		}
		if (last >= NP_CPULIST_MOST || first > last) {
			return false;
		}
		for (unsigned long cpu = first; cpu <= last; cpu++) {
			np_cpulist_set(l, (unsigned)cpu);
		}
		any = true;
		if (*end != ',') {
			return *end == '\0' && any;
		}
		text = end + 1;
	}
	return false;
}

char *
np_cpulist_text(const struct np_cpulist *l, char *out, size_t size)
{
	size_t len = 0;

	out[0] = '\0';
	for (unsigned cpu = 0; cpu < NP_CPULIST_MOST; cpu++) {
		unsigned last = cpu;

		if (!np_cpulist_has(l, cpu)) {
			continue;
		}
		while (np_cpulist_has(l, last + 1)) {
			last++;
		}
		len = np_text_add(out, size, len, last > cpu ? "%s%u-%u" : "%s%u",
				  len > 0 ? "," : "", cpu, last);
		cpu = last;
	}
	return out;
}
