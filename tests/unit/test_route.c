/*
 * What is set for a route: from answers as the kernel composes them, and from this machine's own.
 */
#include "sys/rtnl.h"

#include <linux/rtnetlink.h>
#include <netinet/in.h>

#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "tests/lib/sockets.h"

/* An answer with metrics 1 to count, in the kernel's order. */
static size_t
compose(char room[512], const uint32_t *metric, unsigned short count)
{
	struct nlmsghdr *head = (struct nlmsghdr *)room;
	struct rtattr *outer = (struct rtattr *)(room + NLMSG_LENGTH(sizeof(struct rtmsg)));
	unsigned short len = RTA_LENGTH(0);

	memset(room, 0, 512);
	for (unsigned short i = 0; i < count; i++) {
		struct rtattr *a = (struct rtattr *)((char *)outer + len);

		if (metric[i] > 0) {
			a->rta_type = i + 1;
			a->rta_len = RTA_LENGTH(4);
			memcpy(RTA_DATA(a), &metric[i], 4);
			len = (unsigned short)(len + RTA_SPACE(4));
		}
	}
	outer->rta_type = RTA_METRICS;
	outer->rta_len = len;
	head->nlmsg_type = RTM_NEWROUTE;
	head->nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof(struct rtmsg)) + len);
	return head->nlmsg_len;
}

TEST(what_is_set_is_told)
{
	const uint32_t metric[RTAX_INITRWND] = {
		[RTAX_LOCK - 1] = 1 << RTAX_MTU, [RTAX_MTU - 1] = 1400,
		[RTAX_WINDOW - 1] = 20000,       [RTAX_CWND - 1] = 7,
		[RTAX_ADVMSS - 1] = 1000,
	};
	_Alignas(struct nlmsghdr) char room[512];
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	struct np_bag_item it;

	compose(room, metric, RTAX_INITRWND);
	assert_int_equal(np_route_handle(b, (struct nlmsghdr *)room), 1);
	assert_bag(b, "host.route.", "window=20000 cwnd=7 advmss=1000 mtu_locked=1");
	assert_int_equal(np_bag_count(b), 4); /* and nothing of what is not set */
	assert_false(np_bag_find(b, "host.route.cwnd_locked", &it));
}

TEST(an_answer_cut_short_does_no_harm)
{
	const uint32_t metric[RTAX_INITRWND] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };
	_Alignas(struct nlmsghdr) char room[512];
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	size_t whole = compose(room, metric, RTAX_INITRWND);

	for (size_t len = NLMSG_LENGTH(0); len <= whole; len++) {
		FREED_BY(free_memory) struct nlmsghdr *cut = malloc(len);

		assert_non_null(cut);
		memcpy(cut, room, len);
		cut->nlmsg_len = (uint32_t)len;
		np_route_handle(b, cut);
	}
	assert_number(b, "host.route.initrwnd", 14);
}

static struct sockaddr_in
four(uint32_t address)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(address) };
}

/*
 * In a child: a namespace whose one route has a window. A mapped address has IPv4's routes; without
 * one there is a reason.
 */
static int
look_at_a_route(void)
{
	const struct sockaddr_in none = { .sin_family = AF_INET }, to = four(0x0a4d0001),
				 nowhere = four(0x0a630001);
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6 };
	struct np_bag *b = np_bag_new(), *again = np_bag_new(), *lost = np_bag_new();
	struct np_bag_item it;

	if (!own_network() || system("exec ip route add 10.77.0.0/24 dev lo window 20000 "
				     "cwnd lock 9 2>/dev/null") != 0) {
		return 77;
	}
	mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
	memcpy(mapped.sin6_addr.s6_addr + 12, &to.sin_addr, 4);
	np_route_facts((const struct sockaddr *)&none, (const struct sockaddr *)&to, b);
	np_route_facts((const struct sockaddr *)&none, (const struct sockaddr *)&mapped, again);
	np_route_facts((const struct sockaddr *)&none, (const struct sockaddr *)&nowhere, lost);
	return np_bag_find(lost, "host.route", &it) && it.kind == NP_BAG_UNREAD &&
		       np_bag_number(b, "host.route.window") == 20000 &&
		       np_bag_number(b, "host.route.cwnd") == 9 &&
		       np_bag_number(b, "host.route.cwnd_locked") == 1 &&
		       np_bag_number(again, "host.route.window") == 20000
		   ? 0
		   : 1;
}

TEST(the_kernel_tells_of_its_route)
{
	assert_in_child(look_at_a_route(), "no namespace with a route of its own");
}

TEST(an_address_without_ip_has_none)
{
	const struct sockaddr nothing = { .sa_family = AF_UNIX };
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();

	np_route_facts(&nothing, &nothing, b);
	assert_int_equal(np_bag_count(b), 0);
}

TEST_MAIN()
