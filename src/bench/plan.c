#include "bench/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/ring.h"
#include "bench/bench.h"
#include "bench/load.h"

/* Check the types of members. NOLINTBEGIN(bugprone-macro-parentheses): a type can have none */
#define IS(of, member, type)                                                                       \
	_Static_assert(_Generic(((struct of *)0)->member, type : 1, default : 0), #member);
/* NOLINTEND(bugprone-macro-parentheses) */
#define NP_E_NUMBER(type, group, member, ...) IS(np_end, group.member, NP_C_##type)
#define NP_E_FLAG(bit, group, member, ...) IS(np_end, group.member, bool)
#define NP_P_NUMBER(type, member, ...) IS(np_plan, member, NP_C_##type)
#define NP_P_FLAG(bit, member, ...) IS(np_plan, member, bool)
#define NP_H_NUMBER(type, member, ...) IS(np_plan, member, NP_C_##type)
#define NP_H_FLAG(member, ...) IS(np_plan, member, bool)
#include "wire/plan.def"

/* An end without options: the values of plan.def for what is absent. */
static void
init_end(struct np_end *e)
{
	memset(e, 0, sizeof(*e));
#define NP_E_NUMBER(type, group, member, json, kind, tag, name, least, most, absent, note)         \
	e->group.member = absent;
#include "wire/plan.def"
}

void
np_plan_init(struct np_plan *p)
{
	memset(p, 0, sizeof(*p));
	init_end(&p->near);
	init_end(&p->far);
#define NP_P_NUMBER(type, member, json, kind, tag, name, least, most, absent, note)                \
	p->member = absent;
#define NP_H_NUMBER(type, member, json, kind, value, note) p->member = value;
#include "wire/plan.def"
	p->length = 10; /* seconds */
}

void
np_plan_free(struct np_plan *p)
{
#define NP_E_PATH(group, member, ...)                                                              \
	free(p->near.group.member);                                                                \
	free(p->far.group.member);                                                                 \
	p->near.group.member = p->far.group.member = NULL;
#include "wire/plan.def"
}

int
np_plan_path(char **path, const char *text, struct np_err *err)
{
	free(*path);
	*path = text[0] != '\0' ? strdup(text) : NULL;
	return text[0] != '\0' && *path == NULL
		   ? np_fail(err, NP_ESYS, ENOMEM, "memory for the path %.80s", text)
		   : NP_OK;
}

bool
np_plan_streams(const struct np_plan *p)
{
	return !p->pattern->transactions && !p->pattern->connection_test && !p->pattern->probe;
}

bool
np_plan_may_reset(const struct np_plan *p)
{
	/* The sender has to know the bytes in flight; over TLS the kernel counts records'. */
	return p->transport->acked != NULL && !p->transport->encrypts && np_plan_streams(p);
}

bool
np_plan_far_needs_fraction(const struct np_plan *p)
{
	/* The far end transmits by its clock. LOC_CPU and unknown tests have no pattern. */
	return p->length_less_ms > 0 && p->pattern != NULL && !p->pattern->transactions &&
	       !p->pattern->probe && (p->both || p->role == NP_FOLLOW);
}

const char *
np_plan_beyond(const struct np_plan *p)
{
	const struct {
		const char *option;
		bool is_given;
	} ours[] = {
		{ "--engine", p->far.place.engine != NULL },
		{ "--source-range", p->sources > 1 },
		{ "--bind-device", p->far.sock.device[0] != '\0' },
		{ "--also-bind", p->also.count > 0 || p->far_also.count > 0 },
		{ "--threads", p->far.place.threads != 1 },
		{ "--warm-up", p->warm_up_ms > 0 },
		{ "--ramp", p->ramp > 0 },
		{ "--service-code", p->service > 0 },
		{ "--socket-mark", p->far.sock.mark >= 0 },
		{ "--rate", p->far.call.offered > 0 },
		{ "--stations", p->stations > 0 },
		{ "--flows", p->flows != 1 },
	};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (ours[i].is_given) {
			return ours[i].option;
		}
	}
	if (p->transport != NULL && p->transport->ours) {
		return p->transport->name;
	}
	return (p->bench != NULL && p->bench->code == NP_PLAN) || np_plan_far_needs_fraction(p)
		   ? "this test"
		   : NULL;
}

uint32_t
np_plan_batch(const struct np_plan *p)
{
	return p->batch > 0 ? p->batch : NP_BATCH_USUAL;
}

uint32_t
np_plan_most_flows(const struct np_plan *p)
{
	uint32_t port = p->active ? p->far.sock.port : p->near.sock.port, above;

	if (!p->pattern->several || p->transport->another == NULL) {
		return 1;
	}
	above = np_family_ports(np_plan_family(p)) - port;
	return !p->transport->connected && port != 0 && above < NP_FLOWS_MAX ? above + 1
									     : NP_FLOWS_MAX;
}

bool
np_plan_several(const struct np_plan *p)
{
	uint32_t most = np_plan_most_flows(p);

	return most > 1 && p->flows <= most;
}

