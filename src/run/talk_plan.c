/* PLAN, GRANT and RESULT (wire/plan.h): for tests that netperf's messages can't describe. */
#include <math.h>
#include <stdio.h>

#include "base/text.h"
#include "bench/engine/engine.h"
#include "bench/stamps.h"
#include "net/sources.h"
#include "run/talk_rows.h"
#include "wire/plan.h"

/* --- what both halves share ------------------------------------------------------------------- */

/* v, or the nearest of its bounds. */
static int64_t
clamp(int64_t v, int64_t least, int64_t most)
{
	return v < least ? least : v > most ? most : v;
}

/* The numbers of a GRANT and of a RESULT, in both directions: rows of talk.def. */
#define PASS_I64(type, name, least, most)                                                          \
	m->name = (type)clamp(pass_##name(t, (int64_t)m->name), least, most);
#define PASS_U32(...) PASS_I64(__VA_ARGS__)
#define PASS_I32(...) PASS_I64(__VA_ARGS__)
#define PASS_F64(type, name, least, most)                                                          \
	m->name = fmin(fmax(pass_##name(t, m->name), least), most);
#define OF_hello(...)
#define OF_plan(...)
#define OF_grant(row, ...) row(__VA_ARGS__)
#define OF_result(row, ...) row(__VA_ARGS__)
#define OF_evidence(...)
#define OF_error(...)

#define NP_T_MESSAGE(message, code, title)                                                         \
	static void __attribute__((unused))                                                        \
	pass_##message(struct talk *t, struct np_##message##_message *m)                           \
	{                                                                                          \
		(void)t;                                                                           \
		(void)m;
#define NP_T_NUMBER(type, message, tag, name, least, most, absent, note)                           \
	OF_##message(PASS_##type, NP_C_##type, name, least, most)
#define NP_T_END(message) }
#include "wire/plan.def"

/* Any negative value means "by default", which is -1 on the wire. */
static int32_t
default_if_negative(int32_t v)
{
	return v < 0 ? -1 : v;
}

/* --- the client's half ------------------------------------------------------------------------ */

/* Encode the rows of plan.def, and replace defaults that the daemon does not share. */
static void
encode_rows(const struct np_plan *p, const struct np_run *run, struct np_plan_message *m)
{
	const struct np_end *far = &p->far;
	const struct np_transport *t = p->transport;
	bool one_message =
	    !p->pattern->transactions && t->bounded && (t->header > 0 || t->reliable);

#define WISH_I32(v) default_if_negative(v)
#define WISH_U32(v) (v)
#define WISH_I64(v) (v)
#define NP_P_NUMBER(type, member, json, kind, tag, name, ...) m->name = WISH_##type(p->member);
#define NP_P_FLAG(bit, member, ...) m->flags |= p->member ? NP_WP_##bit : 0;
#define NP_E_NUMBER(type, group, member, json, kind, tag, name, ...)                               \
	m->name = WISH_##type(far->group.member);
#define NP_E_FLAG(bit, group, member, ...) m->flags |= far->group.member ? NP_WP_##bit : 0;
#define NP_E_TEXT(group, member, json, tag, name, room, note)                                      \
	snprintf(m->name, sizeof(m->name), "%.*s", (int)sizeof(m->name) - 1, far->group.member);
#define NP_E_PATH(group, member, json, tag, name, room, note)                                      \
	snprintf(m->name, sizeof(m->name), "%s",                                                   \
		 far->group.member != NULL ? far->group.member : "");
#include "wire/plan.def"
	if (one_message) { /* the daemon must receive it by one call */
		m->receive_size = (int32_t)run->worker->send_size;
	}
	if (p->role == NP_LEAD && t->bounded && !p->pattern->transactions) {
		m->client_send_size = (uint32_t)run->worker->send_size;
	}
	m->send_buf_size = default_if_negative(buffer(p, far->sock.sndbuf));
	m->recv_buf_size = default_if_negative(buffer(p, far->sock.rcvbuf));
	/* By default as wide as this end's. */
	m->send_width =
	    (uint32_t)np_run_used(run->worker->send_ring.width, (int32_t)p->near.call.send_width);
	m->recv_width =
	    (uint32_t)np_run_used(run->worker->recv_ring.width, (int32_t)p->near.call.recv_width);
}

/* Further addresses, one after the other, as far as there is room. */
static void
also_to_wire(const struct np_also *also, uint8_t bytes[NP_PLAN_ALSO], uint32_t *count)
{
	*count = 0;
	for (uint32_t i = 0; i < also->count; i++) {
		uint32_t size = (uint32_t)np_addr_size(&also->at[i]);

		if (*count + size > NP_PLAN_ALSO) {
			return; /* not of our client: set_also() of src/cli/aim.c */
		}
		np_addr_to_wire(&also->at[i], bytes + *count);
		*count += size;
	}
}

/* PLAN and ENGINES have the same fields. */
static const struct np_tagged *
table_of(const struct np_dialect *d)
{
	return d->code == NP_PLAN ? &np_tagged_plan : &np_tagged_engines;
}

/* The request says what the daemon is to do, so its role is the reverse of ours. */
static void
encode_request(const struct np_dialect *d, const struct np_plan *p, const struct np_run *run,
	       uint8_t *frame)
{
	const struct np_tagged *table = table_of(d);
	struct np_plan_message m;
	/* A receiver of datagrams proves that it wants them, so that no victim gets them. */
	bool echoes = !p->transport->connected && !p->pattern->transactions && p->role == NP_FOLLOW;

	np_tagged_init(table, &m);
	snprintf(m.pattern, sizeof(m.pattern), "%s", p->pattern->name);
	snprintf(m.transport, sizeof(m.transport), "%s", p->transport->name);
	m.socket_type = np_transport_type(p->transport);
	m.leads = p->role == NP_FOLLOW;
	m.length = p->length > 0 ? p->length * 1000 - p->length_less_ms /* ms */ : p->length;
	encode_rows(p, run, &m);
	m.flags |= (p->tls_suite > NP_WP_TLS_FIRST
			? (p->tls_suite - NP_WP_TLS_FIRST) << NP_WP_TLS_SHIFT & NP_WP_TLS_SUITE
			: 0) |
		   (echoes ? NP_WP_ECHO : 0) | (np_plan_shows_token(p) ? NP_WP_TOKENS : 0);
	snprintf(m.engine, sizeof(m.engine), "%s",
		 p->far.place.engine != NULL ? p->far.place.engine->name : "");
	(void)np_cpu_turns_text(&p->far.place.turns, m.cpus, sizeof(m.cpus));
	if (p->transport->named) { /* the addresses of both ends, as far as the plan names them */
		m.family = p->transport->ip_protocol != 0 ? family_to_wire(p->family) : 0;
		m.client_port = np_addr_port(&run->end.local);
		if (p->bind.len != 0) {
			m.client_address.count = (uint32_t)np_addr_size(&p->bind);
			np_addr_to_wire(&p->bind, m.client_address.at);
			m.client_prefix = p->sources > 1 ? np_range_bits(&p->bind, p->sources) : 0;
		}
		if (p->far_bind.len != 0) {
			m.data_address.count = (uint32_t)np_addr_size(&p->far_bind);
			np_addr_to_wire(&p->far_bind, m.data_address.at);
		}
		also_to_wire(&p->also, m.client_also.at, &m.client_also.count);
		also_to_wire(&p->far_also, m.data_also.at, &m.data_also.count);
	}
	if (run->terms->eth != NULL) {
		m.station.count = sizeof(run->terms->eth->mac);
		memcpy(m.station.at, run->terms->eth->mac, sizeof(run->terms->eth->mac));
	}
	np_tagged_put(table, &m, frame);
}

/* Take the path, station or port that the data go to. The port's width is checked later. */
static int
decode_destination(struct np_grant_message *m, struct np_far *far, struct np_err *err)
{
	if (m->path[0] != '\0') {
		return np_path_from_wire(m->path, far, err);
	}
	for (uint32_t i = 1; i < m->ports.count; i++) { /* checks: np_grant_ports() takes them */
		if (decode_port(m->ports.at[i], far, err) != NP_OK) {
			return err->code;
		}
	}
	if (m->station.count == 0) {
		far->port = m->ports.at[0]; /* of 32 bits in VSOCK and TIPC */
		return far->port != 0 ? NP_OK : decode_port(0, far, err); /* fails */
	}
	if (m->station.count != sizeof(far->mac)) {
		return np_fail(err, NP_EPEER, 0, "the daemon names a station by %u bytes",
			       m->station.count);
	}
	far->port = m->ports.count > 0 ? m->ports.at[0] : 0;
	if (far->port == 0 && m->token == 0) { /* LLC's service access point; the tag */
		return np_fail(err, NP_EPEER, 0, "the daemon names no tag for the frames");
	}
	memcpy(far->mac, m->station.at, sizeof(far->mac));
	return NP_OK;
}

int
np_grant_ports(const uint8_t *frame, struct np_run *run, struct np_err *err)
{
	struct np_grant_message m;

	if (np_tagged_get(&np_tagged_grant, frame, &m, err) != NP_OK) {
		return err->code;
	}
	if (m.ports.count < run->conns) {
		return np_fail(err, NP_EPEER, 0,
			       "the daemon names %u ports for %u data connections", m.ports.count,
			       run->conns);
	}
	for (uint32_t i = 0; i < run->conns; i++) {
		run->conn[i].port = m.ports.at[i];
	}
	return NP_OK;
}

/* np_dialect.decode_response: what the daemon grants, and where the data go to. */
static int
decode_response(const struct np_dialect *d, const uint8_t *frame, struct np_far *far,
		struct np_err *err)
{
	struct talk t = { NP_PLAN, RESPONSE, .reads = true, .far = far, .result = &far->end };
	struct np_grant_message m;

	if (np_tagged_get(&np_tagged_grant, frame, &m, err) != NP_OK ||
	    decode_destination(&m, far, err) != NP_OK) {
		return err->code;
	}
	pass_grant(&t, &m);
	far->key.count = m.key.count;
	memcpy(far->key.at, m.key.at, m.key.count);
	far->tokens = m.token_shown.count == sizeof(far->token_shown.at);
	memcpy(far->token_shown.at, m.token_shown.at, sizeof(far->token_shown.at));
	far->ids = (m.flags & NP_WP_IDS) != 0;
	far->resets = (m.flags & NP_WP_RESETS) != 0;
	far->nodelay = (m.flags & NP_WP_NODELAY) != 0;
	far->measures_cpu = (m.flags & NP_WP_CPU) != 0;
	np_text_printable(m.cpus);
	snprintf(far->cpus, sizeof(far->cpus), "%s", m.cpus);
	np_text_printable(m.engine);
	snprintf(far->engine, sizeof(far->engine), "%s", m.engine);
	return NP_OK;
}

static int
decode_results(const struct np_dialect *d, const uint8_t *frame, struct np_far *far,
	       struct np_err *err)
{
	struct talk t = { NP_PLAN, RESULTS, .reads = true, .far = far, .result = &far->end };
	struct np_result_message m;

	if (np_tagged_get(&np_tagged_result, frame, &m, err) != NP_OK) {
		return err->code;
	}
	pass_result(&t, &m);
	far->reported = true;
	far->elapsed = (double)m.elapsed_ns / 1e9;
	decode_cpu(far, m.cpu_method, m.num_cpus);
	np_text_printable(m.congestion); /* it may be shown on a terminal */
	snprintf(far->end.closing.cong, sizeof(far->end.closing.cong), "%s", m.congestion);
	return NP_OK;
}

/* --- the daemon's half ------------------------------------------------------------------------ */

/* The transport, the pattern, and which end leads. */
static int
decode_kind(struct np_plan_message *m, struct np_plan *p, struct np_err *err)
{
	np_text_printable(m->transport);
	np_text_printable(m->pattern);
	p->transport = np_transport_by_name(m->transport, m->socket_type);
	if (p->transport == NULL) {
		return np_fail(err, NP_EUNSUP, EPROTONOSUPPORT, "transport '%s', type %u",
			       m->transport, m->socket_type);
	}
	p->pattern = np_pattern_by_name(m->pattern);
	if (p->pattern == NULL) {
		return np_fail(err, NP_EUNSUP, EINVAL, "pattern '%s'", m->pattern);
	}
	if (!np_pattern_fits(p->pattern, p->transport)) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "pattern %s over transport %s",
			       p->pattern->name, p->transport->name);
	}
	/* Only plain streams over IP can be sent by the daemon. */
	if (m->leads && (!p->pattern->sequence || p->transport->ip_protocol == 0)) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "leads: not in %s over %s",
			       p->pattern->name, p->transport->name);
	}
	p->role = m->leads ? NP_LEAD : NP_FOLLOW;
	return NP_OK;
}

