/*
 * Shared by client_open.c (connection, greeting), client_ask.c (requests), client.c (a test and its
 * results), client_agree.c (before it) and client_judge.c (how it ended).
 */
#ifndef NP_RUN_CLIENT_PARTS_H
#define NP_RUN_CLIENT_PARTS_H

#include "base/clock.h"
#include "run/client.h"

/* Deadlines, in milliseconds. */
enum {
	NP_ANSWER_MS = 10000, /* to connect, to send a message, for most answers and their rest */
	/* For the response to a test's request: a daemon may first run other tests, and is silent
	 * meanwhile, as netperf's clients expect. Keep-alive notices a dead one. */
	NP_RESPONSE_MS = 120000,
	NP_SPARED_MS = 500 /* for a message that is not needed */
};

/* A test under way: the run of this end, and what comes out of it. */
struct np_client_test {
	const struct np_dialect *dialect;
	struct np_run run;
	struct np_outcome *out;
};

/* Receive a message, called `what` in errors. NP_ETIME with EINTR: a signal ended the wait. */
int np_client_receive(struct np_client *c, const char *what, uint64_t deadline, struct np_err *err);

/* Send a request and receive its answer of that code. NP_ECONTROL: it is an error, remote_error. */
int np_client_request(struct np_client *c, const uint8_t *message, uint32_t code, const char *what,
		      uint64_t answer_ms, struct np_err *err);

/* The code of the received message, netperf's or ours, and its error or 0. */
struct np_head np_client_answer_head(const struct np_client *c);

/* Fail with the error that the daemon has sent: "the netserver at ... <verb>: <its text>". */
int np_client_remote_error(struct np_client *c, const char *verb, struct np_err *err);

/* Fail unless the message is the results, or an error, of a test; request: its request's code. */
int np_client_check_results(const struct np_client *c, uint32_t request, struct np_err *err);

/* Fetch the daemon's evidence of the last test or of its host. */
int np_client_fetch(struct np_client *c, enum np_ext_about about, uint64_t answer_ms,
		    struct np_bag **out, struct np_err *err);

/* Let run's socket accept only these sources (none: all) and that port (0: any). NP_ESYS. */
int np_client_accept_sources(struct np_run *run, const struct np_sources *s, uint32_t port,
			     struct np_err *err);

/* Agree with the daemon, if there is one, on what is to be done; complete run.end.peer. */
int np_client_agree(struct np_client *c, struct np_client_test *t, struct np_err *err);

/* Put figures and cause into t->out, tell of --spread, and fail with the test's first reason. */
int np_client_judge_drive(struct np_client *c, const struct np_drive *d, struct np_client_test *t,
			  struct np_err *err);

/* Judge both ends' results: fail if they are none, and tell the user of flaws. */
int np_client_judge_results(struct np_client *c, const struct np_drive *d,
			    const struct np_client_test *t, struct np_err *err);

#endif
