/* "Happy Eyeballs" (RFC 8305): connect by the first address that answers, tried side by side. */
#ifndef NP_NET_RACE_H
#define NP_NET_RACE_H

#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"

enum {
	NP_RACE_GAP_MS = 250,  /* between the beginnings of two attempts */
	NP_RACE_TICK_MS = 250, /* between two calls of tick() */
	NP_RACE_TEXT = 160,
	/* MSS for paths that drop large packets; netperf's message, 656 bytes, fits into it. */
	NP_RACE_MSS = 720
};

struct np_race {
	/* In: called each NP_RACE_TICK_MS while it waits, to show progress; may be NULL. */
	void (*tick)(void *ctx);
	void *ctx;
	const char *device; /* to bind the connection to; NULL or empty: none */

	/* Out: */
	struct np_addr used; /* the address that answered */
	/* Errors of other addresses that were tried, "2001:db8::1: Connection refused; ...". */
	char others[NP_RACE_TEXT];
};

/*
 * Connect to one of `remote`, in order but alternating families, from the first of `local` of its
 * family that works (NULL or empty: the kernel's choice). Attempts begin NP_RACE_GAP_MS apart; a
 * local port allows one at a time, each with a share of the time to the deadline (np_now()).
 * Returns a non-blocking descriptor, or -1 with NP_ECONTROL.
 */
int np_race_connect(const struct np_addrs *remote, const struct np_addrs *local, uint64_t deadline,
		    struct np_race *r, struct np_err *err);

#endif
