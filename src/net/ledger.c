#include "net/ledger.h"

#include <linux/if_ether.h>
#include <stdlib.h>
#include <string.h>

#include "net/follow.h"

enum {
	TAGS = 2, /* of VLANs, most */
	TAG_BYTES = 4,
	SLL_HEADER = 16,
	SLL2_HEADER = 20,
	NULL_HEADER = 4,
	IPV4_HEADER = 20,
	IPV6_HEADER = 40,
	EXTENSIONS = 8, /* of IPv6, most */
	UDP_HEADER = 8,
	TCP_HEADER = 20,
	CE = 3,          /* of the two bits of RFC 3168 */
	ORDINARY = 1500, /* largest IP packet that is no super-packet, if the MTU is not known */
	FRAGMENTS = 64,  /* fragmented datagrams remembered, with their ports */
	ORPHANS = 64,    /* fragments kept until the first one arrives */
	STEPS = 8,       /* steps of the histogram of gaps per power of two */
	BUCKETS = 64 * STEPS
};

enum tcp_flag { FIN = 1, SYN = 2, RST = 4, ACK = 16, ECE = 64, CWR = 128 };
enum direction { OUT, IN };

/* One direction's counts. np_ledger_restart() clears what comes before `mss`. */
struct side {
	uint64_t packets, segments, data_segments, acks, syn, fin, rst;
	uint64_t seen_bytes, link_bytes, ip_bytes, transport_bytes, payload;
	uint64_t ecn_ce, ecn_ece, fragments, orphans, orphan_bytes;
	uint64_t zero_window, zero_ns; /* packets with a window of 0; how long it was 0 */
	uint64_t super_packets, super_packet_max;
	uint64_t sizes[NP_LEDGER_SIZES];
	uint64_t last_ns, gap_max_ns, gaps, gap[BUCKETS];
	uint32_t mss, ordinary; /* from the SYN; largest payload of an ordinary packet so far */
	uint64_t zero_since_ns; /* 0: window open */
	struct np_follow follow;
	struct np_follow_counts warm_up; /* follow.count before the restart */
	uint64_t warm_up_segments;       /* data_segments before it */
	uint32_t fin_next;               /* sequence number after its FIN */
	bool fin_acked;
};

/* A packet, as far as parsed. */
struct packet {
	const uint8_t *at; /* next byte to parse */
	size_t have;       /* bytes of the rest captured */
	uint64_t left;     /* bytes of the rest, captured or not */
	uint64_t at_ns;
	uint32_t link_bytes, ip_bytes; /* of these headers */
	uint64_t total, ip_total;      /* bytes in all, and from the IP header on */
	int version;                   /* of IP */
	const uint8_t *src, *dst;
	uint8_t protocol, ecn;
	bool is_fragment, is_first; /* a fragment; the first one, or no fragment */
	uint32_t id;                /* identification of its datagram */
};

/* A fragmented datagram, known by its first fragment, which has the ports. */
struct fragmented {
	uint32_t id;
	enum direction direction;
	bool ours;
};

/* A fragment before its first one, or without it. */
struct orphan {
	struct packet packet;
	enum direction direction;
};

struct np_ledger {
	struct np_ledger_flow flow;
	uint64_t first_ns, last_ns, malformed;
	uint64_t syn_ns, rtt_ns; /* time of our SYN; its round trip; 0: not known */
	/* When `stamp` was sent; the last echo's round trip, longer under load than the SYN's. */
	uint64_t stamp_ns, echo_ns; /* stamp_ns 0: no echo is awaited */
	uint32_t stamp, last_stamp; /* awaited; last one sent */
	struct side side[2];
	struct fragmented fragment[FRAGMENTS]; /* the latest */
	size_t fragments;
	struct orphan orphan[ORPHANS];
	size_t orphans;
	bool restarted;
};

/* A TCP header, as far as parsed. */
struct segment {
	uint32_t seq, ack, stamp, echo;
	unsigned flags, window, header;
	uint32_t mss; /* 0: it has no such option */
	bool stamped; /* it has `stamp` and `echo` (TSval and TSecr) */
};

/* A number in network order, of 16 or (get32()) 32 bits. */
static uint32_t
get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t
get32(const uint8_t *at)
{
	return get16(at) << 16 | get16(at + 2);
}

