/*
 * What the tool itself costs: the steps of a role over connections that move no bytes. Every send
 * takes all, every receive brings a whole message. Counted by callgrind (see bench), from the
 * difference of two runs.
 *
 *     null transmit|receive|request|respond OPERATIONS [FLOWS]
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/plan.h"
#include "bench/run.h"
#include "bench/stop.h"
#include "bench/worker.h"
#include "tests/lib/null.h"

enum { MESSAGE = 64 }; /* bytes of a stream's call; those of a request and a response are one */

/* A role by the word for it, of a bench whose client has it or its peer. */
struct part {
	const char *word, *bench;
	int role;
	int unit;       /* of what a test's length counts, one operation */
	unsigned steps; /* of an operation */
};

static const struct part parts[] = {
	{ "transmit", "TCP_STREAM", NP_LEAD, MESSAGE, 1 },
	{ "receive", "TCP_STREAM", NP_FOLLOW, MESSAGE, 1 },
	{ "request", "TCP_RR", NP_LEAD, 1, 2 },
	{ "respond", "TCP_RR", NP_FOLLOW, 1, 2 },
};

static void
make_plan(struct np_plan *p, const struct part *part, uint64_t operations, uint32_t flows)
{
	np_plan_init(p);
	p->bench = np_bench_find(part->bench);
	p->pattern = p->bench->pattern;
	p->transport = p->bench->transport;
	p->role = part->role;
	p->active = true;
	p->family = AF_INET;
	p->flows = flows;
	p->length = -(int64_t)(operations * (uint64_t)part->unit);
	p->near.call.send_size = p->near.call.recv_size = part->unit;
	if (p->pattern->transactions) {
		p->request = p->response = 1;
	}
}

/* What a test's length counts. */
static uint64_t
counted(const struct np_run *run)
{
	const struct np_counters *c = run->worker->count;

	return run->plan->pattern->transactions ? np_get(&c->transactions)
						: np_get(&c->sent) + np_get(&c->received);
}

static int
measure(const struct part *part, uint64_t operations, uint32_t flows, struct np_err *err)
{
	struct np_plan plan;
	struct np_run run;
	struct np_stop stop = { 0 };
	struct null_calls calls = { 0, 0 };
	uint64_t wanted = operations * (uint64_t)part->unit, done;
	int rc;

	make_plan(&plan, part, operations, flows);
	if (np_run_open(&run, &plan, NULL, &stop, err) != NP_OK) {
		return err->code;
	}
	np_worker_begin(run.worker, np_now());
	/* A leader ends by the test's length; a follower is left after a number of steps. */
	rc = null_drive(run.worker, part->role == NP_LEAD ? UINT64_MAX : operations * part->steps,
			&calls);
	if (run.side->settle != NULL) {
		run.side->settle(run.worker);
	}
	done = counted(&run);
	np_run_free(&run);
	if (rc != 0) {
		return np_fail(err, NP_ESYS, -rc, "%s: a step", part->word);
	}
	if (done < wanted || done >= wanted + flows * (uint64_t)part->unit) {
		return np_fail(err, NP_ESYS, 0, "%s: %" PRIu64 " counted of %" PRIu64, part->word,
			       done, wanted);
	}
	return NP_OK;
}

int
main(int argc, char **argv)
{
	struct np_err err;

	for (size_t i = 0; argc > 2 && i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (strcmp(parts[i].word, argv[1]) != 0) {
			continue;
		}
		if (measure(&parts[i], strtoull(argv[2], NULL, 10),
			    argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 1, &err) == NP_OK) {
			return 0;
		}
		fprintf(stderr, "null: %s\n", err.msg);
		return 1;
	}
	fprintf(stderr, "usage: null transmit|receive|request|respond OPERATIONS [FLOWS]\n");
	return 2;
}
