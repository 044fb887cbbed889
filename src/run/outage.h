/*
 * Outages of reliable connections under --rate: the longest time in which nothing that this end had
 * sent was acknowledged, and some was sent again or had no route; an open one lasts until the
 * window ends. The controller looks for them. Time in which this process stood still or the far end
 * did not read does not count. For datagrams see bench/sequence.h and bench/open.h.
 */
#ifndef NP_RUN_OUTAGE_H
#define NP_RUN_OUTAGE_H

#include <stdint.h>

#include "base/bag.h"
#include "bench/run.h"

enum { NP_OUTAGE_MS = 2 }; /* between two looks; subtracted from the length of an outage */

struct np_outages;

/* NULL unless this end sends at a rate and outages can show. run must last as long. To be freed. */
struct np_outages *np_outages_new(const struct np_run *run);

/* np_watch.look: look at all flows, every NP_OUTAGE_MS. */
void np_outages_look(void *outages, const struct np_run *run, uint64_t due_ns, uint64_t now_ns);

/* At the end, put flow.outage_* (doc/evidence.md), unless o is NULL or the kernel can't tell. */
void np_outages_put(struct np_outages *o, struct np_bag *into);

#endif