struct np_ledger *
np_ledger_new(const struct np_ledger_flow *flow)
{
	struct np_ledger *l = calloc(1, sizeof(*l));

	if (l != NULL) {
		l->flow = *flow;
		l->side[OUT].follow.at_sender = true;
		np_addr_unmap(&l->flow.near);
		np_addr_unmap(&l->flow.far);
	}
	return l;
}

void
np_ledger_restart(struct np_ledger *l, uint64_t at_ns)
{
	for (int d = 0; d < 2; d++) {
		struct side *s = &l->side[d];

		s->warm_up = s->follow.count;
		s->follow.count = (struct np_follow_counts){ .reordered = 0 };
		s->warm_up_segments = s->data_segments;
		memset(s, 0, offsetof(struct side, mss));
		s->zero_since_ns = s->zero_since_ns != 0 ? at_ns : 0;
	}
	l->first_ns = l->last_ns = at_ns;
	l->malformed = l->orphans = 0;
	l->restarted = true;
}

/* Skip n bytes. Returns their position; NULL: not all are there. */
static const uint8_t *
take(struct packet *p, size_t n)
{
	const uint8_t *at = p->at;

	if (p->have < n || p->left < n) {
		return NULL;
	}
	p->at += n;
	p->have -= n;
	p->left -= n;
	return at;
}

/* Take off an Ethernet header with its VLAN tags. Returns the EtherType; 0: it is not complete. */
static uint32_t
ethernet(struct packet *p)
{
	const uint8_t *at = take(p, ETH_HLEN);
	uint32_t type;

	if (at == NULL) {
		return 0;
	}
	p->link_bytes = ETH_HLEN;
	type = get16(at + 12);
	for (int i = 0; i < TAGS && (type == ETH_P_8021Q || type == ETH_P_8021AD); i++) {
		at = take(p, TAG_BYTES);
		if (at == NULL) {
			return 0;
		}
		p->link_bytes += TAG_BYTES;
		type = get16(at + 2);
	}
	return type;
}

/* Take off a cooked header, which the capture made: not in link_bytes. 0: incomplete. */
static uint32_t
cooked(struct packet *p, size_t size, size_t type_at)
{
	const uint8_t *at = take(p, size);

	return at != NULL ? get16(at + type_at) : 0;
}

/* The EtherType that an IP header's version stands for; 0: none. */
static uint32_t
by_version(const struct packet *p)
{
	unsigned version = p->have > 0 ? p->at[0] >> 4 : 0;

	return version == 4 ? ETH_P_IP : version == 6 ? ETH_P_IPV6 : 0;
}

/* Take the header of the link off. Returns the EtherType of what follows; 0: not known. */
static uint32_t
beyond_link(enum np_ledger_link link, struct packet *p)
{
	switch (link) {
	case NP_LINK_ETHERNET:
		return ethernet(p);
	case NP_LINK_SLL:
		return cooked(p, SLL_HEADER, 14);
	case NP_LINK_SLL2:
		return cooked(p, SLL2_HEADER, 0);
	case NP_LINK_NULL:
		/* Family numbers and byte order differ between systems. */
		return take(p, NULL_HEADER) != NULL ? by_version(p) : 0;
	case NP_LINK_RAW:
		return by_version(p);
	}
	return 0;
}

/* Limit the packet to the length in its IP header: frames may be padded. 0: it exceeds 64 KiB. */
static void
cut_to(struct packet *p, uint64_t length)
{
	if (length != 0 && length < p->left) {
		p->left = length;
		p->have = p->have < length ? p->have : (size_t)length;
	}
	p->ip_total = p->left;
}

/* Take an IPv4 header off the packet, and cut the packet to its length. False: it is malformed. */
static bool
ipv4(struct packet *p)
{
	const uint8_t *at = p->at;
	size_t header;
	uint32_t offset_field;

	if (p->have < IPV4_HEADER || at[0] >> 4 != 4) {
		return false;
	}
	header = (size_t)(at[0] & 15) * 4;
	cut_to(p, get16(at + 2));
	if (header < IPV4_HEADER || take(p, header) == NULL) {
		return false;
	}
	offset_field = get16(at + 6);
	p->version = 4;
	p->src = at + 12;
	p->dst = at + 16;
	p->protocol = at[9];
	p->ecn = at[1] & 3;
	p->ip_bytes = (uint32_t)header;
	p->is_fragment = (offset_field & 0x3fff) != 0; /* an offset, or more fragments */
	p->is_first = (offset_field & 0x1fff) == 0;
	p->id = get16(at + 4);
	return true;
}

