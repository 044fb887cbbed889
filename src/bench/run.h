/* A run: a plan in progress at one end, its endpoint, window, and workers (bench/worker.h). */
#ifndef NP_BENCH_RUN_H
#define NP_BENCH_RUN_H

#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "bench/bench.h"
#include "bench/plan.h"
#include "bench/stop.h"
#include "bench/terms.h"
#include "bench/worker.h"
#include "net/addr.h"
#include "net/sock.h"
#include "net/sources.h"
#include "sys/cpu.h"
#include "wire/plan.h"

/* A random key of the passive end, sent to the client: proves that a peer belongs to the test. */
struct np_key {
	uint32_t count; /* bytes; 0: there is none */
	uint8_t at[NP_GRANT_KEY];
};

/* What the data connections of one end have in common. */
struct np_endpoint {
	int listen_fd;          /* -1: none */
	bool borrowed_listener; /* the caller owns it, and closes it */
	bool borrowed;          /* the caller owns the data socket, too (raw frames) */
	int held_fd;            /* the caller's, kept open in workers' own tables; -1: none */
	struct np_sockopts opts;
	struct np_addr local, peer; /* of the data socket; peer.len 0: not known yet */
	int sndbuf, rcvbuf;         /* as set by the kernel */
	int prio, tos;              /* as set by the kernel; -1 not asked for, -2 refused */
	/* Peers that may connect or send, if the kernel does not filter; empty: not checked. */
	struct np_sources sources;
	void *state;     /* the transport's state, released by its close; NULL: none */
	bool port_moved; /* the port was in use: another one was taken */

	/* Peers must echo it to get datagrams; raw frames carry it as their tag. 0: none. */
	uint64_t token;
	struct np_key key; /* for handshakes of the data connections */
	bool shows;        /* the active end sends this token first (wire/token.h) */
	struct np_token shown;
};

enum { NP_DETAIL_MAX = 160 };

/*
 * The measured part, by CLOCK_MONOTONIC; the same for all connections. Requests of an open loop
 * belong to it by the time they were due, datagrams of a stream by their numbers. Everything else
 * counts if it completes between np_worker_mark() and the end.
 */
struct np_window {
	uint64_t started_ns, ended_ns;
	uint64_t opened_ns; /* set at its end: where the figures begin (settle_window()) */
	uint64_t length_ns; /* as asked for; 0: not ended by time */
};

/* The end of a window that opens at that time; UINT64_MAX: time does not end it. */
static inline uint64_t
np_window_closes(const struct np_window *win, uint64_t opens_ns)
{
	return win->length_ns > 0 ? opens_ns + win->length_ns : UINT64_MAX;
}

/* What the kernel knew when the data connection was closed, and about the time of the test. */
struct np_closing {
	int sndbuf_end, rcvbuf_end; /* before it was closed */
	struct np_cpu_use cpu;      /* of this machine, if measured */
	struct tcp_info info;       /* TCP_INFO; all 0: not known */
	int mss;                    /* TCP_MAXSEG; -1 not known */
	uint64_t moved;             /* np_tcp_moved() of one connection */
	int retrans;                /* TCP retransmissions; -1 not known */
	int64_t min_rtt_us;         /* of all connections of a connection test; 0 not known */
	char cong[NP_CONG_MAX];     /* congestion control; empty: not known */
	/* What the transport did: "2 subflows", "TLS 1.3 ...". Empty: nothing to add. */
	char detail[NP_DETAIL_MAX];
	bool degraded;     /* less than what was asked for, which the client reports */
	uint32_t subflows; /* of MPTCP: the most seen at a time, over all connections */
};

/* How the data connections are spread over the receive queues of the end that connects. */
struct np_spread {
	uint32_t queues;      /* queues in use; 0: not known */
	uint32_t has;         /* queues of the interface; 0: not known */
	uint32_t collisions;  /* connections beyond their queue's even share */
	uint32_t reconnected; /* connections made again, each time */
};

struct np_run {
	const struct np_plan *plan;
	const struct np_terms *terms; /* never NULL in an open one */
	const struct np_side *side;
	const struct np_engine *engine;
	struct np_stop *stop;
	struct np_endpoint end;
	struct np_window window;
	struct np_worker *worker; /* each drives some of the connections */
	uint32_t workers;         /* how many */
	struct np_conn *conn;     /* the data connections; in connection tests, series of them */
	uint32_t conns;           /* how many */
	struct np_closing closing;
	struct np_tcp_brief *before; /* of each connection when its warm-up ended; or NULL */
	int retrans_before;          /* as closing.retrans; of the warm-up */
	struct np_spread spread;
	/* Two round trips of the control connection, the least wait for an answer; 0: not known. */
	uint64_t round_trips_ns;
	bool resets;       /* the far end accepts a reset as the end of data */
	_Atomic bool cut;  /* data still in flight at the end are discarded */
	int control_fd;    /* shows whether the path is silent; -1: none */
	struct np_err err; /* why the run failed; code NP_OK: no failure */
};

