/*
 * What the kernel tells of an MPTCP connection (RFC 8684) and its subflows, each of which is a TCP
 * connection of its own.
 */
#ifndef NP_NET_MPTCPINFO_H
#define NP_NET_MPTCPINFO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"
#include "net/tcpinfo.h"

struct np_mptcp_brief {
	bool fell_back;    /* it is plain TCP: the other end, or something between, has no MPTCP */
	uint32_t subflows; /* that there are; 0: it fell back, it is closed, or that is not told */
	/* Of all subflows that there are; -1: not told. */
	int64_t retransmitted_segments;
};

/* Of a connected socket that was asked for as MPTCP. False where the kernel tells nothing. */
bool np_mptcp_look(int fd, struct np_mptcp_brief *b);

/* np_tcp_acked() of such a socket: of all its subflows together. */
bool np_mptcp_acked(int fd, struct np_acked *p);

/*
 * The same in full: mptcp.* and mptcp.N.* of each subflow, as doc/evidence.md lists them. `seen` is
 * the most subflows that it had at a time (0: not known). If it has fewer now, none is put: sums
 * would lack those that are closed.
 */
void np_mptcp_put(int fd, uint32_t seen, struct np_bag *into);

#endif
