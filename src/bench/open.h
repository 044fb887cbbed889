/*
 * The open loop (--rate): requests, or connections of a test of them, are due by the clock,
 * whatever was answered. A server that stands still for a while is asked on, and each request that
 * it made wait is in the histogram: the time of a transaction counts from when its request was due
 * (np_worker.hist), and beside that from when it was sent. What was due and never answered stands
 * at the top of both.
 *
 * When they are due is the load's to say (np_load_open).
 */
#ifndef NP_BENCH_OPEN_H
#define NP_BENCH_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/load.h"
#include "stats/hist.h"

struct np_conn;
struct np_run;
struct np_worker;

enum {
	NP_RATE_MAX = 10000000,        /* operations a second */
	NP_OPEN_LATE_NS = 10000,       /* sent later than that after it was due: late */
	NP_OPEN_SPIN_NS = 40000,       /* before it is due, and after wake-ups that came late */
	NP_OPEN_SPIN_MOST_NS = 500000, /* as long as a virtual processor may need for them */
	NP_OPEN_GRACE_MS = 1000, /* after the end, for answers; or two round trips; or -- -e */
	NP_OPEN_LAST = 64, /* requests that were due when the test ended are sent behind that */
	NP_OPEN_LAST_NS = 10000000, /* for so long: an end that stood still has not sent them */
	NP_OPEN_GAPS = 1024         /* between sends, that are kept of a worker */
};

/* Requests of the window: those that were due in it, whenever they are sent and answered. */
struct np_open_counts {
	uint64_t due;   /* of these all others are parts */
	uint64_t begun; /* sent, if only in part */
	uint64_t late;  /* by more than NP_OPEN_LATE_NS */
	uint64_t held;  /* due when all connections had as many in flight as they can */
};

/*
 * A time in which whatever was sent was lost, and behind which answers came again. What a far end
 * that stood still has held back is not, nor what it had no room for, as no answers come before or
 * behind that.
 */
struct np_outage {
	uint64_t ns, at_ns; /* 0: none; from the begin of the window on */
	uint32_t flow;      /* from 0 */
};

/* Of one worker, and owned by it. */
struct np_open {
	struct np_load load; /* np_load_open: when the next one is due */
	uint64_t opens_ns;   /* the window; a warm-up's requests are due before that */
	uint64_t closes_ns;  /* nothing is due from then on */
	bool full;           /* none is due, or no connection can send it before an event */
	uint64_t looked_ns;  /* when it was last asked what is due */
	uint64_t spin_ns;    /* the last part of a wait, in which the thread does not sleep */
	bool sleeps;         /* until that part */
	uint64_t left_ns;    /* when an engine that takes long to leave its loop began to; 0 */
	uint64_t until_ns;   /* how long answers are waited for; 0: the test is not over */
	uint32_t last;       /* requests sent behind it */
	struct np_open_counts count;
	struct np_hist *sent, *lateness; /* from the send on; until the send */
	struct np_outage outage;         /* the longest one */
	uint64_t last_ns;                /* when the last one was sent */
	uint32_t gaps, skip, skipped;    /* one of `skip` is kept */
	double gap[NP_OPEN_GAPS];        /* between sends, in parts of the mean asked for */
};

/* Has the worker a part in it? Returns false without memory for it. */
bool np_open_make(struct np_worker *w);

/* Release it. Safe twice, and of a worker without; so are the next two. */
void np_open_free(struct np_worker *w);

/* The first requests are due; the warm-up is over. */
void np_open_start(struct np_worker *w);
void np_open_mark(struct np_worker *w);

/* Is a request that is due then the window's? Of an open loop. */
bool np_open_is_counted(const struct np_worker *w, uint64_t due_ns);

/* When the thread is to be awake for the next request; UINT64_MAX: an event comes first. */
uint64_t np_open_wake(struct np_worker *w);

/*
 * The connection from *turn on that sends a request that is due: it needs NP_SEND. NULL: none is
 * due, or none can.
 */
struct np_conn *np_open_begin(struct np_worker *w, uint32_t *turn);

/*
 * What was due then has been answered, by its connection's account. True: it counts. And `n` that
 * count never will be in time.
 */
bool np_open_answered(struct np_worker *w, struct np_conn *c, uint64_t due_ns, uint64_t now_ns);
void np_open_lost(struct np_worker *w, uint64_t n);

/*
 * The test is over, and its loop was left: is it to go on, by np_engine_epoll? Nothing is due any
 * more, but the last few that were are sent, and what was sent is waited for, while
 * np_open_waits(). What is missing at np_open_settle() was never answered.
 */
bool np_open_drains(struct np_worker *w);
bool np_open_waits(const struct np_worker *w);
void np_open_settle(struct np_worker *w);

/* What came of it. */
struct np_open_result {
	uint32_t rate; /* asked for; 0: the loop was closed */
	struct np_open_counts count;
	uint64_t answered;
	uint32_t depth;                  /* most requests in flight of a connection */
	struct np_hist *sent, *lateness; /* NULL: none was taken */
	struct np_outage outage;         /* the longest one */
	double fit;                      /* p of Poisson's arrivals (np_fit_p()); NAN: not known */
	uint64_t spin_ns;                /* of a worker, at the end */
	/* Of all threads together, in parts of the window; -1: not known. */
	double ran, waited;
	char limits[200]; /* why the generator limits; "": it does not (np_open_judge()) */
};

/*
 * Is it the generator that limits? It is if it sent less than 99.9 % of what was due, or if its
 * lateness changes what is printed: P50, P90 or P99 of `latency`, which counts from when requests
 * were due, is longer than from when they were sent by more than a tenth, and their confidence
 * intervals do not meet. Where requests are too few for these it is twice as long.
 */
void np_open_judge(struct np_open_result *r, const struct np_hist *latency);

#endif
