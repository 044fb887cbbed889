#include "stats/ceiling.h"

#include <math.h>
#include <stddef.h>

enum {
	TCP_BASE = 20,
	TIMESTAMPS = 12,  /* bytes of the option, with two of padding */
	SYN_STAMPED = 20, /* options of a SYN with timestamps */
	SYN_PLAIN = 12,   /* and without */
	UDP_BASE = 8,
	FRAGMENT_6 = 8, /* fragment header of IPv6 */
	UDP_MOST_4 = 65507,
	UDP_MOST_6 = 65527,
	SCTP_BASE = 12,
	SCTP_CHUNK = 16 /* header of a data chunk, which is padded to a multiple of 4 bytes */
};

/* Sizes of the layers below the payload, by np_encap.family. */
static const struct layers {
	uint32_t least_mtu;
	uint32_t ip, udp;  /* bytes of a header */
	uint32_t fragment; /* bytes of a fragment header */
	uint32_t most;     /* bytes of the largest datagram; 0: the MTU */
	bool tcp;          /* and SCTP: else only datagrams */
} layers[] = {
	[NP_FRAMES] = { .least_mtu = 1 },
	[4] = { .least_mtu = 68, .ip = 20, .udp = UDP_BASE, .most = UDP_MOST_4, .tcp = true },
	[6] = { .least_mtu = 1280,
		.ip = 40,
		.udp = UDP_BASE,
		.fragment = FRAGMENT_6,
		.most = UDP_MOST_6,
		.tcp = true },
};

/* The row of an np_encap.family; that of 0, all zeros, if there is no such family. */
static const struct layers *
row_of(int family)
{
	size_t rows = sizeof(layers) / sizeof(layers[0]);

	return &layers[family > 0 && (size_t)family < rows ? family : 0];
}

uint32_t
np_ceiling_least_mtu(int family)
{
	return row_of(family)->least_mtu;
}

bool
np_ceiling_possible(const struct np_encap *e)
{
	uint32_t least = row_of(e->family)->least_mtu;

	return least > 0 && e->mtu >= least;
}

uint32_t
np_ceiling_ip_header(const struct np_encap *e)
{
	return row_of(e->family)->ip;
}

/* Bytes of a datagram's header above IP. */
static uint32_t
udp_header(const struct np_encap *e)
{
	return e->message_header > 0 ? e->message_header : row_of(e->family)->udp;
}

/* Bytes of TCP options in a data segment. */
static uint32_t
tcp_options(const struct np_encap *e)
{
	return (e->timestamps ? TIMESTAMPS : 0) + e->options;
}

/* Bytes of the headers of IP and TCP in a data segment. */
static uint32_t
tcp_headers(const struct np_encap *e)
{
	return np_ceiling_ip_header(e) + TCP_BASE + tcp_options(e);
}

/* Bytes on the wire of a packet of that many bytes, IP header included. */
static uint64_t
wire_bytes(const struct np_encap *e, uint32_t packet)
{
	uint64_t bytes = (uint64_t)packet + e->framing.header + e->framing.rest;

	return bytes > e->framing.least ? bytes : e->framing.least;
}

uint32_t
np_ceiling_segment(const struct np_encap *e)
{
	uint32_t most, options = tcp_options(e);

	if (!np_ceiling_possible(e) || !row_of(e->family)->tcp || tcp_headers(e) >= e->mtu) {
		return 0;
	}
	most = e->mtu - tcp_headers(e);
	if (e->mss != 0 && e->mss < most + options) {
		/* TCP_MAXSEG includes the options, as in Linux. */
		most = e->mss > options ? e->mss - options : 0;
	}
	return most;
}

uint64_t
np_ceiling_segment_cost(const struct np_encap *e)
{
	uint32_t segment = np_ceiling_segment(e);

	return segment == 0 ? 0 : wire_bytes(e, segment + tcp_headers(e));
}

double
np_ceiling_tcp(const struct np_encap *e)
{
	uint32_t segment = np_ceiling_segment(e);
	/* The share of the segments' payload that is not TLS overhead. */
	double data =
	    e->tls_send > 0 ? (double)e->tls_send / (double)np_ceiling_tls(e->tls_send) : 1;

	return segment == 0 ? (double)NAN
			    : data * (double)segment / (double)np_ceiling_segment_cost(e);
}

uint64_t
np_ceiling_tls(uint32_t size)
{
	uint64_t records = ((uint64_t)size + NP_TLS_RECORD_MAX - 1) / NP_TLS_RECORD_MAX;

	return size + records * NP_TLS_RECORD_COST;
}

