/*
 * Packet sockets of this end: the capture of --wire, and the interface of a test of the link layer.
 */
#ifndef NP_CLI_PACKETS_H
#define NP_CLI_PACKETS_H

#include "cli/args.h"
#include "net/addr.h"
#include "run/evidence.h"

/*
 * The test is settled: if it sends no packets, print that on standard error, and capture nothing at
 * either end. NP_ESYS for a file that can't be written.
 */
int np_cli_capture_settle(struct np_cli *cli, struct np_err *err);

/*
 * Open the capture, if one was asked for, into plan. If that fails, print why on standard error:
 * the test runs all the same. remote: where data will go. To be freed by np_capture_free(). An
 * error only when the user's file can't be written.
 */
int np_cli_capture_open(const struct np_cli_evidence *wanted, const struct np_addr *local,
			const struct np_addr *remote, struct np_evidence_wants *plan,
			struct np_err *err);

/*
 * Open the interface of --device, or that of the control connection's address. cli->plan refers to
 * *link from then on, and message sizes that were not chosen are its MTU. An error is a line that
 * says what to do.
 */
int np_cli_open_eth(struct np_cli *cli, const struct np_client *c, struct np_eth *link,
		    struct np_err *err);

#endif
