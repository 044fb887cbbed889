/* A ring of a worker, for the engine `uring`. */
#ifndef NP_BENCH_ENGINE_URING_RING_H
#define NP_BENCH_ENGINE_URING_RING_H

#include <liburing.h>
#include <stdbool.h>

#include "base/lines.h"
#include "bench/engine/uring.h"

struct np_uring {
	_Alignas(NP_CACHE_LINE) struct io_uring ring;
	bool prepared; /* by np_urings_prepare(): used again */
	bool taken;    /* a worker has this prepared ring */
	bool is_lost;  /* it failed, perhaps with requests in it: it stays taken, unused */
};

/*
 * Take a prepared ring; a process that never called np_urings_prepare() makes one. NULL with err:
 * NP_EUNSUP, all are taken or none could be prepared; NP_ESYS, the kernel refuses one.
 */
struct np_uring *np_uring_take(struct np_err *err);

/* Give it back after a test; one that was made for it is freed. */
void np_uring_give(struct np_uring *u);

#endif
