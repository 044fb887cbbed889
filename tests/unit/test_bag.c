/*
 * Bags of named values: what goes in comes out, by name and in order, on either side of the wire;
 * and what does not fit is counted rather than trusted.
 */
#include "base/bag.h"

#include "tests/lib/bags.h"
#include "tests/lib/check.h"
#include "wire/plan.h"
#include "wire/tagged.h"

static struct np_bag *
full_of_everything(void)
{
	static const double reals[] = { 0.5, -1e300, 3 };
	static const int64_t ints[] = { 1, INT64_MIN, INT64_MAX };
	struct np_bag *b = np_bag_new();

	np_bag_int(b, -7, "tcp.%s", "rtt_us");
	np_bag_real(b, 0.25, "cpu.%d.softirq", 3);
	np_bag_text(b,
		    "Grüße\tan\x7f"
		    "alle",
		    "host.name");
	np_bag_reals(b, reals, LEN(reals), "tcp.samples.t_s");
	np_bag_ints(b, ints, LEN(ints), "tcp.samples.cwnd");
	np_bag_ints(b, NULL, 0, "wire.size_counts");
	np_bag_unread(b, "Permission denied", "wire");
	return b;
}

static void
check_everything(const struct np_bag *b)
{
	struct np_bag_item it;

	assert_int_equal(np_bag_count(b), 7);
	assert_int_equal(np_bag_left_out(b), 0);
	assert_true(np_bag_at(b, 0, &it));
	assert_string_equal(it.name, "tcp.rtt_us");
	assert_int_equal(it.kind, NP_BAG_INT);
	assert_int_equal(it.i, -7);
	assert_true(np_bag_number(b, "cpu.3.softirq") == 0.25);
	assert_string_equal(np_bag_string(b, "host.name"), "Grüße?an?alle");
	assert_int_equal(np_bag_list(b, "tcp.samples.t_s", 0, &it), 3);
	assert_true(it.reals[1] == -1e300 && np_bag_value(&it, 2) == 3);
	assert_int_equal(np_bag_list(b, "tcp.samples.t_s", NP_BAG_INTS, &it), 0);
	assert_int_equal(np_bag_list(b, "tcp.samples.cwnd", NP_BAG_INTS, &it), 3);
	assert_true(it.ints[1] == INT64_MIN && it.ints[2] == INT64_MAX);
	assert_true(np_bag_value(&it, 0) == 1);
	assert_int_equal(np_bag_list(b, "tcp.rtt_us", 0, &it), 0);
	assert_int_equal(np_bag_list(b, "nobody", 0, &it), 0);
	assert_true(np_bag_find(b, "wire.size_counts", &it));
	assert_int_equal(it.count, 0);
	assert_true(np_bag_find(b, "wire", &it));
	assert_int_equal(it.kind, NP_BAG_UNREAD);
	assert_string_equal(it.text, "Permission denied");
	assert_false(np_bag_at(b, 7, &it));
}

TEST(values_come_out_as_they_went_in)
{
	FREED_BY(free_bag) struct np_bag *b = full_of_everything();

	check_everything(b);
	assert_true(isnan(np_bag_number(b, "host.name")));
	assert_true(isnan(np_bag_number(b, "nobody")));
	assert_null(np_bag_string(b, "wire")); /* the reason is no value */
}

TEST(a_second_value_takes_the_place_of_the_first)
{
	FREED_BY(free_bag) struct np_bag *b = full_of_everything();

	np_bag_text(b, "first it was a number", "tcp.rtt_us");
	assert_int_equal(np_bag_count(b), 7);
	assert_string_equal(np_bag_string(b, "tcp.rtt_us"), "first it was a number");
}

TEST(no_bag_is_an_empty_one)
{
	struct np_bag_item it;

	np_bag_int(NULL, 1, "a");
	np_bag_real(NULL, (double)NAN, "a");
	assert_int_equal(np_bag_count(NULL), 0);
	assert_false(np_bag_at(NULL, 0, &it));
	assert_false(np_bag_find(NULL, "a", &it));
	np_bag_free(NULL);
}

