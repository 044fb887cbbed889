/*
 * An interface of this machine: how to query it, and its counters.
 */
#ifndef NP_SYS_LINK_H
#define NP_SYS_LINK_H

#include <linux/if_link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct np_link {
	const char *root; /* the directory above proc and sys; "" except in tests */
	char device[16];  /* of IF_NAMESIZE; "": none */
	int rtnl, inet;   /* sockets; negative errno: not available. Tests have none, as their
			   * root has files only. */
	/*
	 * Does /sys/class/net describe this interface? A process that has changed its network
	 * namespace still sees the old one's (ip-netns(8) mounts another one). False for lo, which
	 * looks the same in all.
	 */
	bool in_sysfs;
	int index;
	unsigned header; /* bytes of the link layer that it counts */
	uint32_t mtu;    /* 0: not known */
};

/* root has to last as long as *l. */
void np_link_open(struct np_link *l, const char *root, const char *device);
void np_link_close(const struct np_link *l);

/* Its counters now: 0, or a negative errno. */
int np_link_count(const struct np_link *l, struct rtnl_link_stats64 *out);

enum { NP_LINK_COUNTERS = 21 };
extern const struct np_link_counter {
	const char *name;
	size_t at; /* in struct rtnl_link_stats64 */
} np_link_counters[NP_LINK_COUNTERS];

#endif
