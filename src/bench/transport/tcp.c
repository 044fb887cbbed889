#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"

/*
 * With TCP_FASTOPEN_CONNECT connect(2) may put the handshake off until the first send; so only the
 * end that sends first can have it. sendfile(2) would wait for the handshake, too.
 */
static bool
speaks_first(const struct np_plan *p)
{
	return p->active && p->role == NP_LEAD &&
	       (p->pattern->sized || p->pattern == &np_pattern_stream);
}

static void
tcp_options(const struct np_plan *p, const struct np_end *e, struct np_sockopts *o)
{
	if (p->nodelay) {
		np_sockopts_add(o, IPPROTO_TCP, TCP_NODELAY, "TCP_NODELAY", 1);
	}
	if (p->cork) {
		np_sockopts_add(o, IPPROTO_TCP, TCP_CORK, "TCP_CORK", 1);
	}
	if (p->mss > 0) {
		np_sockopts_add(o, IPPROTO_TCP, TCP_MAXSEG, "TCP_MAXSEG", p->mss);
	}
	if (e->cong[0] != '\0') {
		np_sockopts_add_text(o, IPPROTO_TCP, TCP_CONGESTION, "TCP_CONGESTION", e->cong);
	}
	if (p->defer_accept && !p->active) {
		np_sockopts_add(o, IPPROTO_TCP, TCP_DEFER_ACCEPT, "TCP_DEFER_ACCEPT", 5);
	}
	/* Where net.ipv4.tcp_fastopen does not let it, connections are made the slower way. */
	if (p->fast_open && !p->active) {
		np_sockopts_add(o, IPPROTO_TCP, TCP_FASTOPEN, "TCP_FASTOPEN", NP_BACKLOG);
		np_sockopts_optional(o);
	} else if (p->fast_open && speaks_first(p)) {
		np_sockopts_add(o, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, "TCP_FASTOPEN_CONNECT", 1);
		np_sockopts_optional(o);
	}
}

static int
tcp_open(struct np_run *run, struct np_err *err)
{
	int fd = np_endpoint_socket(run, err);

	if (fd < 0) {
		return err->code;
	}
	if (run->plan->active) {
		run->conn->fd = fd;
	} else {
		run->end.listen_fd = fd;
	}
	return NP_OK;
}

static int
tcp_connect(struct np_run *run, struct np_err *err)
{
	char text[NP_ADDR_TEXT], here[NP_ADDR_TEXT];
	struct np_addr local;

	if (np_endpoint_connect(run, err) != NP_OK ||
	    np_sock_local(run->conn->fd, &local, err) != NP_OK) {
		return err->code;
	}
	if (strcmp(np_addr_text(&local, here), np_addr_text(&run->end.peer, text)) == 0) {
		/* With one host and one port for both ends TCP finds the caller at once. */
		return np_fail(err, NP_EUSAGE, 0,
			       "the data connection from %s went to itself (try two ports with -P)",
			       here);
	}
	return NP_OK;
}

static int
tcp_meet(struct np_run *run, struct np_err *err)
{
	return run->plan->active ? tcp_connect(run, err) : np_endpoint_accept(run, run->conn, err);
}

const struct np_transport np_transport_tcp = {
	.name = "TCP",
	.socktype = SOCK_STREAM,
	.protocol = IPPROTO_TCP,
	.wire_type = NP_WS_STREAM,
	.several = true,
	.options = tcp_options,
	.open = tcp_open,
	.meet = tcp_meet,
};
