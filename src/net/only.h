/*
 * Sockets that hear one machine, or a few addresses, only: a filter in the kernel, so that loops
 * need no check.
 */
#ifndef NP_NET_ONLY_H
#define NP_NET_ONLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"

/*
 * Let in only packets from that address (any port): a classic BPF program on the IP source address
 * (socket(7), SO_ATTACH_FILTER). For a listening TCP socket strangers' SYNs are dropped unanswered,
 * for UDP their datagrams. IPv4-mapped addresses are handled. NP_ESYS; with EPERM for a TCP socket
 * where that takes CAP_NET_ADMIN, as Linux 6.18 was seen to want it.
 */
int np_sock_only_from(int fd, const struct np_addr *peer, struct np_err *err);

/* The same of all addresses that begin with `bits` bits of that one; 0: it alone. */
int np_sock_only_network(int fd, const struct np_addr *peer, unsigned bits, struct np_err *err);

/* Whose datagrams are let in. */
enum { NP_SOURCES_MAX = 8 };
struct np_sources {
	struct np_addr at[NP_SOURCES_MAX]; /* any of these, whatever its port */
	size_t count;
	uint32_t port; /* all of them come from it; 0: from any */
	unsigned bits; /* of each address that are compared; 0: all */
	/* An address of IPv6 stands for its /64, of which its machine may have temporary ones (RFC
	 * 8981), which it prefers; but for those of the loopback and of the link. */
	bool networks;
};

/*
 * The same for a datagram socket of UDP or UDP-Lite that hears several addresses. Takes the place
 * of a filter that was there. Without any source nothing is heard.
 */
int np_sock_only_sources(int fd, const struct np_sources *s, struct np_err *err);

/* Take the filter off again, of an accepted connection, which inherits it. */
void np_sock_from_any(int fd);

#endif
