#include "net/sources.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* Bytes of an IPv4 address, and before one in an IPv4-mapped address. */
enum { OF_IPV4 = 4, BEFORE_IPV4 = 12, NETWORK_BITS = 64 };

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
	if (bits < 8 * BEFORE_IPV4 || np_addr_same_family(&plain, a)) {
		plain = *a;
	} else { /* a range of IPv4-mapped addresses is the IPv4 range */
		bits -= 8 * BEFORE_IPV4;
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

/* The bytes that identify a host: those of an IPv4-mapped address as an IPv4 one. */
struct host {
	const uint8_t *at; /* in the np_addr, which has to last as long */
	unsigned bits;     /* 0: its family has no host address */
	int family;
};

static struct host
host_of(const struct np_addr *a)
{
	struct host h = { np_addr_bytes(a), 8 * (unsigned)np_addr_size(a), a->sa.ss_family };

	if (h.family == AF_INET6 && IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)h.at)) {
		h = (struct host){ h.at + BEFORE_IPV4, 8 * OF_IPV4, AF_INET };
	}
	return h;
}

/* With s->networks, does an address stand for its /64? */
static bool
is_network(const struct np_addr *a)
{
	const struct in6_addr *six = (const struct in6_addr *)np_addr_bytes(a);

	return a->sa.ss_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(six) &&
	       !IN6_IS_ADDR_LOOPBACK(six) && !IN6_IS_ADDR_LINKLOCAL(six);
}

/* Does a datagram's host match that source? */
static bool
matches(const struct np_sources *s, const struct np_addr *source, const struct host *from)
{
	struct host h = host_of(source);
	unsigned bits = s->networks && is_network(source) ? NETWORK_BITS : h.bits;

	bits = s->bits > 0 && s->bits < bits ? s->bits : bits;
	return h.family == from->family && h.bits > 0 && np_addr_bits_alike(h.at, from->at, bits);
}

/* The usual case: from the first address, with no port to compare. False: compare with all. */
static bool
is_first(const struct np_sources *s, const struct np_addr *from)
{
	const struct sockaddr_in *a = (const void *)&s->at[0].sa, *b = (const void *)&from->sa;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (s->count == 0 || s->port != 0 || a->sin_family != b->sin_family) {
		return false;
	}
	return a->sin_family == AF_INET    ? a->sin_addr.s_addr == b->sin_addr.s_addr
	       : a->sin_family == AF_INET6 ? IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr) &&
						 a6->sin6_scope_id == b6->sin6_scope_id
					   : false;
}

bool
np_sources_have(const struct np_sources *s, const struct np_addr *from)
{
	struct host h;

	if (is_first(s, from)) {
		return true;
	}
	h = host_of(from);
	if (s->port != 0 && np_addr_port(from) != s->port) {
		return false;
	}
	for (size_t i = 0; i < s->count; i++) {
		if (matches(s, &s->at[i], &h) && np_addr_may_share_link(&s->at[i], from)) {
			return true;
		}
	}
	return false;
}

bool
np_sources_single(const struct np_sources *s)
{
	return s->count == 1 && s->bits == 0 && !(s->networks && is_network(&s->at[0]));
}

int
np_sock_limit_source(int fd, int family, const struct np_addr *peer, uint32_t port,
		     struct np_err *err)
{
	struct np_addr to = *peer;
	struct host h = host_of(peer);

	if (h.family == AF_INET && family == AF_INET6) { /* a socket for both versions of IP */
		uint8_t mapped[16] = { [10] = 0xff, 0xff };

		memcpy(mapped + BEFORE_IPV4, h.at, OF_IPV4);
		np_addr_make(&to, AF_INET6, mapped, 0);
	} else {
		np_addr_unmap(&to);
	}
	np_addr_set_port(&to, port);
	if (connect(fd, (const struct sockaddr *)&to.sa, to.len) != 0) {
		return np_fail(err, NP_ESYS, errno, "limit a data socket to datagrams from %s",
			       NP_HOST_STR(peer));
	}
	return NP_OK;
}
