#include "cli/packets.h"

#include <stdio.h>
#include <sys/socket.h>

#include "base/output.h"
#include "net/capture.h"
#include "net/llc.h"
#include "wire/ext.h"

/* The daemon allows few captures: do not ask for one that would see nothing. */
int
np_cli_capture_settle(struct np_cli *cli, struct np_err *err)
{
	bool is_bench = np_cli_test(cli) == NP_TEST_BENCH;

	if (cli->evidence.wire_file != NULL &&
	    np_output_check(cli->evidence.wire_file, NP_OUTPUT_IN_PLACE, err) != NP_OK) {
		return np_fail_in(err, "--wire");
	}
	if (!cli->evidence.wire || !is_bench ||
	    (cli->bench.transport->ip_protocol != 0 &&
	     cli->bench.transport->packets.no_capture == NULL)) {
		return NP_OK;
	}
	if (cli->bench.transport->packets.no_capture != NULL) {
		fprintf(stderr, "netperf: --wire: %s\n", cli->bench.transport->packets.no_capture);
	} else {
		fprintf(stderr, "netperf: --wire: tests over %s send no IP packets\n",
			cli->bench.transport->name);
	}
	cli->evidence.wire = false;
	cli->evidence.wire_file = NULL;
	cli->evidence.caps &= ~(unsigned)NP_CAP_WIRE;
	return NP_OK;
}

int
np_cli_capture_open(const struct np_cli_evidence *wanted, const struct np_addr *local,
		    const struct np_addr *remote, struct np_evidence_wants *plan,
		    struct np_err *err)
{
	const struct np_capture_place place = { .near = *local,
						.far = *remote,
						.file = wanted->wire_file };

	if (!wanted->wire || np_capture_open(&plan->capture, &place, err) == NP_OK) {
		return NP_OK;
	}
	if (err->code == NP_EUSAGE) {
		return np_fail_in(err, "--wire");
	}
	plan->capture_why_not = "this end could not open a capture, see standard error";
	fprintf(stderr, "netperf: --wire: %s; this end gives the interface's counters instead\n",
		err->msg);
	err->code = NP_OK;
	return NP_OK;
}

int
np_cli_open_eth(struct np_cli *cli, const struct np_client *c, struct np_eth *link,
		struct np_err *err)
{
	struct np_plan *p = &cli->plan;

	if (p->no_control) {
		return np_usage(
		    err, "-N: %s needs a control connection, which gives the address to send to",
		    cli->bench.name);
	}
	if ((c->granted.caps & NP_CAP_PLAN) == 0) {
		return np_fail(err, NP_EUNSUP, 0,
			       "%s: the netserver at %s has no tests of the link layer (is it "
			       "Plumbline's, and started with --allow-raw?)",
			       cli->bench.name, c->peer);
	}
	if (cli->data.device[0] == '\0') {
		struct np_addr near = { .len = sizeof(near.sa) };

		/* The interface that the control connection goes by. */
		if (getsockname(c->chan.fd, (struct sockaddr *)&near.sa, &near.len) == 0) {
			(void)np_addr_device(&near, cli->data.device);
		}
	}
	if (np_eth_open(link, cli->data.device, err) != NP_OK) {
		return np_fail_in(err, cli->bench.name);
	}
	cli->terms.eth = link;
	if (p->near.call.send_size <= 0) {
		p->near.call.send_size =
		    (int32_t)link->mtu - (p->transport->bounded ? 0 : NP_LLC_HEADER);
	}
	if (p->transport->bounded &&
	    (np_eth_check_size(link, p->near.call.send_size, 'm', err) != NP_OK ||
	     np_eth_check_size(link, p->request, 'r', err) != NP_OK ||
	     np_eth_check_size(link, p->response, 'r', err) != NP_OK)) {
		return np_fail_in(err, cli->bench.name);
	}
	return NP_OK;
}
