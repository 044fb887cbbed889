/* Facts about an interface, for sys/host.h. */
#ifndef NP_SYS_NIC_H
#define NP_SYS_NIC_H

#include <stdint.h>

#include "base/bag.h"
#include "sys/link.h"

/* An interface, and how many packets of both directions it had counted at the beginning. */
struct np_nic {
	struct np_link link;
	uint64_t began_ns, packets;
	int packets_why; /* errno of reading them; 0 */
};

/* Open the interface, and begin to count its packets. root has to stay valid. */
void np_nic_begin(struct np_nic *n, const char *root, const char *device);

/* How many receive queues an interface uses; 0: not known. */
uint32_t np_nic_rx_queues(const char *device);

/* Put host.nic.*, except other_packets_per_s. */
void np_nic_facts(const struct np_nic *n, struct np_bag *into);

/* If the interface is not known: put all of host.nic.* as unread. */
void np_nic_unread(const char *why, struct np_bag *into);

/* Put host.nic.other_packets_per_s, counted since np_nic_begin(), 10 ms at least, and close *n. */
void np_nic_end(struct np_nic *n, struct np_bag *into);

#endif
