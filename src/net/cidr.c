#include "net/cidr.h"

#include <arpa/inet.h>
#include <string.h>

enum { MAPPED_BITS = 96 }; /* of ::ffff:0:0/96 */

static unsigned
width_of(int family)
{
	return np_family_version(family) == 6 ? 128 : 32;
}

/* "0" to "128": digits only, and neither a sign nor a blank as strtol(3) takes them. */
static int
parse_bits(const char *text, unsigned *bits)
{
	unsigned n = 0;
	size_t len = strlen(text);

	if (len < 1 || len > 3 || strspn(text, "0123456789") != len) {
		return -1;
	}
	for (const char *c = text; *c != '\0'; c++) {
		n = 10 * n + (unsigned)(*c - '0');
	}
	*bits = n;
	return 0;
}

static void
clear_host_part(struct np_cidr *c)
{
	unsigned whole = c->bits / 8, rest = c->bits % 8;

	if (rest != 0) {
		c->bytes[whole] &= (uint8_t)(0xff00U >> rest);
		whole++;
	}
	memset(c->bytes + whole, 0, sizeof(c->bytes) - whole);
}

static void
unmap(struct np_cidr *c)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	if (np_family_version(c->family) == 6 && c->bits >= MAPPED_BITS &&
	    memcmp(c->bytes, prefix, sizeof(prefix)) == 0) {
		memmove(c->bytes, c->bytes + sizeof(prefix), 4);
		c->family = AF_INET;
		c->bits -= MAPPED_BITS;
	}
}

int
np_cidr_parse(struct np_cidr *c, const char *text, struct np_err *err)
{
	const char *slash = strchr(text, '/');
	size_t n = slash != NULL ? (size_t)(slash - text) : strlen(text);
	struct np_cidr read = { .family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET };
	char address[INET6_ADDRSTRLEN];

	read.bits = width_of(read.family);
	if (n < sizeof(address)) {
		memcpy(address, text, n);
		address[n] = '\0';
	}
	if (n >= sizeof(address) || inet_pton(read.family, address, read.bytes) != 1 ||
	    (slash != NULL && parse_bits(slash + 1, &read.bits) != 0)) {
		return np_fail(err, NP_EUSAGE, 0,
			       "'%.60s' is no address or range (192.0.2.0/24, 2001:db8::/32)",
			       text);
	}
	if (read.bits > width_of(read.family)) {
		return np_fail(err, NP_EUSAGE, 0, "'%.60s': an address has %u bits", text,
			       width_of(read.family));
	}
	clear_host_part(&read);
	unmap(&read);
	*c = read;
	return NP_OK;
}

bool
np_cidr_has(const struct np_cidr *c, const struct np_addr *a)
{
	struct np_addr plain = *a;
	unsigned whole = c->bits / 8, rest = c->bits % 8;
	const uint8_t *bytes;

	np_addr_unmap(&plain);
	if (np_addr_version(&plain) != np_family_version(c->family)) {
		return false;
	}
	bytes = np_addr_bytes(&plain);
	return memcmp(bytes, c->bytes, whole) == 0 &&
	       (rest == 0 || ((bytes[whole] ^ c->bytes[whole]) >> (8 - rest)) == 0);
}
