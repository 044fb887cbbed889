/*
 * The requests in flight. Where a connection keeps their order and loses none, each response
 * answers the oldest. Datagrams have ids, so that each response belongs to its request: a
 * duplicate, a late one or a stranger's would otherwise be taken for the answer to what was sent
 * last, and every transaction after it be one ahead. Only where both ends agreed on it
 * (np_plan.ids), as the ids take the place of what the user wanted to send.
 *
 * An id is the number of its request, or the lowest byte of that where a message has no room for
 * more. The responder copies it from the request to the response.
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
	NP_IDS_WIDE = 4, /* bytes of an id, network byte order, where both messages have them */
	/* Requests in flight that ids of one byte still tell apart from those before. */
	NP_IDS_NARROW_DEPTH = 64
};

/* Where the id stands in a message; width 0: there is none. */
struct np_id_place {
	size_t at;
	uint32_t width; /* bytes: 0, 1 or NP_IDS_WIDE */
};

/* Is it such a test: requests and responses in datagrams that the network may lose or double? */
bool np_ids_useful(const struct np_plan *p);

/* The same at both ends: it follows from what they agreed on. */
struct np_id_place np_id_place(const struct np_plan *p);

/* Does such a requester use them? If not: why. */
bool np_ids_used(const struct np_plan *p);
const char *np_ids_why_none(const struct np_plan *p);

/* A request in flight. */
struct np_id_slot {
	uint64_t number_and_1; /* 0: the slot is free */
	uint64_t sent_ns;      /* of an open loop, when it was due */
	uint64_t left_ns;      /* of an open loop alone: when it was sent */
};

/* A requester's account. Owned by its worker. */
struct np_ids {
	struct np_id_place place;
	uint32_t slot_mask;         /* slots less one; a power of two of them */
	uint32_t depth, in_flight;  /* most requests in flight, and those that are */
	uint64_t next, oldest;      /* number of the next request; none below is in flight */
	struct np_counters *count;  /* of its worker: duplicated, late, stray, surplus */
	uint64_t begun_ns, left_ns; /* when the one under way was sent, and the one answered */
	uint64_t answered_and_1;    /* the number of that */
	/* Of an open loop: the last one that was answered. */
	uint64_t last_and_1, due_ns, here_ns;
	bool came_late; /* since the last look, one to a request that was given up */
	uint32_t given_up_mask;
	uint64_t *given_up; /* number and 1 of requests given up, by number; behind the slots */
	struct np_id_slot slots[];
};

/*
 * An empty account of one of `conns` connections with `depth` requests in flight, the caller's to
 * free(). Without ids place.width is 0, from the begin or later. NULL: no memory.
 */
struct np_ids *np_ids_new(struct np_id_place place, uint32_t depth, uint32_t conns,
			  struct np_counters *count, struct np_err *err);

/* The id in a message that has room for one. */
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

/* Write the id of that request into it. */
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

/* Has a message that has room for one the id of that request? */
static inline bool
np_id_is(struct np_id_place place, uint64_t number, const char *message)
{
	uint32_t wide = htobe32((uint32_t)number);

	return place.width == NP_IDS_WIDE ? memcmp(message + place.at, &wide, NP_IDS_WIDE) == 0
					  : message[place.at] == (char)number;
}

/* The number of the next request. Numbers with a slot in use are left out. */
static inline uint64_t
np_ids_next(struct np_ids *ids)
{
	while (__builtin_expect(ids->slots[ids->next & ids->slot_mask].number_and_1 != 0, 0)) {
		ids->next++;
	}
	return ids->next;
}

/*
 * The number of the request behind that one, which is the next or one behind it, as it will be when
 * all before it are sent.
 */
static inline uint64_t
np_ids_behind(const struct np_ids *ids, uint64_t number)
{
	do {
		number++;
	} while (__builtin_expect(ids->slots[number & ids->slot_mask].number_and_1 != 0, 0));
	return number;
}

static inline void
np_ids_sent(struct np_ids *ids, uint64_t now_ns)
{
	struct np_id_slot *slot = &ids->slots[ids->next & ids->slot_mask];

	slot->number_and_1 = ++ids->next;
	slot->sent_ns = now_ns;
	slot->left_ns = ids->begun_ns;
	ids->in_flight++;
}

/* Count a message that answers no request in flight: a duplicate, late, or stray. */
void np_ids_astray(struct np_ids *ids, const char *message, size_t size);

/* Without ids it is the oldest that is answered; there may be none (surplus). */
bool np_ids_answers_oldest(struct np_ids *ids, uint64_t *sent_ns);

/*
 * A message of `size` bytes came: true, and *sent_ns, when it answers a request in flight, which is
 * over then. Else it is counted.
 */
static inline bool
np_ids_answers(struct np_ids *ids, const char *message, size_t size, uint64_t *sent_ns)
{
	struct np_id_slot *slot;
	uint32_t id, number;

	if (ids->place.width == NP_IDS_WIDE) {
		memcpy(&id, message + ids->place.at, NP_IDS_WIDE);
		id = be32toh(id);
		slot = &ids->slots[id & ids->slot_mask];
		number = (uint32_t)(slot->number_and_1 - 1);
	} else if (ids->place.width == 0) {
		return np_ids_answers_oldest(ids, sent_ns);
	} else {
		id = (unsigned char)message[ids->place.at];
		slot = &ids->slots[id & ids->slot_mask];
		number = (unsigned char)(slot->number_and_1 - 1);
	}
	if (__builtin_expect(slot->number_and_1 == 0 || number != id ||
				 size < ids->place.at + ids->place.width,
			     0)) {
		np_ids_astray(ids, message, size);
		return false;
	}
	*sent_ns = slot->sent_ns;
	ids->left_ns = slot->left_ns;
	ids->answered_and_1 = slot->number_and_1;
	slot->number_and_1 = 0;
	ids->in_flight--;
	return true;
}

/*
 * Give up the requests that were sent at or before that time; of an open loop, were due at or
 * before it and were sent at or before the other one. Returns how many.
 */
uint32_t np_ids_give_up(struct np_ids *ids, uint64_t until_ns, uint64_t left_until_ns);

/*
 * What the requester's end knows of its responses, as the values flow.responses_... and
 * flow.id_bytes (doc/evidence.md). Puts nothing for other tests.
 */
void np_ids_put(const struct np_run *run, struct np_bag *into);

#endif
