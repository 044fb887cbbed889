/*
 * PLAN, GRANT and RESULT (wire/plan.h): any test whose pattern and transport both ends know. A
 * client asks so for what netperf's messages can't say.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "bench/engine/engine.h"
#include "net/cidr.h"
#include "run/talk_parts.h"
#include "wire/plan.h"

/* --- what both halves share ------------------------------------------------------------------- */

/* Flags of a plan and where they stand in it. Those of the daemon's end are beside them. */
static const struct {
	uint32_t bit;
	size_t at;
} flags[] = {
	{ NP_WP_NODELAY, offsetof(struct np_plan, nodelay) },
	{ NP_WP_IDS, offsetof(struct np_plan, ids) },
	{ NP_WP_KEEPALIVE, offsetof(struct np_plan, keepalive) },
	{ NP_WP_NO_ROUTE, offsetof(struct np_plan, no_route) },
	{ NP_WP_NO_FRAGMENT, offsetof(struct np_plan, no_fragment) },
	{ NP_WP_DEFER_ACCEPT, offsetof(struct np_plan, defer_accept) },
	{ NP_WP_FAST_OPEN, offsetof(struct np_plan, fast_open) },
	{ NP_WP_PACKET_INFO, offsetof(struct np_plan, packet_info) },
	{ NP_WP_COPY_AVOIDANCE, offsetof(struct np_plan, copy_avoidance) },
	{ NP_WP_ECHO, offsetof(struct np_plan, echo) },
	{ NP_WP_SPREAD, offsetof(struct np_plan, spread) },
};

static uint32_t
flags_of(const struct np_plan *p, const struct np_end *daemon)
{
	uint32_t bits = 0;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		bits |= *(const bool *)((const char *)p + flags[i].at) ? flags[i].bit : 0;
	}
	if (p->tls_suite > NP_WP_TLS_FIRST) {
		bits |= (p->tls_suite - NP_WP_TLS_FIRST) << NP_WP_TLS_SHIFT & NP_WP_TLS_SUITE;
	}
	return bits | (daemon->sock.connected ? NP_WP_CONNECTED : 0) |
	       (daemon->place.measure_cpu ? NP_WP_CPU : 0);
}

static void
flags_to(uint32_t bits, struct np_plan *p, struct np_end *daemon)
{
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		*(bool *)((char *)p + flags[i].at) = (bits & flags[i].bit) != 0;
	}
	p->tls_suite = (bits & NP_WP_TLS_SUITE) == 0
			   ? 0
			   : NP_WP_TLS_FIRST + ((bits & NP_WP_TLS_SUITE) >> NP_WP_TLS_SHIFT);
	daemon->sock.connected = (bits & NP_WP_CONNECTED) != 0;
	daemon->place.measure_cpu = (bits & NP_WP_CPU) != 0;
}

/* All that is negative means the same. */
static int32_t
wish(int32_t v)
{
	return v < 0 ? -1 : v;
}

/* netperf's numbers, which are the same on all machines, and one that it has not. */
static const struct {
	int socktype;
	uint32_t number;
} types[] = { { SOCK_STREAM, NP_WS_STREAM },
	      { SOCK_DGRAM, NP_WS_DGRAM },
	      { SOCK_SEQPACKET, NP_WS_SEQPACKET } };

static uint32_t
type_to_wire(int socktype)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].socktype == socktype) {
			return types[i].number;
		}
	}
	return 0;
}

static int
type_from_wire(uint32_t number)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].number == number) {
			return types[i].socktype;
		}
	}
	return 0;
}

/* --- the client's half ------------------------------------------------------------------------ */

/* A socket that flows share is to hold what one has for each of them. */
static int32_t
buffer_to_wire(const struct np_plan *p, int32_t size)
{
	bool shared = p->flows > 1 && !p->transport->connected;

	return np_family_is_local(p->transport->family) && !shared ? np_unix_buffer_to_wire(size)
								   : wish(size);
}

