/* A trial: a plan carried out once against a target, with its record and evidence. */
#ifndef NP_RUN_TRIAL_H
#define NP_RUN_TRIAL_H

#include "base/err.h"
#include "base/units.h"
#include "run/client.h"
#include "stats/record.h"

/* What to run. The caller owns everything, and may use it for any number of trials. */
struct np_trial {
	/* With its hooks, signals and wishes. A connection that is open (chan.fd) is used. */
	struct np_client *client;
	const struct np_target *target;
	struct np_plan *plan;         /* np_trial_connect() adapts it to the daemon */
	const struct np_terms *terms; /* of this end; NULL: none */
	const struct np_addr *peer;   /* the data address, see np_client_run() */
	const struct np_unit *unit;   /* of the record's throughput */
	/* Used instead of client->watch.look for several sessions: gets their sum. May be NULL. */
	void (*look)(void *ctx, const struct np_plan *whole, const struct np_counts *sum,
		     uint64_t started_ns, uint64_t now_ns);
};

struct np_trial_result {
	struct np_outcome out; /* the tally, the far end's figures, the evidence of both ends */
	/* The figures; of a trial that failed, if `out.measured`. Texts belong to out. */
	struct np_record record;
};

/* Connect to the daemon and adapt the plan to it. np_trial() calls it if needed. */
int np_trial_connect(const struct np_trial *t, struct np_err *err);

/* How many sessions it needs; the client is connected. NP_EUSAGE names the option against that. */
int np_trial_sessions(const struct np_trial *t, uint32_t *sessions, struct np_err *err);

/*
 * Run one. The connection stays open for the next trial, unless the test ends it. A failed trial
 * may have figures, too (out.measured). Always call np_outcome_free(&r->out).
 */
int np_trial(const struct np_trial *t, struct np_trial_result *r, struct np_err *err);

/*
 * From a test's outcome to named results: fill each row of the metric table that the outcome has,
 * in `unit`'s terms; the texts stay the outcome's. Latency, means and confidence: run/repeat.h.
 */
void np_report(const struct np_outcome *out, const struct np_unit *unit, struct np_record *r);

/*
 * A group: several sessions with a daemon for one trial, with windows that open together and one
 * result: for many flows with a daemon that serves one a session, as netperf's does, and for both
 * directions (run/group.c). Each session takes a thread here and a process of the daemon.
 */
enum { NP_SESSIONS_MAX = 1000 };

/* How many sessions the test needs with a daemon that granted this. 1: no group is needed. */
uint32_t np_group_sessions(const struct np_plan *p, const struct np_hello_message *granted);

/* The engine that drives this end's connections of a session. */
const struct np_engine *
np_group_engine(const struct np_plan *p, const struct np_hello_message *granted);

/*
 * Run the sessions of a trial, after np_trial_sessions(). All connect and agree, then all make
 * their data connections, then all windows open; of --both the receiving half connects after the
 * sending one, and opens its window with its connections. If one fails, all end; *out has what was
 * measured if windows were open; err names the first one that failed. t->client is connected, and
 * is the first session's; the others' are set up like it. Its watch says how often to call
 * t->look(), by one thread at a time. Only the first session collects evidence; each arrives at the
 * client's gate. The plan's flows and length are divided. *out sums counts and flows; the machines'
 * figures are the first's. Always call np_outcome_free().
 */
int np_group_run(const struct np_trial *t, struct np_outcome *out, struct np_err *err);

#endif