uint32_t
np_ceiling_datagram(const struct np_encap *e)
{
	return np_ceiling_possible(e) ? e->mtu - np_ceiling_ip_header(e) - udp_header(e) : 0;
}

uint32_t
np_ceiling_most_datagram(const struct np_encap *e)
{
	uint32_t most = row_of(e->family)->most;

	if (e->message_header > 0) {
		return np_ceiling_datagram(e); /* such protocols do not fragment */
	}
	return most > 0 ? most : e->mtu;
}

/* Can a datagram of `size` bytes be sent, whole or in fragments? */
static bool
fits_datagram(const struct np_encap *e, uint32_t size)
{
	return np_ceiling_possible(e) && size <= np_ceiling_most_datagram(e);
}

uint32_t
np_ceiling_fragments(const struct np_encap *e, uint32_t size)
{
	uint32_t header = np_ceiling_ip_header(e), body = size + udp_header(e), each;

	if (!fits_datagram(e, size)) {
		return 0;
	}
	if (header + body <= e->mtu) {
		return 1;
	}
	/* IP counts a fragment's offset in units of 8 bytes: all but the last are multiples. */
	each = (e->mtu - header - row_of(e->family)->fragment) / 8 * 8;
	return (body + each - 1) / each;
}

/* In as many packets as np_ceiling_fragments() says. */
uint64_t
np_ceiling_datagram_cost(const struct np_encap *e, uint32_t size)
{
	uint32_t header = np_ceiling_ip_header(e), body = size + udp_header(e), each, rest;

	if (!fits_datagram(e, size)) {
		return 0;
	}
	if (header + body <= e->mtu) {
		return wire_bytes(e, header + body);
	}
	header += row_of(e->family)->fragment;
	each = (e->mtu - header) / 8 * 8;
	rest = body % each;
	return body / each * wire_bytes(e, header + each) +
	       (rest > 0 ? wire_bytes(e, header + rest) : 0);
}

double
np_ceiling_udp(const struct np_encap *e, uint32_t size)
{
	uint64_t cost = np_ceiling_datagram_cost(e, size);

	return cost > 0 ? (double)size / (double)cost : (double)NAN;
}

uint32_t
np_ceiling_fragment(const struct np_encap *e)
{
	uint32_t heads = np_ceiling_ip_header(e) + SCTP_BASE + SCTP_CHUNK, most;

	if (!np_ceiling_possible(e) || !row_of(e->family)->tcp || e->mtu < heads + 4) {
		return 0;
	}
	most = (e->mtu - heads) / 4 * 4;
	return e->mss != 0 && e->mss < most ? e->mss : most;
}

/* Bytes of an SCTP data chunk, with header and padding. */
static uint32_t
chunk(uint32_t payload)
{
	return SCTP_CHUNK + (payload + 3) / 4 * 4;
}

/* A chunk's share of the bytes on the wire of its packet: alone in it, or with as many as fit. */
static double
chunk_cost(const struct np_encap *e, uint32_t payload, bool alone)
{
	uint32_t ip = np_ceiling_ip_header(e), room = e->mtu - ip - SCTP_BASE;
	uint32_t fit = alone || room < 2 * chunk(payload) ? 1 : room / chunk(payload);

	return (double)wire_bytes(e, ip + SCTP_BASE + fit * chunk(payload)) / fit;
}

double
np_ceiling_sctp(const struct np_encap *e, uint32_t size)
{
	uint32_t fragment = np_ceiling_fragment(e), full, rest;
	double wire;

	if (fragment == 0 || size == 0) {
		return (double)NAN;
	}
	full = size / fragment;
	rest = size % fragment;
	wire = full * chunk_cost(e, fragment, false);
	if (rest > 0) {
		uint32_t room = e->mtu - np_ceiling_ip_header(e) - SCTP_BASE;
		/* The rest needs a packet of its own if the full fragment before fills one. */
		bool alone = size > fragment && chunk(fragment) + chunk(rest) > room;

		wire += chunk_cost(e, rest, alone);
	}
	return size / wire;
}

/* Add packets of one kind, on the way `there` or back, unless there are none. wire: all bytes. */
static void
add_part(struct np_ceiling_exchange *x, const char *name, uint64_t packets, uint64_t wire,
	 bool there)
{
	if (packets > 0) {
		x->part[x->parts++] = (struct np_ceiling_part){ .name = name,
								.packets = packets,
								.wire = wire,
								.there = there,
								.waits = true };
	}
}

