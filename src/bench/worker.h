/*
 * A worker: a thread that drives data connections, with all that it needs for that. No other
 * thread writes to what it owns while the window is open; its counters may be read by any.
 *
 * A pattern is a set of steps (struct np_steps): what a connection needs next, and what has become
 * of that. Steps make no system call and have no loop. An engine (engine/engine.h) makes the calls.
 */
#ifndef NP_BENCH_WORKER_H
#define NP_BENCH_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/ring.h"
#include "bench/engine/engine.h"
#include "bench/ids.h"
#include "bench/load.h"
#include "bench/sampler.h"
#include "bench/stop.h"
#include "bench/transport/pktinfo.h"
#include "net/addr.h"
#include "stats/counters.h"
#include "stats/hist.h"
#include "sys/thread.h"

struct np_open;
struct np_ramp;
struct np_run;
struct np_sequence;
struct np_stamps;

/* Code of a hot loop, a step of it: every function that calls it has a copy of its own. */
#define NP_LOOP_BODY static inline __attribute__((always_inline))

/* What a connection needs next. */
enum np_need {
	NP_OVER,  /* nothing any more */
	NP_SEND,  /* to send a message */
	NP_RECV,  /* to receive one */
	NP_PURGE, /* what waits in the socket thrown away, then NP_SEND */
	/* In connection tests: */
	NP_OPEN,  /* to come about; to be accepted */
	NP_SHUT,  /* its sending half closed, then NP_AWAIT */
	NP_AWAIT, /* the far end's close, then NP_CLOSE */
	NP_CLOSE, /* to be closed */
	/* In a ramp (bench/ramp.h); the far end's are NP_OPEN until they are accepted: */
	NP_CONNECT, /* to be begun, when it is due */
	NP_COME,    /* to have come about */
	/* Or-ed to the others: */
	NP_PART = 1 << 4,   /* the rest of a message of which c->part bytes are done */
	NP_REST = 1 << 5,   /* not before the load has been asked (bench/load.h) */
	NP_BLOCKED = 1 << 6 /* the kernel is not ready for it */
};

/* One data connection; in connection tests the series of them. */
struct np_conn {
	int fd;                  /* -1: none */
	enum np_need need;       /* next; engines for many connections keep it here */
	size_t part;             /* bytes of the message under way that are done */
	uint64_t since_ns;       /* when the operation under way began */
	uint64_t look_at_ns;     /* when its requests are looked at for those that are too old */
	uint64_t number;         /* of the next message, which is how many were sent; its id */
	uint64_t before;         /* those of them that do not count: of the warm-up */
	uint64_t sent, received; /* bytes */
	uint64_t transactions;
	struct np_ids *ids; /* a requester's, where there are ids or several in flight; NULL */
	uint32_t lost;      /* requests given up */
	uint32_t waits_for; /* events that an engine has asked the kernel for; 0: none */
	uint32_t port;      /* the daemon's, where each connection has its own; 0: the endpoint's */
	uint32_t next_free; /* an engine's list of those that wait to be accepted */
	bool is_void;       /* connection tests: its close ends no transaction */
	bool is_up;         /* of a ramp: it has come about */
	bool waits_release; /* it can't send before the kernel releases its buffers */
	bool is_aside;      /* a request has no room, and meanwhile responses are taken */
	uint8_t news;       /* sends in a row that failed by what ICMP said of those before */
	uint64_t news_at;   /* how many had been sent then */
	size_t aside_part;  /* of a request that is put aside; when that began */
	union {
		uint64_t aside_since_ns;
		uint64_t begun_ns; /* of an open loop's connection test: when what is due began */
	};
};

_Static_assert(sizeof(struct np_conn) <= 128, "two cache lines");

/* What options add to operations, see codec.h. */
enum {
	NP_C_TOUCH = 1 << 0,   /* -k: buffers are written to and read */
	NP_C_WRITE = 1 << 1,   /* -I: write(2) sends */
	NP_C_NUMBER = 1 << 2,  /* datagrams of a stream are numbered */
	NP_C_FRAME = 1 << 3,   /* messages have the transport's header, and an end that is marked */
	NP_C_PKTINFO = 1 << 4, /* -B: answers go out from where the question was sent to */
	NP_C_COMPARE = 1 << 5, /* datagrams that run->end.hears has not are thrown away */
	NP_C_SPLICE = 1 << 6,  /* splice(2) receives */
	NP_C_TIME = 1 << 7,    /* each call of a stream is timed */
	NP_C_PACE = 1 << 8,    /* the load is not closed: it has to be asked */
	NP_C_ID = 1 << 9,      /* messages have an id, c->number */
	NP_C_MANY = 1 << 10,   /* there can be several requests in flight */
	NP_C_MANY_IDS = 1 << 11, /* and they have ids, in the place of NP_C_ID */
	NP_C_SHARE = 1 << 12,    /* connections of one request each share a count */
	NP_C_FILE = 1 << 13,     /* what is sent is a file's, by sendfile(2) */
	NP_C_STAMPS = 1 << 14,   /* some transactions have stamps (bench/stamps.h) */
	NP_C_WARM = 1 << 15,     /* datagrams that are sent say that they are of the warm-up */
	NP_C_ASK = 1 << 16,      /* datagrams that come are asked whether they are the window's */
	/* What the plain calls can't do. */
	NP_C_SENDS = NP_C_TOUCH | NP_C_WRITE | NP_C_NUMBER | NP_C_PKTINFO | NP_C_MANY_IDS |
		     NP_C_FILE | NP_C_STAMPS,
	NP_C_RECEIVES =
	    NP_C_TOUCH | NP_C_FRAME | NP_C_PKTINFO | NP_C_SPLICE | NP_C_COMPARE | NP_C_STAMPS
};

