/*
 * What the kernel tells of an interface by rtnetlink(7): of the network
 * namespace that this process is in, whatever is mounted on /sys. Takes no privilege.
 */
#ifndef NP_SYS_RTNL_H
#define NP_SYS_RTNL_H

#include <linux/if_link.h>
#include <stdbool.h>
#include <stdint.h>

struct np_rtnl_link {
	int index;
	unsigned flags; /* IFF_* */
	unsigned type;  /* ARPHRD_* */
	bool carrier;
	uint32_t mtu, gso_max_size, gso_max_segs; /* 0: the kernel does not tell */
	uint32_t rx_queues, tx_queues;
	char qdisc[32];
	char alias[64]; /* what who made it wrote to it; empty: nothing */
	uint8_t address[32];
	unsigned address_size;
	bool has_stats;
	struct rtnl_link_stats64 stats;
};

/* A socket for questions, or a negative errno. */
int np_rtnl_open(void);

/* The interface of that name: 0, or a negative errno, -ENODEV where there is none. */
int np_rtnl_link(int fd, const char *device, struct np_rtnl_link *out);

#endif
