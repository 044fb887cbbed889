/*
 * Where a test stands while it goes on, for a thread that looks now and then. Each control
 * connection has a seat, and its client and its controller say there what they do. Counters are
 * read as they stand: no worker does anything for that.
 */
#ifndef NP_RUN_LIVE_H
#define NP_RUN_LIVE_H

#include <stdint.h>

#include "bench/tally.h"

/* In the order in which they come. */
enum np_live_step {
	NP_LIVE_CONNECTING, /* the control connection */
	NP_LIVE_ASKING,     /* the daemon is to answer */
	NP_LIVE_MEETING,    /* the data connections */
	NP_LIVE_WARMING_UP,
	NP_LIVE_MEASURING,
	NP_LIVE_COLLECTING, /* the window is closed */
	NP_LIVE_STEPS
};

struct np_live;
struct np_seat;

/* What all sessions come to. */
struct np_live_view {
	enum np_live_step step; /* of the session that is furthest behind */
	uint64_t since_ns;      /* when the first one began with it */
	uint64_t length_ns;     /* of the measured part; 0: no clock ends it */
	struct np_counts count; /* of the runs that are under way, or were the last ones */
};

/* NULL without memory. */
struct np_live *np_live_new(void);

/* Everybody has left. NULL is let pass. */
void np_live_free(struct np_live *l);

/* What they all come to now. Any thread may ask. */
void np_live_look(struct np_live *l, struct np_live_view *view);

/* ---- Of a session. A seat that is NULL is nobody's: nothing is said. ---- */

/* A seat for one more. NULL without memory, or where l is. */
struct np_seat *np_live_join(struct np_live *l);
void np_live_leave(struct np_seat *s);

/* Where the others are; NULL of nobody's seat. */
struct np_live *np_live_of(const struct np_seat *s);

/* What is done from now on. Said by one thread at a time. */
void np_live_step(struct np_seat *s, enum np_live_step step);

/* The counters of this run may be looked at until np_live_end(), which keeps what they said. */
void np_live_begin(struct np_seat *s, const struct np_run *run, uint64_t length_ns);
void np_live_end(struct np_seat *s);

#endif
