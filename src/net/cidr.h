/*
 * Address ranges as operators write them: "192.0.2.0/24", "2001:db8::/32", "::1" (RFC 4632, 4291).
 */
#ifndef NP_NET_CIDR_H
#define NP_NET_CIDR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"

struct np_cidr {
	int family; /* AF_INET or AF_INET6 */
	unsigned bits;
	uint8_t bytes[16]; /* network order, zero behind the prefix */
};

/*
 * Read one literal address, with or without /bits; bits of the host part are dropped. A range
 * inside ::ffff:0:0/96 becomes the IPv4 range that it stands for. NP_EUSAGE quotes the text.
 */
int np_cidr_parse(struct np_cidr *c, const char *text, struct np_err *err);

/* Is the address in it? An IPv4-mapped address counts as the IPv4 one. */
bool np_cidr_has(const struct np_cidr *c, const struct np_addr *a);

#endif
