/*
 * A group: several sessions with a daemon. Their windows open at the same moment, and they have one
 * result. So a test has many flows with a daemon that serves one in each session, as netperf's
 * does, and a stream each way.
 */
#ifndef NP_RUN_GROUP_H
#define NP_RUN_GROUP_H

#include <stdint.h>

#include "base/err.h"
#include "bench/plan.h"
#include "bench/tally.h"
#include "run/client.h"

/* Each takes a thread here and a process there. */
enum { NP_SESSIONS_MAX = 1000 };

struct np_group {
	/* Of the first session, connected; the others take their wishes from it. Its watch has the
	 * times of look, below. It alone collects evidence. A gate of its own counts all of them.
	 */
	struct np_client *client;
	const struct np_target *target; /* of the others' connections */
	const struct np_plan *plan;     /* of the whole; its flows and its length are shared out */
	const struct np_terms *terms;   /* NULL: none */
	const struct np_addr *peer;     /* see np_client_run() */
	/* Called with the sum of all sessions' counts, from any thread, one at a time. NULL:
	 * nothing. */
	void (*look)(void *ctx, const struct np_plan *whole, const struct np_counts *sum,
		     uint64_t started_ns, uint64_t now_ns);
};

/*
 * How many sessions such a test needs with a daemon that granted this. 1: the client runs it
 * itself, or refuses it.
 */
uint32_t np_group_sessions(const struct np_plan *p, const struct np_hello *granted);

/* What drives the connections of each session here. */
const struct np_engine *np_group_engine(const struct np_plan *p, const struct np_hello *granted);

/* Can it have that many sessions? NP_EUSAGE names the option that prevents it. */
int np_group_check(const struct np_plan *p, const struct np_target *t,
		   const struct np_hello *granted, struct np_err *err);

/*
 * Run them: all connect and agree with the daemon, then all connect for the data, then all windows
 * open. One that fails before that stops the others; one that fails later ends them, and *out has
 * what was measured. err is the first one's to fail, and says which one that was. *out is the sum:
 * counts and flows of all, the machines' figures (processors, evidence) of the first. To be
 * released by np_outcome_free() whatever the return.
 *
 * All of that comes from np_group_sessions(), and np_group_check() has accepted it.
 */
int np_group_run(const struct np_group *g, struct np_outcome *out, struct np_err *err);

#endif