struct np_worker;

/*
 * The steps of one role: each says what the connection needs next. A step that finds the test
 * broken sets w->error and returns NP_OVER.
 */
struct np_steps {
	enum np_need first; /* when the window opens */
	bool answers;       /* messages go to where the last one came from, if not connected */
	bool takes_parts;   /* `sent` counts bytes, whether they are a message or not */
	/* n bytes have left. */
	enum np_need (*sent)(struct np_worker *w, struct np_conn *c, size_t n);
	/* n bytes have come, at the beginning of buf: w->whole at least. */
	enum np_need (*arrived)(struct np_worker *w, struct np_conn *c, const char *buf, size_t n);
	/* What has come is no message: nothing, which ends the data, or a datagram too short. */
	enum np_need (*ended)(struct np_worker *w, struct np_conn *c, size_t n);
	/*
	 * The same of several messages at a time, for engines that carry them: `count` of send_size
	 * have left; `n` bytes have come in messages of one size, of which the last may be
	 * shorter, at a time that matters where they are numbered. For connections that are not
	 * paced. NULL: one by one.
	 */
	enum np_need (*sent_many)(struct np_worker *w, struct np_conn *c, uint32_t count);
	enum np_need (*arrived_many)(struct np_worker *w, struct np_conn *c, const char *buf,
				     size_t bytes, size_t size, uint64_t now_ns);
	/* What it needed failed by that errno; EINTR: was not had in time. NULL: np_step_failed().
	 */
	enum np_need (*failed)(struct np_worker *w, struct np_conn *c, enum np_need need,
			       int error);
	/*
	 * How many messages can be sent in a row, whatever becomes of them, before `sent` has to
	 * say what is needed next: at least one. NULL: one.
	 */
	uint64_t (*ahead)(const struct np_worker *w, const struct np_conn *c);
	/*
	 * Connection tests: how the next one is made; its descriptor, or -errno. With SOCK_NONBLOCK
	 * as flags it need not have come about yet. Else NULL.
	 */
	int (*open)(struct np_worker *w, int flags);
	/* It has come about, or what is needed next may be tried; it is closed. */
	enum np_need (*opened)(struct np_worker *w, struct np_conn *c);
	enum np_need (*closed)(struct np_worker *w, struct np_conn *c);
};

struct np_worker {
	/* The engine's for these steps; 0 or -errno. Workers share no cache line. */
	_Alignas(64) int (*loop)(struct np_worker *w);
	struct np_run *run;
	struct np_stop stop; /* its own: the controller tells each worker */
	const struct np_steps *steps;
	struct np_conn *conn; /* its connections: this many of the run's in a row */
	uint32_t conns;
	uint32_t depth;              /* most requests in flight of one connection */
	uint64_t began_ns, ended_ns; /* its part of the window */
	uint64_t left_ns;            /* when its loop was over */
	struct np_err err;           /* why it failed; code NP_OK: it did not */

	struct np_counters *count;
	struct np_hist *hist;
	uint64_t
	    budget; /* bytes or transactions; UINT64_MAX in timed tests, and while one warms up */
	uint64_t budget_behind; /* what it is when the warm-up is over */

	const struct np_calls *calls; /* how messages cross, several a call; NULL: one */
	void *engine_own;             /* what its engine has taken for it */
	int engine_fd;                /* a descriptor of that; -1: none */
	uint64_t engine_count[NP_E_COUNTS];

	size_t send_size, recv_size; /* bytes of one call: unit, request or response */
	size_t whole; /* bytes that make what came a message; 1 of datagrams and of streams */
	struct np_ring send_ring, recv_ring;
	struct np_id_place id; /* where ids stand in messages; width 0: there are none */
	unsigned codec;        /* NP_C_* */
	unsigned char touched; /* what the last touch wrote, see codec.h */
	bool goes_on;          /* its loop was left by a mark: connections are as they were */
	bool hung_up;          /* the far end closed before the loop was told to stop */

	/* Of datagrams: where they go to and came from; NULL and 0 for connected sockets. */
	const struct sockaddr *to;
	struct sockaddr *from;
	socklen_t to_len, from_len;
	struct np_addr peer; /* what `from` last told, unless it is the endpoint's peer */

	uint64_t sends;     /* of requests, where there can be several in flight */
	uint64_t more;      /* receives beyond one a message */
	uint64_t in_flight; /* of all connections, with NP_C_MANY and NP_C_SHARE */