/* Fail unless such a test can have these flows, a ramp, and stations. */
static int
decode_flows(const struct np_plan *p, struct np_err *err)
{
	uint32_t most = np_plan_most_flows(p);
	const char *why;

	if (p->flows > 1 && most == 1) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "flows of %u: %s over %s has one",
			       p->flows, p->pattern->name, p->transport->name);
	}
	if (p->flows > most) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP,
			       "flows of %u: each needs a port, and from %u on there are %u",
			       p->flows, p->near.sock.port, most);
	}
	/* By the echo each data socket learns its peer. */
	if (p->flows > 1 && p->role == NP_LEAD && !p->transport->connected && !p->echo) {
		return np_fail(err, NP_EUNSUP, EACCES,
			       "flows of %u datagrams without an echo of each", p->flows);
	}
	/* A ramp needs a length: if the far end never comes, only the clock ends it. */
	why = p->ramp > 0 ? np_plan_no_ramp(p) : NULL;
	if (why != NULL) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "ramp of %u a second: %s", p->ramp, why);
	}
	why = p->stations > 0 ? np_stamps_why_none(p) : NULL;
	return why == NULL ? NP_OK : np_fail(err, NP_EUNSUP, EOPNOTSUPP, "stations: %s", why);
}

/* The rows of plan.def, the length, and the suite of TLS, which shares a field with the flags. */
static int
decode_rows(const struct np_plan_message *m, struct np_plan *p, struct np_err *err)
{
	struct np_end *near = &p->near;
	uint32_t suite;

#define NP_P_NUMBER(type, member, json, kind, tag, name, ...) p->member = m->name;
#define NP_P_FLAG(bit, member, ...) p->member = (m->flags & NP_WP_##bit) != 0;
#define NP_E_NUMBER(type, group, member, json, kind, tag, name, ...) near->group.member = m->name;
#define NP_E_FLAG(bit, group, member, ...) near->group.member = (m->flags & NP_WP_##bit) != 0;
#define NP_E_TEXT(group, member, json, tag, name, room, note)                                      \
	snprintf(near->group.member, sizeof(near->group.member), "%s", m->name);
#define NP_E_PATH(group, member, json, tag, name, room, note)                                      \
	if (np_plan_path(&near->group.member, m->name, err) != NP_OK) {                            \
		return err->code;                                                                  \
	}
#include "wire/plan.def"
	p->far.call.send_size = (int32_t)m->client_send_size;
	suite = (m->flags & NP_WP_TLS_SUITE) >> NP_WP_TLS_SHIFT;
	p->tls_suite = suite != 0 ? NP_WP_TLS_FIRST + suite : 0;
	p->length = m->length > 0 ? (m->length + 999) / 1000 : m->length;
	p->length_less_ms = m->length > 0 ? (uint32_t)(p->length * 1000 - m->length) : 0;
	if (p->pattern->sized && (m->request_size <= 0 || m->response_size <= 0)) {
		return np_fail(err, NP_EPEER, EINVAL, "request of %d, response of %d bytes",
			       m->request_size, m->response_size);
	}
	if (p->transport->header > 0 && !p->pattern->sized && m->receive_size <= 0) {
		return np_fail(err, NP_EPEER, EINVAL, "frames of %d bytes", m->receive_size);
	}
	return NP_OK;
}

