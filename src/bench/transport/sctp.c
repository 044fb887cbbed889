/*
 * One-to-one sockets of SCTP (RFC 9260, sctp(7)): an association with one stream of messages. Long
 * messages arrive in parts, as in TCP, so that patterns need not know of messages.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/sctp.h> /* needs types of the above */

#include "base/bag.h"
#include "bench/bench.h"
#include "bench/run.h"
#include "bench/transport/endpoint.h"

enum { PATHS = 8 }; /* most that are recorded */

/* An address of the far end, and what the kernel knows of the path to it. */
struct path {
	struct np_addr at;
	struct sctp_paddrinfo info;
};

/* The first association as it was last seen: once both ends have closed, the kernel forgets it. */
struct known {
	bool is_seen; /* it was read at least once */
	struct sctp_status status;
	bool has_stats; /* the kernel knows `stats` */
	struct sctp_assoc_stats stats;
	struct path path[PATHS];
	uint32_t paths;
};

static void
sctp_options(const struct np_plan *p, struct np_sockopts *o)
{
	NP_SOCKOPT(o, p->nodelay, IPPROTO_SCTP, SCTP_NODELAY, 1);
	NP_SOCKOPT(o, p->mss > 0, IPPROTO_SCTP, SCTP_MAXSEG, p->mss);
}

/* Bind the further addresses of --also-bind, to the port of the first one. */
static int
bind_also(const struct np_run *run, int fd, struct np_err *err)
{
	const struct np_also *also = &run->plan->also;

	for (uint32_t i = 0; i < also->count; i++) {
		struct np_addr at = also->at[i];

		np_addr_set_port(&at, 0);
		if (setsockopt(fd, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, &at.sa, at.len) != 0) {
			return np_fail(err, NP_ESYS, errno, "bind to %s, too", NP_HOST_STR(&at));
		}
	}
	return NP_OK;
}

/* np_transport.open, and room for what sctp_read_closing() reads; sctp_close() frees it. */
static int
sctp_open(struct np_run *run, struct np_err *err)
{
	run->end.state = calloc(1, sizeof(struct known));
	if (run->end.state == NULL) {
		return np_fail(err, NP_ESYS, ENOMEM, "memory for what is known of an association");
	}
	if (np_endpoint_open(run, err) != NP_OK) {
		return err->code;
	}
	return bind_also(run, run->plan->active ? run->conn->fd : run->end.listen_fd, err);
}

static int
sctp_another(struct np_run *run, uint32_t number, struct np_err *err)
{
	int fd = np_endpoint_another(run, number, err);

	if (fd >= 0 && bind_also(run, fd, err) != NP_OK) {
		close(fd);
		return -1;
	}
	return fd;
}

static void
sctp_close(struct np_run *run)
{
	free(run->end.state);
	run->end.state = NULL;
}

/* Read the far end's addresses, packed by the size of their families, and the paths' states. */
static void
read_paths(int fd, struct known *k)
{
	union {
		struct sctp_getaddrs head;
		uint8_t bytes[sizeof(struct sctp_getaddrs) + PATHS * sizeof(struct sockaddr_in6)];
	} all = { .head = { .assoc_id = 0 } };
	const uint8_t *at = all.head.addrs;
	socklen_t len = sizeof(all);

	if (getsockopt(fd, IPPROTO_SCTP, SCTP_GET_PEER_ADDRS, &all, &len) != 0) {
		return;
	}
	for (; k->paths < all.head.addr_num && k->paths < PATHS; k->paths++) {
		struct path *p = &k->path[k->paths];
		struct sockaddr_in6 six = { .sin6_family = AF_UNSPEC };
		sa_family_t family;

		memcpy(&family, at, sizeof(family));
		len = family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
		memcpy(&six, at, len);
		at += len;
		np_addr_from(&p->at, (const struct sockaddr *)&six);
		memcpy(&p->info.spinfo_address, &six, len);
		len = sizeof(p->info);
		if (getsockopt(fd, IPPROTO_SCTP, SCTP_GET_PEER_ADDR_INFO, &p->info, &len) != 0) {
			p->info.spinfo_state = SCTP_INACTIVE; /* not known any more */
		}
	}
}

/* The state of a path in words, of struct sctp_paddrinfo (SCTP_ACTIVE ...). */
static const char *
path_state_name(int32_t state)
{
	switch (state) {
	case SCTP_ACTIVE:
		return "active";
	case SCTP_UNCONFIRMED: /* no answer from there yet: the first probe takes seconds */
		return "unconfirmed";
	case SCTP_PF:
		return "potentially failed";
	default:
		return "inactive";
	}
}

static uint32_t
paths_in(const struct known *k, int32_t state)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < k->paths; i++) {
		count += k->path[i].info.spinfo_state == state;
	}
	return count;
}

/* Describe the paths in c->detail, if there are several or should be. */
static void
describe_paths(const struct np_run *run, const struct known *k, struct np_closing *c)
{
	static const int32_t others[] = { SCTP_UNCONFIRMED, SCTP_PF, SCTP_INACTIVE };
	uint32_t asked = run->plan->far_also.count + 1;
	uint32_t failed = paths_in(k, SCTP_PF) + paths_in(k, SCTP_INACTIVE);
	size_t used;

	if (k->paths < 2 && asked < 2) {
		return;
	}
	used = (size_t)snprintf(c->detail, sizeof(c->detail), "%u path%s", k->paths,
				k->paths == 1 ? "" : "s");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		uint32_t count = paths_in(k, others[i]);

		if (count > 0) {
			used += (size_t)snprintf(c->detail + used, sizeof(c->detail) - used,
						 ", %u %s", count, path_state_name(others[i]));
		}
	}
	/* An unconfirmed path may still come up. */
	c->degraded = asked > 1 && (k->paths < asked || failed > 0);
}

