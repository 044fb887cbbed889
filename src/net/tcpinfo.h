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

/* The values of a sample, in the units of doc/evidence.md, and their names behind "tcp.samples.".
 */
enum { NP_TCP_SAMPLED = 11 };
const char *np_tcp_sampled(size_t i);

/* Take one; 0 for what this kernel does not tell. False when there is no TCP_INFO. */
bool np_tcp_sample(int fd, int64_t v[NP_TCP_SAMPLED]);

/* All that is known, as tcp.* */
void np_tcp_put(int fd, struct np_bag *into);

#endif
