/* What netperf prints during and after a test, beside the result: interim results, notes, -d. */
#ifndef NP_CLI_SHOW_H
#define NP_CLI_SHOW_H

#include "cli/args.h"
#include "run/knee.h"
#include "run/repeat.h"

struct np_document;
struct np_progress_line;

/* On standard error: the result of a step of --rate auto, and of all steps. */
void np_show_knee_step(const struct np_plan *p, const struct np_knee_step *s);
void np_show_knee(const struct np_plan *p, const struct np_knee *k);

/*
 * Lines about settings that were not obtained: a processor of the far end (-T), a priority, a type
 * of service or a buffer of an end's data socket (-y, -Y, -s, -S), a utilisation (-c, -C), a pace
 * (-b).
 */
void np_show_refused(FILE *out, const struct np_cli *cli, const struct np_outcome *o);

/* The state of interim results. Fill in the first four members, and zero the rest. */
struct np_show_interim {
	const struct np_cli *cli;
	FILE *out;               /* NULL: they are not printed */
	struct np_document *doc; /* they are added to it, too; NULL: none */
	struct np_progress_line *progress;
	unsigned number;
	double work;      /* np_cli_work() of its run, until the last interim result */
	uint64_t then_ns; /* when that was, in this run or an earlier one; 0: there was none */

	/* The work of each flow until then, and its rate since; flows 0: only totals are shown. */
	double *flow_work, *flow_rate;
	uint32_t flows;
};

/* Let the document have the rate of each flow. If memory runs out, it only has totals. */
void np_show_interim_flows(struct np_show_interim *i);
void np_show_interim_free(struct np_show_interim *i);

/* One interim result (np_watch.look); ctx: struct np_show_interim. */
void np_show_interim(void *ctx, const struct np_run *run, uint64_t due_ns, uint64_t now_ns);

/*
 * The same of several sessions (np_trial.look): the plan of all, and the sum of their counts.
 * started_ns: when the window opened (np_now()).
 */
void np_show_interim_sum(void *ctx, const struct np_plan *whole, const struct np_counts *sum,
			 uint64_t started_ns, uint64_t now_ns);

/*
 * Print what is to be told at the end of an iteration: the last interim result if there are any, -d
 * and DUMP_TCP_INFO, failed connections of a ramp, a rate that was not reached, requests without an
 * answer, --stations, a setting that the transport lacks. Returns true if --rate was not reached.
 */
bool np_show_iteration(struct np_show_interim *i, bool interim, const struct np_outcome *o);

/* For -d: what was planned. */
void np_show_plan(FILE *out, const struct np_cli *cli, const struct np_client *c);

/* With --clean: how much time was undisturbed, its throughput, and what disturbed the rest. */
void np_show_clean(FILE *out, const struct np_cli *cli, const struct np_repeat *r);

/*
 * Results of a run that failed are shown, too. This text says how much of the run they cover. done:
 * iterations so far; the last one may have failed before it had any figures.
 */
void np_show_partial(char *text, size_t size, const struct np_outcome *out, const struct np_plan *p,
		     unsigned done);

/* ---- Evidence (tell_evidence.c) ---- */

/*
 * To be called after np_cli_settle(): if the test has no packets that can be captured, say so on
 * standard error, and turn off captures at both ends. NP_ESYS or NP_EUSAGE for a file that can't be
 * written.
 */
int np_cli_capture_settle(struct np_cli *cli, struct np_err *err);

/*
 * Open the capture, if one is wanted, into plan, to be freed by np_capture_free(). If that fails,
 * print why on standard error; the test runs without. Returns an error only for a file that can't
 * be written.
 */
int np_cli_capture_open(const struct np_cli_evidence *wanted, const struct np_addr *local,
			const struct np_addr *remote, struct np_evidence_wants *plan,
			struct np_err *err);

/*
 * After the result: explain the last iteration, in the document (NULL: there is none) and, if asked
 * for, as text; print the ledger of --wire; and say why evidence of the far end is missing, unless
 * the test failed.
 */
void np_cli_tell_evidence(const struct np_cli *cli, const struct np_outcome *out,
			  unsigned iterations, bool whole, struct np_document *doc, FILE *to);

/*
 * The values of explain.* and wire.way.* (doc/evidence.md) of the last iteration, to be freed. NULL
 * if no evidence was collected, or memory ran out.
 */
struct np_bag *
np_cli_explain(const struct np_cli *cli, const struct np_outcome *out, unsigned iterations);

#endif
