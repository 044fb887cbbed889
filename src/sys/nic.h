/* Facts about an interface, for sys/host.h. */
#ifndef NP_SYS_NIC_H
#define NP_SYS_NIC_H

#include <stdint.h>

#include "base/bag.h"

/*
 * Put host.nic.*; root: the directory above proc and sys. The packets are counted meanwhile, 10 ms
 * at least.
 */
void np_nic_facts(const char *root, const char *device, struct np_bag *into);

/* If the interface is not known: put all of host.nic.* as unread. */
void np_nic_unread(const char *why, struct np_bag *into);

/* How many receive queues an interface uses; 0: not known. */
uint32_t np_nic_rx_queues(const char *device);

#endif
