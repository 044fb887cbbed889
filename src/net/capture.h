/*
 * A capture of one flow's packets, headers only, and the ledger kept of them (libpcap, pcap(3);
 * net/ledger.h). A thread of its own reads it, so that the test's loop is not held up.
 */
#ifndef NP_NET_CAPTURE_H
#define NP_NET_CAPTURE_H

#include <stdbool.h>

#include "base/bag.h"
#include "base/err.h"
#include "net/addr.h"
#include "net/ledger.h"

struct np_capture;

/* Of memory: the kernel's buffer, most of all. */
enum { NP_CAPTURE_RING = 16 << 20, NP_CAPTURE_BYTES = NP_CAPTURE_RING + (512 << 10) };

/* What can be said of the flow before it is there: between which hosts; ports do not matter. */
struct np_capture_place {
	struct np_addr near; /* len 0, or a wildcard: what the route to `far` has */
	struct np_addr far;  /* len 0: not known */
	const char *file;    /* where headers go, too, as pcap-savefile(5); NULL: nowhere */
	bool lock; /* these two hosts are all that can ever be heard: a process taken over by
		    * strangers can't listen to others (SO_LOCK_FILTER of socket(7)) */
};

/*
 * Open what can be opened before the flow is known, while CAP_NET_RAW is there: the interface that
 * packets between the two hosts go by. NP_EUNSUP when this build has no libpcap, or such an
 * interface is not understood; NP_ESYS with one line that says what to do when it is not permitted;
 * NP_EUSAGE when it is the file that can't be written.
 */
int
np_capture_open(struct np_capture **out, const struct np_capture_place *place, struct np_err *err);

/* Its socket, for filters of system calls. */
int np_capture_fd(const struct np_capture *c);

/*
 * Hear that flow from now on, and keep the ledger. NP_ESYS without memory or a thread; NP_EUNSUP
 * when the flow goes between other hosts than those it was opened for. Its link and MTU are looked
 * up here. A capture can be started
 * again after it was stopped.
 */
int np_capture_start(struct np_capture *c, const struct np_ledger_flow *flow, struct np_err *err);

/*
 * Stop after what is in the kernel's buffer has been read, which takes some 50 ms, 100 on
 * the loopback interface; the ledger goes into the bag: wire.*
 */
void np_capture_stop(struct np_capture *c, struct np_bag *into);
void np_capture_free(struct np_capture *c); /* NULL is ignored */

#endif
