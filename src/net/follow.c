#include "net/follow.h"

#include <string.h>

enum {
	REORDER_NS = 3000000, /* stands for a round trip that is not known */
	IDS_STEP = 1024,      /* largest step of a packet counter */
	TICKS_ENOUGH = 20,    /* ticks until their length is trusted */
	IDS_ENOUGH = 8        /* steps up that show a counter, and as many for each other step */
};

uint64_t
np_follow_parts(uint64_t bytes, uint64_t each)
{
	return each > 0 && bytes > each ? (bytes - 1) / each + 1 : 1;
}

/* Is the identification of IPv4 a packet counter? */
static bool
counts_ids(const struct np_follow *f)
{
	return f->ids_count >= IDS_ENOUGH && f->ids_count / IDS_ENOUGH >= f->ids_jump;
}

/* > 0: a was sent after b; < 0: before; 0: not known, or the same. */
static int
order(const struct np_follow *f, const struct np_follow_mark *a, const struct np_follow_mark *b)
{
	if (a->stamped && b->stamped && a->stamp != b->stamp) {
		return (int32_t)(a->stamp - b->stamp) < 0 ? -1 : 1;
	}
	if (a->has_id && b->has_id && a->id != b->id && counts_ids(f)) {
		return (int16_t)(uint16_t)(a->id - b->id) < 0 ? -1 : 1;
	}
	return 0;
}

/* Are they copies of one packet, not sent twice, by identification and time stamp? */
static bool
is_same(const struct np_follow *f, const struct np_follow_mark *a, const struct np_follow_mark *b)
{
	return a->has_id && b->has_id && a->id == b->id && counts_ids(f) && order(f, a, b) == 0;
}

/* Is a round trip at least two ticks of the time stamps long, and so surely more than one? */
static bool
outlasts_tick(const struct np_follow *f, uint64_t rtt_ns)
{
	uint32_t ticks = f->newest.stamp - f->oldest.stamp;

	/* More ticks than half of the range are a stamp that went back. */
	return ticks >= TICKS_ENOUGH && ticks < UINT32_MAX / 2 &&
	       f->newest.at_ns > f->oldest.at_ns &&
	       rtt_ns >= 2 * ((f->newest.at_ns - f->oldest.at_ns) / ticks);
}

/* Was it sent after the other one, which was seen before? */
static bool
sent_after(const struct np_follow *f, const struct np_follow_mark *mark,
	   const struct np_follow_mark *other, uint64_t rtt_ns)
{
	int found = order(f, mark, other);

	if (found == 0 && is_same(f, mark, other)) {
		return false;
	}
	if (found == 0 && mark->stamped && other->stamped && outlasts_tick(f, rtt_ns)) {
		return false; /* sent in one tick: too early for a retransmission */
	}
	/* Last, by time: a retransmission comes at least a round trip later. */
	return found != 0 ? found > 0
			  : mark->at_ns >= other->at_ns + (rtt_ns != 0 ? rtt_ns : REORDER_NS);
}

static void
forget_hole(struct np_follow *f, uint32_t i)
{
	f->holes--;
	memmove(&f->hole[i], &f->hole[i + 1], (f->holes - i) * sizeof(f->hole[0]));
}

/* Insert a hole as number i: they stand in the order of their sequence numbers. */
static void
insert_hole(struct np_follow *f, uint32_t i, const struct np_follow_hole *h)
{
	if (f->holes == NP_FOLLOW_HOLES) {
		/* Drop the first one: data that fill it later will count as a duplicate. */
		forget_hole(f, 0);
		i -= i > 0;
	}
	memmove(&f->hole[i + 1], &f->hole[i], (f->holes - i) * sizeof(f->hole[0]));
	f->hole[i] = *h;
	f->holes++;
}

/* Fill holes in [begin, end). Returns bytes that were missing; *first: the first hole as it was. */
static uint64_t
fill(struct np_follow *f, uint64_t begin, uint64_t end, struct np_follow_hole *first)
{
	uint64_t filled = 0;

	for (uint32_t i = 0; i < f->holes;) {
		struct np_follow_hole h = f->hole[i];
		uint64_t from = h.begin > begin ? h.begin : begin;
		uint64_t to = h.end < end ? h.end : end;

		if (from >= to) {
			i++;
			continue;
		}
		if (filled == 0) {
			*first = h;
		}
		filled += to - from;
		f->hole[i].end = from;
		if (from == h.begin) {
			forget_hole(f, i);
		} else {
			i++;
		}
		if (to < h.end) {
			h.begin = to;
			insert_hole(f, i, &h); /* a full list drops its first one */
			i = f->holes;          /* it and all later ones are beyond the range */
		}
	}
	return filled;
}

/* The latest packet with bytes in [begin, end); NULL: too long ago. */
static const struct np_follow_copy *
find_copy(const struct np_follow *f, uint64_t begin, uint64_t end)
{
	uint64_t most = f->seen < NP_FOLLOW_RECENT ? f->seen : NP_FOLLOW_RECENT;

	for (uint64_t back = 1; back <= most; back++) {
		const struct np_follow_copy *c = &f->recent[(f->seen - back) % NP_FOLLOW_RECENT];

		if (c->begin < end && c->end > begin) {
			return c;
		}
	}
	return NULL;
}

/* OVERTAKEN: the original, by its retransmission. DOUBLED: by the network. */
enum origin { SENT_AGAIN, OVERTAKEN, DOUBLED };