#define NP_EACH_WORKER(w, run)                                                                     \
	for (struct np_worker * (w) = (run)->worker; (w) < (run)->worker + (run)->workers; (w)++)

/* The connections of a run, or of a worker; NULL: none were made. */
#define NP_EACH_CONN(c, of)                                                                        \
	for (struct np_conn * (c) = (of)->conn; (c) != NULL && (c) < (of)->conn + (of)->conns;     \
	     (c)++)

/* Does this error of recv(2) mean an orderly end of the far end's data? */
static inline bool
np_run_has_ended(const struct np_run *run, int fd, int error)
{
	const struct np_transport *t = run->plan->transport;

	return t->ends.is_end != NULL && t->ends.is_end(fd, error);
}

/* Does the daemon make this end's data sockets, and hand them over? */
static inline bool
np_is_handed(const struct np_run *run)
{
	return !run->plan->active && run->terms->data_fd > 0;
}

/* Are datagram sockets connected (connect(2)), so that sends need no address (run->end.peer)? */
static inline bool
np_run_connected(const struct np_run *run)
{
	const struct np_transport *t = run->plan->transport;

	if (run->plan->flows > 1 && (run->plan->active || run->plan->role == NP_LEAD)) {
		return true; /* each flow sends to another port, and end.peer has only one */
	}
	return t->pinned || (run->plan->near.sock.connected && !t->link);
}

/*
 * The first data connection, if the controller may look at it; else -1. Workers own those of
 * connection tests, in their own descriptor table, and those that the daemon accepts of a ramp.
 */
static inline int
np_run_lasting_fd(const struct np_run *run)
{
	bool accepts_ramp = run->plan->ramp > 0 && !run->plan->active;

	return run->plan->pattern->connection_test || accepts_ramp ? -1 : run->conn->fd;
}

/*
 * Bytes of memory for the rings, connections and further workers of the near end. Opens a socket to
 * learn the size of its buffers, if rings depend on it (NP_ESYS: that failed).
 */
int np_run_bytes(const struct np_plan *plan, const struct np_terms *terms, uint64_t *bytes,
		 struct np_err *err);

/* Allocate memory, open the near endpoint. terms may be NULL. On failure all is released. */
int np_run_open(struct np_run *run, const struct np_plan *plan, const struct np_terms *terms,
		struct np_stop *stop, struct np_err *err);

/* The far end has only `flows` flows, at least one: use no more. */
void np_run_trim(struct np_run *run, uint32_t flows);

/* Connect or accept, and upgrade, all connections; once np_stopped(), some may be missing. */
int np_run_establish(struct np_run *run, struct np_err *err);

/* Tell the run and all its workers to stop (np_stop()). */
void np_run_stop(struct np_run *run, int level);

/* Did a loop end because the far end closed a connection, or sent an end mark? */
bool np_run_hung_up(const struct np_run *run);

/* Have the loops discard datagrams not from run->end.sources. NP_EUNSUP: the engine cannot. */
int np_run_check_sources(struct np_run *run, struct np_err *err);

/* Does a datagram from that address count? Any does if the kernel filters (no run->end.sources). */
static inline bool
np_run_accepts_from(const struct np_run *run, const struct np_addr *from)
{
	return run->end.sources.count == 0 || np_sources_have(&run->end.sources, from);
}

/* Discard what sockets for IP datagrams have received before the far end sends: it is others'. */
void np_run_drop_early(const struct np_run *run);

/* The size or width in use here; what was asked for if this end uses none (here is 0). */
static inline int32_t
np_run_used(size_t here, int32_t asked)
{
	return here > 0 ? (int32_t)here : asked;
}

/*
 * Put off the deadline of a wait on that connection; fd -1: on the control connection alone. While
 * the path is silent, wait as long again and a second, as TCP doubles its time-outs, up to a
 * silence of plan->silence_s; not after a signal. Returns the new deadline, at least until_ns.
 */
uint64_t np_run_extend(const struct np_run *run, int fd, uint64_t until_ns);

/* Close the sockets; the counts stay. The kernel is asked for its figures first. */
void np_run_close(struct np_run *run);

/* Only the data connections: the listener and the state of the transport stay. */
void np_run_close_conns(struct np_run *run);

/* Reset the data connections: what has not arrived is discarded. */
void np_run_reset(struct np_run *run);

/* Close and release everything. Safe on a zeroed struct, and twice. */
void np_run_free(struct np_run *run);

/* Shut down the sending half of fd (np_transport.ends.shut). stop: the run's or a worker's. */
enum { NP_SHUT_S = 10 }; /* how long that may take for all sockets of an end */
void
np_run_shut_one(const struct np_run *run, const struct np_stop *stop, int fd, uint64_t until_ns);

/* Fill run->closing from the first data connection (sizes, MSS, retransmissions), if it is open. */
void np_run_read_closing(struct np_run *run);

/* If the far end has ended its data, end ours. Sockets stay open for the kernel's figures. */
void np_run_shut_if_hung_up(struct np_run *run);

#endif