TEST(what_does_not_fit_is_left_out)
{
	static const char *const bad[] = { "", ".", "a.", ".a", "a..b", "a b", "a/b", "\xc3\xa4" };
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	static double list[9000];
	char text[3 * NP_BAG_TEXT];

	for (size_t i = 0; i < LEN(bad); i++) {
		np_bag_int(b, 1, "%s", bad[i]);
		assert_int_equal(np_bag_left_out(b), i + 1);
	}
	np_bag_int(b, 1, "%0*d", NP_BAG_NAME, 1);
	np_bag_real(b, (double)INFINITY, "inf");
	assert_int_equal(np_bag_left_out(b), LEN(bad) + 2);
	assert_int_equal(np_bag_count(b), 0);
	for (int i = 0; i < 5; i++) {
		np_bag_reals(b, list, LEN(list), "list.%d", i);
	}
	assert_int_equal(np_bag_count(b), 3); /* 72 KB each */
	/* Cut between characters, of two bytes each. */
	for (size_t i = 0; i + 1 < sizeof(text); i++) {
		text[i] = i % 2 == 0 ? '\xc3' : '\xa4';
	}
	text[sizeof(text) - 1] = '\0';
	np_bag_text(b, text, "text");
	assert_int_equal(strlen(np_bag_string(b, "text")), NP_BAG_TEXT - 2);
	for (int i = 0; i < 3 * NP_BAG_ITEMS; i++) {
		np_bag_int(b, i, "n.%d", i);
	}
	assert_int_equal(np_bag_count(b), NP_BAG_ITEMS);
}

/* ---- On the wire ---- */

TEST(a_bag_survives_the_trip)
{
	FREED_BY(free_bag) struct np_bag *b = full_of_everything(), *again = np_bag_new();
	struct np_err err;
	FREED_BY(free_memory) uint8_t *bytes;

	assert_int_equal(np_bag_encode(b, &bytes, &err), NP_OK);
	assert_int_equal(np_frame_head(bytes).code, NP_EXT_BAG);
	assert_int_equal(np_bag_decode(bytes, again, &err), NP_OK);
	check_everything(again);
}

TEST(a_cut_bag_is_refused_wherever_it_is_cut)
{
	FREED_BY(free_bag) struct np_bag *b = full_of_everything();
	struct np_err err;
	FREED_BY(free_memory) uint8_t *bytes;
	size_t size, whole = 0;

	np_bag_encode(b, &bytes, &err);
	size = (uint32_t)np_frame_head(bytes).word;
	for (size_t n = 0; n < size; n += 4) {
		FREED_BY(free_bag) struct np_bag *again = np_bag_new();
		int rc;

		np_tagged_head(bytes, NP_EXT_BAG, n);
		rc = np_bag_decode(bytes, again, &err);

		assert_true(rc == NP_OK || rc == NP_EPEER);
		whole += rc == NP_OK; /* between two values */
	}
	assert_int_equal(whole, 7);
}

/* These bytes as the fields of a bag. */
static int
decode(const uint8_t *fields, size_t size, struct np_bag *b, struct np_err *err)
{
	uint8_t message[200];

	assert_true(NP_TAGGED_AT + size <= sizeof(message));
	np_tagged_head(message, NP_EXT_BAG, size);
	memcpy(message + NP_TAGGED_AT, fields, size);
	return np_bag_decode(message, b, err);
}

TEST(a_receiver_skips_what_it_does_not_know)
{
	/* A kind of the future, a name that is none, an integer of three bytes; then a value. */
	static const uint8_t bytes[] = {
		0, 0, 0, 99, 0, 0, 0, 10, 0, 0, 0, 1, 'x', 0, 0, 0, 1, 2, 0, 0, /* kind 99 */
		0, 0, 0, 1,  0, 0, 0, 16, 0, 0, 0, 1, '/', 0, 0, 0, 1, 2, 3, 4,
		5, 6, 7, 8,                                                     /* "/" */
		0, 0, 0, 1,  0, 0, 0, 11, 0, 0, 0, 1, 'y', 0, 0, 0, 1, 2, 3, 0, /* short */
		0, 0, 0, 1,  0, 0, 0, 16, 0, 0, 0, 1, 'z', 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 5,
	};
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();
	struct np_err err;

	assert_int_equal(decode(bytes, sizeof(bytes), b, &err), NP_OK);
	assert_int_equal(np_bag_count(b), 1);
	assert_true(np_bag_number(b, "z") == 5);
}

