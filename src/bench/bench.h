/*
 * The bench table and what its columns are made of. A bench (what users call a test) is a row:
 * a pattern (what the two ends do) over a transport (what carries it). A pattern has a side for
 * each role, and a side its steps (bench/worker.h), which any engine drives.
 */
#ifndef NP_BENCH_BENCH_H
#define NP_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bench/plan.h"
#include "wire/msg.h"

struct np_bag;
struct np_conn;
struct np_acked;
struct np_run;
struct np_sockopts;
struct np_steps;
struct np_stop;
struct np_worker;

/* The two roles of every pattern. */
enum np_role {
	NP_LEAD,   /* transmits, requests, connects */
	NP_FOLLOW, /* receives, responds, accepts */
	NP_ROLES
};

/*
 * One role's part at one end of a test; called in this order, for each worker and, but for setup,
 * drain and release, in its thread.
 */
struct np_side {
	/* Everything that can fail or allocate: rings, state, what the worker needs to know. */
	int (*setup)(struct np_worker *w, struct np_err *err);

	/* What the connections do (bench/worker.h). NULL: the role has a loop of its own. */
	const struct np_steps *steps;

	/*
	 * The measured part by the engine `sync`: the steps until np_stopped() or the budget is
	 * spent. Returns 0 or -errno. Allocates, prints and decides nothing.
	 */
	int (*sync)(struct np_worker *w);

	/* After the loop: the counts that follow from others. May be NULL. */
	void (*settle)(struct np_worker *w);

	/*
	 * Then: drain, shut down; the counters are final afterwards. May move the window's end.
	 * Bounded in time, and ends early once np_abandoned(). May be NULL.
	 */
	void (*finish)(struct np_worker *w);

	/* All workers are done: what they leave to the run, which none of them may write to. NULL.
	 */
	void (*leave)(struct np_run *run);

	/* Tell the far end again that the test is over, while its results are waited for: once for
	 * all workers. NULL. */
	void (*nudge)(struct np_run *run);

	/* Before the loop: the far end has no ids (bench/ids.h), which setup took for granted.
	 * NULL. */
	void (*without_ids)(struct np_worker *w);

	/* Likewise: each connection of a connection test begins with run->end.shown. NULL. */
	void (*show_token)(struct np_worker *w);

	/* The far end's results are in: count what is still in the socket. May be NULL. */
	void (*drain)(struct np_worker *w);

	/* Release what setup took. May be NULL. */
	void (*release)(struct np_worker *w);

	/*
	 * At the daemon, when the time is up: how long nothing may come in before the far end is
	 * taken to have finished. 0: this side ends by its own clock.
	 */
	uint64_t pad_ns;

	/* The end of the far end's sending half ends this side's loop: a sender's. */
	bool ends_on_hangup;
};

/* What a test is called by the role of the near end. */
struct np_words {
	const char *direction; /* the DIRECTION metric */
	const char *flow;      /* in documents: "send", "receive", "both" */
	const char *timed;     /* what is timed, above a histogram */
	const char *role;      /* in evidence */
};

struct np_pattern {
	const char *name;
	struct np_words words[NP_ROLES];
	const struct np_side *side[NP_ROLES];
	uint32_t lead_direction; /* NP_WD_*, as the daemon would see it when it leads */
	bool transactions;       /* counts transactions; else bytes of a stream */
	bool sized;              /* has requests and responses of given sizes */
	bool connection_test;    /* one connection a transaction */
	bool probe;              /* moves nothing: looks at the connection, and ends */
	bool several;            /* may have several data connections at a time (--flows) */
	bool ramps;              /* which may begin one after another within the test (--ramp) */
	bool sequence;           /* its messages can be numbered (bench/sequence.h) */
	bool ids;                /* its requests can have ids (bench/ids.h) */
	bool offers;             /* its transmitter may send by the clock (--rate in bits) */
	bool speaks_first;       /* the leader's first call is a send */
	bool sends_file;         /* the leader sends by sendfile(2) */
};

/* Which peers a passive end admits (np_terms.only). Every transport has to say it. */
enum np_admit {
	NP_ADMIT_UNSAID, /* none: np_run_open() refuses such a transport */
	NP_ADMIT_IP,     /* that address, of IP; any where none is known */
	NP_ADMIT_PEER,   /* that address; none where none is known */
	NP_ADMIT_HERE,   /* processes on this machine: the control connection shows that */
	NP_ADMIT_TAG     /* peers that know the test's tag, which only the client is told */
};

/* Is the socket connect()ed, where there is no connection? */
enum np_pin {
	NP_PIN_ASKED, /* if np_sock_plan.connected says so */
	NP_PIN_ALWAYS,
	NP_PIN_NEVER
};

