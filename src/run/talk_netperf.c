/*
 * The dialects of netperf's own messages (wire/messages.def). talk.def says what their fields mean;
 * the table of tests has the rest, and functions for what no row can say. OMNI asks for most tests.
 * TCP_STREAM (also TCP_SENDFILE), TCP_CC and the UNIX domain have their own requests, as OMNI has
 * no room for counts of bytes and paths. The path in a request is ignored and left empty: a daemon
 * answers a datagram's source. All others come from clients without OMNI (netperf 2.2 to 2.4, or
 * built without it), and have only the daemon's half.
 */
#include <stdio.h>

#include "base/text.h"
#include "run/talk_rows.h"

void
np_path_to_wire(const struct np_run *run, char path[NP_UNIX_PATH_MAX])
{
	snprintf(path, NP_UNIX_PATH_MAX, "%.*s", NP_UNIX_PATH_MAX - 1,
		 NP_HOST_STR(&run->end.local));
}

int
np_path_from_wire(char *path, struct np_far *far, struct np_err *err)
{
	/* A path with unprintable characters is refused. */
	bool clean = np_text_clean(path);

	if (!clean || path[0] != '/') {
		np_text_printable(path);
		return np_fail(err, NP_EPEER, 0, "the daemon names '%s' for the data connection",
			       path);
	}
	snprintf(far->path, sizeof(far->path), "%s", path);
	return NP_OK;
}

/* Can that double be a byte count? Not if it is negative, not a number, or beyond 2^63. */
static bool
is_count(double v)
{
	return v >= 0 && v < 9.2e18;
}

/* A stream's bytes, which travel as a double. */
static double
pass_count(struct talk *t, double v)
{
	int64_t n = pass_bytes_received(t, is_count(v) ? (int64_t)v : 0);

	return t->reads ? v : (double)(uint64_t)n;
}

/* A socket's path: the only TEXT4 that tests have. */
static void
pass_unix_path(struct talk *t, char path[NP_UNIX_PATH_MAX])
{
	if (t->reads) {
		t->rc = np_path_from_wire(path, t->far, t->err);
	} else {
		np_path_to_wire(t->run, path);
	}
}

