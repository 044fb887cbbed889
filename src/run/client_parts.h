/*
 * Shared by the files of the client only: client_open.c (control connection and greeting),
 * client_ask.c (a request and its answer), client_far.c (questions beside a test), client_agree.c
 * (before the test), client_judge.c (how it ended), client_results.c (results and evidence), and
 * client.c, which runs a test.
 */
#ifndef NP_RUN_CLIENT_PARTS_H
#define NP_RUN_CLIENT_PARTS_H

#include "base/clock.h"
#include "run/client.h"

/* Deadlines, in milliseconds. */
enum {
	NP_ANSWER_MS = 10000, /* for a message to be taken */
	/* For the response to a test's request: a daemon may have other tests before this one and
	 * says nothing meanwhile, as netperf's clients expect. Keep-alive notices a dead one. */
	NP_RESPONSE_MS = 120000,
	NP_MEET_MS = 10000, /* for the data connection */
	NP_SPARED_MS = 500  /* for results that the report can do without */
};

static inline uint64_t
np_client_within(int ms)
{
	return np_deadline((uint64_t)ms * NP_MSEC);
}

/* A test under way: the run of this end, and what comes out of it. */
struct np_client_test {
	struct np_run run;
	struct np_outcome *out;
};

/* ---- A request and its answer (client_ask.c) ---- */

/* Receive a message. NP_ETIME when a signal ended the wait. */
int np_client_receive(struct np_client *c, const char *what, uint64_t deadline, struct np_err *err);

/* Send a request and wait for its answer, which has that code or an error. */
int np_client_request(struct np_client *c, const uint8_t *message, uint32_t code, const char *what,
		      int answer_ms, struct np_err *err);

/* The code of the message that has come, and 0 or its error: netperf's or ours. */
struct np_head np_client_answer_head(const struct np_client *c);

/* The error that has come, in the daemon's words if it sent any. */
int np_client_remote_error(struct np_client *c, const char *verb, struct np_err *err);

/* Is the message that has come the results of the test that was asked for by that code? */
int np_client_check_results(const struct np_client *c, uint32_t asked, struct np_err *err);

/* ---- Questions beside a test (client_far.c) ---- */

/* Fetch the daemon's evidence of the last test or of its host. */
int np_client_fetch(struct np_client *c, enum np_ext_about about, struct np_bag **out,
		    struct np_err *err);

/* ---- Before the measured part (client_agree.c) ---- */

/* Agree with the daemon, if there is one, on what is to be done. peer: as np_client_run(). */
int np_client_agree(struct np_client *c, const struct np_plan *p, const struct np_addr *peer,
		    struct np_client_test *t, struct np_err *err);

/* ---- After it: how it ended (client_judge.c) ---- */

/* Judge how the run ended: an error of a flow, of the control connection, or none. */
int np_client_judge_drive(struct np_client *c, const struct np_drive *d, struct np_client_test *t,
			  struct np_err *err);

/* Judge both ends' results: no test, or one with flaws that the user is told. */
int np_client_judge_results(struct np_client *c, const struct np_drive *d,
			    const struct np_client_test *t, struct np_err *err);

/* ---- And what the daemon says of it (client_results.c) ---- */

/*
 * The data connection broke: if the daemon gave up, its reason is here or comes at once, and
 * explains more than a reset does. Otherwise it owes its results.
 */
void np_client_ask_why(struct np_client *c, const struct np_dialect *dialect,
		       const struct np_drive *d, struct np_err *err);

/* Receive the daemon's results, or do without if the report can. */
int np_client_collect(struct np_client *c, const struct np_dialect *dialect,
		      struct np_client_test *t, struct np_err *err);

/*
 * If this end has evidence, fetch the daemon's, and work out what takes both. The result does not
 * depend on it: out->far_lacks says why there is none. rc: of the test; none is fetched after
 * NP_ETIME, nor where a signal has ended the control connection.
 */
void np_client_ask_far(struct np_client *c, struct np_client_test *t, int rc);

#endif
