/*
 * One direction of an emulated link: what becomes of a packet, and when. Nothing here reads a clock
 * or a descriptor; time is an argument, in ns of CLOCK_MONOTONIC.
 *
 * A packet first passes the rate (a token bucket with a queue in bytes, tail drop), then the way:
 * it may get lost, be delayed, be doubled at the far end, or arrive behind its successor.
 *
 * Times of arrival never fall, whatever the jitter, so packets wait in the order in which they
 * came: a ring of bytes does what a timer wheel would, at the same cost for any number of packets.
 */
#ifndef NP_TESTS_LINK_LINE_H
#define NP_TESTS_LINK_LINE_H

#include "base/clock.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NP_LINE_PACKET_MAX = 65536, /* bytes of a packet that np_line_room() has room for */
	NP_LINE_OUT_MAX = 4         /* packets that leave at a time: two, and their doubles */
};

/* How long a packet that is to be reordered waits for one that overtakes it: this time, or on a
 * slow link the time that these bytes take. */
#define NP_LINE_HOLD_NS (2 * NP_MSEC)
#define NP_LINE_HOLD_BYTES 6152

/* Shares are in parts of 10^9. */
#define NP_LINE_ALL UINT64_C(1000000000)

/* What the direction is to be like. All zero: it passes everything on at once. */
struct np_line_plan {
	uint64_t rate;      /* bits a second; 0: no limit */
	uint64_t overhead;  /* bytes that a packet costs beside its own */
	uint64_t least;     /* bytes that any packet costs at least */
	uint64_t burst;     /* bytes of the bucket */
	uint64_t limit;     /* bytes that wait for the rate at most */
	uint64_t delay_ns;  /* of each packet */
	uint64_t jitter_ns; /* by so much it is less or more; at most delay_ns */
	uint64_t loss, reorder, duplicate;
	uint64_t seed; /* of the choices, which are the same for the same seed */
};

/* Sets the member of a plan that a word such as "delay=5000000" names. NP_EUSAGE when it is none.
 */
int np_line_plan_word(struct np_line_plan *plan, const char *word, struct np_err *err);

/* Checks that its values go together. NP_EUSAGE when they don't. */
int np_line_plan_check(const struct np_line_plan *plan, struct np_err *err);

/* Calls tell(arg, name, value) for each member, by the names that np_line_plan_word() takes. */
void np_line_plan_tell(const struct np_line_plan *plan,
		       void (*tell)(void *arg, const char *name, uint64_t value), void *arg);

/*
 * Chooses a share of what passes, one in each stretch of 1/share and where in it at random: of the
 * first N it has chosen N x share, but for less than one, whatever N.
 */
struct np_picker {
	uint64_t share, at, due;
	bool done;
	uint64_t seed;
};

void np_picker_init(struct np_picker *p, uint64_t share, uint64_t seed);

/* Whether this one is chosen. Where it cannot be taken now the next one is, hence may. */
bool np_picker_next(struct np_picker *p, bool may);

/* Packets, since the line was made. */
struct np_line_counts {
	uint64_t received;   /* into it */
	uint64_t forwarded;  /* out of it, doubles included */
	uint64_t lost;       /* by plan */
	uint64_t dropped;    /* as the queue was full */
	uint64_t no_room;    /* as the memory was */
	uint64_t duplicated; /* doubles */
	uint64_t reordered;  /* overtaken by their successor */
	uint64_t held;       /* that were to be, but none came in time */
};

struct np_line_packet {
	const void *data;
	size_t size;
	uint64_t due; /* when it should leave */
};

struct np_line {
	struct np_line_plan plan;
	struct np_line_counts count;

	uint8_t *ring;
	size_t hard, soft; /* its size, and what is used of it as long as that suffices */
	size_t head, tail; /* where the next packet goes, and where the first one is */
	size_t end;        /* where the packets of the upper part end, once head is below tail */
	bool wrapped;
	size_t waiting;   /* packets */
	unsigned leaving; /* of them, which np_line_out() has handed out */

	uint64_t empty_at, empty_rest; /* when the bucket was empty: ns, and parts of rate beyond */
	uint64_t burst_ns, limit_ns, hold_ns;
	uint64_t last_due, last_in;
	bool last_held;
	uint64_t owed; /* that were to be overtaken and were not: others are to be */

	struct np_picker loss, reorder, duplicate;
	double jitter;            /* now, between +-jitter_ns */
	double jitter_way;        /* +-1: where it goes */
	double jitter_turn;       /* ns until it turns */
	uint64_t jitter_at, seed; /* when that was */
};

/* Takes the memory: address space for `room` bytes. NP_ESYS when there is none. */
int np_line_init(struct np_line *l, size_t room, struct np_err *err);
void np_line_free(struct np_line *l);

/* From here on it is like that; what is under way stays as it is. */
void np_line_set(struct np_line *l, const struct np_line_plan *plan);

/* Where the next packet is to be written, NULL when no memory is left. */
void *np_line_room(struct np_line *l);

/* The packet of `size` bytes that lies there came at this time. */
void np_line_in(struct np_line *l, size_t size, uint64_t now);

/* A packet came that np_line_room() had no room for. */
void np_line_refuse(struct np_line *l);

/* When the next packet leaves; NP_NEVER when there is none. */
uint64_t np_line_due(const struct np_line *l);

/*
 * The packets that leave now in their order, once np_line_due() has come. Returns how many, of
 * NP_LINE_OUT_MAX. They lie there until np_line_done() is called, which must be next.
 */
unsigned np_line_out(struct np_line *l, uint64_t now, struct np_line_packet *out);
void np_line_done(struct np_line *l);

#endif
