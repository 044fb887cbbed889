/*
 * Outages of connections that keep what they carry: the longest time in which nothing that a paced
 * end (--rate) had sent was acknowledged, and some of it was sent again, or it had no way to send
 * any of it. Looked for by the
 * controller of the sending end, so that it costs the loop nothing. What is under way at the end of
 * it, or while this process stood still, is none; nor is what a far end does that does not read.
 *
 * Datagrams' are seen by what is missing (bench/sequence.h, bench/open.h).
 */
#ifndef NP_RUN_OUTAGE_H
#define NP_RUN_OUTAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"
#include "bench/run.h"

enum { NP_OUTAGE_MS = 2 }; /* between two looks, of which an outage is shorter by one */

struct np_outages;

/* Is it such a test, and this end the one that sends? */
bool np_outages_wanted(const struct np_plan *p);

/* NULL without memory. Free with free(). */
struct np_outages *np_outages_new(const struct np_run *run);

void np_outages_look(struct np_outages *o, const struct np_run *run, uint64_t now_ns);

/* As flow.outage_* (doc/evidence.md). Nothing where o is NULL, or the kernel told nothing. */
void np_outages_put(const struct np_outages *o, struct np_bag *into);

#endif
