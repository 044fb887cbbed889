/*
 * The wire ledger for people: what doc/evidence.md lists under wire.*, as a table.
 */
#ifndef NP_OUT_LEDGER_TABLE_H
#define NP_OUT_LEDGER_TABLE_H

#include <stdio.h>

#include "base/bag.h"

/*
 * Both ends' figures side by side, and where each of them was taken; rows of zeros are left out. An
 * end without a ledger is named with the reason and, where they are known, the counters of its
 * interface. Bags may be NULL: nothing is known of that end, for the far one because of far_lacks
 * (NULL or empty: not known why).
 */
void np_ledger_print(FILE *out, const struct np_bag *near, const struct np_bag *far,
		     const char *far_lacks);

/*
 * What both taps together say of each direction: wire.way.* as in doc/evidence.md. Nothing where
 * one of them is missing, or the capture itself lost packets.
 */
void np_ledger_compare(const struct np_bag *near, const struct np_bag *far, struct np_bag *into);

#endif
