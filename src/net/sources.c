#include "net/sources.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

/* Bytes of an IPv4 address, and before one in an IPv4-mapped address. */
enum { OF_IPV4 = 4, BEFORE_IPV4 = 12, NETWORK_BITS = 64 };

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
	unsigned bits = h.bits;

	if (h.family != from->family || h.bits == 0) {
		return false;
	}
	if (s->networks && is_network(source)) {
		bits = NETWORK_BITS;
	}
	return np_addr_bits_alike(h.at, from->at, s->bits > 0 && s->bits < bits ? s->bits : bits);
}

/* The usual case, called for each datagram: from the first address, with no port to compare. */
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
