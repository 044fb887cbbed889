/*
 * A group: several sessions with a daemon, whose windows open at the same moment and which have one
 * result. It is how a test has many flows with a daemon that serves one flow in a session, as
 * netperf's does, and how it has a stream in each direction.
 */
#ifndef NP_RUN_GROUP_H
#define NP_RUN_GROUP_H

#include <stdint.h>

#include "base/err.h"
#include "run/trial.h"

/* Each takes a thread here and a process of the daemon. */
enum { NP_SESSIONS_MAX = 1000 };

/* How many sessions the test needs with a daemon that granted this. 1: no group is needed. */
uint32_t np_group_sessions(const struct np_plan *p, const struct np_hello *granted);

/* The engine that drives this end's connections of a session. */
const struct np_engine *np_group_engine(const struct np_plan *p, const struct np_hello *granted);

/* Can the test have that many sessions? NP_EUSAGE names the option that prevents it. */
int np_group_check(const struct np_plan *p, const struct np_target *t,
		   const struct np_hello *granted, struct np_err *err);

/*
 * Run the sessions of a trial, more than one, once np_group_check() has accepted them. All connect
 * and agree with the daemon, then all make their data connections, then all windows open; of --both
 * the receiving half connects after the sending one, and opens its window with its connections. If
 * one fails, all end; if that was after the windows opened, *out has what was measured. err is of
 * the first one that failed, and names it.
 *
 * t->client is connected, and is that of the first session; the others' are set up like it. Its
 * watch says how often to call t->look(), by one thread at a time. Only the first session collects
 * evidence. If the client has a gate, each session arrives there. The plan's flows and its length
 * are divided. *out is the sum: counts and flows of all, the machines' figures (processors,
 * evidence) of the first. Always call np_outcome_free().
 */
int np_group_run(const struct np_trial *t, struct np_outcome *out, struct np_err *err);

#endif