	struct np_load load;
	/* How long a response is waited for; 0: for ever. Longer once one came late. */
	_Atomic uint64_t patience_ns;

	uint64_t
	    acked_before; /* of its connections, when the window opened; see np_counts_arrived() */
	struct np_sequence *sequence; /* a receiver's, where datagrams are numbered; NULL */
	uint64_t first_ns, opened_ns; /* with NP_C_ASK: the first datagram, of the window; 0 */
	struct np_stamps *stamps;     /* of its transactions; NULL: they have none */
	struct np_ramp *ramp;         /* how its connections come about; NULL: all did before */
	struct np_open *open;         /* its part in an open loop; NULL: the loop is closed */
	void *state;                  /* the side's own */
	struct np_pktinfo pktinfo;
	int file_fd;     /* of a file that is sent; the side's own; -1: none */
	int error;       /* what broke the test, errno; 0: nothing did */
	off_t file_last; /* the last place in it where a whole call can begin */
	off_t file_at;   /* where the next call begins */
	int pipe[3];     /* of splice(2): into it, out of it, where to; -1: not open */
	int bound;       /* the only processor that its thread may run on; -1: several */

	uint64_t last_ns;          /* when a connection test's last transaction ended, or 0 */
	struct np_sampler sampler; /* asked by the controller of a worker that waits for events */
	struct np_thread_use use;  /* what the thread cost, if its root is set */
};

/* Make it ready for the window that opens at that time. */
void np_worker_begin(struct np_worker *w, uint64_t now_ns);

/*
 * The warm-up is over: forget what was counted, and count from now on. What is under way counts
 * when it completes, unless it says itself that it does not (struct np_window). True.
 */
bool np_worker_mark(struct np_worker *w);

/*
 * Publish the totals that follow from the transactions, which need not be done one by one. Without
 * data both sizes are 0, and no call counts.
 */
void np_worker_settle(struct np_worker *w, uint64_t sends, uint64_t receives);

/* The window is over: close what the loop has opened. */
void np_worker_end(struct np_worker *w);

/*
 * Does an error say that there is no way at the moment, where there was one in this test before?
 * Then it ends nothing: a way that comes back is what is measured.
 */
bool np_worker_has_no_way(const struct np_worker *w, int error);

/*
 * Note what the kernel knows of the run's first connection, where that is one of this worker's
 * (np_run_look()).
 */
void np_worker_look(struct np_worker *w);

/* What a connection's sends have left with the kernel, and is not acknowledged. */
uint64_t np_conn_queued(const struct np_conn *c);

/* Bytes that the far end has acknowledged, of all connections; 0 where the kernel does not tell. */
uint64_t np_worker_acked(const struct np_worker *w);

/*
 * The time of a stream is up: note what is on its way then. If it is still, cut the stream there:
 * what has arrived was sent, and the client throws the rest away (np_run_reset()). False: nothing
 * is on its way any more.
 */
void np_worker_note_queued(struct np_worker *w);
bool np_worker_cut(struct np_worker *w);

/* Shut down the sending halves of its connections, as np_run_shut(). */
void np_worker_shut(struct np_worker *w);

/*
 * Shut down the sending halves and wait for the far end's close of each, discarding what comes.
 * Gives up when nothing moves for NP_PART_S, or after most_ns (0: never), or when abandoned
 * (-ETIMEDOUT). Returns 0, or -errno of a broken connection.
 */
enum { NP_PART_S = 10 };
int np_worker_part(struct np_worker *w, uint64_t most_ns);

/* Wait until the kernel has sent all that its connections' sends left with it. Gives up likewise.
 */
int np_worker_empty(struct np_worker *w);

/*
 * Rings for a side's setup. NP_LEAD/NP_FOLLOW of streams: the size of a call is the end's choice,
 * or what the socket buffer's size gives; rings as wide as netperf makes them.
 */
int np_worker_send_ring(struct np_worker *w, int32_t size, bool stream, struct np_err *err);
int np_worker_recv_ring(struct np_worker *w, int32_t size, bool stream, struct np_err *err);

/*
 * An operation is over. If another one begins by that need, the load may have to be asked first;
 * the interval of the last one is waited for, as netperf does.
 */
static inline enum np_need
np_paced(struct np_worker *w, enum np_need need)
{
	if (__builtin_expect((w->codec & NP_C_PACE) != 0, 0)) {
		if (w->load.left == 0) {
			return need | NP_REST;
		}
		w->load.left -= need != NP_OVER;
	}
	return need;
}

/* Of `most` operations, how many can follow each other before the load has to be asked: the first
 * one has been taken. */
static inline uint64_t
np_paced_row(const struct np_worker *w, uint64_t most)
{
	bool paced = (w->codec & NP_C_PACE) != 0;

	return paced && w->load.left + 1ull < most ? w->load.left + 1ull : most;
}

/* Go on after a signal; end by any other errno. */
enum np_need np_step_failed(struct np_worker *w, struct np_conn *c, enum np_need need, int error);

/* The far end has ended its data, which a leader that waits for a response does not expect. */
enum np_need np_step_hung_up(struct np_worker *w, struct np_conn *c, size_t n);

#endif
