/*
 * What an interface carried that was not the test's: its counters less what the connections say of
 * themselves. Of a whole test here, of a tenth of a second in run/disturbed.h.
 *
 * A super-packet, which is cut by the interface or was joined by it, is one packet of one header
 * where it is counted before that, as by veth, lo and tun; hardware counts what is on the wire. So
 * the test's own packets are as many as its segments, or all of the interface's where these are
 * fewer. Others' bytes come out too few by the headers of their own packets at most.
 */
#ifndef NP_RUN_FOREIGN_H
#define NP_RUN_FOREIGN_H

#include "base/bag.h"
#include "sys/link.h"

/* What one direction of the test itself was. */
struct np_own {
	double packets; /* each with all headers */
	double bytes;   /* without the headers that each packet has */
	double header;  /* of each */
	double unsure;  /* bytes that may be its own, too */
	double dropped; /* of these bytes what may have been dropped on one side of the counter */
};

enum { NP_TCP_STAMPED = 20 + 12 }; /* bytes of a header of TCP with a timestamp */

/*
 * Of that many segments with headers of that size, or datagrams (0), with this many bytes of
 * payload together; by the version of IP.
 */
struct np_own np_own_of(double count, double bytes, unsigned segment_header, int version,
			const struct np_link *link);

/* Its bytes by an interface that has counted this many packets in all. */
double np_own_counted(const struct np_own *own, double packets);

/*
 * Put foreign.*, from what the bag has of the flow, its connections and the interface. Nothing
 * where the kernel does not tell what the test's own traffic was.
 */
void np_foreign_put(struct np_bag *bag, const struct np_link *link);

#endif
