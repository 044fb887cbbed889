/*
 * What the daemon refuses: requests that make no sense, ask too much, or for what nobody may have.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/ring.h"
#include "run/talk.h"
#include "tests/lib/check.h"
#include "tests/lib/root.h"
#include "tests/lib/session.h"
#include "tests/lib/sockets.h"

/* A word of the request changed to a value, and the error that this gives. */
#define WITH(member, value, error)                                                                 \
	{                                                                                          \
		offsetof(struct np_omni_request, member), (uint32_t)(value), (error), #member      \
	}

TEST(what_makes_no_sense_is_refused_with_an_errno)
{
	static const struct {
		size_t at;
		uint32_t value;
		int error;
		const char *name;
	} rows[] = {
		WITH(ipfamily, 0, EAFNOSUPPORT),
		WITH(ipfamily, 5, EAFNOSUPPORT),
		WITH(ipfamily, UINT32_MAX, EAFNOSUPPORT),
		WITH(data_port, 65536, EINVAL),
		WITH(netperf_port, UINT32_MAX, EINVAL),
		WITH(protocol, 132, EPROTONOSUPPORT),
		WITH(protocol, IPPROTO_UDP, EPROTONOSUPPORT),
		WITH(socket_type, 5, EPROTONOSUPPORT),
		WITH(direction, 5, EINVAL),
		WITH(direction, NP_WD_NONE, EINVAL),
		WITH(request_size, 0, EINVAL),
		WITH(request_size, INT32_MIN, EINVAL),
		WITH(response_size, -1, EINVAL),
		WITH(request_size, INT32_MAX, EINVAL),
		WITH(response_size, INT32_MAX, EINVAL),
		WITH(recv_width, UINT32_MAX, EINVAL),
		WITH(send_width, 1U << 30, EINVAL),
		WITH(recv_alignment, 3, EINVAL),
		WITH(recv_alignment, 1U << 31, EINVAL),
		WITH(send_alignment, UINT32_MAX, EINVAL),
		WITH(send_offset, UINT32_MAX, EINVAL),
		WITH(recv_offset, 1U << 30, EINVAL),
		WITH(netserver_ip[0], 0xc0000201, EADDRNOTAVAIL),
		WITH(cong_control, 0x7a7a7a7a, ENOENT),
		WITH(fill_file, 0x7a7a7a7a, EACCES),
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_omni_request request = five_transactions();
		struct np_head head;
		struct session s;

		memcpy((char *)&request + rows[i].at, &rows[i].value, sizeof(rows[i].value));
		session_open(&s);
		ask(&s, NP_OMNI, np_omni_request_layout, &request);
		head = answer(&s, NULL, NULL);
		fail_if(head.word != rows[i].error || head.code != NP_OMNI + 1,
			"%s 0x%x: answer %u, error %d", rows[i].name, rows[i].value, head.code,
			head.word);
		/* The daemon ends the session; what is wrong goes into its log. */
		assert_int_equal(read_all(s.fd), 0);
		assert_int_not_equal(session_close(&s), NP_OK);
		assert_true(s.err.msg[0] != '\0');
	}
}

TEST(datagrams_have_no_connections_to_count)
{
	struct np_omni_request request = five_transactions();
	FREED_BY(session_close) struct session s;

	request.socket_type = NP_WS_DGRAM;
	request.protocol = IPPROTO_UDP;
	request.flags |= NP_WB_CONNECT;
	session_open(&s);
	ask(&s, NP_OMNI, np_omni_request_layout, &request);
	assert_int_equal(answer(&s, NULL, NULL).word, EOPNOTSUPP);
}

