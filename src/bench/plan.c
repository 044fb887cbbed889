#include "bench/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "bench/bench.h"

static void
end_init(struct np_end *e)
{
	memset(e, 0, sizeof(*e));
	e->sock.sndbuf = e->sock.rcvbuf = -1;
	e->call.send_size = e->call.recv_size = -1;
	e->call.send_align = e->call.recv_align = 8;
	e->sock.prio = e->sock.tos = -1;
	e->place.cpu = -1;
	e->place.threads = 1;
	e->call.dirty = e->call.clean = -1;
}

void
np_plan_init(struct np_plan *p)
{
	memset(p, 0, sizeof(*p));
	end_init(&p->near);
	end_init(&p->far);
	p->flows = 1;
	p->batch = NP_BATCH_USUAL;
	p->length = 10;
	p->request = p->response = -1;
	p->timeout_ms = 1000;
	p->port_min = 5000;
	p->port_max = 65535;
	p->ttl = -1;
}

const struct np_words *
np_plan_words(const struct np_plan *p)
{
	return &p->pattern->words[p->role];
}

/* Does the daemon send datagrams that are not asked for one by one? */
static bool
daemon_floods(const struct np_plan *p)
{
	return !p->transport->connected && !p->pattern->transactions &&
	       (p->role == NP_LEAD) != p->active;
}

uint32_t
np_plan_most_flows(const struct np_plan *p)
{
	uint32_t daemon_port = p->active ? p->far.sock.port : p->near.sock.port;

	if (!p->pattern->several || p->transport->another == NULL ||
	    (daemon_floods(p) && daemon_port != 0)) {
		return 1;
	}
	return daemon_floods(p) ? NP_GRANT_PORTS : NP_FLOWS_MAX;
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
	return np_plan_several(p) && !p->pattern->connection_test && p->transport->connected &&
	       p->transport->ip_protocol != 0 && !p->fast_open;
}

const char *
np_plan_no_ramp(const struct np_plan *p)
{
	if ((p->pattern != &np_pattern_stream && p->pattern != &np_pattern_rr) ||
	    p->transport != &np_transport_tcp) {
		return "only TCP_STREAM, TCP_MAERTS and TCP_RR have a ramp";
	}
	if (p->length <= 0) {
		return "it needs a test by time (-l with seconds)";
	}
	return p->warm_up_ms > 0
		   ? "connections that begin during the test have no warm-up (leave --warm-up out)"
		   : NULL;
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

bool
np_plan_far_times(const struct np_plan *p)
{
	return !p->pattern->transactions && !p->pattern->probe && (p->both || p->role == NP_FOLLOW);
}

uint32_t
np_plan_workers(const struct np_plan *p)
{
	uint32_t threads = p->near.place.threads;

	return threads == 0 ? 1 : threads < p->flows ? threads : p->flows;
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