/* An extension header with a length (RFC 8200, 4; AH: RFC 4302)? */
static bool
is_extension(unsigned protocol)
{
	return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING ||
	       protocol == IPPROTO_DSTOPTS || protocol == IPPROTO_FRAGMENT ||
	       protocol == IPPROTO_AH;
}

/* As ipv4(), with extension headers. Of a later fragment, nothing beyond the fragment header. */
static bool
ipv6(struct packet *p)
{
	const uint8_t *at = p->at;
	uint32_t payload_length;

	if (p->have < IPV6_HEADER || at[0] >> 4 != 6) {
		return false;
	}
	payload_length = get16(at + 4);
	cut_to(p, payload_length != 0 ? payload_length + IPV6_HEADER : 0);
	if (take(p, IPV6_HEADER) == NULL) {
		return false;
	}
	p->version = 6;
	p->src = at + 8;
	p->dst = at + 24;
	p->protocol = at[6];
	p->ecn = at[1] >> 4 & 3;
	p->ip_bytes = IPV6_HEADER;
	p->is_first = true;
	for (int i = 0; i < EXTENSIONS && p->is_first && is_extension(p->protocol); i++) {
		size_t size = 8;

		at = p->at;
		if (p->have < size) {
			return false;
		}
		if (p->protocol == IPPROTO_FRAGMENT) {
			/* An offset, two reserved bits, and one for more fragments. */
			p->is_fragment = (get16(at + 2) & ~6U) != 0;
			p->is_first = (get16(at + 2) & ~7U) == 0;
			p->id = get32(at + 4);
		} else {
			size = p->protocol == IPPROTO_AH ? ((size_t)at[1] + 2) * 4
							 : ((size_t)at[1] + 1) * 8;
		}
		if (take(p, size) == NULL) {
			return false;
		}
		p->ip_bytes += (uint32_t)size;
		p->protocol = at[0];
	}
	return true;
}

/* Parse a TCP header, after which p->left is the payload. False: it is malformed. */
static bool
tcp(struct packet *p, struct segment *s)
{
	const uint8_t *at = p->at;
	size_t have;

	memset(s, 0, sizeof(*s));
	if (p->have < TCP_HEADER) {
		return false;
	}
	s->header = (unsigned)(at[12] >> 4) * 4;
	if (s->header < TCP_HEADER || s->header > p->left) {
		return false;
	}
	s->seq = get32(at + 4);
	s->ack = get32(at + 8);
	s->flags = at[13];
	s->window = get16(at + 14);
	/* Options, as far as captured: 0 end, 1 no-operation, 2 MSS, 8 time stamps (RFC 7323). */
	at += TCP_HEADER;
	have = (p->have < s->header ? p->have : s->header) - TCP_HEADER;
	while (have >= 2 && at[0] != 0) {
		size_t size = at[0] == 1 ? 1 : at[1];

		if (size == 0 || size > have || (at[0] != 1 && size < 2)) {
			break;
		}
		if (at[0] == 2 && size == 4) {
			s->mss = get16(at + 2);
		} else if (at[0] == 8 && size == 10) {
			s->stamped = true;
			s->stamp = get32(at + 2);
			s->echo = get32(at + 6);
		}
		at += size;
		have -= size;
	}
	p->left -= s->header;
	return true;
}

void
np_ledger_add_port(struct np_ledger_ports *ports, uint32_t port)
{
	ports->bits[(port & UINT16_MAX) / 8] |= (uint8_t)(1U << port % 8);
	ports->count++;
}

/* Are a packet's host and port (-1: not known) those of an end of the flow, *a? */
static bool
is_end(const struct np_ledger_flow *f, const struct np_addr *a, const struct packet *p,
       const uint8_t *host, int port)
{
	if (a->len == 0) {
		return true;
	}
	/* Several flows have a set of ports in place of the one. */
	if (np_addr_port(a) != 0 && port >= 0 &&
	    (f->ports.count == 0 ? np_addr_port(a) != (uint32_t)port
				 : (f->ports.bits[(port & UINT16_MAX) / 8] >> port % 8 & 1) == 0)) {
		return false;
	}
	return np_addr_is_any(a) || (np_family_of(a)->version == p->version &&
				     memcmp(np_addr_bytes(a), host, np_addr_size(a)) == 0);
}

enum owner { OTHERS, OURS, NOT_KNOWN_YET };