static void
ask_end(const struct np_plan *p, const struct np_run *run, struct np_plan_message *m)
{
	const struct np_end *far = &p->far;
	const struct np_transport *t = p->transport;
	bool uncut = !p->pattern->transactions && t->bounded && (t->header > 0 || t->reliable);

	m->send_size = wish(far->call.send_size);
	m->receive_size = uncut ? (int32_t)run->worker->send_size : wish(far->call.recv_size);
	m->send_buf_size = buffer_to_wire(p, far->sock.sndbuf);
	m->recv_buf_size = buffer_to_wire(p, far->sock.rcvbuf);
	/* As wide as here, unless somebody wants it otherwise. */
	m->send_width =
	    (uint32_t)np_run_used(run->worker->send_ring.width, (int32_t)p->near.call.send_width);
	m->recv_width =
	    (uint32_t)np_run_used(run->worker->recv_ring.width, (int32_t)p->near.call.recv_width);
	m->send_alignment = far->call.send_align;
	m->recv_alignment = far->call.recv_align;
	m->send_offset = far->call.send_offset;
	m->recv_offset = far->call.recv_offset;
	m->dirty_count = wish(far->call.dirty);
	m->clean_count = wish(far->call.clean);
	m->interval_burst = far->call.interval_burst;
	m->interval_usecs = far->call.interval_us;
	m->socket_prio = wish(far->sock.prio);
	m->socket_tos = wish(far->sock.tos);
	m->data_port = far->sock.port;
	snprintf(m->congestion, sizeof(m->congestion), "%s", far->sock.cong);
	snprintf(m->fill_file, sizeof(m->fill_file), "%.*s", (int)sizeof(m->fill_file) - 1,
		 far->call.fill_file);
	snprintf(m->engine, sizeof(m->engine), "%s",
		 far->place.engine != NULL ? far->place.engine->name : "");
}

static void
also_to_wire(const struct np_also *also, uint8_t bytes[NP_PLAN_ALSO], uint32_t *count)
{
	*count = 0;
	for (uint32_t i = 0; i < also->count; i++) {
		uint32_t size = (uint32_t)np_addr_size(&also->at[i]);

		if (*count + size > NP_PLAN_ALSO) {
			return; /* the daemon tells how many it goes by */
		}
		np_addr_to_wire(&also->at[i], bytes + *count);
		*count += size;
	}
}

/* The addresses of both ends, where somebody named them. */
static void
ask_addresses(const struct np_plan *p, const struct np_run *run, struct np_plan_message *m)
{
	if (!p->transport->named) {
		return;
	}
	m->family = p->transport->ip_protocol != 0 ? family_to_wire(p->family) : 0;
	m->client_port = np_addr_port(&run->end.local);
	if (p->bind.len != 0) {
		m->client_address.count = (uint32_t)np_addr_size(&p->bind);
		np_addr_to_wire(&p->bind, m->client_address.at);
		m->client_prefix = p->sources > 1 ? np_range_bits(&p->bind, p->sources) : 0;
	}
	if (p->far_bind.len != 0) {
		m->data_address.count = (uint32_t)np_addr_size(&p->far_bind);
		np_addr_to_wire(&p->far_bind, m->data_address.at);
	}
	also_to_wire(&p->also, m->client_also.at, &m->client_also.count);
	also_to_wire(&p->far_also, m->data_also.at, &m->data_also.count);
}

static void
ask_by(const struct np_tagged *by, const struct np_plan *p, const struct np_run *run,
       uint8_t *frame)
{
	struct np_plan_message m;
	/* Who is to receive datagrams proves that he wants them. */
	bool echoes = !p->transport->connected && !p->pattern->transactions && p->role == NP_FOLLOW;

	np_tagged_init(by, &m);
	snprintf(m.pattern, sizeof(m.pattern), "%s", p->pattern->name);
	snprintf(m.transport, sizeof(m.transport), "%s", p->transport->name);
	m.socket_type = type_to_wire(p->transport->socktype);
	m.leads = p->role == NP_FOLLOW;
	m.length = p->length > 0 ? p->length * 1000 - p->length_less_ms : p->length;
	m.request_size = wish(p->request);
	m.response_size = wish(p->response);
	m.flags = flags_of(p, &p->far) | (echoes ? NP_WP_ECHO : 0);
	m.flows = p->flows;
	m.depth = p->burst;
	m.batch = p->batch == NP_BATCH_USUAL ? 0 : p->batch;
	m.threads = p->far.place.threads;
	m.warm_up = p->warm_up_ms;
	(void)np_cpu_turns_text(&p->far.place.turns, m.cpus, sizeof(m.cpus));
	m.ramp = p->ramp;
	m.service = p->service;
	ask_end(p, run, &m);
	ask_addresses(p, run, &m);
	if (run->terms->eth != NULL) {
		m.station.count = sizeof(run->terms->eth->mac);
		memcpy(m.station.at, run->terms->eth->mac, sizeof(run->terms->eth->mac));
	}
	m.cpu = p->far.place.cpu;
	np_tagged_put(by, &m, frame);
}

