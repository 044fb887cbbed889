/*
 * A worker: a thread that drives data connections. While the window is open only that thread writes
 * to it; any thread may read its counters. A pattern is a set of steps (struct np_steps): what a
 * connection needs next, and what to do with the result. Steps make no system call and have no
 * loop; an engine (engine/engine.h) makes the calls.
 */
#ifndef NP_BENCH_WORKER_H
#define NP_BENCH_WORKER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/lines.h"
#include "base/ring.h"
#include "bench/engine/engine.h"
#include "bench/ids.h"
#include "bench/load.h"
#include "bench/sampler.h"
#include "bench/stop.h"
#include "net/addr.h"
#include "stats/counters.h"
#include "stats/hist.h"
#include "sys/thread.h"

struct np_open;
struct np_ramp;
struct np_run;
struct np_sequence;
struct np_stamps;

/* Code of a hot loop: each function that calls it gets its own copy. */
#define NP_LOOP_BODY static inline __attribute__((always_inline))

/* Control data to send with the answer to a datagram (NP_C_PKTINFO). */
struct np_pktinfo {
	socklen_t from_len; /* of the address to answer */
	size_t used;        /* bytes of `control`; 0: the kernel chooses the address */
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

/* What a connection needs next. */
enum np_need {
	NP_OVER,  /* nothing: the connection is done */
	NP_SEND,  /* to send a message */
	NP_RECV,  /* to receive a message */
	NP_PURGE, /* to discard what is queued in the socket, then NP_SEND */
	/* In connection tests: */
	NP_OPEN,  /* to connect; to accept */
	NP_SHUT,  /* to shut down its sending half, then NP_AWAIT */
	NP_AWAIT, /* to wait for the far end's close, then NP_CLOSE */
	NP_CLOSE, /* to close */
	/* In a ramp (bench/ramp.h). At the far end they are NP_OPEN until accepted: */
	NP_CONNECT,    /* to start connecting, when due */
	NP_CONNECTING, /* to wait until connected */
	/* Flags: */
	NP_PART = 1 << 4,   /* the rest of a message: c->part bytes are done */
	NP_HELD = 1 << 5,   /* only when the load allows (bench/load.h) */
	NP_BLOCKED = 1 << 6 /* the call would block */
};

/* A data connection, or a connection test's series. Workers share no cache line of these. */
struct np_conn {
	_Alignas(NP_CACHE_LINE) int fd; /* -1: none */
	enum np_need need;              /* next; for engines with many connections */
	size_t part;                    /* bytes of the current message that are done */
	uint64_t since_ns;              /* start of the current operation */
	uint64_t timeout_check_ns;      /* next check for requests that timed out */
	uint64_t number;                /* of the next message, from 0: also its id */
	uint64_t before;                /* messages of the warm-up, which do not count */
	uint64_t sent, received;        /* bytes */
	uint64_t transactions;
	struct np_ids *ids; /* a requester's, with ids or several in flight; else NULL */
	uint32_t lost;      /* requests that timed out */
	uint32_t waits_for; /* events registered with the kernel; 0: none */
	uint32_t port;      /* the daemon's port for this connection; 0: the endpoint's */
	uint32_t next_free; /* next in the list of unused ones (epoll.c) */
	bool is_void;       /* connection tests: its close does not complete a transaction */
	bool is_up;         /* of a ramp: connected */
	bool waits_release; /* waits for the kernel to release send buffers */
	bool is_aside;      /* a send is set aside while responses are received */
	uint8_t icmp_fails; /* consecutive sends that failed by ICMP errors for earlier ones */
	uint16_t in_row;    /* paced operations since it last asked the load */
	uint64_t icmp_at;   /* messages sent when that happened */
	size_t aside_part;  /* of the send set aside: bytes done, and its start */
	union {
		uint64_t aside_since_ns;
		uint64_t begun_ns; /* of an open loop's connection test: start of the operation */
	};
};

_Static_assert(sizeof(struct np_conn) <= 128, "two cache lines");

/* Flags of np_worker.codec (codec.h). */
enum {
	NP_C_TOUCH = 1 << 0,     /* -k, -K: write to and read buffers */
	NP_C_WRITE = 1 << 1,     /* -I: write(2) sends */
	NP_C_NUMBER = 1 << 2,    /* datagrams of a stream are numbered */
	NP_C_FRAME = 1 << 3,     /* messages have a transport header and a marked end */
	NP_C_PKTINFO = 1 << 4,   /* -B: answer from the address the question was sent to */
	NP_C_COMPARE = 1 << 5,   /* discard datagrams from other sources than run->end.sources */
	NP_C_SPLICE = 1 << 6,    /* splice(2) receives */
	NP_C_TIME = 1 << 7,      /* each call of a stream is timed */
	NP_C_PACE = 1 << 8,      /* ask the load before each operation */
	NP_C_ID = 1 << 9,        /* messages have an id, c->number */
	NP_C_MANY = 1 << 10,     /* there can be several requests in flight */
	NP_C_MANY_IDS = 1 << 11, /* and they have ids, in the place of NP_C_ID */
	NP_C_SHARE = 1 << 12,    /* several connections, one request each, use up one budget */
	NP_C_FILE = 1 << 13,     /* sendfile(2) sends */
	NP_C_STAMPS = 1 << 14,   /* some transactions are time-stamped (bench/stamps.h) */
	NP_C_WARM = 1 << 15,     /* mark sent datagrams as warm-up */
	NP_C_WINDOW = 1 << 16,   /* check whether received datagrams belong to the window */
	/* Flags that need other calls than plain send and receive. */
	NP_C_SENDS = NP_C_TOUCH | NP_C_WRITE | NP_C_NUMBER | NP_C_PKTINFO | NP_C_MANY_IDS |
		     NP_C_FILE | NP_C_STAMPS,
	NP_C_RECEIVES =
	    NP_C_TOUCH | NP_C_FRAME | NP_C_PKTINFO | NP_C_SPLICE | NP_C_COMPARE | NP_C_STAMPS
};

struct np_worker;

/* One role's steps, which return the next need. On errors they set w->error and return NP_OVER. */
struct np_steps {
	enum np_need first; /* when the window opens */
	bool answers;       /* unconnected: messages go to the source of the last one */
	bool takes_parts;   /* `sent` counts bytes, not messages */
	/* n bytes were sent. */
	enum np_need (*sent)(struct np_worker *w, struct np_conn *c, size_t n);
	/* n bytes were received into buf: at least w->whole. */
	enum np_need (*arrived)(struct np_worker *w, struct np_conn *c, const char *buf, size_t n);
	/* End of data (0 bytes), or a datagram that is too short for a message. */
	enum np_need (*ended)(struct np_worker *w, struct np_conn *c, size_t n);
	/*
	 * Several messages in one call: `count` of send_size were sent; `bytes` were received in
	 * messages of one size, of which the last may be shorter. now_ns matters where they are
	 * numbered. Not for paced connections. NULL: one by one.
	 */
	enum np_need (*sent_many)(struct np_worker *w, struct np_conn *c, uint32_t count);
	enum np_need (*arrived_many)(struct np_worker *w, struct np_conn *c, const char *buf,
				     size_t bytes, size_t size, uint64_t now_ns);
	/* The call failed with that errno; EINTR: timed out. NULL: np_step_failed(). */
	enum np_need (*failed)(struct np_worker *w, struct np_conn *c, enum np_need need,
			       int error);
	/* How many messages may be sent in a row, before `sent` is called. NULL: one. */
	uint64_t (*ahead)(const struct np_worker *w, const struct np_conn *c);
	/* Connection tests: make the next one, or -errno. SOCK_NONBLOCK: may be connecting. */
	int (*open)(struct np_worker *w, int flags);
	/* The connection is made, or still connecting but calls may be tried; it is closed. */
	enum np_need (*opened)(struct np_worker *w, struct np_conn *c);
	enum np_need (*closed)(struct np_worker *w, struct np_conn *c);
};

struct np_worker {
	/* The engine's loop; 0 or -errno. Workers share no cache line. */
	_Alignas(NP_CACHE_LINE) int (*loop)(struct np_worker *w);
	struct np_run *run;
	struct np_stop stop;          /* set by the controller for each worker */
	const struct np_steps *steps; /* of its side, or of an open loop; NULL: TCP_MSS */
	struct np_conn *conn;         /* its connections: `conns` of the run, in a row */
	uint32_t conns;
	uint32_t depth;              /* most requests in flight per connection */
	uint64_t began_ns, ended_ns; /* its window */
	uint64_t closes_ns;          /* when its time is up; UINT64_MAX: not known yet, or never */
	uint64_t left_ns;            /* end of its loop */
	struct np_err err;           /* why it failed; code NP_OK: no failure */

