/*
 * The daemon's half against clients of netperf 2.2 to 2.4, whose messages have 256 bytes, and of
 * later ones built without OMNI, who ask the same in 656.
 */
#include "base/clock.h"
#include "run/talk.h"
#include "tests/lib/check.h"
#include "tests/lib/session.h"
#include "tests/lib/sockets.h"
#include "wire/chan.h"
#include "wire/wire.h"

static const size_t sizes[] = { NP_OLD_FRAME_SIZE, NP_FRAME_SIZE };

/* Ask with that word, or that of most requests. */
static void
ask_by(const struct session *s, size_t size, uint32_t code, int32_t word, np_layout *layout,
       const void *m)
{
	struct np_head head = { .code = code, .word = word };
	uint8_t frame[NP_FRAME_SIZE];

	np_frame_put(frame, &head, layout, m);
	assert_true(put_bytes(s->fd, frame, size));
}

static void
ask_old(const struct session *s, size_t size, uint32_t code, np_layout *layout, const void *m)
{
	ask_by(s, size, code, -1, layout, m);
}

/* Exactly one message of that size is the answer. */
static struct np_head
hear(const struct session *s, size_t size, np_layout *layout, void *m)
{
	uint8_t frame[NP_FRAME_SIZE] = { 0 };
	struct np_err err;
	char more;

	assert_true(get_bytes(s->fd, frame, size));
	assert_true(recv(s->fd, &more, 1, MSG_DONTWAIT) <= 0);
	if (layout != NULL) {
		assert_int_equal(np_frame_get(frame, layout, m, &err), NP_OK);
	}
	return np_frame_head(frame);
}

static void
expect(const struct session *s, size_t size, uint32_t code, np_layout *layout, void *m)
{
	struct np_head head = hear(s, size, layout, m);

	assert_int_equal(head.code, code);
	assert_int_equal(head.word, 0);
}

/* ---- Request and response ---- */

static const struct np_rr_request rr_request = {
	.recv_buf_size = -1,
	.send_buf_size = -1,
	.recv_alignment = 8,
	.send_alignment = 8,
	.request_size = 16,
	.response_size = 8,
	.measure_cpu = 0,
	.test_length = -3,
};

static struct np_addr
ask_rr(const struct session *s, size_t size, uint32_t code, const struct np_rr_request *request)
{
	struct np_rr_response response;

	ask_old(s, size, code, np_rr_request_layout, request);
	expect(s, size, code + 1, np_rr_response_layout, &response);
	assert_true(response.recv_buf_size > 0 && response.send_buf_size > 0);
	assert_int_equal(response.test_length, request->test_length);
	return loopback(AF_INET, (uint16_t)response.data_port_number);
}

static void
expect_three(const struct session *s, size_t size, uint32_t code, bool timed)
{
	struct np_rr_results results;

	expect(s, size, code + 2, np_rr_results_layout, &results);
	assert_int_equal(results.trans_received, 3);
	assert_int_equal(results.bytes_received, 3 * (16 + 8));
	assert_true(results.elapsed_time > (timed ? 0.2F : 0) && results.elapsed_time < 10);
	assert_int_equal(results.num_cpus, 0);
	assert_int_equal(results.cpu_method, 0);
}

static void
transact(int fd)
{
	char bytes[16] = "";

	assert_true(put_bytes(fd, bytes, 16));
	assert_true(get_bytes(fd, bytes, 8));
}

static void
make_transactions(const struct np_addr *at, uint32_t code, bool timed)
{
	for (int i = 0; i < 3; i++) {
		FREED_BY(close_fd) int fd = connected_to(at);

		if (code == NP_TCP_CRR) {
			transact(fd);
		}
		if (timed) { /* where no count tells the daemon that this was the last request */
			assert_int_equal(shutdown(fd, SHUT_WR), 0);
		}
		assert_int_equal(read_all(fd), 0);
	}
}