static void
ask(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	ask_by(&np_tagged_plan, p, run, frame);
}

void
np_engines_ask(const struct np_plan *p, const struct np_run *run, uint8_t *frame)
{
	ask_by(&np_tagged_engines, p, run, frame);
}

/* Where the data goes to. */
static int
granted_place(struct np_grant_message *m, struct np_far *far, struct np_err *err)
{
	if (m->path[0] != '\0') {
		return np_path_from_wire(m->path, far, err);
	}
	for (uint32_t i = 1; i < m->ports.count; i++) {
		if (granted_port(m->ports.at[i], far, err) != NP_OK) {
			return err->code;
		}
	}
	if (m->station.count == 0) {
		memcpy(far->ports, m->ports.at, m->ports.count * sizeof(m->ports.at[0]));
		far->port = far->ports[0];
		return far->port != 0 ? NP_OK : granted_port(0, far, err);
	}
	if (m->station.count != sizeof(far->mac)) {
		return np_fail(err, NP_EPEER, 0, "the daemon names a station by %u bytes",
			       m->station.count);
	}
	if (m->ports.count > 0) {
		far->port = m->ports.at[0];
	} else if (m->token == 0) {
		return np_fail(err, NP_EPEER, 0, "the daemon names no tag for the frames");
	}
	memcpy(far->mac, m->station.at, sizeof(far->mac));
	return NP_OK;
}

static int
granted(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_grant_message m;

	if (np_tagged_get(&np_tagged_grant, frame, &m, err) != NP_OK ||
	    granted_place(&m, far, err) != NP_OK) {
		return err->code;
	}
	far->token = m.token;
	far->key_bytes = m.key.count;
	memcpy(far->key, m.key.at, m.key.count);
	far->ids = (m.flags & NP_WP_IDS) != 0;
	far->nodelay = (m.flags & NP_WP_NODELAY) != 0;
	far->spreads = (m.flags & NP_WP_SPREAD) != 0;
	far->measures_cpu = (m.flags & NP_WP_CPU) != 0;
	far->sndbuf = m.send_buf_size;
	far->rcvbuf = m.recv_buf_size;
	far->send_size = m.send_size;
	far->recv_size = m.receive_size;
	far->send_width = (int)m.send_width;
	far->recv_width = (int)m.recv_width;
	far->prio = m.socket_prio;
	far->tos = m.socket_tos;
	far->flows = m.flows;
	far->threads = m.threads;
	np_text_printable(m.cpus);
	snprintf(far->cpus, sizeof(far->cpus), "%s", m.cpus);
	far->ramp = m.ramp;
	far->client_bits = m.client_prefix;
	far->also = m.also;
	np_text_printable(m.engine);
	snprintf(far->engine, sizeof(far->engine), "%s", m.engine);
	return NP_OK;
}

