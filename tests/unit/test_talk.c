/*
 * The dialects: what one half of the conversation writes, the other half must read as it was meant,
 * and nothing that anybody could write may do harm.
 */
#include "run/talk.h"

#include "bench/engine/engine.h"
#include "tests/lib/check.h"
#include "tests/lib/ends.h"
#include "tests/lib/sockets.h"
#include "wire/plan.h"

/* A function of the dialect of a code. */
#define CALL(code, function, ...) np_dialect(code)->function(np_dialect(code), __VA_ARGS__)

/* ---- Round trips ---- */

static int32_t
random_size(uint64_t *seed)
{
	return (int32_t)(1 + next_random(seed) % INT32_MAX);
}

static void
random_end(struct np_end *e, uint64_t *seed)
{
	e->sock.sndbuf = random_size(seed);
	e->sock.rcvbuf = random_size(seed);
	e->call.send_size = random_size(seed);
	e->call.recv_size = random_size(seed);
	e->call.send_align = 1U << next_random(seed) % 20;
	e->call.recv_align = 1U << next_random(seed) % 20;
	e->call.send_offset = (uint32_t)next_random(seed) % 9999;
	e->call.recv_offset = (uint32_t)next_random(seed) % 9999;
	e->sock.prio = random_size(seed);
	e->sock.tos = (int32_t)(next_random(seed) % 256);
	e->place.cpu = (int32_t)(next_random(seed) % 64);
	e->sock.port = (uint16_t)next_random(seed);
	e->sock.connected = next_random(seed) % 2 == 0;
	snprintf(e->sock.cong, sizeof(e->sock.cong), "%.*s", (int)(next_random(seed) % 16),
		 "abcdefghijklmnop");
}

static void
random_params(struct np_plan *p, const struct np_bench *b, uint64_t *seed)
{
	client_params(p, b, next_random(seed) % 2 == 0 ? AF_INET : AF_INET6,
		      (int32_t)next_random(seed));
	random_end(&p->far, seed);
	if (b->pattern->transactions) {
		p->request = random_size(seed);
		p->response = random_size(seed);
	}
	p->far.place.measure_cpu = next_random(seed) % 2 == 0;
	p->nodelay = next_random(seed) % 2 == 0;
	p->no_route = next_random(seed) % 2 == 0;
	p->keepalive = next_random(seed) % 2 == 0;
	p->defer_accept = next_random(seed) % 2 == 0;
	p->no_fragment = next_random(seed) % 2 == 0;
}

/* What nothing but a plan can say; every_field_of_an_end_arrives has the rest. */
static void
random_plan(struct np_plan *p, uint64_t *seed)
{
	p->flows = 1 + (uint32_t)(next_random(seed) % np_plan_most_flows(p));
	p->burst = (uint32_t)next_random(seed) % 99;
	p->far.place.engine = next_random(seed) % 2 == 0 ? np_engine_find("sync") : NULL;
	if (next_random(seed) % 2 == 0) {
		assert_null(np_cpu_turns_parse(&p->far.place.turns, "4-7+0-2:2"));
	}
	p->ids = next_random(seed) % 2 == 0;
	p->fast_open = next_random(seed) % 2 == 0;
	p->packet_info = next_random(seed) % 2 == 0;
	p->spread = next_random(seed) % 2 == 0 && np_plan_spreads(p);
	p->copy_avoidance = next_random(seed) % 2 == 0;
}