/* Which of netperf's scanners reads the options of a test over it. */
enum np_scanner { NP_SCAN_IP, NP_SCAN_UNIX, NP_SCAN_LINK, NP_SCAN_SCTP, NP_SCAN_OMNI };

struct np_transport {
	const char *name; /* as the PROTOCOL metric says it */
	int family;       /* of its addresses, AF_*; 0: of the Internet, as the plan says */
	int socktype, protocol;
	int32_t wire_type; /* in OMNI requests; 0: they can't ask for it */
	bool ours;         /* netperf's daemon has none, and must not be asked: PLAN does */

	/* Traits. */
	bool reliable;     /* all that is sent arrives, once and in order */
	bool connected;    /* there is a connection, from connect(2) to accept(2) and to a close */
	bool bounded;      /* a message is what one call sends */
	bool closes_whole; /* connected: once either end has shut down its half, neither can send */
	bool shut_drops;   /* connected: shutdown(2) ends both directions, and drops what waits */
	enum np_admit admit;
	enum np_pin pin;
	bool several_paths; /* a data socket can have several addresses (np_plan.also) */
	bool named;         /* users name the ends (-H, -L, -P); else the daemon's answer does */
	bool link;          /* frames, by a socket of the caller's (np_terms.eth) */
	bool passes_fds;    /* descriptors can be sent over it */
	bool encrypts;      /* by np_plan.tls_suite */
	bool stamps;        /* the kernel stamps its packets on their way (--stations) */
	bool one_port;      /* a daemon may have it at the port of its control connections */
	bool ramps;         /* connections may begin one after another within a test (--ramp) */

	/* What can be known of it. */
	int ip_protocol; /* in its packets of IP, by which a capture finds them; 0: it has none */
	uint32_t
	    packet_header; /* bytes before a message in its packet of IP; 0: those of TCP, UDP */
	const char *listed, *listed_six; /* its names in /proc/net/protocols; NULL: it needs none */
	bool tcp_info;                   /* the kernel tells TCP_INFO while the connection lasts */
	bool (*acked)(int fd, struct np_acked *p); /* np_tcp_acked(); NULL: it is not told */
	const char *module, *kconfig; /* what a kernel without it lacks: "sctp", "CONFIG_IP_SCTP";
				       * NULL: no module, or every kernel has it */
	const char *off;     /* what switches it on where it is switched off; NULL: it can't be */
	const char *dropped; /* the version of Linux from which on no kernel has it; NULL */
	const char
	    *no_capture; /* why --wire shows nothing of it; NULL: it does, or ip_protocol is 0 */
	const char *no_control; /* why -N can't be had; NULL: it can, or something else says it */
	/* Bytes of TCP options that are its own, in each segment with data: of a stream, and of
	 * transactions, where data goes both ways. */
	uint32_t stream_options, turn_options;
	const char *service; /* its name in services(5); NULL: it has none there */
	enum np_scanner scanner;

	int32_t max_message; /* largest message taken from a socket buffer's size; 0: no limit */
	int32_t min_message; /* shorter ones are filled up to it; 0: none are */
	/*
	 * Bytes at the beginning of each message that are the transport's own. Where there are any
	 * a message can't be empty, and one that looks like np_eth_is_end() ends a test. 0: none.
	 */
	int32_t header;

	/*
	 * Can this kernel carry it? If not *err says what is missing. NULL: where there are sockets
	 * of that family, type and protocol, it can (np_transport_probe()).
	 */
	int (*probe)(const struct np_transport *t, struct np_err *err);

	/*
	 * The sizes of its buffers, where SO_SNDBUF and SO_RCVBUF are not about them: append the
	 * options for those that the plan's near end wants, read those of a socket. NULL.
	 */
	void (*set_buffers)(const struct np_plan *p, struct np_sockopts *o);
	void (*get_buffers)(int fd, int *sndbuf, int *rcvbuf);

	/* Append this transport's own socket options. May be NULL. */
	void (*options)(const struct np_plan *p, struct np_sockopts *o);

	/* Make the near endpoint: the data socket (active, or without connections), else a
	 * listener. */
	int (*open)(struct np_run *run, struct np_err *err);

	/*
	 * One more data socket like that of open, which is number 0: the descriptor, or -1. NULL: a
	 * test has one data connection, whatever its pattern.
	 */
	int (*another)(struct np_run *run, uint32_t number, struct np_err *err);

	/* Bring the two ends together: connect or accept. Blocks until np_stopped(). */
	int (*meet)(struct np_run *run, struct np_err *err);

	/* When all are connected: what is to be said before the window opens. The same. NULL. */
	int (*greet)(struct np_run *run, struct np_err *err);

	/*
	 * Prepare a connection that has just been made, before anything is measured. The end that
	 * connects speaks first. May be NULL.
	 */
	int (*upgrade)(struct np_run *run, struct np_conn *conn, struct np_err *err);

