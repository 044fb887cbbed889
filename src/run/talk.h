/* The dialects of the control protocol: how messages of each code carry tests and results. */
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

/* What the far end granted and counted, as far as the dialect carries it. -1: not told. */
struct np_far {
	struct np_result end; /* counters and what is known at the close: only if reported */
	bool nodelay;
	uint32_t port;     /* of its (first) data socket */
	uint64_t token;    /* to be echoed before it sends datagrams; 0: none */
	struct np_key key; /* for handshakes */
	bool tokens;       /* it recognises this end's data connections by token_shown */
	struct np_token token_shown;
	bool ids;                    /* its responses have the ids of requests */
	bool resets;                 /* it accepts a reset as the end of a stream */
	char path[NP_UNIX_PATH_MAX]; /* of its data socket, in the UNIX domain; else empty */
	uint8_t mac[NP_ETH_MAC];     /* of its interface, in tests of the link layer */
	bool measures_cpu;
	uint32_t flows;                 /* data connections that it waits for */
	uint32_t threads;               /* its workers */
	char cpus[NP_CPU_TURNS_TEXT];   /* that they are bound to in turn; empty: not told */
	char engine[NP_FAR_ENGINE_MAX]; /* that drives its end; empty: not told */

	bool reported;  /* the results came, and the members below are valid */
	bool truncated; /* received: lower 32 bits of a stream; no bytes told of transactions */
	uint32_t established; /* data connections that took part */
	double elapsed;       /* seconds */
	char cpu_method;      /* netperf's letter; 'U': not told, '?': unknown to this program */
};

struct np_dialect {
	uint32_t code; /* of the request; the response is code + 1, results code + 2 */

	/* The client's half, NULL for requests that only old clients send. frame: a message, or
	 * room for NP_MESSAGE_MAX bytes. NP_EPEER: the daemon sent an invalid message. */
	void (*encode_request)(const struct np_dialect *d, const struct np_plan *p,
			       const struct np_run *run, uint8_t *frame);
	int (*decode_response)(const struct np_dialect *d, const uint8_t *frame, struct np_far *far,
			       struct np_err *err);
	int (*decode_results)(const struct np_dialect *d, const uint8_t *frame, struct np_far *far,
			      struct np_err *err);

	/* The daemon's half. decode_request() fails, with the errno to answer, if the request is
	 * invalid or asks for a test that does not exist here. */
	int (*decode_request)(const struct np_dialect *d, const uint8_t *frame, struct np_plan *p,
			      struct np_err *err);
	void (*encode_response)(const struct np_dialect *d, const struct np_plan *p,
				const struct np_run *run, uint8_t *frame);
	void (*encode_results)(const struct np_dialect *d, const struct np_plan *p,
			       const struct np_tally *t, uint8_t *frame);
};

/* The dialect of a request code, or NULL. The daemon speaks all of them. */
const struct np_dialect *np_dialect(uint32_t code);

/* The dialect in which a client asks for this plan. */
const struct np_dialect *np_dialect_of(const struct np_plan *p);

/* Store a GRANT's ports in the run's data connections. NP_EPEER if there are too few. */
int np_grant_ports(const uint8_t *frame, struct np_run *run, struct np_err *err);

/* ENGINES asks which engines of the daemon could drive a test. Only its request is of a dialect. */
extern const struct np_dialect np_engines_dialect;

/* Add another session's: np_result_add(); flows add up, the longest `elapsed` counts. */
void np_far_add(struct np_far *sum, const struct np_far *far);

/* Set every member to "not told"; but one flow and one thread, as netperf's daemon has. */
void np_far_init(struct np_far *far);

#endif
