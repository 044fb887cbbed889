#include <errno.h>
#include <netinet/in.h>

#include "bench/bench.h"
#include "bench/flow.h"
#include "bench/transport/endpoint.h"
#include "bench/transport/pktinfo.h"

/* Largest payload of an IPv4 datagram: 65535 - 20 (IP) - 8 (UDP). */
enum { MAX_PAYLOAD = 65507 };

static void
udp_options(const struct np_params *p, const struct np_end *e, struct np_sockopts *o)
{
	(void)e;
	if (p->ttl >= 0 && p->family == AF_INET6) {
		np_sockopts_add(o, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, "IPV6_MULTICAST_HOPS",
				p->ttl);
	} else if (p->ttl >= 0) {
		np_sockopts_add(o, IPPROTO_IP, IP_MULTICAST_TTL, "IP_MULTICAST_TTL", p->ttl);
	}
	np_pktinfo_options(p, o);
}

static int
udp_open(struct np_flow *f, struct np_err *err)
{
	f->fd = np_endpoint_socket(f, err);
	if (f->fd < 0) {
		return err->code;
	}
	return NP_OK;
}

/* Wait for the first datagram, leave it where it is, and connect to its sender. */
static int
udp_connect_back(struct np_flow *f, struct np_err *err)
{
	ssize_t n;
	char byte;

	do {
		f->peer.len = sizeof(f->peer.sa);
		n = recvfrom(f->fd, &byte, 1, MSG_PEEK, (struct sockaddr *)&f->peer.sa,
			     &f->peer.len);
	} while (n < 0 && errno == EINTR && !np_stopped(f->stop));
	return n < 0 ? NP_OK : np_endpoint_connect(f, err);
}

/* Datagrams need no meeting; -n and -N ask for connected sockets all the same. */
static int
udp_meet(struct np_flow *f, struct np_err *err)
{
	if (!f->par->near.connected) {
		if (f->par->active) {
			np_endpoint_spread(&f->peer, f->par->far.mask);
		}
		return NP_OK;
	}
	return f->par->active ? np_endpoint_connect(f, err) : udp_connect_back(f, err);
}

const struct np_transport np_transport_udp = {
	.name = "UDP",
	.socktype = SOCK_DGRAM,
	.protocol = IPPROTO_UDP,
	.wire_type = NP_WS_DGRAM,
	.datagram = true,
	.max_message = MAX_PAYLOAD,
	.options = udp_options,
	.open = udp_open,
	.meet = udp_meet,
};

/* RFC 3828. Not in every kernel: opening a socket tells. */
const struct np_transport np_transport_udplite = {
	.name = "UDPLite",
	.socktype = SOCK_DGRAM,
	.protocol = IPPROTO_UDPLITE,
	.wire_type = NP_WS_DGRAM,
	.datagram = true,
	.max_message = MAX_PAYLOAD,
	.options = udp_options,
	.open = udp_open,
	.meet = udp_meet,
};
