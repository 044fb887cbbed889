/*
 * The table of benches (users call them tests): a row is a pattern (what the two ends do) over a
 * transport. A pattern has a side for each role, with its steps (bench/worker.h) for any engine.
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

enum np_role {
	NP_LEAD,   /* transmits, requests, connects */
	NP_FOLLOW, /* receives, responds, accepts */
	NP_ROLES
};

/* One role at one end. sync, settle, finish: in this order, in each worker's thread. */
struct np_side {
	/* Everything that can fail or allocate: rings, state and other members of the worker. */
	int (*setup)(struct np_worker *w, struct np_err *err);

	/* The steps (bench/worker.h). NULL: the role has a loop of its own. */
	const struct np_steps *steps;

	/*
	 * The loop of the engine `sync`: the steps until np_stopped() or the budget is used up.
	 * Returns 0 or -errno. Allocates, prints and decides nothing.
	 */
	int (*sync)(struct np_worker *w);

	/* After the loop: compute the counts that follow from others. May be NULL. */
	void (*settle)(struct np_worker *w);

	/*
	 * Then drain and shut down. Afterwards the counters are final; the end of the window may
	 * have moved. Limited in time, and ends early once np_abandoned(). May be NULL.
	 */
	void (*finish)(struct np_worker *w);

	/* All workers are done: store results in the run. May be NULL. */
	void (*leave)(struct np_run *run);

	/* Tell the far end again that the test is over, while waiting for its results. Or NULL. */
	void (*nudge)(struct np_run *run);

	/*
	 * Before the loop, at the active end: adapt to what the far end granted. It may lack `ids`
	 * (bench/ids.h), which setup assumed; with run->end.shows each connection of a connection
	 * test must begin with the token run->end.shown. May be NULL.
	 */
	void (*granted)(struct np_worker *w, bool ids);

	/* After the results of the far end: count what is still in the socket. May be NULL. */
	void (*drain)(struct np_worker *w);

	/* When the time is up, wait until no late data came for this long. 0: end at once. */
	uint64_t pad_ns;

	/* A sender: its loop ends when the far end half-closes. */
	bool ends_on_hangup;
};

/* Names of a test, by the role of the near end. */
struct np_words {
	const char *direction; /* the DIRECTION metric */
	const char *flow;      /* in documents: "send", "receive", "both" */
	const char *timed;     /* what is timed, as a title of histograms */
	const char *role;      /* in evidence */
};

struct np_pattern {
	const char *name;
	struct np_words words[NP_ROLES];
	const struct np_side *side[NP_ROLES];
	uint32_t lead_direction; /* NP_WD_*, as a daemon that leads sees it */
	bool transactions;       /* counts transactions; else bytes of a stream */
	bool sized;              /* has requests and responses of given sizes */
	bool connection_test;    /* one connection a transaction */
	bool probe;              /* moves no data: reads settings of the connection */
	bool several;            /* several data connections at a time (--flows) */
	bool ramps;              /* which may begin during the test (--ramp) */
	bool sequence;           /* messages can be numbered (bench/sequence.h) */
	bool ids;                /* requests can have ids (bench/ids.h) */
	bool offers;             /* the transmitter may send on a schedule (--rate in bits) */
	bool speaks_first;       /* the leader's first call is a send */
	bool sends_file;         /* the leader sends by sendfile(2) */
};

/* Which peers a passive end admits (np_terms.only). Every transport must say so. */
enum np_admit {
	NP_ADMIT_UNSAID, /* none: np_run_open() fails */
	NP_ADMIT_IP,     /* that IP address; any if none is known */
	NP_ADMIT_PEER,   /* that address; none if none is known */
	NP_ADMIT_HERE,   /* processes of this machine, as the control connection shows */
	NP_ADMIT_TAG     /* peers that know the tag, which only the client is told */
};

/* Which option parser of netperf reads the options of a test. */
enum np_scanner { NP_SCAN_IP, NP_SCAN_UNIX, NP_SCAN_LINK, NP_SCAN_SCTP, NP_SCAN_OMNI };

