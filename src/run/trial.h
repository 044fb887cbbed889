/*
 * A trial: a plan carried out once against a target. It gives a record with its evidence, and is
 * what main(), repetitions and all that compares tests are made of.
 */
#ifndef NP_RUN_TRIAL_H
#define NP_RUN_TRIAL_H

#include "base/err.h"
#include "base/units.h"
#include "run/client.h"
#include "stats/record.h"

/* What is tried. Everything is the caller's, and serves for any number of trials. */
struct np_trial {
	/* With its hooks, signals and wishes. A connection that is open (chan.fd) is used. */
	struct np_client *client;
	const struct np_target *target;
	struct np_plan *plan;         /* what the daemon grants at its greeting is noted there */
	const struct np_terms *terms; /* of this end; NULL: none */
	const struct np_addr *peer;   /* the data address, see np_client_run() */
	const struct np_unit *unit;   /* of the record's throughput */
	/* What client->watch is to a trial of one session, to one of several; see run/group.h. */
	void (*look)(void *ctx, const struct np_plan *whole, const struct np_counts *sum,
		     uint64_t started_ns, uint64_t now_ns);
};

struct np_trial_result {
	struct np_outcome out; /* the tally, the far end's figures, the evidence of both ends */
	/* The figures by name, of a trial that succeeded or of what one that failed had measured.
	 * Their texts are out's. */
	struct np_record record;
};

/* Connect to the daemon and adapt the plan to it; a trial that is not connected does so itself. */
int np_trial_connect(const struct np_trial *t, struct np_err *err);

/*
 * How many sessions it takes at the same time, of a client that is connected. NP_EUSAGE when it
 * can't have that many: nothing was started.
 */
int np_trial_sessions(const struct np_trial *t, uint32_t *sessions, struct np_err *err);

/*
 * Run one. The connection stays for the next trial, unless the test ends it. A failed one may have
 * figures, too (out.measured), of what was done until then. r is to be released by
 * np_trial_result_free() whatever the return.
 */
int np_trial(const struct np_trial *t, struct np_trial_result *r, struct np_err *err);

/* Safe on a zeroed struct, and twice. */
void np_trial_result_free(struct np_trial_result *r);

#endif
