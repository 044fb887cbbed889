/*
 * What the flow's interface carried during a test that was not the test's: its counters less what
 * the connections say of themselves.
 */
#ifndef NP_RUN_FOREIGN_H
#define NP_RUN_FOREIGN_H

#include "base/bag.h"

/* How an interface counts a packet. */
struct np_link_shape {
	unsigned header; /* bytes of the link layer that it counts */
	unsigned mtu;    /* 0: not known */
};

/*
 * Put foreign.*, from what the bag has of the flow, its connections and the interface. Nothing
 * where the kernel does not tell what the test's own traffic was.
 */
void np_foreign_put(struct np_bag *bag, const struct np_link_shape *shape);

#endif