/* A client of TCP_RR keeps its connection until the results have come. */
TEST(transactions_over_connections_are_served)
{
	static const struct {
		uint32_t code;
		int32_t length;
		size_t size;
	} rows[] = {
		{ NP_TCP_RR, -3, NP_OLD_FRAME_SIZE }, { NP_TCP_RR, -3, NP_FRAME_SIZE },
		{ NP_TCP_RR, 1, NP_OLD_FRAME_SIZE },  { NP_TCP_CRR, -3, NP_OLD_FRAME_SIZE },
		{ NP_TCP_CRR, 1, NP_OLD_FRAME_SIZE }, { NP_TCP_CC, -3, NP_OLD_FRAME_SIZE },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_rr_request request = rr_request;
		FREED_BY(close_fd) int fd = -1;
		bool timed = rows[i].length > 0;
		struct np_addr at;
		struct session s;

		request.test_length = rows[i].length;
		session_open(&s);
		at = ask_rr(&s, rows[i].size, rows[i].code, &request);
		if (rows[i].code == NP_TCP_RR) {
			fd = connected_to(&at);
			transact(fd), transact(fd), transact(fd);
		} else {
			make_transactions(&at, rows[i].code, timed);
		}
		expect_three(&s, rows[i].size, rows[i].code, timed);
		assert_int_equal(session_close(&s), NP_OK);
	}
}

/*
 * The count ends a counted one. A request more is the repeat of one whose response was lost: it is
 * answered, and not counted, nor is the time that the daemon waits for such.
 */
TEST(counted_udp_rr_ends_at_its_count)
{
	struct np_rr_results results;
	struct np_addr at;
	char bytes[16] = "";
	struct session s;
	uint64_t start;
	double waited;
	int fd;

	session_open(&s);
	start = np_now();
	at = ask_rr(&s, NP_FRAME_SIZE, NP_UDP_RR, &rr_request);
	fd = connected_to_by(&at, SOCK_DGRAM, 0);
	for (int n = 0; n < 4; n++) {
		assert_true(put_bytes(fd, bytes, 16));
	}
	for (int n = 0; n < 4; n++) {
		assert_true(get_bytes(fd, bytes, 8));
	}
	expect(&s, NP_FRAME_SIZE, NP_UDP_RR + 2, np_rr_results_layout, &results);
	waited = (double)(np_now() - start) / 1e9 - (double)results.elapsed_time;
	assert_int_equal(results.trans_received, 3);
	assert_int_equal(results.bytes_received, 3 * (16 + 8));
	assert_true(results.elapsed_time > 0);
	assert_true(waited > 0.49);
	close(fd);
	assert_int_equal(session_close(&s), NP_OK);
}

/* These clients say nothing at the end of their time, either: it is silence. */
TEST(udp_rr_is_served)
{
	struct np_rr_request request = rr_request;
	struct np_rr_results results;
	struct np_addr at;
	struct session s;
	int fd;

	request.test_length = 1;
	session_open(&s);
	at = ask_rr(&s, NP_OLD_FRAME_SIZE, NP_UDP_RR, &request);
	fd = connected_to_by(&at, SOCK_DGRAM, 0);
	transact(fd), transact(fd), transact(fd);
	expect(&s, NP_OLD_FRAME_SIZE, NP_UDP_RR + 2, np_rr_results_layout, &results);
	assert_int_equal(results.trans_received, 3);
	/* The silence is no part of the second that was asked for. */
	assert_true(fabsf(results.elapsed_time - 1) < 1e-3F);
	close(fd);
	assert_int_equal(session_close(&s), NP_OK);
}

/* ---- Streams ---- */

static const struct np_stream_request stream_request = {
	.send_buf_size = -1, .recv_buf_size = -1, .recv_alignment = 8, .test_length = 1
};

/* Ended by the client, which has its own clock. */
static void
send_stream(const struct session *s, size_t size)
{
	static const char bytes[100000];
	struct np_stream_response response;
	struct np_stream_results results;
	struct np_addr at;
	FREED_BY(close_fd) int fd = -1;

	expect(s, size, NP_TCP_STREAM + 1, np_stream_response_layout, &response);
	at = loopback(AF_INET, (uint16_t)response.data_port_number);
	fd = connected_to(&at);
	assert_true(put_bytes(fd, bytes, sizeof(bytes)));
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	assert_int_equal(read_all(fd), 0);
	expect(s, size, NP_TCP_STREAM + 2, np_stream_results_layout, &results);
	assert_near(results.bytes_received, sizeof(bytes), 0.5);
	assert_true(results.recv_calls > 0 && results.elapsed_time > 0);
	assert_int_equal(results.cpu_method | results.num_cpus, 0);
}

