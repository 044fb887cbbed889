/*
 * Whose CLOCK_MONOTONIC this process reads: two ends that read the same one can hold their times
 * against each other.
 */
#ifndef NP_SYS_BOOT_H
#define NP_SYS_BOOT_H

#include "base/bag.h"

/* Put clock.boot: the beginning of this start's id, and the time namespace. root as in
 * sys/moved.h. */
void np_boot_put(const char *root, struct np_bag *into);

#endif
