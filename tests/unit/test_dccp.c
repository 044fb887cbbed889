/* Names of DCCP's: congestion controls and service codes. No kernel has to have DCCP. */
#include "bench/transport/dccp.h"

#include "tests/lib/check.h"

TEST(ccids_have_names)
{
	assert_int_equal(np_dccp_ccid("ccid2"), 2);
	assert_int_equal(np_dccp_ccid("ccid255"), 255);
	assert_int_equal(np_dccp_ccid("ccid256"), 0);
	assert_int_equal(np_dccp_ccid("ccid0"), 0);
	assert_int_equal(np_dccp_ccid("ccid"), 0);
	assert_int_equal(np_dccp_ccid("cubic"), 0);
}

/* The first three are the standard's example. */
TEST(service_codes_are_read)
{
	static const struct {
		const char *text;
		uint32_t code;
	} rows[] = {
		{ "SC:fdpz", 1717858426 },      { "SC=1717858426", 1717858426 },
		{ "SC=x6664707A", 1717858426 }, { "1717858426", 1717858426 },
		{ "0x6664707a", 1717858426 },   { "SC:a", 0x61202020 },
		{ "SC:?@/*", 0x3f402f2a },      { "SC=4294967294", UINT32_MAX - 1 },
	};
	static const char *const wrong[] = {
		"",      "SC:",  "SC:abcde",      "SC:a b",        "SC:a\"",
		"SC=",   "SC=0", "SC=4294967295", "SC=4294967296", "SC=99999999999999999999999",
		"SC=-1", "-1",   "SC=x",          "SC=xg",         "0x-1",
		"12ab",  "fdpz"
	};
	uint32_t code;

	for (size_t i = 0; i < LEN(rows); i++) {
		fail_if(!np_dccp_service(rows[i].text, &code) || code != rows[i].code, "%s",
			rows[i].text);
	}
	for (size_t i = 0; i < LEN(wrong); i++) {
		fail_if(np_dccp_service(wrong[i], &code), "'%s' is taken for %u", wrong[i], code);
	}
}

TEST(service_codes_are_written)
{
	static const struct {
		uint32_t code;
		const char *text;
	} rows[] = {
		{ 1717858426, "SC:fdpz" },      { 0x61202020, "SC:a" },
		{ 0x61206120, "SC=x61206120" }, { 0x20202020, "SC=x20202020" },
		{ 1, "SC=x00000001" },          { UINT32_MAX - 1, "SC=xFFFFFFFE" },
	};
	char text[NP_DCCP_SERVICE_TEXT];

	for (size_t i = 0; i < LEN(rows); i++) {
		np_dccp_service_text(rows[i].code, text);
		assert_string_equal(text, rows[i].text);
	}
}

TEST_MAIN()
