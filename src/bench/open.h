/*
 * The open loop (--rate): requests, or connections of a connection test, are sent on a fixed
 * schedule, regardless of replies (np_load_open). So the histogram has the time that each waited
 * while a server stalled: from when it was due (np_worker.hist), and separately from when it was
 * sent. Requests that were never answered are at the top of both.
 */
#ifndef NP_BENCH_OPEN_H
#define NP_BENCH_OPEN_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/load.h"
#include "stats/hist.h"

struct np_conn;
struct np_worker;

enum {
	NP_RATE_MAX = 10000000,        /* operations a second */
	NP_OPEN_LATE_NS = 10000,       /* a request sent later than this is late */
	NP_OPEN_SPIN_NS = 40000,       /* spin before it is due; more after late wake-ups */
	NP_OPEN_SPIN_MOST_NS = 500000, /* a virtual CPU may need this long to wake up */
	NP_OPEN_GRACE_MS = 1000,       /* least wait for answers at the end, unless -e is shorter */
	NP_OPEN_LAST = 64,             /* requests due at the end that are still sent */
	NP_OPEN_LAST_NS = 10000000,    /* and how long after the end */
	NP_OPEN_GAPS = 1024            /* gaps between sends kept per worker */
};

/* Requests of the window: those due in it, whenever they are sent and answered. */
struct np_open_counts {
	uint64_t due;   /* all of them; the others are some of these */
	uint64_t begun; /* sent, at least in part */
	uint64_t late;  /* by more than NP_OPEN_LATE_NS */
	uint64_t held;  /* due when no connection could have one more in flight */
};

/* A time in which all requests were lost, with answers after it. A stall causes none. */
struct np_outage {
	uint64_t ns, at_ns; /* 0: none; at_ns from the start of the window */
	uint32_t flow;      /* from 0 */
};

/* Owned by one worker. */
struct np_open {
	uint64_t opens_ns;       /* start of the window, after the warm-up */
	uint64_t closes_ns;      /* nothing is due later */
	bool full;               /* nothing may begin before an event, or at all */
	uint64_t looked_ns;      /* last check of what is due */
	uint64_t held_ns;        /* last time that what was due found no room */
	uint64_t spin_ns;        /* last part of a wait, without sleep */
	bool sleeps;             /* sleeps until that part */
	uint64_t until_ns;       /* end of the wait for answers; 0: still running */
	uint32_t sent_after_end; /* requests */
	struct np_open_counts count;
	struct np_hist *sent, *lateness; /* time from the send; delay of the send */
	struct np_outage outage;         /* the longest one */
	uint64_t last_ns;                /* time of the last send */
	uint32_t gaps, skip, skipped;    /* one gap in `skip` is kept */
	double gap[NP_OPEN_GAPS];        /* gaps between sends, relative to the mean asked for */
};

/* Set up the worker's part, if it has one. False: no memory. */
bool np_open_make(struct np_worker *w);

/* Begin a worker's schedule with its loop. */
void np_open_start(struct np_worker *w);

/* Forget gaps and outage, as at the end of a warm-up. Nothing in a closed loop. */
void np_open_mark(struct np_worker *w);

/* Is a request due at that time one of the window? (None is due after its end.) */
bool np_open_is_counted(const struct np_worker *w, uint64_t due_ns);

/* The request due then was answered. True: it was due in the window, and is counted now. */
bool np_open_answered(struct np_worker *w, struct np_conn *c, uint64_t due_ns, uint64_t now_ns);

/* n requests that were due in the window were never answered. */
void np_open_lost(struct np_worker *w, uint64_t n);

/* The loop is over: prepare another for late sends and answers. False: closed loop, or failed. */
bool np_open_drains(struct np_worker *w);

/* After both loops: count requests never sent, or never answered. Nothing in a closed loop. */
void np_open_settle(struct np_worker *w);

struct np_open_result {
	uint32_t rate; /* as asked for; 0: closed loop */
	struct np_open_counts count;
	uint64_t answered;
	uint32_t depth;                  /* most requests in flight of a connection */
	struct np_hist *sent, *lateness; /* NULL: not measured */
	struct np_outage outage;         /* the longest one */
	double fit;                      /* p of Poisson arrivals (np_fit_p()); NAN: not known */
	uint64_t spin_ns;                /* of a worker, at the end */
	/* Share of the window that threads ran, or waited for a CPU; -1: not known. */
	double ran, waited;
	char limits[200]; /* why the generator is the bottleneck; "": it is not (np_open_judge()) */
};

/*
 * Is the load generator the bottleneck? It is if it sent less than 99.9 % of what was due, or if
 * P50, P90 or P99 of `latency` (from when due) is longer than from when sent: by a tenth, with
 * intervals that do not meet, or by a factor of two with too few requests for intervals.
 */
void np_open_judge(struct np_open_result *r, const struct np_hist *latency);

#endif