static int
reported(const uint8_t *frame, struct np_far *far, struct np_err *err)
{
	struct np_result_message m;

	if (np_tagged_get(&np_tagged_result, frame, &m, err) != NP_OK) {
		return err->code;
	}
	far->reported = true;
	far->received = (uint64_t)m.bytes_received;
	far->receives = m.receive_calls;
	far->sent = (uint64_t)m.bytes_sent;
	far->sends = m.send_calls;
	far->failed_sends = m.failed_sends;
	far->transactions = m.transactions;
	far->elapsed = (double)m.elapsed_ns / 1e9;
	far->met = m.flows;
	far->skew.begin_ns = m.begin_skew_ns;
	far->skew.end_ns = m.end_skew_ns;
	far->retrans = m.retransmissions;
	far->sndbuf_end = m.send_buf_size;
	far->rcvbuf_end = m.recv_buf_size;
	cpu_told(far, m.cpu_util, m.cpu_method, m.cpus);
	far->cpu.user = m.cpu_user;
	far->cpu.system = m.cpu_system;
	far->cpu.iowait = m.cpu_iowait;
	far->cpu.irq = m.cpu_irq;
	far->cpu.softirq = m.cpu_softirq;
	far->cpu.peak = m.cpu_peak;
	far->cpu.peak_id = m.cpu_peak_id;
	np_text_printable(m.congestion); /* it may be shown on a terminal */
	snprintf(far->cong, sizeof(far->cong), "%s", m.congestion);
	return NP_OK;
}

/* --- the daemon's half ------------------------------------------------------------------------ */

static int
asked_kind(struct np_plan_message *m, struct np_plan *p, struct np_err *err)
{
	np_text_printable(m->transport);
	np_text_printable(m->pattern);
	p->transport = np_transport_any(m->transport, type_from_wire(m->socket_type));
	if (p->transport == NULL) {
		return np_fail(err, NP_EUNSUP, EPROTONOSUPPORT, "transport '%s', type %u",
			       m->transport, m->socket_type);
	}
	p->pattern = np_pattern_any(m->pattern);
	if (p->pattern == NULL) {
		return np_fail(err, NP_EUNSUP, EINVAL, "pattern '%s'", m->pattern);
	}
	if (!np_pattern_fits(p->pattern, p->transport)) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "pattern %s over transport %s",
			       p->pattern->name, p->transport->name);
	}
	if (m->leads && (!p->pattern->sequence || p->transport->ip_protocol == 0)) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "leads: not in %s over %s",
			       p->pattern->name, p->transport->name);
	}
	p->role = m->leads ? NP_LEAD : NP_FOLLOW;
	return NP_OK;
}

/* Nothing but its own clock ends a ramp at this end, if the far end never comes. */
static int
asked_ramp(const struct np_plan *p, struct np_err *err)
{
	const char *why = p->ramp > 0 ? np_plan_no_ramp(p) : NULL;

	if (why != NULL) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "ramp of %u a second: %s", p->ramp, why);
	}
	return NP_OK;
}

static int
asked_sizes(const struct np_plan_message *m, struct np_plan *p, struct np_err *err)
{
	if (p->pattern->sized && (m->request_size <= 0 || m->response_size <= 0)) {
		return np_fail(err, NP_EPEER, EINVAL, "request of %d, response of %d bytes",
			       m->request_size, m->response_size);
	}
	if (p->transport->header > 0 && !p->pattern->sized && m->receive_size <= 0) {
		return np_fail(err, NP_EPEER, EINVAL, "frames of %d bytes", m->receive_size);
	}
	p->request = m->request_size;
	p->response = m->response_size;
	p->length = m->length > 0 ? (m->length + 999) / 1000 : m->length;
	p->length_less_ms = m->length > 0 ? (uint32_t)(p->length * 1000 - m->length) : 0;
	p->flows = m->flows;
	p->burst = m->depth;
	p->batch = m->batch > 0 ? m->batch : NP_BATCH_USUAL;
	p->near.place.threads = m->threads;
	p->warm_up_ms = m->warm_up;
	p->ramp = m->ramp;
	p->service = m->service;
	return NP_OK;
}

static int
asked_flows(const struct np_plan *p, struct np_err *err)
{
	uint32_t most = np_plan_most_flows(p);

	if (p->flows > 1 && most == 1) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "flows of %u: %s over %s has one",
			       p->flows, p->pattern->name, p->transport->name);
	}
	if (p->flows > most) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP,
			       "flows of %u: %s over %s, led by the daemon, has up to %u", p->flows,
			       p->pattern->name, p->transport->name, most);
	}
	if (p->flows > 1 && p->role == NP_LEAD && !p->transport->connected && !p->echo) {
		return np_fail(err, NP_EUNSUP, EACCES,
			       "flows of %u datagrams without an echo of each", p->flows);
	}
	return asked_ramp(p, err);
}

