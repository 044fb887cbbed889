#include "tests/link/carry.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/units.h"

enum { BATCH = 64 }; /* packets taken in before it is looked whether one has to leave */

/* The kernel wakes a thread some microseconds later than it asked for, and later after a long sleep
 * than after a short one. So it asks for so much earlier, and stays awake from then on. */
#define EARLY_NS UINT64_C(8000)
#define EARLY_PART 200 /* and the time to sleep divided by this */
#define EARLY_MOST_NS UINT64_C(40000)

/* On a busy machine it is a hundred microseconds now and then: then so much earlier as it has been
 * late of late, as long as that keeps the thread awake for no more than a tenth of the time. */
#define LATE_MARGIN_NS UINT64_C(5000)
#define LATE_MOST_NS UINT64_C(150000)
#define AWAKE_PART 10

/* A thread that goes before all others has to leave them something, or the kernel stops it for 50
 * ms in a second: after so long awake it sleeps for so long. */
#define AWAKE_NS (900 * UINT64_C(1000))
#define PAUSE_NS 60000

/* Packets that come closer than that on the average find the thread awake: to be woken by each
 * would cost their senders more than sending. */
#define DENSE_NS UINT64_C(10000)

void
np_waking_note(struct np_waking *w, uint64_t late)
{
	/* Up fast and down slowly, so that of a hundred times it is rarely exceeded. What a machine
	 * does that stood still for a while is of no use to know. */
	if (late > w->late_ns) {
		w->late_ns += ((late < LATE_MOST_NS ? late : LATE_MOST_NS) - w->late_ns) / 4;
	} else {
		w->late_ns -= w->late_ns / 256;
	}
}

uint64_t
np_waking_early(const struct np_waking *w, uint64_t sleep, uint64_t gap)
{
	const uint64_t usual = np_min(EARLY_NS + sleep / EARLY_PART, EARLY_MOST_NS);
	const uint64_t learnt = np_min(w->late_ns + LATE_MARGIN_NS, gap / AWAKE_PART);

	return learnt > usual ? learnt : usual;
}

int
np_carry_init(struct np_carry *c, int in, int out, const struct np_line_plan *plan, size_t room,
	      struct np_err *err)
{
	*c = (struct np_carry){ .in = in, .out = out, .plan = *plan };
	pthread_mutex_init(&c->lock, NULL);
	if (np_line_init(&c->line, room, err) != NP_OK) {
		return err->code;
	}
	np_line_set(&c->line, plan);
	return NP_OK;
}

void
np_carry_free(struct np_carry *c)
{
	np_line_free(&c->line);
	pthread_mutex_destroy(&c->lock);
}

void
np_carry_set(struct np_carry *c, const struct np_line_plan *plan)
{
	pthread_mutex_lock(&c->lock);
	c->plan = *plan;
	pthread_mutex_unlock(&c->lock);
	atomic_fetch_add(&c->planned, 1);
}

/* Relaxed, and by the only writer: a plain move each. */
static void
put(_Atomic uint64_t *where, uint64_t value)
{
	atomic_store_explicit(where, value, memory_order_relaxed);
}

static uint64_t
get(const _Atomic uint64_t *where)
{
	return atomic_load_explicit(where, memory_order_relaxed);
}

static void
show(struct np_carry *c)
{
	const struct np_line_counts *n = &c->line.count;
	struct np_carry_shown *s = &c->shown;

	put(&s->received, n->received);
	put(&s->forwarded, n->forwarded);
	put(&s->lost, n->lost);
	put(&s->dropped, n->dropped);
	put(&s->no_room, n->no_room);
	put(&s->duplicated, n->duplicated);
	put(&s->reordered, n->reordered);
	put(&s->held, n->held);
}

static void
forget_lateness(struct np_carry_shown *s)
{
	for (size_t i = 0; i <= NP_CARRY_LATE_US; i++) {
		put(&s->late[i], 0);
	}
	put(&s->late_sum_ns, 0);
	put(&s->late_max_ns, 0);
}

static void
note_lateness(struct np_carry_shown *s, uint64_t late)
{
	uint64_t us = late / 1000;
	_Atomic uint64_t *cell = &s->late[us < NP_CARRY_LATE_US ? us : NP_CARRY_LATE_US];

	put(cell, get(cell) + 1);
	put(&s->late_sum_ns, get(&s->late_sum_ns) + late);
	if (late > get(&s->late_max_ns)) {
		put(&s->late_max_ns, late);
	}
}