/* What every dialect carries. */
static void
check_asked(const struct np_plan *p, const struct np_plan *q)
{
	assert_ptr_equal(q->transport, p->transport);
	assert_ptr_equal(q->pattern->side[NP_FOLLOW], p->pattern->side[NP_FOLLOW]);
	assert_int_equal(q->role, p->role == NP_LEAD ? NP_FOLLOW : NP_LEAD);
	assert_false(q->active);
	assert_int_equal(q->near.sock.rcvbuf, p->far.sock.rcvbuf);
	if (p->transport->family == 0) {
		assert_int_equal(q->family, p->family);
		assert_int_equal(q->near.sock.port, p->far.sock.port);
		assert_int_equal(q->nodelay, p->nodelay);
	} else {
		assert_int_equal(q->near.place.measure_cpu, p->far.place.measure_cpu);
		assert_int_equal(q->near.call.recv_align, p->far.call.recv_align);
		assert_int_equal(q->near.call.recv_offset, p->far.call.recv_offset);
	}
	if (p->bench->code != NP_DG_STREAM) {
		assert_int_equal(q->near.sock.sndbuf, p->far.sock.sndbuf);
	}
	if (p->pattern->transactions) {
		assert_int_equal(q->request, p->request);
		assert_int_equal(q->response, p->response);
	}
	if (p->bench->code == NP_TCP_STREAM || p->bench->code == NP_STREAM_STREAM) {
		assert_int_equal(q->near.call.recv_size, p->far.call.recv_size);
		assert_int_equal(q->near.call.recv_align, p->far.call.recv_align);
		assert_int_equal(q->near.call.recv_offset, p->far.call.recv_offset);
		assert_int_equal(q->length, 0);
	} else if (p->bench->code == NP_DG_STREAM) {
		assert_int_equal(q->near.call.recv_size, 512);
		assert_int_equal(q->length, p->length < 0 ? 0 : p->length);
	} else {
		assert_int_equal(q->length, p->length);
	}
}

/* What only OMNI and plans have room for. */
static void
check_asked_omni(const struct np_plan *p, const struct np_run *run, const struct np_plan *q)
{
	assert_ptr_equal(q->pattern, p->pattern);
	assert_int_equal(q->near.call.send_size, p->far.call.send_size);
	assert_int_equal(q->near.call.recv_size,
			 p->transport->bounded && !p->pattern->transactions &&
				 (p->transport->header > 0 || p->transport->reliable)
			     ? (int32_t)run->worker->send_size
			     : p->far.call.recv_size);
	assert_int_equal(q->near.call.send_width, run->worker->send_ring.width);
	assert_int_equal(q->near.call.recv_width, run->worker->recv_ring.width);
	assert_int_equal(q->near.call.send_align, p->far.call.send_align);
	assert_int_equal(q->near.call.recv_align, p->far.call.recv_align);
	assert_int_equal(q->near.call.send_offset, p->far.call.send_offset);
	assert_int_equal(q->near.call.recv_offset, p->far.call.recv_offset);
	assert_int_equal(q->near.sock.prio, p->far.sock.prio);
	assert_int_equal(q->near.sock.tos, p->far.sock.tos);
	assert_int_equal(q->near.sock.connected, p->far.sock.connected);
	assert_string_equal(q->near.sock.cong, p->far.sock.cong);
	assert_int_equal(q->no_route, p->no_route);
	assert_int_equal(q->keepalive, p->keepalive);
	assert_int_equal(q->defer_accept, p->defer_accept);
	assert_int_equal(q->no_fragment, p->no_fragment);
	assert_int_equal(q->far.sock.port, p->transport->named ? np_addr_port(&run->end.local) : 0);
}

/* What only plans have room for. */
static void
check_asked_plan(const struct np_plan *p, const struct np_plan *q)
{
	assert_int_equal(q->flows, p->flows);
	assert_int_equal(q->burst, p->burst);
	assert_ptr_equal(q->near.place.engine, p->far.place.engine);
	assert_memory_equal(&q->near.place.turns, &p->far.place.turns, sizeof(q->near.place.turns));
	assert_int_equal(q->near.place.measure_cpu, p->far.place.measure_cpu);
	assert_int_equal(q->ids, p->ids);
	assert_int_equal(q->spread, p->spread);
	assert_int_equal(q->fast_open, p->fast_open);
	assert_int_equal(q->packet_info, p->packet_info);
	assert_int_equal(q->copy_avoidance, p->copy_avoidance);
	assert_int_equal(q->echo, !p->transport->connected && !p->pattern->transactions &&
				      p->role == NP_FOLLOW);
	if (p->transport->link) {
		assert_memory_equal(q->far.sock.mac, lo_link(false)->mac, sizeof(q->far.sock.mac));
	}
}

