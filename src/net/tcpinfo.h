/*
 * What the kernel knows of a TCP connection beyond what libc's header has fields for: TCP_INFO of
 * linux/tcp.h. Kernels give as many bytes of it as they know; what is behind them is not told.
 */
#ifndef NP_NET_TCPINFO_H
#define NP_NET_TCPINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bag.h"

/*
 * Bytes that the far end has acknowledged and bytes received from it, added up: grows as long as
 * the connection carries anything (TCP_INFO, linux/tcp.h). 0 when the kernel does not say.
 */
uint64_t np_tcp_moved(int fd);

/* For how long the peer's kernel has not answered, if two probes or retransmissions had none. */
uint64_t np_tcp_silent_ns(int fd);

/* Its smoothed round trip; 0 where the kernel does not tell. */
uint64_t np_tcp_round_trip_ns(int fd);

/* How far a connection has got that keeps what it carries. */
struct np_acked {
	uint64_t bytes; /* as far as the far end has acknowledged all before them */
	int64_t again;  /* segments that were sent again, less those that had come (RFC 2883) */
	bool waits;     /* for an acknowledgement of what was sent, or to be sent */
	bool held;      /* it should be sent (again) now, and there is room at the peer */
};

/* False, and nothing, where the kernel does not tell it. */
bool np_tcp_acked(int fd, struct np_acked *p);

/*
 * How many segments with data a counter of 32 bits has counted, which begins again at 2^32 (after 8
 * minutes at 100 Gbit/s): they carried that many bytes, `mss` each at most as it is now, and never
 * more than `largest`. -1: these two tell different numbers.
 */
int64_t np_tcp_segments(uint32_t seen, uint64_t bytes, uint32_t mss, uint32_t largest);

/* Values of a sample, in the units of doc/evidence.md, and their names behind "tcp.samples.". */
enum { NP_TCP_SAMPLED = 16 };
const char *np_tcp_sampled(size_t i);

/*
 * TCP_INFO of several connections as if they were one: counts, rates and windows are summed, what
 * is of each for itself (times, sizes of segments) is a mean, and the retransmission time-out is
 * the largest. A zeroed one is empty.
 */
enum { NP_TCP_FIELDS = 40 };
struct np_tcp_sum {
	int64_t total[NP_TCP_FIELDS];
	uint32_t limits[NP_TCP_FIELDS]; /* how many of them told a value, not "no limit" */
	uint32_t count;
	size_t len; /* bytes that the kernel told */
};

/* Add a connection, or those of another sum. False when there is no TCP_INFO. */
bool np_tcp_sum_add(struct np_tcp_sum *s, int fd);
void np_tcp_sum_join(struct np_tcp_sum *into, const struct np_tcp_sum *from);

/* The values of a sample, and all as tcp.*, of `of` connections of which some were added. */
void np_tcp_sum_sample(const struct np_tcp_sum *s, uint32_t of, int64_t v[NP_TCP_SAMPLED]);
void np_tcp_sum_put(const struct np_tcp_sum *s, uint32_t of, struct np_bag *into);

/* What all connections of a test have alike: the shifts of the windows, congestion control. */
void np_tcp_put_alike(int fd, struct np_bag *into);

/* What tells one connection of several from the others. -1: this kernel does not tell. */
struct np_tcp_brief {
	int64_t data_segments, retransmitted_segments, cwnd; /* segments */
	int64_t rtt_us, min_rtt_us;
	int64_t rwnd_limited_us; /* held up by the receiver's window */
};

/* False, and all -1, when there is no TCP_INFO. */
bool np_tcp_look(int fd, struct np_tcp_brief *b);

/* What connections have carried with retransmissions, added up. A zeroed one is empty. */
struct np_tcp_carried {
	uint64_t bytes_out, segments_out;                 /* sent */
	uint64_t bytes_in, data_segments_in, segments_in; /* received; bytes are those in order */
	uint32_t mss;                                     /* the largest */
};

/* Add a connection. False when there is no TCP_INFO, an old kernel's that lacks these, or segments
 * are not known. */
bool np_tcp_carried_add(struct np_tcp_carried *c, int fd);

/* All that is known, as tcp.* */
void np_tcp_put(int fd, struct np_bag *into);

#endif
