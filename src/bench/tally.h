/*
 * The tally of a run: a value that says what its workers counted, and what the kernel said of its
 * data connections. Reports, evidence, interim lines and documents read this, and no run.
 */
#ifndef NP_BENCH_TALLY_H
#define NP_BENCH_TALLY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bench/open.h"
#include "bench/ramp.h"
#include "bench/run.h"
#include "net/tcpinfo.h"
#include "stats/counters.h"
#include "stats/hist.h"

struct np_flow_result {
	uint64_t sent, received; /* bytes */
	uint64_t transactions;
	struct np_tcp_brief tcp;         /* -1: not known */
	int64_t cpu, napi_id;            /* where its packets came in (socket(7)); -1: not known */
	int64_t local_port, remote_port; /* -1: none, or not known */
	uint32_t worker;                 /* who drove it, from 0 */
};

struct np_worker_result {
	uint32_t flows;
	uint64_t sent, received, transactions;
	int64_t began_ns, ended_ns; /* of its loop, from the begin of the window on */
	int64_t user_us, system_us; /* of its thread; -1: not known */
	int cpu;                    /* where its thread was at the end; -1: not known */
	int bound;                  /* the only one that it may run on; -1: there are several */
};

/* How the connections of a ramp came about. */
struct np_ramp_result {
	uint32_t rate;        /* connections a second that were to be begun; 0: there was no ramp */
	uint32_t asked, came; /* connections that were to come about, and that did */
	struct np_ramp_failures failed;
	struct np_hist *hist; /* from the begin of each until it was up; NULL: at the far end */
};

/* Between the first worker and the last one; -1: not known. */
struct np_skew {
	int64_t begin_ns, end_ns;
};

struct np_tally {
	const struct np_plan *plan;
	const struct np_engine *engine; /* what drove its connections */
	uint64_t started_ns, ended_ns;  /* of the window; 0: it never opened */
	/* Of joined ones the longest window of those that led, and of those that followed. */
	uint64_t led_ns, followed_ns;
	struct np_counts count;
	uint64_t paced_ns;    /* of the window, that a worker waited for its pacing, on average */
	struct np_hist *hist; /* of all workers; NULL: none was taken */

	struct np_addr local, peer;
	int sndbuf, rcvbuf, prio, tos; /* as the endpoint has them */
	struct np_closing closing;
	size_t send_size, recv_size;   /* bytes of a call; 0: there are no such calls */
	size_t send_width, recv_width; /* buffers used in turn */

	struct np_flow_result *flow;     /* one row a connection; NULL: there is one flow alone */
	struct np_flow_result only;      /* the row of that one */
	uint32_t flows;                  /* how many data connections came about */
	bool met;                        /* they did, whatever became of the window */
	struct np_worker_result *worker; /* one row a worker; NULL: they were not taken */
	uint32_t workers;
	struct np_skew skew;
	struct np_spread spread;
	struct np_ramp_result ramp;
	struct np_open_result open;
};

/* What has been counted so far. Any thread may ask while the run goes on. */
struct np_counts np_counts_of(const struct np_run *run);

/*
 * The same of a run under way, but of what an end has sent by connections what the far end's kernel
 * has got of it within the window: buffers take megabytes at a time.
 */
struct np_counts np_counts_arrived(const struct np_run *run);

/* The latter of one of several connections, by its number: bytes and transactions alone. */
struct np_counts np_counts_of_flow(const struct np_run *run, uint32_t flow);

/* What a user sees of them: transactions aside, all that went through. */
static inline uint64_t
np_counts_bytes(const struct np_counts *c)
{
	return c->sent + c->received;
}

/*
 * Take the tally of a run. Its workers are done, and its sockets are still open if the kernel is to
 * be asked for its figures; the retransmissions of several flows are summed. The histogram is
 * the tally's from now on. NP_ESYS without memory for the rows: the rest is there. Release
 * with np_tally_free() whatever the return.
 */
int np_tally_take(struct np_run *run, struct np_tally *t, struct np_err *err);

/*
 * Add what another run counted at the same time: counts, times and retransmissions are summed, each
 * flow and each worker keeps its row, the window lasts from the first begin to the last end. What
 * is of each for itself (addresses, buffers, processors) stays the first one's. *from is empty
 * afterwards. NP_ESYS without memory for the rows: the rest is there.
 */
int np_tally_join(struct np_tally *into, struct np_tally *from, struct np_err *err);

/* Seconds of the window, of joined ones of the longest; 0 when it never opened. */
static inline double
np_tally_seconds(const struct np_tally *t)
{
	return (double)(t->led_ns > t->followed_ns ? t->led_ns : t->followed_ns) / 1e9;
}

/* Of these the ones in which messages of an offered load were due. */
static inline double
np_tally_sending_s(const struct np_tally *t)
{
	double seconds = np_tally_seconds(t), planned = np_plan_time_s(t->plan);

	return planned > 0 && planned < seconds ? planned : seconds;
}

/* Safe on a zeroed struct, and twice. */
void np_tally_free(struct np_tally *t);

#endif
