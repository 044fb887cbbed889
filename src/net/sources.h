/*
 * The sources that an end accepts: one address, those of a network, or a few. A socket connected to
 * an address receives only from there; otherwise the source of each datagram is compared.
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
	struct np_addr at[NP_SOURCES_MAX]; /* ports in them are ignored */
	size_t count;
	uint32_t port; /* that they have to come from; 0: any */
	unsigned bits; /* how many first bits of an address are compared; 0: all */
	/* An IPv6 address stands for its /64, since a host prefers temporary addresses of it (RFC
	 * 8981). Not for loopback and link-local addresses. */
	bool networks;
};

/* Is that source accepted? An IPv4-mapped address counts as the IPv4 one. */
bool np_sources_have(const struct np_sources *s, const struct np_addr *from);

/* Is exactly one address accepted, without regard to ports? Then connect(2) can filter. */
bool np_sources_single(const struct np_sources *s);

/*
 * Connect a bound IP datagram socket of that family, so that it receives only from that address
 * and, unless it is 0, that port. Datagrams that it has already received stay. If it is bound to
 * the wildcard, it is bound to the address that the routes choose. It can still send elsewhere.
 * From now on ICMP errors make its calls fail (np_io_failed()). NP_ESYS.
 */
int np_sock_limit_source(int fd, int family, const struct np_addr *peer, uint32_t port,
			 struct np_err *err);

#endif
