/*
 * The progress of a test, for a line that shows it. The thread that waits for the daemon or for the
 * workers draws it, and reads the counters without the workers' help.
 */
#ifndef NP_RUN_LIVE_H
#define NP_RUN_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/tally.h"

/* In the order in which they come. */
enum np_live_step {
	NP_LIVE_CONNECTING, /* the control connection */
	NP_LIVE_WAITING,    /* before the traffic, as the user wished */
	NP_LIVE_ASKING,     /* the daemon is to answer */
	NP_LIVE_MEETING,    /* the data connections */
	NP_LIVE_WARMING_UP,
	NP_LIVE_MEASURING,
	NP_LIVE_COLLECTING /* the window is closed: what the daemon reports */
};

struct np_live_view {
	enum np_live_step step;
	uint64_t since_ns;      /* when that began */
	uint64_t length_ns;     /* how long it will take; 0: not known */
	struct np_counts count; /* of the run under way, or the last one: what arrived */
};

/* For one thread alone. A zeroed one with the first three filled in is ready. */
struct np_live {
	uint64_t every_ns;
	void (*draw)(void *ctx, const struct np_live_view *view);
	void *ctx;
	uint64_t due_ns;
	struct np_live_view view;
};

/* These have no effect if l is NULL. */

/* This step begins now, and will take length_ns (0: not known). */
void np_live_step(struct np_live *l, enum np_live_step step, uint64_t length_ns);

/* The deadline, or the time at which the line is to be drawn next if that is earlier. */
uint64_t np_live_until(const struct np_live *l, uint64_t deadline);

/* Draw it, if that is due. run: its counters may be read; NULL: there is none yet. */
void np_live_look(struct np_live *l, const struct np_run *run);

/* Add the view of another session that runs at the same time: the step is that of the slowest. */
void np_live_add(struct np_live_view *all, const struct np_live_view *one);

#endif
