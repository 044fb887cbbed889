/*
 * Datagrams answered from the address they were sent to (-B): ip(7) IP_PKTINFO and ipv6(7)
 * IPV6_PKTINFO. A machine with several addresses would else answer from the one that its routes
 * prefer, and a connected requester never see it.
 */
#ifndef NP_BENCH_TRANSPORT_PKTINFO_H
#define NP_BENCH_TRANSPORT_PKTINFO_H

#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

struct np_run;
struct np_plan;
struct np_sockopts;

/* What came with a datagram, as it has to go out with the answer. */
struct np_pktinfo {
	socklen_t from_len; /* of run->end.peer */
	size_t used;        /* bytes of `control`; 0: the kernel chooses the address */
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

/* Have the kernel tell the address, if the near end is to answer from it. */
void np_pktinfo_options(const struct np_plan *p, struct np_sockopts *o);

/* As recvfrom(2) and sendto(2) with run->end.peer. */
ssize_t
np_pktinfo_recv(struct np_run *run, int fd, void *buf, size_t size, struct np_pktinfo *info);
ssize_t
np_pktinfo_send(struct np_run *run, int fd, void *buf, size_t size, struct np_pktinfo *info);

#endif