/* What the engines could do in a test is asked for in the words of its request. */
static void
check_question(const struct np_plan *p, const struct np_run *run, const uint8_t *request)
{
	uint8_t message[NP_MESSAGE_MAX];
	FREED_BY(np_plan_free) struct np_plan q;
	struct np_err err;

	np_engines_dialect.encode_request(&np_engines_dialect, p, run, message);
	assert_int_equal(np_frame_head(message).code, NP_EXT_ENGINES);
	assert_memory_equal(message + 4, request + 4, 4 + (size_t)np_frame_head(message).word);
	np_plan_init(&q);
	assert_int_equal(np_engines_dialect.decode_request(&np_engines_dialect, message, &q, &err),
			 NP_OK);
	assert_ptr_equal(q.pattern, p->pattern);
}

static void
check_request(const struct np_bench *b, uint64_t *seed)
{
	const struct np_dialect *d = np_dialect(b->code);
	struct np_worker w = { .send_ring = { .width = 1 + next_random(seed) % 99 },
			       .recv_ring = { .width = 1 + next_random(seed) % 99 },
			       .send_size = 512 };
	struct np_run run = { .worker = &w, .workers = 1 };
	struct np_terms terms = { .eth = b->transport->link ? lo_link(false) : NULL };
	uint8_t frame[NP_MESSAGE_MAX];
	struct np_plan p, q;
	struct np_err err = { .code = NP_OK };
	struct np_head head;

	random_params(&p, b, seed);
	if (b->code == NP_PLAN) {
		random_plan(&p, seed);
	}
	run.terms = &terms;
	run.end.local = loopback(p.family, (uint16_t)next_random(seed));
	d->encode_request(d, &p, &run, frame);
	head = np_frame_head(frame);
	assert_int_equal(head.code, b->code);
	np_plan_init(&q);
	fail_if(d->decode_request(d, frame, &q, &err) != NP_OK, "%s: %s", b->name, err.msg);
	if (b->code == NP_PLAN) {
		check_question(&p, &run, frame);
		assert_int_equal(q.near.place.cpu, p.far.place.cpu);
	} else {
		assert_int_equal(head.word, p.far.place.cpu);
	}
	check_asked(&p, &q);
	if (b->code == NP_OMNI || b->code == NP_PLAN) {
		check_asked_omni(&p, &run, &q);
	}
	if (b->code == NP_PLAN) {
		check_asked_plan(&p, &q);
	}
	np_plan_free(&q);
}

TEST(requests_mean_the_same_at_both_ends)
{
	uint64_t seed = 11;

	for (const struct np_bench *b = NULL; (b = next_runnable(b)) != NULL;) {
		struct np_bench row = *b;

		row.code = NP_PLAN;
		for (int round = 0; round < 200; round++) {
			check_request(b, &seed);
			check_request(&row, &seed);
		}
	}
}

