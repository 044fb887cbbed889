/* TCP_INFO of linux/tcp.h, which has more than libc's. Older kernels fill only the first fields. */
#ifndef NP_NET_TCPINFO_H
#define NP_NET_TCPINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bag.h"

/* Bytes acknowledged and received: while they grow, data move. 0: none yet, or unknown. */
uint64_t np_tcp_moved(int fd);

/* How long the peer's kernel is silent; 0 unless two probes or retransmissions had no answer. */
uint64_t np_tcp_silent_ns(int fd);

/* The smoothed round trip, at most twice the least: a first one may be 1 s too long. 0: unknown. */
uint64_t np_tcp_round_trip_ns(int fd);

/* The progress of a reliable connection. */
struct np_acked {
	uint64_t bytes; /* acknowledged */
	int64_t resent; /* segments sent again, except those that had arrived (RFC 2883) */
	bool waits;     /* there are data that are not acknowledged, or not sent yet */
	bool held;      /* data should be sent (again) now, and the peer has room for them */
};

/* False if the kernel does not tell; *p is unchanged. */
bool np_tcp_acked(int fd, struct np_acked *p);

/*
 * Data segments that a 32-bit counter, `seen`, has counted: it wraps around (after 8 minutes at 100
 * Gbit/s). They carried `bytes`; `mss` is a segment's present maximum, `largest` ever. -1: unclear.
 */
int64_t np_tcp_segments(uint32_t seen, uint64_t bytes, uint32_t mss, uint32_t largest);

/* The name, after "tcp.samples.", of value i of a sample. NULL: TCP_INFO's `len` bytes lack it. */
enum { NP_TCP_SAMPLED = 16 }; /* values of a sample */
const char *np_tcp_sampled(size_t i, size_t len);

/* TCP_INFO of several: sums, means of times and segment sizes, largest time-out. Zeroed: empty. */
enum { NP_TCP_FIELDS = 40 };
struct np_tcp_sum {
	int64_t total[NP_TCP_FIELDS];  /* of tcpinfo.c's fields; or the largest value */
	uint32_t known[NP_TCP_FIELDS]; /* connections that have a value in it */
	uint32_t count;                /* connections that were added */
	size_t len;                    /* bytes that the kernel filled */
	bool others; /* np_tcp_sum_since() found another number of connections before */
};

/* Add a connection, or those of another sum. False if there is no TCP_INFO. */
bool np_tcp_sum_add(struct np_tcp_sum *s, int fd);
void np_tcp_sum_join(struct np_tcp_sum *into, const struct np_tcp_sum *from);

/* Leave in its counters what they counted since `before`, a sum over the same connections, or an
 * empty one. Those for which connections differ lose their value. */
void np_tcp_sum_since(struct np_tcp_sum *s, const struct np_tcp_sum *before);

/* The values of a sample for all `conns` connections, scaled up if only some were added. */
void np_tcp_sum_sample(const struct np_tcp_sum *s, uint32_t conns, int64_t v[NP_TCP_SAMPLED]);

/* Put all values, so scaled, as tcp.*, and of fd, the first one, window scales and the like. */
void np_tcp_put(const struct np_tcp_sum *s, uint32_t conns, int fd, struct np_bag *into);

/* A sample that has only the times that add up, such as rwnd_limited_us; 0 for other values. */
void np_tcp_sum_clocks(const struct np_tcp_sum *s, int64_t v[NP_TCP_SAMPLED]);

/* Some values of each connection. -1: this kernel does not tell. */
struct np_tcp_brief {
	int64_t data_segments, retransmitted_segments, cwnd; /* segments */
	int64_t rtt_us, min_rtt_us;
	int64_t rwnd_limited_us; /* time limited by the receiver's window */
};

/* Add all TCP_INFO to `into`, too, unless that is NULL. False, and all -1, if there is none. */
bool np_tcp_read(int fd, struct np_tcp_brief *b, struct np_tcp_sum *into);

/* What several connections have carried, retransmissions included. A zeroed one is empty. */
struct np_tcp_carried {
	uint64_t bytes_out, segments_out;                 /* sent */
	uint64_t bytes_in, data_segments_in, segments_in; /* received; bytes are those in order */
	uint32_t mss;                                     /* the largest */
};

/* Add a connection. False if the kernel does not tell these values. */
bool np_tcp_carried_add(struct np_tcp_carried *c, int fd);

/* Values of MPTCP connections (RFC 8684) and their subflows, which are TCP. */
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
