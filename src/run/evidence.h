/*
 * What one end learns about a test beside its result: collected around and, by the controller,
 * during the loop, which it costs nothing. The same at client and daemon.
 */
#ifndef NP_RUN_EVIDENCE_H
#define NP_RUN_EVIDENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bag.h"
#include "bench/run.h"
#include "net/addr.h"
#include "run/drive.h"

struct np_capture;
struct np_cgroup;

struct np_evidence_wants {
	unsigned caps;     /* NP_CAP_* (wire/ext.h); 0: nothing is collected */
	uint32_t every_ms; /* between two samples; 0: 100 */
	bool cycles;       /* have the processor count for each worker; not in a daemon's session */
	struct np_capture *capture;  /* opened already; NULL: none, or not permitted */
	const char *capture_why_not; /* for the bag; NULL: not asked for */
	const char *root;            /* of proc and sys, for tests; NULL: "" */
	struct np_addr near;         /* this end's address, where the flow's is a wildcard; len 0 */
	struct np_cgroup *cgroup;    /* files of this process's control group (sys/cgroup.h); NULL:
				      * they are opened for each test */
	const struct np_bag *lasting; /* facts of the host that were read before this process was
				       * confined (sys/host.h); NULL: none */
};

/*
 * Of memory, beside what a session is granted anyhow (NP_SESSION_BYTES, of which a test without
 * evidence uses 150 KiB): samples, intervals, values, the window of sequence numbers.
 */
enum { NP_EVIDENCE_BYTES = 128 << 10 };

struct np_evidence;

/*
 * Start collecting: read the counters, before the two ends of the flow meet. NULL when the plan
 * wants nothing, or without memory. The flow's worker accounts for itself in run->worker->thread.
 */
struct np_evidence *np_evidence_begin(const struct np_evidence_wants *plan, struct np_run *run);

/* The ports of the flow are known: keep the ledger of its packets from now on. ev may be NULL. */
void np_evidence_capture(struct np_evidence *ev, const struct np_run *run);

/*
 * For the controller: watches that take samples, look who disturbs the test, and for outages. ev
 * may be NULL: they stay as they are.
 */
enum { NP_EVIDENCE_WATCHES = 3 };
void np_evidence_watches(struct np_evidence *ev, struct np_watch watch[NP_EVIDENCE_WATCHES]);

/*
 * The loop is over and the flow still open: everything, as named values, the caller's to free. NULL
 * when ev is. Frees ev.
 */
struct np_bag *np_evidence_end(struct np_evidence *ev, struct np_run *run);

/* The host's facts alone, as seen from plan's address (len 0: no interface is looked at). */
void np_evidence_host(const struct np_evidence_wants *plan, int fd, struct np_bag *into);

#endif
