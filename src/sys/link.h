/* An interface of this machine: how to query it, and its counters. */
#ifndef NP_SYS_LINK_H
#define NP_SYS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sys/rtnl.h"

struct np_link {
	const char *root; /* the directory above proc and sys; "" except in tests */
	char device[16];  /* IF_NAMESIZE; "": none */
	int rtnl, inet;   /* sockets for rtnetlink and ioctl(2), or negative errnos, as in tests */
	/* Does /sys/class/net show it? After a change of network namespace it still has the old
	 * one's interfaces, unless /sys is mounted again, as by ip-netns(8). False for lo, which
	 * looks the same everywhere. */
	bool in_sysfs;
	struct np_rtnl_link at_open; /* what rtnetlink said; zeros: nothing */
	int at_open_why;             /* errno of that; 0: none, or there is no socket for it */
	unsigned header; /* bytes of the link layer's header that its counters include */
	uint32_t mtu;    /* 0: not known */
};

/* Open it, and note what hardly changes; device may be "". root has to last as long as *l. */
void np_link_open(struct np_link *l, const char *root, const char *device);
void np_link_close(const struct np_link *l);

/*
 * Its counters now: 0, or a negative errno. np_link_carried() reads packets and bytes alone (the
 * rest is 0), where it can from sysfs: rtnetlink takes a lock that other programs may hold for
 * seconds.
 */
int np_link_count(const struct np_link *l, struct rtnl_link_stats64 *out);
int np_link_carried(const struct np_link *l, struct rtnl_link_stats64 *out);

/* The counters that files of /sys/class/net/DEV/statistics show, too: packets and bytes first. */
enum { NP_LINK_CARRIED = 4, NP_LINK_COUNTERS = 21 };
extern const struct np_link_counter {
	const char *name;
	size_t at; /* in struct rtnl_link_stats64 */
} np_link_counters[NP_LINK_COUNTERS];

#endif
