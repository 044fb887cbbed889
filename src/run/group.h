/*
 * A group: several sessions with a daemon, whose windows open at the same moment and which have one
 * result. It is how a test has many flows with a daemon that serves one flow in a session, as
 * netperf's does, and how it has a stream in each direction.
 */
#ifndef NP_RUN_GROUP_H
#define NP_RUN_GROUP_H

#include <stdint.h>

#include "base/err.h"
#include "bench/plan.h"
#include "bench/tally.h"
#include "run/client.h"

/* Each takes a thread here and a process of the daemon. */
enum { NP_SESSIONS_MAX = 1000 };

struct np_group {
	/* Of the first session, connected; the other sessions' clients are set up like it. Its
	 * watch says how often to call look(). Only it collects evidence. If it has a gate, each
	 * session arrives there. */
	struct np_client *client;
	const struct np_target *target; /* of the others' connections */
	const struct np_plan *plan;     /* of all; its flows and its length are divided */
	const struct np_terms *terms;   /* NULL: none */
	const struct np_addr *peer;     /* see np_client_run() */
	/* Called with the sum of all sessions' counts, by one thread at a time. May be NULL. */
	void (*look)(void *ctx, const struct np_plan *whole, const struct np_counts *sum,
		     uint64_t started_ns, uint64_t now_ns);
};

/* How many sessions the test needs with a daemon that granted this. 1: no group is needed. */
uint32_t np_group_sessions(const struct np_plan *p, const struct np_hello *granted);

/* The engine that drives this end's connections of a session. */
const struct np_engine *np_group_engine(const struct np_plan *p, const struct np_hello *granted);

/* Can the test have that many sessions? NP_EUSAGE names the option that prevents it. */
int np_group_check(const struct np_plan *p, const struct np_target *t,
		   const struct np_hello *granted, struct np_err *err);

/*
 * Run the sessions: all connect and agree with the daemon, then all make their data connections,
 * then all windows open; of --both the receiving half connects after the sending one, and opens its
 * window with its connections. If one fails, all end; if that was after the windows opened, *out
 * has what was measured. err is of the first one that failed, and names it. *out is the sum: counts
 * and flows of all, the machines' figures (processors, evidence) of the first. Always call
 * np_outcome_free().
 *
 * For more than one session, once np_group_check() has accepted them.
 */
int np_group_run(const struct np_group *g, struct np_outcome *out, struct np_err *err);

#endif
