/* linux/tcp.h and netinet/tcp.h can't be included together, hence a file of its own. */
#include "net/tcpinfo.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/units.h"
#include "net/addr.h"

/* Returns the bytes filled by the kernel, or 0; the rest of *info is zeros. */
static size_t
read_info(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) == 0 ? len : 0;
}

uint64_t
np_tcp_moved(int fd)
{
	struct tcp_info info;

	read_info(fd, &info);
	return info.tcpi_bytes_acked + info.tcpi_bytes_received;
}

uint64_t
np_tcp_silent_ns(int fd)
{
	struct tcp_info info;
	uint64_t in_flight; /* probes on a long path that may still be answered */

	read_info(fd, &info);
	/* np_sock_watch_peer(): one probe a second. */
	in_flight = np_min(info.tcpi_probes, (info.tcpi_rtt + 4 * info.tcpi_rttvar) / 1000000);
	return info.tcpi_retransmits + info.tcpi_probes - in_flight < 2
		   ? 0
		   : info.tcpi_last_ack_recv * UINT64_C(1000000);
}

uint64_t
np_tcp_round_trip_ns(int fd)
{
	struct tcp_info info;
	uint64_t least_us;

	read_info(fd, &info);
	least_us = info.tcpi_min_rtt > 0 ? info.tcpi_min_rtt : UINT32_MAX; /* 0: not told */
	return np_min(info.tcpi_rtt, 2 * least_us) * UINT64_C(1000);
}

bool
np_tcp_acked(int fd, struct np_acked *p)
{
	struct tcp_info info;

	if (read_info(fd, &info) < offsetof(struct tcp_info, tcpi_reord_seen)) {
		return false; /* before Linux 4.19 */
	}
	*p = (struct np_acked){ .bytes = info.tcpi_bytes_acked,
				.resent = (int64_t)info.tcpi_total_retrans - info.tcpi_dsack_dups,
				.waits = info.tcpi_unacked > 0 || info.tcpi_notsent_bytes > 0,
				/* It retransmits, or sends nothing though the window is open. */
				.held = info.tcpi_retransmits > 0 ||
					(info.tcpi_unacked == 0 && info.tcpi_notsent_bytes > 0 &&
					 info.tcpi_snd_wnd > 0) };
	return true;
}

enum kind { U32, U64, SEGMENTS /* U32 that wrap around: segments_of() */ };

/* A field of the struct, and its name in a bag. */
struct field {
	const char *name;
	size_t at;
	int64_t factor; /* to the bag's unit */
	enum kind kind;
	bool sampled, grows; /* grows: it is a counter, of the connection's whole time */
	enum { SUM, MEAN, LARGEST } several; /* how several connections are combined */
};

