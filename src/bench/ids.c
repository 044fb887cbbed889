#include "bench/ids.h"

#include <errno.h>

#include "base/clock.h"
#include "base/lines.h"
#include "bench/bench.h"
#include "bench/run.h"
#include "bench/tally.h"
#include "wire/token.h"

enum {
	LEAST_SLOTS = 64,  /* of a single connection */
	LEAST_OF_MANY = 2, /* slots of one of several, to save memory */
	GIVEN_UP = 8       /* given-up requests to remember for each slot */
};

enum { AT_IN_HEADER = 4 }; /* of a raw frame, after the word that np_eth_is_end() reads */

bool
np_ids_useful(const struct np_plan *p)
{
	return p->pattern->ids && !p->transport->reliable;
}

struct np_id_place
np_id_place(const struct np_plan *p)
{
	struct np_id_place place = { .at = 0, .width = 0 };
	int32_t room = p->request < p->response ? p->request : p->response;

	if (!p->ids || !np_ids_useful(p)) {
		return place;
	}
	if (p->transport->header > 0) {
		place.at = AT_IN_HEADER;
		room = p->transport->header - AT_IN_HEADER;
	}
	place.width = room >= NP_IDS_WIDE ? NP_IDS_WIDE : room >= 1 ? 1 : 0;
	return place;
}

/* More slots than requests in flight; with ids twice as many, to rarely skip a used one. */
struct np_ids *
np_ids_new(struct np_id_place place, uint32_t depth, uint32_t conns, struct np_counters *count,
	   struct np_err *err)
{
	size_t slots = conns > 1 ? LEAST_OF_MANY : LEAST_SLOTS;
	size_t least = place.width > 0 ? 2 * (size_t)depth : depth + (size_t)1;
	size_t given_up = place.width > 0 ? GIVEN_UP : 0;
	struct np_ids *ids;

	while (slots < least) {
		slots *= 2;
	}
	ids = np_cache_lines_new(1, sizeof(*ids) + slots * sizeof(ids->slots[0]) +
					given_up * slots * sizeof(ids->given_up[0]));
	if (ids == NULL) {
		np_fail(err, NP_ESYS, ENOMEM, "memory for %u requests in flight", depth);
		return NULL;
	}
	ids->place = place;
	ids->depth = depth;
	ids->count = count;
	ids->slot_mask = (uint32_t)(slots - 1);
	ids->given_up = (uint64_t *)&ids->slots[slots];
	ids->given_up_mask = (uint32_t)(GIVEN_UP * slots - 1);
	return ids;
}

bool
np_ids_answers_oldest(struct np_ids *ids, uint64_t *sent_ns)
{
	struct np_id_slot *slot = &ids->slots[ids->oldest & ids->slot_mask];

	if (ids->in_flight == 0) {
		np_add(&ids->count->surplus, 1);
		return false;
	}
	*sent_ns = slot->sent_ns;
	ids->departed_ns = slot->departed_ns;
	slot->number_plus_1 = 0;
	ids->oldest++;
	ids->in_flight--;
	return true;
}

void
np_ids_astray(struct np_ids *ids, const char *message, size_t size)
{
	bool has_id = size >= ids->place.at + ids->place.width;
	uint64_t last = ids->next - 1, number, *given_up;
	/* The id is of the last request that had it: how many requests ago? */
	uint32_t back = has_id ? (uint32_t)(last - np_id_read(ids->place, message)) : 0;

	back = ids->place.width == NP_IDS_WIDE ? back : (unsigned char)back;
	number = last - back;
	if (!has_id || back >= ids->next) {
		/* Of a token (wire/token.h) sent several times, the later answers are not stray. */
		np_add(&ids->count->stray, !np_token_begins((const uint8_t *)message, size));
		return;
	}
	given_up = &ids->given_up[number & ids->given_up_mask];
	if (*given_up == number + 1) {
		*given_up = 0;
		ids->answered_ns = np_now(); /* no outage: an answer arrived */
		ids->came_late = true;
		np_add(&ids->count->late, 1);
	} else {
		np_add(&ids->count->duplicated, 1);
	}
}

uint32_t
np_ids_give_up(struct np_ids *ids, uint64_t until_ns, uint64_t departed_until_ns)
{
	uint32_t count = 0;

	for (; ids->oldest < ids->next; ids->oldest++) {
		struct np_id_slot *slot = &ids->slots[ids->oldest & ids->slot_mask];

		if (slot->number_plus_1 != ids->oldest + 1) {
			continue; /* answered */
		}
		if (slot->sent_ns > until_ns || slot->departed_ns > departed_until_ns) {
			break; /* later ones were sent later */
		}
		slot->number_plus_1 = 0;
		if (ids->place.width > 0) {
			ids->given_up[ids->oldest & ids->given_up_mask] = ids->oldest + 1;
		}
		ids->in_flight--;
		count++;
	}
	return count;
}

bool
np_ids_used(const struct np_plan *p)
{
	struct np_id_place place = np_id_place(p);

	return place.width == NP_IDS_WIDE || (place.width > 0 && p->burst < NP_IDS_NARROW_DEPTH);
}

const char *
np_ids_why_none(const struct np_plan *p)
{
	if (!p->ids) {
		return "there is no netserver to copy ids";
	}
	/* Wanted, but not granted: only our netserver grants them. */
	return np_ids_used(p) ? "netperf's netserver knows no ids"
			      : "messages of less than 4 bytes have ids of one byte, which are too "
				"few for these requests in flight";
}

void
np_ids_put(const struct np_run *run, struct np_bag *into)
{
	const struct np_plan *p = run->plan;
	struct np_counts c;

	if (!np_ids_useful(p) || p->role != NP_LEAD) {
		return;
	}
	c = np_counts_of(run);
	np_bag_int(into, (int64_t)c.lost, "flow.requests_lost");
	if (run->worker->id.width == 0) {
		np_bag_unread(into, np_ids_why_none(p), "flow.id_bytes");
		np_bag_int(into, (int64_t)c.surplus, "flow.responses_surplus");
		return;
	}
	np_bag_int(into, run->worker->id.width, "flow.id_bytes");
	np_bag_int(into, (int64_t)c.duplicated, "flow.responses_duplicated");
	np_bag_int(into, (int64_t)c.late, "flow.responses_late");
	np_bag_int(into, (int64_t)c.stray, "flow.responses_stray");
}
