/*
 * Connect to a host that has several addresses, some of which may not work. The next one is tried
 * before the one before has failed, and the first one that answers is used ("Happy Eyeballs", RFC
 * 8305).
 */
#ifndef NP_NET_RACE_H
#define NP_NET_RACE_H

#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"

enum {
	NP_RACE_GAP_MS = 250,  /* between the beginnings of two attempts */
	NP_RACE_TICK_MS = 250, /* between two calls of tick() */
	NP_RACE_TEXT = 160,
	/* MSS of the control connection, so that it works on a path that drops large packets. A
	 * message of netperf's, 656 bytes, fits into one segment. */
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
 * Connect to one of `remote`, in order, but alternating families; from the first of `local` of its
 * family that works (NULL or empty: the kernel chooses). Attempts begin NP_RACE_GAP_MS apart; with
 * a given local port only one is possible at a time, so each gets a share of the time until the
 * deadline (np_now()). Returns the connected descriptor, which is non-blocking, or -1 with
 * NP_ECONTROL.
 */
int np_race_connect(const struct np_addrs *remote, const struct np_addrs *local, uint64_t deadline,
		    struct np_race *r, struct np_err *err);

#endif
