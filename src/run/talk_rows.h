/*
 * The rows of talk.def as functions for talk_netperf.c and talk_plan.c: pass_NAME() moves a field
 * between a message and what it means (a plan, a run, a tally), as struct talk says.
 */
#ifndef NP_RUN_TALK_ROWS_H
#define NP_RUN_TALK_ROWS_H

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "run/talk.h"
#include "sys/cpu.h"

/* ---- Shared by the files of dialects ---- */

/* The dialect of one of netperf's requests; NULL: there is none. */
const struct np_dialect *np_netperf_dialect(uint32_t code);

/* The path of a daemon's UNIX domain socket in a message. NP_EPEER: it can't be one. */
int np_path_from_wire(char *path, struct np_far *far, struct np_err *err);
void np_path_to_wire(const struct np_run *run, char path[NP_UNIX_PATH_MAX]);

/* For what netperf's messages can't say. */
extern const struct np_dialect np_plan_dialect;

/* netperf's number of an IP family. */
static inline uint32_t
family_to_wire(int family)
{
	return np_family(family)->version == 6 ? NP_WF_INET6 : NP_WF_INET;
}

/* Set p->family from netperf's number of an IP family; fails for any other number. */
static inline int
family_from_wire(uint32_t family, struct np_plan *p, struct np_err *err)
{
	switch (family) {
	case NP_WF_INET:
		p->family = AF_INET;
		return NP_OK;
	case NP_WF_INET6:
		p->family = AF_INET6;
		return NP_OK;
	default:
		return np_fail(err, NP_EPEER, EAFNOSUPPORT, "request for address family %u",
			       family);
	}
}

/* A port in a request, which has 32 bits there. 0: any. */
static inline int
port_from_wire(uint32_t port, uint32_t *out, struct np_err *err)
{
	if (port > UINT16_MAX) {
		return np_fail(err, NP_EPEER, EINVAL, "port %u is out of range", port);
	}
	*out = port;
	return NP_OK;
}

/* Set far->port from a grant: 0 can't be connected to. */
static inline int
decode_port(uint32_t port, struct np_far *far, struct np_err *err)
{
	if (port == 0 || port > UINT16_MAX) {
		return np_fail(err, NP_EPEER, 0, "the daemon names port %u for the data connection",
			       port);
	}
	far->port = port;
	return NP_OK;
}

/* netperf's numbers for the methods, from 0 on, and its letters for them. */
#define NP_CPU_METHODS "UIPTLRNKSCEMO"

/* The number of the method by which this end measured; 0: it did not. */
static inline int32_t
cpu_method(const struct np_tally *t)
{
	return t->end.closing.cpu.known
		   ? (int32_t)(strchr(NP_CPU_METHODS, NP_CPU_METHOD) - NP_CPU_METHODS)
		   : 0;
}

/* What the far end's figures of processors mean, and netperf's method. */
static inline void
decode_cpu(struct np_far *far, int32_t method, int32_t cpus)
{
	bool known = method >= 0 && method < (int32_t)sizeof(NP_CPU_METHODS) - 1;
	struct np_cpu_use *cpu = &far->end.closing.cpu;

	far->cpu_method = known ? NP_CPU_METHODS[method] : '?';
	cpu->known = far->measures_cpu && cpu->util >= 0 && method != 0;
	cpu->count = cpus > 0 ? cpus : 0;
}

/* ---- A message on its way ---- */

enum kind { REQUEST, RESPONSE, RESULTS, KINDS };

#define NP_TESTS_ALONE
union message {
#define NP_MESSAGE(layout, type, title) struct np_##type layout;
#include "wire/messages.def"
};
#undef NP_TESTS_ALONE

struct talk {
	uint32_t code; /* of the test's request */
	enum kind kind;
	bool reads; /* decoding: the message to what it means; else the other way */
	union message m;
	/* Beside the message, in OMNI: */
	bool echoes;   /* the client will echo a token, */
	uint64_t echo; /* which the daemon names; 0: none */
	bool ids;      /* request ids, or streams that end by a reset */
	bool tokens;   /* wanted, or given */
	struct np_token token;

	/* For the expressions of rows, see talk.def. Encoding changes none of them. */
	struct np_plan *p;
	struct np_end *end;
	const struct np_run *run;
	const struct np_tally *tally;
	struct np_far *far;
	struct np_result *result;

