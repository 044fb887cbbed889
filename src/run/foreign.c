#include "run/foreign.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/*
 * A super-packet, which is cut by the interface or was joined by it, is one packet of one header
 * where it is counted before that, as by veth, lo and tun; hardware counts what is on the wire. So
 * the test's own packets are as many as its segments, or all of the interface's where these are
 * fewer. Others' bytes come out too few by the headers of their own packets at most.
 */

static const double tolerance_share = 0.02, tolerance_bytes = 20e3;
static const double super_packet = 65536; /* bytes, at most, mostly */
static const double sack_bytes = 36;      /* of options, in an acknowledgement */

/* What one direction of the test itself was. */
struct own {
	double packets; /* each with all headers */
	double bytes;   /* without the headers that each packet has */
	double header;  /* of each */
	double unsure;  /* bytes that may be its own, too */
	double dropped; /* of these bytes what may have been dropped on one side of the counter */
};

static double
or_0(const struct np_bag *bag, const char *name)
{
	double v = np_bag_number(bag, name);

	return isnan(v) ? 0 : v;
}

/* What the receiver's TCP throws away has been counted by the interface, and not by it. */
static double
thrown_away(const struct np_bag *bag, double mss)
{
	const double some = or_0(bag, "moved.netstat.TcpExt.TCPDSACKOldSent") +
			    or_0(bag, "moved.netstat.TcpExt.TCPDSACKOfoSent");
	const double large = or_0(bag, "moved.netstat.TcpExt.TCPBacklogDrop") +
			     or_0(bag, "moved.netstat.TcpExt.TCPRcvQDrop");

	return some * mss + large * super_packet;
}

/* Packets that never became bytes of the interface. */
static double
drops(const struct np_bag *bag)
{
	return or_0(bag, "moved.nic.tx_dropped") + or_0(bag, "tc.out.drops");
}

/* What came in, and was dropped behind the interface's counter: its own, or others'. */
static void
drop_behind(struct own *in, double packets, double each)
{
	in->bytes += packets * each;
	in->dropped += packets * each;
}

static bool
tcp_own(const struct np_bag *bag, double header, struct own *out, struct own *in)
{
	double acks_out =
	    np_bag_number(bag, "tcp.segments_out") - np_bag_number(bag, "tcp.data_segments_out");
	double acks_in =
	    np_bag_number(bag, "tcp.segments_in") - np_bag_number(bag, "tcp.data_segments_in");

	header +=
	    20 + (or_0(bag, "tcp.timestamps") > 0 || or_0(bag, "tcp.connections") > 1 ? 12 : 0);
	out->packets = np_bag_number(bag, "tcp.segments_out");
	in->packets = np_bag_number(bag, "tcp.segments_in");
	out->bytes = np_bag_number(bag, "tcp.bytes_sent");
	in->bytes = np_bag_number(bag, "tcp.bytes_received");
	out->header = in->header = header;
	out->unsure = acks_out * sack_bytes;
	/* What was dropped here was sent again. */
	out->dropped = fmin(drops(bag), or_0(bag, "tcp.retransmitted_segments")) *
		       (or_0(bag, "tcp.mss") + header);
	in->dropped = 0;
	in->unsure = acks_in * sack_bytes + thrown_away(bag, or_0(bag, "tcp.mss"));
	drop_behind(in, or_0(bag, "tc.in.drops"), super_packet);
	return !isnan(out->bytes + in->bytes + out->unsure + in->unsure);
}

/* Datagrams: `count` of them, of `bytes` bytes together; one too large for the link goes in
 * fragments. */
static void
datagrams(double count, double bytes, double ip_header, const struct np_link_shape *shape,
	  struct own *own)
{
	double each = count > 0 ? bytes / count + 8 : 0, room = shape->mtu - ip_header;
	double fragments = 1;

	if (shape->mtu > 0 && each > room) {
		room = floor((room - (ip_header > 20 ? 8 : 0)) / 8) * 8;
		fragments = ceil(each / room);
	}
	own->packets = count * fragments;
	own->bytes = bytes + count * 8;
	own->header = shape->header + ip_header + (fragments > 1 && ip_header > 20 ? 8 : 0);
	own->unsure = own->dropped = 0;
}

