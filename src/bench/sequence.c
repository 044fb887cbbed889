#include "bench/sequence.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/lines.h"
#include "base/units.h"
#include "bench/bench.h"
#include "bench/run.h"

enum { MARK = 0x504c7371 /* "PLsq" */, WARM_UP = 0x504c7775 /* "PLwu" */ };

/* Larger values would overflow the sum; they are not real, as no datagram takes 13 days. */
static const uint64_t transit_limit = UINT64_C(1) << 50;

bool
np_sequence_wanted(const struct np_plan *p)
{
	return p->sequence && p->pattern->sequence && !p->transport->reliable;
}

void
np_sequence_mark(void *datagram, uint64_t number, uint64_t now_ns, bool warm)
{
	const uint32_t mark = htobe32(warm ? WARM_UP : MARK);
	char *at = datagram;

	number = htobe64(number);
	now_ns = htobe64(now_ns);
	memcpy(at, &mark, 4);
	memcpy(at + 4, &number, 8);
	memcpy(at + 12, &now_ns, 8);
}

/* Read the header of a datagram. Only that of a counted one has a valid number and time. */
static enum np_sequence_is
read_mark(const void *datagram, size_t size, uint64_t *number, uint64_t *sent_ns)
{
	const char *at = datagram;
	uint32_t mark;

	if (size < NP_SEQUENCE_HEADER) {
		return NP_IS_FOREIGN;
	}
	memcpy(&mark, at, 4);
	memcpy(number, at + 4, 8);
	memcpy(sent_ns, at + 12, 8);
	*number = be64toh(*number);
	*sent_ns = be64toh(*sent_ns);
	if (mark == htobe32(WARM_UP)) {
		return NP_IS_OF_WARM_UP;
	}
	return mark == htobe32(MARK) && *number >> NP_SEQUENCE_BITS == 0 ? NP_IS_COUNTED
									 : NP_IS_FOREIGN;
}

/* Several flows share the window of a single one, but each has at least NP_SEQUENCE_LEAST. */
static uint32_t
window_of(const struct np_plan *p)
{
	uint32_t window = NP_SEQUENCE_WINDOW;

	while (window > NP_SEQUENCE_LEAST && window * (uint64_t)p->flows > NP_SEQUENCE_WINDOW) {
		window /= 2;
	}
	return window;
}

uint64_t
np_sequence_bytes(const struct np_plan *p)
{
	return sizeof(struct np_sequence) + window_of(p) / 8 + window_of(p) * sizeof(uint32_t);
}

struct np_sequence *
np_sequence_new(const struct np_plan *p, uint32_t conns, struct np_err *err)
{
	struct np_sequence *s = np_cache_lines_new(conns, (size_t)np_sequence_bytes(p));
	uint32_t window = window_of(p), *skipped_at;
	uint64_t *arrived;

	if (s == NULL) {
		np_fail(err, NP_ESYS, ENOMEM, "memory for the account of datagrams");
		return NULL;
	}
	arrived = (uint64_t *)&s[conns]; /* of all flows, then skipped_at of all */
	skipped_at = (uint32_t *)&arrived[conns * (size_t)window / 64];
	for (uint32_t i = 0; i < conns; i++, arrived += window / 64, skipped_at += window) {
		s[i].window = window;
		s[i].arrived = arrived;
		s[i].skipped_at = skipped_at;
	}
	return s;
}

/* ---- Bursts of loss ---- */

/* Count the burst that a datagram has ended. */
static void
end_burst(struct np_bursts *b)
{
	/* Cells of the lengths 1, 2, 3-4, 5-8, ... */
	unsigned cell = b->run <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(b->run - 1);

	if (b->run == 0) {
		return;
	}
	b->count++;
	b->longest = b->run > b->longest ? b->run : b->longest;
	b->lengths[cell < NP_SEQUENCE_LENGTHS ? cell : NP_SEQUENCE_LENGTHS - 1]++;
	b->run = 0;
}

/* The place of a number in the window (s->window is a power of two). */
static uint64_t
place_of(const struct np_sequence *s, uint64_t number)
{
	return number & (s->window - 1);
}

/* The word of `arrived` with its bit, number % 64. */
static uint64_t *
word_of(const struct np_sequence *s, uint64_t number)
{
	return &s->arrived[place_of(s, number) / 64];
}

/* Has the datagram with that number, of the window, arrived? */
static bool
has_arrived(const struct np_sequence *s, uint64_t number)
{
	return (*word_of(s, number) >> (number % 64) & 1) != 0;
}