TEST(tcp_stream_is_served)
{
	for (size_t i = 0; i < LEN(sizes); i++) {
		struct session s;

		session_open(&s);
		ask_old(&s, sizes[i], NP_TCP_STREAM, np_stream_request_layout, &stream_request);
		send_stream(&s, sizes[i]);
		assert_int_equal(session_close(&s), NP_OK);
	}
}

TEST(tcp_maerts_is_served)
{
	struct np_stream_request request = stream_request;
	struct np_stream_response response;
	struct np_stream_results results;
	struct np_addr at;
	struct session s;
	size_t bytes;
	int fd;

	request.receive_size = 10000;
	session_open(&s);
	ask_old(&s, NP_OLD_FRAME_SIZE, NP_TCP_MAERTS, np_stream_request_layout, &request);
	expect(&s, NP_OLD_FRAME_SIZE, NP_TCP_MAERTS + 1, np_stream_response_layout, &response);
	assert_int_equal(response.receive_size, 10000);
	at = loopback(AF_INET, (uint16_t)response.data_port_number);
	fd = connected_to(&at);
	bytes = read_all(fd);
	close(fd);
	expect(&s, NP_OLD_FRAME_SIZE, NP_TCP_MAERTS + 2, np_stream_results_layout, &results);
	assert_true(bytes > 0);
	assert_true(fabs(results.bytes_received - (double)bytes) < 0.5);
	assert_true(results.recv_calls >= bytes / 10000);
	assert_true(results.elapsed_time >= 1);
	assert_int_equal(session_close(&s), NP_OK);
}