/* Why data from `begin` on are seen again; `copy`: the last packet with them, NULL: not known. */
static enum origin
tell_origin(const struct np_follow *f, const struct np_follow_mark *mark, uint64_t begin,
	    const struct np_follow_copy *copy, uint64_t rtt_ns)
{
	struct np_follow_mark first; /* of the segment in `copy` with the byte `begin` */

	if (copy == NULL) {
		/* Sent before the newest data: late or duplicated by the network. */
		return order(f, mark, &f->newest) < 0 ? DOUBLED : SENT_AGAIN;
	}
	first = copy->mark;
	if (copy->each > 0 && begin > copy->begin) {
		first.id = (uint16_t)(first.id + (begin - copy->begin) / copy->each);
	}
	if (f->at_sender && order(f, mark, &first) == 0) { /* retransmitted in the same tick? */
		return is_same(f, mark, &first) ? DOUBLED : SENT_AGAIN;
	}
	if (sent_after(f, mark, &first, rtt_ns)) {
		return SENT_AGAIN;
	}
	return order(f, mark, &first) < 0 ? OVERTAKEN : DOUBLED;
}

/* Count data as retransmitted, in segments of the packet's size. */
static void
count_retransmitted(struct np_follow *f, const struct np_follow_packet *p, uint64_t bytes)
{
	f->count.retransmitted_segments += np_follow_parts(bytes, p->each);
	f->count.retransmitted_bytes += bytes;
}

/* Handle a copy of data that were seen. Returns whether it counts as retransmitted. */
static bool
follow_copy(struct np_follow *f, const struct np_follow_packet *p, uint64_t begin, uint64_t end,
	    uint64_t rtt_ns)
{
	const struct np_follow_copy *copy = find_copy(f, begin, end);
	enum origin origin = tell_origin(f, &p->mark, begin, copy, rtt_ns);
	bool copy_counted = copy != NULL && copy->retransmitted;
	uint64_t n = np_follow_parts(end - begin, p->each);

	f->count.duplicated += n;
	f->count.doubled += origin == DOUBLED ? n : 0;
	/* This is the original: count the retransmission that overtook it and was taken for it. */
	if (origin == SENT_AGAIN || (origin == OVERTAKEN && !copy_counted)) {
		count_retransmitted(f, p, end - begin);
		return true;
	}
	return copy_counted;
}

/* Handle data below f->next: late ones, or copies. Returns whether they count as retransmitted. */
static bool
follow_old_data(struct np_follow *f, const struct np_follow_packet *p, uint64_t begin, uint64_t end,
		uint64_t rtt_ns)
{
	struct np_follow_hole first = { .begin = 0 };
	uint64_t filled = fill(f, begin, end, &first), duplicate = end - begin - filled;

	if (filled == 0) {
		return follow_copy(f, p, begin, end, rtt_ns);
	}
	/* A part of a super-packet may have been seen before. */
	f->count.duplicated += duplicate > 0 ? np_follow_parts(duplicate, p->each) : 0;
	if (sent_after(f, &p->mark, &first.after, rtt_ns)) {
		count_retransmitted(f, p, end - begin);
		return true;
	}
	f->count.reordered += np_follow_parts(filled, p->each);
	return false;
}

/* Follow a segment with data: in order, behind a gap, or again. */
static void
follow_data(struct np_follow *f, const struct np_follow_packet *p, uint64_t rtt_ns)
{
	/* The sequence number in 64 bits: the one nearest to f->next. */
	uint64_t begin = f->next + (uint64_t)(int64_t)(int32_t)(p->seq - (uint32_t)f->next);
	uint64_t end = begin + p->payload;
	bool in_order = begin == f->next, retransmitted = false;

	if (begin < f->next) {
		retransmitted = follow_old_data(f, p, begin, end < f->next ? end : f->next, rtt_ns);
	} else if (begin > f->next) {
		const struct np_follow_hole h = { .begin = f->next,
						  .end = begin,
						  .after = p->mark };

		insert_hole(f, f->holes, &h);
	} else if (f->last_in_order && f->last.has_id && p->mark.has_id) {
		/* Learn whether the identification counts packets. */
		uint16_t step = (uint16_t)(p->mark.id - f->last.id);
		bool counts = step > 0 && step < IDS_STEP;

		f->ids_count += counts;
		f->ids_jump += !counts;
	}
	f->recent[f->seen % NP_FOLLOW_RECENT] = (struct np_follow_copy){
		.begin = begin,
		.end = begin + p->payload,
		.mark = p->mark,
		.each = p->each,
		.retransmitted = retransmitted,
	};
	f->seen++;
	if (order(f, &p->mark, &f->newest) > 0 || f->seen == 1) {
		f->newest = p->mark;
	}
	if (f->seen == 1) {
		f->oldest = p->mark;
	}
	f->last = p->mark;
	f->last_in_order = in_order;
	f->next = end > f->next ? end : f->next;
}

void
np_follow(struct np_follow *f, const struct np_follow_packet *p, uint64_t rtt_ns)
{
	if (p->syn && f->follows && p->seq != (uint32_t)f->next) {
		f->follows = false; /* a new connection between these ports, or a SYN after data */
	}
	if (!f->follows) {
		if (p->payload == 0 && !p->syn) {
			return; /* begin with data: a keep-alive has a number that is one too low */
		}
		f->follows = true;
		f->next = (UINT64_C(1) << 32) + p->seq; /* leaves room for lower numbers */
		f->holes = 0;
		f->seen = 0;
		f->last_in_order = false;
		f->ids_count = f->ids_jump = 0;
	}
	if (p->payload > 0) {
		follow_data(f, p, rtt_ns);
	}
}
