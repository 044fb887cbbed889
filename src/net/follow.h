/*
 * Follows the sequence numbers of one direction of a TCP connection, as a tap sees them. Data below
 * the highest number so far are copies, or fill a hole: the order of sending tells the cause. Time
 * stamps (RFC 7323) give it to the millisecond, within one the IPv4 identification, if it counts
 * packets as in Linux. Else time decides: a retransmission takes at least a round trip, and if that
 * is longer than a tick, packets with equal stamps were sent once. A super-packet has the mark of
 * its first segment.
 *
 * - Data in a hole were overtaken (reordered) if sent before the packet that made it; if after,
 *   they are a retransmission: the original was lost.
 * - Copies are a retransmission if sent after the first copy; with the same mark the network
 *   doubled the packet; if sent before, they are the original, overtaken by its retransmission.
 */
#ifndef NP_NET_FOLLOW_H
#define NP_NET_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

enum { NP_FOLLOW_HOLES = 256, NP_FOLLOW_RECENT = 1024 };

/* What tells when a packet was sent, and when the tap has seen it. */
struct np_follow_mark {
	uint64_t at_ns; /* when it was seen, by any clock */
	uint32_t stamp; /* TSval of TCP, if `stamped` */
	uint16_t id;    /* of IPv4, if has_id */
	bool stamped, has_id;
};

/* A packet of this direction, which may have no data. */
struct np_follow_packet {
	struct np_follow_mark mark;
	uint32_t seq; /* of the first byte of data */
	bool syn;
	uint64_t payload; /* bytes */
	uint64_t each;    /* payload of a segment of a super-packet; 0: it is a single segment */
};

struct np_follow_counts {
	uint64_t retransmitted_segments, retransmitted_bytes;
	uint64_t reordered;  /* segments that later ones overtook; not sent again */
	uint64_t duplicated; /* segments whose data had been seen */
	uint64_t doubled;    /* of these, duplicated by the network */
};

/* A hole: bytes begin <= n < end were not seen when later ones were. */
struct np_follow_hole {
	uint64_t begin, end;
	struct np_follow_mark after; /* of the packet after it */
};

/* Data that were seen recently: bytes begin <= n < end, as in a packet. */
struct np_follow_copy {
	uint64_t begin, end;
	struct np_follow_mark mark;
	uint64_t each;
	bool retransmitted; /* it was counted so */
};

/* Zeroed: nothing was seen yet. */
struct np_follow {
	struct np_follow_counts count;
	bool at_sender; /* the tap is at the sender: only equal marks show a doubled packet */
	bool follows;   /* a first packet was seen, which set `next` */
	uint64_t next;  /* number after the highest one seen, extended to 64 bits */
	struct np_follow_mark newest; /* of the packet that was sent last, as far as known */
	struct np_follow_mark oldest; /* of the first data */
	struct np_follow_mark last;   /* of the previous packet */
	bool last_in_order;           /* the previous packet continued the data before it */
	uint32_t ids_count, ids_jump; /* how often the identification counted up, or did not */
	struct np_follow_hole hole[NP_FOLLOW_HOLES];
	uint32_t holes;
	struct np_follow_copy recent[NP_FOLLOW_RECENT]; /* a ring */
	uint64_t seen; /* packets with data; recent[seen % NP_FOLLOW_RECENT] is overwritten next */
};

/* Handle a packet, and count what it shows; rtt_ns: the longest known round trip, 0 if unknown. */
void np_follow(struct np_follow *f, const struct np_follow_packet *p, uint64_t rtt_ns);

/* The number of segments of `each` bytes (0: of any size, so one) that carry `bytes` bytes. */
uint64_t np_follow_parts(uint64_t bytes, uint64_t each);

#endif
