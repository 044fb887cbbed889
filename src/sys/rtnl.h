/*
 * Interfaces by rtnetlink(7): those of this process's network namespace, even if /sys shows
 * another one. Needs no privilege.
 */
#ifndef NP_SYS_RTNL_H
#define NP_SYS_RTNL_H

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct np_rtnl_link {
	int index;
	unsigned flags; /* IFF_* */
	unsigned type;  /* ARPHRD_* */
	bool carrier;
	uint32_t mtu, gso_max_size, gso_max_segs; /* 0: the kernel does not tell */
	uint32_t rx_queues, tx_queues;
	char qdisc[32];
	char alias[64]; /* as set by ip-link(8); may be empty */
	uint8_t address[32];
	unsigned address_size;
	bool has_stats;
	struct rtnl_link_stats64 stats;
};

/* A socket for requests, or a negative errno. */
int np_rtnl_open(void);

/* The interface of that name: 0, or a negative errno, -ENODEV where there is none. */
int np_rtnl_link(int fd, const char *device, struct np_rtnl_link *out);

/* --- what questions have in common ----------------------------------------------------------- */

/* Attributes by their number, those below `count`; NULL for a missing one. */
void np_rtnl_sort(const void *at, int len, const struct rtattr **to, unsigned count);

/* The same of the attributes nested in one; all NULL if that is NULL. */
void np_rtnl_sort_nested(const struct rtattr *in, const struct rtattr **to, unsigned count);

/* Copy what fits, the rest is 0. False without an attribute, and nothing is copied. */
bool np_rtnl_take(const struct rtattr *a, void *out, size_t size);

/* A text, empty without an attribute. */
void np_rtnl_take_text(const struct rtattr *a, char *out, size_t size);

/* Called for each message of an answer; returns whether it used it. */
typedef int np_rtnl_hear(void *ctx, const struct nlmsghdr *m);

/*
 * All of RTM_GETQDISC, RTM_GETTCLASS or RTM_GETTFILTER of an interface, the latter below `parent`;
 * those of other interfaces may be among them. 0, or a negative errno; -ENOENT if none was used.
 */
int
np_rtnl_dump_tc(int fd, uint16_t type, int index, uint32_t parent, np_rtnl_hear *hear, void *ctx);

/* An address of IP. */
struct np_rtnl_address {
	int family;
	unsigned size; /* 0: none */
	int zone;      /* the interface that a link-local one is of; 0: it is not */
	uint8_t bytes[16];
};

/* The route that a packet from there to there would take. As above. */
int np_rtnl_route(int fd, const struct np_rtnl_address *from, const struct np_rtnl_address *to,
		  np_rtnl_hear *hear, void *ctx);

#endif
