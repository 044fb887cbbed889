/* How much a test may use: what it needs, what the limits allow, and which engines may drive it. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "bench/engine/engine.h"
#include "run/server_parts.h"

/* Ports of the data sockets: that of the listener, or one for each flow. */
static uint32_t
ports_of(const struct np_plan *p)
{
	return p->transport->connected ? 1 : p->flows;
}

/* Fail with the option of the limit that the plan exceeds. wish: what the test would take. */
static int
check_limits(const struct np_limits *limits, struct np_plan *p, const struct np_wish *wish,
	     struct np_err *err)
{
	uint64_t bytes = wish->takes[NP_RES_MEMORY] + NP_SESSION_BYTES;
	uint32_t first = p->near.sock.port, last = first + ports_of(p) - 1;
	/* The largest call that the request asks for; 0: it leaves the sizes to us. */
	int32_t call = p->role == NP_LEAD ? p->near.call.send_size : p->near.call.recv_size;

	if (p->pattern->sized) {
		call = p->request > p->response ? p->request : p->response;
	} else if (p->pattern->transactions) {
		call = 0;
	}
	if (limits->seconds != 0 && wish->seconds > limits->seconds) {
		return np_deny(err, ERANGE,
			       "test of %u s: the daemon allows %llu (netserver --max-length)",
			       wish->seconds, (unsigned long long)limits->seconds);
	}
	/* A test without a time is ended at the limit, by plan_drive(): the warm-up must fit in. */
	if (limits->seconds != 0 && wish->seconds == 0 &&
	    np_server_warm_up_s(p) >= limits->seconds) {
		return np_deny(
		    err, ERANGE,
		    "warm-up of %u s: the daemon allows tests of %llu (netserver --max-length)",
		    np_server_warm_up_s(p), (unsigned long long)limits->seconds);
	}
	if (limits->message != 0 && call > 0 && (uint64_t)call > limits->message) {
		return np_deny(
		    err, EMSGSIZE,
		    "message of %d bytes: the daemon allows %llu (netserver --max-message)", call,
		    (unsigned long long)limits->message);
	}
	if (limits->bytes != 0 && bytes > limits->bytes) {
		return np_deny(err, ENOMEM,
			       "test of %llu bytes of buffers: the daemon allows %llu (netserver "
			       "--max-memory)",
			       (unsigned long long)bytes, (unsigned long long)limits->bytes);
	}
	if (limits->port_max != 0 && first != 0 &&
	    (first < limits->port_min || last > limits->port_max)) {
		return np_deny(
		    err, EACCES,
		    "data port %u: the daemon allows ports %u to %u (netserver --data-ports)",
		    first < limits->port_min ? first : last, limits->port_min, limits->port_max);
	}
	return NP_OK;
}

uint32_t
np_limits_bit(const struct np_engine *e)
{
	size_t i = 0;

	while (np_engine_at(i) != e) {
		i++;
	}
	return UINT32_C(1) << i;
}

bool
np_limits_serve(const struct np_limits *limits, const struct np_engine *e)
{
	return limits->engines == 0 || (limits->engines & np_limits_bit(e)) != 0;
}

const char *
np_server_why_no_engine(const struct np_limits *limits, const struct np_engine *e,
			const struct np_plan *p)
{
	if (!np_limits_serve(limits, e)) {
		return "netserver --engines does not name it";
	}
	if (e->spins && limits->spin == 0) {
		return "netserver was not started with --spin N, which lets N threads spin";
	}
	return np_engine_why_not(e, p);
}

/* More threads would only wait for each other. */
enum { THREADS_A_CPU = 4 };

/* Reduce flows and threads to the limits, to one at least. *bytes: memory, with the session's. */
static int
reduce_to_limits(const struct np_limits *limits, struct np_plan *p, const struct np_terms *terms,
		 uint64_t *bytes, struct np_err *err)
{
	uint32_t *threads = &p->near.place.threads, cpus = (uint32_t)np_cpu_count();
	const struct np_engine *e = np_engine_of(p);
	uint32_t engine_most = e->most != NULL ? e->most() : UINT32_MAX;

	if (engine_most > 0 && *threads > engine_most) {
		*threads = engine_most; /* with none at all the engine is refused */
	}
	*threads = *threads > THREADS_A_CPU * cpus ? THREADS_A_CPU * cpus : *threads;
	if (e->spins && limits->spin > 0 && *threads > limits->spin) {
		*threads = limits->spin;
	}
	if (limits->flows != 0 && p->flows > limits->flows) {
		p->flows = limits->flows;
	}
	while (np_run_bytes(p, terms, bytes, err) == NP_OK) {
		*bytes =
		    *bytes > UINT64_MAX - NP_SESSION_BYTES ? UINT64_MAX : *bytes + NP_SESSION_BYTES;
		if (limits->bytes == 0 || *bytes <= limits->bytes ||
		    (*threads <= 1 && p->flows <= 1)) {
			return NP_OK;
		}
		*threads = *threads > 1 ? *threads / 2 : 1;
		p->flows = *threads == 1 && p->flows > 1 ? p->flows / 2 : p->flows;
	}
	return err->code;
}

