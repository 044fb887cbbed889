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

/* Print settings not obtained: -T (far end), priority, TOS, -y, -Y, -s, -S, -c, -C, -b. */
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

/* An interim result of all sessions (np_trial.look). whole: their plan; times are by np_now(). */
void np_show_interim_sum(void *ctx, const struct np_plan *whole, const struct np_counts *sum,
			 uint64_t started_ns, uint64_t now_ns);

/*
 * Print at an iteration's end: the last of interim_lines, -d, DUMP_TCP_INFO, a ramp's failed
 * connections, a missed --rate (returns true), lost requests, --stations, a setting not available.
 */
bool np_show_iteration(struct np_show_interim *i, bool interim_lines, const struct np_outcome *o);

/* For -d: what was planned. */
void np_show_plan(FILE *out, const struct np_cli *cli, const struct np_client *c);

/* With --clean: how much time was undisturbed, its throughput, and what disturbed the rest. */
void np_show_clean(FILE *out, const struct np_cli *cli, const struct np_repeat *r);

/* Write what results of a cut run cover. out: the newest iteration; done: how many have figures. */
void np_show_partial(char *text, size_t size, const struct np_outcome *out, const struct np_plan *p,
		     unsigned done);

/*
 * After np_cli_settle(): turn off captures at both ends, with a note on standard error, if the test
 * has no packets to capture. NP_ESYS or NP_EUSAGE: a file can't be written.
 */
int np_cli_capture_settle(struct np_cli *cli, struct np_err *err);

/*
 * Open the capture, if wanted, into collect (free it by np_capture_free()). If that fails, print
 * why on standard error and run without. Returns an error only for a file that can't be written.
 */
int np_cli_capture_open(const struct np_cli_evidence *wanted, const struct np_addr *local,
			const struct np_addr *remote, struct np_evidence_wants *collect,
			struct np_err *err);

/*
 * Explain the last iteration in the document (or NULL) and, if asked for, as text; print the ledger
 * of --wire; and, unless the test failed, why evidence of the far end is missing.
 */
void np_cli_tell_evidence(const struct np_cli *cli, const struct np_outcome *out,
			  unsigned iterations, bool whole, struct np_document *doc, FILE *to);

/* explain.* and wire.way.* (doc/evidence.md) of the last iteration, to be freed. NULL: none. */
struct np_bag *
np_cli_explain(const struct np_cli *cli, const struct np_outcome *out, unsigned iterations);

#endif
