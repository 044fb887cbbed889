/* The progress of a test, drawn by the thread that waits for the daemon or for the workers. */
#ifndef NP_RUN_LIVE_H
#define NP_RUN_LIVE_H

#include <stdint.h>

#include "bench/tally.h"

/* In the order in which they come. */
enum np_live_step {
	NP_LIVE_CONNECTING,   /* the control connection */
	NP_LIVE_WAITING,      /* -s */
	NP_LIVE_ASKING,       /* for the daemon's answer */
	NP_LIVE_ESTABLISHING, /* the data connections */
	NP_LIVE_WARMING_UP,
	NP_LIVE_MEASURING,
	NP_LIVE_COLLECTING /* the window is closed: the daemon's results */
};

struct np_live_view {
	enum np_live_step step;
	uint64_t since_ns;      /* when the step began, by np_now() */
	uint64_t length_ns;     /* how long it will take; 0: unknown */
	struct np_counts count; /* of the present run, or the last one: what arrived */
};

/* To be used by one thread only. Fill in the first three members, and zero the rest. */
struct np_live {
	uint64_t every_ns; /* between two drawings */
	void (*draw)(void *ctx, const struct np_live_view *view);
	void *ctx;
	uint64_t due_ns; /* the next drawing, by np_now(); 0: now */
	struct np_live_view view;
};

/* These have no effect if l is NULL. */

/* This step begins now, unless it has begun already, and will take length_ns (0: unknown). */
void np_live_step(struct np_live *l, enum np_live_step step, uint64_t length_ns);

/* The deadline, or the time at which the line is to be drawn next if that is earlier. */
uint64_t np_live_until(const struct np_live *l, uint64_t deadline);

/* Draw the line if that is due, with the counts of run; NULL: with those noted last. */
void np_live_look(struct np_live *l, const struct np_run *run);

/* Add the view of another session that runs at the same time: the step is that of the slowest. */
void np_live_add(struct np_live_view *all, const struct np_live_view *one);

#endif
