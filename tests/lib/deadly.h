/*
 * A system call that must not be made ends the process by SIGSYS: for children of tests.
 */
#ifndef NP_TESTS_DEADLY_H
#define NP_TESTS_DEADLY_H

#include <stdbool.h>
#include <stdint.h>

/*
 * From here on this process ends when it makes the call with an argument, counted from 0, whose
 * lower half is `first` to `last`. False where the kernel has no seccomp(2).
 */
bool deadly_call(long call, unsigned argument, uint32_t first, uint32_t last);

#endif