static void
asked_end(const struct np_plan_message *m, struct np_end *near)
{
	near->call.send_size = m->send_size;
	near->call.recv_size = m->receive_size;
	near->sock.sndbuf = m->send_buf_size;
	near->sock.rcvbuf = m->recv_buf_size;
	near->call.send_width = m->send_width;
	near->call.recv_width = m->recv_width;
	near->call.send_align = m->send_alignment;
	near->call.recv_align = m->recv_alignment;
	near->call.send_offset = m->send_offset;
	near->call.recv_offset = m->recv_offset;
	near->call.dirty = m->dirty_count;
	near->call.clean = m->clean_count;
	near->call.interval_burst = m->interval_burst;
	near->call.interval_us = m->interval_usecs;
	near->sock.prio = m->socket_prio;
	near->sock.tos = m->socket_tos;
	near->place.cpu = m->cpu;
	snprintf(near->sock.cong, sizeof(near->sock.cong), "%s", m->congestion);
	snprintf(near->call.fill_file, sizeof(near->call.fill_file), "%s", m->fill_file);
}

/* An address in a plan; count 0: none. */
static int
asked_address(const char *whose, const uint8_t *bytes, uint32_t count, uint32_t port, int family,
	      struct np_addr *out, struct np_err *err)
{
	if (count == 0) {
		return NP_OK;
	}
	np_addr_make_any(out, family);
	if (count != np_addr_size(out)) {
		return np_fail(err, NP_EPEER, EINVAL, "%s address of %u bytes in family %s", whose,
			       count, np_family_name(family));
	}
	np_addr_make(out, family, bytes, port);
	np_addr_from_wire(out, bytes);
	return NP_OK;
}

static int
asked_also(const char *whose, const uint8_t *bytes, uint32_t count, const struct np_plan *p,
	   struct np_also *out, struct np_err *err)
{
	struct np_addr any;
	uint32_t size;

	if (count == 0) {
		return NP_OK;
	}
	np_addr_make_any(&any, np_plan_family(p));
	size = (uint32_t)np_addr_size(&any);
	if (!p->transport->several_paths) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "further addresses: not over %s",
			       p->transport->name);
	}
	if (count % size != 0 || count / size > NP_ALSO_MAX) {
		return np_fail(err, NP_EPEER, EINVAL, "further addresses of %u bytes", count);
	}
	for (; out->count < count / size; out->count++) {
		if (asked_address(whose, bytes + (size_t)out->count * size, size, 0,
				  any.sa.ss_family, &out->at[out->count], err) != NP_OK) {
			return err->code;
		}
	}
	return NP_OK;
}

/* Those of the Internet have 16 bits. */
static int
asked_ports(const struct np_plan_message *m, struct np_plan *p, struct np_err *err)
{
	if (p->transport->ip_protocol == 0) {
		p->near.sock.port = m->data_port;
		p->far.sock.port = m->client_port;
		return NP_OK;
	}
	if (family_from_wire(m->family, p, err) != NP_OK ||
	    port_from_wire(m->data_port, &p->near.sock.port, err) != NP_OK) {
		return err->code;
	}
	return port_from_wire(m->client_port, &p->far.sock.port, err);
}

/*
 * Several addresses of one client, each of which a handshake proves to be somebody's who reads what
 * goes there: no more than the last byte tells apart.
 */
static int
asked_prefix(uint32_t bits, struct np_plan *p, struct np_err *err)
{
	struct np_addr plain = p->far_bind;
	uint32_t all = 8 * (uint32_t)np_addr_size(&plain);

	if (bits == 0) {
		return NP_OK;
	}
	np_addr_unmap(&plain);
	if (p->far_bind.len == 0 || bits > all || bits + 8 < all ||
	    !np_addr_same_family(&plain, &p->far_bind)) {
		return np_fail(err, NP_EPEER, EINVAL, "client_prefix of %u bits", bits);
	}
	if (!p->transport->connected || p->transport->admit != NP_ADMIT_IP) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "client_prefix: not over %s",
			       p->transport->name);
	}
	p->far_bits = bits;
	return NP_OK;
}