/* What is a row of plan.def arrives by that alone; rings are as wide as the client's. */
TEST(every_field_of_an_end_arrives)
{
	struct np_worker w = { .conns = 1 };
	struct np_run run = { .worker = &w, .workers = 1 };
	struct np_terms terms = { .eth = NULL };
	uint8_t frame[NP_MESSAGE_MAX];
	struct np_plan p, q;
	struct np_err err = { .code = NP_OK };

	client_params(&p, np_bench_find("TCP_STREAM"), AF_INET, 1);
	p.flows = 2;
	memset(&p.far.call, 1, sizeof(p.far.call)); /* one without a row will differ */
	run.terms = &terms;
#define NP_E_NUMBER(type, group, member, json, kind, tag, name, least, most, ...)                  \
	p.far.group.member = (most) < 1000 ? (most) : 70000 + (tag);
#define NP_E_FLAG(bit, group, member, ...) p.far.group.member = true;
#define NP_E_TEXT(group, member, json, tag, ...)                                                   \
	snprintf(p.far.group.member, sizeof(p.far.group.member), "%d", tag);
#define NP_E_PATH(group, member, ...) p.far.group.member = (char *)#member;
#include "wire/plan.def"
	p.far.sock.port = 1028;
	p.near.call.send_width = p.far.call.send_width;
	p.near.call.recv_width = p.far.call.recv_width;
	np_dialect_of(&p)->encode_request(np_dialect_of(&p), &p, &run, frame);
	np_plan_init(&q);
	assert_int_equal(CALL(NP_PLAN, decode_request, frame, &q, &err), NP_OK);
#define NP_E_NUMBER(type, group, member, ...)                                                      \
	assert_int_equal(q.near.group.member, p.far.group.member);
#define NP_E_FLAG(bit, group, member, ...) assert_true(q.near.group.member);
#define NP_E_TEXT(group, member, ...) assert_string_equal(q.near.group.member, p.far.group.member);
#define NP_E_PATH(group, member, ...) assert_string_equal(q.near.group.member, p.far.group.member);
#include "wire/plan.def"
	assert_memory_equal(&q.near.call, &p.far.call, offsetof(struct np_call_plan, fill_file));
	np_plan_free(&q);
}

/* Without a user's wish nothing but netperf's own defaults goes out. */
TEST(a_default_request_leaves_all_to_the_daemon)
{
	struct np_worker w = { .conns = 1 };
	struct np_run run = { .worker = &w, .workers = 1 };
	uint8_t frame[NP_FRAME_SIZE];
	struct np_plan p, q, init;
	struct np_err err;

	client_params(&p, np_bench_find("TCP_STREAM"), AF_INET, 10);
	run.end.local = loopback(AF_INET, 0);
	CALL(NP_OMNI, encode_request, &p, &run, frame);
	np_plan_init(&q);
	np_plan_init(&init);
	assert_int_equal(CALL(NP_OMNI, decode_request, frame, &q, &err), NP_OK);
	assert_memory_equal(&q.near, &init.near, sizeof(init.near));
	assert_int_equal(q.length, 10);
	assert_int_equal(q.bind.len, 0);
	assert_int_equal(q.far_bind.len, 0);
	assert_int_equal(np_frame_head(frame).word, -1);
}

TEST(addresses_and_files_go_with_omni)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct np_worker w = { .conns = 1 };
	struct np_run run = { .worker = &w, .workers = 1 };
	uint8_t frame[NP_FRAME_SIZE];
	struct np_plan p, q;
	struct np_err err;

	for (size_t i = 0; i < LEN(families); i++) {
		client_params(&p, np_bench_find("UDP_RR"), families[i], 10);
		p.bind = loopback(families[i], 0);
		p.far_bind = loopback(families[i], 0);
		run.end.local = loopback(families[i], 4711);
		p.far.call.fill_file = (char *)"/tmp/a-name-of-thirty-one-chars";
		CALL(NP_OMNI, encode_request, &p, &run, frame);
		np_plan_init(&q);
		assert_int_equal(CALL(NP_OMNI, decode_request, frame, &q, &err), NP_OK);
		assert_true(same_address(&q.bind, &p.far_bind));
		assert_true(same_address(&q.far_bind, &run.end.local));
		assert_string_equal(q.near.call.fill_file, p.far.call.fill_file);
		np_plan_free(&q);
	}
}

