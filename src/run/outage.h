/*
 * Outages of reliable connections under --rate: the longest time in which nothing was acknowledged
 * of what this end had sent, if some of it was sent again then, or there was no route to send it.
 * The controller of the sending end looks for them, at no cost to the loop. One that is not over
 * lasts until the end of the window. Time in which this process stood still does not count, or in
 * which the far end did not read.
 *
 * Outages of datagrams are found by what is missing (bench/sequence.h, bench/open.h).
 */
#ifndef NP_RUN_OUTAGE_H
#define NP_RUN_OUTAGE_H

#include <stdint.h>

#include "base/bag.h"
#include "bench/run.h"

enum { NP_OUTAGE_MS = 2 }; /* between two looks; subtracted from the length of an outage */

struct np_outages;

/*
 * NULL unless this end sends, at a rate, in a test that outages can be found in. run has to last as
 * long. Free with free().
 */
struct np_outages *np_outages_new(const struct np_run *run);

/* np_watch.look: look at all flows, every NP_OUTAGE_MS. */
void np_outages_look(void *outages, const struct np_run *run, uint64_t due_ns, uint64_t now_ns);

/* At the end, put flow.outage_* (doc/evidence.md), unless o is NULL or the kernel can't tell. */
void np_outages_put(struct np_outages *o, struct np_bag *into);

#endif
