/*
 * TCP over several paths (RFC 8684). The kernel makes subflows by its own rules (ip-mptcp(8)): a
 * test reports what it got. Only the first subflow's address is checked, when it is accepted.
 * Others may come from any address, but have to prove that they know the connection's keys.
 */
#include <netinet/in.h>
#include <stdio.h>

#include "bench/bench.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"
#include "bench/transport/tcp.h"
#include "net/tcpinfo.h"

/* Record the subflows found on `conns` connections. Some may be closed by now: keep the most. */
static void
note_subflows(struct np_closing *c, uint32_t conns, uint32_t fallen, uint32_t found)
{
	uint32_t subflows = found > c->subflows ? found : c->subflows;
	const char *s = subflows == 1 ? "" : "s";

	c->degraded = fallen > 0;
	c->subflows = subflows;
	if (fallen > 0 && conns == 1) {
		snprintf(c->detail, sizeof(c->detail), "fell back to TCP");
	} else if (fallen > 0) {
		snprintf(c->detail, sizeof(c->detail), "%u of %u connections fell back to TCP",
			 fallen, conns);
	} else if (conns == 1) {
		snprintf(c->detail, sizeof(c->detail), "%u subflow%s", subflows, s);
	} else {
		snprintf(c->detail, sizeof(c->detail), "%u subflow%s of %u connections", subflows,
			 s, conns);
	}
}

/* np_transport.read_closing, of all connections: each may have fallen back to TCP. */
static void
mptcp_read_closing(struct np_run *run, int fd)
{
	uint32_t conns = 0, fallen = 0, subflows = 0;
	struct np_mptcp_brief b = { .retransmitted_segments = -1 };

	np_tcp_read_settings(run, fd);
	if (run->plan->pattern->connection_test) {
		return;
	}
	run->closing.retrans = -1; /* not known of several, or once a subflow is closed */
	NP_EACH_CONN (c, run) {
		if (c->fd >= 0 && np_mptcp_read(c->fd, &b)) {
			conns++;
			fallen += b.fell_back;
			subflows += b.subflows;
		}
	}
	if (conns > 0 && (fallen > 0 || subflows > 0)) {
		note_subflows(&run->closing, conns, fallen, subflows);
	}
	if (run->conns == 1 && subflows == run->closing.subflows) { /* none is closed */
		run->closing.retrans = b.retransmitted_segments < INT32_MAX
					   ? (int)b.retransmitted_segments
					   : INT32_MAX;
	}
}

/* In connection tests a connection may end before more subflows join: report only a fallback. */
static void
mptcp_read_closing_first(struct np_run *run, int fd)
{
	struct np_mptcp_brief b;

	np_tcp_read_closing_first(run, fd);
	if (np_mptcp_read(fd, &b) && b.fell_back) {
		note_subflows(&run->closing, 1, 1, 0);
	}
}

/* With several connections closing.subflows is a sum: that of this connection is not known. */
static void
mptcp_put_kernel(const struct np_run *run, int fd, struct np_bag *bag)
{
	np_mptcp_put(fd, run->conns == 1 ? run->closing.subflows : 0, bag);
}

const struct np_transport np_transport_mptcp = {
	NP_ON_TCP,
	.name = "MPTCP",
	.protocol = IPPROTO_MPTCP,
	.wire_type = NP_WS_STREAM,
	.kernel.listed = "MPTCP",
	.kernel.listed_six = "MPTCPv6",
	.ours = true, /* netserver 2.7 tries for ever to make a socket of protocol 262 */
	.admit = NP_ADMIT_PEER,
	.acked = np_mptcp_acked,
	.packets.no_capture = "a capture sees one path, and MPTCP may use several",
	.kernel.option = "CONFIG_MPTCP",
	.kernel.off = "sysctl -w net.mptcp.enabled=1",
	/* DSS with a mapping, as Linux sends it; with data both ways it has a longer ACK. */
	.packets.stream_options = 24,
	.packets.turn_options = 28,
	.open = np_endpoint_open,
	.read_closing = mptcp_read_closing,
	.read_closing_first = mptcp_read_closing_first,
	.put_kernel = mptcp_put_kernel,
};
