/*
 * Which of the kernel's counters changed: /proc/net's snmp, netstat and softnet_stat, those of the
 * interface, its driver (ethtool(8) -S) and interrupts, and user, system, softirq and steal time.
 */
#ifndef NP_SYS_MOVED_H
#define NP_SYS_MOVED_H

#include "base/bag.h"

struct np_moved;

/*
 * Read the counters. root: the directory above proc and sys ("" except in tests); device: "": none;
 * both must stay valid. NULL without memory; np_moved_end() says what could not be read.
 */
struct np_moved *np_moved_begin(const char *root, const char *device);

/* Count from now on. NULL is ignored. */
void np_moved_restart(struct np_moved *m);

/* Read them again, put the changes into the bag, and free m. NULL is ignored. */
void np_moved_end(struct np_moved *m, struct np_bag *into);

#endif
