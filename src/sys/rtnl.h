/* Ask rtnetlink(7) about this process's network namespace, whatever /sys shows; unprivileged. */
#ifndef NP_SYS_RTNL_H
#define NP_SYS_RTNL_H

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/bag.h"

struct np_rtnl_link {
	int index;
	unsigned flags; /* IFF_* */
	unsigned type;  /* ARPHRD_* */
	bool carrier;
	uint32_t mtu, gso_max_size, gso_max_segs; /* 0: not told by the kernel */
	uint32_t rx_queues, tx_queues;
	char qdisc[32];
	char alias[64]; /* as set by ip-link(8); may be empty */
	uint8_t address[32];
	unsigned address_size;
	bool has_stats;
	struct rtnl_link_stats64 stats;
};

/* A socket for requests, or a negative errno. */
int np_rtnl_open(void);

/* Read an interface by name: 0, or a negative errno; -ENODEV: there is none. */
int np_rtnl_link(int fd, const char *device, struct np_rtnl_link *out);

/* Set to[n] to the attribute of type n < count among `len` bytes, or to NULL if it is missing. */
void np_rtnl_sort(const void *at, int len, const struct rtattr **to, unsigned count);

/* np_rtnl_sort() of the attributes nested in `in`; all NULL if that is NULL. */
void np_rtnl_sort_nested(const struct rtattr *in, const struct rtattr **to, unsigned count);

/* Copy an attribute into out, cut or filled with zeros. False if `a` is NULL: out is unchanged. */
bool np_rtnl_take(const struct rtattr *a, void *out, size_t size);

/* Copy a text; empty if `a` is NULL. */
void np_rtnl_take_text(const struct rtattr *a, char *out, size_t size);

/* Called for each message of an answer; returns 1 if it used it, else 0. */
typedef int np_rtnl_handler(void *ctx, const struct nlmsghdr *m);

/*
 * Ask for queueing disciplines (RTM_GETQDISC), classes (RTM_GETTCLASS) or filters of `parent`
 * (RTM_GETTFILTER); some may be other interfaces'. 0 or a negative errno; -ENOENT: none used.
 */
int np_rtnl_dump_tc(int fd, uint16_t type, int index, uint32_t parent, np_rtnl_handler *handle,
		    void *ctx);

/*
 * Put host.route.*, settings of the route to an IP address (ip-route(8)), which may limit windows
 * without showing in buffer sizes; `from` not IP: any source. Nothing if `to` is no IP address.
 */
void np_route_facts(const struct sockaddr *from, const struct sockaddr *to, struct np_bag *into);

/* An np_rtnl_handler that puts the values set for a route into the bag. */
int np_route_handle(void *bag, const struct nlmsghdr *m);

#endif
