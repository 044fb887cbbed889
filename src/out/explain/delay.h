/*
 * How long data took to get there and acknowledgements to come back, from what both ends of a TCP
 * connection saw of its sequence numbers: neither end alone can tell the two directions apart.
 */
#ifndef NP_OUT_EXPLAIN_DELAY_H
#define NP_OUT_EXPLAIN_DELAY_H

#include <stddef.h>

#include "base/bag.h"

struct np_delay {
	double there_us, back_us; /* NAN: not known */
	double error_us;          /* of either; what one has too much the other one lacks */
	size_t samples;           /* of the transmitter's, that were used */
};

/*
 * tx: of the end that transmits; rx: of the one that receives. "There" is the time from a byte's
 * first sending to its being received in order: queues on the way, and what is sent again. "Back"
 * is the time from then on until the transmitter has its acknowledgement.
 *
 * Of transactions, tx is who requests or who responds. A response brings the acknowledgement of its
 * request: the way back of requests less the way there of responses is what the far end took.
 *
 * Ends that read different clocks tell nothing: from the samples alone any share of the round trip
 * may be either direction's.
 */
void np_delay_of(const struct np_bag *tx, const struct np_bag *rx, struct np_delay *d);

#endif
