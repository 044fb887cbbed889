/* Sets of processors, as the kernel writes them: "0-3,8". */
#ifndef NP_BASE_CPULIST_H
#define NP_BASE_CPULIST_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NP_CPULIST_MOST = 8192 };

/* A larger cpu_set_t, for the macros of CPU_SET(3); numbers from NP_CPULIST_MOST on are ignored. */
struct np_cpulist {
	cpu_set_t set[NP_CPULIST_MOST / CPU_SETSIZE];
};

bool np_cpulist_has(const struct np_cpulist *l, unsigned cpu);

/* The lowest number in the set; the highest possible one if it is empty. */
unsigned np_cpulist_first(const struct np_cpulist *l);

/* Add the processors of "0-3,8". False: no list, or too large a number; those before are added. */
bool np_cpulist_add(struct np_cpulist *l, const char *text);

/* Write it as text; ranges for which there is no room are left out. Returns out. */
char *np_cpulist_text(const struct np_cpulist *l, char *out, size_t size);

/* Processors in turn, in the user's order: "0-3+8", "0-30:2" (no comma: -T LOCAL,REMOTE). */
enum {
	NP_CPU_TURNS = 1024,   /* most processors of a list */
	NP_CPU_TURNS_TEXT = 32 /* bytes of its text in messages, its NUL included */
};

struct np_cpu_turns {
	uint32_t count; /* 0: the user named none */
	uint16_t cpu[NP_CPU_TURNS];
};

/* Read a text. Returns NULL, or what is wrong with it: then *t is empty. */
const char *np_cpu_turns_parse(struct np_cpu_turns *t, const char *text);

/* Write them in the shortest form. False if there is no room for it: then out is empty. */
bool np_cpu_turns_text(const struct np_cpu_turns *t, char *out, size_t size);

/* The processor of worker i; -1: the user named none. */
int np_cpu_turn(const struct np_cpu_turns *t, uint32_t i);

/* Rotate the list so that it begins with the processor of worker i. */
void np_cpu_turns_begin(struct np_cpu_turns *t, uint32_t i);

#endif
