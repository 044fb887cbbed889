/*
 * A run: a plan in progress at one end. It has the endpoint that its data connections come from,
 * the window in which they are counted, and the workers that drive them (bench/worker.h).
 */
#ifndef NP_BENCH_RUN_H
#define NP_BENCH_RUN_H

#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

/* Drawn by the passive end for one test, and told to the active one: proves who has it. */
struct np_key {
	uint32_t count; /* bytes; 0: there is none */
	uint8_t at[NP_GRANT_KEY];
};

/* What the data connections of one end have in common. */
struct np_endpoint {
	int listen_fd; /* -1: none */
	bool borrowed_listener;
	bool borrowed; /* the caller closes the connection's descriptor */
	int held_fd;   /* the caller's; no socket of a worker may get its number; -1: none */
	struct np_sockopts opts;
	struct np_addr local, peer; /* of the data socket; peer.len 0: not known yet */
	int sndbuf, rcvbuf;         /* as read back when the endpoint was made */
	int prio, tos;              /* read back; -1 not asked for, -2 could not be set */
	/* Which peers may connect, or send where the kernel lets all in; none: not checked. */
	struct np_sources sources;
	void *own;       /* the transport's, which its close releases; NULL: nothing */
	bool port_moved; /* the port asked for was in use: another one was taken */

	/* No datagrams are sent to a peer that has not sent this back, and frames without IP bear
	 * it as their tag; 0: no such thing was agreed on. */
	uint64_t token;
	struct np_key key; /* of handshakes on the data connections */
	bool shows;        /* an active end: that token comes first (wire/token.h) */
	struct np_token shown;
};

enum { NP_DETAIL_MAX = 160 };

/*
 * The measured part, by CLOCK_MONOTONIC; the same for all connections. What is the window's is said
 * by what moves, wherever that can be: requests of an open loop by when they were due, datagrams of
 * a stream by their numbers. Nothing else of these is ever counted. The rest counts what completes
 * between np_worker_mark() and the end.
 */
struct np_window {
	uint64_t started_ns, ended_ns;
	uint64_t opened_ns; /* when it is over: what the figures count from */
	uint64_t length_ns; /* that was asked for; 0: no clock ends it */
};

/* When the clock closes a window that opens at that time. */
static inline uint64_t
np_window_closes(const struct np_window *win, uint64_t opens_ns)
{
	return win->length_ns > 0 ? opens_ns + win->length_ns : UINT64_MAX;
}

/* What the kernel knew when the data connection was closed, and of the time of the test. */
struct np_closing {
	int sndbuf_end, rcvbuf_end; /* as read back before it was closed */
	struct np_cpu_use cpu;      /* this machine's, if the test measures it */
	struct tcp_info info;       /* TCP_INFO; all 0: not known */
	int mss;                    /* TCP_MAXSEG; -1 not known */
	int retrans;                /* TCP retransmissions; -1 not known */
	char cong[NP_CONG_MAX];     /* congestion control; empty: not known */
	/* What the transport came to: "2 subflows", "TLS 1.3, encrypted by the kernel". Empty:
	 * there is nothing to add to its name. */
	char detail[NP_DETAIL_MAX];
	bool degraded;     /* it is less than what was asked for, which the client says aloud */
	uint32_t subflows; /* of MPTCP, of all connections: the most that were seen at a time */
};

/* On which receive queues of the end that connects its data connections lie. */
struct np_spread {
	bool agreed;          /* the far end waits for those that are kept */
	uint32_t queues;      /* on which there are any; 0: no queues are told */
	uint32_t has;         /* that the interface has; 0: not known */
	uint32_t collisions;  /* connections beyond their queue's even share */
	uint32_t reconnected; /* connections that were made again, each time */
};

struct np_run {
	const struct np_plan *plan;
	const struct np_terms *terms; /* never NULL in an open one */
	const struct np_side *side;
	const struct np_engine *engine;
	struct np_stop *stop;
	struct np_endpoint end;
	struct np_window window;
	struct np_worker *worker; /* they drive the connections, each a part of them */
	uint32_t workers;         /* how many */
	struct np_conn *conn;     /* the data connections; in connection tests the series of them */
	uint32_t conns;           /* how many */
	struct np_closing closing;
	struct np_spread spread;
	/* Two of the control connection's, which any wait for an answer lasts at least; 0. */
	uint64_t round_trips_ns;
	bool resets;      /* the far end takes a reset for the end of what this one sends */
	_Atomic bool cut; /* what had not arrived at the end of the window is thrown away */
	int control_fd;   /* by which a wait learns that the path is silent; -1: by no such thing */
	struct np_err err; /* why the run failed; code NP_OK: it did not */
};

/* Go over all workers of a run. */
#define NP_EACH_WORKER(w, run)                                                                     \
	for (struct np_worker * (w) = (run)->worker; (w) < (run)->worker + (run)->workers; (w)++)

