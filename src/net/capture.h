/* A capture of one flow's headers and its ledger (net/ledger.h), read by a thread of its own. */
#ifndef NP_NET_CAPTURE_H
#define NP_NET_CAPTURE_H

#include <stdbool.h>

#include "base/bag.h"
#include "base/err.h"
#include "net/addr.h"
#include "net/ledger.h"

struct np_capture;

/* Bytes of the ring buffer in the kernel, and all memory that a capture takes. */
enum { NP_CAPTURE_RING = 16 << 20, NP_CAPTURE_BYTES = NP_CAPTURE_RING + (512 << 10) };

/* What is known of the flow in advance: its hosts; ports do not matter. */
struct np_capture_place {
	struct np_addr near; /* this end's; len 0, or a wildcard: by the route to `far` */
	struct np_addr far;  /* len 0: not known */
	const char *file;    /* for the headers, see pcap-savefile(5); has to last; NULL: none */
	bool lock; /* the filter to these hosts (SO_LOCK_FILTER of socket(7)), for a process that
		      may be compromised */
};

/*
 * Open it on the interface between the hosts, with CAP_NET_RAW. NP_EUNSUP: no libpcap, or not for
 * this interface; NP_ESYS with advice: not permitted; NP_EUSAGE: the file can't be written.
 */
int
np_capture_open(struct np_capture **out, const struct np_capture_place *place, struct np_err *err);

/* Its socket, for seccomp filters that have its number; -1: this build has no captures. */
int np_capture_fd(const struct np_capture *c);

/*
 * Capture that flow from now on, perhaps again; its link and MTU are ignored. NP_EUNSUP: the test
 * sends no packets, or to another host; NP_ESYS: no filter, memory or thread.
 */
int np_capture_start(struct np_capture *c, const struct np_ledger_flow *flow, struct np_err *err);

/* The warm-up ended at that time of CLOCK_MONOTONIC: count from there on. */
void np_capture_restart(struct np_capture *c, uint64_t opened_ns);

/* Stop once the kernel's buffer is read: some 50 ms, 100 on loopback. Puts the ledger as wire.* */
void np_capture_stop(struct np_capture *c, struct np_bag *into);
void np_capture_free(struct np_capture *c); /* stopped, or never started; NULL is ignored */

#endif
