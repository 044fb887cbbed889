#include "sys/route.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fds.h"
#include "sys/rtnl.h"

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

/* Convert an address for rtnetlink; a mapped one becomes IPv4. size 0: it isn't an IP address. */
static struct np_rtnl_address
convert(const struct sockaddr *sa)
{
	struct np_rtnl_address a = { .size = 0 };

	switch (sa->sa_family) {
	case AF_INET:
		a.family = AF_INET;
		a.size = 4;
		memcpy(a.bytes, &((const struct sockaddr_in *)sa)->sin_addr, 4);
		break;
	case AF_INET6: {
		const struct in6_addr *six = &((const struct sockaddr_in6 *)sa)->sin6_addr;
		bool mapped = IN6_IS_ADDR_V4MAPPED(six);

		a.family = mapped ? AF_INET : AF_INET6;
		a.size = mapped ? 4 : 16;
		a.zone = (int)((const struct sockaddr_in6 *)sa)->sin6_scope_id;
		memcpy(a.bytes, six->s6_addr + (mapped ? 12 : 0), a.size);
		break;
	}
	default:
		break;
	}
	return a;
}

void
np_route_facts(const struct sockaddr *from, const struct sockaddr *to, struct np_bag *into)
{
	struct np_rtnl_address a = convert(from), b = convert(to);
	int fd, rc;

	if (b.size == 0) {
		return;
	}
	fd = np_rtnl_open();
	rc = fd < 0 ? fd : np_rtnl_route(fd, &a, &b, np_route_handle, into);
	if (rc != 0) {
		np_bag_unread(into, strerror(-rc), "host.route");
	}
	np_fds_close(fd);
}