/*
 * With --one-port data use the control port, unless the client names other addresses or ports, or
 * the test can't. It must use tokens if the daemon sends the first datagram, to know where to, and
 * if connections carry no data, as those are not recognised without a token.
 */
static void
choose_handover(const struct np_server *s, const struct np_plan *p, struct np_handover *handover)
{
	const struct np_addr *here = &s->collect.near;
	bool datagrams = !p->transport->connected;
	bool elsewhere = p->near.sock.port != 0 || p->also.count > 0 || p->far_also.count > 0 ||
			 (p->bind.len != 0 && !np_addr_same_host(&p->bind, here)) ||
			 np_family_of(here)->version != np_family(p->family)->version;

	if (!(datagrams ? s->limits.one_port_udp : s->limits.one_port) || elsewhere ||
	    !np_plan_shows_token(p) ||
	    (!p->tokens &&
	     (datagrams ? p->role == NP_LEAD : p->pattern->transactions && !p->pattern->sized))) {
		return;
	}
	/* port: datagrams from there are never taken for late ones of the test before. */
	*handover = (struct np_handover){ .wanted = true,
					  .tokens = p->tokens,
					  .datagrams = datagrams,
					  .many = p->pattern->connection_test,
					  .blocks = np_engine_blocks(np_engine_of(p), p),
					  .port = p->flows == 1 ? (uint16_t)p->far.sock.port : 0,
					  .count = p->flows };
	handover->silent = !datagrams && (p->role == NP_LEAD || p->pattern->probe);
}

int
np_server_wish(const struct np_server *s, struct np_plan *p, const struct np_terms *terms,
	       struct np_wish *wish, struct np_err *err)
{
	bool sends = p->pattern->lead_direction == NP_WD_TRANSMIT && p->role == NP_LEAD;
	uint64_t bytes, ns = np_plan_time_ns(p);

	p->sequence = (s->collect.caps & NP_CAP_SEQUENCE) != 0; /* as the greeting granted */
	memset(wish, 0, sizeof(*wish));
	snprintf(wish->test, sizeof(wish->test), "%s_%s", p->transport->name,
		 sends ? "maerts" : p->pattern->name);
	for (char *at = wish->test; *at != '\0'; at++) {
		*at = (char)toupper((unsigned char)*at);
	}
	wish->seconds =
	    ns > 0 ? (uint32_t)((ns + p->warm_up_ms * NP_MSEC + NP_SEC - 1) / NP_SEC) : 0;
	if (reduce_to_limits(&s->limits, p, terms, &bytes, err) != NP_OK) {
		return err->code;
	}
	wish->takes[NP_RES_MEMORY] = bytes - NP_SESSION_BYTES;
	choose_handover(s, p, &wish->handover);
	wish->takes[NP_RES_THREADS] = np_plan_workers(p);
	wish->takes[NP_RES_FLOWS] = p->flows;
	if (wish->handover.datagrams) {
		wish->takes[NP_RES_DATAGRAMS] = p->flows;
		wish->spares[NP_RES_DATAGRAMS] = p->flows - 1;
	}
	if (np_engine_of(p)->spins) {
		wish->takes[NP_RES_SPIN] = wish->takes[NP_RES_THREADS];
		wish->spares[NP_RES_SPIN] = wish->takes[NP_RES_SPIN] - 1;
	}
	if (p->transport->ip_protocol != 0 && !wish->handover.wanted) {
		wish->takes[NP_RES_PORTS] = ports_of(p);
		wish->spares[NP_RES_PORTS] = wish->takes[NP_RES_PORTS] - 1;
	}
	return check_limits(&s->limits, p, wish, err);
}

void
np_server_apply_grant(const struct np_server *s, const struct np_wish *wish, struct np_plan *p,
		      struct np_terms *terms)
{
	if (wish->takes[NP_RES_SPIN] > 0) {
		p->near.place.threads = (uint32_t)wish->takes[NP_RES_SPIN];
	}
	/* Connections of all flows go to one port; datagrams of each flow need one. */
	if (p->transport->ip_protocol != 0 && !p->transport->connected && !wish->handover.wanted) {
		p->flows = (uint32_t)wish->takes[NP_RES_PORTS];
	}
	if (wish->handover.datagrams && wish->handover.wanted) {
		p->flows = (uint32_t)wish->takes[NP_RES_DATAGRAMS];
	}
	if (wish->data_fd > 0) {
		terms->data_fd = wish->data_fd;
		terms->data_at = s->collect.near;
		terms->tokens = wish->handover.tokens;
		terms->token = wish->token;
		/* Datagram sockets are connected when the daemon passes them on. */
		p->near.sock.connected = wish->handover.datagrams || p->near.sock.connected;
	}
}