TEST(lengths_beyond_the_end_are_refused)
{
	/* Of the field, and of the name in it. */
	static const uint32_t lengths[][2] = { { 0xffffffff, 1 },  { 17, 1 },  { 3, 0 },
					       { 16, 0xffffffff }, { 16, 13 }, { 7, 1 } };
	struct np_err err;

	for (size_t i = 0; i < LEN(lengths); i++) {
		FREED_BY(free_bag) struct np_bag *b = np_bag_new();
		uint8_t bytes[24] = { 0, 0, 0, 1 };

		for (int n = 0; n < 4; n++) {
			bytes[4 + n] = (uint8_t)(lengths[i][0] >> (24 - 8 * n));
			bytes[8 + n] = (uint8_t)(lengths[i][1] >> (24 - 8 * n));
		}
		assert_int_equal(decode(bytes, sizeof(bytes), b, &err), NP_EPEER);
	}
}

/* ---- Greetings ---- */

TEST(a_greeting_survives_the_trip)
{
	const struct np_hello_message m = { .version = 3,
					    .caps = NP_CAP_TEST | NP_CAP_LINK,
					    .every_ms = 100,
					    .identity = "plumbline 1",
					    .device = "eth0" };
	uint8_t frame[NP_FRAME_SIZE];
	struct np_hello_message again;
	struct np_err err;

	np_hello_put(frame, NP_EXT_HELLO, &m);
	assert_int_equal(np_frame_head(frame).code, NP_EXT_HELLO);
	assert_int_equal(np_frame_head(frame).word, -1); /* binds nobody to a processor */
	assert_int_equal(np_hello_get(frame, &again, &err), NP_OK);
	assert_int_equal(again.version, 3);
	assert_int_equal(again.caps, m.caps);
	assert_int_equal(again.every_ms, 100);
	assert_string_equal(again.identity, m.identity);
	assert_string_equal(again.device, m.device);
}

TEST(a_greeting_has_to_make_sense)
{
	uint8_t frame[NP_FRAME_SIZE] = { 0 };
	struct np_hello_message m;
	struct np_err err;

	assert_int_equal(np_hello_get(frame, &m, &err), NP_EPEER); /* no version */
	frame[11] = 77;                                            /* tag */
	memset(frame + 12, 0xff, 4);                               /* length */
	assert_int_equal(np_hello_get(frame, &m, &err), NP_EPEER);
}

TEST(a_greetings_words_are_clean)
{
	struct np_hello_message m = { .version = 1,
				      .identity = "a\x1b[2J\xe2\x80\xae",
				      .device = "e\n0" };
	uint8_t frame[NP_FRAME_SIZE];
	struct np_err err;

	np_hello_put(frame, NP_EXT_WELCOME, &m);
	assert_int_equal(np_hello_get(frame, &m, &err), NP_OK);
	assert_string_equal(m.identity, "a?[2J???");
	assert_string_equal(m.device, "e?0");
}

TEST(a_field_of_the_future_is_skipped)
{
	static const uint8_t fields[] = { 0, 0, 0, 77, 0, 0, 0, 3, 9, 9, 9, 0,
					  0, 0, 0, 1,  0, 0, 0, 4, 0, 0, 0, 2 };
	uint8_t frame[NP_FRAME_SIZE] = { 0 };
	struct np_hello_message m;
	struct np_err err;

	memcpy(frame + 8, fields, sizeof(fields));
	assert_int_equal(np_hello_get(frame, &m, &err), NP_OK);
	assert_int_equal(m.version, 2);
}

TEST(terminals_have_nothing_to_obey)
{
	static const char *const texts[][2] = {
		{ "a\x1b[2Jb\nc\x7f", "a?[2Jb?c?" },
		{ "a\xc2\x9b"
		  "2J",
		  "a??2J" }, /* CSI in one character */
		{ "a\x9b"
		  "2J",
		  "a?2J" }, /* and in one byte */
		{ "a\xe2\x80\xae"
		  "b",
		  "a???b" }, /* from right to left */
		{ "a\xe2\x80\x8b"
		  "b",
		  "a???b" }, /* of no width */
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\xc0\x9b|\xed\xa0\x80|\xf5\x80",
		  "??|???|??" },      /* too long, half of two, too high */
		{ "\xe2\x82", "??" }, /* cut */
	};
	FREED_BY(free_bag) struct np_bag *b = np_bag_new();

	for (size_t i = 0; i < LEN(texts); i++) {
		np_bag_text(b, texts[i][0], "text");
		assert_string_equal(np_bag_string(b, "text"), texts[i][1]);
	}
}

TEST_MAIN()
