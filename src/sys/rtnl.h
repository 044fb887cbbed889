/*
 * What the kernel tells of an interface and its root qdisc by rtnetlink(7): of the network
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
	uint8_t address[32];
	unsigned address_size;
	bool has_stats;
	struct rtnl_link_stats64 stats;
};

struct np_qdisc {
	char kind[32];
	bool has_stats;
	uint32_t drops, overlimits, requeues, backlog; /* packets, ..., bytes */
	uint64_t rate_bps;                             /* of tbf, or htb's default class; 0: none */
};

/* A socket for the two below, or a negative errno. */
int np_rtnl_open(void);

/* The interface of that name: 0, or a negative errno, -ENODEV where there is none. */
int np_rtnl_link(int fd, const char *device, struct np_rtnl_link *out);

/*
 * Is /sys/class/net that of this network namespace, as far as this interface goes? Who was moved to
 * another namespace keeps the old one's (ip-netns(8) mounts another one). lo is not said to be: it
 * looks the same everywhere.
 */
bool np_rtnl_is_in_sysfs(const struct np_rtnl_link *link, const char *device);

/*
 * Its root qdisc; -ENOENT where it has none that could be seen ("noqueue"). As above. With `rate`
 * its rate is looked for, too, which takes another question or two.
 */
int np_rtnl_qdisc(int fd, int index, bool rate, struct np_qdisc *out);

#endif
