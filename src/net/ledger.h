/*
 * The ledger of one flow's packets: from the bytes of their headers to figures. It captures nothing
 * itself and believes no length; net/capture.h hands the packets in.
 *
 * A tap at an end sees what this end sends before the network could lose it: data that go out for
 * the second time are retransmissions. Of what comes in it sees what the network left over, changed
 * the order of, or made two of; net/follow.h tells these apart.
 *
 * Pieces of datagrams have no ports but in the first one. Where that is lost the others are
 * orphans, counted apart.
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
	NP_LINK_RAW,      /* IP at once */
	NP_LINK_NULL      /* four bytes of address family, in either order */
};

enum { NP_LEDGER_SIZES = 8 }; /* of segments: up to 64, 128, 256, 512, 1024, 1518, 9018, more */

/* Ports of one end of several flows, a bit each; none: that of the address. */
struct np_ledger_ports {
	uint32_t count;
	uint8_t bits[(UINT16_MAX + 1) / 8];
};

void np_ledger_add_port(struct np_ledger_ports *ports, uint32_t port);

/*
 * Which packets are counted; an address of length 0 or 0 bytes, or a port of 0, matches any.
 * Several flows go to any of several ports at the end with the known port.
 */
struct np_ledger_flow {
	struct np_addr near, far;
	struct np_ledger_ports ports;
	int protocol;     /* IPPROTO_TCP, IPPROTO_UDP */
	bool connections; /* there are many of them: no sequence numbers are followed */
	enum np_ledger_link link;
	uint32_t mtu; /* of the interface, bytes; 0: not known */
	/* Payload of each datagram that a super-packet of UDP stands for; 0: not known. */
	uint32_t datagram_out, datagram_in;
};

struct np_ledger;

/* An empty ledger; NULL without memory. */
struct np_ledger *np_ledger_new(const struct np_ledger_flow *flow);
void np_ledger_free(struct np_ledger *l);

/*
 * One packet: its first `captured` bytes of `length`, seen at `at_ns` of any clock. Returns false
 * when it is none of the flow's, and then counts nothing. True: it is, or a piece that may be.
 */
bool np_ledger_packet(struct np_ledger *l, uint64_t at_ns, const uint8_t *bytes, size_t captured,
		      size_t length);

/* Put wire.* as in doc/evidence.md, but what only the capture knows. */
void np_ledger_put(const struct np_ledger *l, struct np_bag *into);

#endif
