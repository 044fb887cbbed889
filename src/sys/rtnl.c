#include "sys/rtnl.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "base/fds.h"

enum {
	ANSWER = 32 << 10, /* bytes of a datagram; the kernel sends no larger ones */
	ANSWERS = 64       /* datagrams of a dump; what exceeds them is not read */
};

struct question {
	struct nlmsghdr head;
	union {
		struct ifinfomsg link;
		struct tcmsg tc;
		struct rtmsg route;
	} body;
	char room[80];
};

int
np_rtnl_open(void)
{
	const struct timeval timeout = { .tv_sec = 1 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0) {
		return -errno;
	}
	/* The answer is there when send() returns; should it not be, don't wait for ever. */
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	return fd;
}

/* Begin a question with a body of `body` bytes, all zeros. flags: ACK or DUMP, to get an end. */
static void
begin(struct question *q, uint16_t type, uint16_t flags, size_t body)
{
	memset(q, 0, sizeof(*q));
	q->head.nlmsg_len = (uint32_t)NLMSG_LENGTH(body);
	q->head.nlmsg_type = type;
	q->head.nlmsg_flags = NLM_F_REQUEST | flags;
	q->head.nlmsg_seq = type; /* any number but 0, which notifications have */
}

/* Append an attribute; q->room is enough for all that this file appends. */
static void
put(struct question *q, unsigned short type, const void *data, size_t len)
{
	struct rtattr *a = (struct rtattr *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	q->head.nlmsg_len = NLMSG_ALIGN(q->head.nlmsg_len) + (uint32_t)RTA_ALIGN(a->rta_len);
}

void
np_rtnl_sort(const void *at, int len, const struct rtattr **to, unsigned count)
{
	/* len has a sign, since the last attribute's padding may make it negative. */
	for (unsigned i = 0; i < count; i++) {
		to[i] = NULL;
	}
	for (const struct rtattr *a = at; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		unsigned type = a->rta_type & 0x3fffU; /* without NLA_F_NESTED */

		if (type < count) {
			to[type] = a;
		}
	}
}

void
np_rtnl_sort_nested(const struct rtattr *in, const struct rtattr **to, unsigned count)
{
	np_rtnl_sort(in != NULL ? RTA_DATA(in) : NULL, in != NULL ? RTA_PAYLOAD(in) : 0, to, count);
}

bool
np_rtnl_take(const struct rtattr *a, void *out, size_t size)
{
	if (a == NULL) {
		return false;
	}
	memset(out, 0, size);
	memcpy(out, RTA_DATA(a), RTA_PAYLOAD(a) < size ? RTA_PAYLOAD(a) : size);
	return true;
}

void
np_rtnl_take_text(const struct rtattr *a, char *out, size_t size)
{
	out[0] = '\0';
	if (a != NULL) {
		snprintf(out, size, "%.*s", (int)RTA_PAYLOAD(a), (const char *)RTA_DATA(a));
	}
}

/* Ask, and hand each answer to `handle`. Returns 0 or a negative errno; -ENOENT: it used none. */
static int
ask(int fd, const struct question *q, uint16_t type, np_rtnl_handler *handle, void *ctx)
{
	static const int lost = -EIO; /* the answer has no end, or is cut */
	_Alignas(struct nlmsghdr) char bytes[ANSWER];
	bool found = false;

	if (send(fd, q, q->head.nlmsg_len, 0) != (ssize_t)q->head.nlmsg_len) {
		return -errno;
	}
	for (int i = 0; i < ANSWERS; i++) {
		ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
		int left = (int)n;

		if (n < 0 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			return n < 0 ? -errno : lost;
		}
		for (const struct nlmsghdr *m = (const void *)bytes;
		     left > 0 && NLMSG_OK(m, (unsigned)left); m = NLMSG_NEXT(m, left)) {
			if (m->nlmsg_type == NLMSG_ERROR) {
				const struct nlmsgerr *e = NLMSG_DATA(m);

				return m->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) ? lost
				       : e->error != 0                         ? e->error
				       : found                                 ? 0
									       : -ENOENT;
			}
			if (m->nlmsg_type == NLMSG_DONE) {
				return found ? 0 : -ENOENT;
			}
			if (m->nlmsg_type == type && m->nlmsg_seq != 0) { /* 0: a notification */
				found = handle(ctx, m) != 0 || found;
			}
		}
	}
	return found ? 0 : lost;
}

/* An np_rtnl_handler into a struct np_rtnl_link. */
static int
read_link(void *ctx, const struct nlmsghdr *m)
{
	const struct rtattr *at[64];
	const struct ifinfomsg *body = NLMSG_DATA(m);
	struct np_rtnl_link *out = ctx;
	uint8_t carrier = 0;

	if (m->nlmsg_len < NLMSG_LENGTH(sizeof(*body))) {
		return 0;
	}
	np_rtnl_sort(IFLA_RTA(body), IFLA_PAYLOAD(m), at, 64);
	out->index = body->ifi_index;
	out->flags = body->ifi_flags;
	out->type = body->ifi_type;
	np_rtnl_take(at[IFLA_MTU], &out->mtu, sizeof(out->mtu));
	np_rtnl_take(at[IFLA_GSO_MAX_SIZE], &out->gso_max_size, sizeof(out->gso_max_size));
	np_rtnl_take(at[IFLA_GSO_MAX_SEGS], &out->gso_max_segs, sizeof(out->gso_max_segs));
	np_rtnl_take(at[IFLA_NUM_RX_QUEUES], &out->rx_queues, sizeof(out->rx_queues));
	np_rtnl_take(at[IFLA_NUM_TX_QUEUES], &out->tx_queues, sizeof(out->tx_queues));
	np_rtnl_take(at[IFLA_CARRIER], &carrier, sizeof(carrier));
	out->carrier = carrier != 0;
	np_rtnl_take_text(at[IFLA_QDISC], out->qdisc, sizeof(out->qdisc));
	np_rtnl_take_text(at[IFLA_IFALIAS], out->alias, sizeof(out->alias));
	out->has_stats = np_rtnl_take(at[IFLA_STATS64], &out->stats, sizeof(out->stats));
	if (np_rtnl_take(at[IFLA_ADDRESS], out->address, sizeof(out->address))) {
		out->address_size = (unsigned)RTA_PAYLOAD(at[IFLA_ADDRESS]);
	}
	return 1;
}