	struct np_counters *count; /* which any thread may read */
	struct np_hist *hist;      /* times of transactions, or with NP_C_TIME of calls */
	uint64_t budget;       /* bytes or transactions; UINT64_MAX: no limit, as in timed tests */
	uint64_t budget_after; /* the budget after the warm-up */

	const struct np_calls *calls; /* for several messages a call; NULL: one */
	struct {
		void *state; /* memory for this worker */
		int fd;      /* a descriptor; -1: none */
		uint64_t count[NP_E_COUNTS];
	} engine;

	size_t send_size, recv_size; /* bytes of one call: unit, request or response */
	size_t whole;                /* smallest message received; 1 for datagrams and streams */
	struct np_ring send_ring, recv_ring;
	struct np_id_place id; /* position of ids; width 0: no ids */
	unsigned codec;        /* NP_C_* */
	unsigned char touched; /* last byte written by NP_C_TOUCH */
	bool goes_on;          /* this loop continues one: after the warm-up, or to drain */
	bool reached;          /* something got through, in the warm-up or with --rate */
	bool hung_up;          /* the far end closed, or sent an end mark, while the loop ran */

	/* Datagrams: destination and source; NULL and 0 for connected sockets. */
	const struct sockaddr *to;
	struct sockaddr *from;
	socklen_t to_len, from_len;
	struct np_addr peer; /* last source, unless it is the endpoint's peer */

