/* The kernel's values of MPTCP connections (RFC 8684) and their subflows, which are TCP. */
#ifndef NP_NET_MPTCPINFO_H
#define NP_NET_MPTCPINFO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"
#include "net/tcpinfo.h"

struct np_mptcp_brief {
	bool fell_back;    /* it is plain TCP: the other end, or the path, has no MPTCP */
	uint32_t subflows; /* present ones; 0: it fell back, is closed, or it is unknown */
	/* Of all present subflows; -1: unknown. */
	int64_t retransmitted_segments;
};

/* Read the values of a connected socket opened for MPTCP. False if the kernel does not tell. */
bool np_mptcp_read(int fd, struct np_mptcp_brief *b);

/* np_tcp_acked() for such a socket: all its subflows together; `held` is not known, thus false. */
bool np_mptcp_acked(int fd, struct np_acked *p);

/*
 * Put mptcp.*, mptcp.N.* of each subflow (doc/evidence.md). seen: the most it had at a time (0:
 * unknown). If it has fewer now, none is put: sums would lack the closed ones.
 */
void np_mptcp_put(int fd, uint32_t seen, struct np_bag *into);

#endif
