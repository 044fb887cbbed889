/*
 * Who disturbed a test: ten times a second a controller looks at the machine, its own threads and
 * the interface. Each interval between two looks gets marks for what others did to it. What both
 * ends saw together is run/clean.h's.
 */
#ifndef NP_RUN_DISTURBED_H
#define NP_RUN_DISTURBED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"
#include "bench/run.h"
#include "run/intervals.h"
#include "run/witness.h"
#include "sys/meters.h"

enum { NP_DISTURBED_THREADS = NP_WITNESS_THREADS };

/* What is the test's own of what an interface counts. */
struct np_own {
	bool knows_out, knows_in;
	uint64_t out, in;                 /* bytes without headers */
	uint64_t out_packets, in_packets; /* at most */
	uint64_t waiting;                 /* bytes received that nobody counted yet, at most */
};

/* What a thread had of a processor, and how often it got one. */
struct np_disturbed_use {
	uint64_t ran, waited; /* ns */
	uint64_t turns;
};

struct np_disturbed_thread {
	int fd; /* its schedstat; -1 */
	int cpu;
	struct np_disturbed_use use;
};

struct np_disturbed {
	const char *root;
	const struct np_run *run;
	bool begun; /* the first look was taken */
	struct np_meters meters;
	struct np_meters_seen seen[2]; /* the last two looks, taking turns */
	uint64_t looks;
	uint64_t last_ns; /* when the last look began */
	struct np_disturbed_thread thread[NP_DISTURBED_THREADS];
	int self_fd, self_why; /* the controller's schedstat */
	struct np_disturbed_use self;
	uint64_t process_ns, user_ns; /* of processors, by this process; of that in user mode */
	uint64_t cpus, work;
	struct np_own own;
	double squeezed; /* sum so far */
	uint64_t top_khz[NP_METERS_CLOSE], throttled[NP_METERS_CLOSE];
	uint64_t ahead;          /* bytes sent that the interface has not counted yet, at most */
	bool peer_here;          /* the far end's address is this machine's */
	const char *foreign_why; /* it can't be told; NULL: it can */
	struct np_intervals intervals;
};

/* Open what is looked at. The run's endpoint is there. root as in np_evidence_wants. */
void np_disturbed_begin(struct np_disturbed *d, const char *root, const char *device,
			const struct np_run *run);

/* A look: the first one when the window opens. The witness knows the threads. */
void np_disturbed_look(struct np_disturbed *d, struct np_witness *w, uint64_t now_ns);

/* The window is over: put disturbed.*, and close everything. */
void np_disturbed_end(struct np_disturbed *d, struct np_witness *w, struct np_bag *into);

#endif
