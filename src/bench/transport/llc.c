/* Link-layer connections (net/eth.h). A daemon's session gets its listener before confinement. */
#include <errno.h>
#include <linux/llc.h>
#include <sys/socket.h>

#include "base/bag.h"
#include "bench/bench.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"
#include "net/eth.h"

/* np_transport.open: a listener admits only the address that the terms name. */
static int
llc_open(struct np_run *run, struct np_err *err)
{
	const struct np_eth *l = run->terms->eth;
	bool active = run->plan->active;
	int fd;

	if (l == NULL || (!active && l->llc_fd < 0)) {
		return np_fail(
		    err, NP_EUNSUP, EACCES,
		    "there is no socket for connections of the link layer (is llc2 loaded?)");
	}
	if (active) {
		fd = run->conn->fd = np_llc_open(l, err);
	} else {
		fd = run->end.listen_fd = l->llc_fd;
		np_llc_forget(fd); /* connections of an earlier test */
		run->end.borrowed_listener = true;
		run->end.sources = (struct np_sources){ .at = { run->terms->only }, .count = 1 };
	}
	if (fd < 0 || np_sockopts_apply(&run->end.opts, fd, err) != NP_OK ||
	    np_sock_local(fd, &run->end.local, err) != NP_OK) {
		return err->code;
	}
	if (!active && run->terms->only.len == 0) {
		return np_fail(err, NP_EUNSUP, EACCES,
			       "a listener for %s that would accept any peer",
			       run->plan->transport->name);
	}
	np_endpoint_buffers(run->plan->transport, fd, &run->end.sndbuf, &run->end.rcvbuf);
	return NP_OK;
}

static void
llc_put_kernel(const struct np_run *run, int fd, struct np_bag *bag)
{
	np_endpoint_put_option(fd, NP_SOL_LLC, LLC_OPT_TX_WIN, "llc.tx_window", bag);
	np_endpoint_put_option(fd, NP_SOL_LLC, LLC_OPT_RX_WIN, "llc.rx_window", bag);
	np_endpoint_put_option(fd, NP_SOL_LLC, LLC_OPT_RETRY, "llc.retries_max", bag);
	np_endpoint_put_option(fd, NP_SOL_LLC, LLC_OPT_ACK_TMR_EXP, "llc.ack_timer_s", bag);
}

const struct np_transport np_transport_llc = {
	.name = "DLCO",
	.family = AF_LLC,
	.socktype = SOCK_STREAM,
	.kernel.listed = "LLC",
	.reliable = true,
	.connected = true,
	.ends.shut_drops = true,
	.admit = NP_ADMIT_PEER,
	.link = true,
	.kernel.module = "llc2",
	.kernel.option = "CONFIG_LLC2",
	.packets.no_capture = "tests of the link layer send no packets of IP",
	.scanner = NP_SCAN_LINK,
	.open = llc_open,
	.establish = np_endpoint_establish,
	.put_kernel = llc_put_kernel,
};
