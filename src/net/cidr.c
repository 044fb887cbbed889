#include "net/cidr.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { MAPPED_BITS = 96 }; /* of ::ffff:0:0/96 */

/* "0" to "128": digits only, unlike strtol(3), which accepts signs and blanks. */
static int
parse_bits(const char *text, unsigned *bits)
{
	size_t len = strlen(text);

	if (len < 1 || len > 3 || strspn(text, "0123456789") != len) {
		return -1;
	}
	*bits = (unsigned)strtoul(text, NULL, 10);
	return 0;
}

/* Read an address of `length` characters. -1: it is none. */
static int
read_literal(struct np_addr *a, const char *text, size_t length)
{
	int family = memchr(text, ':', length) != NULL ? AF_INET6 : AF_INET;
	char address[INET6_ADDRSTRLEN];
	uint8_t bytes[16];

	if (length >= sizeof(address)) {
		return -1;
	}
	memcpy(address, text, length);
	address[length] = '\0';
	if (inet_pton(family, address, bytes) != 1) {
		return -1;
	}
	np_addr_make(a, family, bytes, 0);
	return 0;
}

bool
np_cidr_has(const struct np_cidr *c, const struct np_addr *a)
{
	struct np_addr plain = *a;

	np_addr_unmap(&plain);
	return plain.sa.ss_family == c->family &&
	       np_addr_bits_alike(np_addr_bytes(&plain), c->bytes, c->bits);
}

void
np_cidr_of(struct np_cidr *c, const struct np_addr *a, unsigned bits)
{
	struct np_addr plain = *a;

	np_addr_unmap(&plain);
	if (bits < MAPPED_BITS || np_addr_same_family(&plain, a)) {
		plain = *a;
	} else { /* a range of IPv4-mapped addresses is the IPv4 range */
		bits -= MAPPED_BITS;
	}
	*c = (struct np_cidr){ .family = plain.sa.ss_family, .bits = bits };
	memcpy(c->bytes, np_addr_bytes(&plain), np_addr_size(&plain));
	for (unsigned bit = bits; bit < 8 * sizeof(c->bytes); bit++) {
		c->bytes[bit / 8] &= (uint8_t) ~(0x80U >> bit % 8);
	}
}

int
np_cidr_parse(struct np_cidr *c, const char *text, struct np_err *err)
{
	const char *slash = strchr(text, '/');
	size_t n = slash != NULL ? (size_t)(slash - text) : strlen(text);
	struct np_addrs named;
	struct np_addr a;
	unsigned bits = 0, most;

	if (np_family_prefixed(text) != AF_UNSPEC) {
		if (np_resolve(text, NULL, AF_UNSPEC, SOCK_STREAM, &named, err) != NP_OK) {
			return err->code;
		}
		a = named.at[0];
		/* "vsock:any": no bit has to match. */
		np_cidr_of(c, &a, np_addr_is_any(&a) ? 0 : 8 * (unsigned)np_addr_size(&a));
		return NP_OK;
	}
	if (read_literal(&a, text, n) != 0 ||
	    (slash != NULL && parse_bits(slash + 1, &bits) != 0)) {
		return np_usage(
		    err, "'%.60s' is not an address or range (192.0.2.0/24, 2001:db8::/32)", text);
	}
	most = 8 * (unsigned)np_addr_size(&a);
	if (slash != NULL && bits > most) {
		return np_usage(err, "'%.60s': an address has %u bits", text, most);
	}
	np_cidr_of(c, &a, slash != NULL ? bits : most);
	return NP_OK;
}

static const uint8_t *
last_byte(const struct np_addr *a)
{
	return np_addr_bytes(a) + np_addr_size(a) - 1;
}

int
np_range_parse(struct np_addr *first, uint32_t *count, const char *text, struct np_err *err)
{
	const char *dash = strchr(text, '-');
	struct np_addr last;

	if (dash == NULL || read_literal(first, text, (size_t)(dash - text)) != 0 ||
	    read_literal(&last, dash + 1, strlen(dash + 1)) != 0) {
		return np_usage(err,
				"'%.90s' is not a range of addresses (192.0.2.10-192.0.2.19, "
				"2001:db8::10-2001:db8::19)",
				text);
	}
	if (!np_addr_same_family(first, &last) ||
	    memcmp(np_addr_bytes(first), np_addr_bytes(&last), np_addr_size(first) - 1) != 0) {
		return np_usage(err, "'%.90s': the two are not in the same /24 (IPv6: /120)", text);
	}
	if (*last_byte(first) > *last_byte(&last)) {
		return np_usage(err, "'%.90s': the second address is below the first", text);
	}
	*count = (uint32_t)(*last_byte(&last) - *last_byte(first)) + 1;
	return NP_OK;
}

void
np_range_at(const struct np_addr *first, uint32_t number, struct np_addr *out)
{
	size_t size = np_addr_size(first);
	uint8_t bytes[16];

	*out = *first;
	memcpy(bytes, np_addr_bytes(first), size);
	bytes[size - 1] = (uint8_t)(bytes[size - 1] + number);
	np_addr_set_bytes(out, bytes);
}

unsigned
np_range_bits(const struct np_addr *first, uint32_t count)
{
	unsigned differ = *last_byte(first) ^ (*last_byte(first) + count - 1);
	unsigned bits = 8 * (unsigned)np_addr_size(first);

	for (; differ > 0; differ >>= 1) {
		bits--;
	}
	return bits;
}
