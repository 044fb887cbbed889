/*
 * Facts of this machine that bear on a network test (--preflight, and always in the JSON):
 * processors and their clocks, interface and its settings, the stack's limits.
 */
#ifndef NP_SYS_HOST_H
#define NP_SYS_HOST_H

#include <stdbool.h>

#include "base/bag.h"

/* "Plumbline 0.1.0 (f49d84c)": this program, its version, and the commit where it is known. */
const char *np_host_program(void);

/*
 * Put host.* into the bag. root as in sys/moved.h; device may be "". fd: the data connection's
 * socket, for path MTU and congestion control; -1: none. Takes less than 50 ms.
 */
void np_host_facts(const char *root, const char *device, int fd, struct np_bag *into);

/*
 * Those of them that a confined process can't read, or not for sure, and that last:
 * host.irqbalance, host.cpu.model, host.hypervisor; and clock.boot.
 */
void np_host_lasting(const char *root, struct np_bag *into);

/*
 * Put clock.boot, the beginning of the boot id and the time namespace: they identify the
 * CLOCK_MONOTONIC that this process reads. Two ends that read the same one can compare their times.
 */
void np_host_boot(const char *root, struct np_bag *into);

/* The local ports that the kernel picks from; false where it does not say. */
bool np_host_ports(unsigned long *first, unsigned long *last);

#endif
