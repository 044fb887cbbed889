/*
 * netlab-link probe: what a link between two namespaces is really like. One process has a socket at
 * each end; datagrams carry their number and when they were sent, and the kernel says when they
 * came.
 */
#ifndef NP_TESTS_LINK_PROBE_H
#define NP_TESTS_LINK_PROBE_H

#include "base/err.h"

#include <stdio.h>

/*
 * Prints a JSON object. words: from=PATH to=PATH of the namespaces, source=ADDRESS target=ADDRESS,
 * parent=PID (with another parent than that it ends at once), wait ns for stragglers, and kind=
 *
 * - train: count datagrams of size bytes of payload, one each gap ns; how many came, how often, in
 *   which order, after what time
 *
 * - rate: datagrams of size for time ns, one each gap ns or as fast as it goes; those that came
 *   after the first skip ns, and in what time
 *
 * - mtu: the largest packet that may be sent in one piece, and whether such a packet arrives
 *
 * - tcp: a connection for time ns, and the largest packet that either end saw on device=NAME
 *
 * NP_EUSAGE, NP_ESYS.
 */
int np_probe(char *const *words, FILE *out, struct np_err *err);

#endif
