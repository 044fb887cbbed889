/*
 * A malloc() that counts, for each thread by itself, while that thread has armed it. It takes the
 * place of libc's in every program that links this.
 */
#ifndef NP_TESTS_ALLOCS_H
#define NP_TESTS_ALLOCS_H

#include <stdbool.h>

/* Can it count here? Not where a sanitizer, valgrind or another libc has a malloc() of its own. */
bool allocs_counted(void);

/* Count the calling thread's allocations from now on. */
void allocs_arm(void);

/* Stop counting; how many there were. */
unsigned long allocs_disarm(void);

#endif
