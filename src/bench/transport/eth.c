/* Raw Ethernet frames (net/eth.h). The caller owns the socket, which receives only during tests. */
#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "bench/bench.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"
#include "net/eth.h"

/* np_transport.open. A daemon receives from now on: frames may come right after its response. */
static int
eth_open(struct np_run *run, struct np_err *err)
{
	const struct np_plan *p = run->plan;
	const struct np_eth *l = run->terms->eth;
	uint64_t earlier;

	if (l == NULL) {
		return np_fail(err, NP_EUNSUP, EACCES, "there is no socket for raw frames");
	}
	run->conn->fd = l->fd;
	run->end.borrowed = true;
	np_eth_drop_all(l);
	np_eth_drops(l, &earlier); /* the count begins anew */
	if (np_sockopts_apply(&run->end.opts, run->conn->fd, err) != NP_OK) {
		return err->code;
	}
	np_endpoint_buffers(run->plan->transport, run->conn->fd, &run->end.sndbuf,
			    &run->end.rcvbuf);
	if (p->near.sock.prio >= 0) {
		run->end.prio = np_sock_int(run->conn->fd, SOL_SOCKET, SO_PRIORITY);
	}
	np_eth_aim(l, l->mac, &run->end.local);
	if (p->active) {
		return NP_OK;
	}
	np_eth_aim(l, p->far.sock.mac, &run->end.peer);
	/* The client's tag must be hard to guess, as a peer that knows it is answered. */
	do {
		if (getrandom(&run->end.token, sizeof(run->end.token), 0) !=
		    sizeof(run->end.token)) {
			return np_fail(err, NP_ESYS, errno, "draw a tag for the test's frames");
		}
	} while (run->end.token == 0);
	return np_eth_limit_source(l, &run->end.peer, np_eth_tag(run->end.token, true), err);
}

/* Mark frames to send with the tag. A client begins to receive; a daemon has since eth_open(). */
static int
eth_establish(struct np_run *run, struct np_err *err)
{
	const struct np_plan *p = run->plan;
	struct np_slot *slot = run->worker->send_ring.slots;

	for (size_t i = 0; i < run->worker->send_ring.width && slot != NULL; i++) {
		np_eth_mark(slot->buf, np_eth_tag(run->end.token, p->active));
		slot = slot->next;
	}
	return p->active ? np_eth_limit_source(run->terms->eth, &run->end.peer,
					       np_eth_tag(run->end.token, !p->active), err)
			 : NP_OK;
}

static void
eth_too_long(const struct np_run *run, struct np_err *err)
{
	np_fail(err, NP_EUSAGE, EMSGSIZE,
		"%zu bytes do not fit into a frame any more: the MTU was made smaller",
		run->worker->send_size);
}

/* np_transport.ends.send_mark. An error does not matter: the mark is sent several times. */
static void
eth_send_end(struct np_run *run)
{
	uint8_t end[NP_ETH_LEAST];

	np_eth_end(end, np_eth_tag(run->end.token, run->plan->active));
	sendto(run->conn->fd, end, sizeof(end), MSG_NOSIGNAL | MSG_DONTWAIT,
	       (const struct sockaddr *)&run->end.peer.sa, run->end.peer.len);
}

/* np_transport.close: the socket stays open, for the next test. */
static void
eth_close(struct np_run *run)
{
	if (run->end.borrowed) {
		np_eth_drop_all(run->terms->eth);
		run->end.borrowed = false;
	}
}

const struct np_transport np_transport_eth = {
	.name = "DLCL",
	.family = AF_PACKET,
	.socktype = SOCK_DGRAM,
	.kernel.listed = "PACKET",
	.bounded = true,
	.admit = NP_ADMIT_TAG,
	.link = true,
	.packets.no_capture = "tests of the link layer send no packets of IP",
	.scanner = NP_SCAN_LINK,
	.message.min = NP_ETH_LEAST,
	.header = NP_ETH_HEADER,
	.open = eth_open,
	.establish = eth_establish,
	.message.too_long = eth_too_long,
	.ends.send_mark = eth_send_end,
	.close = eth_close,
};
