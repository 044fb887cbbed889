/*
 * Traffic control (tc(8)) of an interface: queueing disciplines, htb's classes and filters' actions
 * (mainly policers) in both directions, with counters; and those of an ifb that input goes to.
 */
#ifndef NP_SYS_TC_H
#define NP_SYS_TC_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bag.h"

enum { NP_TC_ITEMS = 64, NP_TC_NAME = 64 };

struct np_tc_item {
	char name[NP_TC_NAME]; /* "tbf_1_0", "police_2" */
	char kind[32];
	bool in;      /* it counts input; else output */
	bool counted; /* add its drops to a total: no other item includes them */
	bool is_class, is_action;
	uint32_t handle, parent; /* of a qdisc or a class */
	uint64_t rate_bps;       /* its limit; 0: none */
	uint64_t bytes, packets;
	bool has_queue; /* are the members below known? */
	uint32_t drops, overlimits, requeues, backlog;
};

/* All items at one moment. A zeroed struct is empty. */
struct np_tc {
	/* While reading: */
	int index;        /* of the interface that is asked about */
	bool in;          /* messages are about input */
	bool counted;     /* actions get this as `counted` */
	const char *also; /* prefix of names: "ifb_" for those of the ifb, else "" */
	/* What was read: */
	struct np_tc_item at[NP_TC_ITEMS];
	size_t count;
	size_t left_out; /* items for which there was no room */
	int ifb;         /* index of the ifb that input is redirected to; 0: none */

	uint32_t root;        /* handle of the root queueing discipline; 0: none was seen */
	uint32_t htb_default; /* htb's class for traffic that no filter classifies; 0: none */
	/* Root's limit: tbf's rate, or the ceil of htb's default or else largest class; 0: none. */
	uint64_t root_rate_bps;
};

/* Read those of an interface by a socket of np_rtnl_open(). 0, or a negative errno. */
int np_tc_read(int fd, int index, struct np_tc *out);

/* np_tc_read() without filters and their actions. */
int np_tc_queues(int fd, int index, struct np_tc *out);

/* The root queueing discipline; NULL: none is reported ("noqueue"). */
const struct np_tc_item *np_tc_root(const struct np_tc *tc);

/* An np_rtnl_handler that reads RTM_NEWQDISC, RTM_NEWTCLASS and RTM_NEWTFILTER. */
int np_tc_handle(void *tc, const struct nlmsghdr *m);

/* Put the differences of two readings as moved.tc.*, and totals as tc.out.* and tc.in.* */
void np_tc_put(const struct np_tc *from, const struct np_tc *to, struct np_bag *into);

#endif
