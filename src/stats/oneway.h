/*
 * Delays of each direction by two clocks that are not synchronised. Of each transaction four times
 * are known: when the request left and came, when the response left and came. The sum of what the
 * two took is free of the clocks; half of their difference follows them wherever that sum is at its
 * smallest, as nothing waited then. So offset, skew and steps of the clocks are told from queues,
 * and from a path that has changed: with that the sum changes for good. What remains unknown is how
 * the smallest sum is divided between the directions (RFC 2681, 2.6; Moon, Skelly, Towsley,
 * "Estimation and removal of clock skew", INFOCOM 1999).
 */
#ifndef NP_STATS_ONEWAY_H
#define NP_STATS_ONEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NP_ONEWAY_LEAST = 32 }; /* transactions */

struct np_oneway {
	/* Of the far clock beside the near one, when the first and the last of them left, in ns:
	 * they are no more than `slack_ns` wrong. */
	double first_ns, last_ns, slack_ns;
	double skew;       /* ns a ns, on average */
	uint32_t steps;    /* how often one of the clocks was set, and the largest of these steps */
	double step_ns;    /* far beside near */
	uint32_t paths;    /* how often the path became another one */
	double path_ns[2]; /* what the last one added to each direction */
};

/*
 * Of `count` transactions in the order of when_ns, at which the request left: what each direction
 * took, as the far clock less the near one says of the request, and the near one less the far one
 * of the response. They become the delays above the smallest of each direction. False: there are
 * fewer than NP_ONEWAY_LEAST, or no memory.
 */
bool np_oneway(size_t count, const int64_t *when_ns, double *there_ns, double *back_ns,
	       struct np_oneway *out);

#endif