/* Count bursts of loss in [from, to), a word without arrivals in one step. The last may go on. */
static void
count_bursts(const struct np_sequence *s, uint64_t from, uint64_t to, struct np_bursts *b)
{
	for (uint64_t n = from; n < to; n++) {
		if (n % 64 == 0 && to - n >= 64 && *word_of(s, n) == 0) {
			b->run += 64;
			n += 63;
		} else if (has_arrived(s, n)) {
			end_burst(b);
		} else {
			b->run++;
		}
	}
}

/* ---- Arrivals ---- */

/* Move the base so that the window can end at `next`: count bursts in what leaves, free places. */
static void
move_window(struct np_sequence *s, uint64_t next)
{
	uint64_t base = next > s->window ? next - s->window : 0;
	uint64_t left = base < s->next ? base : s->next;

	if (base <= s->base) {
		return;
	}
	count_bursts(s, s->base, left, &s->bursts);
	for (uint64_t n = s->base; n < left; n++) {
		if (n % 64 == 0 && *word_of(s, n) == 0) {
			n += 63;
		} else {
			*word_of(s, n) &= ~(UINT64_C(1) << (n % 64));
		}
	}
	s->bursts.run += base > s->next ? base - s->next : 0; /* none of these has arrived */
	s->base = base;
}

/* New, a duplicate, reordered or too old? The highest number so far moves the window. */
static void
count_number(struct np_sequence *s, uint64_t number)
{
	if (number < s->base) {
		s->too_old++;
		return;
	}
	if (number < s->next && has_arrived(s, number)) {
		s->duplicated++;
		return;
	}
	if (number < s->next) {
		uint32_t extent = (uint32_t)s->unique - s->skipped_at[place_of(s, number)];

		s->reordered++;
		s->extent_max = extent > s->extent_max ? extent : s->extent_max;
	} else {
		uint64_t skipped = s->next;

		move_window(s, number + 1);
		for (skipped = skipped > s->base ? skipped : s->base; skipped < number; skipped++) {
			s->skipped_at[place_of(s, skipped)] = (uint32_t)s->unique;
		}
		s->next = number + 1;
	}
	*word_of(s, number) |= UINT64_C(1) << (number % 64);
	s->unique++;
}

/*
 * Note the lowest number, and an outage before this one: datagrams were sent, but all were lost. A
 * stall of an end is none. A datagram that arrives late cancels its outage.
 */
static void
note_outage(struct np_sequence *s, uint64_t number, uint64_t sent_ns)
{
	uint64_t ns = sent_ns - s->sent_ns, missing = number - s->next;

	if (s->next == 0 || number < s->first) {
		s->first = number;
		s->first_sent_ns = sent_ns;
	}
	if (number < s->next) {
		s->outage.ns = number >= s->outage.from && number < s->outage.to ? 0 : s->outage.ns;
		return;
	}
	if (s->next > 0 && missing > 0 && (int64_t)ns > 0) { /* a time may be forged */
		ns -= ns / (missing + 1); /* less one interval: the time of the missing ones */
		if (ns > s->outage.ns) {
			s->outage.from = s->next;
			s->outage.to = number;
			s->outage.ns = ns;
			s->outage.at_ns = s->sent_ns;
		}
	}
	s->sent_ns = sent_ns;
}

enum np_sequence_is
np_sequence_arrived(struct np_sequence *s, const void *datagram, size_t size, uint64_t now_ns,
		    bool late)
{
	uint64_t number, sent_ns, distance;
	int64_t later;
	enum np_sequence_is kind = read_mark(datagram, size, &number, &sent_ns);

	s->foreign += kind == NP_IS_FOREIGN;
	if (kind != NP_IS_COUNTED) {
		return kind;
	}
	if (s->next == 0) {
		s->first_ns = now_ns;
		s->first_bytes = size;
	}
	s->last_ns = now_ns;
	s->bytes += size;
	/* As in RFC 3550's appendix A.8, which keeps sixteen times the figure. */
	later = (int64_t)(now_ns - sent_ns - s->transit_ns);
	s->transit_ns = now_ns - sent_ns;
	if (s->next > 0) {
		distance = np_min(later < 0 ? -(uint64_t)later : (uint64_t)later, transit_limit);
		s->jitter16 += distance - ((s->jitter16 + 8) >> 4);
		s->jitter16_max = np_max(s->jitter16, s->jitter16_max);
	}
	note_outage(s, number, sent_ns); /* first, as it compares with s->next */
	count_number(s, number);
	s->late += late;
	return kind;
}

/* ---- Results ---- */

/* Put bursts into a bag, without the empty cells behind the longest. */
static void
put_bursts(const struct np_bursts *b, struct np_bag *into)
{
	size_t used = NP_SEQUENCE_LENGTHS;

	while (used > 0 && b->lengths[used - 1] == 0) {
		used--;
	}
	np_bag_int(into, (int64_t)b->count, "udp.loss_bursts");
	np_bag_int(into, (int64_t)b->longest, "udp.loss_burst_longest");
	np_bag_ints(into, b->lengths, used, "udp.loss_burst_lengths");
}