struct np_transport {
	const char *name; /* as in the PROTOCOL metric */
	int family;       /* of its addresses, AF_*; 0: IP, by the plan */
	int socktype, protocol;
	int32_t wire_type; /* in OMNI requests; 0: cannot be asked for */
	bool ours;         /* unknown to netperf's daemon: needs PLAN */

	/* Traits. */
	bool reliable;  /* all data arrive, once and in order */
	bool connected; /* connections: connect(2), accept(2), close */
	bool bounded;   /* one call sends one message */
	enum np_admit admit;
	bool pinned;        /* datagram sockets are always connected; else on request, -n */
	bool several_paths; /* sockets can have several addresses (np_plan.also) */
	bool named;         /* users name the ends (-H, -L, -P); else the daemon does */
	bool link;          /* frames, by a socket of the caller (np_terms.eth) */
	bool passes_fds;    /* descriptors can be sent over it */
	bool encrypts;      /* by np_plan.tls_suite */
	bool stamps;        /* the kernel time-stamps its packets (--stations) */
	bool one_port;      /* can use the port of the control connections */
	bool ramps;         /* connections may begin during the test (--ramp) */

	/* What is known about it. */
	int ip_protocol;                           /* in IP packets, for captures; 0: none */
	bool tcp_info;                             /* TCP_INFO works while the connection lasts */
	bool (*acked)(int fd, struct np_acked *p); /* np_tcp_acked(); NULL: not known */
	const char *no_control;       /* why -N is impossible; NULL: possible, or said elsewhere */
	const char *service_protocol; /* in services(5); NULL: it lists no services */
	enum np_scanner scanner;

	/*
	 * Bytes of header at the start of each message. With a header no message is empty, and one
	 * that looks like np_eth_is_end() ends a test. 0: none.
	 */
	int32_t header;

	/* The parts of the kernel that it needs. */
	struct {
		const char *listed, *listed_six; /* in /proc/net/protocols; NULL: always there */
		const char *module, *option;     /* "sctp", "CONFIG_IP_SCTP"; NULL: none */
		const char *off;                 /* command that enables it; NULL: it is enabled */
		const char *dropped;             /* version of Linux that removed it; NULL */
		/* Is it supported? If not, sets *err. NULL: np_transport_probe() tries a socket. */
		int (*probe)(const struct np_transport *t, struct np_err *err);
	} kernel;

	/* Its packets, if ip_protocol is not 0. */
	struct {
		uint32_t header; /* bytes; 0: those of TCP, UDP */
		/* Further bytes of TCP options in a data segment of a stream, of a transaction. */
		uint32_t stream_options, turn_options;
		const char *no_capture; /* why --wire cannot capture them; NULL: it can */
	} packets;

	/* Its messages. */
	struct {
		int32_t max, min; /* largest default size, smallest: others are padded; 0: none */
		/* Report one that is too long (EMSGSIZE). NULL: in general words. */
		void (*too_long)(const struct np_run *run, struct np_err *err);
		int too_long_as; /* errno of older kernels for EMSGSIZE; 0: none */
	} message;

	/*
	 * If SO_SNDBUF and SO_RCVBUF do not apply: append the options for buffer sizes that the
	 * near end wants; read the sizes of a socket. May be NULL.
	 */
	struct {
		void (*ask)(const struct np_plan *p, struct np_sockopts *o);
		void (*read)(int fd, int *sndbuf, int *rcvbuf);
	} buffers;

	/* Append socket options of this transport. May be NULL. */
	void (*options)(const struct np_plan *p, struct np_sockopts *o);

	/* Open the near endpoint: the data socket (active, or no connections), else a listener. */
	int (*open)(struct np_run *run, struct np_err *err);

	/* Open data socket `number` (that of open is 0), or return -1. NULL: only one socket. */
	int (*another)(struct np_run *run, uint32_t number, struct np_err *err);

	/* Connect or accept. Blocks until done or np_stopped(). */
	int (*establish)(struct np_run *run, struct np_err *err);

	/* Once all are connected, before the window. Blocks until done or np_stopped(). Or NULL. */
	int (*greet)(struct np_run *run, struct np_err *err);

	/* Prepare a new connection (a handshake). The active end speaks first. May be NULL. */
	int (*upgrade)(struct np_run *run, struct np_conn *conn, struct np_err *err);

