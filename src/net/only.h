/*
 * Sockets that hear one machine only: a filter in the kernel, so that loops need no check.
 */
#ifndef NP_NET_ONLY_H
#define NP_NET_ONLY_H

#include "base/err.h"
#include "net/addr.h"

/*
 * Let in only packets from that address (any port): a classic BPF program on the IP source address
 * (socket(7), SO_ATTACH_FILTER). For a listening TCP socket strangers' SYNs are dropped unanswered,
 * for UDP their datagrams. IPv4-mapped addresses are handled. NP_ESYS; with EPERM for a TCP socket
 * where that takes CAP_NET_ADMIN, as Linux 6.18 was seen to want it.
 */
int np_sock_only_from(int fd, const struct np_addr *peer, struct np_err *err);

/* Take the filter off again, of an accepted connection, which inherits it. */
void np_sock_from_any(int fd);

#endif