/* Only who is to receive datagrams says that it will echo; all other requests stay as they were. */
TEST(an_echo_is_promised_where_datagrams_are_to_come)
{
	const struct np_bench *b;
	uint8_t frame[NP_FRAME_SIZE];
	struct np_plan p, q;
	struct np_err err;
	uint64_t token;
	int asked = 0;
	bool shows;

	for (size_t i = 0; (b = np_bench_at(i)) != NULL; i++) {
		for (int role = NP_LEAD; b->code == NP_OMNI && role <= NP_FOLLOW; role++) {
			struct np_worker w = { .conns = 1 };
			struct np_run run = { .worker = &w, .workers = 1 };
			bool should = !b->transport->connected && !b->pattern->transactions &&
				      role == NP_FOLLOW;

			client_params(&p, b, AF_INET, 10);
			p.role = role;
			run.end.local = loopback(AF_INET, 4711);
			CALL(NP_OMNI, encode_request, &p, &run, frame);
			assert_int_equal(np_spare_get(frame + NP_SPARE_AT, &token) == NP_ECHO_ASKED,
					 should);
			/* And who can show a token that he would. */
			shows = np_token_get(frame + NP_TOKEN_AT, NP_TOKEN_SIZE, NULL) ==
				NP_TOKEN_WANTED;
			assert_int_equal(shows, np_plan_shows_token(&p));
			memset(frame + NP_TOKEN_AT, 0, shows ? NP_TOKEN_SIZE : 0);
			for (size_t at = 208; at < NP_FRAME_SIZE && !should; at++) {
				assert_int_equal(frame[at], 0);
			}
			np_plan_init(&q);
			assert_int_equal(CALL(NP_OMNI, decode_request, frame, &q, &err), NP_OK);
			assert_int_equal(q.echo, should);
			assert_false(q.tokens);
			asked += should;
		}
	}
	assert_true(asked > 0);
}

TEST(a_token_comes_with_the_response)
{
	static const uint64_t tokens[] = { 0, 1, UINT64_C(0x0123456789abcdef), UINT64_MAX };
	uint8_t frame[NP_FRAME_SIZE], datagram[NP_ECHO_SIZE], other[NP_ECHO_SIZE];
	struct np_plan p;
	struct np_far far;
	struct np_err err;

	client_params(&p, np_bench_find("UDP_STREAM"), AF_INET, 10);
	memset(other, 0, sizeof(other));
	for (size_t i = 0; i < LEN(tokens); i++) {
		struct np_worker w = { .conns = 1 };
		struct np_terms terms = { .tokens = i % 2 != 0, .token.at = { 1, 2, 3 } };
		struct np_run run = {
			.worker = &w, .workers = 1, .end.token = tokens[i], .terms = &terms
		};

		run.end.local = loopback(AF_INET, 4711);
		CALL(NP_OMNI, encode_response, &p, &run, frame);
		np_far_init(&far);
		assert_int_equal(CALL(NP_OMNI, decode_response, frame, &far, &err), NP_OK);
		assert_true(far.token == tokens[i]);
		assert_int_equal(far.tokens, terms.tokens);
		assert_true(!far.tokens || np_token_is(&far.token_shown, &terms.token));
		np_spare_put(datagram, NP_ECHO_NAMED, tokens[i]);
		assert_memory_not_equal(datagram, other, sizeof(other));
		memcpy(other, datagram, sizeof(other));
	}
	/* What a real daemon may have left there from other messages is none. */
	memset(frame + 80, 'x', sizeof(frame) - 80);
	np_far_init(&far);
	assert_int_equal(CALL(NP_OMNI, decode_response, frame, &far, &err), NP_OK);
	assert_true(far.token == 0 && !far.tokens);
}

static void
open_daemon_end(struct end *e, const struct np_bench *b)
{
	struct np_plan client;

	memset(e, 0, sizeof(*e));
	client_params(&client, b, AF_INET, 1);
	client.nodelay = true;
	server_params(&e->plan, &client);
	end_open(e);
}

/* Figures that no other field has. */
static const struct np_tally figures = {
	.end.count = { .sent = 1001,
		       .sends = 1002,
		       .received = 1003,
		       .receives = 1004,
		       .transactions = 1005,
		       .failed = 1006 },
	.started_ns = 1000000000,
	.ended_ns = 3500000000,
	.led_ns = 2500000000,
	.end.closing = { .sndbuf_end = 2001,
			 .rcvbuf_end = 2002,
			 .retrans = 2003,
			 .cpu = { .known = true, .util = 98, .count = 2 },
			 .cong = "re\x1bno" },
};

