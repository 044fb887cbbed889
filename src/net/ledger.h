/*
 * The ledger of one flow: figures from its packets' headers. No length in them is trusted. A tap
 * sees outgoing packets before a loss: data seen twice are retransmissions. Incoming ones have been
 * lost, reordered or duplicated: net/follow.h tells. Only a datagram's first fragment has ports: if
 * that is lost the others are orphans, counted separately.
 */
#ifndef NP_NET_LEDGER_H
#define NP_NET_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bag.h"
#include "net/addr.h"

/* What a packet begins with (pcap-linktype(7)). */
enum np_ledger_link {
	NP_LINK_ETHERNET, /* with VLAN tags, or without */
	NP_LINK_SLL,      /* Linux cooked capture, version 1 */
	NP_LINK_SLL2,     /* and version 2 */
	NP_LINK_RAW,      /* no header before IP */
	NP_LINK_NULL      /* four bytes of address family, in either order */
};

enum { NP_LEDGER_SIZES = 8 }; /* of IP: up to 64, 128, 256, 512, 1024, 1518, 9018 bytes, more */

/* Ports of one end of several flows, a bit each. count 0: that of the address in the flow. */
struct np_ledger_ports {
	uint32_t count;
	uint8_t bits[(UINT16_MAX + 1) / 8];
};

void np_ledger_add_port(struct np_ledger_ports *ports, uint32_t port);

/* What is counted; a wildcard (or len 0) and port 0 match any. `ports` replace addresses' ports. */
struct np_ledger_flow {
	struct np_addr near, far;
	struct np_ledger_ports ports;
	int protocol;          /* IPPROTO_TCP, IPPROTO_UDP */
	bool many_connections; /* there are many, so sequence numbers are not followed */
	enum np_ledger_link link;
	uint32_t mtu; /* of the interface, bytes; 0: not known */
	/* Payload of each datagram that a super-packet of UDP stands for; 0: not known. */
	uint32_t datagram_out, datagram_in;
};

struct np_ledger;

/* An empty ledger, for free(3); NULL without memory. */
struct np_ledger *np_ledger_new(const struct np_ledger_flow *flow);

/*
 * Count a packet, `captured` of `length` bytes, at any clock's at_ns. True: it is, or may be, ours.
 */
bool np_ledger_packet(struct np_ledger *l, uint64_t at_ns, const uint8_t *bytes, size_t captured,
		      size_t length);

/* Count anew after the warm-up; keeps sequence numbers, and what the other end's ledger needs. */
void np_ledger_restart(struct np_ledger *l, uint64_t at_ns);

/* Put wire.* of doc/evidence.md, except for what only the capture knows. */
void np_ledger_put(const struct np_ledger *l, struct np_bag *into);

#endif