void
np_sequence_add(struct np_sequence *all, const struct np_sequence *s)
{
	struct np_bursts bursts = s->bursts;
	/* An estimate: the time of those that are missing before the first, at the mean rate. */
	double each_ns = fmax((double)(int64_t)(s->sent_ns - s->first_sent_ns), 0) /
			 fmax((double)(s->next - s->first) - 1, 1);
	uint64_t before_ns = (uint64_t)fmin(each_ns * (double)s->first, (double)transit_limit);
	uint64_t longest_ns = np_max(s->outage.ns, before_ns);

	count_bursts(s, s->base, s->next, &bursts);
	all->bursts.count += bursts.count;
	all->bursts.longest = np_max(all->bursts.longest, bursts.longest);
	for (size_t i = 0; i < NP_SEQUENCE_LENGTHS; i++) {
		all->bursts.lengths[i] += bursts.lengths[i];
	}
	if (s->next > 0 && (all->next == 0 || s->first_ns < all->first_ns)) {
		all->first_ns = s->first_ns;
		all->first_bytes = s->first_bytes;
	}
	all->last_ns = np_max(all->last_ns, s->last_ns);
	if (longest_ns > all->outage.ns) {
		all->outage.ns = longest_ns;
		all->outage.at_ns =
		    longest_ns > s->outage.ns ? 0 : s->outage.at_ns - s->first_sent_ns + before_ns;
		all->outage.flow = all->flows;
	}
	all->unique += s->unique;
	all->duplicated += s->duplicated;
	all->reordered += s->reordered;
	all->late += s->late;
	all->foreign += s->foreign;
	all->too_old += s->too_old;
	all->extent_max = np_max(all->extent_max, s->extent_max);
	all->jitter16 += s->jitter16;
	all->jitter16_max = np_max(all->jitter16_max, s->jitter16_max);
	all->bytes += s->bytes;
	all->next += s->next;
	all->flows++;
	all->heard += s->next > 0;
}

void
np_sequence_put_sum(const struct np_sequence *s, struct np_bag *into)
{
	double span = (double)(s->last_ns - s->first_ns) / 1e9;

	np_bag_int(into, s->flows, "udp.flows");
	np_bag_int(into, (int64_t)(s->unique + s->duplicated + s->too_old), "udp.received");
	np_bag_int(into, (int64_t)s->unique, "udp.unique");
	np_bag_int(into, (int64_t)s->next, "udp.span");
	np_bag_int(into, (int64_t)s->duplicated, "udp.duplicated");
	np_bag_int(into, (int64_t)s->reordered, "udp.reordered");
	np_bag_int(into, (int64_t)s->extent_max, "udp.reorder_extent_max");
	np_bag_int(into, (int64_t)s->too_old, "udp.too_old");
	np_bag_int(into, (int64_t)s->late, "udp.late");
	np_bag_int(into, (int64_t)s->foreign, "udp.foreign");
	np_bag_real(into, (double)s->jitter16 / 16 / 1000 / fmax(s->heard, 1), "udp.jitter_us");
	np_bag_real(into, (double)s->jitter16_max / 16 / 1000, "udp.jitter_max_us");
	np_bag_int(into, NP_SEQUENCE_HEADER, "udp.header_bytes");
	np_bag_real(into, (double)s->outage.ns / 1e3, "udp.outage_us");
	np_bag_real(into, (double)s->outage.at_ns / 1e9, "udp.outage_begin_s");
	np_bag_int(into, s->outage.flow, "udp.outage_flow");
	put_bursts(&s->bursts, into);
	/* The span begins with the first arrival, so the bytes of the first one do not count. */
	np_bag_int(into, (int64_t)s->bytes, "udp.received_bytes");
	if (s->next > 0) {
		np_bag_real(into, span, "udp.receive_span_s");
	}
	if (span > 0) {
		np_bag_real(into, (double)(s->bytes - s->first_bytes) * 8 / span,
			    "udp.receive_span_bps");
	}
}

