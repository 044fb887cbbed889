/*
 * What a test is to do, as both ends agreed on it: filled from the command line (client) or from a
 * request (daemon), constant from the opening of the endpoints on. "near" is this process.
 */
#ifndef NP_BENCH_PLAN_H
#define NP_BENCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpulist.h"
#include "net/addr.h"
#include "net/eth.h"
#include "wire/plan.h"

struct np_bench;
struct np_engine;
struct np_pattern;
struct np_transport;
struct np_words;

enum { NP_BATCH_USUAL = 64 }; /* messages of a call, where nobody says how many */

enum { NP_CONG_MAX = 16, NP_FILL_MAX = 4096, NP_UNIX_DIR_MAX = 80 };

/* What one end's data socket is asked for. -1: leave to the kernel. */
struct np_sock_plan {
	int32_t sndbuf, rcvbuf; /* SO_SNDBUF, SO_RCVBUF, bytes */
	int32_t prio, tos;      /* SO_PRIORITY; IP_TOS or IPV6_TCLASS; negative: leave */
	uint32_t port;          /* 0: any */
	int32_t mask;           /* bits of the address that stay, the rest is random; 0: all stay */
	bool connected;         /* datagrams: connect() it */
	char cong[NP_CONG_MAX];
	uint8_t mac[NP_ETH_MAC]; /* the far end's, where the daemon is to send frames */
};

/* What one end's calls move, and when. Sizes in bytes; -1: take the socket buffer's. */
struct np_call_plan {
	int32_t send_size, recv_size; /* of a stream's call */
	uint32_t send_width, recv_width, send_align, send_offset, recv_align, recv_offset;
	int32_t dirty, clean; /* bytes written to, and read, before each send; 0: none */
	uint32_t interval_us, interval_burst; /* pacing: operations in an interval; 0: none */
	char fill_file[NP_FILL_MAX];
};

/* Where one end runs, and by what. */
struct np_place {
	int32_t cpu;               /* the process is bound to; -1: none */
	struct np_cpu_turns turns; /* workers are bound to, in turn; then cpu is -1 */
	bool measure_cpu;
	const struct np_engine *engine; /* NULL: sync for one flow a worker, epoll for more */
	uint32_t threads;               /* workers wished for */
};

/* One end's share. */
struct np_end {
	struct np_sock_plan sock;
	struct np_call_plan call;
	struct np_place place;
};

struct np_plan {
	const struct np_bench *bench; /* NULL at the daemon, which knows only the three below */
	const struct np_pattern *pattern;
	const struct np_transport *transport;
	int role;                /* of the near end, enum np_role */
	bool active;             /* the near end connects (the client); else it listens */
	int family;              /* AF_INET or AF_INET6 of the data connection */
	struct np_addr bind;     /* address of the near data socket; len 0: the wildcard */
	struct np_addr far_bind; /* the far end's, where a user named one; len 0: none */
	uint32_t
	    sources; /* data connections use this many addresses in turn, from bind on; 0: one */
	uint32_t far_bits; /* all addresses that begin with this many bits of far_bind are the
			      client's; 0: it alone is */
	/* What the data sockets of each end are bound to beside that, where a transport has several
	 * paths. */
	struct np_also also, far_also;
	struct np_end near, far;
	uint32_t flows;      /* data connections, at least one */
	uint32_t batch;      /* messages of one call, of engines that send and receive several */
	uint32_t warm_up_ms; /* before the window opens */
	uint32_t ramp;  /* data connections that begin a second (bench/ramp.h); 0: all at once */
	int64_t length; /* > 0 seconds, < 0 minus bytes or transactions, 0 no limit */
	uint32_t
	    length_less_ms; /* milliseconds by which a length in seconds is shorter: 0 to 999 */
	int32_t request, response;   /* bytes; -1 where the pattern has none */
	uint32_t burst;              /* requests kept in flight beside the one waited for */
	uint32_t timeout_ms;         /* datagram request/response: when a response counts as lost */
	uint32_t port_min, port_max; /* local ports of connection tests: min up to max - 1 */
	bool nodelay, cork, keepalive, no_route, defer_accept, no_fragment, debug;
	bool fast_open, packet_info, use_write, retry_connect, copy_avoidance;
	bool echo;       /* datagrams are sent to who proves by an echo that they are wanted */
	bool both;       /* a stream each way at once, see run/group.h; never told to a far end */
	bool spread;     /* data connections lie on different receive queues of the active end */
	bool no_control; /* there is no daemon, only a service at the data port */
	bool sequence;   /* datagrams of a stream are numbered, see bench/sequence.h */
	/* Requests and responses as datagrams have ids, see bench/ids.h; a client that sends a
	 * stream of them shows by it that it is ours. */
	bool ids;
	int32_t mss;        /* TCP_MAXSEG; 0: leave */
	int32_t ttl;        /* multicast; -1: leave */
	uint32_t pacing;    /* SO_MAX_PACING_RATE, bytes/s; 0: leave */
	uint32_t tls_suite; /* number of the cipher suite of TLS; 0: the usual one */
	uint32_t service;   /* service code of DCCP at both ends; 0: none */
	bool time_calls;    /* streams: record the time of every call, too */
	/* Datagrams: the client sends no empty one after its last request. */
	bool no_end_mark;
	char unix_dir[NP_UNIX_DIR_MAX]; /* where this end's UNIX sockets go; empty: /tmp */
};

/* What the test is called at this end. */
const struct np_words *np_plan_words(const struct np_plan *p);

/*
 * Can such a test have several data connections at a time, as many as the plan says? How many
 * at most: datagrams that the daemon sends need a socket a flow there, and each of them its port.
 */
bool np_plan_several(const struct np_plan *p);
uint32_t np_plan_most_flows(const struct np_plan *p);

/* Can its data connections be made again before anything goes over them? */
bool np_plan_spreads(const struct np_plan *p);

/* Why such a test can have no ramp; NULL: it can. */
const char *np_plan_no_ramp(const struct np_plan *p);

/* How long such a test is to last; 0: no clock ends it. */
uint64_t np_plan_time_ns(const struct np_plan *p);
double np_plan_time_s(const struct np_plan *p);

/* The length as users write it: "10", "0.5", "-1000". Returns text. */
enum { NP_LENGTH_TEXT = 24 };
const char *np_plan_length_text(const struct np_plan *p, char text[NP_LENGTH_TEXT]);

/* Does the far end's clock say how long the client's test lasts? */
bool np_plan_far_times(const struct np_plan *p);

/* How many workers the near end has: no more than flows. */
uint32_t np_plan_workers(const struct np_plan *p);

/*
 * Settle what lists of processors mean for session number `session` of this plan: its workers go on
 * where those of the session before left off. One worker at the far end goes by cpu, which any
 * daemon can be told.
 */
void np_plan_place(struct np_plan *p, uint32_t session);

/* The family of the data sockets, AF_*. */
int np_plan_family(const struct np_plan *p);

/* Everything at netperf's defaults, before options or a request are looked at. */
void np_plan_init(struct np_plan *p);

#endif
