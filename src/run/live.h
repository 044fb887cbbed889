/*
 * How far a test is, for another thread that looks while it runs. Each control connection has a
 * seat, where its client and its controller write what they do. Counters are read as they stand:
 * no worker does anything for that.
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

/* The state of all sessions together. */
struct np_live_view {
	enum np_live_step step; /* of the session that is furthest behind */
	uint64_t since_ns;      /* when the first one began with it */
	uint64_t length_ns;     /* of the measured part; 0: no clock ends it */
	struct np_counts count; /* of the runs that are under way, or were the last ones */
};

/* NULL without memory. */
struct np_live *np_live_new(void);

/* All seats have been left before. NULL has no effect. */
void np_live_free(struct np_live *l);

/* The state of all sessions together. Any thread may ask. */
void np_live_look(struct np_live *l, struct np_live_view *view);

/* ---- For a session. With a seat that is NULL these have no effect. ---- */

/* A seat for one more session. NULL without memory, or where l is NULL. */
struct np_seat *np_live_join(struct np_live *l);
void np_live_leave(struct np_seat *s);

/* What the seat belongs to; NULL for a seat that is NULL. */
struct np_live *np_live_of(const struct np_seat *s);

/* What the session does from now on. One thread at a time may call this for a seat. */
void np_live_step(struct np_seat *s, enum np_live_step step);

/* The counters of this run may be read until np_live_end(), which keeps their last values. */
void np_live_begin(struct np_seat *s, const struct np_run *run, uint64_t length_ns);
void np_live_end(struct np_seat *s);

#endif