/* Bytes on the wire of a packet of TCP, or of SCTP with one chunk, with that payload in bytes. */
static uint64_t
packet_cost(const struct np_encap *e, bool sctp, uint32_t payload)
{
	return sctp ? (uint64_t)chunk_cost(e, payload, true)
		    : wire_bytes(e, payload + tcp_headers(e));
}

/* Add the packets of a message; acknowledgements go with the data of the other direction. */
static void
add_message(struct np_ceiling_exchange *x, const struct np_encap *e, bool sctp, const char *name,
	    uint32_t size, bool there)
{
	uint32_t most = sctp ? np_ceiling_fragment(e) : np_ceiling_segment(e);
	uint64_t bytes = e->tls_send > 0 && !sctp ? np_ceiling_tls(size) : size;
	uint64_t full, rest;

	if (most == 0) {
		return; /* no room for data: np_ceiling_exchange() refused that already */
	}
	full = bytes / most;
	rest = bytes % most;
	add_part(x, name, full + (rest > 0),
		 full * packet_cost(e, sctp, most) +
		     (rest > 0 ? packet_cost(e, sctp, (uint32_t)rest) : 0),
		 there);
}

/* Add the packets of a TCP connection, with one transaction if `data`; the daemon closes first. */
static void
add_connection(struct np_ceiling_exchange *x, const struct np_encap *e, bool data, uint32_t request,
	       uint32_t response)
{
	uint64_t bare = wire_bytes(e, tcp_headers(e));
	uint64_t syn = wire_bytes(e, np_ceiling_ip_header(e) + TCP_BASE +
					 (e->timestamps ? SYN_STAMPED : SYN_PLAIN));

	add_part(x, "SYN", 1, syn, true);
	add_part(x, "SYN+ACK", 1, syn, false);
	add_part(x, "ACK", 1, bare, true);
	if (data) {
		add_message(x, e, false, "request", request, true);
		add_message(x, e, false, "response", response, false);
	}
	add_part(x, "FIN", 1, bare, false);
	add_part(x, "FIN", 1, bare, true);
	add_part(x, "ACK", 1, bare, false);
	x->part[x->parts - 1].waits = false; /* the next SYN does not wait for it */
}

bool
np_ceiling_exchange(const struct np_encap *e, enum np_turns test, uint32_t request,
		    uint32_t response, struct np_ceiling_exchange *x)
{
	bool udp = test == NP_TURNS_UDP_RR, sctp = test == NP_TURNS_SCTP_RR;
	const struct np_ceiling_part *before = NULL;

	*x = (struct np_ceiling_exchange){ .parts = 0 };
	/* The datagrams must be possible; else a packet must have room for data (e->mss). */
	if (udp    ? !fits_datagram(e, request) || !fits_datagram(e, response)
	    : sctp ? np_ceiling_fragment(e) == 0
		   : np_ceiling_segment(e) == 0) {
		return false;
	}
	if (udp) {
		add_part(x, "request", np_ceiling_fragments(e, request),
			 np_ceiling_datagram_cost(e, request), true);
		add_part(x, "response", np_ceiling_fragments(e, response),
			 np_ceiling_datagram_cost(e, response), false);
	} else if (sctp || test == NP_TURNS_TCP_RR) {
		add_message(x, e, sctp, "request", request, true);
		add_message(x, e, sctp, "response", response, false);
	} else {
		add_connection(x, e, test == NP_TURNS_TCP_CRR, request, response);
	}
	/* Packets in a row in one direction share a turn, also with the next transaction's. */
	for (uint32_t i = 0; i < x->parts; i++) {
		const struct np_ceiling_part *p = &x->part[i];

		*(p->there ? &x->there : &x->back) += p->wire;
		if (p->waits) {
			x->waited += p->wire;
			x->turns += before != NULL && before->there != p->there;
			before = p;
		}
	}
	x->turns += before != NULL && !before->there;
	return x->parts > 0; /* none: both messages have 0 bytes */
}

double
np_ceiling_turns(const struct np_encap *encap, enum np_turns test, uint32_t request,
		 uint32_t response, double rate_bps, double delay_s, uint32_t in_flight)
{
	struct np_ceiling_exchange x;
	double alone, at_once;

	if (!(rate_bps > 0) || !np_ceiling_exchange(encap, test, request, response, &x)) {
		return (double)NAN;
	}
	/* Seconds of one alone; and how many a second if the busier direction is full. */
	alone = (double)x.waited * 8 / rate_bps + x.turns * delay_s;
	at_once = rate_bps / ((double)(x.there > x.back ? x.there : x.back) * 8);
	return fmin(in_flight / alone, at_once);
}
