/*
 * Lists of processors as the kernel writes them: "0-3,8".
 */
#ifndef NP_BASE_CPULIST_H
#define NP_BASE_CPULIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NP_CPULIST_MOST = 8192 };

struct np_cpulist {
	const char *root; /* for whoever fills it */
	bool any;
	uint64_t bits[NP_CPULIST_MOST / 64];
};

void np_cpulist_set(struct np_cpulist *l, unsigned cpu);
bool np_cpulist_has(const struct np_cpulist *l, unsigned cpu);

/* Add those of a text. False when it names none, or is no list: what stood before that counts. */
bool np_cpulist_add(struct np_cpulist *l, const char *text);

/* Write it; what finds no room is left out, as a whole range. Returns out. */
char *np_cpulist_text(const struct np_cpulist *l, char *out, size_t size);

#endif
