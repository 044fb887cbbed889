/*
 * Numbers in the datagrams of a stream, by which the receiver finds loss, duplicates, reordering
 * and jitter. Only if both ends agreed on it (np_plan.sequence): they overwrite the user's data.
 * Reordering is as in RFC 4737: a first arrival after a higher number (section 3.3), with the
 * extent of section 4.2.2. Jitter is as in RFC 3550, section 6.4.1.
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
	/* 4 bytes of mark, 8 of number, 8 of the sender's CLOCK_MONOTONIC in ns; network order. */
	NP_SEQUENCE_HEADER = 20,
	/* Numbers remembered of all flows, and at least of each; older ones may be duplicates. */
	NP_SEQUENCE_WINDOW = 1 << 16,
	NP_SEQUENCE_LEAST = 1 << 10,
	/* A number is below 2^48: bursts of 1, 2, 3-4, 5-8, ... up to 2^48. */
	NP_SEQUENCE_BITS = 48,
	NP_SEQUENCE_LENGTHS = NP_SEQUENCE_BITS + 1
};

/* Bursts of loss: runs of missing numbers. */
struct np_bursts {
	uint64_t run; /* length of the current one */
	uint64_t count, longest;
	int64_t lengths[NP_SEQUENCE_LENGTHS];
};

/* What a receiver found in one flow, or in several; zeroed: in none. */
struct np_sequence {
	uint64_t unique, duplicated, reordered, late, foreign;
	uint64_t too_old;    /* below the window: neither unique nor duplicated */
	uint64_t extent_max; /* of reordering, in datagrams */
	uint64_t base, next; /* the window: from base up to the highest number, next - 1 */
	uint64_t transit_ns; /* of the last one, plus a constant: the clocks differ */
	uint64_t jitter16, jitter16_max; /* in 1/16 ns */
	uint64_t first_ns, last_ns;      /* when the first and the last one were received */
	uint64_t bytes, first_bytes;     /* payload of all, and of the first one */
	/* The lowest number that came; when that and the highest one were sent. */
	uint64_t first, first_sent_ns, sent_ns;
	/*
	 * The longest time whose datagrams, [from, to), are all missing: sent from at_ns on, of
	 * several accounts since number 0 was sent.
	 */
	struct {
		uint64_t from, to, ns, at_ns;
		uint32_t flow;
	} outage;
	uint32_t flows, heard;   /* how many were added up; those that something arrived of */
	struct np_bursts bursts; /* of numbers below base */
	/* Of one flow: */
	uint32_t window;      /* places for numbers from base on, a power of two */
	uint64_t *arrived;    /* a bit for each: it arrived */
	uint32_t *skipped_at; /* for each: count of arrivals when a higher number came first */
};

/* Should the datagrams of this test be numbered, if they have room? */
bool np_sequence_wanted(const struct np_plan *p);

/* Write number and time to the first NP_SEQUENCE_HEADER bytes of a datagram; warm: of a warm-up. */
void np_sequence_mark(void *datagram, uint64_t number, uint64_t now_ns, bool warm);

/* An array for `conns` flows, touched to avoid page faults. Release with free(). */
struct np_sequence *np_sequence_new(const struct np_plan *p, uint32_t conns, struct np_err *err);

/* Bytes of memory for each flow. */
uint64_t np_sequence_bytes(const struct np_plan *p);

/*
 * Count a datagram of `size` bytes; `late`: it came after the receiving loop. One of the warm-up is
 * not counted. A foreign one has no number: the caller decides if it belongs to the window.
 */
enum np_sequence_is { NP_IS_COUNTED, NP_IS_OF_WARM_UP, NP_IS_FOREIGN };
enum np_sequence_is np_sequence_arrived(struct np_sequence *s, const void *datagram, size_t size,
					uint64_t now_ns, bool late);

/* Add the next flow to the sum. Put the sum into a bag as udp.* (doc/evidence.md). */
void np_sequence_add(struct np_sequence *all, const struct np_sequence *s);
void np_sequence_put_sum(const struct np_sequence *all, struct np_bag *into);

/* Put what this end knows, once its counters are final: udp.sent, or what a receiver found. */
void np_sequence_put(const struct np_run *run, struct np_bag *into);

/*
 * Add what follows from the count of the transmitter to a receiver's values: udp.sent, udp.lost,
 * and the burst of loss and outage at the end; unread if unknown. surplus: the most that was sent
 * after the receiver ended, as a share of all. If no more are missing at the end, none counts.
 */
void np_sequence_join(const struct np_bag *transmitter, struct np_bag *receiver, double surplus);

#endif
