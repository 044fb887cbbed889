/*
 * Sets of processors, as the kernel writes them: "0-3,8".
 */
#ifndef NP_BASE_CPULIST_H
#define NP_BASE_CPULIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NP_CPULIST_MOST = 8192, NP_CPULIST_BITS = 8 * sizeof(unsigned long) };

/* A cpu_set_t of sched_setaffinity(2), of another size. */
struct np_cpulist {
	unsigned long words[NP_CPULIST_MOST / NP_CPULIST_BITS];
};

void np_cpulist_set(struct np_cpulist *l, unsigned cpu);
bool np_cpulist_has(const struct np_cpulist *l, unsigned cpu);

/* Add those of a text. False when it names none, or is no list: what stood before that counts. */
bool np_cpulist_add(struct np_cpulist *l, const char *text);

/* Write it; what finds no room is left out, as a whole range. Returns out. */
char *np_cpulist_text(const struct np_cpulist *l, char *out, size_t size);

/*
 * Processors to be used in turn, in the order that a user named them in: "0-3+8", "0-30:2" (every
 * second one). A plus sign separates, since a comma is what stands between the two ends of an
 * option.
 */
enum { NP_CPU_TURNS = 256, NP_CPU_TURNS_TEXT = 32 };

struct np_cpu_turns {
	uint32_t count; /* 0: none are named */
	uint16_t cpu[NP_CPU_TURNS];
};

/* Read them. NULL, or why the text is no such list: then *t is empty. */
const char *np_cpu_turns_parse(struct np_cpu_turns *t, const char *text);

/* Write them as briefly as can be. False when that does not fit: then out is empty. */
bool np_cpu_turns_text(const struct np_cpu_turns *t, char *out, size_t size);

/* The processor of worker i; -1: none are named. */
int np_cpu_turn(const struct np_cpu_turns *t, uint32_t i);

/* Let the turns begin with that of worker i. */
void np_cpu_turns_begin(struct np_cpu_turns *t, uint32_t i);

#endif