static void
stream_datagrams(const struct session *s, size_t size)
{
	struct np_udp_response response;
	struct np_udp_results results;
	struct np_addr at;
	char bytes[500] = "";
	FREED_BY(close_fd) int fd = -1;

	expect(s, size, NP_UDP_STREAM + 1, np_udp_response_layout, &response);
	assert_int_equal(response.test_length, 1);
	at = loopback(AF_INET, (uint16_t)response.data_port_number);
	fd = connected_to_by(&at, SOCK_DGRAM, 0);
	for (int i = 0; i < 7; i++) {
		assert_int_equal(send(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	}
	expect(s, size, NP_UDP_STREAM + 2, np_udp_results_layout, &results);
	assert_int_equal(results.messages_recvd, 7);
	assert_int_equal(results.bytes_received, 3500);
	assert_true(fabsf(results.elapsed_time - 1) < 1e-3F);
	assert_true(fabsf(results.cpu_util + 1) < 1e-6F);
}

static const struct np_udp_request udp_request = {
	.recv_buf_size = -1, .message_size = 500, .recv_alignment = 8, .test_length = 1
};

/* With recv_connected and, before 2.4.3, without the word. */
TEST(udp_stream_is_served_in_both_layouts)
{
	static np_layout *const layouts[] = { np_udp_request_layout, np_udp_242_request_layout };
	struct np_udp_request request = udp_request;

	for (size_t i = 0; i < LEN(layouts); i++) {
		struct session s;

		request.recv_connected = i == 0;
		session_open(&s);
		ask_old(&s, NP_OLD_FRAME_SIZE, NP_UDP_STREAM, layouts[i], &request);
		stream_datagrams(&s, NP_OLD_FRAME_SIZE);
		assert_int_equal(session_close(&s), NP_OK);
	}
}

/* What the recorded clients sent is read as it was meant, in either layout. */
TEST(udp_requests_tell_their_layout)
{
	static const float rates[] = { 0, 100, 1e-3F, 1e9F };
	const struct np_dialect *d = np_dialect(NP_UDP_STREAM);

	for (int old = 0; old < 2; old++) {
		for (size_t i = 0; i < LEN(rates); i++) {
			struct np_udp_request m = { .recv_buf_size = 9000,
						    .message_size = 1472,
						    .recv_connected = !old,
						    .recv_alignment = 16,
						    .measure_cpu = 1,
						    .cpu_rate = rates[i],
						    .test_length = 3600,
						    .port = 5001 };
			struct np_head head = { .code = NP_UDP_STREAM, .word = -1 };
			uint8_t frame[NP_FRAME_SIZE];
			struct np_plan p;
			struct np_err err;

			np_frame_put(frame, &head,
				     old ? np_udp_242_request_layout : np_udp_request_layout, &m);
			np_plan_init(&p);
			assert_int_equal(d->decode_request(d, frame, &p, &err), NP_OK);
			assert_int_equal(p.near.call.recv_size, 1472);
			assert_int_equal(p.near.call.recv_align, 16);
			assert_int_equal(p.near.sock.connected, !old);
			assert_true(p.near.place.measure_cpu);
			assert_int_equal(p.length, 3600);
			assert_int_equal(p.near.sock.port, 5001);
			assert_int_equal(p.family, AF_INET);
		}
	}
}

/* ---- Sessions ---- */

/* Up to 2.3: DEBUG_OFF first, affinity 0 without meaning it, no family in the request. */
TEST(an_ancient_session_begins_with_debug_off)
{
	struct np_calibrate_response calibration;
	struct np_rr_response response;
	cpu_set_t before, after;
	struct np_addr at;
	struct session s;
	int fd;

	session_open(&s);
	assert_int_equal(pthread_getaffinity_np(s.thread, sizeof(before), &before), 0);
	ask_by(&s, NP_OLD_FRAME_SIZE, NP_DEBUG_OFF, 0, NULL, NULL);
	expect(&s, NP_OLD_FRAME_SIZE, NP_DEBUG_OK, NULL, NULL);
	ask_by(&s, NP_OLD_FRAME_SIZE, NP_TCP_RR, 0, np_rr_request_layout, &rr_request);
	expect(&s, NP_OLD_FRAME_SIZE, NP_TCP_RR + 1, np_rr_response_layout, &response);
	assert_int_equal(pthread_getaffinity_np(s.thread, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
	at = loopback(AF_INET, (uint16_t)response.data_port_number);
	fd = connected_to(&at);
	transact(fd), transact(fd), transact(fd);
	expect_three(&s, NP_OLD_FRAME_SIZE, NP_TCP_RR, false);
	close(fd);
	ask_by(&s, NP_OLD_FRAME_SIZE, NP_TCP_STREAM, 0, np_stream_request_layout, &stream_request);
	send_stream(&s, NP_OLD_FRAME_SIZE);
	ask_by(&s, NP_OLD_FRAME_SIZE, NP_UDP_STREAM, 0, np_udp_242_request_layout, &udp_request);
	stream_datagrams(&s, NP_OLD_FRAME_SIZE);
	ask_by(&s, NP_OLD_FRAME_SIZE, NP_CPU_CALIBRATE, 0, NULL, NULL);
	expect(&s, NP_OLD_FRAME_SIZE, NP_CPU_CALIBRATE, np_calibrate_response_layout, &calibration);
	assert_true(calibration.rate > 0);
	assert_int_equal(session_close(&s), NP_OK);
}

TEST(what_an_old_client_cannot_have_is_refused_in_its_own_size)
{
	struct np_rr_request request = rr_request;
	struct np_head head;
	struct session s;

	session_open(&s);
	ask_old(&s, NP_OLD_FRAME_SIZE, NP_CPU_CALIBRATE, NULL, NULL);
	expect(&s, NP_OLD_FRAME_SIZE, NP_CPU_CALIBRATE, NULL, NULL);
	ask_old(&s, NP_OLD_FRAME_SIZE, 22, NULL, NULL);
	head = hear(&s, NP_OLD_FRAME_SIZE, NULL, NULL);
	assert_int_equal(head.word, NP_E_UNKNOWN_REQUEST);
	request.response_size = 0;
	ask_old(&s, NP_OLD_FRAME_SIZE, NP_TCP_RR, np_rr_request_layout, &request);
	head = hear(&s, NP_OLD_FRAME_SIZE, NULL, NULL);
	assert_int_equal(head.code, NP_TCP_RR + 1);
	assert_int_not_equal(head.word, 0);
	assert_int_equal(read_all(s.fd), 0);
	assert_int_equal(session_close(&s), NP_EPEER);
}

TEST(no_count_of_bytes_is_sent_to_an_old_client)
{
	struct np_stream_request request = stream_request;
	struct session s;

	request.test_length = -5;
	session_open(&s);
	ask_old(&s, NP_OLD_FRAME_SIZE, NP_TCP_MAERTS, np_stream_request_layout, &request);
	assert_int_equal(hear(&s, NP_OLD_FRAME_SIZE, NULL, NULL).word, EINVAL);
	assert_int_equal(session_close(&s), NP_EPEER);
	assert_has(s.err.msg, "a test by a number of bytes");
}

/* ---- SCTP ---- */

static struct np_plan
sctp_plan(uint32_t code, np_layout *layout, const void *m)
{
	struct np_head head = { .code = code, .word = -1 };
	uint8_t frame[NP_FRAME_SIZE];
	struct np_plan p;
	struct np_err err;

	np_frame_put(frame, &head, layout, m);
	np_plan_init(&p);
	assert_int_equal(np_dialect(code)->decode_request(np_dialect(code), frame, &p, &err),
			 NP_OK);
	assert_ptr_equal(p.transport, &np_transport_sctp);
	assert_int_equal(p.role, NP_FOLLOW);
	return p;
}

/* Their clients turn the port round twice. */
TEST(sctp_ports_come_in_either_order)
{
	static const struct {
		uint32_t wire, port;
	} ports[] = { { 0, 0 },         { 5000, 5000 },        { 0x88130000, 5000 },
		      { 65535, 65535 }, { 0xffff0000, 65535 }, { 0x01000000, 1 } };

	for (size_t i = 0; i < LEN(ports); i++) {
		struct np_stream_request m = { .receive_size = 1000,
					       .port = (int32_t)ports[i].wire,
					       .ipfamily = NP_WF_INET,
					       .test_length = 10 };
		struct np_plan p = sctp_plan(NP_SCTP_STREAM, np_stream_request_layout, &m);

		assert_int_equal(p.near.sock.port, ports[i].port);
		assert_ptr_equal(p.pattern, &np_pattern_stream);
		assert_int_equal(p.length, 0); /* only the close ends it */
	}
}

TEST(sctp_rr_has_the_words_of_tcp_rr)
{
	struct np_rr_request m = rr_request;
	struct np_plan p = sctp_plan(NP_SCTP_RR, np_rr_request_layout, &m);
	struct np_tally t = { .plan = &p, .end.count = { .transactions = 7 } };
	struct np_rr_results results;
	uint8_t frame[NP_FRAME_SIZE];
	struct np_err err;

	assert_ptr_equal(p.pattern, &np_pattern_rr);
	assert_int_equal(p.request, m.request_size);
	assert_int_equal(p.response, m.response_size);
	np_dialect(NP_SCTP_RR)->encode_results(np_dialect(NP_SCTP_RR), &p, &t, frame);
	assert_int_equal(np_frame_head(frame).code, 502);
	assert_int_equal(np_frame_get(frame, np_rr_results_layout, &results, &err), NP_OK);
	assert_int_equal(results.trans_received, 7);
}

/* A daemon whose kernel has no SCTP says so in its answer; another one grants the test. */
TEST(a_kernel_without_sctp_is_named_to_the_client)
{
	struct np_rr_request request = rr_request;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP);
	uint8_t frame[NP_FRAME_SIZE];
	struct np_head head;
	FREED_BY(session_close) struct session s;

	session_open(&s);
	ask_old(&s, NP_FRAME_SIZE, NP_SCTP_RR, np_rr_request_layout, &request);
	assert_true(get_bytes(s.fd, frame, sizeof(frame)));
	head = np_frame_head(frame);
	assert_int_equal(head.code, NP_SCTP_RR + 1);
	if (fd >= 0) {
		assert_int_equal(head.word, 0);
		close(fd);
	} else {
		assert_int_equal(head.word, EPROTONOSUPPORT);
		assert_non_null(memmem(frame, sizeof(frame), "CONFIG_IP_SCTP", 14));
	}
}

/* How many associations come to the one socket is not said. */
TEST(one_socket_for_many_associations_is_refused)
{
	static const uint32_t codes[] = { NP_SCTP_STREAM_MANY, NP_SCTP_RR_MANY };
	struct np_rr_request request = rr_request;
	struct session s;

	for (size_t i = 0; i < LEN(codes); i++) {
		struct np_head head;

		session_open(&s);
		ask_old(&s, NP_FRAME_SIZE, codes[i], np_rr_request_layout, &request);
		head = hear(&s, NP_FRAME_SIZE, NULL, NULL);
		assert_int_equal(head.code, codes[i] + 1);
		assert_int_equal(head.word, EOPNOTSUPP);
		session_close(&s);
	}
}

TEST_MAIN(np_drive_prepare())