/* A device is gone, and the lab with it. */
static void
gone(int sys)
{
	if (sys == EBADF || sys == EBADFD) {
		_exit(1);
	}
}

/* Passes on what is due by `now`. Returns the time after it. */
static uint64_t
let_out(struct np_carry *c, uint64_t now)
{
	struct np_line_packet out[NP_LINE_OUT_MAX];
	unsigned n;

	while ((n = np_line_out(&c->line, now, out)) != 0) {
		for (unsigned i = 0; i < n; i++) {
			note_lateness(&c->shown, now - out[i].due);
			if (write(c->out, out[i].data, out[i].size) < 0) {
				gone(errno);
				put(&c->shown.unsent, get(&c->shown.unsent) + 1);
			}
		}
		np_line_done(&c->line);
		now = np_now();
	}
	return now;
}

/* Takes in what has come, until something has to leave. Returns how many packets. */
static unsigned
take_in(struct np_carry *c, uint64_t now)
{
	uint8_t none[16];
	unsigned taken = 0;

	while (taken < BATCH) {
		void *room = np_line_room(&c->line);
		ssize_t n = room != NULL ? read(c->in, room, NP_LINE_PACKET_MAX)
					 : read(c->in, none, sizeof(none));

		if (n <= 0) {
			gone(n < 0 ? errno : 0);
			break;
		}
		taken++;
		if (room == NULL) {
			np_line_refuse(&c->line);
			continue;
		}
		now = np_now();
		c->gap_ns = (15 * c->gap_ns + (now - c->came)) / 16;
		c->came = now;
		np_line_in(&c->line, (size_t)n, now);
		if (np_line_due(&c->line) <= now) {
			break;
		}
	}
	return taken;
}

/* Until a packet comes, or one is about to leave. */
static void
rest(struct np_carry *c, uint64_t now)
{
	const uint64_t due = np_line_due(&c->line);
	struct pollfd in = { .fd = c->in, .events = POLLIN };
	struct timespec left;
	uint64_t until = due;
	int came;

	if (c->gap_ns < DENSE_NS && now < c->came + 2 * DENSE_NS) {
		return;
	}
	if (due != NP_NEVER) {
		until -= np_waking_early(&c->waking, due > now ? due - now : 0, c->gap_ns);
	}
	if (until > now) {
		came = ppoll(&in, 1, np_left(until, &left), NULL);
		c->slept = np_now();
		if (came == 0 && c->slept > until) {
			np_waking_note(&c->waking, c->slept - until);
		}
	}
}

static void *
carry(void *arg)
{
	struct np_carry *c = arg;
	unsigned planned = 0;

	for (;;) {
		const unsigned asked = atomic_load_explicit(&c->planned, memory_order_acquire);
		uint64_t now;
		unsigned taken;

		if (asked != planned) {
			pthread_mutex_lock(&c->lock);
			np_line_set(&c->line, &c->plan);
			pthread_mutex_unlock(&c->lock);
			planned = asked;
		}
		if (atomic_load_explicit(&c->clear, memory_order_relaxed)) {
			forget_lateness(&c->shown);
			atomic_store(&c->clear, false);
		}
		now = let_out(c, np_now());
		taken = take_in(c, now);
		show(c);
		now = np_now();
		if (taken == 0) {
			rest(c, now);
		}
		if (np_now() - c->slept > AWAKE_NS) { /* leave others some of the processor */
			nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
			c->slept = np_now();
		}
	}
	return NULL;
}

static void *
carry_first(void *arg)
{
	const struct sched_param first = { .sched_priority = 1 };

	/* Neither is vital, and either may be forbidden. */
	if (sched_setscheduler(0, SCHED_FIFO, &first) != 0) {
		setpriority(PRIO_PROCESS, 0, -20);
	}
	prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
	return carry(arg);
}

int
np_carry_start(struct np_carry *c, struct np_err *err)
{
	int rc = pthread_create(&c->thread, NULL, carry_first, c);

	return rc == 0 ? NP_OK : np_fail(err, NP_ESYS, rc, "a thread that carries packets");
}
