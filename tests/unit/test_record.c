/*
 * The metric table and the record of named results.
 */
#include "stats/record.h"

#include "out/format.h"
#include "tests/lib/check.h"

/* One conversion of the right kind, and nothing else that printf() would look for. */
static void
assert_conversion(const struct np_metric *m)
{
	static const char *const ends[] = {
		[NP_TYPE_INT] = "lld",
		[NP_TYPE_REAL] = "f",
		[NP_TYPE_CHAR] = "c",
		[NP_TYPE_TEXT] = "s",
	};
	const char *at = strchr(m->print, '%'), *end = ends[m->type];

	assert_non_null(at);
	assert_null(strchr(at + 1, '%'));
	at++;
	if (*at == '.') {
		at += 1 + strspn(at + 1, "0123456789");
		end = m->type == NP_TYPE_INT ? "llx" : end;
	}
	fail_if(strncmp(at, end, strlen(end)) != 0, "%s: %s is not a conversion of its type",
		m->name, m->print);
}

TEST(every_row_has_a_name_heads_and_a_conversion)
{
	for (int i = 0; i < NP_METRICS; i++) {
		const struct np_metric *m = &np_metrics[i];

		assert_true(m->name[0] != '\0');
		assert_int_equal(strspn(m->name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"),
				 strlen(m->name));
		/* Unique: each name finds its own row. */
		assert_int_equal(np_metric_find(m->name), i);
		assert_true(m->head[0][0] != '\0');
		for (size_t h = 0; h < LEN(m->head); h++) {
			assert_non_null(m->head[h]);
		}
		assert_conversion(m);
	}
}

/* By number a far end's figure stands behind the near end's, in lists each end's in a block. */
TEST(a_figure_of_both_ends_is_two)
{
	static const enum np_metric_id order[] = { NP_M_LSS_SIZE,     NP_M_LSS_SIZE_END,
						   NP_M_LSR_SIZE_END, NP_M_RSS_SIZE_REQ,
						   NP_M_RSR_SIZE_END, NP_M_LOCAL_SEND_SIZE,
						   NP_M_LOCAL_SD,     NP_M_REMOTE_CPU_UTIL,
						   NP_M_REMOTE_SD,    NP_M_SD_UNITS };
	int listed = 0;

	for (int i = 0; i < NP_METRICS; i = np_metric_next(i)) {
		const struct np_metric *m = &np_metrics[i], *far = m + 1;

		assert_string_equal(np_metric_name_at((size_t)listed), m->name);
		listed++;
		if (m->end == NP_METRIC_NEAR) {
			assert_ptr_equal(&np_metrics[np_metric_of((enum np_metric_id)i, true)],
					 far);
			assert_int_equal(far->end, NP_METRIC_FAR);
			assert_int_equal(far->type, m->type);
			assert_string_equal(far->print, m->print);
			assert_string_equal(m->head[0], "Local");
			assert_string_equal(far->head[0], "Remote");
		}
	}
	assert_int_equal(listed, NP_METRICS);
	assert_null(np_metric_name_at(NP_METRICS));
	for (size_t i = 0; i < LEN(order); i += 2) {
		assert_int_equal(np_metric_next((int)order[i]), order[i + 1]);
	}
}

TEST(names_are_found_in_any_case)
{
	assert_int_equal(np_metric_find("throughput"), NP_M_THROUGHPUT);
	assert_int_equal(np_metric_find("Throughput_Units"), NP_M_THROUGHPUT_UNITS);
	assert_int_equal(np_metric_find("THROUGHPU"), -1);
	assert_int_equal(np_metric_find("THROUGHPUT "), -1);
	assert_int_equal(np_metric_find(""), -1);
}

static void
assert_formats(const struct np_record *r, enum np_metric_id id, const char *want)
{
	char text[64];

	assert_int_equal(np_record_format(r, id, text, sizeof(text)), strlen(want));
	assert_string_equal(text, want);
}

TEST(values_print_as_their_rows_say)
{
	struct np_record r = { .value[0].known = false };

	np_record_int(&r, NP_M_LOCAL_BYTES_SENT, INT64_MAX);
	np_record_real(&r, NP_M_THROUGHPUT, 1234.567);
	np_record_real(&r, NP_M_TRANSACTION_RATE, 0.12345);
	np_record_text(&r, NP_M_PROTOCOL, "TCP");
	np_record_text(&r, NP_M_THROUGHPUT_UNITS, "KBytes");
	assert_formats(&r, NP_M_LOCAL_BYTES_SENT, "9223372036854775807");
	assert_formats(&r, NP_M_THROUGHPUT, "1234.57");
	assert_formats(&r, NP_M_TRANSACTION_RATE, "0.123");
	assert_formats(&r, NP_M_PROTOCOL, "TCP");
	assert_formats(&r, NP_M_THROUGHPUT_UNITS, "KBytes/s");
	assert_int_equal(np_record_get_int(&r, NP_M_LOCAL_BYTES_SENT), INT64_MAX);
	assert_true(np_record_get_real(&r, NP_M_THROUGHPUT) > 1234.5);
}

TEST(what_is_not_known_says_so)
{
	struct np_record r = { .value[0].known = false };

	assert_int_equal(np_record_get_int(&r, NP_M_LSS_SIZE), -1);
	assert_true(np_record_get_real(&r, NP_M_THROUGHPUT) < -0.5);
	assert_formats(&r, NP_M_LSS_SIZE, "-1");
	assert_formats(&r, NP_M_THROUGHPUT, "-1.00");
	assert_formats(&r, NP_M_PROTOCOL, "");
	assert_formats(&r, NP_M_LOCAL_CPU_METHOD, "U");
	assert_int_equal(np_record_get_char(&r, NP_M_LOCAL_CPU_METHOD), 'U');
	assert_string_equal(np_record_get_text(&r, NP_M_PROTOCOL), "");
	assert_false(np_record_known(&r, NP_M_LSS_SIZE));
	assert_false(np_record_known(&r, NP_M_PROTOCOL));
}

TEST(an_empty_text_is_a_value_and_null_is_none)
{
	struct np_record r = { .value[0].known = false };

	np_record_text(&r, NP_M_LOCAL_FILL_FILE, "");
	np_record_text(&r, NP_M_RESULT_BRAND, NULL);
	assert_true(np_record_known(&r, NP_M_LOCAL_FILL_FILE));
	assert_formats(&r, NP_M_LOCAL_FILL_FILE, "");
	assert_false(np_record_known(&r, NP_M_RESULT_BRAND));
	np_record_text(&r, NP_M_RESULT_BRAND, "one two");
	assert_true(np_record_known(&r, NP_M_RESULT_BRAND));
	assert_formats(&r, NP_M_RESULT_BRAND, "\"one two\"");
	/* The filler is a blank in every record. */
	assert_true(np_record_known(&r, NP_M_OUTPUT_NONE));
	assert_formats(&r, NP_M_OUTPUT_NONE, " ");
}

TEST(letters_may_be_nul_bytes)
{
	struct np_record r = { .value[0].known = false };
	char text[8] = "xxxxxxx";

	np_record_char(&r, NP_M_LOCAL_CPU_METHOD, 'S');
	assert_formats(&r, NP_M_LOCAL_CPU_METHOD, "S");
	np_record_char(&r, NP_M_REMOTE_CPU_METHOD, '\0');
	assert_int_equal(np_record_get_char(&r, NP_M_REMOTE_CPU_METHOD), '\0');
	assert_int_equal(np_record_format(&r, NP_M_REMOTE_CPU_METHOD, text, sizeof(text)), 1);
	assert_memory_equal(text, "\0", 2);
}

TEST(hexadecimal_values_have_32_bits)
{
	struct np_record r = { .value[0].known = false };

	assert_formats(&r, NP_M_LOCAL_SOCKET_TOS, "0xffffffff");
	np_record_int(&r, NP_M_LOCAL_SOCKET_TOS, -1);
	assert_formats(&r, NP_M_LOCAL_SOCKET_TOS, "0xffffffff");
	np_record_int(&r, NP_M_LOCAL_SOCKET_TOS, 0);
	assert_formats(&r, NP_M_LOCAL_SOCKET_TOS, "0x00");
	np_record_int(&r, NP_M_REMOTE_SOCKET_TOS, 0xb8);
	assert_formats(&r, NP_M_REMOTE_SOCKET_TOS, "0xb8");
	np_record_int(&r, NP_M_LOCAL_INTERFACE_VENDOR, -2);
	assert_formats(&r, NP_M_LOCAL_INTERFACE_VENDOR, "0xfffffffe");
	np_record_int(&r, NP_M_REMOTE_INTERFACE_DEVICE, 0x1a);
	assert_formats(&r, NP_M_REMOTE_INTERFACE_DEVICE, "0x001a");
}

TEST(titles_are_the_heads_up_to_the_first_empty_one)
{
	char title[80], part[9];

	np_figure_title(NP_M_THROUGHPUT, title, sizeof(title));
	assert_string_equal(title, "Throughput");
	np_figure_title(NP_M_LSS_SIZE_END, title, sizeof(title));
	assert_string_equal(title, "Local Send Socket Size Final");
	np_figure_title(NP_M_P99_LATENCY, title, sizeof(title));
	assert_string_equal(title, "99th Percentile Latency Microseconds");
	np_figure_title(NP_M_OUTPUT_NONE, title, sizeof(title));
	assert_string_equal(title, " ");
	np_figure_title(NP_M_LSS_SIZE_END, part, sizeof(part));
	assert_string_equal(part, "Local Se");
}

TEST(a_short_buffer_cuts_the_text_and_not_its_length)
{
	struct np_record r = { .value[0].known = false };
	char text[4] = "xxx";

	np_record_text(&r, NP_M_DIRECTION, "Send|Recv");
	assert_int_equal(np_record_format(&r, NP_M_DIRECTION, text, sizeof(text)), 9);
	assert_string_equal(text, "Sen");
	assert_int_equal(np_record_format(&r, NP_M_DIRECTION, NULL, 0), 9);
}

TEST_MAIN()