	uint64_t sends;     /* of requests, if several may be in flight */
	uint64_t more;      /* receives beyond one for each message */
	uint64_t in_flight; /* of all connections, with NP_C_MANY or NP_C_SHARE */

	struct np_load load;
	struct np_ramp *ramp; /* its part of a ramp; NULL: none, all are connected before */
	struct np_open *open; /* its part of an open loop; NULL: closed loop */
	/* Time-out of a response; 0: none. Grows when one is late. */
	_Atomic uint64_t timeout_ns;
	uint64_t grew_ns; /* when it grew last; 0: never */

	uint64_t acked_before;        /* bytes, when the window opened; see np_counts_arrived() */
	struct np_tcp_sum tcp_before; /* of its connections, when the warm-up ended */
	struct np_sequence *sequence; /* a receiver's, if datagrams are numbered; else NULL */
	uint64_t first_ns, opened_ns; /* NP_C_WINDOW: first datagram, first in the window; 0 */
	struct np_stamps *stamps;     /* of its transactions; NULL: no stamps */
	void *state;                  /* the side's own */
	struct np_pktinfo pktinfo;
	struct {
		int fd;     /* file that is sent; -1: none */
		off_t last; /* last offset at which a whole call can begin */
		off_t at;   /* offset of the next call */
	} file;
	int pipe[3]; /* of splice(2): write end, read end, sink; -1: not open */
	int error;   /* errno that broke the test; 0: none */
	int bound;   /* the only CPU that its thread may run on; -1: several */

