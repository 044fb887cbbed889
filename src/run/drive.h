/*
 * Runs a test's workers (run/team.h). The calling thread is their controller: it keeps the time,
 * watches the control connection and takes signals.
 */
#ifndef NP_RUN_DRIVE_H
#define NP_RUN_DRIVE_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bench/run.h"

/* How signals reach a controller: handlers in main() count, ppoll() lets them in. */
struct np_signals {
	const sigset_t *let_in;      /* mask while waiting; NULL: as it is */
	const _Atomic int *received; /* signals so far; NULL: none are taken */
};

/* Has a signal asked for the end? */
static inline int
np_signalled(const struct np_signals *s)
{
	return s->received != NULL ? atomic_load(s->received) : 0;
}

enum { NP_STALL_S = 12 }; /* how long nothing may move in a test that no clock ends */

/* What ended the measured part. */
enum np_cause {
	NP_BY_LOOP,    /* the loop itself: its count is reached, the far end closed, or it failed */
	NP_BY_CLOCK,   /* the time is up */
	NP_BY_SIGNAL,  /* the user */
	NP_BY_CONTROL, /* the far end spoke or closed on the control connection */
	NP_BY_LIMIT,   /* the test went on for longer than limit_ns */
	NP_BY_SILENCE  /* no data connection came about in time, or nothing moved on it any more */
};

/*
 * A function that looks at a running flow's counters, at times counted from the start. The
 * controller calls it, so it costs the loop nothing.
 */
struct np_watch {
	uint64_t every_ns; /* 0: never */
	void (*look)(void *ctx, const struct np_run *run, uint64_t due_ns, uint64_t now_ns);
	void *ctx;
	bool warms_up; /* it looks during the warm-up, too */
	bool jitters;  /* up to a quarter sooner or later, so that looks do not keep in step with
			  periodic events */
	bool at_once;  /* it looks when the window opens, too */
};

enum { NP_WATCHES = 4 }; /* those of run/evidence.h, and one more */

/* Passes on to the controllers of a group (run/group.h) a signal that the program has received. */
enum { NP_PASS_SIGNAL = SIGUSR2 };

struct np_gate;
struct np_live;
struct np_team;

/* Round trips within which a connection is made on a path that loses packets: each segment may be
 * sent three times, and the time-out of the first is three of them. */
enum { NP_MEET_TRIPS = 12 };

struct np_drive {
	struct np_run *run;
	int control_fd;     /* -1: none */
	uint64_t length_ns; /* of the measured part; 0: no limit */
	uint64_t limit_ns;  /* of one that nothing else ends in time; 0: none */
	uint64_t meet_ns;   /* for connect or accept */
	struct np_signals signals;
	struct np_gate *gate; /* that the window waits behind; NULL: none */
	struct np_live *live; /* where the controller tells its progress; NULL: nowhere */
	struct np_watch watch[NP_WATCHES];
	struct np_team *team; /* of np_drive_hold(); NULL: np_drive() has one start */

	enum np_cause cause; /* out */
	uint64_t late_ns;    /* out: how late the controller closed the window */
	int lost;            /* out: the control connection is gone, errno or ECONNRESET; else 0 */
};

/*
 * Install empty handlers for NP_KICK_SIGNAL and NP_PASS_SIGNAL, and ignore SIGPIPE, which
 * sendfile(2) can't be told not to raise. To be called once by main(), which handles all other
 * signals.
 */
void np_drive_prepare(void);

/*
 * Run the workers' loops to their end. run->err tells how the test fared; the return value is
 * NP_OK, or NP_ESYS when no worker could be started.
 */
int np_drive(struct np_drive *d, struct np_err *err);

/*
 * Start the workers, which wait for np_drive(): before a test is promised to a client, its workers
 * have to exist. NP_ESYS when they can't be started.
 */
int np_drive_hold(struct np_drive *d, struct np_err *err);

/* End workers that wait for an np_drive() which will not come. */
void np_drive_release(struct np_drive *d);

#endif
