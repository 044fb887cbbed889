/*
 * The JSON document of a run (--json), put together while it goes on: doc/netperf-run.schema.json
 * says what it holds, doc/json.md what for. Without jansson there is none (document_none.c).
 *
 * All functions ignore NULL, for a run without a document. np_document_write() reports missing
 * memory, once.
 */
#ifndef NP_CLI_DOCUMENT_H
#define NP_CLI_DOCUMENT_H

#include "base/bag.h"
#include "base/err.h"
#include "cli/args.h"
#include "cli/engines.h"
#include "cli/look.h"
#include "run/client.h"
#include "run/knee.h"

struct np_document;

/*
 * Begin one if the user asked for it, else *doc is NULL. NP_EUNSUP in a build without jansson,
 * NP_EUSAGE for what has no results to be put down, NP_ESYS for a file that can't be written.
 */
int np_document_new(const struct np_cli *cli, struct np_document **doc, struct np_err *err);
void np_document_free(struct np_document *d);

/* The test is settled and its addresses are known. cli is kept. */
void np_document_begin(struct np_document *d, const struct np_cli *cli, const struct np_client *c);

/* One interim result. */
void np_document_interim(struct np_document *d, const struct np_interim *i);

/* One iteration, whole or as far as it came; record: by np_report(). */
void np_document_iteration(struct np_document *d, const struct np_outcome *out,
			   const struct np_record *record, bool whole);

/* What all iterations come to; look: which figures were selected, and what was timed. */
void np_document_result(struct np_document *d, const struct np_look *look,
			const struct np_figures *figures);

/* The steps of --rate auto. */
void np_document_curve(struct np_document *d, const struct np_plan *p, const struct np_knee *k);

/* What --beside measured: the latencies of the transactions that its plan says. */
void np_document_beside(struct np_document *d, const struct np_plan *plan,
			const struct np_hist *idle, const struct np_hist *loaded);

/*
 * Why the result is what it is: a line of words, and the named values that it rests on (may be
 * NULL). After np_document_result() or before; the last one counts.
 */
void np_document_explain(struct np_document *d, const char *text, const struct np_bag *values);

/* How a run ended. */
struct np_verdict {
	int rc;                   /* enum np_errc */
	const struct np_err *err; /* what failed, if rc is not NP_OK */
	const char *partial;      /* how much the result covers; empty: all */
	int signal;               /* that ended it; 0: none did */
};

/*
 * Write it: to `out` if the user named no file, else into that file, whole or not at all (by a
 * temporary one beside it, unless it is a pipe or device). NP_ESYS when that can't be done.
 */
int
np_document_write(struct np_document *d, const struct np_verdict *v, FILE *out, struct np_err *err);

/*
 * The list of engines, a document of its own, to the same place. NP_EUNSUP in a build without
 * jansson.
 */
int np_document_engines(const struct np_cli *cli, const struct np_engine_lists *lists, FILE *out,
			struct np_err *err);

#endif