	uint64_t last_ns;          /* end of the last transaction of a connection test, or 0 */
	bool reads_info;           /* TCP_INFO of each connection of a connection test */
	bool has_last;             /* a follower has to do something before it closes */
	int64_t retransmitted;     /* segments of its connections, if reads_info */
	int64_t min_rtt_us;        /* the shortest round trip of all; 0: not known */
	struct np_sampler sampler; /* for the controller of a worker that waits for events */
	struct np_thread_use use;  /* CPU use of the thread, if its root is set */
};

/* Prepare a worker, in its thread, for the loop that begins at that time. */
void np_worker_begin(struct np_worker *w, uint64_t now_ns);

/* Reset all counts at the end of the warm-up. */
void np_worker_forget(struct np_worker *w);

/*
 * The warm-up is over: reset the counts and begin the window. Operations in progress count when
 * they complete, unless they carry a time or a number (struct np_window). Always true.
 */
bool np_worker_mark(struct np_worker *w);

/* Set calls and bytes. Each send is a whole message; each transaction has received one. */
void np_worker_settle(struct np_worker *w, uint64_t sends, uint64_t receives);

/*
 * Close what the loop opened. A daemon leaves no more than NP_LEFT_UNACKED bytes of a connection to
 * the kernel, which would keep them for minutes if the client does not read.
 */
enum { NP_LEFT_UNACKED = 16 << 10 };
void np_worker_end(struct np_worker *w);

/*
 * Does this errno say that the path to a known peer is down (an outage)? So does ECONNREFUSED of a
 * datagram, from a host on the way; but with -N the service may have ended.
 */
bool np_worker_route_is_lost(const struct np_worker *w, int error);

/* np_run_read_closing(), if this worker has the run's first connection. */
void np_worker_read_closing(struct np_worker *w);

/* Bytes in its send buffer that are not acknowledged. */
uint64_t np_conn_queued(const struct np_conn *c);

/* Bytes acknowledged by the far end, of all connections of a stream's sender; 0 if not known. */
uint64_t np_worker_acked(const struct np_worker *w);

/* Shut down the sending halves of its connections (np_run_shut_one()). */
void np_worker_shut(struct np_worker *w);

enum { NP_PART_S = 10 }; /* how long an end waits at the end of a test while nothing moves */

/*
 * Make a side's ring in its setup, and set send_size or recv_size. size: of a call; 0 or less: the
 * socket buffer's. stream: unless the user sets the width, one buffer more than fill that.
 */
int np_worker_send_ring(struct np_worker *w, int32_t size, bool stream, struct np_err *err);
int np_worker_recv_ring(struct np_worker *w, int32_t size, bool stream, struct np_err *err);

/* Take an operation; adds NP_HELD if none may begin or others have a turn, as netperf after all. */
static inline enum np_need
np_paced(struct np_worker *w, struct np_conn *c, enum np_need need)
{
	if (__builtin_expect((w->codec & NP_C_PACE) != 0, 0)) {
		if (w->load.allowed == 0 || ++c->in_row == w->load.row) {
			c->in_row = 0;
			return need | NP_HELD;
		}
		w->load.allowed -= need != NP_OVER;
	}
	return need;
}

/* How many of `most` operations of a connection may be done in a row without asking the load. */
static inline uint64_t
np_paced_row(const struct np_worker *w, const struct np_conn *c, uint64_t most)
{
	uint64_t row = w->load.allowed + 1ull; /* and the one that has begun */

	if (w->load.row > c->in_row && w->load.row - c->in_row < row) {
		row = w->load.row - c->in_row;
	}
	return (w->codec & NP_C_PACE) != 0 && row < most ? row : most;
}

/* Continue after a signal (EINTR); other errors end the test. */
enum np_need np_step_failed(struct np_worker *w, struct np_conn *c, enum np_need need, int error);

/* End of data from the far end: an error for a leader that waits for a response. */
enum np_need np_step_hung_up(struct np_worker *w, struct np_conn *c, size_t n);

#endif
