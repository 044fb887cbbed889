/*
 * Delays of each direction by two clocks that are not synchronised. Of each transaction four times
 * are known: when the request was sent and received, and the response. The sum of both delays does
 * not depend on the clocks. Where that sum is smallest nothing waited in a queue, and half of the
 * difference of the delays shows the difference of the clocks: so offset, skew and steps of the
 * clocks can be told from queues, and from a change of the path, which changes the smallest sum for
 * good. How that sum is divided between the directions remains unknown (RFC 2681, 2.6; Moon,
 * Skelly, Towsley, "Estimation and removal of clock skew", INFOCOM 1999).
 */
#ifndef NP_STATS_ONEWAY_H
#define NP_STATS_ONEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NP_ONEWAY_LEAST = 32 }; /* transactions */

struct np_oneway {
	/* Far clock less near clock at the first and the last request, in ns, +- slack_ns. */
	double first_ns, last_ns, slack_ns;
	double skew;       /* ns a ns by which the far clock gains on the near one, on average */
	uint32_t steps;    /* how often one of the clocks was set */
	double step_ns;    /* the largest of these steps, far less near */
	uint32_t paths;    /* how often the path changed */
	double path_ns[2]; /* last path less first path, of each direction */
};

/*
 * Takes `count` transactions in the order of when_ns, when the request was sent by the near clock.
 * there_ns: its receipt by the far clock less its sending by the near clock; back_ns: the receipt
 * of the response by the near clock less its sending by the far clock. Replaces these by the delays
 * above the smallest of each direction. False: fewer than NP_ONEWAY_LEAST, or no memory.
 */
bool np_oneway(size_t count, const int64_t *when_ns, double *there_ns, double *back_ns,
	       struct np_oneway *out);

#endif
