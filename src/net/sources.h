/*
 * The sources that an end accepts: one address, the addresses of a network, or a few. A socket that
 * is connected to one address receives only from that; on others each source is compared.
 */
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
	struct np_addr at[NP_SOURCES_MAX]; /* any of these, whatever its port */
	size_t count;
	uint32_t port; /* all of them come from it; 0: from any */
	unsigned bits; /* of each address that are compared; 0: all */
	/* An address of IPv6 stands for its /64, of which its machine may have temporary ones (RFC
	 * 8981), which it prefers; but for those of the loopback and of the link. */
	bool networks;
};

/* May it come from there? An IPv4-mapped address counts as the IPv4 one. */
bool np_sources_have(const struct np_sources *s, const struct np_addr *from);

bool np_sources_are_one(const struct np_sources *s);

/*
 * Let a bound datagram socket of that family, of IP, hear that address alone, and if port is not 0
 * that port alone: the kernel compares the source of a datagram with what the socket is connected
 * to, but no port with 0. What others have sent before that stays. A socket bound to the wildcard
 * is bound to the address that the routes choose then. It can still send elsewhere, by an address
 * of its own. What ICMP says of what it has sent fails its calls from now on (np_io_failed()).
 * NP_ESYS.
 */
int np_sock_limit_source(int fd, int family, const struct np_addr *peer, uint32_t port,
			 struct np_err *err);

#endif
