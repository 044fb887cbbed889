/* Runs workers (run/team.h). Its thread, the controller, watches time, connection and signals. */
#ifndef NP_RUN_DRIVE_H
#define NP_RUN_DRIVE_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bench/run.h"
#include "wire/chan.h"

/* How signals reach a controller: handlers in main() count them, and only ppoll() unblocks them. */
struct np_signals {
	const sigset_t *let_in;      /* mask while waiting; NULL: no change */
	const _Atomic int *received; /* signals so far; NULL: they are not counted */
};

/* The number of signals so far; each asks for an earlier end than the one before. */
static inline int
np_signalled(const struct np_signals *s)
{
	return s->received != NULL ? atomic_load(s->received) : 0;
}

enum { NP_STALL_S = 12 }; /* a test without a time limit fails if nothing moves for this long */

/* What ended the measured part. */
enum np_cause {
	NP_BY_LOOP,    /* the loop itself: its count is reached, the far end closed, or it failed */
	NP_BY_CLOCK,   /* the time is up */
	NP_BY_SIGNAL,  /* the user */
	NP_BY_CONTROL, /* the daemon sent results or an error, or the control connection ended */
	NP_BY_LIMIT,   /* the test went on for longer than limit_ns */
	NP_BY_SILENCE  /* no data connection was made in time, or nothing moved on it any more */
};

/* Called by the controller at intervals from the start of the window, at no cost to the loop. */
struct np_watch {
	uint64_t every_ns; /* 0: never */
	void (*look)(void *ctx, const struct np_run *run, uint64_t due_ns, uint64_t now_ns);
	void *ctx;
	bool warms_up; /* also during the warm-up */
	bool jitters;  /* by up to a quarter, so as not to synchronise with periodic events */
	bool at_once;  /* first when the window opens; else every_ns after that */
};

enum { NP_WATCHES = 4 }; /* those of run/evidence.h, and one more */

/* Tells the controllers of run/group.c and run/beside.c that a test is to end (np_signals). */
enum { NP_PASS_SIGNAL = SIGUSR2 };

struct np_gate;
struct np_live;
struct np_team;

/* Round trips that a connection may need on a path that loses packets: each segment may be sent
 * three times, and its first time-out is three round trips. */
enum { NP_ESTABLISH_TRIPS = 12 };

struct np_drive {
	struct np_run *run;
	struct np_chan *control; /* NULL: none */
	uint64_t length_ns;      /* of the measured part; 0: no limit */
	uint64_t limit_ns;       /* if length_ns is 0: the longest that it may last; 0: no limit */
	uint64_t establish_ns;   /* time-out for connect or accept */
	struct np_signals signals;
	struct np_gate *gate; /* opens the window; NULL: it opens when the workers are ready */
	bool opens_first;     /* before the gate: the far end sends as soon as it is connected */
	struct np_live *live; /* shows the progress; NULL: nothing does */
	struct np_watch watch[NP_WATCHES];
	struct np_team *team; /* started before (run/team.h); NULL: np_drive() starts one */

	/* Out; 0 before: */
	enum np_cause cause;
	uint64_t late_ns; /* how late the window was closed, by the controller or the loops */
	int lost;         /* errno if the control connection is lost; else 0 */
};

/* Once, by main(): handle NP_KICK_SIGNAL, NP_PASS_SIGNAL; ignore SIGPIPE (sendfile() raises it). */
void np_drive_prepare(void);

/* Run the workers to their end. run->err has the test's failure; NP_ESYS: no worker could start. */
int np_drive(struct np_drive *d, struct np_err *err);

/* A test without a time limit fails after this silence: NP_STALL_S, more with -e or load pauses. */
uint64_t np_drive_stall_ns(const struct np_run *run);

#endif
