/*
 * The JSON document of a run (--json; doc/json.md), built while the run proceeds. Functions ignore
 * NULL, for a run without one (as without jansson). np_document_write() reports lack of memory.
 */
#ifndef NP_CLI_DOCUMENT_H
#define NP_CLI_DOCUMENT_H

#include "base/bag.h"
#include "base/err.h"
#include "cli/args.h"
#include "cli/look.h"
#include "cli/modes.h"
#include "run/client.h"
#include "run/knee.h"

struct np_document;

/* *doc is NULL if none is wanted. NP_EUNSUP, NP_EUSAGE for a test without results, or NP_ESYS. */
int np_document_new(const struct np_cli *cli, struct np_document **doc, struct np_err *err);
void np_document_free(struct np_document *d);

/* Write what was asked for, once plan and addresses are complete. Keeps the pointer to cli. */
void np_document_begin(struct np_document *d, const struct np_cli *cli, const struct np_client *c);

/* One interim result. Sorts i->flow. */
void np_document_interim(struct np_document *d, const struct np_interim *i);

/* One iteration, whole or in part; record: by np_report(). */
void np_document_iteration(struct np_document *d, const struct np_outcome *out,
			   const struct np_record *record, bool whole);

/* The result of all iterations; look: which figures were selected, and what was timed. */
void np_document_result(struct np_document *d, const struct np_look *look,
			const struct np_figures *figures);

/* The steps of --rate auto, and the knee: rates in bit/s or operations a second, times in us. */
void np_document_curve(struct np_document *d, const struct np_plan *p, const struct np_knee *k);

/* What --beside measured: the latencies of its transactions, by its plan. */
void np_document_beside(struct np_document *d, const struct np_plan *plan,
			const struct np_hist *idle, const struct np_hist *loaded);

/* What limited the test, and the values behind that (may be NULL). The last call counts. */
void np_document_explain(struct np_document *d, const char *text, const struct np_bag *values);

/*
 * Write to `out` or to a file, whole or not at all unless it is a pipe or device. failed: what did
 * (NULL: nothing); partial: how much the result then covers, or empty; sig: the signal that ended
 * the run (0: none). NP_ESYS.
 */
int np_document_write(struct np_document *d, const struct np_err *failed, const char *partial,
		      int sig, FILE *out, struct np_err *err);

/* Write the list of engines, a document of its own. NP_ESYS; without jansson NP_EUNSUP. */
int np_document_engines(const struct np_cli *cli, const struct np_engine_lists *lists, FILE *out,
			struct np_err *err);

#endif