/* np_transport.read_closing: record the figures, and keep them for sctp_put_kernel(). */
static void
sctp_read_closing(struct np_run *run, int fd)
{
	struct np_closing *c = &run->closing;
	struct known *k = run->end.state, now = { .is_seen = false };
	socklen_t len = sizeof(now.status);
	/* A 64-bit kernel pads this more than a 32-bit program: with room, `len` shows it. */
	union {
		struct sctp_assoc_stats stats;
		uint8_t room[sizeof(struct sctp_assoc_stats) + 64];
	} all = { .room = { 0 } };

	if (k == NULL || getsockopt(fd, IPPROTO_SCTP, SCTP_STATUS, &now.status, &len) != 0) {
		return; /* it is over: keep the earlier figures */
	}
	now.is_seen = true;
	len = sizeof(all);
	now.has_stats = getsockopt(fd, IPPROTO_SCTP, SCTP_GET_ASSOC_STATS, &all, &len) == 0 &&
			len == sizeof(now.stats);
	now.stats = all.stats;
	read_paths(fd, &now);
	*k = now;
	c->mss = (int)k->status.sstat_fragmentation_point;
	if (k->has_stats) {
		c->retrans =
		    k->stats.sas_rtxchunks < INT32_MAX ? (int)k->stats.sas_rtxchunks : INT32_MAX;
	}
	describe_paths(run, k, c);
}

/* np_transport.put_kernel: put sctp.* as sctp_read_closing() last read it. */
static void
sctp_put_kernel(const struct np_run *run, int fd, struct np_bag *bag)
{
	const struct known *k = run->end.state;

	if (k == NULL || !k->is_seen) {
		return;
	}
	np_bag_int(bag, k->status.sstat_rwnd, "sctp.rwnd");
	np_bag_int(bag, k->status.sstat_unackdata, "sctp.unacked_chunks");
	np_bag_int(bag, k->status.sstat_penddata, "sctp.pending_chunks");
	np_bag_int(bag, k->status.sstat_fragmentation_point, "sctp.fragmentation_point");
	np_bag_int(bag, k->paths, "sctp.paths");
	np_bag_int(bag, paths_in(k, SCTP_ACTIVE), "sctp.paths_active");
	for (uint32_t i = 0; i < k->paths; i++) {
		const struct sctp_paddrinfo *p = &k->path[i].info;

		np_bag_text(bag, NP_HOST_STR(&k->path[i].at), "sctp.path%u.address", i);
		np_bag_text(bag, path_state_name(p->spinfo_state), "sctp.path%u.state", i);
		np_bag_int(bag, p->spinfo_cwnd, "sctp.path%u.cwnd", i);
		np_bag_int(bag, p->spinfo_srtt, "sctp.path%u.srtt_ms", i);
		np_bag_int(bag, p->spinfo_rto, "sctp.path%u.rto_ms", i);
		np_bag_int(bag, p->spinfo_mtu, "sctp.path%u.mtu", i);
	}
	if (k->has_stats) {
		const struct sctp_assoc_stats *s = &k->stats;

		np_bag_int(bag, (int64_t)s->sas_oodchunks, "sctp.data_chunks_out");
		np_bag_int(bag, (int64_t)s->sas_iodchunks, "sctp.data_chunks_in");
		np_bag_int(bag, (int64_t)s->sas_rtxchunks, "sctp.retransmitted_chunks");
		np_bag_int(bag, (int64_t)s->sas_outofseqtsns, "sctp.out_of_order_chunks");
		np_bag_int(bag, (int64_t)s->sas_idupchunks, "sctp.duplicate_chunks");
		np_bag_int(bag, (int64_t)s->sas_gapcnt, "sctp.gap_acks_in");
		np_bag_int(bag, (int64_t)s->sas_opackets, "sctp.packets_out");
		np_bag_int(bag, (int64_t)s->sas_ipackets, "sctp.packets_in");
		np_bag_int(bag, (int64_t)s->sas_osacks, "sctp.sacks_out");
		np_bag_int(bag, (int64_t)s->sas_isacks, "sctp.sacks_in");
		np_bag_int(bag, (int64_t)s->sas_maxrto, "sctp.max_rto_ms");
	}
}

/* np_transport.ends.unacked, in chunks. After a half-close, only SCTP_STATUS shows the end. */
static int64_t
sctp_unacked(int fd)
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
	.kernel.listed = "SCTP",
	.kernel.listed_six = "SCTPv6",
	.reliable = true,
	.connected = true,
	.ends.closes_whole = true,
	.admit = NP_ADMIT_IP,
	.several_paths = true,
	.named = true,
	.ip_protocol = IPPROTO_SCTP,
	.kernel.module = "sctp",
	.kernel.option = "CONFIG_IP_SCTP",
	.packets.no_capture = "packets of SCTP are not read",
	.no_control = "The SCTP tests do not know how to deal with no control tests",
	.scanner = NP_SCAN_SCTP,
	.options = sctp_options,
	.open = sctp_open,
	.another = sctp_another,
	.establish = np_endpoint_establish,
	.read_closing = sctp_read_closing,
	.put_kernel = sctp_put_kernel,
	.ends.unacked = sctp_unacked,
	.message.too_long = sctp_too_long,
	.close = sctp_close,
};
