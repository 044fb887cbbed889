/* linux/tcp.h and netinet/tcp.h can't be included together, hence a file of its own. */
#include "net/mptcpinfo.h"

#include <errno.h>
#include <linux/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "net/addr.h"

/* The kernel's interface (linux/mptcp.h), which older headers have in part or not at all. */
enum { LEVEL = 284, INFO = 1, SUBFLOWS_TCP_INFO = 2, SUBFLOWS_ADDRESSES = 3 };
enum { FELL_BACK = 1 }; /* of info.flags */

struct info {
	uint8_t subflows; /* beside the first one */
	uint8_t signalled, accepted, subflows_max, signalled_max, accepted_max;
	uint32_t flags, token;
	uint64_t write_seq, snd_una, rcv_nxt;
	uint8_t local_used, local_max, checksums;
	uint32_t retransmits; /* from here to bytes_acked since Linux 6.5 */
	uint64_t bytes_retrans, bytes_sent, bytes_received, bytes_acked;
	uint8_t subflows_total; /* Linux 6.10 */
	uint8_t reserved[3];
};
_Static_assert(offsetof(struct info, bytes_retrans) == 48, "as the kernel lays it out");
_Static_assert(offsetof(struct info, subflows_total) == 80, "as the kernel lays it out");

/* Before each array of one element for each subflow. */
struct head {
	uint32_t size, subflows, size_kernel, size_user;
} __attribute__((aligned(8)));

enum { MOST = 16 }; /* subflows: the kernel's own path manager makes no more than 9 */

struct infos {
	struct head head;
	struct tcp_info at[MOST];
};

struct addresses {
	struct head head;
	struct {
		struct sockaddr_storage near, far;
	} at[MOST];
};

/* Bytes that the kernel filled; 0: none, and errno says why. */
static size_t
read_info(int fd, struct info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return getsockopt(fd, LEVEL, INFO, info, &len) == 0 ? len : 0;
}

/* Read a head and an element of `each` bytes a subflow; zeros without one. False with errno. */
static bool
read_array(int fd, int option, void *array, size_t size, size_t each)
{
	struct head *head = array;
	socklen_t len = (socklen_t)size;

	memset(array, 0, size);
	head->size = sizeof(*head);
	head->size_user = (uint32_t)each;
	if (getsockopt(fd, LEVEL, option, array, &len) != 0) {
		return false;
	}
	head->subflows = head->subflows < MOST ? head->subflows : MOST;
	return true;
}

static bool
read_infos(int fd, struct infos *infos)
{
	return read_array(fd, SUBFLOWS_TCP_INFO, infos, sizeof(*infos), sizeof(infos->at[0]));
}

/* The subflows that are not closed. */
static uint32_t
count_subflows(const struct infos *infos)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < infos->head.subflows; i++) {
		/* The first one stays in its place when it is closed, with counts of 0. */
		count += infos->at[i].tcpi_segs_in + infos->at[i].tcpi_segs_out > 0;
	}
	return count;
}

/*
 * Did it fall back to TCP, by what read_info() filled, or errno? A connection accepted from a
 * client without MPTCP is a TCP socket, which lacks the option. Others have a flag.
 */
static bool
fell_back(size_t filled, const struct info *info)
{
	return filled > 0 ? (info->flags & FELL_BACK) != 0
			  : errno == EOPNOTSUPP || errno == ENOPROTOOPT;
}

bool
np_mptcp_read(int fd, struct np_mptcp_brief *b)
{
	struct info info;
	struct infos infos;
	size_t len = read_info(fd, &info);

	*b = (struct np_mptcp_brief){ .retransmitted_segments = -1 };
	b->fell_back = fell_back(len, &info);
	if (b->fell_back || len == 0 || !read_infos(fd, &infos)) {
		return b->fell_back;
	}
	b->subflows = count_subflows(&infos);
	b->retransmitted_segments = 0;
	for (uint32_t i = 0; i < infos.head.subflows; i++) {
		b->retransmitted_segments += infos.at[i].tcpi_total_retrans;
	}
	return true;
}

