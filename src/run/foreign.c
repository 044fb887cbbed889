#include "run/foreign.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* Foreign bytes up to the larger of these do not count: a share of the interface's, and bytes. */
static const double tolerance_share = 0.02, tolerance_bytes = 20e3;
static const double super_packet = 65536; /* bytes; usually the most */
static const double most_edge = 0.5;      /* a shorter window tells nothing */
static const double sack_bytes = 36;      /* of TCP options, in an acknowledgement */

/* Datagrams larger than the MTU go in fragments of multiples of 8 bytes, with one UDP header. */
struct np_own
np_own_of(double count, double bytes, unsigned segment_header, int version,
	  const struct np_link *link)
{
	double ip_header = version == 6 ? 40 : 20, fragment_header = version == 6 ? 8 : 0,
	       fragments = 1;
	double udp_header = segment_header == 0 ? 8 : 0, max_payload = link->mtu - ip_header;

	if (segment_header == 0 && link->mtu > 0 && count > 0 && bytes / count + 8 > max_payload) {
		fragments =
		    ceil((bytes / count + 8) / (floor((max_payload - fragment_header) / 8) * 8));
	}
	return (struct np_own){ .packets = count * fragments,
				.bytes = bytes + count * udp_header,
				.header = link->header + ip_header + segment_header +
					  (fragments > 1 ? fragment_header : 0) };
}

double
np_own_counted(const struct np_own *own, double packets)
{
	return own->bytes + own->header * fmin(own->packets, packets);
}

/* The number of that name in the bag; 0: it is not known. */
static double
or_0(const struct np_bag *bag, const char *name)
{
	double v = np_bag_number(bag, name);

	return isnan(v) ? 0 : v;
}

/* How many packets were dropped at this end before the interface counted them. */
static double
drops_before(const struct np_bag *bag)
{
	return or_0(bag, "moved.nic.tx_dropped") + or_0(bag, "tc.out.drops");
}

/* Add packets of `each` bytes, the test's or not, dropped after the interface counted them. */
static void
add_dropped(struct np_own *in, double packets, double each)
{
	in->bytes += packets * each;
	in->dropped += packets * each;
}

/* What the interface has carried for the test, by TCP's own counters. False: not known. */
static bool
tcp_own(const struct np_bag *bag, int version, const struct np_link *link, struct np_own *out,
	struct np_own *in)
{
	double segments_out = np_bag_number(bag, "tcp.segments_out");
	double segments_in = np_bag_number(bag, "tcp.segments_in");
	/* tcp.timestamps is of one connection only; Linux uses them by default. */
	bool stamped = or_0(bag, "tcp.timestamps") > 0 || or_0(bag, "tcp.connections") > 1;
	unsigned header = stamped ? NP_TCP_STAMPED : NP_TCP_STAMPED - 12;

	*out = np_own_of(segments_out, np_bag_number(bag, "tcp.bytes_sent"), header, version, link);
	*in =
	    np_own_of(segments_in, np_bag_number(bag, "tcp.bytes_received"), header, version, link);
	out->unsure = (segments_out - np_bag_number(bag, "tcp.data_segments_out")) * sack_bytes;
	/* If they were the test's, they were sent again. */
	out->dropped = fmin(drops_before(bag), or_0(bag, "tcp.retransmitted_segments")) *
		       (or_0(bag, "tcp.mss") + out->header);
	in->unsure = (segments_in - np_bag_number(bag, "tcp.data_segments_in")) * sack_bytes;
	/* The interface counted them, TCP dropped them: duplicates, and packets without room. */
	in->unsure += (or_0(bag, "moved.netstat.TcpExt.TCPDSACKOldSent") +
		       or_0(bag, "moved.netstat.TcpExt.TCPDSACKOfoSent")) *
		      or_0(bag, "tcp.mss");
	in->unsure += (or_0(bag, "moved.netstat.TcpExt.TCPBacklogDrop") +
		       or_0(bag, "moved.netstat.TcpExt.TCPRcvQDrop")) *
		      super_packet;
	add_dropped(in, or_0(bag, "tc.in.drops"), super_packet);
	return !isnan(out->bytes + in->bytes + out->unsure + in->unsure);
}

