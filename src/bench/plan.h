/* The test that both ends agreed on, constant once endpoints are open. "near" is this process. */
#ifndef NP_BENCH_PLAN_H
#define NP_BENCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cpulist.h"
#include "net/addr.h"
#include "net/eth.h"
#include "wire/plan.h"

struct np_bench;
struct np_engine;
struct np_pattern;
struct np_transport;

enum { NP_BATCH_USUAL = 64 }; /* messages of a call by default */

enum { NP_CONG_MAX = 16, NP_UNIX_DIR_MAX = 80 };

/*
 * Numbers, texts and flags have a row of wire/plan.def: meaning, default, place in messages and
 * documents. plan.c checks their types. -1: leave it to the kernel; of sizes, to the socket buffer.
 */

/* Settings of one end's data sockets. */
struct np_sock_plan {
	int32_t sndbuf, rcvbuf; /* bytes, as asked for */
	int32_t prio, tos, mark;
	uint32_t port;
	char cong[NP_CONG_MAX];
	char device[16]; /* that it is bound to */
	bool connected;
	int32_t mask;            /* bits of the address to keep, the rest is random; 0: keep all */
	uint8_t mac[NP_ETH_MAC]; /* of the far end, for raw frames */
};

/* What one end's calls move, and when. */
struct np_call_plan {
	int32_t send_size, recv_size;    /* bytes of a call */
	uint32_t send_width, recv_width; /* buffers to use in turn */
	uint32_t send_align, recv_align, send_offset, recv_offset;
	int32_t dirty, clean;                 /* bytes written and read before each send */
	uint32_t interval_burst, interval_us; /* pacing */
	int64_t offered; /* bits a second of a stream; 0: as many as possible */
	char *fill_file; /* or NP_FILL_ZEROS */
};

/* -F zero-page: send the kernel's page of zeros, and never write to it (np_ring_zero()). */
#define NP_FILL_ZEROS "zero-page"

static inline bool
np_fills_zeros(const struct np_call_plan *c)
{
	return c->fill_file != NULL && strcmp(c->fill_file, NP_FILL_ZEROS) == 0;
}

/* On which processors one end runs, and by which engine. */
struct np_place {
	bool measure_cpu;
	uint32_t threads;
	int32_t cpu;
	struct np_cpu_turns turns; /* CPUs that workers are bound to, in turn; then cpu is -1 */
	const struct np_engine *engine; /* NULL: sync for one flow a worker, epoll for more */
};

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
	struct np_addr far_bind; /* of the far one, if the user named it; len 0: none */
	uint32_t sources;        /* addresses, from bind on, that connections use in turn; 0: one */
	uint32_t far_bits;       /* prefix of far_bind that the client's addresses share; 0: all */
	/* Further addresses of each end's data sockets, for transports with several paths. */
	struct np_also also, far_also;
	struct np_end near, far;
	int32_t request, response; /* bytes */
	uint32_t flows, burst, batch;
	uint32_t warm_up_ms, ramp, rate, arrivals, stations;
	uint32_t timeout_ms, silence_s;
	uint32_t port_min, port_max;
	uint32_t service, pacing; /* code of DCCP; bytes a second of a socket */
	int32_t mss, ttl;
	bool nodelay, keepalive, no_route, no_fragment, defer_accept, fast_open, packet_info, cork;
	bool copy_avoidance, use_write, no_control, time_calls;
	bool ids, echo, spread, tokens, resets;
	int64_t length;            /* > 0 seconds, < 0 minus bytes or transactions, 0 no limit */
	uint32_t length_less_ms;   /* to subtract from a length in seconds: 0 to 999 */
	uint32_t tls_suite;        /* number of the cipher suite of TLS; 0: the default */
	bool debug, retry_connect; /* SO_DEBUG; -U: repeat a connect(2) that failed */
	bool both;     /* a stream each way at once (run/group.c); not sent to the far end */
	bool sequence; /* with evidence: number datagrams, and look at each connection of a test */
	bool no_end_mark; /* the client sends no empty datagram after its last request */
	char unix_dir[NP_UNIX_DIR_MAX]; /* where this end's UNIX sockets go; empty: /tmp */
};

/* Messages a call, for engines that send and receive several. */
uint32_t np_plan_batch(const struct np_plan *p);

/* Can a token identify its data connections or sockets (wire/token.h)? */
bool np_plan_shows_token(const struct np_plan *p);

/* Can one session have all planned data connections? Else some tests have a session for each. */
bool np_plan_several(const struct np_plan *p);

/* The most flows. Each one of datagrams needs a port of the daemon, from the one asked for on. */
uint32_t np_plan_most_flows(const struct np_plan *p);

/* Can its connections be made again before data are sent (--spread)? */
bool np_plan_spreads(const struct np_plan *p);

/* Why the planned test can have no ramp; NULL: it can. */
const char *np_plan_no_ramp(const struct np_plan *p);

/* Why the planned test can't be an open loop (bench/open.h); NULL: it can. */
const char *np_plan_no_rate(const struct np_plan *p);

/* Why an end can't send the page of zeros (-F zero-page); NULL: it can, or need not. */
const char *np_plan_no_zeros(const struct np_plan *p);

/* Messages of that size a second that this end offers in a stream that it sends; 0: no rate. */
double np_plan_messages(const struct np_plan *p, size_t size);

/* How long the test lasts; 0: time does not end it. */
uint64_t np_plan_time_ns(const struct np_plan *p);
double np_plan_time_s(const struct np_plan *p);

/* The length as users write it: "10", "0.5", "-1000". Returns text. */
enum { NP_LENGTH_TEXT = 24 };
const char *np_plan_length_text(const struct np_plan *p, char text[NP_LENGTH_TEXT]);

/* Is it a stream, on the same connections from beginning to end? */
bool np_plan_streams(const struct np_plan *p);

/* Is it a stream that a reset may end, with data in flight? */
bool np_plan_may_reset(const struct np_plan *p);

/* How many workers the near end has, and the most flows of one of them. */
uint32_t np_plan_workers(const struct np_plan *p);
uint32_t np_plan_worker_flows(const struct np_plan *p);

/*
 * Choose the CPUs of session number `session` from the plan's lists, after those of the session
 * before. A single worker at the far end is bound by `cpu`, which any daemon understands.
 */
void np_plan_place(struct np_plan *p, uint32_t session);

/* Of the data connections, AF_*: the transport's, or for one over IP the plan's. */
int np_plan_family(const struct np_plan *p);

/*
 * What netperf's messages have no field for: an option such as "--ramp", a transport's name, or
 * "this test"; NULL: nothing. It needs a daemon that granted NP_CAP_PLAN (wire/plan.h).
 */
const char *np_plan_beyond(const struct np_plan *p);

/* Does the far end need a length with a fraction of a second? That needs NP_CAP_PLAN, too. */
bool np_plan_far_needs_fraction(const struct np_plan *p);

/* Set netperf's defaults. Copies of a plan share its paths, which np_plan_free() frees. */
void np_plan_init(struct np_plan *p);
void np_plan_free(struct np_plan *p);

/* Replace a path of the plan by a copy of that text; empty: none. */
int np_plan_path(char **path, const char *text, struct np_err *err);

#endif