	/*
	 * Shut down the sending half of a connection, behind all that was sent as far as there is
	 * room for that until then; ends early once np_abandoned(stop). NULL: by shutdown(2).
	 */
	void (*shut)(const struct np_stop *stop, int fd, uint64_t until_ns);

	/*
	 * recv(2) has failed by that errno: is that how the far end's data end, beside the usual
	 * way? NULL: it is not.
	 */
	bool (*has_ended)(int fd, int error);

	/* A send has failed by that errno: is it to be made again? NULL: it is not. */
	bool (*sends_again)(int fd, int error);

	/* Note what the kernel knows of a connection at its end (np_closing). May be NULL. */
	void (*look)(struct np_run *run, int fd);

	/* The same of the first one of a connection test, which has to be quick. May be NULL. */
	void (*look_first)(struct np_run *run, int fd);

	/*
	 * Put what the kernel knows of a connection that is still open into the bag of evidence, by
	 * names that doc/evidence.md lists. Not called in connection tests. May be NULL.
	 */
	void (*know)(const struct np_run *run, int fd, struct np_bag *bag);

	/*
	 * Make a connection that comes to nothing at once, so that who waits in accept(2) sees an
	 * error. May be NULL.
	 */
	void (*knock)(struct np_run *run);

	/*
	 * What the far end has not acknowledged, in some unit; -1: the connection is over. For
	 * transports where an end that has shut down its half cannot learn that by reading. NULL:
	 * it can.
	 */
	int64_t (*left)(int fd);

	/* Say that the kernel found a message too long (EMSGSIZE). NULL: in general words. */
	void (*too_long)(const struct np_run *run, struct np_err *err);
	int too_long_as; /* what older kernels say in place of EMSGSIZE; 0: all say that */

	/* Send the message that ends a test, where an empty datagram does not. May be NULL. */
	void (*farewell)(struct np_run *run);

	/* Give back what open took or left in the file system, once. May be NULL. */
	void (*close)(struct np_run *run);
};

/* Bits of np_bench.flags. */
enum {
	NP_B_ROUTE_OFF = 1 << 0, /* SO_DONTROUTE unless the user allows routing */
	/* By the rules of netperf's older tests: how work is counted, what is reported. */
	NP_B_OLD = 1 << 1,
	NP_B_ONCE = 1 << 2,   /* not repeated for confidence (-i, -I) */
	NP_B_SPARSE = 1 << 3, /* no interim results; the table has an average of the times */
	NP_B_MANY = 1 << 4,   /* a test-specific option says how many data connections it has */
};

struct np_bench {
	const char *name;  /* what -t takes, in any case */
	const char *title; /* the classic banner's words */
	const struct np_pattern *pattern;
	const struct np_transport *transport;
	int near_role; /* of the client */
	uint32_t code; /* of the request that asks for it, enum np_code */
	unsigned flags;
	const char *layout; /* of its classic table, as src/out knows it */
};

extern const struct np_pattern np_pattern_stream, np_pattern_sendfile, np_pattern_rr,
    np_pattern_crr, np_pattern_cc, np_pattern_mss;
#define NP_TRANSPORT(name) extern const struct np_transport np_transport_##name;
#include "bench/transports.def"
#undef NP_TRANSPORT

/* The row of that name in any case, or NULL. */
const struct np_bench *np_bench_find(const char *name);

/* Row i of the table, NULL behind the last. */
const struct np_bench *np_bench_at(size_t i);

/* Row i of the table of transports, NULL behind the last. */
const struct np_transport *np_transport_at(size_t i);

/*
 * Has all arrived that was sent, if no error was seen? Then the far end's close comes behind all of
 * it, and ends a stream. Elsewhere messages may be missing, and an empty one is the end mark.
 */
static inline bool
np_delivers(const struct np_transport *t)
{
	return t->connected && t->reliable;
}

/* Of its sockets: NP_WS_STREAM and the like, the same on all machines; 0: none of these. */
uint32_t np_transport_type(const struct np_transport *t);

/*
 * Of all that there are, by their names in any case; or NULL. Where transports share a name the
 * type of socket tells them apart; 0: any. May that pattern be had over that transport?
 */
const struct np_transport *np_transport_any(const char *name, uint32_t type);
const struct np_pattern *np_pattern_any(const char *name);
bool np_pattern_fits(const struct np_pattern *p, const struct np_transport *t);

/* The transport of an OMNI request's socket_type and protocol (0: the type's usual one), or NULL.
 */
const struct np_transport *np_transport_find(int32_t wire_type, uint32_t protocol);

/*
 * The pattern and the daemon's role that an OMNI request's direction, connection flag and sizes
 * mean. NULL when they mean nothing that is served.
 */
const struct np_pattern *np_pattern_find(uint32_t direction, bool connection_test, int *role);

#endif
