/*
 * --wire: the capture around the client's tests.
 */
#ifndef NP_CLI_CAPTURE_H
#define NP_CLI_CAPTURE_H

#include "cli/args.h"
#include "net/addr.h"
#include "run/evidence.h"

/*
 * The test is settled: who asked for a capture of what sends no packets is told so, on standard
 * error, and no end opens one. NP_ESYS for a file that can't be written.
 */
int np_cli_capture_settle(struct np_cli *cli, struct np_err *err);

/*
 * Open the capture that was asked for into plan, and tell on standard error when it can't be had:
 * the test runs all the same. remote: where data will go. To be freed by np_capture_free(). Not
 * NP_OK only when the user's file can't be written.
 */
int np_cli_capture_open(const struct np_cli_evidence *wanted, const struct np_addr *local,
			const struct np_addr *remote, struct np_evidence_wants *plan,
			struct np_err *err);

#endif
