/*
 * The codec and the layouts, against messages recorded from the real programs
 * (tests/vectors/frames.def) and against themselves.
 */
#include "wire/msg.h"
#include "wire/wire.h"

#include <inttypes.h>

#include "bench/bench.h"
#include "bench/run.h"
#include "run/talk.h"
#include "tests/lib/check.h"
#include "tests/lib/sockets.h"

/* ---- What a message consists of, for tests that go through all of them ---- */

enum type { I32, U32, U64, F32, F64, TEXT };

struct field {
	const char *name;
	enum type type;
	size_t at, size;
};

/* Those of a message, as messages.def has them; recordings tell whether it is right. */
static size_t
fields_of(np_layout *layout, struct field *out)
{
	size_t n = 0;

	/* clang-format off */
#define FIELD(name, member, type)                                                                  \
	out[n++] = (struct field){ name, type, offsetof(of, member), sizeof(((of *)0)->member) };
#define NP_MESSAGE(layout_of, of_type, title)                                                      \
	if (layout == np_##layout_of##_layout) {                                                   \
		typedef struct np_##of_type of;
#define NP_ORDER NP_MESSAGE
#define NP_NUMBER(type, name, note) FIELD(#name, name, type)
#define NP_TEXT(name, bytes, note) FIELD(#name, name, TEXT)
#define NP_TEXT4 NP_TEXT
#define NP_WORDS(name, count, note)                                                                \
	FIELD(#name "[0]", name[0], U32) FIELD(#name "[1]", name[1], U32)                          \
	FIELD(#name "[2]", name[2], U32) FIELD(#name "[3]", name[3], U32)
#define NP_END }
#include "wire/messages.def"
	/* clang-format on */
	return n;
}

/* Room for any of the structs, aligned for all. */
union message {
	uint64_t aligned;
	char room[2 * NP_FRAME_SIZE];
	struct np_omni_request omni_request;
};

struct kind {
	const char *name;
	np_layout *layout;
	size_t end; /* first byte of the message that the layout leaves alone */
	struct field fields[48];
	size_t nfields;
};

static struct kind kinds[] = {
	{ .name = "OMNI_REQUEST", .layout = np_omni_request_layout, .end = 208 },
	{ .name = "OMNI_RESPONSE", .layout = np_omni_response_layout, .end = 80 },
	{ .name = "OMNI_RESULTS", .layout = np_omni_results_layout, .end = 292 },
	{ .name = "STREAM_REQUEST", .layout = np_stream_request_layout, .end = 72 },
	{ .name = "STREAM_RESPONSE", .layout = np_stream_response_layout, .end = 48 },
	{ .name = "STREAM_RESULTS", .layout = np_stream_results_layout, .end = 48 },
	{ .name = "RR_REQUEST", .layout = np_rr_request_layout, .end = 72 },
	{ .name = "RR_RESPONSE", .layout = np_rr_response_layout, .end = 44 },
	{ .name = "RR_RESULTS", .layout = np_rr_results_layout, .end = 40 },
	{ .name = "UDP_REQUEST", .layout = np_udp_request_layout, .end = 60 },
	{ .name = "UDP_242_REQUEST", .layout = np_udp_242_request_layout, .end = 56 },
	{ .name = "UDP_RESPONSE", .layout = np_udp_response_layout, .end = 40 },
	{ .name = "UDP_RESULTS", .layout = np_udp_results_layout, .end = 32 },
	{ .name = "UNIX_STREAM_REQUEST", .layout = np_unix_stream_request_layout, .end = 92 },
	{ .name = "UNIX_STREAM_RESPONSE", .layout = np_unix_stream_response_layout, .end = 80 },
	{ .name = "UNIX_STREAM_RESULTS", .layout = np_unix_stream_results_layout, .end = 32 },
	{ .name = "STREAM_RR_REQUEST", .layout = np_stream_rr_request_layout, .end = 96 },
	{ .name = "STREAM_RR_RESPONSE", .layout = np_stream_rr_response_layout, .end = 72 },
	{ .name = "DG_RR_REQUEST", .layout = np_dg_rr_request_layout, .end = 96 },
	{ .name = "DG_RR_RESPONSE", .layout = np_dg_rr_response_layout, .end = 76 },
	{ .name = "UNIX_RR_RESULTS", .layout = np_unix_rr_results_layout, .end = 36 },
	{ .name = "DG_STREAM_REQUEST", .layout = np_dg_stream_request_layout, .end = 80 },
	{ .name = "DG_STREAM_RESPONSE", .layout = np_dg_stream_response_layout, .end = 72 },
	{ .name = "DG_STREAM_RESULTS", .layout = np_dg_stream_results_layout, .end = 28 },
	{ .name = "CALIBRATE", .layout = np_calibrate_response_layout, .end = 16 },
	{ .name = "TEXT", .layout = np_text_layout, .end = NP_FRAME_SIZE },
	{ .name = "HEAD", .end = 8 }, /* and no body */
};

enum { BODIES = LEN(kinds) - 1 };

static int
fill_kinds(void **state)
{
	for (size_t i = 0; i < BODIES; i++) {
		kinds[i].nfields = fields_of(kinds[i].layout, kinds[i].fields);
		assert_in_range(kinds[i].nfields, 1, LEN(kinds[i].fields));
	}
	return 0;
}

static const struct kind *
kind_named(const char *name)
{
	size_t i = 0;

	while (strcmp(kinds[i].name, name) != 0) {
		assert_true(++i < LEN(kinds));
	}
	return &kinds[i];
}

/* ---- The recorded messages ---- */

struct vector {
	const char *kind, *label, *bytes, *leftover, *fields;
};

static const struct vector vectors[] = {
#define NP_VECTOR(kind, label, bytes, leftover, fields) { #kind, label, bytes, leftover, fields },
#include "../vectors/frames.def"
#undef NP_VECTOR
};

/* Of all with the label, or with NULL the first, from which the others of its kind differ. */
static const struct vector *
find_vector(const char *kind, const char *label)
{
	for (size_t i = 0; i < LEN(vectors); i++) {
		if (strcmp(vectors[i].kind, kind) == 0 &&
		    (label == NULL || strcmp(vectors[i].label, label) == 0)) {
			return &vectors[i];
		}
	}
	fail_msg("no vector of %s \"%s\"", kind, label != NULL ? label : "");
	abort(); /* fail_msg() does not return, which gcc can't see */
}

/* Offsets of three digits and words. */
static void
put_words(const char *p, uint8_t frame[NP_FRAME_SIZE])
{
	size_t at = 0;

	while (*p != '\0') {
		size_t len = strcspn(p, " ");

		if (len == 3) {
			at = strtoul(p, NULL, 10);
		} else {
			uint32_t word = htonl((uint32_t)strtoul(p, NULL, 16));

			assert_int_equal(len, 8);
			assert_true(at + 4 <= NP_FRAME_SIZE);
			memcpy(frame + at, &word, sizeof(word));
			at += 4;
		}
		p += len;
		p += strspn(p, " ");
	}
}

static void
recorded_frame(const struct vector *v, uint8_t frame[NP_FRAME_SIZE])
{
	const struct vector *first = find_vector(v->kind, NULL);

	memset(frame, 0, NP_FRAME_SIZE);
	put_words(first->bytes, frame);
	if (v != first) {
		put_words(v->bytes, frame);
	}
}

/* Zero what the vector calls leftover. */
static void
clear_leftover(const struct vector *v, uint8_t frame[NP_FRAME_SIZE])
{
	const char *p = v->leftover;

	while (*p != '\0') {
		char *end;
		size_t at = strtoul(p, &end, 10);
		size_t len = strtoul(end + 1, &end, 10);

		assert_true(len > 0 && at + len <= NP_FRAME_SIZE);
		memset(frame + at, 0, len);
		p = end + strspn(end, " ");
	}
}

/* ---- A decoded message, in the form of the vectors' `fields` ---- */

static void
format_value(const struct field *f, const char *m, char *out, size_t size)
{
	union {
		int32_t i32;
		uint32_t u32;
		uint64_t u64;
		float f32;
		double f64;
	} v = { .u64 = 0 };

	if (f->type == TEXT) {
		assert_non_null(memchr(m + f->at, '\0', f->size));
		snprintf(out, size, "\"%s\"", m + f->at);
		return;
	}
	memcpy(&v, m + f->at, f->size);
	if (f->type == I32) {
		snprintf(out, size, "%" PRId32, v.i32);
	} else if (f->type == U32) {
		snprintf(out, size, "%" PRIu32, v.u32);
	} else if (f->type == U64) {
		snprintf(out, size, "%" PRIu64, v.u64);
	} else if (f->type == F32) {
		snprintf(out, size, isnan(v.f32) ? "nan" : "%.9g", (double)v.f32);
	} else {
		snprintf(out, size, "%.17g", v.f64);
	}
}

/* Where the value of that name begins in `fields`; NULL: none. */
static const char *
value_in(const char *fields, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = fields; *p != '\0'; p += strspn(p, " ")) {
		if (strncmp(p, name, len) == 0 && p[len] == '=') {
			return p + len + 1;
		}
		p += strcspn(p, " ");
	}
	return NULL;
}

/* A value is the vector's own, or that of the first of its kind, or zero. */
static void
assert_value(const struct vector *v, const char *name, const char *have)
{
	const char *want = value_in(v->fields, name);
	size_t len = strlen(have);

	if (want == NULL) {
		want = value_in(find_vector(v->kind, NULL)->fields, name);
	}
	if (want == NULL) {
		want = have[0] == '"' ? "\"\"" : "0";
	}
	fail_if(strncmp(want, have, len) != 0 || (want[len] != '\0' && want[len] != ' '),
		"%s: %s: read %s, recorded %s", v->label, name, have, want);
}

static void
assert_same_frame(const uint8_t *have, const uint8_t *want, const char *label)
{
	for (size_t i = 0; i < NP_FRAME_SIZE; i++) {
		fail_if(have[i] != want[i], "%s: byte %zu is %02x, recorded %02x", label, i,
			have[i], want[i]);
	}
}

/* ---- Tests: the recorded messages ---- */

/* Paths of the UNIX domain were recorded on a little-endian machine; others send them otherwise. */
static bool
read_elsewhere(const struct kind *k)
{
	return __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ && k->nfields > 0 &&
	       strcmp(k->fields[k->nfields - 1].name, "unix_path") == 0;
}

/* Nothing is recorded of a field that there is not. */
static void
assert_names(const struct vector *v, const struct kind *k)
{
	const char *p = v->fields;

	while (*p != '\0') {
		size_t len = strcspn(p, "="), n = 0;

		while (n < k->nfields && (strncmp(p, k->fields[n].name, len) != 0 ||
					  k->fields[n].name[len] != '\0')) {
			n++;
		}
		fail_if(n == k->nfields && strncmp(p, "code=", 5) != 0 &&
			    strncmp(p, "word=", 5) != 0,
			"%s: no field of %s", v->label, p);
		p += len + 1;
		p += *p == '"' ? 1 + strcspn(p + 1, "\"") : 0; /* a text may have blanks */
		p += strcspn(p, " ");
		p += strspn(p, " ");
	}
}

TEST(recorded_messages_mean_what_they_should)
{
	for (size_t i = 0; i < LEN(vectors); i++) {
		const struct vector *v = &vectors[i];
		const struct kind *k = kind_named(v->kind);
		struct np_err err = { .code = NP_OK };
		char value[NP_FRAME_SIZE + 8];
		uint8_t frame[NP_FRAME_SIZE];
		union message m;
		struct np_head h;

		if (read_elsewhere(k)) {
			continue;
		}
		memset(&m, 0xa5, sizeof(m));
		recorded_frame(v, frame);
		h = np_frame_head(frame);
		if (k->layout != NULL) {
			assert_int_equal(np_frame_get(frame, k->layout, &m, &err), NP_OK);
		}
		assert_names(v, k);
		snprintf(value, sizeof(value), "%" PRIu32, h.code);
		assert_value(v, "code", value);
		snprintf(value, sizeof(value), "%" PRId32, h.word);
		assert_value(v, "word", value);
		for (size_t n = 0; n < k->nfields; n++) {
			format_value(&k->fields[n], m.room, value, sizeof(value));
			assert_value(v, k->fields[n].name, value);
		}
	}
}

TEST(recorded_messages_are_written_byte_for_byte)
{
	for (size_t i = 0; i < LEN(vectors); i++) {
		const struct vector *v = &vectors[i];
		const struct kind *k = kind_named(v->kind);
		uint8_t frame[NP_FRAME_SIZE], again[NP_FRAME_SIZE];
		struct np_err err;
		struct np_head h;
		union message m;

		recorded_frame(v, frame);
		h = np_frame_head(frame);
		if (k->layout != NULL) {
			assert_int_equal(np_frame_get(frame, k->layout, &m, &err), NP_OK);
		}
		memset(again, 0xa5, sizeof(again));
		np_frame_put(again, &h, k->layout, &m);
		clear_leftover(v, frame);
		assert_same_frame(again, frame, v->label);
	}
}

static void
assert_request(const char *kind, const char *label, uint32_t code, const void *m)
{
	const struct vector *v = find_vector(kind, label);
	struct np_head head = { .code = code, .word = -1 };
	uint8_t frame[NP_FRAME_SIZE], want[NP_FRAME_SIZE];

	recorded_frame(v, want);
	assert_string_equal(v->leftover, "");
	np_frame_put(frame, &head, kind_named(kind)->layout, m);
	assert_same_frame(frame, want, label);
}

/* What a client sends when the user asks for nothing special. */
static const struct np_omni_request plain_request = {
	.send_buf_size = -1,
	.send_size = -1,
	.send_alignment = 8,
	.send_width = 2,
	.request_size = -1,
	.recv_buf_size = -1,
	.receive_size = -1,
	.recv_alignment = 8,
	.response_size = -1,
	.flags = NP_WB_ROUTE,
	.test_length = 1,
	.send_dirty_count = -1,
	.recv_dirty_count = -1,
	.recv_clean_count = -1,
	.ipfamily = NP_WF_INET,
	.socket_type = NP_WS_STREAM,
	.protocol = 6,
	.direction = NP_WD_RECEIVE,
	.socket_prio = -1,
	.socket_tos = -1,
};

TEST(our_omni_requests_are_netperfs)
{
	static const uint8_t loopback[2][4] = { { 127, 0, 0, 2 }, { 127, 0, 0, 3 } };
	struct np_omni_request r = plain_request;

	r.netperf_port = 39985;
	assert_request("OMNI_REQUEST", "tcp_stream, client 2.7.0, 0", NP_OMNI, &r);

	r.netperf_port = 33393;
	strcpy(r.cong_control, "cubic");
	assert_request("OMNI_REQUEST", "cong_control, client 2.7.0, 0", NP_OMNI, &r);

	r = plain_request;
	r.netperf_port = 39429;
	strcpy(r.fill_file, "fill.bin");
	assert_request("OMNI_REQUEST", "fill_file, client 2.7.0, 0", NP_OMNI, &r);

	r = plain_request;
	r.netperf_port = 36153;
	r.send_size = 5000;
	r.send_width = 5;
	r.receive_size = 8192;
	assert_request("OMNI_REQUEST", "sizes_omni, client 2.7.0, 0", NP_OMNI, &r);

	r = plain_request;
	r.netperf_port = 45605;
	r.socket_prio = 4;
	r.socket_tos = 32;
	assert_request("OMNI_REQUEST", "prio_tos, client 2.7.0, 0", NP_OMNI, &r);

	r = plain_request;
	r.socket_type = NP_WS_DGRAM;
	r.protocol = 17;
	r.direction = NP_WD_BOTH;
	r.request_size = r.response_size = 1;
	r.send_width = r.recv_width = 1;
	r.netperf_port = 49163;
	np_ip_to_words(NP_WF_INET, loopback[0], r.netperf_ip);
	np_ip_to_words(NP_WF_INET, loopback[1], r.netserver_ip);
	assert_request("OMNI_REQUEST", "data_addrs_udp, client 2.7.0, 0", NP_OMNI, &r);
}

/* The recording is a little-endian machine's; a big-endian one sends IPv6 addresses otherwise. */
TEST(our_omni_request_for_ipv6_is_netperfs)
{
	static const uint8_t loopback[16] = { [15] = 1 };
	struct np_omni_request r = plain_request;

	skip_if(__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__, "not a little-endian machine");
	r.ipfamily = NP_WF_INET6;
	r.socket_type = NP_WS_DGRAM;
	r.protocol = 17;
	r.direction = NP_WD_BOTH;
	r.request_size = r.response_size = 1;
	r.send_width = r.recv_width = 1;
	r.netperf_port = 33617;
	np_ip_to_words(NP_WF_INET6, loopback, r.netperf_ip);
	np_ip_to_words(NP_WF_INET6, loopback, r.netserver_ip);
	assert_request("OMNI_REQUEST", "ipv6_udp_rr_addrs, client 2.7.0, 0", NP_OMNI, &r);
}

TEST(our_other_requests_are_netperfs)
{
	struct np_stream_request sendfile = {
		.send_buf_size = 131072,
		.recv_buf_size = 98304,
		.receive_size = 8192,
		.recv_alignment = 8,
		.no_delay = 1,
		.test_length = 1,
		.ipfamily = NP_WF_INET,
	};
	struct np_rr_request cc = {
		.recv_buf_size = -1,
		.send_buf_size = -1,
		.recv_alignment = 8,
		.send_alignment = 8,
		.request_size = 1,
		.response_size = 1,
		.test_length = -20,
		.ipfamily = NP_WF_INET,
	};
	struct np_text word = { .text = "wrong" };
	struct np_unix_stream_request stream = {
		.recv_buf_size = 49152,
		.send_buf_size = 40960,
		.receive_size = 4096,
		.recv_alignment = 8,
		.measure_cpu = 1,
		.test_length = 1,
	};
	struct np_unix_rr_request rr = {
		.recv_alignment = 8,
		.send_alignment = 8,
		.request_size = 10,
		.response_size = 20,
		.measure_cpu = 1,
		.test_length = -100,
	};
	struct np_dg_stream_request datagrams = {
		.message_size = 65507,
		.recv_alignment = 8,
		.test_length = 1,
	};

	assert_request("UNIX_STREAM_REQUEST", "unix_stream_stream_cpu, client 2.7.1, 0",
		       NP_STREAM_STREAM, &stream);
	assert_request("STREAM_RR_REQUEST", "unix_stream_rr_count, client 2.7.1, 0", NP_STREAM_RR,
		       &rr);
	assert_request("DG_STREAM_REQUEST", "unix_dg_stream, client 2.7.1, 0", NP_DG_STREAM,
		       &datagrams);
	rr.request_size = rr.response_size = rr.test_length = 1;
	rr.measure_cpu = 0;
	assert_request("DG_RR_REQUEST", "unix_dg_rr, client 2.7.1, 0", NP_DG_RR, &rr);
	assert_request("STREAM_REQUEST", "sizes_sendfile, client 2.7.0, 0", NP_TCP_STREAM,
		       &sendfile);
	assert_request("RR_REQUEST", "count_cc, client 2.7.0, 0", NP_TCP_CC, &cc);
	assert_request("TEXT", "passphrase_wrong, client 2.7.0, 0", NP_PASSPHRASE, &word);
	assert_request("HEAD", "rem_cpu, client 2.7.0, 0", NP_CPU_CALIBRATE, NULL);
}

/* ---- Tests: every layout ---- */

static void
random_text(char *out, size_t size, uint64_t *seed)
{
	size_t len = next_random(seed) % size;

	memset(out, 0, size);
	for (size_t i = 0; i < len; i++) {
		out[i] = (char)(1 + next_random(seed) % 255);
	}
}

static void
random_message(const struct kind *k, char *m, uint64_t *seed)
{
	for (size_t i = 0; i < k->nfields; i++) {
		const struct field *f = &k->fields[i];

		if (f->type == TEXT) {
			random_text(m + f->at, f->size, seed);
		} else {
			uint64_t bits = next_random(seed);

			if (next_random(seed) % 8 == 0) {
				bits |= UINT64_C(0x7ff000007f800000); /* a NaN of either size */
			}
			memcpy(m + f->at, &bits, f->size);
		}
	}
}

TEST(every_message_survives_the_trip)
{
	uint64_t seed = 42;

	for (size_t round = 0; round < (size_t)200 * BODIES; round++) {
		const struct kind *k = &kinds[round % BODIES];
		struct np_head head = { (uint32_t)next_random(&seed), (int32_t)next_random(&seed) };
		uint8_t frame[NP_FRAME_SIZE];
		union message sent, got;
		struct np_head got_head;
		struct np_err err;

		memset(&got, 0xa5, sizeof(got));
		random_message(k, (char *)&sent, &seed);
		np_frame_put(frame, &head, k->layout, &sent);
		got_head = np_frame_head(frame);
		assert_int_equal(got_head.code, head.code);
		assert_int_equal(got_head.word, head.word);
		assert_int_equal(np_frame_get(frame, k->layout, &got, &err), NP_OK);
		for (size_t i = 0; i < k->nfields; i++) {
			const struct field *f = &k->fields[i];

			fail_if(memcmp(got.room + f->at, sent.room + f->at, f->size) != 0,
				"%s is another", f->name);
		}
	}
}

/* Whatever comes, texts are ended and nothing but a text is ever found fault with. */
TEST(any_bytes_can_be_read)
{
	uint64_t seed = 7;

	for (size_t round = 0; round < (size_t)200 * BODIES; round++) {
		const struct kind *k = &kinds[round % BODIES];
		uint8_t frame[NP_FRAME_SIZE];
		char text[NP_FRAME_SIZE + 8];
		struct np_err err = { .code = NP_OK };
		union message m;

		for (size_t i = 0; i < sizeof(frame); i++) {
			frame[i] = (uint8_t)(next_random(&seed) | (round & 1));
		}
		if (np_frame_get(frame, k->layout, &m, &err) != NP_OK) {
			assert_int_equal(err.code, NP_EPEER);
			assert_non_null(strstr(err.msg, "has no end"));
		}
		for (size_t n = 0; n < k->nfields; n++) {
			format_value(&k->fields[n], m.room, text, sizeof(text));
		}
	}
}

TEST(what_a_layout_does_not_fill_is_zero)
{
	for (size_t i = 0; i < LEN(kinds); i++) {
		struct np_head head = { .code = 0xa5a5a5a5, .word = -1 };
		uint8_t frame[NP_FRAME_SIZE];
		union message m;

		memset(&m, 0xa5, sizeof(m));
		memset(frame, 0xa5, sizeof(frame));
		np_frame_put(frame, &head, kinds[i].layout, &m);
		for (size_t at = kinds[i].end; at < NP_FRAME_SIZE; at++) {
			assert_int_equal(frame[at], 0);
		}
	}
}

/* Buffers of their exact size, so that the sanitizers see a byte too far. */
TEST(a_cut_message_is_read_up_to_the_cut)
{
	for (size_t i = 0; i < BODIES; i++) {
		for (size_t size = 0; size <= kinds[i].end - 8; size++) {
			uint8_t *cut = malloc(size + !size);
			struct np_err err = { .code = NP_OK };
			struct np_wire w;
			union message m;
			int want = size == kinds[i].end - 8 ? NP_OK : NP_EPEER;

			assert_non_null(cut);
			memset(cut, 0, size);
			memset(&m, 0xa5, sizeof(m));
			np_wire_read_from(&w, cut, size);
			kinds[i].layout(&w, &m);
			assert_int_equal(np_wire_check(&w, &err), want);
			free(cut);
			for (size_t n = 0; n < kinds[i].nfields; n++) {
				const struct field *f = &kinds[i].fields[n];
				const char *p = (const char *)&m + f->at;

				/* Zeros were there, and zeros come from beyond the cut. */
				assert_int_equal(p[0], 0);
				assert_int_equal(p[f->size - 1], 0);
			}
		}
	}
}

TEST(writing_stays_within_the_buffer)
{
	for (size_t i = 0; i < BODIES; i++) {
		for (size_t size = 0; size <= kinds[i].end - 8; size++) {
			FREED_BY(free_memory) uint8_t *small = malloc(size + !size);
			struct np_wire w;
			union message m;

			assert_non_null(small);
			memset(&m, 0, sizeof(m));
			np_wire_write_to(&w, small, size);
			kinds[i].layout(&w, &m);
			assert_true(w.at <= size);
			assert_int_equal(np_wire_check(&w, NULL),
					 size == kinds[i].end - 8 ? NP_OK : NP_EPEER);
		}
	}
}

TEST(a_frame_is_656_bytes_and_no_more)
{
	struct np_head head = { .code = NP_PASSPHRASE };
	uint8_t around[NP_FRAME_SIZE + 2];
	struct np_text full;

	memset(around, 0xa5, sizeof(around));
	memset(&full, 'x', sizeof(full));
	np_frame_put(around + 1, &head, np_text_layout, &full);
	assert_int_equal(around[0], 0xa5);
	assert_int_equal(around[NP_FRAME_SIZE + 1], 0xa5);
	assert_int_equal(around[NP_FRAME_SIZE - 1], 'x');
	/* The text had no end: its last character made room for one. */
	assert_int_equal(around[NP_FRAME_SIZE], 0);
}

TEST(an_unended_text_is_named)
{
	struct np_omni_request r;
	struct np_err err = { .code = NP_OK };
	uint8_t frame[NP_FRAME_SIZE] = { 0 };

	memset(frame + 160, 'c', 16);
	memcpy(frame + 176, "data", 4);
	assert_int_equal(np_frame_get(frame, np_omni_request_layout, &r, &err), NP_EPEER);
	assert_string_equal(err.msg,
			    "reading a message of 656 bytes: cong_control at byte 160 has no end");
	assert_string_equal(r.cong_control, "ccccccccccccccc");
	assert_string_equal(r.fill_file, "data");

	memset(frame + 176, 'f', 32);
	frame[170] = 0;
	assert_int_equal(np_frame_get(frame, np_omni_request_layout, &r, &err), NP_EPEER);
	assert_non_null(strstr(err.msg, "fill_file at byte 176"));
	assert_string_equal(r.cong_control, "cccccccccc");
	/* What stood behind the NUL does not come along. */
	assert_int_equal(r.cong_control[11], 0);
}

TEST(banners_are_told_from_messages)
{
	assert_true(np_frame_is_text((const uint8_t *)"SSH-2.0-OpenSSH_9.2p1\r\n", 23));
	assert_true(np_frame_is_text((const uint8_t *)"HTTP/1.1 400 Bad Request\r\n", 26));
	assert_true(np_frame_is_text((const uint8_t *)"bye\n", 4));
	assert_false(np_frame_is_text((const uint8_t *)"bye", 3));
	assert_false(np_frame_is_text((const uint8_t *)"", 0));
	for (size_t i = 0; i < LEN(vectors); i++) {
		uint8_t frame[NP_FRAME_SIZE];

		recorded_frame(&vectors[i], frame);
		for (size_t n = 0; n <= 16; n++) {
			assert_false(np_frame_is_text(frame, n));
		}
	}
}

TEST(addresses_keep_their_order)
{
	static const uint8_t v4[4] = { 192, 0, 2, 254 };
	static const uint8_t v6[16] = { 0x20, 1, 0xd, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
	uint32_t words[4] = { 1, 2, 3, 4 };
	uint8_t ip[16] = { 0 };

	np_ip_to_words(NP_WF_INET, v4, words);
	assert_int_equal(words[0], 0xc00002fe);
	assert_int_equal(words[1] | words[2] | words[3], 0);
	np_words_to_ip(NP_WF_INET, words, ip);
	assert_memory_equal(ip, v4, 4);
	assert_int_equal(ip[4], 0);

	np_ip_to_words(NP_WF_INET6, v6, words);
	np_words_to_ip(NP_WF_INET6, words, ip);
	assert_memory_equal(ip, v6, 16);

	np_ip_to_words(NP_WF_UNSPEC, NULL, words);
	assert_int_equal(words[0] | words[1] | words[2] | words[3], 0);
	np_words_to_ip(NP_WF_UNSPEC, words, NULL);
}

/* ---- Tests: the dialects ---- */

/* What the client asked for that a daemon has read so, written once more. */
static void
ask_again(uint32_t code, const struct np_plan *daemon, int32_t cpu, uint8_t frame[NP_FRAME_SIZE])
{
	const struct np_bench bench = { .code = code };
	struct np_worker w = { .send_size = (size_t)daemon->near.call.recv_size,
			       .send_ring.width = daemon->near.call.send_width,
			       .recv_ring.width = daemon->near.call.recv_width };
	struct np_run run = { .worker = &w, .workers = 1 };
	struct np_plan p = *daemon;

	p.bench = &bench;
	p.role = daemon->role == NP_LEAD ? NP_FOLLOW : NP_LEAD;
	p.near = daemon->far;
	p.far = daemon->near;
	p.far.place.cpu = cpu;
	p.bind = daemon->far_bind;
	p.far_bind = daemon->bind;
	run.end.local = loopback(AF_INET, (uint16_t)daemon->far.sock.port);
	np_dialect(code)->encode_request(np_dialect(code), &p, &run, frame);
}

/* Does a daemon keep that field of such a request? */
static bool
is_kept(const char *kind, const char *field)
{
	static const char *const omni_alone[] = { "so_rcvavoid", "so_sndavoid", "dirty_count",
						  "clean_count" };
	bool stream =
	    strcmp(kind, "STREAM_REQUEST") == 0 || strcmp(kind, "UNIX_STREAM_REQUEST") == 0;
	bool omni = strcmp(kind, "OMNI_REQUEST") == 0;

	for (size_t i = 0; i < LEN(omni_alone) && !omni; i++) {
		if (strcmp(field, omni_alone[i]) == 0) {
			return false;
		}
	}
	/* A stream's length is seconds or bytes. */
	return strcmp(field, "cpu_rate") != 0 && !(stream && strcmp(field, "test_length") == 0);
}

/* Requests of old clients for transactions have the words of TCP_CC's. */
TEST(recorded_requests_can_be_asked_again)
{
	const uint32_t known_flags = NP_WB_NODELAY | NP_WB_CONNECT | NP_WB_CPU | NP_WB_ROUTE |
				     NP_WB_FASTOPEN | NP_WB_PKTINFO | NP_WB_CONNECTED |
				     NP_WB_DEFER_ACCEPT | NP_WB_MTU_DISCOVER | NP_WB_KEEPALIVE;
	int asked = 0;

	for (size_t i = 0; i < LEN(vectors); i++) {
		const struct vector *v = &vectors[i];
		const struct kind *k = kind_named(v->kind);
		uint8_t frame[NP_FRAME_SIZE], again[NP_FRAME_SIZE];
		union message want, have;
		struct np_plan q;
		struct np_head h;
		struct np_err err;
		uint32_t code;

		recorded_frame(v, frame);
		h = np_frame_head(frame);
		code = strcmp(v->kind, "RR_REQUEST") == 0 ? NP_TCP_CC : h.code;
		if (np_dialect(code) == NULL || np_dialect(code)->encode_request == NULL ||
		    strstr(v->label, "family0") != NULL) { /* which is refused */
			continue;
		}
		np_plan_init(&q);
		assert_int_equal(
		    np_dialect(h.code)->decode_request(np_dialect(h.code), frame, &q, &err), NP_OK);
		ask_again(code, &q, h.word, again);
		np_plan_free(&q);
		assert_int_equal(np_frame_head(again).code, code);
		assert_int_equal(np_frame_head(again).word, h.word);
		assert_int_equal(np_frame_get(frame, k->layout, &want, &err), NP_OK);
		assert_int_equal(np_frame_get(again, k->layout, &have, &err), NP_OK);
		if (strcmp(v->kind, "OMNI_REQUEST") == 0) {
			want.omni_request.flags &= known_flags;
		}
		for (size_t n = 0; n < k->nfields; n++) {
			const struct field *f = &k->fields[n];

			fail_if(is_kept(v->kind, f->name) &&
				    memcmp((char *)&have + f->at, (char *)&want + f->at, f->size) !=
					0,
				"%s: %s", v->label, f->name);
		}
		asked++;
	}
	assert_true(asked > 50);
}

/* ---- Tests: the codec's fields ---- */

/* Write with one cursor, give the bytes, read them back with another. */
static void
start_trip(struct np_wire *out, struct np_wire *in, uint8_t *buf, size_t size)
{
	memset(buf, 0xa5, size);
	np_wire_write_to(out, buf, size);
	np_wire_read_from(in, buf, size);
}

TEST(words_are_big_endian_at_any_offset)
{
	static const uint8_t want[] = { 0, 0, 0, 0x12, 0x34, 0x56, 0x78, 0xff, 0xff, 0xff, 0xfe };
	uint32_t u = 0x12345678, u_back = 0;
	int32_t i = -2, i_back = 0;
	struct np_wire out, in;
	uint8_t buf[11];

	start_trip(&out, &in, buf, sizeof(buf));
	np_wire_skip(&out, 3);
	np_wire_u32(&out, "u", &u);
	np_wire_i32(&out, "i", &i);
	assert_memory_equal(buf, want, sizeof(want));
	np_wire_skip(&in, 3);
	np_wire_u32(&in, "u", &u_back);
	np_wire_i32(&in, "i", &i_back);
	assert_int_equal(u_back, u);
	assert_int_equal(i_back, i);
	assert_int_equal(np_wire_left(&in), 0);
	assert_int_equal(np_wire_check(&out, NULL), NP_OK);
	assert_int_equal(np_wire_check(&in, NULL), NP_OK);
}

/* The words of the text, in this machine's order, are what goes out. */
TEST(a_text_in_words_is_turned_with_them)
{
	static const char text[12] = "/tmp/abc";
	uint8_t bytes[12];
	char back[12];
	uint32_t word;
	struct np_wire w;

	np_wire_write_to(&w, bytes, sizeof(bytes));
	np_wire_text4(&w, "path", (char *)text, sizeof(text));
	memcpy(&word, text, sizeof(word));
	assert_int_equal(bytes[0], word >> 24);
	assert_int_equal(bytes[3], word & 0xff);
	np_wire_read_from(&w, bytes, sizeof(bytes));
	np_wire_text4(&w, "path", back, sizeof(back));
	assert_memory_equal(back, text, sizeof(text));
	assert_int_equal(np_wire_check(&w, NULL), NP_OK);

	memset(bytes, 'x', sizeof(bytes));
	np_wire_read_from(&w, bytes, sizeof(bytes));
	np_wire_text4(&w, "path", back, sizeof(back));
	assert_string_equal(back, "xxxxxxxxxxx");
	assert_true(w.no_end);
	assert_string_equal(w.misfit, "path");
	assert_int_equal(w.misfit_at, 0);
}

TEST(texts_are_padded_and_ended)
{
	static const uint8_t want[] = { 'b', 'b', 'r', 0, 0, 0, 'a', 'b', 'c', 0 };
	char first[6] = "bbr\0x", second[4] = { 'a', 'b', 'c', 'd' };
	struct np_wire out, in;
	uint8_t buf[10];
	char back[6];
	struct np_err err;

	start_trip(&out, &in, buf, sizeof(buf));
	np_wire_text(&out, "first", first, sizeof(first));
	assert_int_equal(np_wire_check(&out, &err), NP_OK);
	np_wire_text(&out, "second", second, sizeof(second));
	assert_memory_equal(buf, want, sizeof(want));
	assert_int_equal(np_wire_check(&out, &err), NP_EPEER);
	assert_string_equal(err.msg, "writing a message of 10 bytes: second at byte 6 has no end");
	np_wire_text(&in, "first", back, sizeof(back));
	assert_string_equal(back, "bbr");
	assert_int_equal(np_wire_check(&in, &err), NP_OK);
}

TEST(the_first_misfit_sticks)
{
	static const uint8_t bytes[6] = { 0, 0, 0, 9, 1, 1 };
	uint32_t send_size = 1, recv_size = 1;
	char name[2] = "x";
	struct np_err err;
	struct np_wire w;

	np_wire_read_from(&w, bytes, sizeof(bytes));
	np_wire_u32(&w, "send_size", &send_size);
	np_wire_u32(&w, "recv_size", &recv_size);
	/* Two bytes are left, but they are no name. */
	np_wire_text(&w, "name", name, sizeof(name));
	np_wire_skip(&w, 100);
	assert_int_equal(send_size, 9);
	assert_int_equal(recv_size, 0);
	assert_string_equal(name, "");
	assert_int_equal(np_wire_check(&w, &err), NP_EPEER);
	assert_string_equal(err.msg,
			    "reading a message of 6 bytes: no room for recv_size at byte 4");
}

TEST(a_long_skip_is_a_misfit)
{
	uint8_t buf[3] = { 1, 1, 1 };
	struct np_err err;
	struct np_wire w;

	np_wire_write_to(&w, buf, sizeof(buf));
	np_wire_skip(&w, 2);
	assert_int_equal(buf[1], 0);
	assert_int_equal(buf[2], 1);
	np_wire_skip(&w, SIZE_MAX);
	assert_int_equal(np_wire_check(&w, &err), NP_EPEER);
	assert_string_equal(err.msg, "writing a message of 3 bytes: no room for filler at byte 2");
	assert_int_equal(buf[2], 1);
}

int
main(void)
{
	return all_tests(fill_kinds, NULL);
}