/* LAYOUT_pass(): the fields of a message, one after the other. */
#define NP_TESTS_ALONE
#define NP_MESSAGE(layout, type, title)                                                            \
	static void layout##_pass(struct talk *t)                                                  \
	{                                                                                          \
		struct np_##type *r = (void *)&t->m;
#define NP_ORDER(layout, type, title) NP_MESSAGE(layout, type, title)
#define NP_NUMBER(type, name, note) r->name = (NP_C_##type)PASS_##type(name);
#define PASS_I32(name) pass_##name(t, r->name)
#define PASS_U32(name) pass_##name(t, r->name)
#define PASS_U64(name) pass_##name(t, (int64_t)r->name)
#define PASS_F32(name) pass_##name(t, (double)r->name)
#define PASS_F64(name) pass_count(t, r->name)
#define NP_TEXT4(name, bytes, note) pass_##name(t, r->name);
#define NP_END }
#include "wire/messages.def"
#undef NP_TESTS_ALONE

/* --- what no row can say ---------------------------------------------------------------------- */

/* A bit of OMNI's flags, and the member of the plan that says whether it is set. */
static const struct {
	uint32_t bit;
	size_t at;
} omni_flags[] = {
	{ NP_WB_NODELAY, offsetof(struct np_plan, nodelay) },
	{ NP_WB_KEEPALIVE, offsetof(struct np_plan, keepalive) },
	{ NP_WB_DEFER_ACCEPT, offsetof(struct np_plan, defer_accept) },
	{ NP_WB_MTU_DISCOVER, offsetof(struct np_plan, no_fragment) },
	{ NP_WB_FASTOPEN, offsetof(struct np_plan, fast_open) },
	{ NP_WB_PKTINFO, offsetof(struct np_plan, packet_info) },
};
enum { OMNI_FLAGS = sizeof(omni_flags) / sizeof(omni_flags[0]) };

/* What the rows do not pass: flags, addresses, texts. The daemon's end is the plan's far one. */
static void
omni_encode_request(struct talk *t)
{
	const struct np_plan *p = t->p;
	struct np_omni_request *m = &t->m.omni_request;

	m->flags = (p->pattern->connection_test ? NP_WB_CONNECT : 0) |
		   (p->no_route ? 0 : NP_WB_ROUTE) | (p->far.sock.connected ? NP_WB_CONNECTED : 0) |
		   (p->far.place.measure_cpu ? NP_WB_CPU : 0);
	for (size_t i = 0; i < OMNI_FLAGS; i++) {
		bool set = *(const bool *)((const char *)p + omni_flags[i].at);

		m->flags |= set ? omni_flags[i].bit : 0;
	}
	m->so_rcvavoid = m->so_sndavoid = p->copy_avoidance;
	if (p->bind.len != 0) {
		np_ip_to_words(m->ipfamily, np_addr_bytes(&p->bind), m->netperf_ip);
	}
	if (p->far_bind.len != 0) {
		np_ip_to_words(m->ipfamily, np_addr_bytes(&p->far_bind), m->netserver_ip);
	}
	snprintf(m->cong_control, sizeof(m->cong_control), "%s", p->far.sock.cong);
	if (p->far.call.fill_file != NULL) {
		snprintf(m->fill_file, sizeof(m->fill_file), "%.31s", p->far.call.fill_file);
	}
	t->echoes = !p->transport->connected && m->direction == NP_WD_TRANSMIT;
	t->ids = t->ids || p->ids; /* or resets: streams have no ids */
}

/* Decode flags and texts into the plan; its near end is this daemon. Fails if no test matches. */
static void
omni_decode_request(struct talk *t)
{
	const struct np_omni_request *m = &t->m.omni_request;
	struct np_plan *p = t->p;

	for (size_t i = 0; i < OMNI_FLAGS; i++) {
		*(bool *)((char *)p + omni_flags[i].at) = (m->flags & omni_flags[i].bit) != 0;
	}
	p->no_route = (m->flags & NP_WB_ROUTE) == 0;
	p->near.sock.connected = (m->flags & NP_WB_CONNECTED) != 0;
	p->near.place.measure_cpu = (m->flags & NP_WB_CPU) != 0;
	p->copy_avoidance = m->so_rcvavoid != 0;
	if (m->send_dirty_count > m->recv_dirty_count) { /* the rows took the latter */
		p->near.call.dirty = m->send_dirty_count;
	}
	snprintf(p->near.sock.cong, sizeof(p->near.sock.cong), "%s", m->cong_control);
	p->echo = t->echoes;
	p->ids = t->ids;
	t->rc = np_plan_path(&p->near.call.fill_file, m->fill_file, t->err);
	p->transport = np_transport_find(m->socket_type, m->protocol);
	p->pattern = np_pattern_find(m->direction, (m->flags & NP_WB_CONNECT) != 0, &p->role);
	if (t->rc != NP_OK) {
		return;
	}
	if (p->transport == NULL) {
		t->rc = np_fail(t->err, NP_EUNSUP, EPROTONOSUPPORT,
				"request for protocol %u, type %d", m->protocol, m->socket_type);
	} else if (p->pattern == NULL) {
		t->rc = np_fail(t->err, NP_EUNSUP, EINVAL, "request for direction %u, flags 0x%x",
				m->direction, m->flags);
	} else if (p->pattern->connection_test && !np_delivers(p->transport)) {
		t->rc = np_fail(t->err, NP_EUNSUP, EOPNOTSUPP, "request for %s connections",
				p->transport->name);
	}
}

/* Set *out to the address of these words; all 0: there is none, *out stays as it is. */
static void
omni_address(const struct np_omni_request *m, const uint32_t words[4], uint32_t port,
	     const struct np_plan *p, struct np_addr *out)
{
	static const uint32_t wildcard[4];
	uint8_t ip[16];

	if (memcmp(words, wildcard, sizeof(wildcard)) != 0) {
		np_words_to_ip(m->ipfamily, words, ip);
		np_addr_make(out, p->family, ip, port);
	}
}

/* Flags, and the token and the ids that bytes unused by netperf grant. */
static void
omni_encode_response(struct talk *t)
{
	t->m.omni_response.flags =
	    (t->p->nodelay ? NP_WB_NODELAY : 0) | (t->end->place.measure_cpu ? NP_WB_CPU : 0);
	t->echo = t->run->end.token;
	t->ids = t->ids || t->run->worker->id.width > 0;
}

static void
omni_decode_response(struct talk *t)
{
	t->far->nodelay = (t->m.omni_response.flags & NP_WB_NODELAY) != 0;
	t->far->measures_cpu = (t->m.omni_response.flags & NP_WB_CPU) != 0;
	t->far->token = t->echo;
	t->far->ids = t->ids;
}

/* In netperf the bit that allows routing also asks for the name of the congestion control. */
static void
omni_encode_results(struct talk *t)
{
	struct np_omni_results *m = &t->m.omni_results;

	snprintf(m->cong_control, sizeof(m->cong_control), "%s",
		 t->p->no_route ? "" : t->tally->end.closing.cong);
}

static void
omni_decode_results(struct talk *t)
{
	const struct np_omni_results *m = &t->m.omni_results;

	decode_cpu(t->far, m->cpu_method, m->num_cpus);
	snprintf(t->result->closing.cong, sizeof(t->result->closing.cong), "%s", m->cong_control);
	np_text_printable(t->result->closing.cong); /* it may be shown on a terminal */
}

/* The length may be seconds or bytes, so only the far end's close ends the test. */
static void
decode_endless_request(struct talk *t)
{
	t->p->length = 0;
}

/* In SCTP_STREAM netperf swaps the port's bytes twice: out of range from the other byte order. */
static void
decode_sctp_stream_request(struct talk *t)
{
	uint32_t wire = t->p->near.sock.port;

	t->p->near.sock.port = wire <= UINT16_MAX ? wire : wire >> 24 | (wire >> 8 & 0xff00U);
	decode_endless_request(t);
}

/* netperf's client sends no end mark, so a test by count ends at the count. */
static void
decode_udp_rr_request(struct talk *t)
{
	t->p->no_end_mark = true;
}

/* Receivers of datagrams need the size of messages, and can't end at a count. */
static void
decode_messages_request(struct talk *t)
{
	const struct np_plan *p = t->p;

	if (p->near.call.recv_size <= 0 || p->length < 0) {
		t->rc = np_fail(t->err, NP_EPEER, EINVAL, "messages of %d bytes for %d s",
				p->near.call.recv_size, (int)p->length);
	}
}

/* The request has the sizes of the client's receives; this end sends by them. */
static void
decode_maerts_request(struct talk *t)
{
	struct np_call_plan *call = &t->p->near.call;

	if (t->p->length < 0) {
		t->rc = np_fail(t->err, NP_EPEER, EINVAL, "a test by a number of bytes");
	}
	call->send_size = call->recv_size;
	call->send_align = call->recv_align;
	call->send_offset = call->recv_offset;
	call->recv_size = -1;
}

/* The CPU figures of a far end that only reports a utilisation; -1: not known. */
static void
decode_utilisation(struct np_far *far, int32_t method, int32_t cpus)
{
	struct np_cpu_use *cpu = &far->end.closing.cpu;

	decode_cpu(far, method, cpus);
	if (cpu->known) {
		cpu->user = cpu->system = cpu->iowait = cpu->irq = cpu->softirq = cpu->peak = -1;
		cpu->peak_id = -1;
	}
}

/* A double need not be a count: pass_count() then decoded 0. */
static void
decode_stream_results(struct talk *t)
{
	const struct np_stream_results *m = &t->m.stream_results;

	if (!is_count(m->bytes_received)) {
		t->rc = np_fail(t->err, NP_EPEER, 0, "the daemon reports %g bytes received",
				m->bytes_received);
		return;
	}
	decode_utilisation(t->far, m->cpu_method, m->num_cpus);
}

/* The reported bytes assume that everything sent was received: not usable. */
static void
decode_rr_results(struct talk *t)
{
	t->result->count.received = 0;
	decode_utilisation(t->far, t->m.rr_results.cpu_method, t->m.rr_results.num_cpus);
}

/* Byte counts have 32 bits; method and processors are not told: the daemon is on this machine. */
static void
decode_unix_results(struct talk *t)
{
	t->far->truncated = true;
	decode_utilisation(t->far,
			   (int32_t)(strchr(NP_CPU_METHODS, NP_CPU_METHOD) - NP_CPU_METHODS),
			   np_cpu_count());
}

static void
decode_unix_rr_results(struct talk *t)
{
	t->result->count.received = 0; /* as in decode_rr_results() */
	decode_unix_results(t);
}

/* --- a test ----------------------------------------------------------------------------------- */

/* Handles what no row of talk.def can say, after the rows. */
typedef void extra(struct talk *t);

struct test {
	struct np_dialect dialect; /* the first member, for test_of() */
	np_layout *layout[KINDS];
	void (*pass[KINDS])(struct talk *t);

	/* What a request asks for; NULL: the request says so (OMNI). */
	const struct np_pattern *pattern;
	const struct np_transport *transport;
	enum np_role role; /* the daemon's */

	extra *write[KINDS], *read[KINDS]; /* NULL: nothing to do */
};

/* The row of `tests` that a dialect belongs to. */
static const struct test *
test_of(const struct np_dialect *d)
{
	return (const struct test *)d;
}

/* What says t->ids in a message of its kind. */
static enum np_spare
ids_word(const struct talk *t)
{
	return t->kind == REQUEST ? NP_IDS_ASKED : NP_IDS_GRANTED;
}

/* Encode a message, and what only our programs find in bytes that netperf leaves unused. */
static void
encode(const struct np_dialect *d, struct talk *t, uint32_t code, int32_t word, uint8_t *frame)
{
	const struct test *test = test_of(d);
	struct np_head head = { .code = code, .word = word };

	test->pass[t->kind](t);
	if (test->write[t->kind] != NULL) {
		test->write[t->kind](t);
	}
	np_frame_put(frame, &head, test->layout[t->kind], &t->m);
	if (t->tokens) {
		np_token_put(frame + NP_TOKEN_AT,
			     t->kind == REQUEST ? NP_TOKEN_WANTED : NP_TOKEN_GIVEN,
			     t->kind == REQUEST ? NULL : &t->token);
	}
	if (t->ids) {
		np_spare_put(frame + NP_SPARE_AT, ids_word(t), 0);
	} else if (t->echoes || t->echo != 0) {
		np_spare_put(frame + NP_SPARE_AT, t->echoes ? NP_ECHO_ASKED : NP_ECHO_NAMED,
			     t->echo);
	}
}

/* Decode a message, and what our programs add to it. */
static int
decode(struct talk *t, const struct test *test, const uint8_t *frame, struct np_err *err)
{
	enum np_spare spare;
	uint64_t token;

	if (np_frame_get(frame, test->layout[t->kind], &t->m, err) != NP_OK) {
		return err->code;
	}
	t->code = test->dialect.code;
	t->reads = true;
	t->err = err;
	spare = np_spare_get(frame + NP_SPARE_AT, &token);
	t->echoes = spare == NP_ECHO_ASKED;
	t->echo = spare == NP_ECHO_NAMED ? token : 0;
	t->ids = spare == ids_word(t);
	t->tokens = np_token_get(frame + NP_TOKEN_AT, NP_TOKEN_SIZE, &t->token) ==
		    (t->kind == REQUEST ? NP_TOKEN_WANTED : NP_TOKEN_GIVEN);
	test->pass[t->kind](t);
	if (test->read[t->kind] != NULL) {
		test->read[t->kind](t);
	}
	return t->rc;
}

/* The following are members of np_dialect, with the message's kind in struct talk. */
static void
encode_request(const struct np_dialect *d, const struct np_plan *p, const struct np_run *run,
	       uint8_t *frame)
{
	struct np_plan *plan = (struct np_plan *)p;
	struct talk t = { d->code,           REQUEST,    .p = plan,
			  .end = &plan->far, .run = run, .tokens = np_plan_shows_token(p),
			  .ids = p->resets };

	encode(d, &t, d->code, p->far.place.cpu, frame);
}

static void
encode_response(const struct np_dialect *d, const struct np_plan *p, const struct np_run *run,
		uint8_t *frame)
{
	struct np_plan *plan = (struct np_plan *)p;
	struct talk t = { d->code,
			  RESPONSE,
			  .p = plan,
			  .end = &plan->near,
			  .run = run,
			  .tokens = run->terms->tokens,
			  .token = run->terms->token,
			  .ids = p->resets };

	encode(d, &t, d->code + 1, 0, frame);
}

static void
encode_results(const struct np_dialect *d, const struct np_plan *p, const struct np_tally *tally,
	       uint8_t *frame)
{
	struct talk t = { d->code, RESULTS, .p = (struct np_plan *)p, .tally = tally,
			  .result = (struct np_result *)&tally->end };

	/* In netperf, results of SCTP_RR have the code of SCTP_STREAM's. */
	encode(d, &t, d->code == NP_SCTP_RR ? NP_SCTP_RR_RESULTS : d->code + 2, 0, frame);
}

/* np_dialect.decode_request: the plan of this end, or what is wrong with the request. */
static int
decode_request(const struct np_dialect *d, const uint8_t *frame, struct np_plan *p,
	       struct np_err *err)
{
	const struct test *test = test_of(d);
	struct talk t = { .kind = REQUEST, .p = p, .end = &p->near };
	const struct np_omni_request *m = &t.m.omni_request;

	p->pattern = test->pattern;
	p->transport = test->transport;
	p->role = test->role;
	if (decode(&t, test, frame, err) != NP_OK) {
		err->sys = err->sys != 0 ? err->sys : EINVAL; /* for the answer */
		return err->code;
	}
	p->tokens = t.tokens;
	p->resets = t.ids && np_plan_may_reset(p);
	if (p->pattern->sized && (p->request <= 0 || p->response <= 0)) {
		return np_fail(err, NP_EPEER, EINVAL, "request of %d, response of %d bytes",
			       p->request, p->response);
	}
	/* No family means IPv4 in requests before OMNI; those of 2.3 have an address, always
	 * 0.0.0.0, in its place. */
	if (p->transport->family == 0 && p->family == NP_WF_UNSPEC && t.code != NP_OMNI) {
		p->family = NP_WF_INET;
	}
	if (p->transport->family == 0 &&
	    (family_from_wire((uint32_t)p->family, p, err) != NP_OK ||
	     port_from_wire(p->near.sock.port, &p->near.sock.port, err) != NP_OK ||
	     port_from_wire(p->far.sock.port, &p->far.sock.port, err) != NP_OK)) {
		return err->code;
	}
	if (t.code == NP_OMNI) {
		omni_address(m, m->netserver_ip, 0, p, &p->bind);
		omni_address(m, m->netperf_ip, p->far.sock.port, p, &p->far_bind);
	}
	return NP_OK;
}

static int
decode_response(const struct np_dialect *d, const uint8_t *frame, struct np_far *far,
		struct np_err *err)
{
	struct talk t = { .kind = RESPONSE, .far = far, .result = &far->end };
	const struct np_transport *transport;

	if (decode(&t, test_of(d), frame, err) != NP_OK) {
		return err->code;
	}
	far->tokens = t.tokens;
	far->resets = t.ids;
	far->token_shown = t.token;
	transport = test_of(d)->transport;
	if (t.code == NP_OMNI && far->port == 0) {
		return NP_OK; /* its datagrams may come from any port */
	}
	return transport != NULL && transport->family != 0 ? NP_OK
							   : decode_port(far->port, far, err);
}

static int
decode_results(const struct np_dialect *d, const uint8_t *frame, struct np_far *far,
	       struct np_err *err)
{
	struct talk t = { .kind = RESULTS, .far = far, .result = &far->end };

	if (decode(&t, test_of(d), frame, err) != NP_OK) {
		return err->code;
	}
	far->reported = true;
	return NP_OK;
}

/*
 * Before 2.4.3 there was no recv_connected, and the fields after it were one word earlier. The
 * test's length was where cpu_rate, a float, is now: bits below 2^24 are those of an integer.
 */
static int
decode_udp_stream(const struct np_dialect *d, const uint8_t *frame, struct np_plan *p,
		  struct np_err *err)
{
	struct test test = *test_of(d);
	struct np_udp_request m;
	uint32_t bits;

	np_frame_get(frame, np_udp_request_layout, &m, NULL);
	memcpy(&bits, &m.cpu_rate, sizeof(bits));
	if (bits > 0 && bits < 1U << 24) {
		test.layout[REQUEST] = np_udp_242_request_layout;
		test.pass[REQUEST] = udp_242_request_pass;
	}
	return decode_request(&test.dialect, frame, p, err);
}

/* The request does not say how many associations share the socket. */
static int
decode_sctp_many(const struct np_dialect *d, const uint8_t *frame, struct np_plan *p,
		 struct np_err *err)
{
	return np_fail(err, NP_EUNSUP, EOPNOTSUPP,
		       "request for a socket that many SCTP associations share (SCTP_STREAM and "
		       "SCTP_RR are served)");
}

#define BOTH_HALVES(code)                                                                          \
	.dialect = { code,           encode_request,  decode_response, decode_results,             \
		     decode_request, encode_response, encode_results }
#define DAEMON_HALF(code, decode_request)                                                          \
	.dialect = { code, NULL, NULL, NULL, decode_request, encode_response, encode_results }
#define MESSAGES(test) REQUEST_AND(test, test##_results)
#define REQUEST_AND(test, results)                                                                 \
	.layout = { np_##test##_request_layout, np_##test##_response_layout,                       \
		    np_##results##_layout },                                                       \
	.pass = { test##_request_pass, test##_response_pass, results##_pass }
#define ASKS(what, over, by)                                                                       \
	.pattern = &np_pattern_##what, .transport = &np_transport_##over, .role = by

static const struct test tests[] = {
	{ BOTH_HALVES(NP_OMNI), MESSAGES(omni),
	  .write = { omni_encode_request, omni_encode_response, omni_encode_results },
	  .read = { omni_decode_request, omni_decode_response, omni_decode_results } },
	{ BOTH_HALVES(NP_TCP_STREAM), MESSAGES(stream), ASKS(stream, tcp, NP_FOLLOW),
	  .read = { decode_endless_request, NULL, decode_stream_results } },
	{ BOTH_HALVES(NP_TCP_CC), MESSAGES(rr), ASKS(cc, tcp, NP_FOLLOW),
	  .read = { NULL, NULL, decode_rr_results } },
	{ BOTH_HALVES(NP_STREAM_STREAM), MESSAGES(unix_stream),
	  ASKS(stream, unix_stream, NP_FOLLOW),
	  .read = { decode_endless_request, NULL, decode_unix_results } },
	{ BOTH_HALVES(NP_STREAM_RR), REQUEST_AND(stream_rr, unix_rr_results),
	  ASKS(rr, unix_stream, NP_FOLLOW), .read = { NULL, NULL, decode_unix_rr_results } },
	{ BOTH_HALVES(NP_DG_STREAM), MESSAGES(dg_stream), ASKS(stream, unix_dgram, NP_FOLLOW),
	  .read = { decode_messages_request, NULL, decode_unix_results } },
	{ BOTH_HALVES(NP_DG_RR), REQUEST_AND(dg_rr, unix_rr_results),
	  ASKS(rr, unix_dgram, NP_FOLLOW), .read = { NULL, NULL, decode_unix_rr_results } },
	{ DAEMON_HALF(NP_TCP_RR, decode_request), MESSAGES(rr), ASKS(rr, tcp, NP_FOLLOW) },
	{ DAEMON_HALF(NP_TCP_CRR, decode_request), MESSAGES(rr), ASKS(crr, tcp, NP_FOLLOW) },
	{ DAEMON_HALF(NP_SCTP_RR, decode_request), MESSAGES(rr), ASKS(rr, sctp, NP_FOLLOW) },
	{ DAEMON_HALF(NP_UDP_RR, decode_request), MESSAGES(rr), ASKS(rr, udp, NP_FOLLOW),
	  .read = { decode_udp_rr_request } },
	{ DAEMON_HALF(NP_UDP_STREAM, decode_udp_stream), MESSAGES(udp),
	  ASKS(stream, udp, NP_FOLLOW), .read = { decode_messages_request } },
	{ DAEMON_HALF(NP_TCP_MAERTS, decode_request), MESSAGES(stream), ASKS(stream, tcp, NP_LEAD),
	  .read = { decode_maerts_request } },
	{ DAEMON_HALF(NP_SCTP_STREAM, decode_request), MESSAGES(stream),
	  ASKS(stream, sctp, NP_FOLLOW), .read = { decode_sctp_stream_request } },
	{ DAEMON_HALF(NP_SCTP_STREAM_MANY, decode_sctp_many) },
	{ DAEMON_HALF(NP_SCTP_RR_MANY, decode_sctp_many) },
};

const struct np_dialect *
np_netperf_dialect(uint32_t code)
{
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		if (tests[i].dialect.code == code) {
			return &tests[i].dialect;
		}
	}
	return NULL;
}
