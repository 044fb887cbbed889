#include "stats/ceiling.h"

#include <math.h>
#include <stddef.h>

enum {
	TCP_BASE = 20,
	TIMESTAMPS = 12, /* 10 and two bytes of padding */
	SYN_WITH = 20,   /* options of a SYN with time-stamps */
	SYN_WITHOUT = 12,
	UDP_BASE = 8,
	FRAGMENT_6 = 8, /* beside the IPv6 header of every fragment */
	UDP_MOST_4 = 65507,
	UDP_MOST_6 = 65527
};

/* What the layers below the payload are like, by np_way.family. */
static const struct layers {
	uint32_t least_mtu;
	uint32_t ip, udp;  /* bytes of a header */
	uint32_t fragment; /* what one costs beside IP's header */
	uint32_t most;     /* bytes of a datagram; 0: as many as the MTU has */
	bool tcp;
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

/* A row of zeros where there is no such way. */
static const struct layers *
row_of(int family)
{
	size_t rows = sizeof(layers) / sizeof(layers[0]);

	return &layers[family > 0 && (size_t)family < rows ? family : 0];
}

static const struct layers *
layers_of(const struct np_way *w)
{
	return row_of(w->family);
}

bool
np_ceiling_has_packets(int family)
{
	return row_of(family)->least_mtu > 0;
}

bool
np_ceiling_possible(const struct np_way *w)
{
	uint32_t least = layers_of(w)->least_mtu;

	return least > 0 && w->mtu >= least;
}

uint32_t
np_ceiling_ip_header(const struct np_way *w)
{
	return layers_of(w)->ip;
}

static uint32_t
udp_header(const struct np_way *w)
{
	return layers_of(w)->udp;
}

/* IP's and TCP's, of a segment with data. */
static uint32_t
tcp_headers(const struct np_way *w)
{
	return np_ceiling_ip_header(w) + TCP_BASE + (w->timestamps ? TIMESTAMPS : 0);
}

static uint64_t
cost(const struct np_way *w, uint32_t packet)
{
	uint64_t bytes = (uint64_t)packet + w->framing.header + w->framing.rest;

	return bytes > w->framing.least ? bytes : w->framing.least;
}

uint32_t
np_ceiling_segment(const struct np_way *w)
{
	uint32_t most, stamps = w->timestamps ? TIMESTAMPS : 0;

	if (!np_ceiling_possible(w) || !layers_of(w)->tcp) {
		return 0;
	}
	most = w->mtu - tcp_headers(w);
	if (w->mss != 0 && w->mss < most + stamps) {
		/* They are taken from it, as Linux does. */
		most = w->mss > stamps ? w->mss - stamps : 0;
	}
	return most;
}

double
np_ceiling_tcp(const struct np_way *w)
{
	uint32_t segment = np_ceiling_segment(w);

	return segment == 0 ? (double)NAN
			    : (double)segment / (double)cost(w, segment + tcp_headers(w));
}

/* What so many bytes of a TCP stream cost, where there can be one. */
static uint64_t
tcp_cost(const struct np_way *w, uint32_t size)
{
	uint32_t most = np_ceiling_segment(w), segment = most > 0 ? most : 1, rest = size % segment;
	uint64_t full = size / segment * cost(w, segment + tcp_headers(w));

	return full + (rest > 0 ? cost(w, rest + tcp_headers(w)) : 0);
}

/* What one datagram that is_datagram() costs, whole or in fragments that but for the last carry a
 * multiple of eight bytes. */
static uint64_t
udp_cost(const struct np_way *w, uint32_t size)
{
	uint32_t header = np_ceiling_ip_header(w), body = size + udp_header(w), each, rest;

	if (header + body <= w->mtu) {
		return cost(w, header + body);
	}
	header += layers_of(w)->fragment;
	each = (w->mtu - header) / 8 * 8;
	rest = body % each;
	return body / each * cost(w, header + each) + (rest > 0 ? cost(w, header + rest) : 0);
}

static bool
is_datagram(const struct np_way *w, uint32_t size)
{
	uint32_t most = layers_of(w)->most;

	return size <= (most > 0 ? most : w->mtu);
}

uint32_t
np_ceiling_fragments(const struct np_way *w, uint32_t size)
{
	uint32_t header = np_ceiling_ip_header(w), body = size + udp_header(w), each;

	if (!np_ceiling_possible(w) || !is_datagram(w, size)) {
		return 0;
	}
	if (header + body <= w->mtu) {
		return 1;
	}
	each = (w->mtu - header - layers_of(w)->fragment) / 8 * 8;
	return (body + each - 1) / each;
}

double
np_ceiling_udp(const struct np_way *w, uint32_t size)
{
	if (!np_ceiling_possible(w) || !is_datagram(w, size)) {
		return (double)NAN;
	}
	return (double)size / (double)udp_cost(w, size);
}

/* The bytes that the packets of one transaction take. */
struct costs {
	uint64_t there, back; /* from the client, from the daemon */
	uint64_t unwaited;    /* of these, what nothing waits for */
	uint32_t turns;       /* how often one end waits for the other */
};

/* doc/ceilings.md lists the packets: the fewest that the protocol needs. */
static bool
transaction(const struct np_way *w, enum np_turns test, uint32_t request, uint32_t response,
	    struct costs *c)
{
	uint64_t bare = cost(w, tcp_headers(w));
	uint64_t syn =
	    cost(w, np_ceiling_ip_header(w) + TCP_BASE + (w->timestamps ? SYN_WITH : SYN_WITHOUT));

	*c = (struct costs){ 0 };
	if (test == NP_TURNS_UDP_RR) {
		if (!is_datagram(w, request) || !is_datagram(w, response)) {
			return false;
		}
		c->there = udp_cost(w, request);
		c->back = udp_cost(w, response);
		c->turns = 2;
		return true;
	}
	if (np_ceiling_segment(w) == 0) {
		return false;
	}
	if (test != NP_TURNS_TCP_CC) {
		c->there = tcp_cost(w, request);
		c->back = tcp_cost(w, response);
	}
	if (test == NP_TURNS_TCP_RR) {
		/* Without a byte one way nobody waits for that end. */
		c->turns = request > 0 && response > 0 ? 2 : request > 0 || response == 0 ? 0 : 1;
		return request > 0 || response > 0;
	}
	/* SYN and SYN+ACK, ACK, a FIN each and the ACK of the last one, which nobody waits for. */
	c->there += syn + bare + bare;
	c->back += syn + bare + bare;
	c->unwaited = bare;
	c->turns = 4;
	return true;
}

double
np_ceiling_turns(const struct np_way *w, enum np_turns test, uint32_t request, uint32_t response,
		 double rate_bps, double delay_s, uint32_t in_flight)
{
	struct costs c;
	double alone, at_once;

	if (!np_ceiling_possible(w) || !(rate_bps > 0) ||
	    !transaction(w, test, request, response, &c)) {
		return (double)NAN;
	}
	alone = (double)(c.there + c.back - c.unwaited) * 8 / rate_bps + c.turns * delay_s;
	at_once = rate_bps / ((double)(c.there > c.back ? c.there : c.back) * 8);
	return fmin(in_flight / alone, at_once);
}
