/* The most that a link can carry, in bytes on the wire; doc/ceilings.md derives every formula. */
#ifndef NP_STATS_CEILING_H
#define NP_STATS_CEILING_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of an IP packet on the wire: max(packet + header + rest, least). */
struct np_framing {
	uint32_t header; /* of the frame: Ethernet 14, with a VLAN tag 18 */
	uint32_t rest;   /* checksum, preamble, gap: Ethernet 24 */
	uint32_t least;  /* of the shortest frame, all included: Ethernet 84 */
};
#define NP_FRAMING_ETHERNET ((struct np_framing){ .header = 14, .rest = 24, .least = 84 })

/* In place of IP's version: datagrams are frames, without headers of IP and UDP. */
enum { NP_FRAMES = 2 };

/* How payload is put into packets (encapsulated): what their sizes and costs depend on. */
struct np_encap {
	uint32_t mtu; /* bytes of a packet: 68 at least with IPv4, 1280 with IPv6, 1 with frames */
	int family;   /* of IP: 4 or 6; NP_FRAMES: no IP */
	bool timestamps;
	uint32_t options; /* bytes of further TCP options in each data segment: MPTCP */
	uint32_t mss; /* both ends announced it (TCP_MAXSEG), if below the MTU's; 0: the MTU's */
	struct np_framing framing;
	uint32_t tls_send; /* TLS over TCP: bytes of a send; 0: no TLS */
	/* Header of a datagram that is never fragmented, such as DCCP; 0: UDP. */
	uint32_t message_header;
};

/* TLS 1.3: payload bytes of a full record; overhead of any record (header, type, tag). */
enum { NP_TLS_RECORD_MAX = 16384, NP_TLS_RECORD_COST = 22 };

/* Bytes that TCP carries for a send of `size` bytes over TLS, in records of NP_TLS_RECORD_MAX. */
uint64_t np_ceiling_tls(uint32_t size);

/* The least MTU of np_encap.family; 0: it sends no packets over a link (UNIX domain). */
uint32_t np_ceiling_least_mtu(int family);

/* Is the family known, and the MTU large enough? If not, functions that use both give 0 or NAN. */
bool np_ceiling_possible(const struct np_encap *encap);

/* Bytes of IP's header; 0: there is none. */
uint32_t np_ceiling_ip_header(const struct np_encap *encap);

/* Payload bytes of a full TCP segment; 0: none is possible. */
uint32_t np_ceiling_segment(const struct np_encap *encap);

/* The share (0 to 1) of the link's rate that is payload of a TCP stream; NAN: not possible. */
double np_ceiling_tcp(const struct np_encap *encap);

/* Bytes on the wire of a full TCP segment, and of a datagram, whole or in fragments; 0: none. */
uint64_t np_ceiling_segment_cost(const struct np_encap *encap);
uint64_t np_ceiling_datagram_cost(const struct np_encap *encap, uint32_t size);

/* Payload bytes of the largest datagram that is not fragmented; 0: not possible. */
uint32_t np_ceiling_datagram(const struct np_encap *encap);

/* Of the largest one, with fragments, if np_ceiling_possible(). */
uint32_t np_ceiling_most_datagram(const struct np_encap *encap);

/* The packets of a datagram of `size` bytes; 0: not possible. */
uint32_t np_ceiling_fragments(const struct np_encap *encap, uint32_t size);

/* The share (0 to 1) of the link's rate that is payload of datagrams of `size` bytes; NAN: none. */
double np_ceiling_udp(const struct np_encap *encap, uint32_t size);

/* SCTP: payload bytes of a message's largest fragment (encap.mss: SCTP_MAXSEG); 0: none. */
uint32_t np_ceiling_fragment(const struct np_encap *encap);

/* SCTP: payload share of messages of `size` bytes, as many as fit in each packet; NAN: none. */
double np_ceiling_sctp(const struct np_encap *encap, uint32_t size);

/* Kinds of transactions. */
enum np_turns {
	NP_TURNS_TCP_RR,
	NP_TURNS_UDP_RR,
	NP_TURNS_TCP_CRR,
	NP_TURNS_TCP_CC,
	NP_TURNS_SCTP_RR
};

/* Packets of one kind, sent in a row. */
struct np_ceiling_part {
	const char *name;
	uint64_t packets, wire; /* how many, and their bytes on the wire */
	bool there;             /* from the client to the server */
	bool waits;             /* the next packet waits for their arrival */
};

/* One transaction: the fewest packets that the protocol needs, in their order. */
struct np_ceiling_exchange {
	struct np_ceiling_part part[8];
	uint32_t parts;
	uint64_t there, back; /* bytes on the wire, each way */
	uint64_t waited;      /* the part of them that later packets wait for */
	uint32_t turns;       /* how often one end waits for the other, so delays that add up */
};

/* Compute the packets of a transaction with such messages, in bytes. False: not possible. */
bool np_ceiling_exchange(const struct np_encap *encap, enum np_turns test, uint32_t request,
			 uint32_t response, struct np_ceiling_exchange *out);

/* The most transactions a second; rate_bps and delay_s (propagation) each way. NAN: impossible. */
double np_ceiling_turns(const struct np_encap *encap, enum np_turns test, uint32_t request,
			uint32_t response, double rate_bps, double delay_s, uint32_t in_flight);

#endif
