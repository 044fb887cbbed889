/*
 * Where the receiver's own account of a stream of datagrams says otherwise than netperf's table.
 */
#ifndef NP_OUT_DATAGRAMS_H
#define NP_OUT_DATAGRAMS_H

#include <stdio.h>

#include "base/bag.h"
#include "base/units.h"

struct np_datagrams {
	const char *bench;               /* the test's name */
	const struct np_bag *near, *far; /* evidence of both ends; NULL: none */
	const struct np_unit *unit;
	unsigned iterations; /* the evidence is of the last of these */
};

/*
 * A line when the rate over the receiver's own time differs from the table's by more than 1 %: a
 * queue on the way goes on when the sender has ended. Another when datagrams came twice, since the
 * table's difference of sent and received is then no longer what was lost. Nothing of a receiver
 * that has no account, or of one session among several.
 */
void np_datagrams_print(FILE *to, const struct np_datagrams *d);

#endif
