/* Address ranges: "192.0.2.0/24", "2001:db8::/32", "::1" (RFC 4632, 4291). */
#ifndef NP_NET_CIDR_H
#define NP_NET_CIDR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"

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

#endif
