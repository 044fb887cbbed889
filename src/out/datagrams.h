/*
 * Where the receiver's own account of a stream of datagrams says otherwise than netperf's table.
 */
#ifndef NP_OUT_DATAGRAMS_H
#define NP_OUT_DATAGRAMS_H

#include <stdio.h>

#include "base/bag.h"
#include "base/units.h"

/* What the lines are about. */
struct np_datagrams {
	const char *bench;             /* the test's name */
	const struct np_bag *receiver; /* its evidence; NULL: none */
	const struct np_unit *unit;
	double received_bps,
	    seconds;         /* as the table has them: bits/s of payload, the test's time */
	unsigned iterations; /* the figures are of the last of so many */
};

/*
 * A line when the rate over the receiver's own time differs from the table's by more than 1 %: a
 * queue on the way goes on when the sender has ended. Another when datagrams came twice, since the
 * table's difference of sent and received is then no longer what was lost. Nothing of a receiver
 * that has no account.
 */
void np_datagrams_print(FILE *to, const struct np_datagrams *d);

#endif
