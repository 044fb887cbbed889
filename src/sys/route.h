/*
 * What the administrator has set for the route of a connection (ip-route(8)): windows and
 * congestion windows that no buffer size explains.
 */
#ifndef NP_SYS_ROUTE_H
#define NP_SYS_ROUTE_H

#include <linux/netlink.h>
#include <sys/socket.h>

#include "base/bag.h"

/* Put host.route.* of the route between two addresses; nothing if they are not of IP. */
void np_route_facts(const struct sockaddr *from, const struct sockaddr *to, struct np_bag *into);

/* Read the answer, as an np_rtnl_hear: the values that are set go into the bag. */
int np_route_hear(void *bag, const struct nlmsghdr *m);

#endif
