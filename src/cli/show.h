/* What netperf prints during and after a test, beside the result: interim results, notes, -d. */
#ifndef NP_CLI_SHOW_H
#define NP_CLI_SHOW_H

#include "cli/args.h"
#include "run/knee.h"
#include "run/repeat.h"

struct np_document;
struct np_shown;

/*
 * One line on standard error where a test of several flows takes as many sessions: its far end is
 * as many processes.
 */
void np_show_sessions(const struct np_cli *cli, const struct np_client *c, uint32_t sessions);

/* On standard error: what a step of --rate auto came to; what all of them did. */
void np_show_knee_step(const struct np_plan *p, const struct np_knee_step *s);
void np_show_knee(const struct np_plan *p, const struct np_knee *k);

/*
 * Lines about what was asked for and not had: a processor of the far end (-T), a priority, a type
 * of service or a buffer of an end's data socket (-y, -Y, -s, -S), a utilisation (-c, -C), a pace
 * (-b).
 */
void np_show_refused(FILE *out, const struct np_cli *cli, const struct np_outcome *o);

/* What interim results are counted from. Start from a zeroed struct with these four filled in. */
struct np_show_interim {
	const struct np_cli *cli;
	FILE *out;               /* NULL: they are not printed */
	struct np_document *doc; /* that they go into, too; NULL: none */
	struct np_shown *progress;
	unsigned number;
	double work;      /* seen so far in this iteration */
	uint64_t then_ns; /* when; 0: nothing yet */

	/* The same of each of `flows` connections, and their rates; NULL: of all together alone. */
	double *flow_work, *flow_rate;
	uint32_t flows;
};

/*
 * Have the document show each of several connections. Without memory for them it shows all
 * together.
 */
void np_show_interim_flows(struct np_show_interim *i);
void np_show_interim_free(struct np_show_interim *i);

/* One interim result: a np_watch's look(), and a np_trial's. */
void np_show_interim(void *ctx, const struct np_run *run, uint64_t due_ns, uint64_t now_ns);
void np_show_interim_sum(void *ctx, const struct np_plan *whole, const struct np_counts *sum,
			 uint64_t started_ns, uint64_t now_ns);

/*
 * What an iteration has to say beside its figures, after its last interim result if there are any:
 * -d and DUMP_TCP_INFO, connections of a ramp that failed, a rate that was not kept, requests that
 * were not answered, --stations, a transport that did less than was asked for. Returns whether what
 * was sent is not what --rate asks for.
 */
bool np_show_iteration(struct np_show_interim *i, bool interim, const struct np_outcome *o);

/* For -d: what will be done. */
void np_show_plan(FILE *out, const struct np_cli *cli, const struct np_client *c);
void np_show_agreed(FILE *out, const struct np_run *run);

/*
 * One line about responses that came twice or too late and could not be told apart: the figures may
 * be of the wrong requests. Nothing where there were none.
 */
void np_show_surplus(FILE *out, const struct np_cli *cli, uint64_t surplus);

/* With --clean: how much time was clean, what it carried, and who disturbed the rest. */
void np_show_clean(FILE *out, const struct np_cli *cli, const struct np_repeat *r);

/*
 * What was measured until something failed is shown, too: how much that is, for a line on standard
 * error. done: iterations so far; the last one may have failed before it had any figures.
 */
void np_show_partial(char *text, size_t size, const struct np_outcome *out, const struct np_plan *p,
		     unsigned done);

/*
 * After the result: why the last of the iterations is what it is, into the document (NULL:
 * there is none) and, where that was asked for, as text; likewise the ledger; and what of the far
 * end is missing, and why, unless the test failed, which tells as much.
 */
void np_cli_tell_evidence(const struct np_cli *cli, const struct np_outcome *out,
			  unsigned iterations, bool whole, struct np_document *doc, FILE *to);

/*
 * The values of explain.* and wire.way.* (doc/evidence.md) of the last of the iterations. NULL
 * where no evidence was collected, or without memory; to be freed.
 */
struct np_bag *
np_cli_explain(const struct np_cli *cli, const struct np_outcome *out, unsigned iterations);

#endif
