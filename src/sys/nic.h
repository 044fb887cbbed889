/*
 * Facts of an interface, for sys/host.h.
 */
#ifndef NP_SYS_NIC_H
#define NP_SYS_NIC_H

#include <stdint.h>

#include "base/bag.h"
#include "sys/link.h"

/* An interface that is looked at; its counters, when that began. */
struct np_nic {
	struct np_link link;
	uint64_t began_ns, packets;
	int packets_why; /* errno */
};

void np_nic_begin(struct np_nic *n, const char *root, const char *device);

/* How many receive queues an interface has; 0: not known. */
uint32_t np_nic_rx_queues(const char *root, const char *device);

/* Put host.nic.* but the traffic. */
void np_nic_facts(const struct np_nic *n, struct np_bag *into);

/* Put the same as unread, the traffic too, where the interface itself is not known. */
void np_nic_unread(const char *why, struct np_bag *into);

/* Put host.nic.other_packets_per_s, since the beginning: waits until that is 10 ms ago. */
void np_nic_end(struct np_nic *n, struct np_bag *into);

#endif
