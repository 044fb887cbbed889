/* A run's worker threads: same phases for all, and the window opens when the last one is ready. */
#ifndef NP_RUN_TEAM_H
#define NP_RUN_TEAM_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bench/run.h"
#include "sys/cpu.h"

enum np_phase {
	NP_ESTABLISHING, /* the first worker makes the connections */
	NP_READY,        /* the window may open */
	NP_LOOPING,      /* it is open */
	NP_FINISHING,    /* the loop is over: drain, shut down */
	NP_DONE
};

struct np_team {
	struct np_run *run;
	struct np_member *member;
	uint32_t count;
	bool gated; /* the window waits for np_team_go_on() */
	/* The threads may run, not only end; all connections are made. Set before they are told. */
	bool wanted, established;
	_Atomic uint32_t ready;   /* how many have reached NP_READY */
	struct np_cpu_times *cpu; /* when the window was about to open; NULL: not measured */
	int news_fd;              /* eventfd(2): a phase has changed */
};

/* Start threads that wait for np_team_go_on(), if `gated` also in NP_READY. NP_ESYS: all ended. */
int np_team_hire(struct np_run *run, bool gated, struct np_team **out, struct np_err *err);

/* Let the threads go on: at first to connect, then, if gated, to the window. */
void np_team_go_on(struct np_team *team);

/* The phase of the worker that is furthest behind, and of a given one. */
enum np_phase np_team_phase(const struct np_team *team);
enum np_phase np_team_phase_of(const struct np_team *team, const struct np_worker *w);

/* Interrupt a system call that this worker may block in. */
void np_team_kick(const struct np_team *team, const struct np_worker *w);

/* Wait until all threads have ended. Those that were never told to go on end at once. */
void np_team_dismiss(struct np_team *team);

/* For np_team_kick(). A compromised session could send it to others: by default it is ignored. */
#define NP_KICK_SIGNAL SIGURG

#endif