bool
np_plan_spreads(const struct np_plan *p)
{
	/* Connections that last and have receive queues (IP), and no data with the SYN. */
	return np_plan_several(p) && !p->pattern->connection_test && p->transport->connected &&
	       p->transport->ip_protocol != 0 && !p->fast_open;
}

const char *
np_plan_no_ramp(const struct np_plan *p)
{
	if (!p->pattern->ramps || !p->transport->ramps) {
		return "only TCP_STREAM, TCP_MAERTS and TCP_RR have a ramp";
	}
	if (p->length <= 0) {
		return "it needs a test by time (-l with seconds)";
	}
	return p->warm_up_ms > 0
		   ? "connections that begin during the test have no warm-up (leave --warm-up out)"
		   : NULL;
}

bool
np_plan_shows_token(const struct np_plan *p)
{
	const struct np_transport *t = p->transport;

	if (p->pattern->connection_test &&
	    (t->upgrade != NULL || p->near.call.dirty > 0 || p->request > NP_RING_MAX)) {
		return false; /* it begins each buffer: no handshake before it, no -k over it */
	}
	/* --spread drops connections, --ramp makes some later, -F sends data with the SYN. */
	return t->one_port && !p->no_control && !p->spread && !p->fast_open && p->ramp == 0;
}

const char *
np_plan_no_rate(const struct np_plan *p)
{
	bool has_requests = p->pattern->ids || p->pattern->connection_test;

	if (!p->pattern->offers && (!has_requests || p->role != NP_LEAD)) {
		return "only tests of requests and responses, of connections, and streams have a "
		       "rate";
	}
	if (p->far.call.offered > 0 && p->arrivals != NP_ARRIVE_EVENLY) {
		return "what the far end sends comes evenly (leave out --arrivals)";
	}
	if (p->retry_connect) {
		return "a connection is tried once (leave out -- -U)";
	}
	/* Datagrams of the UNIX domain: as none is lost, they have no ids. */
	if (has_requests && p->transport->reliable && !p->transport->connected) {
		return "nothing tells which request a message answers";
	}
	if (p->length <= 0) {
		return "it needs a test by time (-l with seconds)";
	}
	if (p->burst > 0 || p->near.call.interval_burst > 0) {
		return "how many are in flight follows from it (leave out -- -b, -b and -w)";
	}
	if (p->ramp > 0) {
		return "all its connections exist from the beginning (leave out --ramp)";
	}
	return p->no_control ? "it needs a netserver, which -N leaves out" : NULL;
}

const char *
np_plan_no_zeros(const struct np_plan *p)
{
	const struct np_call_plan *near = &p->near.call, *far = &p->far.call;

	if (p->pattern == NULL || (!np_fills_zeros(near) && !np_fills_zeros(far))) {
		return NULL;
	}
	if (!np_plan_streams(p) || p->pattern->sends_file || !np_delivers(p->transport)) {
		return "only streams over connections never write to what they send";
	}
	return (np_fills_zeros(near) && near->dirty > 0) || (np_fills_zeros(far) && far->dirty > 0)
		   ? "-k and -K write to the buffers"
		   : NULL;
}

double
np_plan_messages(const struct np_plan *p, size_t size)
{
	bool sends = p->pattern->offers && p->role == NP_LEAD && size > 0;

	return sends ? (double)p->near.call.offered / 8 / (double)size : 0;
}

uint64_t
np_plan_time_ns(const struct np_plan *p)
{
	return p->length > 0 ? (uint64_t)p->length * NP_SEC - p->length_less_ms * NP_MSEC : 0;
}

double
np_plan_time_s(const struct np_plan *p)
{
	return (double)np_plan_time_ns(p) / 1e9;
}

const char *
np_plan_length_text(const struct np_plan *p, char text[NP_LENGTH_TEXT])
{
	if (p->length > 0 && p->length_less_ms > 0) {
		snprintf(text, NP_LENGTH_TEXT, "%.13g", np_plan_time_s(p));
	} else {
		snprintf(text, NP_LENGTH_TEXT, "%" PRId64, p->length);
	}
	return text;
}

uint32_t
np_plan_workers(const struct np_plan *p)
{
	uint32_t threads = p->near.place.threads;

	return threads == 0 ? 1 : threads < p->flows ? threads : p->flows;
}

uint32_t
np_plan_worker_flows(const struct np_plan *p)
{
	uint32_t workers = np_plan_workers(p);

	return (p->flows + workers - 1) / workers;
}

void
np_plan_place(struct np_plan *p, uint32_t session)
{
	struct np_place *far = &p->far.place;

	np_cpu_turns_begin(&p->near.place.turns, session * np_plan_workers(p));
	np_cpu_turns_begin(&far->turns, session * far->threads);
	if (far->turns.count > 0 && p->flows == 1 && !p->both) {
		far->cpu = np_cpu_turn(&far->turns, 0);
		far->turns.count = 0;
	}
}

int
np_plan_family(const struct np_plan *p)
{
	return p->transport->family > 0 ? p->transport->family : p->family;
}