/* What the interface has carried for a test by UDP; of drops no bytes are counted. */
static bool
udp_own(const struct np_bag *bag, int version, const struct np_link *link, struct np_own *out,
	struct np_own *in)
{
	double sends = np_bag_number(bag, "flow.sends"),
	       receives = np_bag_number(bag, "flow.receives");
	double sent = np_bag_number(bag, "flow.bytes_sent"),
	       received = np_bag_number(bag, "flow.bytes_received");
	/* Datagrams dropped at a full buffer: only their number is known. */
	double dropped = or_0(bag, "moved.snmp.Udp.RcvbufErrors") +
			 or_0(bag, "moved.snmp.UdpLite.RcvbufErrors") +
			 or_0(bag, "moved.snmp6.Udp6RcvbufErrors") +
			 or_0(bag, "moved.snmp6.UdpLite6RcvbufErrors");
	double fragments =
	    or_0(bag, "moved.snmp.Ip.ReasmReqds") + or_0(bag, "moved.snmp6.Ip6ReasmReqds");
	double each;
	bool sized;

	*out = np_own_of(sends, sent, 0, version, link);
	out->dropped = sends > 0 ? fmin(drops_before(bag) / out->packets, 1) *
				       (out->bytes + out->packets * out->header)
				 : 0;
	/* Is the size of a datagram known? Not if the kernel joined some. */
	sized = receives > 0 && !(or_0(bag, "engine.joined_receives") > 0);
	each = sized ? received / receives : super_packet;
	if (sized) {
		received *= (receives + dropped) / receives;
		receives += dropped;
	}
	*in = np_own_of(receives, received, 0, version, link);
	/* Fragments of datagrams that stayed incomplete. */
	fragments -= in->packets > receives ? in->packets : 0;
	add_dropped(in, fmax(fragments, 0), link->header + link->mtu);
	add_dropped(in, or_0(bag, "tc.in.drops"), each + in->header + 8 /* UDP's */);
	if (!sized) {
		add_dropped(in, dropped, each); /* each may have been many datagrams */
	}
	return !isnan(sends + receives + sent + received);
}

/*
 * Put how much of an interface's bytes was foreign: 0 within tolerance, unread if it is unclear.
 * Packets that this end dropped may be the test's or others', hence `least` and `most` bytes.
 */
static void
put_foreign(struct np_bag *bag, const struct np_own *own, double edge, const char *bytes_name,
	    const char *packets_name, const char *name)
{
	double bytes = np_bag_number(bag, bytes_name), packets = np_bag_number(bag, packets_name);
	double least, most, tolerance;

	if (isnan(bytes) || isnan(packets)) {
		return; /* not counted */
	}
	least = bytes - np_own_counted(own, packets);
	most = least + own->dropped;
	tolerance = fmax(tolerance_share * bytes, tolerance_bytes) + edge * bytes;
	if (most < -tolerance) { /* the test has more than the interface counted */
		np_bag_unread(bag, "not all packets of the test used this interface", "%s", name);
	} else if (most < tolerance + own->unsure) {
		np_bag_int(bag, 0, "%s", name);
	} else if (least < tolerance + own->unsure && own->dropped > 0) {
		np_bag_unread(bag, "the packets dropped at this end may belong to the test", "%s",
			      name);
	} else {
		np_bag_int(bag, (int64_t)least, "%s", name);
	}
}

void
np_foreign_put(struct np_bag *bag, const struct np_link *link, double edge)
{
	const char *protocol = np_bag_string(bag, "flow.protocol");
	const char *device = np_bag_string(bag, "flow.device");
	int version = np_bag_number(bag, "flow.family") == 6 ? 6 : 4;
	struct np_own out, in;
	bool known;

	if (protocol == NULL || device == NULL || device[0] == '\0') {
		return;
	}
	if (strcmp(protocol, "TCP") == 0) {
		known = tcp_own(bag, version, link, &out, &in);
	} else {
		known = strncmp(protocol, "UDP", 3) == 0 && udp_own(bag, version, link, &out, &in);
	}
	if (!known || edge > most_edge) {
		return;
	}
	if (strcmp(device, "lo") == 0) {
		/* The loopback counts each packet in both directions. */
		out = in = (struct np_own){ .packets = out.packets + in.packets,
					    .bytes = out.bytes + in.bytes,
					    .header = fmax(out.header, in.header),
					    .unsure = out.unsure + in.unsure,
					    .dropped = out.dropped + in.dropped };
	}
	put_foreign(bag, &out, edge, "moved.nic.tx_bytes", "moved.nic.tx_packets",
		    "foreign.out_bytes");
	put_foreign(bag, &in, edge, "moved.nic.rx_bytes", "moved.nic.rx_packets",
		    "foreign.in_bytes");
}
