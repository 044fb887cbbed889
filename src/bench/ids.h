/*
 * The requests in flight. On a reliable connection each response answers the oldest. Datagrams have
 * ids: otherwise a duplicate, late or stray response would be taken for the answer to the last
 * request, and all later ones would be off by one. Only if both ends agreed on it (np_plan.ids):
 * ids overwrite the user's data. An id is the number of its request, or only its lowest byte if a
 * message has no room for more. The responder copies it to the response.
 */
#ifndef NP_BENCH_IDS_H
#define NP_BENCH_IDS_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bag.h"
#include "base/err.h"

struct np_counters;
struct np_run;
struct np_plan;

enum {
	NP_IDS_WIDE = 4, /* bytes of an id, in network byte order, if both messages have room */
	/* Most requests in flight that ids of one byte can tell from earlier ones. */
	NP_IDS_NARROW_DEPTH = 64
};

/* Position of the id in a message; width 0: there is none. */
struct np_id_place {
	size_t at;
	uint32_t width; /* bytes: 0, 1 or NP_IDS_WIDE */
};

/* Does the test have requests and responses in datagrams, which may be lost or duplicated? */
bool np_ids_useful(const struct np_plan *p);

/* Where ids are, by the plan alone, so both ends agree. width 0: no ids, or no room. */
struct np_id_place np_id_place(const struct np_plan *p);

/* Does a requester use ids, if the far end grants them? If it uses none: why, as text. */
bool np_ids_used(const struct np_plan *p);
const char *np_ids_why_none(const struct np_plan *p);

/* A request in flight. */
struct np_id_slot {
	uint64_t number_plus_1; /* 0: the slot is free */
	uint64_t sent_ns;       /* when it was sent; in an open loop, when it was due */
	uint64_t departed_ns;   /* only in an open loop: when it was sent */
};

/* The requests of one connection. Owned by its worker. */
struct np_ids {
	struct np_id_place place;
	uint32_t slot_mask;        /* number of slots, a power of two, less 1 */
	uint32_t depth, in_flight; /* requests in flight: at most, and now */
	uint64_t next, oldest; /* number of the next request; none below `oldest` is in flight */
	struct np_counters *count; /* of its worker: duplicated, late, stray, surplus */
	uint64_t begun_ns;         /* open loop: when the send of the next request began */
	uint64_t departed_ns;      /* open loop: when the request just answered was sent */
	uint64_t answered_plus_1;  /* its number + 1 */
	/* Open loop: the last answered request in order: number + 1, when due, when answered. */
	uint64_t last_plus_1, due_ns, answered_ns;
	bool came_late; /* a response to a given-up request arrived; the pattern resets it */
	uint32_t given_up_mask;
	uint64_t *given_up; /* numbers + 1 of requests that were given up; after the slots */
	struct np_id_slot slots[];
};

/*
 * For one of `conns` connections with `depth` requests in flight, whose worker counts in `count`;
 * release with free(). place.width is 0 without ids; it may become 0 later. NULL: no memory.
 */
struct np_ids *np_ids_new(struct np_id_place place, uint32_t depth, uint32_t conns,
			  struct np_counters *count, struct np_err *err);

/* Read the id in a message, which must have room for one. */
static inline uint64_t
np_id_read(struct np_id_place place, const char *message)
{
	uint32_t wide;

	if (place.width != NP_IDS_WIDE) {
		return (unsigned char)message[place.at];
	}
	memcpy(&wide, message + place.at, NP_IDS_WIDE);
	return be32toh(wide);
}

/* Write the id of request `number` into its message. */
static inline void
np_id_write(struct np_id_place place, uint64_t number, char *request)
{
	uint32_t wide = htobe32((uint32_t)number);

	if (place.width == NP_IDS_WIDE) {
		memcpy(request + place.at, &wide, NP_IDS_WIDE);
	} else {
		request[place.at] = (char)number;
	}
}

/* Does a message, which must have room for an id, have that of request `number`? */
static inline bool
np_id_is(struct np_id_place place, uint64_t number, const char *message)
{
	uint32_t wide = htobe32((uint32_t)number);

	return place.width == NP_IDS_WIDE ? memcmp(message + place.at, &wide, NP_IDS_WIDE) == 0
					  : message[place.at] == (char)number;
}

/* The number of the next request. Numbers with a slot in use are skipped. */
static inline uint64_t
np_ids_next(struct np_ids *ids)
{
	while (__builtin_expect(ids->slots[ids->next & ids->slot_mask].number_plus_1 != 0, 0)) {
		ids->next++;
	}
	return ids->next;
}

/* The number that the request after `number` will have, when several are prepared for one call. */
static inline uint64_t
np_ids_after(const struct np_ids *ids, uint64_t number)
{
	do {
		number++;
	} while (__builtin_expect(ids->slots[number & ids->slot_mask].number_plus_1 != 0, 0));
	return number;
}

/* The next request was sent, and is in flight. now_ns: np_id_slot.sent_ns. */
static inline void
np_ids_sent(struct np_ids *ids, uint64_t now_ns)
{
	struct np_id_slot *slot = &ids->slots[ids->next & ids->slot_mask];

	slot->number_plus_1 = ++ids->next;
	slot->sent_ns = now_ns;
	slot->departed_ns = ids->begun_ns;
	ids->in_flight++;
}

/* Count a message that answers no request in flight: a duplicate, late, or stray. */
void np_ids_astray(struct np_ids *ids, const char *message, size_t size);

/* Without ids a response answers the oldest request. False: none is in flight (surplus). */
bool np_ids_answers_oldest(struct np_ids *ids, uint64_t *sent_ns);

/* A message arrived. True: it answers the request sent at *sent_ns. False: it was counted. */
static inline bool
np_ids_answers(struct np_ids *ids, const char *message, size_t size, uint64_t *sent_ns)
{
	struct np_id_slot *slot;
	uint32_t id, number;

	if (ids->place.width == NP_IDS_WIDE) {
		memcpy(&id, message + ids->place.at, NP_IDS_WIDE);
		id = be32toh(id);
		slot = &ids->slots[id & ids->slot_mask];
		number = (uint32_t)(slot->number_plus_1 - 1);
	} else if (ids->place.width == 0) {
		return np_ids_answers_oldest(ids, sent_ns);
	} else {
		id = (unsigned char)message[ids->place.at];
		slot = &ids->slots[id & ids->slot_mask];
		number = (unsigned char)(slot->number_plus_1 - 1);
	}
	if (__builtin_expect(slot->number_plus_1 == 0 || number != id ||
				 size < ids->place.at + ids->place.width,
			     0)) {
		np_ids_astray(ids, message, size);
		return false;
	}
	*sent_ns = slot->sent_ns;
	ids->departed_ns = slot->departed_ns;
	ids->answered_plus_1 = slot->number_plus_1;
	slot->number_plus_1 = 0;
	ids->in_flight--;
	return true;
}

/* Give up requests up to that sent_ns and, in an open loop, that departed_ns. Returns how many. */
uint32_t np_ids_give_up(struct np_ids *ids, uint64_t until_ns, uint64_t departed_until_ns);

/*
 * Put a requester's counts: flow.requests_lost; with ids flow.id_bytes and flow.responses_
 * (duplicated, late, stray), without flow.responses_surplus. Nothing for other tests and ends.
 */
void np_ids_put(const struct np_run *run, struct np_bag *into);

#endif
