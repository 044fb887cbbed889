/*
 * Foreign traffic: what an interface carried besides the test, by its counters minus those of the
 * connections; here of a whole test, in run/disturbed.h of a tenth of a second. A super-packet is
 * one packet with one header where it is counted in that form (veth, lo, tun), but hardware counts
 * packets on the wire. So the test has as many packets as segments, or as the interface counted if
 * fewer. Foreign bytes may lack the headers of foreign packets.
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
	/* Bytes dropped here: incoming ones may be others', outgoing ones were not counted yet. */
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
 * Put foreign.*: 0 within tolerance, unread if unclear; nothing if the test's traffic is unknown or
 * edge, the share of bytes between the starts of the interface's and the test's counts, > 0.5.
 */
void np_foreign_put(struct np_bag *bag, const struct np_link *link, double edge);

#endif
