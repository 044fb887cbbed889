/*
 * Loads: when operations may begin. A load answers two questions, how many may begin now and when
 * the next one is due, and each kind of load is a row (struct np_load_kind). The pattern
 * knows what an operation is (a message, a transaction, a connection).
 *
 * An operation that follows another one is taken from what is left (np_paced() in a step,
 * np_load_may() where nothing was). A step that finds nothing left adds NP_REST to the need: the
 * engine asks np_load_may() before it makes the next call. With a depth, requests that fill it at
 * the begin are not counted, nor are those that take the place of lost ones.
 */
#ifndef NP_BENCH_LOAD_H
#define NP_BENCH_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/arrivals.h"

struct np_end;
struct np_load_kind;
struct np_worker;

enum {
	NP_PACE_US = 1000,         /* an interval, where only a burst was asked for; as netperf */
	NP_LOAD_DUE_MOST = 1024,   /* messages that were due and begin together */
	NP_RAMP_LATE_NS = 10000000 /* what begins all at once became due within that time */
};

/* Of one worker, and owned by it, but for `resting`. Times are those of CLOCK_MONOTONIC. */
struct np_load {
	const struct np_load_kind *kind;
	uint32_t left;        /* operations that may begin at once */
	bool holds;           /* some wait, and none may begin before due_ns */
	_Atomic bool resting; /* the worker sleeps until then */
	uint64_t due_ns;
	uint64_t held_ns;  /* since when it holds */
	uint64_t paced_ns; /* of the window, how long it held */

	/* Of a paced load: */
	uint32_t burst; /* operations of an interval */
	uint64_t interval_ns;
	uint64_t end_ns; /* of the interval that runs */
	/* Of a ramp, and of an open one: */
	struct np_arrivals arrivals;
	uint64_t until_ns; /* of an offered one: from then on nothing is due */
};

struct np_load_kind {
	/*
	 * Nothing is left. Returns how many operations may begin at that time; 0: none before
	 * l->due_ns, which it sets. l->holds: they have waited for that.
	 */
	uint32_t (*more)(struct np_load *l, uint64_t now_ns);
};

/*
 * closed: the next operation begins when the one before is over; with a depth of several, as soon
 * as one of those in flight is.
 *
 * paced (-b and -w): a fixed number of operations in each interval. Intervals follow each other
 * without a gap, at exact microseconds from the start of the window. When a burst has taken longer
 * than its interval the next interval begins there and then: what was missed is never made up for
 * by a faster rate.
 *
 * ramp (--ramp): connections begin one after the other, at exact multiples from the start. All that
 * are due may begin; what was missed for longer than NP_RAMP_LATE_NS is put off, and with it what
 * follows.
 *
 * open (--rate): operations are due by the clock, whatever came back. One at a time may begin, and
 * l->due_ns is when that one was due: what was missed stays due, and begins as fast as it can.
 *
 * offered (--rate of a stream): the same of messages, and all that are due may begin, until the
 * window closes.
 */
extern const struct np_load_kind np_load_closed, np_load_paced, np_load_ramp, np_load_open,
    np_load_offered;

/* The load of an end's operations. */
const struct np_load_kind *np_load_of(const struct np_end *e);

/*
 * The load of an end begins at that time. `begun` operations are under way, which takes them from
 * the first burst.
 */
void np_load_begin(struct np_load *l, const struct np_end *e, uint32_t begun, uint64_t now_ns);

/*
 * Operations are due from that time on, `rate` a second of all workers, of which worker `number` of
 * `of` has its part. The kind is ramp, open or offered; a ramp's places come evenly.
 */
void np_load_begin_due(struct np_load *l, const struct np_load_kind *kind, double rate,
		       uint32_t how, uint32_t number, uint32_t of, uint64_t now_ns);

/* May an operation begin at that time? It is taken from what is left. False: not before l->due_ns.
 */
bool np_load_may(struct np_load *l, uint64_t now_ns);

/* The loop is left, or its warm-up is over: time that it was held is counted until now. */
void np_load_pause(struct np_load *l, uint64_t now_ns);

/* No operation waits any more; some wait still, and are to ask again at once. */
void np_load_unblock(struct np_load *l, uint64_t now_ns);
void np_load_block(struct np_load *l, uint64_t now_ns);

/* Sleep until an operation may begin. Returns false if the worker was told to leave its loop. */
bool np_load_rest(struct np_worker *w);

/* The longest time that an end pauses between operations, in ns; 0: it does not. */
uint64_t np_load_pause_of(const struct np_end *e);

/* Does the worker sleep until an operation is due just now? For its controller. */
static inline bool
np_load_resting(const struct np_load *l)
{
	return atomic_load_explicit(&l->resting, memory_order_relaxed);
}

#endif