	struct np_err *err; /* of decoding */
	int rc;
};

/* --- values that no member has ---------------------------------------------------------------- */

/* As netperf, ask for UNIX domain buffers of 0 bytes, the smallest, so that results compare. */
static inline int32_t
buffer(const struct np_plan *p, int32_t size)
{
	return size < 0 && np_family(p->transport->family)->is_here ? 0 : size;
}

/* TCP_MAERTS reuses the messages of TCP_STREAM: the field holds the size of the daemon's sends. */
static inline int32_t
recv_size(const struct talk *t)
{
	const struct np_worker *w = t->run->worker;

	return t->code == NP_TCP_MAERTS ? (int32_t)w->send_size
					: np_run_used(w->recv_size, t->end->call.recv_size);
}

/* By default the daemon's rings are to be as wide as the client's. */
static inline int32_t
send_width(const struct talk *t)
{
	return np_run_used(t->run->worker->send_ring.width, (int32_t)t->p->near.call.send_width);
}

static inline int32_t
recv_width(const struct talk *t)
{
	return np_run_used(t->run->worker->recv_ring.width, (int32_t)t->p->near.call.recv_width);
}

/* Only OMNI and transactions have the sign that tells a count from seconds. */
static inline int64_t
length(const struct talk *t)
{
	const struct np_plan *p = t->p;

	if (p->length >= 0 || t->code == NP_OMNI || p->pattern->transactions) {
		return p->length;
	}
	return p->transport->connected ? -p->length : 0;
}

/* A direction as the daemon sees it: the client's leading stream is received there. */
static inline uint32_t
direction(const struct np_plan *p)
{
	uint32_t lead = p->pattern->lead_direction;

	if (lead != NP_WD_TRANSMIT) {
		return lead;
	}
	return p->role == NP_LEAD ? NP_WD_RECEIVE : NP_WD_TRANSMIT;
}

/* netperf's older tests of transactions count the bytes of requests and responses together. */
static inline uint64_t
bytes_received(const struct talk *t)
{
	const struct np_counts *count = &t->tally->end.count;

	if (t->code != NP_OMNI && t->code != NP_PLAN && t->p->pattern->transactions) {
		return count->transactions * ((uint32_t)t->p->request + (uint32_t)t->p->response);
	}
	return t->code == NP_TCP_MAERTS ? count->sent : count->received;
}

/* From the opening of the window to its end; 0: it was not opened. */
static inline uint64_t
measured_ns(const struct talk *t)
{
	return t->tally->started_ns != 0 ? t->tally->ended_ns - t->tally->started_ns : 0;
}

/* If not measured: -1 in our messages and in those of older datagram tests, 0 in all others. */
static inline double
utilisation(const struct talk *t)
{
	const struct np_cpu_use *cpu = &t->tally->end.closing.cpu;
	bool tells = t->code == NP_PLAN || t->code == NP_UDP_STREAM || t->code == NP_DG_STREAM;

	return !cpu->known && tells ? -1 : cpu->util;
}

/* --- the rows, in both directions ------------------------------------------------------------- */

#define FROM(from, to) from
#define TO(from, to) to
#define BOTH(member) (member, member)
#define NONE (0, nothing)

/* Reads v into the target, or returns the meaning's value. noinline: compiles faster as a call. */
#define MEANS(type, meaning) (t->reads ? (TO meaning = v, v) : (type)(FROM meaning))
#define ROW(type, name, asked, granted, reported)                                                  \
	static __attribute__((noinline, unused)) type pass_##name(struct talk *t, type v)          \
	{                                                                                          \
		type nothing = v;                                                                  \
                                                                                                   \
		(void)nothing;                                                                     \
		if (t->kind == REQUEST) {                                                          \
			return MEANS(type, asked);                                                 \
		}                                                                                  \
		if (t->kind == RESPONSE) {                                                         \
			return MEANS(type, granted);                                               \
		}                                                                                  \
		return MEANS(type, reported);                                                      \
	}
#define NP_FIELD(name, asked, granted, reported) ROW(int64_t, name, asked, granted, reported)
#define NP_REAL(name, asked, granted, reported) ROW(double, name, asked, granted, reported)
#include "run/talk.def"

#endif
