#include "bench/transport/pktinfo.h"

#include <string.h>

#include "bench/plan.h"
#include "net/sock.h"

void
np_pktinfo_options(const struct np_plan *p, struct np_sockopts *o)
{
	bool wanted = p->packet_info && !p->active, six = np_family(p->family)->version == 6;

	NP_SOCKOPT(o, wanted && six, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	NP_SOCKOPT(o, wanted && !six, IPPROTO_IP, IP_PKTINFO, 1);
}

ssize_t
np_pktinfo_recv(int fd, void *buf, size_t size, struct sockaddr *from, struct np_pktinfo *info)
{
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct msghdr m = {
		.msg_name = from,
		.msg_namelen = sizeof(struct sockaddr_storage),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = info->control,
		.msg_controllen = sizeof(info->control),
	};
	ssize_t n = recvmsg(fd, &m, 0);
	struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&m) : NULL;
	struct in_pktinfo four;
	struct in6_pktinfo six;

	info->used = 0;
	info->from_len = m.msg_namelen;
	/* Turn what was received into what is sent with the answer. Routes choose the interface,
	 * except that a link-local address is only valid on its own. */
	if (c != NULL && c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
		memcpy(&four, CMSG_DATA(c), sizeof(four));
		four.ipi_ifindex = 0;
		memcpy(CMSG_DATA(c), &four, sizeof(four));
		info->used = CMSG_SPACE(sizeof(four));
	} else if (c != NULL && c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
		memcpy(&six, CMSG_DATA(c), sizeof(six));
		if (!IN6_IS_ADDR_LINKLOCAL(&six.ipi6_addr)) {
			six.ipi6_ifindex = 0;
		}
		memcpy(CMSG_DATA(c), &six, sizeof(six));
		/* A multicast address can't be a source; in IPv4 ipi_spec_dst is one of ours. */
		info->used = IN6_IS_ADDR_MULTICAST(&six.ipi6_addr) ? 0 : CMSG_SPACE(sizeof(six));
	}
	return n;
}

ssize_t
np_pktinfo_send(int fd, void *buf, size_t size, struct sockaddr *to, struct np_pktinfo *info)
{
	struct iovec iov = { .iov_base = buf, .iov_len = size };
	struct msghdr m = {
		.msg_name = to,
		.msg_namelen = info->from_len,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = info->used > 0 ? info->control : NULL,
		.msg_controllen = info->used,
	};

	return sendmsg(fd, &m, MSG_NOSIGNAL);
}
