#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "base/units.h"
#include "bench/bench.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"
#include "bench/transport/tcp.h"

void
np_tcp_options(const struct np_plan *p, struct np_sockopts *o)
{
	/*
	 * Only an end that sends first can use TCP_FASTOPEN_CONNECT, as connect(2) then puts the
	 * handshake off until the first send. Not with sendfile(2), which waits for the handshake.
	 */
	bool sends_first = p->active && p->role == NP_LEAD && p->pattern->speaks_first;

	NP_SOCKOPT(o, p->nodelay, IPPROTO_TCP, TCP_NODELAY, 1);
	NP_SOCKOPT(o, p->cork, IPPROTO_TCP, TCP_CORK, 1);
	NP_SOCKOPT(o, p->mss > 0, IPPROTO_TCP, TCP_MAXSEG, p->mss);
	if (p->near.sock.cong[0] != '\0') {
		np_sockopts_add_text(o, IPPROTO_TCP, TCP_CONGESTION, "TCP_CONGESTION",
				     p->near.sock.cong);
	}
	NP_SOCKOPT(o, p->defer_accept && !p->active, IPPROTO_TCP, TCP_DEFER_ACCEPT, 5); /* s */
	/* Choose the port in connect(2): one port can then serve several source addresses. */
	NP_SOCKOPT_OR_NOT(o, p->active && p->sources > 1, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	/* If net.ipv4.tcp_fastopen forbids these, connections are made as usual. */
	NP_SOCKOPT_OR_NOT(o, p->fast_open && !p->active, IPPROTO_TCP, TCP_FASTOPEN, NP_BACKLOG);
	NP_SOCKOPT_OR_NOT(o, p->fast_open && sends_first, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1);
}

int
np_tcp_establish(struct np_run *run, struct np_err *err)
{
	struct np_addr local;

	if (!run->plan->active) {
		return np_endpoint_accept(run, run->conn, err);
	}
	if (np_endpoint_connect(run, err) != NP_OK ||
	    np_sock_local(run->conn->fd, &local, err) != NP_OK) {
		return err->code;
	}
	if (strcmp(NP_ADDR_STR(&local), NP_ADDR_STR(&run->end.peer)) == 0) {
		/* With equal addresses and ports of both ends TCP connects a socket to itself. */
		return np_usage(err,
				"the data connection from %s connected to itself (try two "
				"different ports with -P)",
				NP_ADDR_STR(&local));
	}
	return NP_OK;
}

void
np_tcp_read_settings(struct np_run *run, int fd)
{
	struct np_closing *c = &run->closing;
	socklen_t len = sizeof(c->cong) - 1;

	if (!run->plan->pattern->probe) { /* a probe has read it itself, of the new connection */
		c->mss = np_sock_int(fd, IPPROTO_TCP, TCP_MAXSEG);
	}
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, c->cong, &len) != 0) {
		c->cong[0] = '\0';
	}
}

/* np_transport.read_closing: the settings, and TCP_INFO. */
static void
tcp_read_closing(struct np_run *run, int fd)
{
	struct np_closing *c = &run->closing;
	socklen_t len = sizeof(c->info);

	np_tcp_read_settings(run, fd);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &c->info, &len) == 0) {
		c->retrans = (int)np_min(c->info.tcpi_total_retrans, INT32_MAX);
	}
}

void
np_tcp_read_closing_first(struct np_run *run, int fd)
{
	run->closing.mss = np_sock_int(fd, IPPROTO_TCP, TCP_MAXSEG);
}

const struct np_transport np_transport_tcp = {
	NP_ON_TCP,
	.name = "TCP",
	.protocol = IPPROTO_TCP,
	.wire_type = NP_WS_STREAM,
	.kernel.listed = "TCP",
	.kernel.listed_six = "TCPv6",
	.admit = NP_ADMIT_IP,
	.stamps = true,
	.one_port = true,
	.ramps = true,
	.tcp_info = true,
	.acked = np_tcp_acked,
	.service_protocol = "tcp",
	.open = np_endpoint_open,
	.read_closing = tcp_read_closing,
	.read_closing_first = np_tcp_read_closing_first,
};
