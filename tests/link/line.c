#include "tests/link/line.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Of record.flags. OWING: if none overtakes it, another one is to be overtaken in its place. */
enum { DOUBLE = 1, OVERTAKEN = 2, OWING = 4 };

/* What lies in the ring in front of a packet's bytes. */
struct record {
	uint64_t due;
	uint32_t size, flags;
};

enum { RECORD_MAX = sizeof(struct record) + NP_LINE_PACKET_MAX };

/* --- the plan ---------------------------------------------------------------------------- */

static const struct {
	const char *name;
	size_t where;
	uint64_t most;
} members[] = {
	{ "rate", offsetof(struct np_line_plan, rate), UINT64_C(1000000000000) },
	{ "overhead", offsetof(struct np_line_plan, overhead), 1000 },
	{ "least", offsetof(struct np_line_plan, least), 10000 },
	{ "burst", offsetof(struct np_line_plan, burst), UINT64_C(1000000000) },
	{ "limit", offsetof(struct np_line_plan, limit), UINT64_C(10000000000) },
	{ "delay", offsetof(struct np_line_plan, delay_ns), 100 * NP_SEC },
	{ "jitter", offsetof(struct np_line_plan, jitter_ns), 100 * NP_SEC },
	{ "loss", offsetof(struct np_line_plan, loss), NP_LINE_ALL },
	{ "reorder", offsetof(struct np_line_plan, reorder), NP_LINE_ALL / 2 },
	{ "duplicate", offsetof(struct np_line_plan, duplicate), NP_LINE_ALL },
	{ "seed", offsetof(struct np_line_plan, seed), UINT64_MAX },
};

int
np_line_plan_word(struct np_line_plan *plan, const char *word, struct np_err *err)
{
	const char *is = strchr(word, '=');
	size_t n = is == NULL ? 0 : (size_t)(is - word);
	unsigned long long value;
	char *end;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		if (n == 0 || strlen(members[i].name) != n ||
		    strncmp(word, members[i].name, n) != 0) {
			continue;
		}
		errno = 0;
		value = strtoull(is + 1, &end, 10);
		if (is[1] < '0' || is[1] > '9' || *end != '\0' || errno != 0) {
			return np_usage(err, "%s: not a number", word);
		}
		if (value > members[i].most) {
			return np_usage(err, "%s: above %" PRIu64, word, members[i].most);
		}
		memcpy((char *)plan + members[i].where, &(uint64_t){ value }, sizeof(uint64_t));
		return NP_OK;
	}
	return np_usage(err, "%s: a line has no such setting", word);
}

int
np_line_plan_check(const struct np_line_plan *plan, struct np_err *err)
{
	if (plan->jitter_ns > plan->delay_ns) {
		return np_usage(err, "the jitter is larger than the delay");
	}
	return NP_OK;
}

void
np_line_plan_tell(const struct np_line_plan *plan,
		  void (*tell)(void *arg, const char *name, uint64_t value), void *arg)
{
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		uint64_t value;

		memcpy(&value, (const char *)plan + members[i].where, sizeof(value));
		tell(arg, members[i].name, value);
	}
}