/* An address in a plan; count 0: none. */
static int
decode_address(const char *which, const uint8_t *bytes, uint32_t count, uint32_t port, int family,
	       struct np_addr *out, struct np_err *err)
{
	if (count == 0) {
		return NP_OK;
	}
	np_addr_make_any(out, family);
	if (count != np_addr_size(out)) {
		return np_fail(err, NP_EPEER, EINVAL, "%s address of %u bytes in family %s", which,
			       count, np_family(family)->name);
	}
	np_addr_make(out, family, bytes, port);
	np_addr_from_wire(out, bytes); /* replaces the bytes: a CID's order differs */
	return NP_OK;
}

/* Further addresses, one after the other in `bytes`; without ports, as all have the first one's. */
static int
decode_further(const char *which, const uint8_t *bytes, uint32_t length, const struct np_plan *p,
	       struct np_also *out, struct np_err *err)
{
	struct np_addr any;
	uint32_t size;

	if (length == 0) {
		return NP_OK;
	}
	np_addr_make_any(&any, np_plan_family(p));
	size = (uint32_t)np_addr_size(&any);
	if (!p->transport->several_paths) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "further addresses: not over %s",
			       p->transport->name);
	}
	if (length % size != 0 || length / size > NP_ALSO_MAX) {
		return np_fail(err, NP_EPEER, EINVAL, "further addresses of %u bytes", length);
	}
	for (; out->count < length / size; out->count++) {
		if (decode_address(which, bytes + (size_t)out->count * size, size, 0,
				   any.sa.ss_family, &out->at[out->count], err) != NP_OK) {
			return err->code;
		}
	}
	return NP_OK;
}