/* Nobody may have this machine send datagrams to a third one. */
TEST(datagrams_go_to_the_client_only)
{
	struct np_omni_request request = five_transactions();
	FREED_BY(session_close) struct session s;

	request.socket_type = NP_WS_DGRAM;
	request.protocol = IPPROTO_UDP;
	request.direction = NP_WD_TRANSMIT;
	request.netperf_ip[0] = 0xc0000201;
	request.netperf_port = 9;
	session_open(&s);
	ask(&s, NP_OMNI, np_omni_request_layout, &request);
	assert_int_equal(answer(&s, NULL, NULL).word, EACCES);
}

/* ---- Files that clients name ---- */

/* A directory with what may be in one, and a file beside it. */
static int
open_fill(const char *root)
{
	char path[64];
	int fd;

	put_file(root, "/secret", "secret");
	put_file(root, "/fill/data", "plum");
	put_file(root, "/fill/empty", "");
	put_link(root, "/fill/link", "../secret");
	put_link(root, "/fill/inner", "data");
	snprintf(path, sizeof(path), "%s/fill", root);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd > 0);
	assert_int_equal(mkfifoat(fd, "fifo", 0600), 0);
	assert_int_equal(mkdirat(fd, "dir", 0700), 0);
	return fd;
}

/* Ask for that file to be sent in responses; the answer's error. */
static int32_t
ask_filled(struct session *s, int fill_dir, const char *file, struct np_omni_response *response)
{
	struct np_omni_request request = five_transactions();

	snprintf(request.fill_file, sizeof(request.fill_file), "%s", file);
	session_open_with(s, fill_dir);
	ask(s, NP_OMNI, np_omni_request_layout, &request);
	return answer(s, np_omni_response_layout, response).word;
}

TEST_WITH(a_file_of_the_fill_directory_is_sent, root_make, root_remove)
{
	struct np_omni_response response;
	FREED_BY(session_close) struct session s;
	struct np_addr at;
	char bytes[16] = "";
	FREED_BY(close_fd) int fill = open_fill(*state), fd = -1;

	assert_int_equal(ask_filled(&s, fill, "data", &response), 0);
	at = loopback(AF_INET, (uint16_t)response.data_port);
	fd = connected_to(&at);
	assert_true(put_bytes(fd, bytes, 16));
	assert_true(get_bytes(fd, bytes, 8));
	assert_memory_equal(bytes, "plumplum", 8);
}

TEST(zeros_take_no_file_and_are_only_for_streams)
{
	struct np_omni_request request = five_transactions();
	struct np_omni_response response;
	FREED_BY(close_fd) int fd = -1;
	FREED_BY(session_close) struct session s, rr;
	static const char zeros[5000];
	char bytes[sizeof(zeros)] = "text";

	assert_int_equal(ask_filled(&rr, 0, NP_FILL_ZEROS, &response), EINVAL);
	strcpy(request.fill_file, NP_FILL_ZEROS);
	request.direction = NP_WD_TRANSMIT;
	request.test_length = -(int32_t)sizeof(zeros);
	session_open(&s);
	fd = ask_and_connect(&s, &request);
	assert_true(get_bytes(fd, bytes, sizeof(bytes)));
	assert_memory_equal(bytes, zeros, sizeof(zeros));
}

TEST_WITH(no_other_file_is, root_make, root_remove)
{
	static const struct {
		const char *name;
		int error;
	} rows[] = {
		{ "nosuch", ENOENT },       { "link", EACCES },        { "inner", EACCES },
		{ "fifo", EACCES },         { "dir", EACCES },         { ".", EACCES },
		{ "..", EACCES },           { "../secret", EACCES },   { "./data", EACCES },
		{ "/etc/passwd", EACCES },  { "dir/../data", EACCES }, { "empty", EINVAL },
		{ "fill/../data", EACCES },
	};
	FREED_BY(close_fd) int fill = open_fill(*state);

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_omni_response response;
		FREED_BY(session_close) struct session s;
		int32_t error = ask_filled(&s, fill, rows[i].name, &response);

		fail_if(error != rows[i].error, "%s: error %d", rows[i].name, error);
	}
}