/* Was what recv(2) failed by the orderly end of the far end's data? */
static inline bool
np_run_has_ended(const struct np_run *run, int fd, int error)
{
	const struct np_transport *t = run->plan->transport;

	return t->has_ended != NULL && t->has_ended(fd, error);
}

/* Does the daemon make this end's data sockets, and hand them over? */
static inline bool
np_is_handed(const struct np_run *run)
{
	return !run->plan->active && run->terms->data_fd > 0;
}

/* Do sends go where the socket is connected to, rather than to run->end.peer? */
static inline bool
np_run_connected(const struct np_run *run)
{
	enum np_pin pin = run->plan->transport->pin;

	if (run->plan->flows > 1 && (run->plan->active || run->plan->role == NP_LEAD)) {
		return true; /* each flow has a port of its own to send to */
	}
	return pin == NP_PIN_ASKED ? run->plan->near.sock.connected : pin == NP_PIN_ALWAYS;
}

/*
 * By what the controller may look at the first data connection while the window is open; -1: by
 * nothing. Those of connection tests come and go, in the worker's own table of descriptors; those
 * that a ramp brings are the workers' until they are done.
 */
static inline int
np_run_lasting_fd(const struct np_run *run)
{
	bool comes = run->plan->ramp > 0 && !run->plan->active;

	return run->plan->pattern->connection_test || comes ? -1 : run->conn->fd;
}

/*
 * Bytes of memory that the rings and connections of such a test's near end would take. Socket
 * buffers' sizes, which some rings follow, are asked for by a socket that is closed again. terms
 * may be NULL. NP_ESYS where there is none.
 */
int np_run_bytes(const struct np_plan *plan, const struct np_terms *terms, uint64_t *bytes,
		 struct np_err *err);

/*
 * Take memory and open the near endpoint. terms may be NULL: none. On failure everything is
 * released again.
 */
int np_run_open(struct np_run *run, const struct np_plan *plan, const struct np_terms *terms,
		struct np_stop *stop, struct np_err *err);

/* The far end takes part in `flows` flows only, at least one: limit the run to them. */
void np_run_trim(struct np_run *run, uint32_t flows);

/*
 * Connect or accept, and upgrade the connections that have come about. Blocks until np_stopped();
 * then there may be none.
 */
int np_run_meet(struct np_run *run, struct np_err *err);

/* Tell the run and all its workers to stop (np_stop()). */
void np_run_stop(struct np_run *run, int level);

/* Has the far end closed all that it shared with one of the workers? */
bool np_run_hung_up(const struct np_run *run);

/*
 * Have the loops compare where datagrams come from with run->end.sources, and throw others away.
 * NP_EUNSUP for engines that can't.
 */
int np_run_check_sources(struct np_run *run, struct np_err *err);
void np_run_check_no_sources(struct np_run *run);

/* Is a datagram of that address one that counts, as far as the kernel does not see to that? */
bool np_run_accepts_from(const struct np_run *run, const struct np_addr *from);

/* Forget what has come to data sockets without connections: nothing was asked for yet. */
void np_run_drop_early(const struct np_run *run);

/* A size or width that is in use here; what was asked for where this end has no use for it. */
static inline int32_t
np_run_used(size_t here, int32_t asked)
{
	return here > 0 ? (int32_t)here : asked;
}

/*
 * A wait for what moves on that connection is to end at until_ns. Returns when it ends: later while
 * the path is silent, and behind that for as long again, as TCP doubles the time to the next
 * retransmission. What is silent for longer than plan->silence_s is not waited for.
 */
uint64_t np_run_patience(const struct np_run *run, int fd, uint64_t until_ns);

/* Close the sockets that are open; the counts stay. The kernel is asked for its figures first. */
void np_run_close(struct np_run *run);

/* Only the data connections: the listener, and what the transport has taken, stay. */
void np_run_close_conns(struct np_run *run);

/* Close the data connections by a reset: what has not arrived is thrown away. */
void np_run_reset(struct np_run *run);

/* Close and release everything. Safe on a zeroed struct, and twice. */
void np_run_free(struct np_run *run);

/* Shut down the sending halves; all of them together wait for room for NP_SHUT_S at most. */
enum { NP_SHUT_S = 10 };
void np_run_shut(struct np_run *run);

/* The same of one connection; stop tells when the test is abandoned. */
void
np_run_shut_one(const struct np_run *run, const struct np_stop *stop, int fd, uint64_t until_ns);

/* Note what the kernel knows of the data connection (sizes, MSS, retransmissions) while open. */
void np_run_look(struct np_run *run);

/*
 * Where the far end of a connection has ended its data, and waits within its test for this end of
 * it to do so: let that be now. The socket stays, to be asked for what it knows.
 */
void np_run_hang_up(struct np_run *run);

#endif