static int
asked_places(const struct np_plan_message *m, struct np_plan *p, struct np_err *err)
{
	if (p->transport->link) {
		if (m->station.count != sizeof(p->far.sock.mac)) {
			return np_fail(err, NP_EPEER, EINVAL, "station of %u bytes",
				       m->station.count);
		}
		memcpy(p->far.sock.mac, m->station.at, sizeof(p->far.sock.mac));
	}
	if (!p->transport->named) {
		return NP_OK;
	}
	if (asked_ports(m, p, err) != NP_OK ||
	    asked_address("data", m->data_address.at, m->data_address.count, 0, np_plan_family(p),
			  &p->bind, err) != NP_OK) {
		return err->code;
	}
	if (asked_address("client", m->client_address.at, m->client_address.count, p->far.sock.port,
			  np_plan_family(p), &p->far_bind, err) != NP_OK) {
		return err->code;
	}
	if (asked_also("data", m->data_also.at, m->data_also.count, p, &p->also, err) != NP_OK ||
	    asked_also("client", m->client_also.at, m->client_also.count, p, &p->far_also, err) !=
		NP_OK) {
		return err->code;
	}
	return asked_prefix(m->client_prefix, p, err);
}

static int
asked_engine(struct np_plan_message *m, struct np_plan *p, struct np_err *err)
{
	np_text_printable(m->engine);
	p->near.place.engine = m->engine[0] != '\0' ? np_engine_find(m->engine) : NULL;
	if (m->engine[0] != '\0' && p->near.place.engine == NULL) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "engine '%s'", m->engine);
	}
	return NP_OK;
}

static int
asked_cpus(struct np_plan_message *m, struct np_plan *p, struct np_err *err)
{
	const char *why =
	    m->cpus[0] != '\0' ? np_cpu_turns_parse(&p->near.place.turns, m->cpus) : NULL;

	np_text_printable(m->cpus);
	return why == NULL ? NP_OK : np_fail(err, NP_EPEER, EINVAL, "cpus: %s is %s", m->cpus, why);
}

static int
asked_by(const struct np_tagged *by, const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	struct np_plan_message m;

	if (np_tagged_get(by, frame, &m, err) != NP_OK || asked_kind(&m, p, err) != NP_OK ||
	    asked_sizes(&m, p, err) != NP_OK || asked_places(&m, p, err) != NP_OK ||
	    asked_cpus(&m, p, err) != NP_OK) {
		return err->code;
	}
	asked_end(&m, &p->near);
	flags_to(m.flags, p, &p->near);
	if (asked_flows(p, err) != NP_OK) {
		return err->code;
	}
	if (p->spread && !np_plan_spreads(p)) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "flags: nothing to spread in %s over %s",
			       p->pattern->name, p->transport->name);
	}
	return asked_engine(&m, p, err);
}

static int
asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	return asked_by(&np_tagged_plan, frame, p, err);
}

int
np_engines_asked(const uint8_t *frame, struct np_plan *p, struct np_err *err)
{
	return asked_by(&np_tagged_engines, frame, p, err);
}

static uint32_t
granted_flags(const struct np_plan *p, const struct np_run *run)
{
	return (p->nodelay ? NP_WP_NODELAY : 0) | (p->spread ? NP_WP_SPREAD : 0) |
	       (p->near.place.measure_cpu ? NP_WP_CPU : 0) |
	       (run->worker->id.width > 0 ? NP_WP_IDS : 0);
}

/* The listener's, or where there are no connections one of each socket. */
static void
grant_ports(const struct np_run *run, struct np_grant_message *m)
{
	struct np_addr at;
	struct np_err err;

	m->ports.at[0] = np_addr_port(&run->end.local);
	m->ports.count = m->ports.at[0] != 0;
	for (uint32_t i = 1; i < run->conns && i < NP_GRANT_PORTS && run->conn[i].fd >= 0; i++) {
		if (np_sock_local(run->conn[i].fd, &at, &err) == NP_OK) {
			m->ports.at[m->ports.count++] = np_addr_port(&at);
		}
	}
}

