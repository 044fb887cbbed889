/*
 * A worker: a thread that drives data connections, with all that it needs for that. What it owns
 * nobody else writes to while the window is open; its counters may be read by anybody.
 */
#ifndef NP_BENCH_WORKER_H
#define NP_BENCH_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/ring.h"
#include "bench/ids.h"
#include "bench/pace.h"
#include "stats/counters.h"
#include "stats/hist.h"
#include "sys/thread.h"

struct np_run;

/*
 * The body of a hot loop, written once for several kinds: every function that calls it with other
 * constants gets a copy in which they are settled.
 */
#define NP_LOOP_BODY static inline __attribute__((always_inline))

/* One data connection. */
struct np_conn {
	int fd; /* -1: none */
};

struct np_worker {
	int (*loop)(struct np_run *run); /* what setup chose */
	struct np_counters *count;
	struct np_hist *hist;

	size_t send_size, recv_size; /* bytes of one call: unit, request or response */
	struct np_ring send_ring, recv_ring;
	uint64_t budget;       /* bytes or transactions; UINT64_MAX in timed tests */
	void *state;           /* the side's own */
	struct np_ids *ids;    /* a requester's, where responses are told apart by them; NULL */
	struct np_id_place id; /* a responder's: what it copies into the response */
	int file_fd;           /* of a file that is sent; the side's own; -1: none */
	off_t file_length;     /* bytes of it */

	/* A wait in the loop is interrupted when nothing has moved for so long; 0: never. */
	uint64_t patience_ns;

	struct np_pace pace;
	unsigned char ink; /* what the last touch wrote, see extra.h */

	uint64_t last_ns;             /* when a connection test's last transaction ended, or 0 */
	uint64_t paced_ns;            /* of the window, spent waiting for a pacing interval's end */
	struct np_thread_use *thread; /* where the worker accounts for itself; NULL: nobody asks */
};

#endif