/* --- choices ----------------------------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood 2014): good for any seed, 0 included. */
static uint64_t
draw(uint64_t *seed)
{
	uint64_t x = *seed += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* From 0 to below 1. */
static double
fraction(uint64_t *seed)
{
	return (double)(draw(seed) >> 11) * 0x1p-53;
}

void
np_picker_init(struct np_picker *p, uint64_t share, uint64_t seed)
{
	*p = (struct np_picker){ .share = share, .seed = seed };
	p->due = draw(&p->seed) % NP_LINE_ALL;
}

/* `at` runs through each stretch from 0 to NP_LINE_ALL, and the one at which it passes `due` is
 * chosen. A stretch ends at most once a call, so that at most one choice is ever owed. */
bool
np_picker_next(struct np_picker *p, bool may)
{
	bool chosen;

	if (p->share == 0) {
		return false;
	}
	p->at += p->share;
	chosen = may && !p->done && p->at > p->due;
	if (chosen) {
		p->done = true;
	}
	if (p->at >= NP_LINE_ALL) {
		if (!p->done) { /* still owed: at the very beginning of the next stretch */
			p->due = 0;
		} else {
			p->due = draw(&p->seed) % NP_LINE_ALL;
		}
		p->at -= NP_LINE_ALL;
		p->done = false;
	}
	return chosen;
}

/*
 * The jitter moves between its limits at half the speed of time, turns at random moments and at the
 * limits. So every value between them is equally probable at any moment, while no packet overtakes
 * another: a value drawn for each packet would let them. After a long pause it is drawn anew.
 */
static int64_t
jitter(struct np_line *l, uint64_t now)
{
	const double most = (double)l->plan.jitter_ns;
	double left = (double)(now - l->jitter_at);

	if (l->plan.jitter_ns == 0) {
		return 0;
	}
	l->jitter_at = now;
	if (left > 16 * most) {
		l->jitter = (2 * fraction(&l->seed) - 1) * most;
		l->jitter_way = draw(&l->seed) & 1 ? 1 : -1;
		l->jitter_turn = 0;
		left = 0;
	}
	while (left > 0) {
		double step;

		if (l->jitter_turn <= 0) {
			l->jitter_way = -l->jitter_way;
			l->jitter_turn = -2 * most * log(1 - fraction(&l->seed)) + 1;
		}
		step = fmin(left, l->jitter_turn);
		left -= step;
		l->jitter_turn -= step;
		l->jitter += l->jitter_way * step / 2;
		while (fabs(l->jitter) > most) {
			l->jitter = copysign(2 * most, l->jitter) - l->jitter;
			l->jitter_way = -l->jitter_way;
		}
	}
	return (int64_t)l->jitter;
}

/* --- the line ---------------------------------------------------------------------------- */

int
np_line_init(struct np_line *l, size_t room, struct np_err *err)
{
	*l = (struct np_line){ .hard = room };
	l->ring = mmap(NULL, room, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (l->ring == MAP_FAILED) {
		l->ring = NULL;
		return np_fail(err, NP_ESYS, errno, "%zu bytes for packets in flight", room);
	}
	np_line_set(l, &l->plan);
	return NP_OK;
}

void
np_line_free(struct np_line *l)
{
	if (l->ring != NULL) {
		munmap(l->ring, l->hard);
	}
	l->ring = NULL;
}

static uint64_t
bytes_to_ns(uint64_t bytes, uint64_t rate)
{
	return rate == 0 ? 0 : (uint64_t)((double)bytes * 8e9 / (double)rate);
}

/* What may be under way: so much of the ring is gone through, and stays in the processor's cache
 * the better the less it is. Small packets take up to twice their size. */
static size_t
footprint(const struct np_line_plan *plan, size_t hard)
{
	const double rate = plan->rate == 0 ? 8e9 : (double)plan->rate;
	const double seconds =

	    (double)(plan->delay_ns + plan->jitter_ns + 2 * NP_LINE_HOLD_NS) / 1e9;
	const double bytes = 2 * (rate / 8 * seconds + (double)plan->limit) + (1 << 20);

	return bytes < (double)hard ? (size_t)bytes : hard;
}

void
np_line_set(struct np_line *l, const struct np_line_plan *plan)
{
	const struct np_line_plan was = l->plan;

	l->plan = *plan;
	l->soft = footprint(plan, l->hard);
	l->burst_ns = bytes_to_ns(plan->burst, plan->rate);
	l->limit_ns = bytes_to_ns(plan->limit, plan->rate);
	l->hold_ns = bytes_to_ns(NP_LINE_HOLD_BYTES, plan->rate);
	if (l->hold_ns < NP_LINE_HOLD_NS) {
		l->hold_ns = NP_LINE_HOLD_NS;
	}
	l->empty_rest = 0;
	if (was.rate != plan->rate) {
		l->empty_at = 0;
	}
	/* What stays as it was goes on, so that its shares stay exact. */
	if (was.loss != plan->loss || was.seed != plan->seed) {
		np_picker_init(&l->loss, plan->loss, plan->seed ^ 1);
	}
	if (was.reorder != plan->reorder || was.seed != plan->seed) {
		np_picker_init(&l->reorder, plan->reorder, plan->seed ^ 2);
	}
	if (was.duplicate != plan->duplicate || was.seed != plan->seed) {
		np_picker_init(&l->duplicate, plan->duplicate, plan->seed ^ 4);
	}
	if (was.jitter_ns != plan->jitter_ns || was.seed != plan->seed) {
		l->seed = plan->seed ^ 8;
		l->jitter = 0;
		l->jitter_at = 0;
	}
}

void *
np_line_room(struct np_line *l)
{
	if (l->waiting == 0) {
		l->head = l->tail = 0;
		l->wrapped = false;
	}
	if (l->wrapped) {
		if (l->head + RECORD_MAX > l->tail) {
			return NULL;
		}
	} else if (l->head + RECORD_MAX > l->soft && l->tail >= RECORD_MAX) {
		l->end = l->head;
		l->head = 0;
		l->wrapped = true;
	} else if (l->head + RECORD_MAX > l->hard) {
		return NULL;
	}
	return l->ring + l->head + sizeof(struct record);
}

/* When the packet has passed the rate; NP_NEVER when the queue had no room for it. */
static uint64_t
through_rate(struct np_line *l, size_t size, uint64_t now)
{
	uint64_t cost = size + l->plan.overhead, ns, empty = l->empty_at;

	if (l->plan.rate == 0) {
		return now;
	}
	if (cost < l->plan.least) {
		cost = l->plan.least;
	}
	if (empty + l->burst_ns < now) {
		empty = now - l->burst_ns;
		l->empty_rest = 0;
	}
	ns = (cost * 8 * NP_SEC + l->empty_rest) / l->plan.rate;
	if (empty > now && empty - now + ns > l->limit_ns) {
		return NP_NEVER;
	}
	l->empty_rest = (cost * 8 * NP_SEC + l->empty_rest) % l->plan.rate;
	l->empty_at = empty + ns;
	return l->empty_at > now ? l->empty_at : now;
}

/* One that overtakes is not itself overtaken. Where one was to be and was not, as the sender
 * paused, the next one is; but not where packets are so far apart that none ever is. Returns the
 * flags for it. */
static uint32_t
to_be_overtaken(struct np_line *l, uint64_t now)
{
	const bool may = !l->last_held, dense = now - l->last_in < l->hold_ns / 2;
	bool chosen = np_picker_next(&l->reorder, may);

	l->last_in = now;
	if (!chosen && may && l->owed > 0 && dense && l->plan.reorder != 0) {
		l->owed--;
		chosen = true;
	}
	l->last_held = chosen;
	return (chosen ? OVERTAKEN : 0U) | (chosen && dense ? OWING : 0U);
}

void
np_line_in(struct np_line *l, size_t size, uint64_t now)
{
	struct record *r = (struct record *)(void *)(l->ring + l->head);
	uint64_t sent = through_rate(l, size, now), due;

	l->count.received++;
	if (sent == NP_NEVER) {
		l->count.dropped++;
		return;
	}
	if (np_picker_next(&l->loss, true)) {
		l->count.lost++;
		return;
	}
	due = sent + l->plan.delay_ns + (uint64_t)jitter(l, sent);
	if (due < l->last_due) { /* the delay has become less */
		due = l->last_due;
	}
	l->last_due = due;
	*r = (struct record){
		.due = due,
		.size = (uint32_t)size,
		.flags =
		    (np_picker_next(&l->duplicate, true) ? DOUBLE : 0U) | to_be_overtaken(l, now),
	};
	l->head += (sizeof(*r) + size + 15) & ~(size_t)15;
	l->waiting++;
}

void
np_line_refuse(struct np_line *l)
{
	l->count.received++;
	l->count.no_room++;
}

static const struct record *
first(const struct np_line *l)
{
	return (const struct record *)(const void *)(l->ring + l->tail);
}

/* Where the record behind that at `at` begins. */
static size_t
behind(const struct np_line *l, size_t at)
{
	const struct record *r = (const struct record *)(const void *)(l->ring + at);

	at += (sizeof(*r) + r->size + 15) & ~(size_t)15;
	return l->wrapped && at == l->end ? 0 : at;
}

static const struct record *
second(const struct np_line *l)
{
	return (const struct record *)(const void *)(l->ring + behind(l, l->tail));
}

uint64_t
np_line_due(const struct np_line *l)
{
	if (l->waiting == 0) {
		return NP_NEVER;
	}
	if (!(first(l)->flags & OVERTAKEN)) {
		return first(l)->due;
	}
	if (l->waiting > 1 && second(l)->due < first(l)->due + l->hold_ns) {
		return second(l)->due;
	}
	return first(l)->due + l->hold_ns;
}

static unsigned
hand_out(struct np_line *l, const struct record *r, uint64_t due, struct np_line_packet *out)
{
	out[0] = (struct np_line_packet){ r + 1, r->size, due };
	l->count.forwarded++;
	if (!(r->flags & DOUBLE)) {
		return 1;
	}
	out[1] = out[0];
	l->count.forwarded++;
	l->count.duplicated++;
	return 2;
}

unsigned
np_line_out(struct np_line *l, uint64_t now, struct np_line_packet *out)
{
	const uint64_t due = np_line_due(l);
	unsigned n = 0;

	if (due > now) {
		return 0;
	}
	l->leaving = 1;
	if (first(l)->flags & OVERTAKEN) {
		if (l->waiting > 1 && second(l)->due <= due) {
			n = hand_out(l, second(l), due, out);
			l->leaving = 2;
			l->count.reordered++;
		} else {
			l->count.held++;
			l->owed += (first(l)->flags & OWING) != 0;
			if (l->waiting == 1) { /* the next packet overtakes none */
				l->last_held = false;
			}
		}
	}
	return n + hand_out(l, first(l), due, out + n);
}

void
np_line_done(struct np_line *l)
{
	for (; l->leaving > 0; l->leaving--) {
		size_t next = behind(l, l->tail);

		if (next < l->tail) {
			l->wrapped = false;
		}
		l->tail = next;
		l->waiting--;
	}
}
