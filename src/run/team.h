/*
 * The threads of a run's workers. Each goes through the same phases; the window opens for all of
 * them at once, when the last one is ready. The calling thread, their controller (run/drive.c),
 * hears of it whenever one has changed its phase.
 */
#ifndef NP_RUN_TEAM_H
#define NP_RUN_TEAM_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bench/run.h"
#include "sys/cpu.h"

enum np_phase {
	NP_MEETING,   /* connections come about, of which the first worker takes care */
	NP_READY,     /* the window may open */
	NP_LOOPING,   /* it is open */
	NP_FINISHING, /* the loop is over: drain, shut down */
	NP_DONE
};

struct np_team;

/*
 * Start threads, one a worker, that wait to be told. `gated`: the window does not open by itself,
 * but by np_team_open(). NP_ESYS when not all of them can be started: then there is none.
 */
int np_team_hire(struct np_run *run, bool gated, struct np_team **out, struct np_err *err);

/* Let them begin with what their run is to do. */
void np_team_begin(struct np_team *team);

/* Open the window of a gated team in phase NP_READY. */
void np_team_open(struct np_team *team);

/* That of the worker that is furthest behind, and of one of them. */
enum np_phase np_team_phase(const struct np_team *team);
enum np_phase np_team_phase_of(const struct np_team *team, const struct np_worker *w);

/* Readable when a phase may have changed; to be emptied then. */
int np_team_fd(const struct np_team *team);
void np_team_hear(const struct np_team *team);

/* Get one worker's thread out of the system call that it may block in. */
void np_team_kick(const struct np_team *team, const struct np_worker *w);

/* The processors' times when the window was about to open: the caller's. NULL: not measured. */
struct np_cpu_times *np_team_cpu(struct np_team *team);

/* Wait for the ends of all threads, which come at once if they were never told to begin. */
void np_team_dismiss(struct np_team *team);

/*
 * The signal that a kick is. By default it is ignored: a session of the daemon's that was taken
 * over may send it, and by no means any other, to processes that are not its own.
 */
#define NP_KICK_SIGNAL SIGURG

#endif
