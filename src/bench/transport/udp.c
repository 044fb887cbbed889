#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"
#include "bench/transport/pktinfo.h"

/* Largest payload of an IPv4 datagram: 65535 - 20 (IP) - 8 (UDP). */
enum { MAX_PAYLOAD = 65507 };

enum { ECHO_MS = 50 }; /* between two echoes of a token */

static void
udp_options(const struct np_plan *p, const struct np_end *e, struct np_sockopts *o)
{
	(void)e;
	if (p->ttl >= 0 && np_family_version(p->family) == 6) {
		np_sockopts_add(o, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, "IPV6_MULTICAST_HOPS",
				p->ttl);
	} else if (p->ttl >= 0) {
		np_sockopts_add(o, IPPROTO_IP, IP_MULTICAST_TTL, "IP_MULTICAST_TTL", p->ttl);
	}
	np_pktinfo_options(p, o);
}

/* Wait for the first datagram, leave it where it is, and connect to its sender. */
static int
udp_connect_back(struct np_run *run, struct np_err *err)
{
	ssize_t n;
	char byte;

	do {
		run->end.peer.len = sizeof(run->end.peer.sa);
		n = recvfrom(run->conn->fd, &byte, 1, MSG_PEEK,
			     (struct sockaddr *)&run->end.peer.sa, &run->end.peer.len);
	} while (n < 0 && errno == EINTR && !np_stopped(run->stop));
	return n < 0 ? NP_OK : np_endpoint_connect(run, err);
}

/*
 * A daemon's sender waits for its token: whoever has that got it over the control connection, and
 * can be reached where it came from, through whatever translates addresses on the way.
 */
static int
await_echo(struct np_run *run, struct np_err *err)
{
	uint8_t wanted[NP_ECHO_SIZE], came[NP_ECHO_SIZE + 1];

	np_echo_datagram(run->end.token, wanted);
	while (!np_stopped(run->stop)) {
		ssize_t n;

		run->end.peer.len = sizeof(run->end.peer.sa);
		n = recvfrom(run->conn->fd, came, sizeof(came), 0,
			     (struct sockaddr *)&run->end.peer.sa, &run->end.peer.len);
		if (n == NP_ECHO_SIZE && memcmp(came, wanted, NP_ECHO_SIZE) == 0) {
			return run->plan->near.sock.connected ? np_endpoint_connect(run, err)
							      : NP_OK;
		}
		if (n < 0 && errno != EINTR && errno != ECONNREFUSED) {
			return np_fail(err, NP_ESYS, errno, "wait for the client's echo");
		}
	}
	np_fail(err, NP_ETIME, 0,
		"no datagram was sent: the echo that proves that they are wanted did not come "
		"(does a firewall hold back what the client sends to the data port?)");
	err->sys = ETIMEDOUT;
	return err->code;
}

/* A client's receiver says again and again that it wants them, until the first one has come. */
static int
send_echo(struct np_run *run, struct np_err *err)
{
	struct pollfd first = { .fd = run->conn->fd, .events = POLLIN };
	const void *to = np_run_connected(run) ? NULL : &run->end.peer.sa;
	socklen_t len = np_run_connected(run) ? 0 : run->end.peer.len;
	uint8_t token[NP_ECHO_SIZE];
	char text[NP_ADDR_TEXT];

	np_echo_datagram(run->end.token, token);
	while (!np_stopped(run->stop)) {
		if (sendto(run->conn->fd, token, sizeof(token), MSG_NOSIGNAL, to, len) < 0 &&
		    errno != EINTR && errno != ENOBUFS) {
			return np_fail(err, NP_ESYS, errno, "ask for datagrams of %s",
				       np_addr_text(&run->end.peer, text));
		}
		if (poll(&first, 1, ECHO_MS) > 0) {
			return NP_OK;
		}
	}
	return np_fail(err, NP_ETIME, 0, "no datagram came from %s",
		       np_addr_text(&run->end.peer, text));
}

static int
meet_active(struct np_run *run, struct np_err *err)
{
	if (np_run_connected(run)) {
		if (np_endpoint_connect(run, err) != NP_OK) {
			return err->code;
		}
	} else {
		np_endpoint_spread(&run->end.peer, run->plan->far.sock.mask);
	}
	return run->end.token != 0 ? send_echo(run, err) : NP_OK;
}

/* Datagrams need no meeting but for such an echo; -n and -N ask for connected sockets as well. */
static int
udp_meet(struct np_run *run, struct np_err *err)
{
	if (run->plan->active) {
		return meet_active(run, err);
	}
	if (run->end.token != 0) {
		return await_echo(run, err);
	}
	if (!run->plan->near.sock.connected || run->plan->flows > 1) {
		return NP_OK; /* flows share sockets */
	}
	/* A sender knows where to; a receiver has to wait for whoever it will be. */
	return run->plan->role == NP_LEAD ? np_endpoint_connect(run, err)
					  : udp_connect_back(run, err);
}

const struct np_transport np_transport_udp = {
	.name = "UDP",
	.socktype = SOCK_DGRAM,
	.protocol = IPPROTO_UDP,
	.wire_type = NP_WS_DGRAM,
	.several = true,
	.bounded = true,
	.admit = NP_ADMIT_FILTER,
	.named = true,
	.ip_protocol = IPPROTO_UDP,
	.service = "udp",
	.max_message = MAX_PAYLOAD,
	.options = udp_options,
	.open = np_endpoint_open,
	.meet = udp_meet,
};

/* RFC 3828. Not in every kernel: opening a socket tells. */
const struct np_transport np_transport_udplite = {
	.name = "UDPLite",
	.socktype = SOCK_DGRAM,
	.protocol = IPPROTO_UDPLITE,
	.wire_type = NP_WS_DGRAM,
	.bounded = true,
	.admit = NP_ADMIT_FILTER,
	.named = true,
	.ip_protocol = IPPROTO_UDPLITE,
	.service = "udp",
	.max_message = MAX_PAYLOAD,
	.options = udp_options,
	.open = np_endpoint_open,
	.meet = udp_meet,
};