/* Possible directions by hosts and ports (-1: not known), a bit each: 1 << OUT, 1 << IN. */
static unsigned
by_hosts(const struct np_ledger_flow *f, const struct packet *p, int src, int dst)
{
	bool out = is_end(f, &f->near, p, p->src, src) && is_end(f, &f->far, p, p->dst, dst);
	bool in = is_end(f, &f->far, p, p->src, src) && is_end(f, &f->near, p, p->dst, dst);

	return (unsigned)out << OUT | (unsigned)in << IN;
}

/* Does a packet belong to the flow, and in which direction? */
static enum owner
owner_of(const struct np_ledger *l, const struct packet *p, enum direction *direction)
{
	size_t known = l->fragments < FRAGMENTS ? l->fragments : FRAGMENTS;
	unsigned allowed;

	if (p->protocol != l->flow.protocol) {
		return OTHERS;
	}
	if (p->is_first && p->have < 4) {
		return OTHERS; /* its ports were not captured */
	}
	/* Fragments have no ports. Both directions are possible if both hosts are the same. */
	allowed = p->is_first ? by_hosts(&l->flow, p, (int)get16(p->at), (int)get16(p->at + 2))
			      : by_hosts(&l->flow, p, -1, -1);
	for (size_t back = 1; back <= known && !p->is_first; back++) {
		const struct fragmented *f = &l->fragment[(l->fragments - back) % FRAGMENTS];

		if (f->id == p->id && (allowed >> f->direction & 1) != 0) {
			*direction = f->direction;
			return f->ours ? OURS : OTHERS;
		}
	}
	*direction = (allowed & 1U << OUT) != 0 ? OUT : IN;
	return allowed == 0 ? OTHERS : p->is_first ? OURS : NOT_KNOWN_YET;
}

/* The bucket of n: below STEPS n itself, above STEPS buckets for each power of two. */
static unsigned
bucket_of(uint64_t n)
{
	unsigned log2 = 0;

	while (n >> log2 >= UINT64_C(2) * STEPS) {
		log2++;
	}
	return (log2 + (n >= STEPS)) * STEPS + (unsigned)(n >> log2) % STEPS;
}

/* The element of wire.*.size_counts for a segment of that many bytes from the IP header on. */
static unsigned
size_class(uint64_t bytes)
{
	static const uint64_t most[NP_LEDGER_SIZES - 1] = { 64, 128, 256, 512, 1024, 1518, 9018 };
	unsigned i = 0;

	while (i < NP_LEDGER_SIZES - 1 && bytes > most[i]) {
		i++;
	}
	return i;
}

/* Largest payload of a segment with headers of these sizes: by MTU and MSS, else as seen; or 0. */
static uint64_t
most_payload(const struct np_ledger *l, const struct side *s, unsigned ip, unsigned transport)
{
	uint32_t mtu = l->flow.mtu, headers = ip + transport;
	uint64_t most = mtu > headers ? mtu - headers : 0;

	for (int i = 0; i < 2; i++) {
		uint32_t mss = l->side[i].mss, options = transport - TCP_HEADER;

		/* Options of a segment take some of the MSS away from its data (RFC 6691). */
		if (l->flow.protocol == IPPROTO_TCP && mss > options &&
		    (most == 0 || mss - options < most)) {
			most = mss - options;
		}
	}
	return most != 0 ? most : s->ordinary;
}

/*
 * Count a packet as segments that carry `payload`, each with all headers; `transport`: bytes of its
 * TCP or UDP header (later fragment: 0). Returns a segment's largest payload; 0: unknown, fragment.
 */
