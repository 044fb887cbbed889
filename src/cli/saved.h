/*
 * Documents of runs (--json) that are shown again (--show): as the run was shown, or in another
 * style. No network is touched, and no other file. The file may be anybody's: nothing in it is
 * taken for granted.
 */
#ifndef NP_CLI_SAVED_H
#define NP_CLI_SAVED_H

#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "cli/args.h"
#include "stats/hist.h"

/* What --show does, the file being cli->output.show ("-": standard input). A run that was not
 * complete has a line on standard error; NP_EPEER for one without any result. */
int np_saved_show(const struct np_cli *cli, FILE *out, struct np_err *err);

/* A document that was read. */
struct np_saved;

/* Read one from memory. NP_EUSAGE when it is none, or damaged. *s: NULL, or to be freed. */
int np_saved_read(const char *bytes, size_t size, struct np_saved **s, struct np_err *err);
void np_saved_free(struct np_saved *s);

/* The same from a file ("-": standard input). */
int np_saved_open(const char *path, struct np_saved **s, struct np_err *err);

/* What several runs have together. Its texts and the histogram are the document's. */
struct np_saved_part {
	const char *test, *unit; /* of the rate, a second */
	double rate;
	double begin_s, seconds; /* of all iterations; since 1970 */
	const struct np_hist *hist;
};

/* NP_EPEER: there is no result in it. */
int np_saved_part(const struct np_saved *s, struct np_saved_part *p, struct np_err *err);

/* Print it as the options behind --show ask for. NP_EPEER: there is no result in it. */
int np_saved_print(const struct np_saved *s, const struct np_cli_output *o, FILE *out,
		   struct np_err *err);

/* What --explain and --wire behind --show print: what the run would have. */
void
np_saved_print_evidence(const struct np_saved *s, const struct np_cli_evidence *wanted, FILE *out);

#endif
