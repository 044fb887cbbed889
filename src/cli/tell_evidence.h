/*
 * What is shown of the evidence of a test: --explain, --wire, the document's explanation.
 */
#ifndef NP_CLI_TELL_EVIDENCE_H
#define NP_CLI_TELL_EVIDENCE_H

#include <stdio.h>

#include "cli/args.h"
#include "cli/document.h"
#include "run/client.h"

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
