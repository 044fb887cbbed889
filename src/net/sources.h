/* Where data come from: ranges of addresses, and the sources that an end accepts. */
#ifndef NP_NET_SOURCES_H
#define NP_NET_SOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"

/* A range: "192.0.2.0/24", "2001:db8::/32", "::1" (RFC 4632, 4291). */
struct np_cidr {
	int family; /* AF_INET, AF_INET6 or AF_VSOCK */
	unsigned bits;
	uint8_t bytes[16]; /* as of np_addr_bytes(), zero after the prefix */
};

/* Parse ADDRESS[/bits], "vsock:3" or "vsock:any". Clears host bits, unmaps IPv4. NP_EUSAGE. */
int np_cidr_parse(struct np_cidr *c, const char *text, struct np_err *err);

/* "192.0.2.10-192.0.2.19": only the last byte may differ. *count is 1 to 256. NP_EUSAGE. */
int np_range_parse(struct np_addr *first, uint32_t *count, const char *text, struct np_err *err);

/* The address `number` (0: the first one) of a range. Its port is the first one's. */
void np_range_at(const struct np_addr *first, uint32_t number, struct np_addr *out);

/* The number of leading bits that all addresses of a range share. */
unsigned np_range_bits(const struct np_addr *first, uint32_t count);

/* All addresses that share the first `bits` bits of *a. */
void np_cidr_of(struct np_cidr *c, const struct np_addr *a, unsigned bits);

/* Is the address in it? An IPv4-mapped address counts as the IPv4 one. */
bool np_cidr_has(const struct np_cidr *c, const struct np_addr *a);

enum { NP_SOURCES_MAX = 8 };

/* Without connect(2), the source of each datagram is compared. Empty: no source is accepted. */
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