/* Addresses and ports of both ends, or the stations of the link layer. */
static int
decode_addresses(const struct np_plan_message *m, struct np_plan *p, struct np_err *err)
{
	uint32_t bits = m->client_prefix, all;
	struct np_addr plain;

	if (p->transport->link) {
		if (m->station.count != sizeof(p->far.sock.mac)) {
			return np_fail(err, NP_EPEER, EINVAL, "station of %u bytes",
				       m->station.count);
		}
		memcpy(p->far.sock.mac, m->station.at, sizeof(p->far.sock.mac));
	}
	if (!p->transport->named) { /* the daemon chooses, and GRANT tells */
		p->near.sock.port = 0;
		return NP_OK;
	}
	if (p->transport->ip_protocol == 0) { /* these have ports of 32 bits, IP of 16 */
		p->near.sock.port = m->data_port;
		p->far.sock.port = m->client_port;
	} else if (family_from_wire(m->family, p, err) != NP_OK ||
		   port_from_wire(m->data_port, &p->near.sock.port, err) != NP_OK ||
		   port_from_wire(m->client_port, &p->far.sock.port, err) != NP_OK) {
		return err->code;
	}
	if (decode_address("data", m->data_address.at, m->data_address.count, 0, np_plan_family(p),
			   &p->bind, err) != NP_OK ||
	    decode_address("client", m->client_address.at, m->client_address.count,
			   p->far.sock.port, np_plan_family(p), &p->far_bind, err) != NP_OK ||
	    decode_further("data", m->data_also.at, m->data_also.count, p, &p->also, err) !=
		NP_OK ||
	    decode_further("client", m->client_also.at, m->client_also.count, p, &p->far_also,
			   err) != NP_OK) {
		return err->code;
	}
	if (bits == 0) {
		return NP_OK;
	}
	/* The client connects from several addresses, which differ in the last byte at most.
	 * Handshakes prove each of them. */
	plain = p->far_bind;
	all = 8 * (uint32_t)np_addr_size(&plain);
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

/* np_dialect.decode_request: the plan of this end, or what is wrong with the request. */
static int
decode_request(const struct np_dialect *d, const uint8_t *frame, struct np_plan *p,
	       struct np_err *err)
{
	struct np_plan_message m;
	const char *why;

	/* The order matters: later functions check what earlier ones put into the plan. */
	if (np_tagged_get(table_of(d), frame, &m, err) != NP_OK ||
	    decode_kind(&m, p, err) != NP_OK || decode_rows(&m, p, err) != NP_OK ||
	    decode_addresses(&m, p, err) != NP_OK || decode_flows(p, err) != NP_OK) {
		return err->code;
	}
	why = m.cpus[0] != '\0' ? np_cpu_turns_parse(&p->near.place.turns, m.cpus) : NULL;
	if (why != NULL) {
		np_text_printable(m.cpus);
		return np_fail(err, NP_EPEER, EINVAL, "cpus: %s is %s", m.cpus, why);
	}
	if (p->spread && !np_plan_spreads(p)) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "flags: nothing to spread in %s over %s",
			       p->pattern->name, p->transport->name);
	}
	np_text_printable(m.engine);
	p->near.place.engine = m.engine[0] != '\0' ? np_engine_find(m.engine) : NULL;
	if (m.engine[0] != '\0' && p->near.place.engine == NULL) {
		return np_fail(err, NP_EUNSUP, EOPNOTSUPP, "engine '%s'", m.engine);
	}
	return NP_OK;
}

