/* The client's half of the conversation: opens a control connection and runs a test over it. */
#ifndef NP_RUN_CLIENT_H
#define NP_RUN_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"
#include "base/err.h"
#include "bench/tally.h"
#include "net/addr.h"
#include "opt/option.h"
#include "run/clean.h"
#include "run/drive.h"
#include "run/evidence.h"
#include "run/live.h"
#include "run/stations.h"
#include "run/talk.h"
#include "wire/auth.h"
#include "wire/chan.h"
#include "wire/plan.h"

/* A name and an address family, as -H and -L take them. */
struct np_name {
	char text[256];
	char device[NP_ADDR_DEVICE]; /* of "NAME%eth0", for a local name; empty: none */
	int family;                  /* AF_UNSPEC: any */
	bool given;
};

/* Where the daemon is, as the user wrote it. */
struct np_target {
	struct np_name host, local;
	char port[NP_PORT_TEXT], local_port[NP_PORT_TEXT]; /* number or service; empty: any */
	const char *passphrase;                            /* NULL: none is sent */
	const struct np_auth_key *key;                     /* to authenticate with; NULL: none */
	bool nat; /* a NAT is on the path: the proof of the key does not cover addresses */
	uint32_t silence_s;            /* --silence: how long its kernel may be silent */
	struct np_hello_message wants; /* of a daemon that knows greetings; caps 0: nothing */
};

/* What a client tells its caller while it works. */
struct np_client_hooks {
	void *ctx;
	/* Called when both ends agree on the test, and the data's peer is known. May be NULL. */
	void (*agreed)(void *ctx, const struct np_run *run);
	/* A line for the user, as after tell_after_ns without an answer (once). May be NULL. */
	void (*tell)(void *ctx, const char *text);
	uint64_t tell_after_ns;
};

/* One control connection. */
struct np_client {
	struct np_chan chan;
	char peer[300];      /* "localhost port 12865", for messages */
	struct np_addr used; /* the daemon's address that answered */
	struct np_signals signals;
	struct np_watch watch;
	struct np_evidence_wants collect; /* evidence of this end; caps 0: none */
	struct np_gate *gate;             /* opens the window; NULL: none */
	bool opens_first;                 /* before the gate: its daemon sends at once */
	bool awaits;          /* makes no data connection before the others have come to the gate */
	struct np_live *live; /* shows the progress; NULL: nothing does */
	/* The part of `wants` that the daemon agreed to; caps 0: none. */
	struct np_hello_message granted;
	uint32_t owed; /* code of the last test's results if they may still come, unneeded; or 0 */
	bool heard;    /* the daemon has answered once */
	bool want_far; /* the daemon's own figures are needed, however late they come */
	struct np_client_hooks hooks;
	bool told; /* hooks.tell() was called about a long wait */

	/* Reasons for a failure that netperf has messages for; 0: another reason. */
	int unresolved;   /* getaddrinfo(3)'s error for the host */
	int unreachable;  /* no answer: the family of the first address that was tried */
	int remote_error; /* the error in the daemon's answer */
};

/*
 * Connect within 10 s, and greet the daemon if t->wants has caps; if it knows no greeting, connect
 * again, without any. With a key, both ends prove that they have it, in 10 s for
 * each message. NP_ECONTROL, with "establish the control connection" if there was none.
 */
int np_client_connect(struct np_client *c, const struct np_target *t, struct np_err *err);

/* Call hooks.tell(), if there is one. */
void np_client_tell(const struct np_client *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* What came out of a test. */
struct np_outcome {
	struct np_tally tally;
	struct np_far far;
	enum np_cause cause;
	uint32_t sessions;                 /* that it ran in; 0 or 1: one */
	bool measured;                     /* there are figures, even if the run failed */
	bool unanswered;                   /* that is why it failed: not one transaction ended */
	struct np_bag *near_bag, *far_bag; /* evidence; NULL: none */
	char far_lacks[512];               /* why the far end's is missing; empty: it is there */
	struct np_stations *stations;      /* of --stations; NULL: none */
	struct np_clean *clean;            /* which parts were undisturbed; NULL: unknown */
	char reasons[NP_CLEAN_TEXT];       /* what disturbed the other parts */
};

/* Ask the daemon for facts of its host. NP_ECONTROL if it reports none. */
int np_client_host(struct np_client *c, struct np_bag **far, struct np_err *err);

/* Ask which of the daemon's engines could drive the test (np_engine_tell()), or NP_EUNSUP. */
int np_client_engines(struct np_client *c, const struct np_plan *p, const struct np_terms *terms,
		      struct np_bag **far, struct np_err *err);

/* Ask the daemon for its calibration rate (on Linux: clock ticks a second) and processors. */
int np_client_calibrate(struct np_client *c, struct np_calibrate_response *out, struct np_err *err);

/*
 * Run one test. peer: the data address; the daemon's response has the port. With no_control it is
 * complete, and c only serves signals and watch. Every wait has a deadline, put off while the path
 * is silent, up to p->silence_s. Always call np_outcome_free().
 */
int np_client_run(struct np_client *c, const struct np_plan *p, const struct np_terms *terms,
		  const struct np_addr *peer, struct np_outcome *out, struct np_err *err);

/* The evidence of the end that received a stream; NULL: none, or several sessions. */
const struct np_bag *np_outcome_receiver(const struct np_outcome *out);

/* Safe on a zeroed struct, and twice. */
void np_outcome_free(struct np_outcome *out);

#endif
