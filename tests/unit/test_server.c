/*
 * The daemon's half of the conversation against scripted clients: what it answers, and that it goes
 * on or ends in good order. What it refuses stands in test_refusals.c.
 */
#include "run/server.h"

#include <unistd.h>

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

static void
an_unknown_code_is_answered_and_the_session_goes_on(void **state)
{
	static const uint32_t codes[] = { 0, 3, 4, 7, 98, 301, 1000, UINT32_MAX };
	struct session s;

	(void)state;
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

static void
calibration_names_the_clock_and_the_processors(void **state)
{
	struct np_calibrate_response m;
	struct session s;

	(void)state;
	session_open(&s);
	ask(&s, NP_CPU_CALIBRATE, NULL, NULL);
	assert_int_equal(answer(&s, np_calibrate_response_layout, &m).word, 0);
	assert_int_equal((long)m.rate, sysconf(_SC_CLK_TCK));
	assert_int_equal(m.num_cpus, sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(session_close(&s), NP_OK);
}

static void
system_information_is_no_more(void **state)
{
	struct np_text m;
	struct session s;

	(void)state;
	session_open(&s);
	ask(&s, NP_SYSINFO, NULL, NULL);
	assert_int_equal(answer(&s, np_text_layout, &m).code, NP_SYSINFO_RESPONSE);
	assert_string_equal(m.text, ",Deprecated,Deprecated,Deprecated,Deprecated");
	assert_int_equal(session_close(&s), NP_OK);
}

static void
a_passphrase_is_not_answered(void **state)
{
	struct np_text m = { .text = "sesame" };
	struct session s;

	(void)state;
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

static void
debugging_raises_the_log_level_where_it_may(void **state)
{
	(void)state;
	assert_int_equal(level_after(NP_DEBUG_ON, false), NP_LOG_DEBUG);
	assert_int_equal(level_after(NP_DEBUG_OFF, false), NP_LOG_INFO);
	assert_int_equal(level_after(NP_DEBUG_ON, true), NP_LOG_INFO);
}

static void
pipelined_requests_are_answered_in_order(void **state)
{
	struct session s;

	(void)state;
	session_open(&s);
	ask(&s, NP_CPU_CALIBRATE, NULL, NULL);
	ask(&s, 12345, NULL, NULL);
	ask(&s, NP_SYSINFO, NULL, NULL);
	assert_int_equal(answer(&s, NULL, NULL).code, NP_CPU_CALIBRATE);
	assert_int_equal(answer(&s, NULL, NULL).word, NP_E_UNKNOWN_REQUEST);
	assert_int_equal(answer(&s, NULL, NULL).code, NP_SYSINFO_RESPONSE);
	assert_int_equal(session_close(&s), NP_OK);
}

static void
a_cut_request_ends_the_session_with_an_error(void **state)
{
	uint8_t frame[NP_FRAME_SIZE] = { 0 };
	struct session s;

	(void)state;
	session_open(&s);
	assert_true(put_bytes(s.fd, frame, 655));
	assert_int_equal(session_close(&s), NP_EPEER);
	assert_has(s.err.msg, "655 of 656 bytes came");
}

/* ---- Tests ---- */

static void
play_five_transactions(const struct session *s)
{
	struct np_omni_request request = five_transactions();
	struct np_omni_response response;
	struct np_omni_results results;
	char bytes[16] = "";
	struct np_addr at;
	int fd;

	ask(s, NP_OMNI, np_omni_request_layout, &request);
	assert_int_equal(answer(s, np_omni_response_layout, &response).word, 0);
	at = loopback(AF_INET, (uint16_t)response.data_port);
	fd = connected_to(&at);
	for (int i = 0; i < 5; i++) {
		assert_true(put_bytes(fd, bytes, 16));
		assert_true(get_bytes(fd, bytes, 8));
	}
	assert_int_equal(answer(s, np_omni_results_layout, &results).word, 0);
	assert_int_equal(results.trans_received, 5);
	assert_int_equal(results.bytes_received, 80);
	assert_int_equal(results.bytes_sent, 40);
	assert_true(results.elapsed_time > 0);
	close(fd);
}

static void
a_session_serves_one_test_after_another(void **state)
{
	struct session s;

	(void)state;
	session_open(&s);
	play_five_transactions(&s);
	play_five_transactions(&s);
	assert_alive(&s);
	assert_int_equal(session_close(&s), NP_OK);
}

static void
an_old_request_is_served_as_well(void **state)
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

	(void)state;
	session_open(&s);
	ask(&s, NP_TCP_CC, np_rr_request_layout, &request);
	assert_int_equal(answer(&s, np_rr_response_layout, &response).word, 0);
	at = loopback(AF_INET, (uint16_t)response.data_port_number);
	for (int i = 0; i < 3; i++) {
		int fd = connected_to(&at);

		assert_int_equal(read_all(fd), 0);
		close(fd);
	}
	assert_int_equal(answer(&s, np_rr_results_layout, &results).word, 0);
	assert_int_equal(results.trans_received, 3);
	assert_int_equal(session_close(&s), NP_OK);
}

/* The client goes away where its data connection should come: nothing is left waiting. */
static void
a_client_that_leaves_before_the_test_ends_it(void **state)
{
	struct np_omni_request request = five_transactions();
	struct session s;

	(void)state;
	session_open(&s);
	ask(&s, NP_OMNI, np_omni_request_layout, &request);
	assert_int_equal(answer(&s, NULL, NULL).word, 0);
	session_close(&s);
	assert_int_not_equal(s.rc, -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unknown_code_is_answered_and_the_session_goes_on),
		cmocka_unit_test(calibration_names_the_clock_and_the_processors),
		cmocka_unit_test(system_information_is_no_more),
		cmocka_unit_test(a_passphrase_is_not_answered),
		cmocka_unit_test(debugging_raises_the_log_level_where_it_may),
		cmocka_unit_test(pipelined_requests_are_answered_in_order),
		cmocka_unit_test(a_cut_request_ends_the_session_with_an_error),
		cmocka_unit_test(a_session_serves_one_test_after_another),
		cmocka_unit_test(an_old_request_is_served_as_well),
		cmocka_unit_test(a_client_that_leaves_before_the_test_ends_it),
	};

	np_drive_prepare();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
