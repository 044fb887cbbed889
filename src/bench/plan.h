/*
 * What a test is to do, as both ends agreed on it: filled from the command line (client) or from a
 * request (daemon), constant from the opening of the endpoints on. "near" is this process.
 */
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
struct np_words;

enum { NP_BATCH_USUAL = 64 }; /* messages of a call by default */

enum { NP_CONG_MAX = 16, NP_UNIX_DIR_MAX = 80 };

/*
 * What can be asked of an end, or of the whole test, as a number, a text or a flag has a row of
 * wire/plan.def, which says what it means, its default, and its place in messages and documents;
 * plan.c checks that member and row have the same type. -1: leave it to the kernel, and sizes to
 * the socket buffer.
 */

/* What one end's data socket is asked for. */
struct np_sock_plan {
	int32_t sndbuf, rcvbuf;
	int32_t prio, tos, mark;
	uint32_t port;
	char cong[NP_CONG_MAX];
	char device[16]; /* that it is bound to */
	bool connected;
	int32_t mask; /* bits of the address that stay, the rest is random; 0: all stay */
	uint8_t mac[NP_ETH_MAC]; /* the far end's, where the daemon is to send frames */
};

/* What one end's calls move, and when. */
struct np_call_plan {
	int32_t send_size, recv_size;
	uint32_t send_width, recv_width; /* buffers to use in turn */
	uint32_t send_align, recv_align, send_offset, recv_offset;
	int32_t dirty, clean;                 /* bytes written and read before each send */
	uint32_t interval_burst, interval_us; /* pacing */
	int64_t offered;                      /* bits a second of a stream; 0: all it can */
	char *fill_file;                      /* or NP_FILL_ZEROS */
};

/* For -F: the send buffers are the kernel's page of zeros, and never written (np_ring_zero()). */
#define NP_FILL_ZEROS "zero-page"

static inline bool
np_fills_zeros(const struct np_call_plan *c)
{
	return c->fill_file != NULL && strcmp(c->fill_file, NP_FILL_ZEROS) == 0;
}

/* Where one end runs, and by what. */
struct np_place {
	bool measure_cpu;
	uint32_t threads;
	int32_t cpu;
	struct np_cpu_turns turns;      /* workers are bound to, in turn; then cpu is -1 */
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
	struct np_addr far_bind; /* the far end's, where a user named one; len 0: none */
	uint32_t sources;        /* addresses, from bind on, that connections use in turn; 0: one */
	uint32_t far_bits;       /* of far_bind that all of the client's addresses have; 0: all */
	/* What the data sockets of each end are bound to beside that, where a transport has several
	 * paths. */
	struct np_also also, far_also;
	struct np_end near, far;
	int32_t request, response;
	uint32_t flows, burst, batch;
	uint32_t warm_up_ms, ramp, rate, arrivals, stations;
	uint32_t timeout_ms, silence_s;
	uint32_t port_min, port_max;
	uint32_t service, pacing;
	int32_t mss, ttl;
	bool nodelay, keepalive, no_route, no_fragment, defer_accept, fast_open, packet_info, cork;
	bool copy_avoidance, use_write, no_control, time_calls;
	bool ids, echo, spread, tokens, resets;
	int64_t length;          /* > 0 seconds, < 0 minus bytes or transactions, 0 no limit */
	uint32_t length_less_ms; /* by which a length in seconds is shorter: 0 to 999 */
	uint32_t tls_suite;      /* number of the cipher suite of TLS; 0: the usual one */
	bool debug, retry_connect;
	bool both;     /* a stream each way at once, see run/group.h; never told to a far end */
	bool sequence; /* datagrams of a stream are numbered, see bench/sequence.h, and connection
			* tests look at each connection: evidence of the test was agreed on */
	/* Datagrams: the client sends no empty one after its last request. */
	bool no_end_mark;
	char unix_dir[NP_UNIX_DIR_MAX]; /* where this end's UNIX sockets go; empty: /tmp */
};

/* How many messages a call carries, of engines that send and receive several. */
uint32_t np_plan_batch(const struct np_plan *p);

/* Can its data connections, or its data sockets, be told by a token (wire/token.h)? */
bool np_plan_shows_token(const struct np_plan *p);

/* What the test is called at this end. */
const struct np_words *np_plan_words(const struct np_plan *p);

/*
 * Can such a test have several data connections at a time, as many as the plan says? How many
 * at most: without connections each needs a port of the daemon's, from the one on that is named.
 */
bool np_plan_several(const struct np_plan *p);
uint32_t np_plan_most_flows(const struct np_plan *p);

/* Can its data connections be made again before anything goes over them? */
bool np_plan_spreads(const struct np_plan *p);

/* Why such a test can have no ramp; NULL: it can. */
const char *np_plan_no_ramp(const struct np_plan *p);

/* Why such a test can't be an open loop (bench/open.h); NULL: it can. */
const char *np_plan_no_rate(const struct np_plan *p);

/* Why an end can't send the page of zeros that it is asked for; NULL: it can, or is not asked. */
const char *np_plan_no_zeros(const struct np_plan *p);

/* Messages of that size a second that this end offers in a stream that it sends; 0: no rate. */
double np_plan_messages(const struct np_plan *p, size_t size);

/* How long such a test is to last; 0: no clock ends it. */
uint64_t np_plan_time_ns(const struct np_plan *p);
double np_plan_time_s(const struct np_plan *p);

/* The length as users write it: "10", "0.5", "-1000". Returns text. */
enum { NP_LENGTH_TEXT = 24 };
const char *np_plan_length_text(const struct np_plan *p, char text[NP_LENGTH_TEXT]);

/* Does it send a stream, on the same connections from its begin to its end? */
bool np_plan_streams(const struct np_plan *p);

/* Is it a stream with connections that can be reset with what is on its way? */
bool np_plan_may_reset(const struct np_plan *p);

/* Workers of the near end, no more than flows; and the most flows that one of them has. */
uint32_t np_plan_workers(const struct np_plan *p);
uint32_t np_plan_worker_flows(const struct np_plan *p);

/*
 * Settle what lists of processors mean for session number `session` of this plan: its workers go on
 * where those of the session before left off. One worker at the far end goes by cpu, which any
 * daemon can be told.
 */
void np_plan_place(struct np_plan *p, uint32_t session);

int np_plan_family(const struct np_plan *p);

/*
 * What the plan asks for that netperf's messages can't say, in the words of its option, such as
 * "--ramp": it takes PLAN, GRANT and RESULT (wire/plan.h), and only a daemon of ours can be asked,
 * which has to be greeted before and to grant NP_CAP_PLAN. NULL: nothing.
 */
const char *np_plan_beyond(const struct np_plan *p);

/*
 * Is the length a fraction of a second that the far end's clock has to keep? The daemon has to
 * grant NP_CAP_PLAN.
 */
bool np_plan_far_fraction(const struct np_plan *p);

/*
 * Everything at netperf's defaults, before options or a request are looked at. Who has called that
 * frees the plan's paths in the end; copies of it have the same ones.
 */
void np_plan_init(struct np_plan *p);
void np_plan_free(struct np_plan *p);

/* Let the plan have a copy of that path in place of one that it has; empty: none. */
int np_plan_path(char **path, const char *text, struct np_err *err);

#endif