static uint64_t
count_packet(struct np_ledger *l, struct side *s, const struct packet *p, unsigned transport,
	     uint64_t payload)
{
	uint32_t headers = p->ip_bytes + transport;
	uint64_t most = most_payload(l, s, p->ip_bytes, transport);
	uint32_t datagram = s == &l->side[OUT] ? l->flow.datagram_out : l->flow.datagram_in;
	uint64_t each, n;

	/* With the engine segment, the kernel divides blocks into datagrams. */
	if (l->flow.protocol == IPPROTO_UDP && datagram > 0 && (most == 0 || datagram < most)) {
		most = datagram;
	}
	each = p->is_fragment ? 0 : most;
	n = np_follow_parts(payload, each);
	if (s->packets > 0) {
		uint64_t gap = p->at_ns > s->last_ns ? p->at_ns - s->last_ns : 0;

		s->gap[bucket_of(gap)]++;
		s->gaps++;
		s->gap_max_ns = gap > s->gap_max_ns ? gap : s->gap_max_ns;
	}
	s->last_ns = p->at_ns > s->last_ns ? p->at_ns : s->last_ns;
	s->packets++;
	s->segments += n;
	s->seen_bytes += p->total;
	s->link_bytes += n * p->link_bytes;
	s->ip_bytes += n * p->ip_bytes;
	s->transport_bytes += n * transport;
	s->payload += payload;
	s->data_segments += payload > 0 && p->is_first ? n : 0; /* not later fragments */
	s->fragments += p->is_fragment;
	s->ecn_ce += p->ecn == CE ? n : 0;
	if (n > 1) {
		s->super_packets++;
		s->super_packet_max =
		    p->ip_total > s->super_packet_max ? p->ip_total : s->super_packet_max;
		s->sizes[size_class(headers + each)] += n - 1;
		payload -= (n - 1) * each;
	} else if (p->ip_total <= ORDINARY && payload > s->ordinary) {
		s->ordinary = (uint32_t)payload;
	}
	s->sizes[size_class(headers + payload)]++;
	return each;
}

/* Remember a first fragment, ours or not, for the later ones, and settle its orphans. */
static void
remember_first(struct np_ledger *l, const struct packet *p, enum direction d, bool ours)
{
	struct fragmented *f = &l->fragment[l->fragments % FRAGMENTS];
	size_t kept = l->orphans < ORPHANS ? l->orphans : ORPHANS;
	unsigned allowed = by_hosts(&l->flow, p, -1, -1);

	if (p->protocol != l->flow.protocol || allowed == 0) {
		return;
	}
	if (!ours) { /* its ports show no direction: the hosts do */
		d = (allowed & 1U << OUT) != 0 ? OUT : IN;
	}
	*f = (struct fragmented){ .id = p->id, .direction = d, .ours = ours };
	l->fragments++;
	for (size_t i = 0; i < kept; i++) {
		struct orphan *o = &l->orphan[i];

		if (o->packet.is_fragment && o->packet.id == p->id &&
		    (allowed >> o->direction & 1) != 0) {
			l->side[o->direction].orphans--;
			l->side[o->direction].orphan_bytes -= o->packet.total;
			if (f->ours) {
				count_packet(l, &l->side[f->direction], &o->packet, 0,
					     o->packet.left);
			}
			o->packet.is_fragment = false; /* marks a free place */
		}
	}
}

/* Time echoes of our stamps, from the first packet of a value on: the echo may answer that one. */
static void
time_echo(struct np_ledger *l, enum direction d, const struct packet *p, const struct segment *seg)
{
	if (!seg->stamped) {
		return;
	}
	if (d == IN) {
		if (l->stamp_ns != 0 && (int32_t)(seg->echo - l->stamp) >= 0) {
			l->echo_ns = p->at_ns > l->stamp_ns ? p->at_ns - l->stamp_ns : 0;
			l->stamp_ns = 0;
		}
		return;
	}
	if (l->stamp_ns == 0 && seg->stamp != l->last_stamp) {
		l->stamp = seg->stamp;
		l->stamp_ns = p->at_ns;
	}
	l->last_stamp = seg->stamp;
}

