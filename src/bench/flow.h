/*
 * A flow: one data connection (or, in connection tests, the series of them), its buffers and its
 * counts. Owned by one worker while the loop runs.
 */
#ifndef NP_BENCH_FLOW_H
#define NP_BENCH_FLOW_H

#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/ring.h"
#include "bench/bench.h"
#include "bench/ids.h"
#include "bench/pace.h"
#include "bench/params.h"
#include "bench/stop.h"
#include "net/addr.h"
#include "net/sock.h"
#include "stats/counters.h"
#include "stats/hist.h"
#include "sys/cpu.h"
#include "sys/thread.h"

/*
 * The body of a hot loop, written once for several kinds: every function that calls it with other
 * constants gets a copy in which they are settled.
 */
#define NP_LOOP_BODY static inline __attribute__((always_inline))

struct np_flow {
	const struct np_params *par;
	const struct np_side *side;
	int (*loop)(struct np_flow *f); /* what setup chose */
	struct np_stop *stop;
	struct np_counters *count;
	struct np_hist *hist;

	int fd, listen_fd; /* -1: none */
	bool lent;         /* fd is somebody else's to close */
	int file_fd;       /* of a file that is sent; the side's own; -1: none */
	int held_fd; /* somebody else's, whose number no socket of the worker's may get; -1: none */
	off_t file_length; /* bytes of it */
	struct np_sockopts opts;
	struct np_addr local, peer; /* of the data socket; peer.len 0: not known yet */
	int sndbuf, rcvbuf;         /* as read back when the endpoint was made */
	int sndbuf_end, rcvbuf_end; /* as read back before it was closed */
	bool named;                 /* local is a path in a directory, both to be removed */
	bool picky;                 /* no filter could be had: accepted peers are looked at */
	pid_t keeper;               /* who removes them should this process be killed; 0: nobody */
	int keeper_fd;              /* what it watches */
	bool port_moved;            /* the port asked for was in use: another one was taken */

	size_t send_size, recv_size; /* bytes of one call: unit, request or response */
	struct np_ring send_ring, recv_ring;
	uint64_t budget;       /* bytes or transactions; UINT64_MAX in timed tests */
	void *state;           /* the side's own */
	struct np_ids *ids;    /* a requester's, where responses are told apart by them; NULL */
	struct np_id_place id; /* a responder's: what it copies into the response */

	/* A wait in the loop is interrupted when nothing has moved for so long; 0: never. */
	uint64_t patience_ns;

	/* Datagrams go to nobody who has not sent this back, and frames without IP bear it as their
	 * tag; 0: no such thing was agreed on. */
	uint64_t token;

	struct np_pace pace;
	unsigned char ink; /* what the last touch wrote, see extra.h */

	uint64_t started_ns, ended_ns; /* of the measured part */
	uint64_t last_ns;              /* when a connection test's last transaction ended, or 0 */
	uint64_t paced_ns;             /* of it, spent waiting for a pacing interval's end */
	int prio, tos;                 /* read back; -1 not asked for, -2 could not be set */
	struct np_cpu_use cpu;         /* this machine's, if the test measures it */
	struct np_thread_use *thread;  /* where the worker accounts for itself; NULL: nobody asks */
	bool hung_up;                  /* the far end closed before the loop was told to stop */
	struct tcp_info info;          /* TCP_INFO at the end; all 0: not known */
	int mss;                       /* TCP_MAXSEG; -1 not known */
	int retrans;                   /* TCP retransmissions; -1 not known */
	char cong[NP_CONG_MAX];        /* congestion control at the end; empty: not known */
	struct np_err err;             /* why the flow failed; code NP_OK: it did not */
};

/* Do sends go where the socket is connected to, rather than to f->peer? */
static inline bool
np_flow_connected(const struct np_flow *f)
{
	int family = f->par->transport->family;

	/* In the UNIX domain the path would be looked up for every datagram. Sockets for frames
	 * can't be connected. */
	return (f->par->near.connected && family != AF_PACKET) || family == AF_UNIX;
}

/*
 * Bytes of memory that the rings of such a test's near end would take. Socket buffers' sizes, which
 * some rings follow, are asked for by a socket that is closed again. NP_ESYS where there is none.
 */
int np_flow_bytes(const struct np_params *par, uint64_t *bytes, struct np_err *err);

/* Take memory and open the near endpoint. On failure everything is released again. */
int np_flow_open(struct np_flow *f, const struct np_params *par, struct np_stop *stop,
		 struct np_err *err);

/* A size or width that is in use here; what was asked for where this end has no use for it. */
static inline int32_t
np_flow_used(size_t here, int32_t asked)
{
	return here > 0 ? (int32_t)here : asked;
}

/* Close the sockets that are open; the counts stay. The kernel is asked for its figures first. */
void np_flow_close(struct np_flow *f);

/* Close and release everything. Safe on a zeroed struct, and twice. */
void np_flow_free(struct np_flow *f);

/* Note what the kernel knows of the data connection (sizes, MSS, retransmissions) while open. */
void np_flow_look(struct np_flow *f);

/*
 * Rings for a side's setup. NP_LEAD/NP_FOLLOW of streams: the size of a call is the end's choice,
 * or what the socket buffer's size gives; rings as wide as netperf makes them.
 */
int np_flow_send_ring(struct np_flow *f, int32_t size, bool stream, struct np_err *err);
int np_flow_recv_ring(struct np_flow *f, int32_t size, bool stream, struct np_err *err);

/*
 * Shut down the sending half and wait for the far end's close, discarding what comes. Gives up
 * when nothing moves for NP_PART_S, or when abandoned (-ETIMEDOUT). Returns 0, or -errno of a
 * broken connection.
 */
enum { NP_PART_S = 10 };
int np_flow_part(struct np_flow *f);

/*
 * Where the far end of a connection has ended its data, and waits within its test for this end of
 * it to do so: let that be now. The socket stays, to be asked for what it knows.
 */
void np_flow_hang_up(struct np_flow *f);

#endif
