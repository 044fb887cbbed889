/*
 * Packet sockets of this end: the capture of --wire, and the interface of a test of the link layer.
 */
#ifndef NP_CLI_PACKETS_H
#define NP_CLI_PACKETS_H

#include "cli/args.h"
#include "net/addr.h"
#include "run/evidence.h"

/*
 * To be called after np_cli_settle(): for a benchmark whose packets can't be captured, say so on
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
 * Open the interface of --device, or that of the control connection's address. cli->terms points to
 * *link from then on. The message size is its MTU by default.
 */
int np_cli_open_eth(struct np_cli *cli, const struct np_client *c, struct np_eth *link,
		    struct np_err *err);

#endif