/* Count a segment and, if there is one connection, follow its sequence numbers. */
static void
count_tcp(struct np_ledger *l, enum direction d, struct packet *p)
{
	struct side *s = &l->side[d];
	struct segment seg;
	uint64_t payload, each;

	if (!tcp(p, &seg)) {
		l->malformed++;
		return;
	}
	payload = p->left;
	if ((seg.flags & SYN) != 0 && seg.mss != 0) {
		s->mss = seg.mss;
	}
	each = count_packet(l, s, p, seg.header, payload);
	s->syn += (seg.flags & SYN) != 0;
	s->fin += (seg.flags & FIN) != 0;
	s->rst += (seg.flags & RST) != 0;
	s->acks += payload == 0 && (seg.flags & (SYN | FIN | RST | ACK)) == ACK;
	s->ecn_ece += (seg.flags & (SYN | ECE)) == ECE; /* in a SYN it offers ECN (RFC 3168) */
	if ((seg.flags & (SYN | RST)) == 0) {           /* the window of a RST means nothing */
		if (s->zero_since_ns != 0 && seg.window != 0) {
			s->zero_ns += p->at_ns > s->zero_since_ns ? p->at_ns - s->zero_since_ns : 0;
			s->zero_since_ns = 0;
		}
		if (seg.window == 0) {
			s->zero_window++;
			s->zero_since_ns = s->zero_since_ns != 0 ? s->zero_since_ns : p->at_ns;
		}
	}
	if (!l->flow.many_connections && (seg.flags & RST) == 0) {
		struct side *other = &l->side[d == OUT ? IN : OUT];

		/* How long our SYN took to be answered, if it was sent only once. */
		if (d == OUT && (seg.flags & SYN) != 0) {
			l->syn_ns = l->side[OUT].syn == 1 ? p->at_ns : 0;
		} else if (d == IN && (seg.flags & ACK) != 0 && l->syn_ns != 0) {
			l->rtt_ns = p->at_ns > l->syn_ns ? p->at_ns - l->syn_ns : 0;
			l->syn_ns = 0;
		}
		time_echo(l, d, p, &seg);
		if ((seg.flags & FIN) != 0) {
			s->fin_next = seg.seq + (uint32_t)payload + 1;
		}
		if ((seg.flags & ACK) != 0 && other->fin > 0 && seg.ack == other->fin_next) {
			other->fin_acked = true;
		}
		np_follow(&s->follow,
			  &(struct np_follow_packet){
			      .mark = (struct np_follow_mark){ .at_ns = p->at_ns,
							       .stamp = seg.stamp,
							       .stamped = seg.stamped,
							       .id = (uint16_t)p->id,
							       .has_id = p->version == 4 },
			      .seq = seg.seq + ((seg.flags & SYN) != 0),
			      .syn = (seg.flags & SYN) != 0,
			      .payload = payload,
			      .each = each },
			  l->echo_ns > l->rtt_ns ? l->echo_ns : l->rtt_ns);
	}
}

bool
np_ledger_packet(struct np_ledger *l, uint64_t at_ns, const uint8_t *bytes, size_t captured,
		 size_t length)
{
	struct packet p = { .at = bytes, .left = length, .at_ns = at_ns };
	enum direction d = OUT;
	enum owner owner;
	uint32_t type;

	p.have = captured < length ? captured : length;
	type = beyond_link(l->flow.link, &p);
	p.total = p.link_bytes + p.left;
	if (!(type == ETH_P_IP ? ipv4(&p) : type == ETH_P_IPV6 && ipv6(&p))) {
		return false;
	}
	owner = owner_of(l, &p, &d);
	if (p.is_fragment && p.is_first) {
		remember_first(l, &p, d, owner == OURS);
	}
	if (owner == OURS) {
		l->first_ns = l->first_ns == 0 || p.at_ns < l->first_ns ? p.at_ns : l->first_ns;
		l->last_ns = p.at_ns > l->last_ns ? p.at_ns : l->last_ns;
		if (!p.is_first) {
			count_packet(l, &l->side[d], &p, 0, p.left);
		} else if (l->flow.protocol == IPPROTO_TCP) {
			count_tcp(l, d, &p);
		} else if (take(&p, UDP_HEADER) != NULL) {
			count_packet(l, &l->side[d], &p, UDP_HEADER, p.left);
		} else {
			l->malformed++;
		}
	} else if (owner == NOT_KNOWN_YET) {
		/* Its first fragment, which would show whether it is ours, is late or lost. */
		struct orphan *o = &l->orphan[l->orphans % ORPHANS];

		*o = (struct orphan){ .packet = p, .direction = d };
		o->packet.at = o->packet.src = o->packet.dst = NULL; /* do not outlive this call */
		l->orphans++;
		l->side[d].orphans++;
		l->side[d].orphan_bytes += p.total;
	}
	return owner != OTHERS;
}

/* How long 99 % of the gaps last at most, in ns: the middle of a bucket of bucket_of(). */
static uint64_t
gap_p99(const struct side *s)
{
	uint64_t seen = 0, most = s->gaps - s->gaps / 100;

	for (unsigned i = 0; i < BUCKETS; i++) {
		seen += s->gap[i];
		if (seen >= most) {
			unsigned log2 = i < STEPS ? 0 : i / STEPS - 1;
			uint64_t low = (uint64_t)(i - log2 * STEPS) << log2;
			uint64_t value = low + (UINT64_C(1) << log2) / 2;

			return value < s->gap_max_ns ? value : s->gap_max_ns;
		}
	}
	return s->gap_max_ns;
}

