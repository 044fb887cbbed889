/*
 * The dialects of the control protocol: how the messages of each request code carry a test's
 * parameters and results. Both ends use them.
 */
#ifndef NP_RUN_TALK_H
#define NP_RUN_TALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bench/plan.h"
#include "bench/run.h"
#include "bench/tally.h"
#include "wire/msg.h"

enum { NP_FAR_ENGINE_MAX = 16 };

/* What the far end granted and counted, if the dialect carries it. -1: not told. */
struct np_far {
	int sndbuf, rcvbuf;       /* right after its socket was made */
	int send_size, recv_size; /* bytes of a call in force */
	bool nodelay;
	uint32_t port;      /* of its data socket, of the first one where flows have their own */
	uint64_t token;     /* to be echoed before it sends datagrams; 0: none */
	uint32_t key_bytes; /* of a key for handshakes; 0: there is none */
	uint8_t key[NP_GRANT_KEY];
	bool tokens; /* it knows this end's data connections by that token */
	struct np_token token_shown;
	bool spreads;                /* it keeps data connections that say so, and no other */
	bool ids;                    /* its responses have the ids of requests */
	bool resets;                 /* it takes a reset for the end of a stream */
	char path[NP_UNIX_PATH_MAX]; /* of its data socket, in the UNIX domain; else empty */
	uint8_t mac[NP_ETH_MAC];     /* of its interface, in tests of the link layer */
	int send_width, recv_width;
	int prio, tos;
	bool measures_cpu;
	uint32_t flows;               /* data connections that it waits for */
	uint32_t threads;             /* its workers */
	char cpus[NP_CPU_TURNS_TEXT]; /* that they are bound to in turn; empty: no list is told */
	uint32_t ramp;        /* connections a second that it takes while it drives others */
	uint32_t also;        /* further addresses of both ends that it goes by */
	uint32_t client_bits; /* bits of the client's addresses that it accepts; 0: of one alone */
	char engine[NP_FAR_ENGINE_MAX]; /* what drives its end; empty: not told */

	bool reported;  /* the rest is there */
	bool truncated; /* bytes: the lower 32 bits of those received, or none but transactions */
	int sndbuf_end, rcvbuf_end;
	uint64_t sent, received; /* bytes */
	int64_t sends, receives; /* calls */
	int retrans;
	uint32_t met;        /* data connections that took part */
	struct np_skew skew; /* of its workers */
	double elapsed;      /* seconds */
	int64_t failed_sends;
	int64_t transactions;
	struct np_cpu_use cpu;
	char cpu_method; /* netperf's letter; 0: not told */
	char cong[NP_CONG_MAX];
};

struct np_dialect {
	uint32_t code; /* of the request; the response is code + 1, results code + 2 */

	/* The client's half, NULL for requests that only old clients send. NP_EPEER is for what
	 * makes no sense. */
	void (*encode_request)(const struct np_dialect *d, const struct np_plan *p,
			       const struct np_run *run, uint8_t *frame);
	int (*decode_response)(const struct np_dialect *d, const uint8_t *frame, struct np_far *far,
			       struct np_err *err);
	int (*decode_results)(const struct np_dialect *d, const uint8_t *frame, struct np_far *far,
			      struct np_err *err);

	/* The daemon's half. A request that can't be served is refused, with the errno to answer.
	 */
	int (*decode_request)(const struct np_dialect *d, const uint8_t *frame, struct np_plan *p,
			      struct np_err *err);
	void (*encode_response)(const struct np_dialect *d, const struct np_plan *p,
				const struct np_run *run, uint8_t *frame);
	void (*encode_results)(const struct np_dialect *d, const struct np_plan *p,
			       const struct np_tally *t, uint8_t *frame);
};

/*
 * The dialect of a request code, or NULL. The daemon speaks all of them; those that only old
 * clients use have no client's half.
 */
const struct np_dialect *np_dialect(uint32_t code);

/* The dialect that a client asks for its plan in. */
const struct np_dialect *np_dialect_of(const struct np_plan *p);

/*
 * Store in the run's data connections the ports that a GRANT names. NP_EPEER where there are too
 * few.
 */
int np_grant_ports(const uint8_t *frame, struct np_run *run, struct np_err *err);

/*
 * ENGINES asks what each engine of the daemon could do in a test. It is written and read like the
 * PLAN of that test.
 */
void np_engines_encode(const struct np_plan *p, const struct np_run *run, uint8_t *frame);
int np_engines_decode(const uint8_t *frame, struct np_plan *p, struct np_err *err);

/*
 * Add the far end's figures of another session of the same test: counts are summed; sizes, options
 * and processors stay the first one's.
 */
void np_far_add(struct np_far *sum, const struct np_far *far);

/* Forget what the far end said: every field "not told". */
void np_far_init(struct np_far *far);

#endif
