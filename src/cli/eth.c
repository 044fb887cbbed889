#include "cli/eth.h"

#include <sys/socket.h>

#include "net/llc.h"

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
