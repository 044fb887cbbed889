/* A route's settings (ip-route(8)), which may limit windows without showing in buffer sizes. */
#ifndef NP_SYS_ROUTE_H
#define NP_SYS_ROUTE_H

#include <linux/netlink.h>
#include <sys/socket.h>

#include "base/bag.h"

/* Put host.route.* for the route to an IP address, else nothing; `from` not IP: any source. */
void np_route_facts(const struct sockaddr *from, const struct sockaddr *to, struct np_bag *into);

/* An np_rtnl_handler that puts the values set for a route into the bag. */
int np_route_handle(void *bag, const struct nlmsghdr *m);

#endif