static void
assert_refused(const struct np_plan_message *m, int error, const char *says)
{
	FREED_BY(session_close) struct session s;

	session_open(&s);
	ask_tagged(&s, &np_tagged_plan, m);
	assert_why(&s, NP_EXT_ERROR, error, says);
}

/* A plan that names what there is not, or what does not go together: the answer names the field. */
TEST(a_plan_that_makes_no_sense_is_refused)
{
	static const struct {
		const char *pattern, *transport, *engine;
		uint32_t family, leads, address;
		int32_t request;
		int error;
		const char *says;
		uint32_t flows;
	} rows[] = {
		{ "", "TCP", "", 4, 0, 0, 1, EINVAL, "pattern ''", 1 },
		{ "r\x1br", "TCP", "", 4, 0, 0, 1, EINVAL, "pattern 'r?r'", 1 },
		{ "rr", "", "", 4, 0, 0, 1, EPROTONOSUPPORT, "transport ''", 1 },
		{ "rr", "WARP", "", 4, 0, 0, 1, EPROTONOSUPPORT, "transport 'WARP'", 1 },
		{ "crr", "UDP", "", 4, 0, 0, 1, EOPNOTSUPP, "pattern crr over transport UDP", 1 },
		{ "sendfile", "UNIX", "", 0, 0, 0, 1, EOPNOTSUPP, "pattern sendfile over", 1 },
		{ "rr", "TCP", "", 4, 1, 0, 1, EOPNOTSUPP, "leads", 1 },
		{ "rr", "TCP", "", 5, 0, 0, 1, EAFNOSUPPORT, "family 5", 1 },
		{ "rr", "TCP", "", 4, 0, 0, 0, EINVAL, "request of 0", 1 },
		{ "rr", "TCP", "", 4, 0, 16, 1, EINVAL, "data address of 16 bytes", 1 },
		{ "rr", "TCP", "", 6, 0, 4, 1, EINVAL, "data address of 4 bytes", 1 },
		{ "rr", "TCP", "warp", 4, 0, 0, 1, EOPNOTSUPP, "engine 'warp'", 1 },
		{ "rr", "TCP", "sync", 4, 0, 0, 1, EOPNOTSUPP, "engine sync", 2 },
		{ "mss", "TCP", "", 4, 0, 0, 1, EOPNOTSUPP, "flows of 2: mss over TCP has one", 2 },
		{ "stream", "UDP", "", 4, 1, 0, 1, EACCES, "without an echo", 2 },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_plan_message m = five_by_plan();

		snprintf(m.pattern, sizeof(m.pattern), "%s", rows[i].pattern);
		snprintf(m.transport, sizeof(m.transport), "%s", rows[i].transport);
		snprintf(m.engine, sizeof(m.engine), "%s", rows[i].engine);
		m.family = rows[i].family;
		m.leads = rows[i].leads;
		m.request_size = rows[i].request;
		m.flows = rows[i].flows;
		m.data_address.count = rows[i].address;
		assert_refused(&m, rows[i].error, rows[i].says);
	}
}

/* A list of processors is read strictly, and shown without what could write to a terminal. */
TEST(a_plan_whose_processors_are_no_list_is_refused)
{
	static const struct {
		const char *cpus, *says;
	} rows[] = {
		{ "3-1", "cpus: 3-1 is not a list" },
		{ "0-9\x1bx", "cpus: 0-9?x is not a list" },
		{ "0-1024", "cpus: 0-1024 is a list of more than 1024" },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_plan_message m = five_by_plan();

		snprintf(m.cpus, sizeof(m.cpus), "%s", rows[i].cpus);
		assert_refused(&m, EINVAL, rows[i].says);
	}
}

