/* Facts about this machine for --preflight and the JSON: processors, clocks, interface, limits. */
#ifndef NP_SYS_HOST_H
#define NP_SYS_HOST_H

#include <stdbool.h>

#include "base/bag.h"

/* "Plumbline 0.1.0 (f49d84c)": this program's version, and the commit if it is known. */
const char *np_host_program(void);

/*
 * Put host.* into the bag. root: the directory above proc and sys; device may be "". fd: the socket
 * of a data connection, for path MTU and congestion control; -1: none. Takes less than 50 ms.
 */
void np_host_facts(const char *root, const char *device, int fd, struct np_bag *into);

/*
 * Put the facts that don't change, before the process is confined and may be unable to read them:
 * host.irqbalance, host.cpu.model, host.hypervisor and clock.boot.
 */
void np_host_lasting(struct np_bag *into);

/* Put clock.boot: boot id and time namespace. Ends with equal ones share their CLOCK_MONOTONIC. */
void np_host_boot(const char *root, struct np_bag *into);

/* The range from which the kernel picks local ports (ip(7)). False: it could not be read. */
bool np_host_ports(unsigned long *first, unsigned long *last);

#endif
