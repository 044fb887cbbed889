/* What a run's workers counted and the kernel knew: all reports are made from this, not the run. */
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
	int64_t cpu, napi_id;            /* that received its packets (socket(7)); -1: not known */
	int64_t local_port, remote_port; /* -1: none, or not known */
	uint32_t worker;                 /* that drove it, from 0 */
};

struct np_worker_result {
	uint32_t flows;
	uint64_t sent, received, transactions; /* bytes, bytes, count */
	uint64_t began_ns, ended_ns;           /* of its loop; 0: the window never opened */
	int64_t user_us, system_us;            /* of its thread; -1: not known */
	int cpu;                               /* where its thread was at the end; -1: not known */
	int bound;                             /* the only CPU that it may run on; -1: several */
};

/* How the connections of a ramp were established. */
struct np_ramp_result {
	uint32_t rate;               /* connections a second, as asked for; 0: no ramp */
	uint32_t asked, established; /* connections asked for, and established */
	struct np_ramp_failures failed;
	struct np_hist *hist; /* time of connect(2); NULL: at the far end */
};

/* Time between the first and the last worker; -1: not known. */
struct np_skew {
	int64_t begin_ns, end_ns;
};

/*
 * What an end had in force and counted: this one in its tally, the far one in its messages. -1 in
 * any member, a counter's too: not known, or not told.
 */
struct np_result {
	int sndbuf, rcvbuf, prio, tos; /* as the endpoint has them */
	int send_size, recv_size;      /* bytes of a call; 0: there are no such calls */
	int send_width, recv_width;    /* buffers used in turn */
	struct np_counts count;
	struct np_closing closing;
	struct np_skew skew;
};

/*
 * Add the result of another session: counts and retransmissions are summed, the skew of workers is
 * not known any more. Sizes of calls are those of the session that has such calls, the rest stays.
 */
void np_result_add(struct np_result *sum, const struct np_result *one);

struct np_tally {
	const struct np_plan *plan;
	const struct np_engine *engine; /* what drove its connections */
	uint64_t started_ns, ended_ns;  /* of the window; 0: it never opened */
	/* The longest window of the joined runs that led, and of those that followed. */
	uint64_t led_ns, followed_ns;
	struct np_result end;
	uint64_t paced_ns;    /* time in the window that a worker waited for its load, on average */
	struct np_hist *hist; /* of all workers; NULL: none was taken */

	struct np_addr local, peer;
	struct np_flow_result *flow;     /* a row for each flow; NULL: there is only one */
	struct np_flow_result only;      /* the row of that one */
	uint32_t flows;                  /* data connections that were established */
	bool established;                /* all were, even if no window opened */
	struct np_worker_result *worker; /* a row for each worker; NULL: none */
	uint32_t workers;
	struct np_spread spread;
	struct np_ramp_result ramp;
	struct np_open_result open;
};

/* What has been counted so far. Any thread may ask while the run goes on. */
struct np_counts np_counts_of(const struct np_run *run);

/* Of a run in progress: bytes sent count once acknowledged, as send buffers take megabytes. */
struct np_counts np_counts_arrived(const struct np_run *run);

/* What one of several connections has moved, by its number: only bytes and transactions. */
struct np_counts np_counts_of_flow(const struct np_run *run, uint32_t flow);

/* Bytes in both directions. */
static inline uint64_t
np_counts_bytes(const struct np_counts *c)
{
	return c->sent + c->received;
}

/*
 * Take the tally of a run whose workers are done; its sockets should be open, to read the kernel's
 * figures. Moves the histogram from the run to the tally. NP_ESYS: no memory for the rows, but the
 * rest is there. Always release it with np_tally_free().
 */
int np_tally_take(struct np_run *run, struct np_tally *t, struct np_err *err);

/*
 * Add the tally of a run at the same time: as np_result_add(), and times are summed, flows and
 * workers keep their rows, the window lasts from first begin to last end, all else is from *into.
 * *from is released. NP_ESYS: no memory for rows, but the rest is there.
 */
int np_tally_join(struct np_tally *into, struct np_tally *from, struct np_err *err);

/* Seconds of the window, the longest of joined ones; 0: it never opened. */
static inline double
np_tally_seconds(const struct np_tally *t)
{
	return (double)(t->led_ns > t->followed_ns ? t->led_ns : t->followed_ns) / 1e9;
}

/* Seconds of the window in which this end led, or followed, and messages of a load were due. */
static inline double
np_tally_sending_s(const struct np_tally *t, bool led)
{
	double seconds = (double)(led ? t->led_ns : t->followed_ns) / 1e9;
	double planned = np_plan_time_s(t->plan);

	return planned > 0 && planned < seconds ? planned : seconds;
}

/* Safe on a zeroed struct, and twice. */
void np_tally_free(struct np_tally *t);

#endif
