/*
 * One ring, for the engine `uring`: taken for a worker, and given back.
 */
#ifndef NP_BENCH_ENGINE_URING_RING_H
#define NP_BENCH_ENGINE_URING_RING_H

#include <liburing.h>
#include <stdbool.h>

#include "base/lines.h"
#include "bench/engine/uring.h"

struct np_uring {
	_Alignas(NP_LINE) struct io_uring ring;
	bool prepared;   /* it goes back to those that the process was given */
	bool taken;      /* of those: a worker has it */
	bool is_lost;    /* it failed, with requests in it: it is not used any more */
	bool is_enabled; /* what was made disabled is enabled by who uses it */
};

/* NULL with err: there is none. */
struct np_uring *np_uring_take(struct np_err *err);
void np_uring_give(struct np_uring *u);

/* The first thread that uses it. Returns 0 or -errno. */
int np_uring_enable(struct np_uring *u);

#endif
