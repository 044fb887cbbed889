/* What either end learns about a test besides its result, at no cost to the loop. */
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
	unsigned caps;               /* NP_CAP_* (wire/plan.h); 0: nothing is collected */
	uint32_t every_ms;           /* between two samples; 0: 100 */
	bool cycles;                 /* count cycles of each worker; a daemon's session can't */
	struct np_capture *capture;  /* opened already; NULL: none, or not permitted */
	const char *capture_why_not; /* why there is none; NULL: not asked for */
	const char *root;            /* of proc and sys, for tests; NULL: "" */
	struct np_addr near;         /* this end's address; len 0: as towards the flow's peer */
	struct np_cgroup *cgroup; /* of this process (sys/cgroup.h); NULL: opened for each test */
	const struct np_bag *lasting; /* facts of the host that were read before this process was
				       * confined (sys/host.h); NULL: none */
};

/* Memory of evidence, in addition to NP_SESSION_BYTES (150 KiB are used without evidence). */
enum { NP_EVIDENCE_BYTES = 128 << 10 };

struct np_evidence;

/* Read counters before the data connections are made. NULL: wants->caps is 0, or no memory. */
struct np_evidence *np_evidence_begin(const struct np_evidence_wants *wants, struct np_run *run);

/* Start the ledger of the flow's packets, once its ports are known. ev may be NULL. */
void np_evidence_capture(struct np_evidence *ev, const struct np_run *run);

/* Set the controller's watches: for samples, disturbances and outages. ev NULL: no effect. */
enum { NP_EVIDENCE_WATCHES = 3 };
void np_evidence_watches(struct np_evidence *ev, struct np_watch watch[NP_EVIDENCE_WATCHES]);

/* After the loop: end our data if the far end has; free ev. Free the result; NULL if ev is. */
struct np_bag *np_evidence_end(struct np_evidence *ev, struct np_run *run);

/* Put facts of the host and near's interface (len 0: none). fd: to the peer, for its MTU; or -1. */
void np_evidence_host(const struct np_evidence_wants *wants, int fd, struct np_bag *into);

#endif
