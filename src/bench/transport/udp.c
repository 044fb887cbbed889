#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/engine/io.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"
#include "bench/transport/many.h"
#include "net/sock.h"
#include "stats/ceiling.h"

/* Largest payload of an IPv4 datagram: 65535 - 20 (IP) - 8 (UDP). */
enum { MAX_PAYLOAD = 65507 };

enum { ECHO_MS = 50 }; /* between two sends of a token by a client */

/* np_transport.options: ttl is that of multicast datagrams. */
static void
udp_options(const struct np_plan *p, struct np_sockopts *o)
{
	bool six = np_family(p->family)->version == 6;
	bool answers = p->packet_info && !p->active; /* from the address that the question has */

	NP_SOCKOPT(o, p->ttl >= 0 && six, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, p->ttl);
	NP_SOCKOPT(o, p->ttl >= 0 && !six, IPPROTO_IP, IP_MULTICAST_TTL, p->ttl);
	NP_SOCKOPT(o, answers && six, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	NP_SOCKOPT(o, answers && !six, IPPROTO_IP, IP_PKTINFO, 1);
}

/* Send to that peer from now on: connect the socket to it, or note it in run->end.peer. */
static int
found_peer(struct np_run *run, struct np_conn *c, const struct np_addr *peer, struct np_err *err)
{
	if (c == run->conn) {
		run->end.peer = *peer;
	}
	return !np_run_connected(run) || np_sys_connect(c->fd, &peer->sa, peer->len) == 0
		   ? NP_OK
		   : np_fail(err, NP_ESYS, errno, "connect the data socket to %s",
			     NP_ADDR_STR(peer));
}

/* Connect to the first allowed datagram's sender; it stays queued. Discard others before it. */
static int
udp_connect_back(struct np_run *run, struct np_conn *c, struct np_err *err)
{
	char byte;

	while (!np_stopped(run->stop)) {
		struct np_addr peer = { .len = sizeof(peer.sa) };

		if (recvfrom(c->fd, &byte, 1, MSG_PEEK, (struct sockaddr *)&peer.sa, &peer.len) <
		    0) {
			if (errno != EINTR) {
				break; /* the socket stays unconnected */
			}
		} else if (np_run_accepts_from(run, &peer)) {
			return found_peer(run, c, &peer, err);
		} else {
			recv(c->fd, &byte, 1, MSG_DONTWAIT);
		}
	}
	return NP_OK;
}

/* Wait for the token: it proves the client's address, and opens the way to it through a NAT. */
static int
await_echo(struct np_run *run, struct np_conn *c, struct np_err *err)
{
	uint8_t wanted[NP_ECHO_SIZE], datagram[NP_ECHO_SIZE + 1];

	np_spare_put(wanted, NP_ECHO_NAMED, run->end.token);
	while (!np_stopped(run->stop)) {
		struct np_addr peer = { .len = sizeof(peer.sa) };
		ssize_t n = recvfrom(c->fd, datagram, sizeof(datagram), 0,
				     (struct sockaddr *)&peer.sa, &peer.len);

		if (n == NP_ECHO_SIZE && memcmp(datagram, wanted, NP_ECHO_SIZE) == 0 &&
		    np_run_accepts_from(run, &peer)) {
			return found_peer(run, c, &peer, err);
		}
		if (n < 0 && errno != EINTR && !np_io_note_icmp(run->worker, c, NP_RECV, errno)) {
			return np_fail(err, NP_ESYS, errno, "wait for the client's echo");
		}
	}
	return np_fail_verbatim(
	    err, NP_ETIME, ETIMEDOUT,
	    "no datagram was sent: the client did not echo the token that proves its address "
	    "(does a firewall drop packets to the data port?)");
}

/* Wait until then for a datagram on any of the sockets. False: none, or interrupted. */
static bool
await_first(struct pollfd *waits, uint32_t count, uint64_t until)
{
	for (uint64_t now = np_now(); now < until; now = np_now()) {
		if (poll(waits, count, (int)((until - now) / NP_MSEC) + 1) < 0) {
			return false; /* interrupted by a signal */
		}
		for (uint32_t i = 0; i < count; i++) {
			if ((waits[i].revents & POLLIN) != 0) {
				return true;
			}
		}
	}
	return false;
}

/* Repeat the tokens until a datagram of any flow arrives: then the daemon has all tokens. */
static int
send_echoes(struct np_run *run, struct pollfd *waits, struct np_err *err)
{
	bool connected = np_run_connected(run);
	const void *to = connected ? NULL : &run->end.peer.sa;
	socklen_t len = connected ? 0 : run->end.peer.len;
	uint8_t token[NP_ECHO_SIZE];

	np_spare_put(token, NP_ECHO_NAMED, run->end.token);
	while (!np_stopped(run->stop)) {
		for (uint32_t i = 0; i < run->conns; i++) {
			if (sendto(waits[i].fd, token, sizeof(token), MSG_NOSIGNAL, to, len) < 0 &&
			    errno != EINTR && errno != ENOBUFS && errno != ECONNREFUSED) {
				return np_fail(err, NP_ESYS, errno, "ask for datagrams of %s",
					       NP_ADDR_STR(&run->end.peer));
			}
		}
		if (await_first(waits, run->conns, np_deadline(ECHO_MS * NP_MSEC))) {
			return NP_OK;
		}
	}
	return np_fail(err, NP_ETIME, 0, "no datagram came from %s", NP_ADDR_STR(&run->end.peer));
}

/*
 * Connect sockets for -n and -N, unless the daemon hands over its own (np_is_handed()). With a
 * token, the daemon's end learns its peer later, in udp_greet().
 */
static int
udp_establish(struct np_run *run, struct np_err *err)
{
	const struct np_plan *p = run->plan;

	if (np_is_handed(run)) {
		return np_handed_establish(run, err);
	}
	if (p->active && np_run_connected(run)) {
		return np_endpoint_connect(run, err);
	}
	if (p->active) { /* sends will name the peer */
		np_endpoint_spread(&run->end.peer, p->far.sock.mask);
		return NP_OK;
	}
	if (run->end.token != 0 || !p->near.sock.connected) {
		return NP_OK;
	}
	/* A sender knows its peer; a receiver has to wait for the first datagram. */
	if (p->role == NP_LEAD) {
		return np_endpoint_connect(run, err);
	}
	return np_many_each(run, 0, udp_connect_back, err);
}

/*
 * A client shows the token that it got; a daemon begins to send when it has that of each flow. With
 * --one-port its front has taken the tokens: a receiver waits for the first data.
 */
static int
udp_greet(struct np_run *run, struct np_err *err)
{
	if (np_is_handed(run)) {
		bool waits =
		    run->terms->tokens && run->plan->role == NP_FOLLOW && run->conn->fd >= 0;

		return waits ? np_many_wait(run, np_handed_await, err) : NP_OK;
	}
	if (run->end.token == 0) {
		return NP_OK;
	}
	return run->plan->active ? np_many_wait(run, send_echoes, err)
				 : np_many_each(run, 0, await_echo, err);
}

/* np_transport.read_closing: report it if a client's datagrams need fragments on their route. */
static void
udp_read_closing(struct np_run *run, int fd)
{
	int mtu = run->plan->active ? np_sock_path_mtu(fd, &run->end.peer) : -1;
	struct np_encap encap = { .mtu = mtu > 0 ? (uint32_t)mtu : 0,
				  .family = np_family(run->plan->family)->version };
	uint32_t size = (uint32_t)run->worker->send_size, n = np_ceiling_fragments(&encap, size);

	if (n > 1) {
		snprintf(run->closing.detail, sizeof(run->closing.detail),
			 "datagrams of %u bytes in %u fragments each, up to %u in one", size, n,
			 np_ceiling_datagram(&encap));
	}
}

/* Members common to UDP and UDP-Lite. */
#define DATAGRAMS                                                                                  \
	.socktype = SOCK_DGRAM, .wire_type = NP_WS_DGRAM, .bounded = true, .admit = NP_ADMIT_IP,   \
	.named = true, .service_protocol = "udp", .message.max = MAX_PAYLOAD,                      \
	.options = udp_options, .open = np_endpoint_open, .another = np_endpoint_another,          \
	.establish = udp_establish, .greet = udp_greet, .read_closing = udp_read_closing

const struct np_transport np_transport_udp = {
	DATAGRAMS,
	.name = "UDP",
	.protocol = IPPROTO_UDP,
	.kernel.listed = "UDP",
	.kernel.listed_six = "UDPv6",
	.stamps = true,
	.one_port = true,
	.ip_protocol = IPPROTO_UDP,
};

/* RFC 3828. Not every kernel has it. */
const struct np_transport np_transport_udplite = {
	DATAGRAMS,
	.name = "UDPLite",
	.protocol = IPPROTO_UDPLITE,
	.kernel.listed = "UDP-Lite",
	.kernel.listed_six = "UDPLITEv6",
	.ip_protocol = IPPROTO_UDPLITE,
};
