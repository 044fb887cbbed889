/*
 * Connect to a host that has several addresses, of which not all may work. They are tried one after
 * another, without a long wait before the next one (RFC 8305). The first one that answers is used.
 */
#ifndef NP_NET_RACE_H
#define NP_NET_RACE_H

#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"

enum {
	NP_RACE_GAP_MS = 250,
	NP_RACE_TICK_MS = 250,
	NP_RACE_TEXT = 160,
	/* Of both ends' segments: what a path drops for its size is not what is said of that. A
	 * message of netperf's, 656 bytes, stays in one. */
	NP_RACE_MSS = 720
};

struct np_race {
	/* In: called several times a second while it waits; NULL. */
	void (*tick)(void *ctx);
	void *ctx;
	const char *device; /* that the connection is bound to; NULL or empty: none */

	struct np_addr used; /* the address that answered */
	/* What became of the others, "2001:db8::1: Connection refused; ..."; empty: none was tried,
	 * or could be from the local addresses. */
	char others[NP_RACE_TEXT];
};

/*
 * Connect to one of `remote`, in their order, families taking turns; from the first of `local` of
 * its family that works (NULL or empty: the kernel chooses). An address has NP_RACE_GAP_MS to
 * itself. From a local port that is given there can't be two tries at once: then each address has
 * its share of the time. Absolute deadline over all tries. Returns the connected descriptor, which
 * does not block, or -1 with err NP_ECONTROL.
 */
int np_race_connect(const struct np_addrs *remote, const struct np_addrs *local, uint64_t deadline,
		    struct np_race *r, struct np_err *err);

#endif
