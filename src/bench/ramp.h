/*
 * Ramps (--ramp): the data connections begin one after the other, N a second (np_load_ramp), and
 * each carries data from then on. The active end starts them on schedule, without waiting; the
 * passive end accepts them as they come. The window opens before the first one.
 */
#ifndef NP_BENCH_RAMP_H
#define NP_BENCH_RAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/load.h"
#include "stats/hist.h"

struct np_conn;
struct np_worker;

enum { NP_RAMP_REASONS = 16 };

/* Failed connections, by reason; the last row counts all further reasons. */
struct np_ramp_failures {
	struct {
		int error; /* errno */
		uint32_t count;
	} by[NP_RAMP_REASONS];
	uint32_t reasons, count;
};

/* Owned by one worker of the active end. */
struct np_ramp {
	struct np_load load;  /* np_load_ramp */
	uint32_t begun;       /* connections started, in their order */
	struct np_hist *hist; /* time of connect(2) */
	struct np_ramp_failures failed;
};

/* Set up the worker's part of a ramp, if it has one. False: no memory. */
bool np_ramp_make(struct np_worker *w);

/* When the next connection is due; 0: ask np_ramp_begin() now; UINT64_MAX: all have begun. */
uint64_t np_ramp_due(const struct np_worker *w);

/* Begin the next connection. c->need: NP_CONNECTING, or NP_OVER if it failed. NULL: none is due. */
struct np_conn *np_ramp_begin(struct np_worker *w, uint64_t now_ns);

/* A connect(2) has finished: the connection needs the first step of the test, or NP_OVER. */
void np_ramp_connect_done(struct np_worker *w, struct np_conn *c);

/* A connection is established, at either end: it begins its part of the test, and is paced. */
void np_ramp_up(struct np_worker *w, struct np_conn *c);

/* Count failures with that errno. */
void np_ramp_failed(struct np_ramp_failures *f, int error, uint32_t count);

/* Add all failures of `from`. */
void np_ramp_join(struct np_ramp_failures *into, const struct np_ramp_failures *from);

/* "ECONNREFUSED 3, ETIMEDOUT 1": all reasons; cut to size. */
void np_ramp_reasons(const struct np_ramp_failures *f, char *out, size_t size);

/* errno as the manual pages write it, else "errno 123" in text. */
const char *np_ramp_reason(int error, char text[16]);

#endif