/* Several addresses of a client: a few that the last byte tells apart, over connections. */
TEST(a_prefix_that_is_too_wide_is_refused)
{
	static const struct {
		const char *transport;
		uint32_t bits, address;
		int error;
	} rows[] = {
		{ "TCP", 23, 4, EINVAL },     { "TCP", 1, 4, EINVAL },
		{ "TCP", 33, 4, EINVAL },     { "TCP", 128, 4, EINVAL },
		{ "TCP", 24, 0, EINVAL },     { "TCP", 119, 16, EINVAL },
		{ "UDP", 24, 4, EOPNOTSUPP }, { "TCP", 120, 17, EINVAL },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_plan_message m = five_by_plan();

		snprintf(m.transport, sizeof(m.transport), "%s", rows[i].transport);
		m.family = rows[i].address == 16 ? NP_WF_INET6 : NP_WF_INET;
		/* The last row is a mapped one, of which the bits would be others. */
		m.client_address.count = rows[i].address < 16 ? rows[i].address : 16;
		m.client_prefix = rows[i].bits;
		if (rows[i].address == 17) {
			m.family = NP_WF_INET6;
			m.client_address.at[10] = m.client_address.at[11] = 0xff;
			m.client_address.at[12] = 127;
		}
		assert_refused(&m, rows[i].error, "client_prefix");
	}
}

TEST(a_ramp_that_nothing_ends_is_refused)
{
	static const struct {
		const char *pattern, *transport;
		int64_t length;
		uint32_t warm_up;
	} rows[] = {
		{ "rr", "TCP", -5, 0 }, { "rr", "TCP", 0, 0 },  { "rr", "TCP", 5, 100 },
		{ "rr", "UDP", 5, 0 },  { "crr", "TCP", 5, 0 },
	};

	for (size_t i = 0; i < LEN(rows); i++) {
		struct np_plan_message m = five_by_plan();

		snprintf(m.pattern, sizeof(m.pattern), "%s", rows[i].pattern);
		snprintf(m.transport, sizeof(m.transport), "%s", rows[i].transport);
		m.length = rows[i].length;
		m.warm_up = rows[i].warm_up;
		m.flows = 2;
		m.ramp = 100;
		assert_refused(&m, EOPNOTSUPP, "ramp of 100");
	}
}

/* Numbers that are at the edge of something, in every field of every request. */
TEST(no_request_takes_more_memory_than_the_limit)
{
	static const uint32_t nasty[] = { 0,     1,     2,        4,         8,        4096,
					  65535, 65536, 1U << 20, INT32_MAX, 1U << 31, UINT32_MAX };
	static const uint32_t codes[] = { NP_OMNI,      NP_TCP_STREAM, NP_TCP_CC, NP_STREAM_STREAM,
					  NP_STREAM_RR, NP_DG_STREAM,  NP_DG_RR };
	uint64_t seed = 5;
	int opened = 0;

	for (int round = 0; round < (NP_SANITIZED ? 300 : 3000); round++) {
		const struct np_dialect *d = np_dialect(codes[round % LEN(codes)]);
		struct np_stop stop = { 0 };
		uint8_t frame[NP_FRAME_SIZE] = { 0 };
		struct np_plan p;
		struct np_run run;
		struct np_err err = { .code = NP_OK };

		for (size_t at = 8; at < 152; at += 4) {
			uint32_t v = htonl(nasty[next_random(&seed) % LEN(nasty)]);

			memcpy(frame + at, &v, sizeof(v));
		}
		np_plan_init(&p);
		if (d->decode_request(d, frame, &p, &err) != NP_OK ||
		    np_run_open(&run, &p, NULL, &stop, &err) != NP_OK) {
			assert_true(err.msg[0] != '\0');
			continue;
		}
		assert_true(run.worker->send_ring.width * run.worker->send_ring.size <=
			    NP_RING_MAX);
		assert_true(run.worker->recv_ring.width * run.worker->recv_ring.size <=
			    NP_RING_MAX);
		opened++;
		np_run_free(&run);
	}
	assert_true(opened > 0);
}

TEST_MAIN(np_drive_prepare())
