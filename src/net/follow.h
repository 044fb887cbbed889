/*
 * The sequence numbers of one direction of a TCP connection, as a tap sees them go by.
 *
 * Data below the highest number that was seen came before, or fill a hole. Why is told by the order
 * in which packets were sent. TCP's time stamps (RFC 7323) tell it to the millisecond; within one,
 * the identification of IPv4 does where the sender counts its packets by it, as Linux does. Where
 * neither helps, time does: nothing can be asked for and sent again in less than a round trip.
 * Where that takes more than a tick of the stamps, those of equal ones were sent once. What the
 * kernel has put together is marked as its first segment.
 *
 * - What fills a hole and was sent before the packet that made the hole was overtaken: reordered.
 *   What was sent behind it is a retransmission of something lost before the tap.
 * - What is there already is a retransmission when it was sent after its first copy. One of the
 *   same time and identification was doubled by the network; one that was sent before the copy is
 *   the original, overtaken by its own retransmission.
 */
#ifndef NP_NET_FOLLOW_H
#define NP_NET_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

enum { NP_FOLLOW_HOLES = 256, NP_FOLLOW_RECENT = 1024 };

/* What is known of when a packet was sent, and when it was seen. */
struct np_follow_mark {
	uint64_t at_ns;
	uint32_t stamp;
	uint16_t id;
	bool stamped, has_id;
};

struct np_follow_packet {
	struct np_follow_mark mark;
	uint32_t seq; /* of the first byte of data */
	bool syn;
	uint64_t payload; /* bytes */
	uint64_t each;    /* most payload of one segment; 0: it is one */
};

struct np_follow_counts {
	uint64_t retransmitted_segments, retransmitted_bytes;
	uint64_t reordered;  /* segments that were overtaken, and not sent again */
	uint64_t duplicated; /* segments whose data had been seen */
	uint64_t doubled;    /* of these, not by the sender: it sent them once */
};

/* Bytes of the sequence that went by without being seen: begin <= n < end. */
struct np_follow_hole {
	uint64_t begin, end;
	struct np_follow_mark behind; /* of the packet behind it */
};

struct np_follow_copy {
	uint64_t begin, end;
	struct np_follow_mark mark;
	uint64_t each;
	bool again; /* counted as retransmitted */
};

/* All zero: nothing was seen. */
struct np_follow {
	struct np_follow_counts count;
	bool at_sender; /* nothing has been doubled before the tap, unless its mark says so */
	bool follows;
	uint64_t next; /* behind the highest number that was seen; continued beyond 32 bits */
	struct np_follow_mark newest; /* of what was sent last, as far as that is known */
	struct np_follow_mark oldest; /* of the first data */
	struct np_follow_mark last;   /* of the packet before, if that was in order */
	bool last_in_order;
	uint32_t ids_count, ids_jump; /* how often the identification went on as a counter does */
	struct np_follow_hole hole[NP_FOLLOW_HOLES];
	uint32_t holes;
	struct np_follow_copy recent[NP_FOLLOW_RECENT]; /* a ring */
	uint64_t seen;
};

/* A packet went by; rtt_ns: a round trip, 0 where none was seen. */
void np_follow(struct np_follow *f, const struct np_follow_packet *p, uint64_t rtt_ns);

/* The number of segments of `each` bytes that carry `bytes` bytes. */
uint64_t np_follow_parts(uint64_t bytes, uint64_t each);

#endif