static bool
udp_own(const struct np_bag *bag, double ip_header, const struct np_link_shape *shape,
	struct own *out, struct own *in)
{
	double sends = np_bag_number(bag, "flow.sends"),
	       receives = np_bag_number(bag, "flow.receives");
	double sent = np_bag_number(bag, "flow.bytes_sent"),
	       received = np_bag_number(bag, "flow.bytes_received");
	/* Of what found the buffer full no more is known than how often that was. */
	double dropped = or_0(bag, "moved.snmp.Udp.RcvbufErrors") +
			 or_0(bag, "moved.snmp.UdpLite.RcvbufErrors") +
			 or_0(bag, "moved.snmp6.Udp6RcvbufErrors") +
			 or_0(bag, "moved.snmp6.UdpLite6RcvbufErrors");
	double each;
	bool sized;

	datagrams(sends, sent, ip_header, shape, out);
	out->dropped = sends > 0 ? fmin(drops(bag) / out->packets, 1) *
				       (out->bytes + out->packets * out->header)
				 : 0;
	sized = receives > 0 && !(or_0(bag, "engine.joined_receives") > 0);
	each = sized ? received / receives : super_packet;
	if (sized) {
		received *= (receives + dropped) / receives;
		receives += dropped;
	}
	datagrams(receives, received, ip_header, shape, in);
	drop_behind(in, or_0(bag, "tc.in.drops"), each + in->header + 8);
	if (!sized) {
		drop_behind(in, dropped, each); /* one may have been many datagrams */
	}
	return !isnan(sends + receives + sent + received);
}

/* What both directions have, on an interface that counts its own packets as received, too. */
static struct own
both(const struct own *a, const struct own *b)
{
	return (struct own){ .packets = a->packets + b->packets,
			     .bytes = a->bytes + b->bytes,
			     .header = a->header > b->header ? a->header : b->header,
			     .unsure = a->unsure + b->unsure,
			     .dropped = a->dropped + b->dropped };
}

static void
put(struct np_bag *bag, const struct own *own, const char *bytes_name, const char *packets_name,
    const char *name)
{
	double bytes = np_bag_number(bag, bytes_name), packets = np_bag_number(bag, packets_name);
	double least, most, tolerance;

	if (isnan(bytes) || isnan(packets)) {
		return; /* none at all, or it can't be read, and that is said of them */
	}
	least = bytes - own->bytes - own->header * fmin(own->packets, packets);
	most = least + own->dropped;
	tolerance = fmax(tolerance_share * bytes, tolerance_bytes);
	if (most < -tolerance) {
		np_bag_unread(bag, "not all packets of the test used this interface", "%s", name);
	} else if (most < tolerance + own->unsure) {
		np_bag_int(bag, 0, "%s", name);
	} else if (least < tolerance + own->unsure && own->dropped > 0) {
		np_bag_unread(bag, "the packets dropped at this end may belong to the test", "%s",
			      name);
	} else {
		np_bag_int(bag, least < tolerance + own->unsure ? 0 : (int64_t)least, "%s", name);
	}
}

void
np_foreign_put(struct np_bag *bag, const struct np_link_shape *shape)
{
	const char *protocol = np_bag_string(bag, "flow.protocol");
	const char *device = np_bag_string(bag, "flow.device");
	double ip_header = np_bag_number(bag, "flow.family") == 6 ? 40 : 20;
	struct own out, in;
	bool known;

	if (protocol == NULL || device == NULL || device[0] == '\0') {
		return;
	}
	if (strcmp(protocol, "TCP") == 0) {
		known = tcp_own(bag, shape->header + ip_header, &out, &in);
	} else {
		known =
		    strncmp(protocol, "UDP", 3) == 0 && udp_own(bag, ip_header, shape, &out, &in);
	}
	if (!known) {
		return;
	}
	if (strcmp(device, "lo") == 0) {
		out = in = both(&out, &in);
	}
	put(bag, &out, "moved.nic.tx_bytes", "moved.nic.tx_packets", "foreign.out_bytes");
	put(bag, &in, "moved.nic.rx_bytes", "moved.nic.rx_packets", "foreign.in_bytes");
}