	/* Should a send that failed with this error be repeated? NULL: no. */
	bool (*sends_again)(int fd, int error);

	/* Record what the kernel knows of a connection at its end (np_closing). May be NULL. */
	void (*read_closing)(struct np_run *run, int fd);

	/* Record what is quick to read of a connection test's first connection. May be NULL. */
	void (*read_closing_first)(struct np_run *run, int fd);

	/* Put the kernel's figures into the evidence. Not for connection tests. May be NULL. */
	void (*put_kernel)(const struct np_run *run, int fd, struct np_bag *bag);

	/* How its data connections end. */
	struct {
		bool closes_whole; /* a half-close of either end stops both */
		bool shut_drops;   /* shutdown(2) ends both directions, and drops queued data */
		/*
		 * Shut down the sending half. If a last record must be sent before, wait for room
		 * until until_ns or np_abandoned(stop). NULL: shutdown(2).
		 */
		void (*shut)(const struct np_stop *stop, int fd, uint64_t until_ns);
		/* Does this error of recv(2) mean the end of data? NULL: no. */
		bool (*is_end)(int fd, int error);
		/*
		 * Data not acknowledged, in some unit; -1: the connection is over. NULL: the
		 * transport can receive the end of data after a half-close.
		 */
		int64_t (*unacked)(int fd);
		/* Send the end mark, where an empty datagram is none. May be NULL. */
		void (*send_mark)(struct np_run *run);
	} ends;

	/* Release what open took or left in the file system, once. May be NULL. */
	void (*close)(struct np_run *run);
};

/* Bits of np_bench.flags. */
enum {
	NP_B_ROUTE_OFF = 1 << 0, /* SO_DONTROUTE unless the user allows routing */
	/* Counts and reports as netperf's older tests. */
	NP_B_OLD = 1 << 1,
	NP_B_ONCE = 1 << 2,   /* not repeated for confidence (-i, -I) */
	NP_B_SPARSE = 1 << 3, /* no interim results; the table has average times */
	NP_B_MANY = 1 << 4,   /* a test-specific option sets the number of connections */
};

struct np_bench {
	const char *name;  /* for -t, in any case */
	const char *title; /* in the classic banner */
	const struct np_pattern *pattern;
	const struct np_transport *transport;
	int near_role; /* of the client, enum np_role */
	uint32_t code; /* of the request that asks for it, enum np_code */
	unsigned flags;
	const char *layout; /* of its classic table, in src/out */
};

extern const struct np_pattern np_pattern_stream, np_pattern_sendfile, np_pattern_rr,
    np_pattern_crr, np_pattern_cc, np_pattern_mss;
#define NP_TRANSPORT(name) extern const struct np_transport np_transport_##name;
#include "bench/transports.def"
#undef NP_TRANSPORT

/* The row of that name, in upper or lower case; NULL: there is none. */
const struct np_bench *np_bench_find(const char *name);

/* Row i of the table, NULL after the last. */
const struct np_bench *np_bench_at(size_t i);

/* Row i of the table of transports, NULL after the last. */
const struct np_transport *np_transport_at(size_t i);

/* Is delivery reliable? Then a close ends a stream; elsewhere an empty message is the end mark. */
static inline bool
np_delivers(const struct np_transport *t)
{
	return t->connected && t->reliable;
}

/* Socket type NP_WS_*, the same on all machines; 0: none of these. */
uint32_t np_transport_type(const struct np_transport *t);

/* Find by name, in any case; or NULL. type: NP_WS_*, as transports can share a name; 0: any. */
const struct np_transport *np_transport_by_name(const char *name, uint32_t type);
const struct np_pattern *np_pattern_by_name(const char *name);

/* Is there a test of this pattern over this transport? */
bool np_pattern_fits(const struct np_pattern *p, const struct np_transport *t);

/* The transport for socket_type and protocol (0: the usual one) of an OMNI request, or NULL. */
const struct np_transport *np_transport_find(int32_t wire_type, uint32_t protocol);

/* Pattern and daemon's role for an OMNI request of that direction, NP_WD_*. NULL: unsupported. */
const struct np_pattern *np_pattern_find(uint32_t direction, bool connection_test, int *role);

#endif
