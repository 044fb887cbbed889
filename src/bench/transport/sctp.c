/*
 * One-to-one sockets of SCTP (RFC 9260, sctp(7)): a connection that the protocol calls an
 * association, over which one stream of messages goes. A message that a receiver has no room for
 * comes in parts, as the bytes of TCP do, so that patterns need not know of messages.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/sctp.h> /* which takes types of the above for granted */

#include "bench/bench.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"

/* Of the first association, when it was last there: once both ends have closed, it has gone. */
struct known {
	bool is_there;
	struct sctp_status status;
	bool counted;
	struct sctp_assoc_stats stats;
};

static void
sctp_options(const struct np_plan *p, const struct np_end *e, struct np_sockopts *o)
{
	(void)e;
	if (p->nodelay) {
		np_sockopts_add(o, IPPROTO_SCTP, SCTP_NODELAY, "SCTP_NODELAY", 1);
	}
	if (p->mss > 0) {
		np_sockopts_add(o, IPPROTO_SCTP, SCTP_MAXSEG, "SCTP_MAXSEG", p->mss);
	}
}

static int
sctp_open(struct np_run *run, struct np_err *err)
{
	run->end.own = calloc(1, sizeof(struct known));
	if (run->end.own == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for what is known of an association");
	}
	return np_endpoint_open(run, err);
}

static void
sctp_close(struct np_run *run)
{
	free(run->end.own);
	run->end.own = NULL;
}

static void
sctp_look(struct np_run *run, int fd)
{
	struct np_closing *c = &run->closing;
	struct known *k = run->end.own, now = { .is_there = false };
	socklen_t len = sizeof(now.status);

	if (k == NULL || getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &now.status, &len) != 0) {
		return;
	}
	now.is_there = true;
	len = sizeof(now.stats);
	now.counted = getsockopt(fd, IPPROTO_SCTP, SCTP_GET_ASSOC_STATS, &now.stats, &len) == 0;
	*k = now;
	c->mss = (int)k->status.sstat_fragmentation_point;
	if (k->counted) {
		c->retrans =
		    k->stats.sas_rtxchunks < INT32_MAX ? (int)k->stats.sas_rtxchunks : INT32_MAX;
	}
}

/* Who has shut down his half hears of the end by no event: the association has gone then. */
static int64_t
sctp_left(int fd)
{
	struct sctp_status s;
	socklen_t len = sizeof(s);

	return getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &s, &len) == 0
		   ? (int64_t)s.sstat_unackdata + s.sstat_penddata
		   : -1;
}

static void
sctp_too_long(const struct np_run *run, struct np_err *err)
{
	size_t size = run->worker->send_size;

	np_fail(err, NP_ESYS, EMSGSIZE,
		"send %zu bytes as one message, for which a send buffer of %d has no room (a "
		"smaller -m or -r, or a larger -s)",
		size, run->end.sndbuf);
}

const struct np_transport np_transport_sctp = {
	.name = "SCTP",
	.socktype = SOCK_STREAM,
	.protocol = IPPROTO_SCTP,
	.wire_type = NP_WS_STREAM,
	.reliable = true,
	.connected = true,
	.closes_whole = true,
	.admit = NP_ADMIT_FILTER,
	.named = true,
	.ip_protocol = IPPROTO_SCTP,
	.module = "sctp",
	.kconfig = "CONFIG_IP_SCTP",
	.no_control = "The SCTP tests do not know how to deal with no control tests",
	.scanner = NP_SCAN_SCTP,
	.options = sctp_options,
	.open = sctp_open,
	.another = np_endpoint_another,
	.meet = np_endpoint_meet,
	.look = sctp_look,
	.left = sctp_left,
	.too_long = sctp_too_long,
	.close = sctp_close,
};
