/*
 * Which of the kernel's counters moved between two moments: proc_net snmp and netstat, softnet_stat
 * per processor, the interface's own (ethtool(8) -S) and its interrupts, processors split by
 * user, system, softirq and steal.
 */
#ifndef NP_SYS_MOVED_H
#define NP_SYS_MOVED_H

#include "base/bag.h"

struct np_moved;

/*
 * Read the counters. root: the directory above proc and sys ("" except in tests); device: the
 * interface ("": none). Both have to last. NULL without memory; what can't be read is named in the
 * bag at the end.
 */
struct np_moved *np_moved_begin(const char *root, const char *device);

/* Read them again: what moved goes into the bag, m is freed. NULL is ignored. */
void np_moved_end(struct np_moved *m, struct np_bag *into);

#endif