bool
np_mptcp_acked(int fd, struct np_acked *p)
{
	struct infos infos;
	struct info info;
	size_t len = read_info(fd, &info);

	if (fell_back(len, &info)) {
		return np_tcp_acked(fd, p);
	}
	if (len < offsetof(struct info, rcv_nxt) || !read_infos(fd, &infos)) {
		return false; /* a kernel without snd_una, or it does not tell */
	}
	*p = (struct np_acked){ .bytes = info.snd_una, .waits = info.write_seq != info.snd_una };
	for (uint32_t i = 0; i < infos.head.subflows; i++) {
		p->resent += (int64_t)infos.at[i].tcpi_total_retrans - infos.at[i].tcpi_dsack_dups;
	}
	return true;
}

/* Put one address of subflow `number`; `end`: "near" or "far". */
static void
put_address(const struct sockaddr_storage *sa, uint32_t number, const char *end,
	    struct np_bag *into)
{
	struct np_addr a;

	np_addr_from(&a, (const struct sockaddr *)sa);
	np_bag_text(into, NP_ADDR_STR(&a), "mptcp.%u.%s", number, end);
}

/* Put mptcp.N.* for each, unless one was closed: fewer than were seen, or the first left out. */
static void
put_subflows(int fd, uint32_t seen, struct np_bag *into)
{
	struct infos infos;
	struct addresses addresses;

	if (!read_infos(fd, &infos)) {
		np_bag_unread(into, strerror(errno), "mptcp.subflows");
		return;
	}
	if (count_subflows(&infos) < infos.head.subflows || infos.head.subflows < seen) {
		np_bag_unread(into, "some were closed before they were looked at",
			      "mptcp.subflows");
		return;
	}
	np_bag_int(into, infos.head.subflows, "mptcp.subflows");
	for (uint32_t i = 0; i < infos.head.subflows; i++) {
		const struct tcp_info *info = &infos.at[i];

		np_bag_int(into, (int64_t)info->tcpi_bytes_sent, "mptcp.%u.bytes_sent", i);
		np_bag_int(into, (int64_t)info->tcpi_bytes_acked, "mptcp.%u.bytes_acked", i);
		np_bag_int(into, (int64_t)info->tcpi_bytes_received, "mptcp.%u.bytes_received", i);
		np_bag_int(into, info->tcpi_total_retrans, "mptcp.%u.retransmitted_segments", i);
		np_bag_int(into, info->tcpi_rtt, "mptcp.%u.rtt_us", i);
		np_bag_int(into, info->tcpi_snd_cwnd, "mptcp.%u.cwnd", i);
		np_bag_int(into, info->tcpi_snd_mss, "mptcp.%u.mss", i);
	}
	/* Both arrays are in the order in which the kernel keeps the subflows. */
	if (!read_array(fd, SUBFLOWS_ADDRESSES, &addresses, sizeof(addresses),
			sizeof(addresses.at[0])) ||
	    addresses.head.subflows != infos.head.subflows) {
		return; /* not told, or the number changed between the two calls */
	}
	for (uint32_t i = 0; i < addresses.head.subflows; i++) {
		put_address(&addresses.at[i].near, i, "near", into);
		put_address(&addresses.at[i].far, i, "far", into);
	}
}

void
np_mptcp_put(int fd, uint32_t seen, struct np_bag *into)
{
	static const struct {
		const char *name;
		size_t at;
	} rows[] = {
		{ "mptcp.bytes_sent", offsetof(struct info, bytes_sent) },
		{ "mptcp.bytes_acked", offsetof(struct info, bytes_acked) },
		{ "mptcp.bytes_received", offsetof(struct info, bytes_received) },
		{ "mptcp.bytes_retransmitted", offsetof(struct info, bytes_retrans) },
	};
	struct info info;
	size_t len = read_info(fd, &info);

	if (fell_back(len, &info)) {
		np_bag_int(into, 1, "mptcp.fallback");
		return;
	}
	if (len == 0) {
		np_bag_unread(into, strerror(errno), "mptcp");
		return;
	}
	np_bag_int(into, 0, "mptcp.fallback");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t value;

		memcpy(&value, (const char *)&info + rows[i].at, sizeof(value));
		if (rows[i].at + sizeof(value) <= len) {
			np_bag_int(into, (int64_t)value, "%s", rows[i].name);
		} else {
			np_bag_unread(into, "this kernel does not report it", "%s", rows[i].name);
		}
	}
	np_bag_int(into, info.checksums != 0, "mptcp.checksums");
	put_subflows(fd, seen, into);
}
