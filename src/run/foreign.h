/*
 * Foreign traffic: what an interface carried that was not the test's, by its counters minus those
 * of the connections. Of a whole test here, of a tenth of a second in run/disturbed.h.
 *
 * A super-packet, which the interface divides or has joined, counts as one packet with one header
 * if it is counted in that form, as by veth, lo and tun; hardware counts packets on the wire. So
 * the test has as many packets as segments, or as the interface counted if these are fewer. Foreign
 * bytes may be too few by the headers of foreign packets.
 */
#ifndef NP_RUN_FOREIGN_H
#define NP_RUN_FOREIGN_H

#include "base/bag.h"
#include "sys/link.h"

/* The test's own traffic in one direction. */
struct np_own {
	double packets;
	double bytes;  /* without the headers of packets */
	double header; /* bytes of a packet's headers */
	double unsure; /* further bytes that may be the test's, too */
	/* Of all bytes, those of packets dropped at this end: what comes in may be others', what
	 * goes out was dropped before it was counted. */
	double dropped;
};

enum { NP_TCP_STAMPED = 20 + 12 }; /* bytes of a header of TCP with a timestamp */

/*
 * The own traffic of `count` segments with `bytes` of payload. segment_header: the size of a TCP
 * header, or 0 for UDP datagrams. version: of IP.
 */
struct np_own np_own_of(double count, double bytes, unsigned segment_header, int version,
			const struct np_link *link);

/* Its bytes as counted by an interface that has counted this many packets in all. */
double np_own_counted(const struct np_own *own, double packets);

/*
 * Put foreign.*, from values in the bag about the flow, its connections and the interface. Puts
 * nothing if the test's own traffic is unknown. edge: the share of the bytes that one of the
 * counters may have had already when the other one began; nothing is put if it is above 0.5.
 */
void np_foreign_put(struct np_bag *bag, const struct np_link *link, double edge);

#endif