void
np_sequence_put(const struct np_run *run, struct np_bag *into)
{
	struct np_sequence all = { .flows = 0 };
	uint64_t sends = 0;

	if (run->plan == NULL || !np_sequence_wanted(run->plan)) { /* NULL: it was not opened */
		return;
	}
	NP_EACH_WORKER (w, run) {
		sends += np_get(&w->count->sends);
		for (uint32_t i = 0; i < w->conns && w->sequence != NULL; i++) {
			np_sequence_add(&all, &w->sequence[i]);
		}
	}
	if (run->plan->role == NP_LEAD && run->worker->send_size < NP_SEQUENCE_HEADER) {
		np_bag_unread(into, "the messages are too short for a number", "udp.sent");
	} else if (run->plan->role == NP_LEAD) {
		np_bag_int(into, (int64_t)sends, "udp.sent");
	} else if (all.flows == 0) {
		np_bag_unread(into, "the receives have no room for a number", "udp.received");
	} else if (all.foreign > 0 && all.next == 0) {
		/* Perhaps the messages are too short: the receiver does not know their size. */
		np_bag_int(into, (int64_t)all.foreign, "udp.foreign");
		np_bag_unread(into, "no datagram that arrived had a number", "udp.received");
	} else {
		np_sequence_put_sum(&all, into);
	}
}

static const int64_t most = INT64_C(1) << NP_SEQUENCE_BITS;

/* A count in a bag, perhaps the far end's; -1: none, or out of range. */
static int64_t
count_of(const struct np_bag *bag, const char *name)
{
	double v = np_bag_number(bag, name);

	return v >= 0 && v <= (double)most ? (int64_t)v : -1;
}

/* Read a far end's bursts from its bag. False: no lengths, or they do not add up to the count. */
static bool
get_bursts(const struct np_bag *bag, struct np_bursts *b)
{
	int64_t left = count_of(bag, "udp.loss_bursts");
	struct np_bag_item lengths;

	*b = (struct np_bursts){ .count = (uint64_t)left,
				 .longest = (uint64_t)count_of(bag, "udp.loss_burst_longest") };
	if (!np_bag_find(bag, "udp.loss_burst_lengths", &lengths) || lengths.kind != NP_BAG_INTS ||
	    lengths.count > NP_SEQUENCE_LENGTHS) {
		return false;
	}
	for (size_t i = 0; i < lengths.count; i++) {
		if (lengths.ints[i] < 0 || lengths.ints[i] > left) {
			return false;
		}
		left -= lengths.ints[i];
		b->lengths[i] = lengths.ints[i];
	}
	return left == 0;
}

/*
 * The last outage: all numbers from `span` on were lost, at the transmitter's mean interval. Put it
 * if it is the longest. Of several flows each one's share is not known: not even the longest is, if
 * one flow with all of them would have it.
 */
static void
put_last_outage(const struct np_bag *transmitter, struct np_bag *receiver, double sent, double span)
{
	double flows = np_bag_number(receiver, "udp.flows");
	double interval_s = flows * np_bag_number(transmitter, "flow.seconds") / sent;
	double us = 1e6 * interval_s * (sent - span);

	if (!(us > np_bag_number(receiver, "udp.outage_us"))) {
		return;
	}
	if (flows > 1) {
		static const char why[] = "it is not known which flows the last ones are of";

		np_bag_unread(receiver, why, "udp.outage_us");
		np_bag_unread(receiver, why, "udp.outage_begin_s");
		np_bag_unread(receiver, why, "udp.outage_flow");
		return;
	}
	np_bag_real(receiver, us, "udp.outage_us");
	np_bag_real(receiver, interval_s * span, "udp.outage_begin_s");
	np_bag_int(receiver, 0, "udp.outage_flow");
}

void
np_sequence_join(const struct np_bag *transmitter, struct np_bag *receiver, double surplus)
{
	int64_t sent = count_of(transmitter, "udp.sent");
	int64_t unique = count_of(receiver, "udp.unique"), span = count_of(receiver, "udp.span");
	struct np_bursts all;

	if (span > 0 && span < sent && (double)(sent - span) <= surplus * (double)sent) {
		sent = span;
	}
	if (sent >= 0) {
		np_bag_int(receiver, sent, "udp.sent");
	}
	if (sent < 0 || unique < 0 || span < 0 || count_of(receiver, "udp.loss_bursts") < 0 ||
	    count_of(receiver, "udp.loss_burst_longest") < 0) {
		return; /* both ends have reported why */
	}
	if (span > sent || unique > span) {
		np_bag_unread(receiver, "numbers arrived that were never sent", "udp.lost");
		return;
	}
	np_bag_int(receiver, sent - unique, "udp.lost");
	put_last_outage(transmitter, receiver, (double)sent, (double)span);
	if (!get_bursts(receiver, &all)) {
		np_bag_unread(receiver, "they do not add up to the announced bursts",
			      "udp.loss_burst_lengths");
		return;
	}
	/* The burst after the last arrival. Of several flows each one's share is not known. */
	all.run = np_bag_number(receiver, "udp.flows") > 1 ? 0 : (uint64_t)(sent - span);
	end_burst(&all);
	put_bursts(&all, receiver);
}
