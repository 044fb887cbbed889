/* The client's half of the conversation: opens a control connection and runs a test over it. */
#ifndef NP_RUN_CLIENT_H
#define NP_RUN_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"
#include "base/err.h"
#include "bench/tally.h"
#include "net/addr.h"
#include "run/clean.h"
#include "run/drive.h"
#include "run/evidence.h"
#include "run/live.h"
#include "run/stations.h"
#include "run/talk.h"
#include "wire/auth.h"
#include "wire/chan.h"
#include "wire/ext.h"

/* Where the daemon is, as the user said it. */
struct np_target {
	const char *host, *port;             /* name or address; number or service */
	int family;                          /* AF_UNSPEC: any */
	const char *local_host, *local_port; /* NULL: any */
	const char *local_device;            /* that it is bound to; NULL or empty: none */
	int local_family;
	const char *passphrase;        /* NULL: none is sent */
	const struct np_auth_key *key; /* NULL: none is proved */
	bool nat; /* the path translates addresses: the proof of the key does not cover them */
	uint32_t silence_s;    /* for how long its kernel may not be heard of */
	struct np_hello wants; /* of a daemon that has our extension; caps 0: nothing */
};

/* What a client tells its caller while it works. */
struct np_client_hooks {
	void *ctx;
	/* The test is agreed on: the flow knows where the data goes to. NULL. */
	void (*agreed)(void *ctx, const struct np_run *run);
	/* A line for the user: once that the daemon has not answered for patience_ns, and the wait
	 * goes on; that it grants less than was asked for. NULL. */
	void (*tell)(void *ctx, const char *text);
	uint64_t patience_ns;
};

/* One control connection. */
struct np_client {
	struct np_chan chan;
	char peer[300];      /* "localhost port 12865", for messages */
	struct np_addr used; /* the daemon's address that answered */
	struct np_signals signals;
	struct np_watch watch;
	struct np_evidence_wants collect; /* what is collected here; caps 0: nothing */
	struct np_gate *gate;             /* that the window waits behind; NULL: none */
	struct np_live *live;             /* where it tells its progress; NULL: nowhere */
	struct np_hello granted; /* what the daemon does of what was wanted; caps 0: nothing */
	char lacks[512]; /* why the daemon tells nothing beyond the results; empty: it does */
	uint32_t owed;   /* code of the results that were not waited for any more; 0: none */
	bool heard;      /* the daemon has answered once */
	bool want_far;   /* the daemon's own figures matter, however late they come */
	struct np_client_hooks hooks;
	bool told; /* of the wait, by hooks.tell() */

	/* Why there is no connection or no result, where netperf has its own words for it. 0:
	 * another reason. */
	int unresolved;   /* the host's name: getaddrinfo(3)'s error */
	int unreachable;  /* no answer: the family of the first address that was tried */
	int remote_error; /* what the daemon's answer held */
};

/*
 * Establish the control connection within 10 s. If t->wants has any caps, the daemon is greeted;
 * one that does not know the greeting gets a new connection, and c->lacks says what it lacks.
 * NP_ECONTROL with the words "establish the control connection" when that fails, or a name can't be
 * resolved. With a key both ends prove that they have it, within 10 s for each message; NP_ECONTROL
 * when one can't.
 */
int np_client_connect(struct np_client *c, const struct np_target *t, struct np_err *err);

void np_client_close(struct np_client *c);

/* Have the caller's hook tell the user something, if there is one. */
void np_client_tell(const struct np_client *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* What came out of a test. */
struct np_outcome {
	struct np_tally tally;
	struct np_far far;
	enum np_cause cause;
	uint32_t sessions; /* that it took at the same time; 0 or 1: one */
	bool measured;     /* something was: figures can be shown even when the run failed */
	struct np_bag *near_bag, *far_bag; /* evidence; NULL: none */
	char far_lacks[512];               /* why there is none of the far end; empty: there is */
	struct np_stations *stations;      /* of --stations; NULL: none */
	struct np_clean *clean;      /* what went undisturbed, by this evidence; NULL: not known */
	char reasons[NP_CLEAN_TEXT]; /* of what did not */
};

/* Ask the daemon for its host's facts. NP_ECONTROL with c->lacks where it reports none. */
int np_client_host(struct np_client *c, struct np_bag **far, struct np_err *err);

/*
 * Ask the daemon what each of its engines could do in such a test, see np_engine_tell(). NP_EUNSUP
 * where it does not say.
 */
int np_client_engines(struct np_client *c, const struct np_plan *p, const struct np_terms *terms,
		      struct np_bag **far, struct np_err *err);

/*
 * Ask the daemon for its calibration rate (on Linux the clock ticks a second) and processors.
 */
int np_client_calibrate(struct np_client *c, struct np_calibrate_response *out, struct np_err *err);

/*
 * Run one test: near endpoint, request, loop, results. peer is the data address; its port comes
 * with the daemon's response, and with no_control it is complete and c is only needed for its
 * signals and watch. Every wait has a deadline: the whole ends within 15 s of the peer's death or
 * the link's silence. out is always to be released by np_outcome_free().
 */
int np_client_run(struct np_client *c, const struct np_plan *p, const struct np_terms *terms,
		  const struct np_addr *peer, struct np_outcome *out, struct np_err *err);

/*
 * The evidence of the end that received a stream; NULL where there is none, or of several sessions.
 */
const struct np_bag *np_outcome_receiver(const struct np_outcome *out);

void np_outcome_free(struct np_outcome *out);

#endif
