/*
 * What a link can carry at most, from the bytes that packets take on its wire. Pure arithmetic:
 * doc/ceilings.md derives every formula and works it out in numbers. netperf --ceiling
 * (cli/ceilings.h) answers scripts by it.
 */
#ifndef NP_STATS_CEILING_H
#define NP_STATS_CEILING_H

#include <stdbool.h>
#include <stdint.h>

/* What an IP packet takes on the wire: max(packet + header + rest, least) byte times. */
struct np_framing {
	uint32_t header; /* of the frame; 14 of Ethernet, 18 with a VLAN tag */
	uint32_t rest;   /* check sum, preamble, gap: 24 of Ethernet */
	uint32_t least;  /* of the shortest frame, with what it costs: 84 of Ethernet */
};
#define NP_FRAMING_ETHERNET ((struct np_framing){ .header = 14, .rest = 24, .least = 84 })

/* In the place of a family: datagrams are frames, without headers of IP and UDP. */
enum { NP_FRAMES = 2 };

/* What sizes and costs depend on. */
struct np_way {
	uint32_t mtu; /* bytes of IP: 68 at least with IPv4, 1280 with IPv6; of any with frames */
	int family;   /* of IP: 4 or 6; NP_FRAMES: there is none in the frames */
	bool timestamps;
	uint32_t options; /* bytes that each TCP segment with data has of others: MPTCP's */
	uint32_t
	    mss; /* announced by both ends (TCP_MAXSEG), if less than the MTU's; 0: the MTU's */
	struct np_framing framing;
	uint32_t tls_send; /* TLS over TCP: bytes of a send of a stream; 0: there is no TLS */
	/* The header of a datagram that is never fragmented, such as DCCP's; 0: UDP's. */
	uint32_t message_header;
};

/* Of TLS 1.3: payload bytes of a full record; header, type of the content and tag of any. */
enum { NP_TLS_RECORD_MAX = 16384, NP_TLS_RECORD_COST = 22 };

/* Bytes of TCP that a message takes over TLS: one record for each begun NP_TLS_RECORD_MAX. */
uint64_t np_ceiling_tls(uint32_t size);

/* The least MTU of a family; 0: there is none. */
uint32_t np_ceiling_least_mtu(int family);

/* Is there a link under such a family, that packets cross? */
bool np_ceiling_has_packets(int family);

/* Is there such a way? The functions below take any, and say that it has no ceiling. */
bool np_ceiling_possible(const struct np_way *way);

/* Bytes of IP's header; 0: there is none. */
uint32_t np_ceiling_ip_header(const struct np_way *way);

/* Payload bytes of a full TCP segment; 0 where no segment is possible on such a way. */
uint32_t np_ceiling_segment(const struct np_way *way);

/* The share (0 to 1) of the link's rate that is payload of a TCP stream; NAN: no such way. */
double np_ceiling_tcp(const struct np_way *way);

/* What a full TCP segment takes on the wire, and a datagram of `size` bytes, whole or in
 * fragments; 0: no such way, segment or datagram. */
uint64_t np_ceiling_segment_cost(const struct np_way *way);
uint64_t np_ceiling_datagram_cost(const struct np_way *way, uint32_t size);

/* The payload of the largest datagram that is not fragmented, and of the largest one. */
uint32_t np_ceiling_datagram(const struct np_way *way);
uint32_t np_ceiling_most_datagram(const struct np_way *way);

/* The packets that a datagram of `size` bytes takes; 0: no such way or datagram. */
uint32_t np_ceiling_fragments(const struct np_way *way, uint32_t size);

/*
 * The same of datagrams of `size` bytes; those above the MTU are fragmented. NAN: no such way or
 * datagram.
 */
double np_ceiling_udp(const struct np_way *way, uint32_t size);

/*
 * SCTP: the payload of the largest fragment of a message (way.mss: SCTP_MAXSEG), 0: no such way;
 * and the share of a stream of messages of `size` bytes, of which a packet takes as many as fit.
 * NAN: no such way, or no bytes.
 */
uint32_t np_ceiling_fragment(const struct np_way *way);
double np_ceiling_sctp(const struct np_way *way, uint32_t size);

/* The tests of transactions. */
enum np_turns {
	NP_TURNS_TCP_RR,
	NP_TURNS_UDP_RR,
	NP_TURNS_TCP_CRR,
	NP_TURNS_TCP_CC,
	NP_TURNS_SCTP_RR
};

/* Packets of one kind, one behind the other. */
struct np_ceiling_part {
	const char *name;
	uint64_t packets, wire; /* how many, and what they take in all */
	bool there;             /* from the client */
	bool waits;             /* the next packet waits for them */
};

/* One transaction: the fewest packets that the protocol needs, in their order. */
struct np_ceiling_exchange {
	struct np_ceiling_part part[8];
	uint32_t parts;
	uint64_t there, back; /* bytes of the wire, each way */
	uint64_t waited;      /* of these, what something waits for */
	uint32_t turns;       /* how often one end waits for the other */
};

/* False: no such way, or sizes that no packet can have. */
bool np_ceiling_exchange(const struct np_way *way, enum np_turns test, uint32_t request,
			 uint32_t response, struct np_ceiling_exchange *out);

/*
 * The most transactions a second on a link of rate_bps each way, with delay_s of propagation each
 * way and `in_flight` of them at a time. NAN: no such way, or sizes that no packet can have.
 */
double np_ceiling_turns(const struct np_way *way, enum np_turns test, uint32_t request,
			uint32_t response, double rate_bps, double delay_s, uint32_t in_flight);

#endif
