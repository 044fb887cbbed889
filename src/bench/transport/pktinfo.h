/*
 * Answer datagrams from the address they were sent to (-B; IP_PKTINFO, IPV6_PKTINFO). Routes might
 * prefer another of the machine's addresses, and a connected requester drops such an answer.
 */
#ifndef NP_BENCH_TRANSPORT_PKTINFO_H
#define NP_BENCH_TRANSPORT_PKTINFO_H

#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

struct np_plan;
struct np_sockopts;

/* Control data to send with the answer to a datagram. */
struct np_pktinfo {
	socklen_t from_len; /* of the address to answer */
	size_t used;        /* bytes of `control`; 0: the kernel chooses the address */
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

/* At a passive end with -B, have the kernel report the destination address of datagrams. */
void np_pktinfo_options(const struct np_plan *p, struct np_sockopts *o);

/* As recvfrom(2), where `from` has room for any address. Fills *info for the answer. */
ssize_t
np_pktinfo_recv(int fd, void *buf, size_t size, struct sockaddr *from, struct np_pktinfo *info);
/* As sendto(2): answer the datagram of *info, from the address that it was sent to. */
ssize_t
np_pktinfo_send(int fd, void *buf, size_t size, struct sockaddr *to, struct np_pktinfo *info);

#endif
