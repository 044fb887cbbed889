#include "sys/route.h"

#include <string.h>

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

void
np_route_facts(const struct sockaddr *from, const struct sockaddr *to, struct np_bag *into)
{
	int fd, rc;

	if (to->sa_family != AF_INET && to->sa_family != AF_INET6) {
		return;
	}
	fd = np_rtnl_open();
	rc = fd < 0 ? fd : np_rtnl_route(fd, from, to, np_route_handle, into);
	if (rc != 0) {
		np_bag_unread(into, strerror(-rc), "host.route");
	}
	np_fds_close(fd);
}