#define ROW(name, member, kind, factor, sampled, grows, several)                                   \
	{                                                                                          \
		name, offsetof(struct tcp_info, tcpi_##member), factor, kind, sampled, grows,      \
		    several                                                                        \
	}
#define FIELD(name, member, kind, factor, sampled)                                                 \
	ROW(name, member, kind, factor, sampled, false, SUM)
#define EACH(name, member, sampled) ROW(name, member, U32, 1, sampled, false, MEAN)
#define COUNT(name, member, kind, sampled) ROW(name, member, kind, 1, sampled, true, SUM)
#define CLOCK(name, member) ROW(name, member, U64, 1, true, true, MEAN)

/* In the order of the struct: older kernels fill only the first ones. Rates are in bytes there. */
static const struct field fields[] = {
	ROW("rto_us", rto, U32, 1, true, false, LARGEST),
	EACH("mss", snd_mss, false),
	FIELD("unacked", unacked, U32, 1, true),
	EACH("path_mtu", pmtu, false),
	EACH("rtt_us", rtt, true),
	EACH("rttvar_us", rttvar, false),
	EACH("ssthresh", snd_ssthresh, false),
	FIELD("cwnd", snd_cwnd, U32, 1, true),
	EACH("reordering", reordering, false),
	EACH("receive_space", rcv_space, false),
	COUNT("retransmitted_segments", total_retrans, U32, true),
	FIELD("pacing_rate_bps", pacing_rate, U64, 8, true),
	COUNT("bytes_acked", bytes_acked, U64, true),
	COUNT("bytes_received", bytes_received, U64, true),
	COUNT("segments_out", segs_out, SEGMENTS, false),
	COUNT("segments_in", segs_in, SEGMENTS, false),
	FIELD("notsent_bytes", notsent_bytes, U32, 1, true),
	EACH("min_rtt_us", min_rtt, false),
	COUNT("data_segments_in", data_segs_in, SEGMENTS, false),
	COUNT("data_segments_out", data_segs_out, SEGMENTS, false),
	FIELD("delivery_rate_bps", delivery_rate, U64, 8, true),
	CLOCK("busy_us", busy_time),
	CLOCK("rwnd_limited_us", rwnd_limited),
	CLOCK("sndbuf_limited_us", sndbuf_limited),
	COUNT("delivered_ce", delivered_ce, U32, false),
	COUNT("bytes_sent", bytes_sent, U64, true),
	COUNT("retransmitted_bytes", bytes_retrans, U64, true),
	COUNT("dsack_dups", dsack_dups, U32, false),
	COUNT("reordered", reord_seen, U32, false),
	COUNT("out_of_order", rcv_ooopack, U32, false),
	FIELD("send_window", snd_wnd, U32, 1, true),
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

_Static_assert(FIELDS <= NP_TCP_FIELDS, "room in a sum");

/* The least value of a counter that is at least `least` and has these 32 bits. */
static int64_t
unwrap(uint32_t seen, uint64_t least)
{
	uint64_t wraps = least > seen ? (least - seen + UINT32_MAX) >> 32 : 0;

	return (int64_t)(wraps << 32) + seen;
}

int64_t
np_tcp_segments(uint32_t seen, uint64_t bytes, uint32_t mss, uint32_t largest)
{
	/* Present options may make the MSS up to a 32nd smaller than it was. */
	const uint64_t less = 31, of = 32;
	uint64_t likely = mss > 0 ? bytes / mss / of * less : 0;
	uint64_t least = largest > mss ? bytes / largest / of * less : likely;

	if (likely < UINT32_MAX / 2) {
		return seen; /* too few bytes for it to wrap around */
	}
	return unwrap(seen, likely) == unwrap(seen, least) ? unwrap(seen, likely) : -1;
}

/* All segments: `data`, and fewer than 2^32 ACKs (one for two of `other`). -1: unknown. */
static int64_t
with_acks(uint32_t seen, int64_t data, int64_t other)
{
	return data >= 0 && other >= 0 && other >> 33 == 0 ? unwrap(seen, (uint64_t)data) : -1;
}

/* The counter of segments at that offset, unwrapped; -1: not known. */
static int64_t
segments_of(const struct tcp_info *i, size_t at)
{
	int64_t out = np_tcp_segments(i->tcpi_data_segs_out, i->tcpi_bytes_sent, i->tcpi_snd_mss,
				      i->tcpi_advmss);
	int64_t in = np_tcp_segments(i->tcpi_data_segs_in, i->tcpi_bytes_received, i->tcpi_rcv_mss,
				     i->tcpi_advmss);

	switch (at) {
	case offsetof(struct tcp_info, tcpi_data_segs_out):
		return out;
	case offsetof(struct tcp_info, tcpi_data_segs_in):
		return in;
	case offsetof(struct tcp_info, tcpi_segs_out):
		return with_acks(i->tcpi_segs_out, out, in);
	default:
		return with_acks(i->tcpi_segs_in, in, out);
	}
}

/* The value of a field, in the bag's unit; -1: not known, or no limit. */
static int64_t
value_of(const struct tcp_info *info, const struct field *f)
{
	const char *at = (const char *)info + f->at;
	uint64_t wide;
	uint32_t word;

	if (f->kind == SEGMENTS) {
		return segments_of(info, f->at);
	}
	if (f->kind == U64) {
		memcpy(&wide, at, sizeof(wide));
		/* All ones mean "no limit". */
		return wide > (uint64_t)INT64_MAX / 8 ? -1 : (int64_t)wide * f->factor;
	}
	memcpy(&word, at, sizeof(word));
	if (f->at == offsetof(struct tcp_info, tcpi_snd_ssthresh) && word >= INT32_MAX) {
		return -1; /* slow start has not ended */
	}
	return word == UINT32_MAX ? -1 : (int64_t)word * f->factor; /* min_rtt: none measured */
}

/* Is the field within the `len` bytes that the kernel filled? */
static bool
is_filled(const struct field *f, size_t len)
{
	return f->at + (f->kind == U64 ? sizeof(uint64_t) : sizeof(uint32_t)) <= len;
}

const char *
np_tcp_sampled(size_t i, size_t len)
{
	for (size_t n = 0; n < FIELDS; n++) {
		if (fields[n].sampled && i-- == 0) {
			return is_filled(&fields[n], len) ? fields[n].name : NULL;
		}
	}
	return NULL;
}

/* Add a value of field n, of `known` connections together; -1: none. */
static void
add(struct np_tcp_sum *s, size_t n, int64_t v, uint32_t known)
{
	int64_t total = s->total[n];

	s->total[n] = fields[n].several != LARGEST ? total + (v > 0 ? v : 0)
		      : v > total                  ? v
						   : total;
	s->known[n] += known;
}

/* Add a connection's TCP_INFO; len: bytes that the kernel filled. */
static void
add_info(struct np_tcp_sum *s, const struct tcp_info *info, size_t len)
{
	if (len == 0) {
		return;
	}
	s->len = len;
	s->count++;
	for (size_t n = 0; n < FIELDS; n++) {
		int64_t v = value_of(info, &fields[n]);

		add(s, n, v, v >= 0);
	}
}

bool
np_tcp_sum_add(struct np_tcp_sum *s, int fd)
{
	struct tcp_info info;
	size_t len = read_info(fd, &info);

	add_info(s, &info, len);
	return len > 0;
}

void
np_tcp_sum_join(struct np_tcp_sum *into, const struct np_tcp_sum *from)
{
	into->len = from->count > 0 ? from->len : into->len;
	into->count += from->count;
	for (size_t n = 0; n < FIELDS; n++) {
		add(into, n, from->total[n], from->known[n]);
	}
}

/* Field n for `conns` connections, of which some were added; -1 if none of these has a value. */
static int64_t
summed(const struct np_tcp_sum *s, size_t n, uint32_t conns)
{
	double mean = s->known[n] > 0 ? (double)s->total[n] / s->known[n] : -1;

	if (fields[n].several == LARGEST) {
		return s->total[n];
	}
	return (int64_t)(fields[n].several == MEAN || mean < 0 ? mean : mean * conns);
}

void
np_tcp_sum_sample(const struct np_tcp_sum *s, uint32_t conns, int64_t v[NP_TCP_SAMPLED])
{
	for (size_t n = 0; n < FIELDS; n++) {
		if (fields[n].sampled) {
			*v++ = summed(s, n, conns);
		}
	}
}

void
np_tcp_sum_clocks(const struct np_tcp_sum *s, int64_t v[NP_TCP_SAMPLED])
{
	for (size_t n = 0; n < FIELDS; n++) {
		bool clock = fields[n].grows && fields[n].several == MEAN && s->count > 0;

		if (fields[n].sampled) {
			*v++ = clock ? summed(s, n, 1) : 0;
		}
	}
}

void
np_tcp_sum_since(struct np_tcp_sum *s, const struct np_tcp_sum *before)
{
	s->others = before->count > 0 && before->count != s->count;
	for (size_t n = 0; n < FIELDS && before->count > 0; n++) {
		bool same = s->known[n] == before->known[n] && s->total[n] >= before->total[n];

		if (fields[n].grows) {
			s->total[n] = same ? s->total[n] - before->total[n] : 0;
			s->known[n] = same ? s->known[n] : 0;
		}
	}
}

void
np_tcp_put(const struct np_tcp_sum *s, uint32_t conns, int fd, struct np_bag *into)
{
	char congestion[32] = "";
	socklen_t len = sizeof(congestion) - 1;
	struct tcp_info info;

	if (s->count == 0 || read_info(fd, &info) == 0) {
		np_bag_unread(into, s->count == 0 ? "no connection is open" : strerror(errno),
			      "tcp");
		return;
	}
	for (size_t n = 0; n < FIELDS; n++) {
		if (fields[n].grows && s->known[n] == 0) {
			np_bag_unread(into,
				      fields[n].kind == SEGMENTS && !s->others
					  ? "the kernel counts them by 32 bits"
					  : "connections were opened or closed since the warm-up",
				      "tcp.%s", fields[n].name);
		} else if (fields[n].at == offsetof(struct tcp_info, tcpi_min_rtt) &&
			   s->known[n] == 0) {
			np_bag_unread(into, "no round trip was measured", "tcp.%s", fields[n].name);
		} else if (is_filled(&fields[n], s->len)) {
			np_bag_int(into, summed(s, n, conns), "tcp.%s", fields[n].name);
		} else {
			np_bag_unread(into, "this kernel does not report it", "tcp.%s",
				      fields[n].name);
		}
	}
	np_bag_int(into, info.tcpi_snd_wscale, "tcp.send_scale");
	np_bag_int(into, info.tcpi_rcv_wscale, "tcp.receive_scale");
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, &len) == 0) {
		np_bag_text(into, congestion, "tcp.congestion");
	}
	if (conns > 1) {
		np_bag_int(into, conns, "tcp.connections");
		return; /* the rest may differ between them */
	}
	np_bag_int(into, (info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0, "tcp.timestamps");
	np_bag_int(into, (info.tcpi_options & TCPI_OPT_SACK) != 0, "tcp.sack");
	np_bag_int(into, (info.tcpi_options & TCPI_OPT_WSCALE) != 0, "tcp.window_scaling");
	np_bag_int(into, (info.tcpi_options & TCPI_OPT_ECN) != 0, "tcp.ecn");
	np_bag_int(into, info.tcpi_snd_wscale, "tcp.window_scale");
	np_bag_int(into, info.tcpi_delivery_rate_app_limited, "tcp.delivery_app_limited");
}

/* A member's value; -1: the kernel filled fewer bytes. */
#define BRIEF(info, len, member)                                                                   \
	((len) >= offsetof(struct tcp_info, tcpi_##member) + sizeof((info).tcpi_##member)          \
	     ? (int64_t)(info).tcpi_##member                                                       \
	     : -1)

bool
np_tcp_read(int fd, struct np_tcp_brief *b, struct np_tcp_sum *into)
{
	struct tcp_info info;
	size_t len = read_info(fd, &info);

	if (into != NULL) {
		add_info(into, &info, len);
	}
	*b = (struct np_tcp_brief){
		.data_segments =
		    BRIEF(info, len, data_segs_out) < 0
			? -1
			: segments_of(&info, offsetof(struct tcp_info, tcpi_data_segs_out)),
		.retransmitted_segments = BRIEF(info, len, total_retrans),
		.cwnd = BRIEF(info, len, snd_cwnd),
		.rtt_us = BRIEF(info, len, rtt),
		.min_rtt_us = BRIEF(info, len, min_rtt),
		.rwnd_limited_us = BRIEF(info, len, rwnd_limited),
	};
	if (b->min_rtt_us == UINT32_MAX) {
		b->min_rtt_us = -1; /* not measured yet */
	}
	return len > 0;
}

bool
np_tcp_carried_add(struct np_tcp_carried *c, int fd)
{
	struct tcp_info info;
	size_t len = read_info(fd, &info);
	int64_t out = segments_of(&info, offsetof(struct tcp_info, tcpi_segs_out));
	int64_t in = segments_of(&info, offsetof(struct tcp_info, tcpi_segs_in));

	if (len < offsetof(struct tcp_info, tcpi_bytes_retrans) || out < 0 || in < 0) {
		return false; /* before Linux 4.19, or a counter may have wrapped */
	}
	c->bytes_out += info.tcpi_bytes_sent;
	c->segments_out += (uint64_t)out;
	c->bytes_in += info.tcpi_bytes_received;
	c->data_segments_in +=
	    (uint64_t)segments_of(&info, offsetof(struct tcp_info, tcpi_data_segs_in));
	c->segments_in += (uint64_t)in;
	c->mss = info.tcpi_snd_mss > c->mss ? info.tcpi_snd_mss : c->mss;
	c->mss = info.tcpi_rcv_mss > c->mss ? info.tcpi_rcv_mss : c->mss;
	return true;
}

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
read_mptcp(int fd, struct info *info)
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
 * Did it fall back to TCP, by what read_mptcp() filled, or errno? A connection accepted from a
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
	size_t len = read_mptcp(fd, &info);

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
	size_t len = read_mptcp(fd, &info);

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
	size_t len = read_mptcp(fd, &info);

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