static void
check_report(const struct np_bench *b, const struct np_far *far)
{
	const struct np_counts *c = &figures.end.count;

	assert_true(far->reported);
	assert_true(fabs(far->elapsed - 2.5) < 1e-6);
	/* As it was read: not related to the time of the test. */
	assert_true(fabs(far->end.closing.cpu.util - 98) < 1e-3);
	if (b->code == NP_STREAM_RR || b->code == NP_DG_RR) {
		assert_int_equal(far->end.count.transactions, c->transactions);
	} else if (b->code != NP_TCP_CC) {
		assert_int_equal(far->end.count.received, c->received);
		assert_int_equal(far->end.count.receives, c->receives);
	}
	if (b->code == NP_OMNI || b->code == NP_PLAN) {
		assert_int_equal(far->end.count.sent, c->sent);
		assert_int_equal(far->end.count.sends, c->sends);
		assert_int_equal(far->end.closing.sndbuf_end, 2001);
		assert_int_equal(far->end.closing.rcvbuf_end, 2002);
		assert_int_equal(far->end.closing.retrans, 2003);
		assert_int_equal(far->end.count.transactions, c->transactions);
		assert_string_equal(far->end.closing.cong, "re?no"); /* fit for a terminal */
	} else {
		assert_int_equal(far->end.count.sends, -1);
		assert_int_equal(far->end.closing.sndbuf_end, -1);
	}
	assert_int_equal(far->end.count.failed, b->code == NP_PLAN ? (int64_t)c->failed : -1);
}

/* The path of the UNIX domain is all there is to find the daemon's socket by. */
static void
check_path(const struct np_addr *local, const struct np_far *far)
{
	char text[NP_ADDR_TEXT];

	if (local->sa.ss_family == AF_UNIX) {
		assert_string_equal(far->path, np_addr_host(local, text));
	} else {
		assert_string_equal(far->path, "");
	}
}

static void
check_answers(const struct np_bench *b)
{
	const struct np_dialect *d = np_dialect(b->code);
	struct np_err err = { .code = NP_OK };
	uint8_t frame[NP_MESSAGE_MAX];
	struct np_far far;
	FREED_BY(end_free) struct end e;

	open_daemon_end(&e, b);
	np_far_init(&far);
	d->encode_response(d, &e.plan, &e.run, frame);
	assert_int_equal(np_frame_head(frame).code, b->code + 1);
	assert_true(b->code == NP_PLAN || np_frame_head(frame).word == 0);
	assert_int_equal(d->decode_response(d, frame, &far, &err), NP_OK);
	assert_int_equal(far.port, np_addr_port(&e.run.end.local));
	check_path(&e.run.end.local, &far);
	assert_int_equal(far.end.sndbuf, e.run.end.sndbuf);
	assert_int_equal(far.end.rcvbuf, e.run.end.rcvbuf);
	assert_int_equal(far.nodelay, b->transport->family == 0 || b->code == NP_PLAN);
	assert_int_equal(far.flows, 1);
	assert_false(far.reported);
	d->encode_results(d, &e.plan, &figures, frame);
	assert_int_equal(np_frame_head(frame).code, b->code + 2);
	far.measures_cpu = true;
	assert_int_equal(d->decode_results(d, frame, &far, &err), NP_OK);
	check_report(b, &far);
}

TEST(responses_and_results_mean_the_same_at_both_ends)
{
	for (const struct np_bench *b = NULL; (b = next_runnable(b)) != NULL;) {
		struct np_bench row = *b;

		row.code = NP_PLAN;
		check_answers(b);
		check_answers(&row);
	}
}

/* ---- Daemons that make no sense ---- */

