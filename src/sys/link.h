/*
 * An interface of this machine: what it is asked by, and what it has counted.
 */
#ifndef NP_SYS_LINK_H
#define NP_SYS_LINK_H

#include <linux/if_link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct np_link {
	const char *root; /* of proc and sys, "" in earnest */
	char device[16];  /* of IF_NAMESIZE; "": none */
	int rtnl, inet;   /* sockets; negative errno: not available. Tests have none, as their
			   * root has files only. */
	/*
	 * Is /sys/class/net that of this network namespace, as far as this interface goes? Who was
	 * moved to another namespace keeps the old one's (ip-netns(8) mounts another one). lo is
	 * not said to be there: it looks the same everywhere.
	 */
	bool in_sysfs;
	int index;
	unsigned header; /* bytes of the link layer that it counts */
	uint32_t mtu;    /* 0: not known */
};

/* Root and device have to last. */
void np_link_open(struct np_link *l, const char *root, const char *device);
void np_link_close(const struct np_link *l);

/* Its counters now: 0, or a negative errno. */
int np_link_count(const struct np_link *l, struct rtnl_link_stats64 *out);

/* The counter at this place of a list, and its name; NULL behind the last. */
const char *np_link_counter(const struct rtnl_link_stats64 *s, size_t i, uint64_t *value);

#endif
