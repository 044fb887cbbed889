/*
 * Traffic control (tc(8)) of an interface: queueing disciplines, classes of htb, and the actions of
 * filters (mainly policers) at its ingress and egress, with their counters; if its input is
 * redirected to an ifb, those of that interface, too.
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
	bool counted; /* its drops are in no other item, but include those of items below it */
	bool is_class, is_action;
	uint32_t handle, parent; /* of a qdisc or a class */
	uint64_t rate_bps;       /* its limit; 0: none */
	uint64_t bytes, packets;
	bool has_queue; /* the following are known */
	uint32_t drops, overlimits, requeues, backlog;
};

/* At one moment. A zeroed one is empty. */
struct np_tc {
	int index;        /* of the interface asked about just now */
	bool in;          /* its messages are about input */
	bool counted;     /* no other counter includes the drops of its actions */
	const char *also; /* before the names of items at another interface; "" */
	struct np_tc_item at[NP_TC_ITEMS];
	size_t count;
	size_t left_out; /* for lack of room */
	int ifb;         /* index of the ifb that input is redirected to; 0: none */

	uint32_t root;        /* handle of the root queueing discipline; 0: none was seen */
	uint32_t htb_default; /* its class of unclassified traffic; 0: none */
	/*
	 * Its limit: tbf's rate; the ceiling of htb's default class or, without one, of the largest
	 * class below the root; 0: none.
	 */
	uint64_t root_rate_bps;
};

/* By a socket of np_rtnl_open() of the interface with that index. 0, or a negative errno. */
int np_tc_read(int fd, int index, struct np_tc *out);

/* The same without filters and their actions. */
int np_tc_queues(int fd, int index, struct np_tc *out);

/* The root queueing discipline; NULL: none that could be seen ("noqueue"). */
const struct np_tc_item *np_tc_root(const struct np_tc *tc);

/* Read one message, as an np_rtnl_hear: RTM_NEWQDISC, RTM_NEWTCLASS or RTM_NEWTFILTER. */
int np_tc_hear(void *tc, const struct nlmsghdr *m);

/*
 * Put what moved between two readings as moved.tc.*, and the totals of each direction as tc.out.*
 * and tc.in.*
 */
void np_tc_put(const struct np_tc *from, const struct np_tc *to, struct np_bag *into);

#endif
