/*
 * The daemon's half of the conversation against scripted clients: what it answers, and that it goes
 * on or ends in good order. What it refuses stands in test_refusals.c.
 */
#include "run/server.h"

#include "bench/engine/engine.h"
#include "tests/lib/check.h"
#include "tests/lib/session.h"
#include "tests/lib/sockets.h"

static void
assert_alive(const struct session *s)
{
	ask(s, NP_CPU_CALIBRATE, NULL, NULL);
	assert_int_equal(answer(s, NULL, NULL).code, NP_CPU_CALIBRATE);
}

/* ---- Requests without a test ---- */

TEST(an_unknown_code_is_answered_and_the_session_goes_on)
{
	static const uint32_t codes[] = { 0, 3, 4, 7, 98, 301, 1000, UINT32_MAX };
	struct session s;

	session_open(&s);
	for (size_t i = 0; i < LEN(codes); i++) {
		struct np_head head;

		ask(&s, codes[i], NULL, NULL);
		head = answer(&s, NULL, NULL);
		assert_int_equal(head.code, 0);
		assert_int_equal(head.word, NP_E_UNKNOWN_REQUEST);
	}
	assert_alive(&s);
	assert_int_equal(session_close(&s), NP_OK);
}

TEST(calibration_names_the_clock_and_the_processors)
{
	struct np_calibrate_response m;
	struct session s;

	session_open(&s);
	ask(&s, NP_CPU_CALIBRATE, NULL, NULL);
	assert_int_equal(answer(&s, np_calibrate_response_layout, &m).word, 0);
	assert_int_equal((long)m.rate, sysconf(_SC_CLK_TCK));
	assert_int_equal(m.num_cpus, sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(session_close(&s), NP_OK);
}

TEST(system_information_is_no_more)
{
	struct np_text m;
	struct session s;

	session_open(&s);
	ask(&s, NP_SYSINFO, NULL, NULL);
	assert_int_equal(answer(&s, np_text_layout, &m).code, NP_SYSINFO_RESPONSE);
	assert_string_equal(m.text, ",Deprecated,Deprecated,Deprecated,Deprecated");
	assert_int_equal(session_close(&s), NP_OK);
}

TEST(a_passphrase_is_not_answered)
{
	struct np_text m = { .text = "sesame" };
	struct session s;

	session_open(&s);
	ask(&s, NP_PASSPHRASE, np_text_layout, &m);
	assert_alive(&s);
	assert_int_equal(session_close(&s), NP_OK);
}

static enum np_log_level
level_after(uint32_t code, bool quiet)
{
	struct session s;

	session_open(&s);
	s.server.quiet = quiet;
	ask(&s, code, NULL, NULL);
	assert_int_equal(answer(&s, NULL, NULL).code, NP_DEBUG_OK);
	assert_int_equal(session_close(&s), NP_OK);
	return s.log.level;
}

TEST(debugging_raises_the_log_level_where_it_may)
{
	assert_int_equal(level_after(NP_DEBUG_ON, false), NP_LOG_DEBUG);
	assert_int_equal(level_after(NP_DEBUG_OFF, false), NP_LOG_INFO);
	assert_int_equal(level_after(NP_DEBUG_ON, true), NP_LOG_INFO);
}

TEST(pipelined_requests_are_answered_in_order)
{
	struct session s;

	session_open(&s);
	ask(&s, NP_CPU_CALIBRATE, NULL, NULL);
	ask(&s, 12345, NULL, NULL);
	ask(&s, NP_SYSINFO, NULL, NULL);
	assert_int_equal(answer(&s, NULL, NULL).code, NP_CPU_CALIBRATE);
	assert_int_equal(answer(&s, NULL, NULL).word, NP_E_UNKNOWN_REQUEST);
	assert_int_equal(answer(&s, NULL, NULL).code, NP_SYSINFO_RESPONSE);
	assert_int_equal(session_close(&s), NP_OK);
}

TEST(a_cut_request_ends_the_session_with_an_error)
{
	uint8_t frame[NP_FRAME_SIZE] = { 0 };
	struct session s;

	session_open(&s);
	assert_true(put_bytes(s.fd, frame, 655));
	assert_int_equal(session_close(&s), NP_EPEER);
	assert_has(s.err.msg, "655 of 656 bytes came");
}

/* ---- Engines ---- */

static int
no_turn(void *ctx, struct np_wish *wish, int control_fd, struct np_err *err)
{
	*(bool *)ctx = true;
	return np_fail(err, NP_EUNSUP, EBUSY, "no test was asked for");
}

static void
no_refusal(void *ctx, const struct np_served *served)
{
	*(bool *)ctx = true;
}

/* The bag that answers. */
static struct np_bag *
told_by(const struct session *s)
{
	uint8_t *message = next_message(s->fd);
	struct np_bag *b = np_bag_new();
	struct np_err err;

	assert_int_equal(np_frame_head(message).code, NP_EXT_BAG);
	assert_int_equal(np_bag_decode(message, b, &err), NP_OK);
	free(message);
	return b;
}

/*
 * Every engine of the table has a row, and all have that reason; NULL: as the plan has it. Which
 * may spin is the operator's to say, and this one has not.
 */
static void
assert_told(const struct np_bag *b, const struct np_plan *p, const char *reason)
{
	struct np_engine_told told;
	size_t at = 0, rows = 0;

	for (; np_engine_next(b, &at, &told); rows++) {
		const struct np_engine *e = np_engine_at(rows);
		const char *why = np_engine_why_not(e, p);

		assert_string_equal(told.name, e->name);
		assert_string_equal(told.help, e->help);
		if (reason != NULL) {
			assert_has(told.why, reason);
		} else if (e->spins) {
			assert_has(told.why, "netserver was not started with --spin N, which");
		} else if (why == NULL) {
			assert_null(told.why);
		} else {
			assert_string_equal(told.why, why);
		}
	}
	assert_null(np_engine_at(rows));
}

TEST(engines_are_told_of_and_no_test_begins)
{
	bool asked = false;
	struct np_server server = {
		.caps = NP_CAP_PLAN,
		.limits = { .message = 100 },
		.admission = { .ask = no_turn, .tell = no_refusal, .ctx = &asked },
	};
	struct np_plan_message m = five_by_plan();
	struct np_plan p;
	struct session s;
	struct np_bag *b;

	np_plan_init(&p);
	p.pattern = &np_pattern_rr;
	p.transport = &np_transport_tcp;
	session_open_as(&s, &server);
	for (uint32_t flows = 1; flows <= 3; flows += 2) {
		m.flows = p.flows = flows;
		ask_tagged(&s, &np_tagged_engines, &m);
		b = told_by(&s);
		assert_told(b, &p, NULL);
		np_bag_free(b);
	}
	m.request_size = 101;
	ask_tagged(&s, &np_tagged_engines, &m);
	b = told_by(&s);
	assert_told(b, &p, "--max-message");
	np_bag_free(b);
	assert_alive(&s);
	assert_int_equal(session_close(&s), NP_OK);
	assert_false(asked);
}

TEST(a_question_about_no_test_is_refused)
{
	struct np_plan_message m = five_by_plan();
	FREED_BY(session_close) struct session s;

	session_open_as(&s, &(struct np_server){ .caps = NP_CAP_PLAN });
	strcpy(m.pattern, "steam");
	ask_tagged(&s, &np_tagged_engines, &m);
	assert_why(&s, NP_EXT_ERROR, EINVAL, "pattern 'steam'");
}

TEST(plans_need_to_have_been_granted)
{
	static const struct np_tagged *const asks[] = { &np_tagged_plan, &np_tagged_engines };
	struct np_plan_message m = five_by_plan();

	for (size_t i = 0; i < LEN(asks); i++) {
		FREED_BY(session_close) struct session s;

		session_open_as(&s, &(struct np_server){ .caps = NP_CAP_TEST });
		ask_tagged(&s, asks[i], &m);
		assert_why(&s, NP_EXT_ERROR, EACCES, "the greeting did not ask");
	}
}

/* Who has not greeted sends netperf's messages, among which there is no PLAN. */
TEST(strangers_have_no_messages_of_ours)
{
	struct session s;

	session_open_stranger(&s, &(struct np_server){ .caps = NP_CAP_PLAN });
	ask(&s, NP_PLAN, NULL, NULL);
	assert_int_equal(answer(&s, NULL, NULL).word, NP_E_UNKNOWN_REQUEST);
	assert_alive(&s);
	assert_int_equal(session_close(&s), NP_OK);
}

/* ---- Tests ---- */

static void
play_five_transactions(const struct session *s)
{
	struct np_omni_request request = five_transactions();
	struct np_omni_results results;
	char bytes[16] = "";
	FREED_BY(close_fd) int fd = ask_and_connect(s, &request);

	for (int i = 0; i < 5; i++) {
		assert_true(put_bytes(fd, bytes, 16));
		assert_true(get_bytes(fd, bytes, 8));
	}
	assert_int_equal(answer(s, np_omni_results_layout, &results).word, 0);
	assert_int_equal(results.trans_received, 5);
	assert_int_equal(results.bytes_received, 80);
	assert_int_equal(results.bytes_sent, 40);
	assert_true(results.elapsed_time > 0);
}

TEST(a_session_serves_one_test_after_another)
{
	struct session s;

	session_open(&s);
	play_five_transactions(&s);
	play_five_transactions(&s);
	assert_alive(&s);
	assert_int_equal(session_close(&s), NP_OK);
}

TEST(an_old_request_is_served_as_well)
{
	struct np_rr_request request = { .recv_buf_size = -1,
					 .send_buf_size = -1,
					 .request_size = 1,
					 .response_size = 1,
					 .test_length = -3 };
	struct np_rr_response response;
	struct np_rr_results results;
	struct np_addr at;
	struct session s;

	session_open(&s);
	ask(&s, NP_TCP_CC, np_rr_request_layout, &request);
	assert_int_equal(answer(&s, np_rr_response_layout, &response).word, 0);
	at = loopback(AF_INET, (uint16_t)response.data_port_number);
	for (int i = 0; i < 3; i++) {
		FREED_BY(close_fd) int fd = connected_to(&at);

		assert_int_equal(read_all(fd), 0);
	}
	assert_int_equal(answer(&s, np_rr_results_layout, &results).word, 0);
	assert_int_equal(results.trans_received, 3);
	assert_int_equal(session_close(&s), NP_OK);
}

/* The client goes away where its data connection should come: nothing is left waiting. */
TEST(a_client_that_leaves_before_the_test_ends_it)
{
	struct np_omni_request request = five_transactions();
	struct session s;

	session_open(&s);
	ask(&s, NP_OMNI, np_omni_request_layout, &request);
	assert_int_equal(answer(&s, NULL, NULL).word, 0);
	session_close(&s);
	assert_int_not_equal(s.rc, -1);
}

TEST_MAIN(np_drive_prepare())
