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
#include "run/witness.h"
#include "sys/meters.h"

/* Reasons; a mark is a bit. The numbers travel on the wire, as disturbed.marks (doc/evidence.md).
 */
enum np_reason {
	NP_R_STEAL,
	NP_R_PRESSURE,
	NP_R_SWITCHES,
	NP_R_FREQUENCY,
	NP_R_THROTTLING,
	NP_R_IRQ,
	NP_R_SQUEEZED,
	NP_R_FOREIGN,
	NP_R_CLOCK,
	NP_R_STOPPED,
	NP_R_PROCESSOR,
	NP_REASONS
};

/* "steal" and so on. */
const char *np_reason_name(enum np_reason r);

enum {
	NP_DISTURBED_MS = 100,   /* between two looks */
	NP_DISTURBED_MOST = 512, /* intervals; when there would be more, two become one */
	NP_DISTURBED_THREADS = NP_WITNESS_THREADS
};

/* An interval, by what this end alone can say. */
struct np_interval {
	uint64_t end_us;    /* since the window began */
	uint64_t work;      /* bytes or transactions */
	uint64_t cpus;      /* processors of the workers: a bit each, modulo 63 */
	uint32_t marks;     /* without those that take both ends: pressure, switches,
			     * processor */
	uint32_t waited_us; /* all workers were ready, and waited for a processor */
	uint32_t kept_us;   /* the one that waited most, for others than this process */
	uint32_t short_us;  /* of that, at most, until the kernel was done with what had woken it */
	uint32_t used_us;   /* of processors, by this process */
	uint32_t stalled_us; /* some thread of this machine waited for a processor */
	uint32_t others_us;  /* a worker's processor ran programs, less this process's part */
};

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
	uint64_t last_ns, last_end_ns; /* when the last look began, and ended */
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
	uint32_t every;          /* looks that make an interval */
	uint32_t count;
	struct np_interval interval[NP_DISTURBED_MOST];
};

/* Open what is looked at. The run's endpoint is there. root as in np_evidence_wants. */
void np_disturbed_begin(struct np_disturbed *d, const char *root, const char *device,
			const struct np_run *run);

/* A look: the first one when the window opens. The witness knows the threads. */
void
np_disturbed_look(struct np_disturbed *d, struct np_witness *w, uint64_t due_ns, uint64_t now_ns);

/* The window is over: put disturbed.*, and close everything. */
void np_disturbed_end(struct np_disturbed *d, struct np_bag *into);

#endif
