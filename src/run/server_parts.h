/*
 * Shared by server.c (requests), server_answer.c, server_policy.c (what a client may ask for, and
 * accepted peers), server_limits.c (how much it may use), and server_test.c (runs a test).
 */
#ifndef NP_RUN_SERVER_PARTS_H
#define NP_RUN_SERVER_PARTS_H

#include "run/server.h"
#include "run/talk.h"

/* Send a finished message, which tells its size: a frame, or one of ours. */
int np_server_answer(struct np_chan *c, const uint8_t *message, struct np_err *err);

/* Send a frame of netperf's: code, word (0 or an error), then m by its layout (NULL: no body). */
int np_server_answer_code(struct np_chan *c, uint32_t code, int32_t word, np_layout *layout,
			  const void *m, struct np_err *err);

/* Tell the client of *err, in `code`'s format, and log it. Fails: with *err, or why not sent. */
int
np_server_refuse(const struct np_server *s, struct np_chan *c, uint32_t code, struct np_err *err);

/*
 * Refuse what this client may not have; set p->bind, and *out: its peers, ports and sizes. Then as
 * np_server_wish().
 */
int np_server_allow(const struct np_server *s, struct np_plan *p, struct np_terms *out,
		    struct np_wish *wish, struct np_err *err);

/* A warm-up as the limit of a test's length counts it: in seconds, rounded up. */
static inline uint32_t
np_server_warm_up_s(const struct np_plan *p)
{
	return (p->warm_up_ms + 999) / 1000;
}

/* What the test needs. Reduces the plan to what the limits allow, or refuses it. */
int np_server_wish(const struct np_server *s, struct np_plan *p, const struct np_terms *terms,
		   struct np_wish *wish, struct np_err *err);

/* Why an engine can't drive this end of the plan; NULL: it can. */
const char *np_server_why_no_engine(const struct np_limits *limits, const struct np_engine *e,
				    const struct np_plan *p);

/* Adapt the plan and the terms to what was granted. */
void np_server_apply_grant(const struct np_server *s, const struct np_wish *wish, struct np_plan *p,
			   struct np_terms *terms);

/* Run a test that was granted, from taking memory and sockets to its results. */
int np_server_test(struct np_server *s, struct np_chan *c, const struct np_dialect *dialect,
		   const struct np_plan *p, const struct np_terms *terms, struct np_served *served,
		   struct np_err *err);

#endif