static void
grant(const struct np_plan *p, const struct np_run *run, uint32_t code, uint8_t *frame)
{
	struct np_grant_message m;

	(void)code; /* the tables of plan.def have it */
	np_tagged_init(&np_tagged_grant, &m);
	grant_ports(run, &m);
	if (np_family_is_local(p->transport->family)) {
		np_path_to_wire(run, m.path);
	}
	if (run->terms->eth != NULL) {
		m.station.count = sizeof(run->terms->eth->mac);
		memcpy(m.station.at, run->terms->eth->mac, sizeof(run->terms->eth->mac));
		m.mtu = run->terms->eth->mtu;
	}
	m.token = run->end.token;
	m.key.count = run->end.key.count;
	memcpy(m.key.at, run->end.key.at, run->end.key.count);
	m.send_size = wish(np_run_used(run->worker->send_size, p->near.call.send_size));
	m.receive_size = wish(np_run_used(run->worker->recv_size, p->near.call.recv_size));
	m.send_width =
	    (uint32_t)np_run_used(run->worker->send_ring.width, (int32_t)p->near.call.send_width);
	m.recv_width =
	    (uint32_t)np_run_used(run->worker->recv_ring.width, (int32_t)p->near.call.recv_width);
	m.send_buf_size = wish(run->end.sndbuf);
	m.recv_buf_size = wish(run->end.rcvbuf);
	m.socket_prio = run->end.prio;
	m.socket_tos = run->end.tos;
	m.flags = granted_flags(p, run);
	snprintf(m.engine, sizeof(m.engine), "%s", np_engine_of(p)->name);
	m.flows = p->flows;
	m.threads = run->workers;
	(void)np_cpu_turns_text(&p->near.place.turns, m.cpus, sizeof(m.cpus));
	m.ramp = p->ramp;
	m.client_prefix = p->far_bits;
	m.also = p->also.count + p->far_also.count;
	m.cpu_rate = (double)cpu_rate(p);
	np_tagged_put(&np_tagged_grant, &m, frame);
}

/* Rounded, a quotient may be a little more. */
static double
percent(double v)
{
	return v < 100 ? v : 100;
}

static void
report_cpu(const struct np_cpu_use *cpu, struct np_result_message *m)
{
	m->cpus = cpu->count;
	m->cpu_util = percent(cpu->util);
	m->cpu_user = percent(cpu->user);
	m->cpu_system = percent(cpu->system);
	m->cpu_iowait = percent(cpu->iowait);
	m->cpu_irq = percent(cpu->irq);
	m->cpu_softirq = percent(cpu->softirq);
	m->cpu_peak = percent(cpu->peak);
	m->cpu_peak_id = cpu->peak_id;
}

/* Half of what 64 bits hold is more than any test counts. */
static int64_t
counted(uint64_t count)
{
	return (int64_t)(count & INT64_MAX);
}

static void
report(const struct np_plan *p, const struct np_tally *t, uint32_t code, uint8_t *frame)
{
	struct np_result_message m;

	(void)code;
	np_tagged_init(&np_tagged_result, &m);
	m.bytes_received = counted(t->count.received);
	m.receive_calls = counted(t->count.receives);
	m.bytes_sent = counted(t->count.sent);
	m.send_calls = counted(t->count.sends);
	m.failed_sends = counted(t->count.failed);
	m.transactions = counted(t->count.transactions);
	/* Datagrams of several flows may share a socket. */
	m.flows = !t->met ? 0 : p->transport->connected ? t->flows : p->flows;
	if (t->started_ns != 0) {
		m.elapsed_ns = counted(t->ended_ns - t->started_ns);
		m.begin_skew_ns = t->skew.begin_ns;
		m.end_skew_ns = t->skew.end_ns;
	}
	m.retransmissions = wish(t->closing.retrans);
	m.send_buf_size = wish(t->closing.sndbuf_end);
	m.recv_buf_size = wish(t->closing.rcvbuf_end);
	snprintf(m.congestion, sizeof(m.congestion), "%s", t->closing.cong);
	m.cpu_method = cpu_method(t);
	if (t->closing.cpu.known) {
		report_cpu(&t->closing.cpu, &m);
	}
	np_tagged_put(&np_tagged_result, &m, frame);
}

const struct np_dialect np_plan_dialect = { NP_PLAN, ask, granted, reported, asked, grant, report };
