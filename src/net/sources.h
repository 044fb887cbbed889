/* The sources that an end accepts. Without connect(2), the source of each datagram is compared. */
#ifndef NP_NET_SOURCES_H
#define NP_NET_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"

enum { NP_SOURCES_MAX = 8 };

/* Empty: no source is accepted. */
struct np_sources {
	struct np_addr at[NP_SOURCES_MAX]; /* ports in them are ignored */
	size_t count;
	uint32_t port; /* that they have to come from; 0: any */
	unsigned bits; /* how many first bits of an address are compared; 0: all */
	/* IPv6: accept all of its /64 (RFC 8981: temporary addresses); not loopback, link-local. */
	bool networks;
};

/* Is that source accepted? An IPv4-mapped address counts as the IPv4 one. */
bool np_sources_have(const struct np_sources *s, const struct np_addr *from);

/* Is exactly one address accepted, without regard to ports? Then connect(2) can filter. */
bool np_sources_single(const struct np_sources *s);

/*
 * Connect a bound IP datagram socket (of `family`): from now on it receives only from that address
 * and port (0: any), but first those queued. A wildcard it is bound to becomes the route's address.
 * It can still send elsewhere. ICMP errors make its calls fail (np_io_failed()). NP_ESYS.
 */
int np_sock_limit_source(int fd, int family, const struct np_addr *peer, uint32_t port,
			 struct np_err *err);

#endif
