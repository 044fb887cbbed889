/*
 * Numbers in the datagrams of a stream, and the receiver's account of them: what was lost, came
 * twice or out of order, and by how much the time on the way varied. Only where both ends agreed on
 * it (np_plan.sequence), as the numbers take the place of what the user wanted to send.
 *
 * Reordering is RFC 4737's: a datagram that arrives for the first time after one with a higher
 * number (section 3.3), its extent that of section 4.2.2. Jitter is RFC 3550's, section 6.4.1.
 */
#ifndef NP_BENCH_SEQUENCE_H
#define NP_BENCH_SEQUENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bag.h"
#include "base/err.h"

struct np_run;
struct np_plan;

enum {
	/* Bytes: a mark of 4, the number of 8, the sender's CLOCK_MONOTONIC in ns of 8; network
	 * byte order. */
	NP_SEQUENCE_HEADER = 20,
	/* What arrives so far behind the highest number can't be told from a duplicate. Several
	 * flows share it, and have the least each. */
	NP_SEQUENCE_WINDOW = 1 << 16,
	NP_SEQUENCE_LEAST = 1 << 10,
	/* A number is below 2^48: bursts of 1, 2, 3-4, 5-8, ... up to 2^48. */
	NP_SEQUENCE_BITS = 48,
	NP_SEQUENCE_LENGTHS = NP_SEQUENCE_BITS + 1
};

/* Runs of numbers that did not come. */
struct np_bursts {
	uint64_t run; /* length of the one that is not over yet */
	uint64_t count, longest;
	int64_t lengths[NP_SEQUENCE_LENGTHS];
};

/* A receiver's account of one flow, or of several: a zeroed one is that of none. */
struct np_sequence {
	uint64_t unique, duplicated, reordered, late, foreign;
	uint64_t too_old;    /* further back than the window: neither unique nor duplicated */
	uint64_t extent_max; /* of reordering, in datagrams */
	uint64_t base, next; /* numbers below base are settled; next: the highest and one */
	uint64_t transit_ns; /* of the last one; the two clocks differ by a constant */
	uint64_t jitter16, jitter16_max; /* in 1/16 ns */
	uint64_t first_ns, last_ns;      /* when the first and the last one were received */
	uint64_t bytes, first_bytes;     /* of all payload, and of the first one's */
	/* The lowest number that came; when that and the highest one were sent. */
	uint64_t first, first_sent_ns, sent_ns;
	/*
	 * The longest time of sending of which nothing came: [from, to) is missing, and was sent
	 * from at_ns on; of several accounts that is since the first one was sent.
	 */
	struct {
		uint64_t from, to, ns, at_ns;
		uint32_t flow;
	} outage;
	uint32_t flows;          /* of an account of several */
	struct np_bursts bursts; /* of numbers below base */
	/* Of one: places of the numbers from base on, and what is kept of each. */
	uint32_t window;
	uint64_t *came;
	uint32_t *skipped_at; /* arrivals when a higher number came first */
};

/* Are the datagrams of such a test's stream numbered, if they have the room? */
bool np_sequence_wanted(const struct np_plan *p);

/* Write number and time to the first NP_SEQUENCE_HEADER bytes of a datagram. */
void np_sequence_mark(void *datagram, uint64_t number, uint64_t now_ns, bool warm);

/* Empty accounts of that many flows, the caller's to free(); touched, so that the loop meets no
 * page fault. And the bytes of each. */
struct np_sequence *np_sequence_new(const struct np_plan *p, uint32_t conns, struct np_err *err);
uint64_t np_sequence_bytes(const struct np_plan *p);

/*
 * Account for one datagram of `size` bytes; `late`: it came after the receiving loop. One of the
 * warm-up is left out. A foreign one has no number, so it may belong to the window or not.
 */
enum np_sequence_is { NP_IS_COUNTED, NP_IS_OF_WARM_UP, NP_IS_FOREIGN };
enum np_sequence_is np_sequence_arrived(struct np_sequence *s, const void *datagram, size_t size,
					uint64_t now_ns, bool late);

/* Add the next flow to an account of several. That as the values udp.* (doc/evidence.md), all but
 * those that only join() knows. */
void np_sequence_add(struct np_sequence *all, const struct np_sequence *s);
void np_sequence_tell(const struct np_sequence *all, struct np_bag *into);

/*
 * What the flow's end knows, once its counters are final: a transmitter how many it has sent, a
 * receiver its account. Puts nothing for other tests.
 */
void np_sequence_put(const struct np_run *run, struct np_bag *into);

/*
 * Complete a receiver's values by what the transmitter has sent: udp.sent, udp.lost, and among the
 * bursts the one that nothing came behind. What can't be known is put as unread.
 */
void np_sequence_join(const struct np_bag *transmitter, struct np_bag *receiver);

#endif