TEST(a_granted_port_must_be_one)
{
	static const uint32_t ports[] = { 0, 65536, UINT32_MAX };
	struct np_far far;
	uint8_t frame[NP_FRAME_SIZE];
	struct np_err err;

	for (size_t i = 0; i < LEN(ports); i++) {
		struct np_head head = { .code = 0 };
		struct np_omni_response omni = { .data_port = ports[i] };
		struct np_stream_response stream = { .data_port_number = (int32_t)ports[i] };
		struct np_rr_response rr = { .data_port_number = (int32_t)ports[i] };

		np_frame_put(frame, &head, np_omni_response_layout, &omni);
		assert_int_equal(CALL(NP_OMNI, decode_response, frame, &far, &err),
				 ports[i] == 0 ? NP_OK
					       : NP_EPEER); /* a receiver of datagrams needs none */
		np_frame_put(frame, &head, np_stream_response_layout, &stream);
		assert_int_equal(CALL(NP_TCP_STREAM, decode_response, frame, &far, &err), NP_EPEER);
		np_frame_put(frame, &head, np_rr_response_layout, &rr);
		assert_int_equal(CALL(NP_TCP_CC, decode_response, frame, &far, &err), NP_EPEER);
		assert_has(err.msg, "for the data connection");
	}
}

TEST(reported_bytes_must_be_a_count)
{
	static const double counts[] = { -1, 1e19, (double)NAN, (double)INFINITY };
	struct np_far far;
	uint8_t frame[NP_FRAME_SIZE];
	struct np_err err;

	for (size_t i = 0; i < LEN(counts); i++) {
		struct np_head head = { .code = 0 };
		struct np_stream_results m = { .bytes_received = counts[i] };

		np_frame_put(frame, &head, np_stream_results_layout, &m);
		np_far_init(&far);
		assert_int_equal(CALL(NP_TCP_STREAM, decode_results, frame, &far, &err), NP_EPEER);
		assert_false(far.reported);
	}
}

/* netperf asks for the smallest buffers unless the user names others, and shows what it got. */
TEST(unix_requests_without_a_wish_ask_for_no_buffers)
{
	static const char *const names[] = { "STREAM_STREAM", "STREAM_RR", "DG_STREAM", "DG_RR" };
	static const struct np_terms no_terms;

	for (size_t i = 0; i < 2 * LEN(names); i++) {
		const struct np_bench *b = np_bench_find(names[i / 2]);
		struct np_worker w = { .send_size = 512 };
		struct np_run run = { .worker = &w, .workers = 1, .terms = &no_terms };
		uint8_t frame[NP_MESSAGE_MAX];
		struct np_plan p, q;
		struct np_err err;

		client_params(&p, b, AF_INET, 10);
		p.flows = 1 + i % 2; /* by the older request, and by a PLAN */
		np_dialect_of(&p)->encode_request(np_dialect_of(&p), &p, &run, frame);
		np_plan_init(&q);
		assert_int_equal(
		    np_dialect_of(&p)->decode_request(np_dialect_of(&p), frame, &q, &err), NP_OK);
		assert_int_equal(q.near.sock.rcvbuf, 0);
		assert_int_equal(q.near.sock.sndbuf,
				 b->code == NP_DG_STREAM && p.flows == 1 ? -1 : 0);
		if (b->code == NP_DG_STREAM) {
			assert_int_equal(q.near.call.recv_size, 512); /* none is cut */
		}
	}
}

TEST(a_granted_path_must_be_one)
{
	/* Nor one whose name does more to a terminal than to be shown. */
	static const char *const paths[] = { "",
					     "s",
					     "tmp/s",
					     "@x",
					     "\xc4\x9b",
					     "/tmp/\x1b[2J",
					     "/tmp/\x9b",
					     "/tmp/\xc2\x9b",
					     "/tmp/\xe2\x80\xae",
					     "/tmp/\xe2\x80\x8b" };
	struct np_far far;
	uint8_t frame[NP_FRAME_SIZE];
	struct np_err err;

	for (size_t i = 0; i < LEN(paths); i++) {
		struct np_head head = { .code = 0 };
		struct np_unix_stream_response m = { .recv_buf_size = 1 };

		np_far_init(&far);
		strcpy(m.unix_path, paths[i]);
		np_frame_put(frame, &head, np_unix_stream_response_layout, &m);
		assert_int_equal(CALL(NP_STREAM_STREAM, decode_response, frame, &far, &err),
				 NP_EPEER);
		assert_has(err.msg, "for the data connection");
		for (const char *at = err.msg; *at != '\0'; at++) {
			assert_true(*at >= ' ' && *at <= '~');
		}
		assert_string_equal(far.path, "");
	}
}

