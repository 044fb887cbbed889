/*
 * Loads: when operations (by pattern a message, a transaction or a connection) may begin. A load
 * says how many may now, and when the next one is due; each kind is a row (struct np_load_kind). A
 * step takes an operation from those left (np_paced()). If none is left, or it is another
 * connection's turn, it adds NP_HELD to the need, and the engine asks np_load_may() before the next
 * call. With several in flight, the first requests take none, nor do those that replace lost ones.
 */
#ifndef NP_BENCH_LOAD_H
#define NP_BENCH_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct np_conn;
struct np_end;
struct np_load_kind;
struct np_plan;
struct np_worker;

enum {
	NP_PACE_US = 1000,         /* default interval of a burst; as netperf */
	NP_LOAD_DUE_MOST = 1024,   /* messages due that may begin together */
	NP_RAMP_LATE_NS = 10000000 /* latest that connections of a ramp may catch up */
};

/* np_plan.arrivals. K > NP_ARRIVE_EVENLY: K at once, in even intervals (burst:K). */
enum { NP_ARRIVE_POISSON, NP_ARRIVE_EVENLY, NP_ARRIVE_BURST_MAX = 65536 };

/* The schedule of one worker, which has an equal share of the run's operations. */
struct np_arrivals {
	uint64_t start_ns, due_ns; /* due_ns: when the next operation is due */
	uint64_t place;            /* number of that operation in the run, from 0 */
	double rate;               /* operations a second of all workers together */
	uint32_t workers, how;     /* of the run; np_plan.arrivals */
	uint64_t seed;
	double at; /* Poisson: when it is due, in ns after start_ns */
};

/* The operation that was due has been taken: set a->due_ns to this worker's next one. */
void np_arrivals_next(struct np_arrivals *a);

/* np_plan.arrivals as users write it: "constant", "poisson"; "burst:8", written to text. */
enum { NP_ARRIVALS_TEXT = 24 };
const char *np_arrivals_text(uint32_t arrivals, char text[NP_ARRIVALS_TEXT]);

/* Owned by one worker, but for `waiting`. Times are CLOCK_MONOTONIC. */
struct np_load {
	const struct np_load_kind *kind;
	uint32_t allowed;     /* operations that may begin now */
	bool holds;           /* operations wait (NP_HELD); none may begin before due_ns */
	bool is_open;         /* the kind is np_load_open, with all members of np_load_kind */
	bool drains;          /* open: the test is over, and the last answers are awaited */
	_Atomic bool waiting; /* the worker sleeps until due_ns */
	uint64_t due_ns;
	uint64_t held_ns;  /* since when operations wait */
	uint64_t paced_ns; /* time in the window that they waited */

	/* Of a paced load: */
	uint32_t burst; /* operations per interval, of all connections of the worker */
	uint32_t row;   /* of one connection, before others have their turn; 0: no limit */
	uint64_t interval_ns;
	uint64_t end_ns; /* of the current interval */
	/* Of a ramp, and of an open one: */
	struct np_arrivals arrivals;
	uint64_t until_ns;  /* from then on nothing is due (offered), or held (paced) */
	uint64_t closes_ns; /* paced: from then on no burst begins */
};

struct np_load_kind {
	/*
	 * Called when all operations that it allowed have begun. Returns how many more may begin
	 * now; 0: none before l->due_ns, which it sets. With l->holds, operations are waiting.
	 */
	uint32_t (*more)(struct np_load *l, uint64_t now_ns);
	/* np_load_open: the connection, from *turn on, to begin a due operation. NULL: none. */
	struct np_conn *(*next)(struct np_worker *w, uint32_t *turn);
	/* When to be awake for the next operation; 0: at once; UINT64_MAX: after an event. */
	uint64_t (*wake)(struct np_worker *w);
	/* With load.drains: are there answers to wait for? */
	bool (*waits)(const struct np_worker *w);
};

/*
 * closed: the next operation begins when the one before is done, or one of several in flight.
 * paced (-b and -w): a fixed number of operations per interval and connection, which the
 * connections of a worker share: one that can't use its part leaves it to others. Intervals follow
 * each other without a gap, at exact microseconds from the start of the window. If a burst takes
 * longer, the next interval begins at once, but missed operations never make the rate faster. A
 * receiver reads datagrams that are queued behind its window without pauses.
 * ramp (--ramp): connections begin one after the other, at exact multiples from the start. All that
 * are due may begin. If one is late by more than NP_RAMP_LATE_NS, all later ones are put off.
 * open (--rate): operations are due on a fixed schedule, regardless of replies. One at a time may
 * begin, and l->due_ns is when it was due; missed ones stay due, and begin as fast as possible.
 * offered (--rate of a stream): as open, for messages; all due ones may begin in the window.
 */
extern const struct np_load_kind np_load_closed, np_load_paced, np_load_ramp, np_load_open,
    np_load_offered;

/* The load that the options of an end ask for: paced or closed. Schedules: np_load_begin_due(). */
const struct np_load_kind *np_load_of(const struct np_end *e);

/* np_load_kind.more of a schedule: 1 if the next operation is due. */
uint32_t np_load_next_due(struct np_load *l, uint64_t now_ns);

/* Begin the load of np_load_of(e), without connections: np_load_add() adds them. */
void np_load_begin(struct np_load *l, const struct np_end *e, uint64_t now_ns);

/* Add connections to a paced load. begun: one operation of each is part of the first burst. */
void np_load_add(struct np_load *l, const struct np_end *e, uint32_t conns, bool begun);

/* Begin a load of kind ramp, open or offered. rate: operations a second of all workers. */
void np_load_begin_due(struct np_load *l, const struct np_load_kind *kind, double rate,
		       uint32_t arrivals, uint32_t worker, uint32_t workers, uint64_t start_ns);

/* Take one operation, if it may begin now. False: not before l->due_ns. */
bool np_load_may(struct np_load *l, uint64_t now_ns);

/* Add the time held until now to paced_ns, and go on. */
void np_load_count_held(struct np_load *l, uint64_t now_ns);

/* End a hold: add its time to paced_ns. */
void np_load_unblock(struct np_load *l, uint64_t now_ns);

/* Begin a hold that is over now: operations wait until the engine has handled other events. */
void np_load_block(struct np_load *l, uint64_t now_ns);

/* When to be awake for the next operation; 0: do not sleep; UINT64_MAX: an event comes first. */
uint64_t np_load_wake(struct np_worker *w);

/* Sleep until an operation may begin, and take it. False: np_stopped(). */
bool np_load_wait(struct np_worker *w);

/* The longest pause of an end between operations, in ns; 0: none. */
uint64_t np_load_pause_of(const struct np_end *e);

/* The longer one of both ends'. */
uint64_t np_load_pause(const struct np_plan *p);

/* For the controller: is the worker asleep until an operation is due? */
static inline bool
np_load_is_waiting(const struct np_load *l)
{
	return atomic_load_explicit(&l->waiting, memory_order_relaxed);
}

#endif