/* Put the counts of one direction; `way` is "out" or "in". */
static void
put_counts(const struct np_ledger *l, const struct side *s, const char *way, struct np_bag *into)
{
	const struct np_follow_counts *c = &s->follow.count;
	const bool tcp = l->flow.protocol == IPPROTO_TCP,
		   followed = tcp && !l->flow.many_connections;
	const struct {
		const char *name;
		uint64_t value;
		bool known;
	} rows[] = {
		{ "packets", s->packets, true },
		{ "segments", s->segments, true },
		{ "bytes.seen", s->seen_bytes, true },
		{ "bytes.link", s->link_bytes, true },
		{ "bytes.ip", s->ip_bytes, true },
		{ "bytes.transport", s->transport_bytes, true },
		{ "bytes.payload", s->payload, true },
		{ "data_segments", s->data_segments, true },
		{ "super_packets", s->super_packets, true },
		{ "super_packet_max", s->super_packet_max, true },
		{ "ecn_ce", s->ecn_ce, true },
		{ "fragments", s->fragments, true },
		{ "fragments_orphaned", s->orphans, true },
		{ "bytes.orphaned", s->orphan_bytes, true },
		{ "acks", s->acks, tcp },
		{ "syn", s->syn, tcp },
		{ "fin", s->fin, tcp },
		{ "rst", s->rst, tcp },
		{ "ecn_ece", s->ecn_ece, tcp },
		{ "zero_window", s->zero_window, tcp },
		{ "retransmitted_segments", c->retransmitted_segments, followed },
		{ "retransmitted_bytes", c->retransmitted_bytes, followed },
		{ "reordered", c->reordered, followed },
		/* Data that went out twice are retransmissions, unless they were doubled. */
		{ "duplicated", s == &l->side[IN] ? c->duplicated : c->doubled, followed },
		{ "doubled", c->doubled, followed },
		{ "warm_up.data_segments", s->warm_up_segments, l->restarted },
		{ "warm_up.doubled", s->warm_up.doubled, l->restarted && followed },
		{ "warm_up.retransmitted_segments", s->warm_up.retransmitted_segments,
		  l->restarted && followed },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].known) {
			np_bag_int(into, (int64_t)rows[i].value, "wire.%s.%s", way, rows[i].name);
		}
	}
}

/* Put what is known of one direction as wire.out.* or wire.in.*; `way` is "out" or "in". */
static void
put_side(const struct np_ledger *l, const struct side *s, const char *way, struct np_bag *into)
{
	uint64_t zero_ns = s->zero_ns;
	int64_t sizes[NP_LEDGER_SIZES];

	put_counts(l, s, way, into);
	if (s->zero_since_ns != 0) {
		zero_ns += l->last_ns - s->zero_since_ns;
	}
	if (l->flow.protocol == IPPROTO_TCP) {
		np_bag_real(into, (double)zero_ns / 1e9, "wire.%s.zero_window_s", way);
	}
	if (s->gaps > 0) {
		np_bag_real(into, (double)s->gap_max_ns / 1e3, "wire.%s.gap_max_us", way);
		np_bag_real(into, (double)gap_p99(s) / 1e3, "wire.%s.gap_p99_us", way);
	}
	for (int i = 0; i < NP_LEDGER_SIZES; i++) {
		sizes[i] = (int64_t)s->sizes[i];
	}
	np_bag_ints(into, sizes, NP_LEDGER_SIZES, "wire.%s.size_counts", way);
}

void
np_ledger_put(const struct np_ledger *l, struct np_bag *into)
{
	const struct side *out = &l->side[OUT], *in = &l->side[IN];

	np_bag_real(into, (double)(l->last_ns - l->first_ns) / 1e9, "wire.seconds");
	np_bag_int(into, (int64_t)(out->packets + in->packets), "wire.captured");
	np_bag_int(into, (int64_t)l->malformed, "wire.malformed");
	if (l->flow.protocol == IPPROTO_TCP && !l->flow.many_connections) {
		/* Did the capture end before both ends closed the connection? */
		np_bag_int(into, out->rst + in->rst == 0 && (!out->fin_acked || !in->fin_acked),
			   "wire.open_at_end");
	}
	put_side(l, out, "out", into);
	put_side(l, in, "in", into);
}