/* Of the processors a daemon may tell, or not: a figure counts where it was asked for. */
TEST(remote_processors_count_where_they_were_asked_for)
{
	struct np_head head = { .code = 0 };
	struct np_unix_stream_results m = { .elapsed_time = 2,
					    .cpu_util = 40,
					    .num_cpus = 16777216 };
	uint8_t frame[NP_FRAME_SIZE];
	struct np_far far;
	struct np_err err;

	np_frame_put(frame, &head, np_unix_stream_results_layout, &m);
	np_far_init(&far);
	assert_int_equal(CALL(NP_STREAM_STREAM, decode_results, frame, &far, &err), NP_OK);
	assert_false(far.end.closing.cpu.known);
	far.measures_cpu = true;
	assert_int_equal(CALL(NP_STREAM_STREAM, decode_results, frame, &far, &err), NP_OK);
	assert_true(far.end.closing.cpu.known);
	assert_true(fabs(far.end.closing.cpu.util - 40) < 1e-6);
	assert_int_equal(far.end.closing.cpu.count, sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(far.cpu_method, NP_CPU_METHOD);
}

/* A daemon without /proc measures nothing, and says so by the method alone: no utilisation of 0. */
TEST(remote_processors_that_were_not_measured_are_not_known)
{
	struct np_head head = { .code = NP_OMNI + 2 };
	struct np_omni_results m = { .elapsed_time = 1, .cpu_util = 0, .cpu_method = 0 };
	uint8_t frame[NP_FRAME_SIZE];
	struct np_far far;
	struct np_err err;

	np_frame_put(frame, &head, np_omni_results_layout, &m);
	np_far_init(&far);
	far.measures_cpu = true;
	assert_int_equal(CALL(NP_OMNI, decode_results, frame, &far, &err), NP_OK);
	assert_false(far.end.closing.cpu.known);
}

/* What is not told of one of them is not known of the sum. */
TEST(far_ends_add_up)
{
	struct np_far a, b;

	np_far_init(&a);
	np_far_init(&b);
	a.reported = b.reported = true;
	a.end.count.sent = 1;
	a.end.count.received = b.end.count.received = 10;
	a.end.count.sends = b.end.count.sends = 5;
	a.end.closing.retrans = 3;
	a.end.count.transactions = b.end.count.transactions = 7;
	a.elapsed = 1;
	b.elapsed = 2;
	a.end.sndbuf = 100;
	b.end.sndbuf = 200;
	b.end.send_size = 50; /* with --both only one of them sends */
	b.end.send_width = 3;
	np_far_add(&a, &b);
	assert_true(a.reported);
	assert_int_equal(a.flows, 2);
	assert_int_equal(a.established, 2);
	assert_int_equal(a.end.count.sent, 1);
	assert_int_equal(a.end.count.received, 20);
	assert_int_equal(a.end.count.sends, 10);
	assert_int_equal(a.end.count.receives, -1);
	assert_int_equal(a.end.closing.retrans, -1);
	assert_int_equal(a.end.count.transactions, 14);
	assert_true(a.elapsed == 2);
	assert_int_equal(a.end.sndbuf, 100);
	assert_int_equal(a.end.send_size, 50);
	assert_int_equal(a.end.send_width, 3);
	b.reported = false;
	np_far_add(&a, &b);
	assert_false(a.reported);
}

TEST_MAIN()