int
np_rtnl_link(int fd, const char *device, struct np_rtnl_link *out)
{
	struct question q;
	size_t len = strlen(device) + 1;

	memset(out, 0, sizeof(*out));
	if (len > IF_NAMESIZE) {
		return -ENODEV;
	}
	begin(&q, RTM_GETLINK, NLM_F_ACK, sizeof(q.body.link));
	put(&q, IFLA_IFNAME, device, len);
	return ask(fd, &q, RTM_NEWLINK, read_link, out);
}

int
np_rtnl_dump_tc(int fd, uint16_t type, int index, uint32_t parent, np_rtnl_handler *handle,
		void *ctx)
{
	struct question q;

	begin(&q, type, NLM_F_DUMP, sizeof(q.body.tc));
	q.body.tc.tcm_ifindex = index;
	q.body.tc.tcm_parent = parent;
	/* The answer to RTM_GET... has the type RTM_NEW..., at the same distance for all. */
	return ask(fd, &q, type - (RTM_GETQDISC - RTM_NEWQDISC), handle, ctx);
}

static const struct {
	unsigned metric;
	const char *name;
} metrics[] = {
	{ RTAX_WINDOW, "window" },     { RTAX_CWND, "cwnd" },     { RTAX_INITCWND, "initcwnd" },
	{ RTAX_INITRWND, "initrwnd" }, { RTAX_ADVMSS, "advmss" },
};

int
np_route_handle(void *bag, const struct nlmsghdr *m)
{
	const struct rtattr *at[RTA_METRICS + 1], *set[RTAX_INITRWND + 1];
	const struct rtmsg *body = NLMSG_DATA(m);
	uint32_t v, locks = 0;

	if (m->nlmsg_len < NLMSG_LENGTH(sizeof(*body))) {
		return 0;
	}
	np_rtnl_sort(RTM_RTA(body), RTM_PAYLOAD(m), at, RTA_METRICS + 1);
	np_rtnl_sort_nested(at[RTA_METRICS], set, RTAX_INITRWND + 1);
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		if (np_rtnl_take(set[metrics[i].metric], &v, sizeof(v)) && v > 0) {
			np_bag_int(bag, v, "host.route.%s", metrics[i].name);
		}
	}
	np_rtnl_take(set[RTAX_LOCK], &locks, sizeof(locks));
	if ((locks & (1U << RTAX_MTU)) != 0) {
		np_bag_int(bag, 1, "host.route.mtu_locked");
	}
	if ((locks & (1U << RTAX_CWND)) != 0) {
		np_bag_int(bag, 1, "host.route.cwnd_locked");
	}
	return 1;
}

/* An IP address as rtnetlink has it: a mapped one is IPv4. */
struct address {
	int family;
	unsigned char size; /* 0: it is no IP address */
	const void *bytes;
};

static struct address
address_of(const struct sockaddr *sa)
{
	const struct in6_addr *six = &((const struct sockaddr_in6 *)sa)->sin6_addr;

	if (sa->sa_family == AF_INET) {
		return (struct address){ AF_INET, 4, &((const struct sockaddr_in *)sa)->sin_addr };
	}
	if (sa->sa_family != AF_INET6) {
		return (struct address){ .size = 0 };
	}
	return IN6_IS_ADDR_V4MAPPED(six) ? (struct address){ AF_INET, 4, six->s6_addr + 12 }
					 : (struct address){ AF_INET6, 16, six };
}

/* Ask for a route. 0 or a negative errno; -ENOENT: there is none. */
static int
ask_route(int fd, const struct sockaddr *from, const struct sockaddr *to, struct np_bag *into)
{
	struct address near = address_of(from), far = address_of(to);
	struct question q;

	begin(&q, RTM_GETROUTE, NLM_F_ACK, sizeof(q.body.route));
	q.body.route.rtm_family = (unsigned char)far.family;
	q.body.route.rtm_dst_len = far.size * 8;
	put(&q, RTA_DST, far.bytes, far.size);
	if (near.family == far.family) {
		q.body.route.rtm_src_len = near.size * 8;
		put(&q, RTA_SRC, near.bytes, near.size);
	}
	if (to->sa_family == AF_INET6 && ((const struct sockaddr_in6 *)to)->sin6_scope_id != 0) {
		put(&q, RTA_OIF, &((const struct sockaddr_in6 *)to)->sin6_scope_id,
		    sizeof(uint32_t));
	}
	return ask(fd, &q, RTM_NEWROUTE, np_route_handle, into);
}

void
np_route_facts(const struct sockaddr *from, const struct sockaddr *to, struct np_bag *into)
{
	int fd, rc;

	if (to->sa_family != AF_INET && to->sa_family != AF_INET6) {
		return;
	}
	fd = np_rtnl_open();
	rc = fd < 0 ? fd : ask_route(fd, from, to, into);
	if (rc != 0) {
		np_bag_unread(into, strerror(-rc), "host.route");
	}
	np_fds_close(fd);
}