/* np_dialect.encode_response: what this end grants, and where to connect or send to. */
static void
encode_response(const struct np_dialect *d, const struct np_plan *p, const struct np_run *run,
		uint8_t *frame)
{
	struct np_plan *plan = (struct np_plan *)p; /* encoding does not change it */
	struct talk t = { NP_PLAN, RESPONSE, .p = plan, .end = &plan->near, .run = run };
	struct np_grant_message m;

	np_tagged_init(&np_tagged_grant, &m);
	pass_grant(&t, &m);
	m.flags = (p->nodelay ? NP_WP_NODELAY : 0) | (p->near.place.measure_cpu ? NP_WP_CPU : 0) |
		  (run->worker->id.width > 0 ? NP_WP_IDS : 0) |
		  (p->resets && np_plan_may_reset(p) ? NP_WP_RESETS : 0);
	/* The listener's port; without connections, the port of each data socket. */
	m.ports.at[0] = np_addr_port(&run->end.local);
	m.ports.count = m.ports.at[0] != 0;
	for (uint32_t i = 1; i < run->conns && run->conn[i].port != 0; i++) {
		m.ports.at[m.ports.count++] = run->conn[i].port;
	}
	if (np_family(p->transport->family)->is_here) {
		np_path_to_wire(run, m.path);
	}
	if (run->terms->eth != NULL) {
		m.station.count = sizeof(run->terms->eth->mac);
		memcpy(m.station.at, run->terms->eth->mac, sizeof(run->terms->eth->mac));
		m.mtu = run->terms->eth->mtu;
	}
	if (run->terms->tokens) {
		m.token_shown.count = sizeof(run->terms->token.at);
		memcpy(m.token_shown.at, run->terms->token.at, sizeof(run->terms->token.at));
	}
	m.key.count = run->end.key.count;
	memcpy(m.key.at, run->end.key.at, run->end.key.count);
	snprintf(m.engine, sizeof(m.engine), "%s", np_engine_of(p)->name);
	(void)np_cpu_turns_text(&p->near.place.turns, m.cpus, sizeof(m.cpus));
	np_tagged_put(&np_tagged_grant, &m, frame);
}

static void
encode_results(const struct np_dialect *d, const struct np_plan *p, const struct np_tally *tally,
	       uint8_t *frame)
{
	struct talk t = { NP_PLAN, RESULTS, .p = (struct np_plan *)p, .tally = tally,
			  .result = (struct np_result *)&tally->end };
	struct np_result_message m;

	np_tagged_init(&np_tagged_result, &m);
	pass_result(&t, &m);
	snprintf(m.congestion, sizeof(m.congestion), "%s", tally->end.closing.cong);
	np_tagged_put(&np_tagged_result, &m, frame);
}

const struct np_dialect np_plan_dialect = { NP_PLAN,        encode_request, decode_response,
					    decode_results, decode_request, encode_response,
					    encode_results };

const struct np_dialect np_engines_dialect = { NP_EXT_ENGINES, .encode_request = encode_request,
					       .decode_request = decode_request };
