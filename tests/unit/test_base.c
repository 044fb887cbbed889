/*
 * The ground floor: errors, the clock, log lines, numbers and rings of buffers.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fds.h"
#include "base/log.h"
#include "base/ring.h"
#include "base/text.h"
#include "base/units.h"
#include "tests/lib/check.h"
#include "tests/lib/root.h"
#include "tests/lib/sockets.h"

/* ---- Errors ---- */

TEST(an_error_has_words_and_the_systems_words)
{
	struct np_err err;

	assert_int_equal(np_fail(&err, NP_ESYS, ENOENT, "open %s", "x"), NP_ESYS);
	assert_int_equal(err.code, NP_ESYS);
	assert_int_equal(err.sys, ENOENT);
	assert_string_equal(err.msg, "open x: No such file or directory");
	assert_int_equal(np_fail(&err, NP_EUSAGE, 0, "%d", 7), NP_EUSAGE);
	assert_int_equal(err.sys, 0);
	assert_string_equal(err.msg, "7");
	assert_int_equal(np_fail_in(&err, "TCP_RR"), NP_EUSAGE);
	assert_string_equal(err.msg, "TCP_RR: 7");
	assert_int_equal(np_fail(NULL, NP_EPEER, 0, "nobody listens"), NP_EPEER);
}

TEST(a_long_error_loses_its_end)
{
	char text[1000];
	struct np_err err;

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	np_fail(&err, NP_ESYS, ENOENT, "%s", text);
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	np_fail_in(&err, "here");
	assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
	assert_int_equal(strncmp(err.msg, "here: xxx", 9), 0);
	/* One character of room behind the words: none of the system's. */
	np_fail(&err, NP_ESYS, ENOENT, "%.510s", text);
	assert_int_equal(strlen(err.msg), 511);
}

TEST(exit_statuses_are_netperfs)
{
	assert_int_equal(np_errc_status(NP_OK), 0);
	assert_int_equal(np_errc_status(NP_ECONTROL), 255);
	for (int code = NP_EUSAGE; code <= NP_EUNSUP; code++) {
		if (code != NP_ECONTROL) {
			assert_int_equal(np_errc_status((enum np_errc)code), 1);
		}
	}
}

/* ---- Time ---- */

TEST(deadlines_are_absolute)
{
	uint64_t before = np_now(), deadline = np_deadline(5 * NP_SEC);
	struct timespec left;

	assert_true(deadline >= before + 5 * NP_SEC && deadline <= np_now() + 5 * NP_SEC);
	assert_ptr_equal(np_left(np_now() + 100 * NP_SEC, &left), &left);
	assert_in_range(left.tv_sec, 50, 99);
	assert_in_range(left.tv_nsec, 0, 999999999);
	assert_ptr_equal(np_left(before, &left), &left);
	assert_int_equal(left.tv_sec, 0);
	assert_int_equal(left.tv_nsec, 0);
	assert_null(np_left(NP_NEVER, &left));
}

TEST(poll_is_not_late_for_a_distant_deadline)
{
	static const uint64_t left[] = { 0, NP_MSEC, 100 * NP_MSEC, NP_SEC, 3600 * NP_SEC };

	for (size_t i = 0; i < LEN(left); i++) {
		uint64_t first = np_first_wake(NP_SEC + left[i], NP_SEC) - NP_SEC;

		assert_true(first + first / 200 <= left[i] + NP_MSEC);
	}
	assert_true(np_first_wake(NP_NEVER, NP_SEC) == NP_NEVER);
}

/* ---- Log lines ---- */

static char last_line[2000];
static unsigned lines;
static bool last_is_event;

static void
note_line(void *ctx, enum np_log_level level, bool is_event, const char *line)
{
	assert_ptr_equal(ctx, &lines);
	last_is_event = is_event;
	lines++;
	snprintf(last_line, sizeof(last_line), "%s", line);
}

TEST(lines_above_the_level_are_dropped)
{
	struct np_log log = { .level = NP_LOG_INFO, .sink = note_line, .ctx = &lines };

	lines = 0;
	np_log(&log, NP_LOG_ERROR, "%s", "one");
	np_log(&log, NP_LOG_INFO, "%d", 2);
	assert_int_equal(lines, 2);
	assert_string_equal(last_line, "2");
	np_log(&log, NP_LOG_DEBUG, "three");
	assert_int_equal(lines, 2);
	log.level = NP_LOG_DEBUG;
	np_log(&log, NP_LOG_DEBUG, "%0700d", 1);
	assert_int_equal(strlen(last_line), 599);
	np_log(&log, NP_LOG_ERROR, "a\nb\x1b[2J%s", "\x9b\xc2\x9b");
	assert_string_equal(last_line, "a?b?[2J???");
	log.sink = NULL;
	np_log(&log, NP_LOG_ERROR, "nobody listens");
	np_log(NULL, NP_LOG_ERROR, "nobody listens");
	assert_int_equal(lines, 4);
}

/* As much as goes into it, by its non-blocking end. */
static void
fill_up(int fd)
{
	static const char bytes[512];
	int flags = fcntl(fd, F_GETFL);

	assert_int_equal(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
	while (write(fd, bytes, sizeof(bytes)) > 0) {
	}
	assert_int_equal(fcntl(fd, F_SETFL, flags), 0);
}

/* A pipe and a socket that nobody reads. */
TEST(a_line_that_finds_no_room_is_lost_and_counted)
{
	for (int is_socket = 0; is_socket <= 1; is_socket++) {
		struct np_log_out out = { .fd = -1 };
		char text[1 << 17];
		FREED_BY(close_both) int ends[2];
		int before = dup(STDERR_FILENO);
		ssize_t n;

		assert_int_equal(is_socket ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends),
				 0);
		fill_up(ends[1]);
		assert_true(before > 2 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
		np_log_write(&out, NP_LOG_INFO, false, "the first");
		np_log_write(&out, NP_LOG_INFO, false, "the second");
		assert_int_equal(out.lost, 2);
		do {
			n = recv(ends[0], text, sizeof(text), MSG_DONTWAIT);
			n = n < 0 && errno == ENOTSOCK ? read(ends[0], text, sizeof(text)) : n;
		} while (is_socket && n > 0);
		np_log_write(&out, NP_LOG_INFO, false, "the third");
		assert_true(dup2(before, STDERR_FILENO) == STDERR_FILENO);
		close(before);
		n = read(ends[0], text, sizeof(text) - 1);
		assert_true(n > 0);
		text[n] = '\0';
		assert_non_null(strstr(text, "]: event=lines-lost lines=2\n"));
		assert_non_null(strstr(text, "]: the third\n"));
		assert_int_equal(out.lost, 2);
	}
}

static void
assert_value(const char *value, const char *written)
{
	struct np_log log = { .level = NP_LOG_INFO, .sink = note_line, .ctx = &lines };
	struct np_event e;
	char line[NP_LOG_EVENT];

	np_event_begin(&e, "x");
	np_event_text(&e, "key", value);
	np_event_number(&e, "n", UINT64_MAX);
	np_log_event(&log, NP_LOG_INFO, &e, "%s", value);
	snprintf(line, sizeof(line), "event=x key=%s n=18446744073709551615 msg=%s", written,
		 written);
	assert_string_equal(last_line, line);
	assert_true(last_is_event);
}

TEST(an_events_values_can_be_read_back)
{
	assert_value("192.0.2.1", "192.0.2.1");
	assert_value("2001:db8::1%eth0", "2001:db8::1%eth0");
	assert_value("/tmp/a-b_c+d,e;'f'", "/tmp/a-b_c+d,e;'f'");
	assert_value("", "\"\"");
	assert_value("two words", "\"two words\"");
	assert_value("a=b", "\"a=b\"");
	assert_value("say \"x\"", "\"say \\\"x\\\"\"");
	assert_value("\\", "\"\\\\\"");
	assert_value("\" event=granted x=\"", "\"\\\" event=granted x=\\\"\"");
	assert_value("x\nevent=y", "\"x\\u000aevent=y\"");
	assert_value("\033[2J\r\t\177", "\"\\u001b[2J\\u000d\\u0009\\u007f\"");
	/* Also the control characters that hide in UTF-8 and Latin-1. */
	assert_value("\302\233\233", "\"\\u00c2\\u009b\\u009b\"");
}

/* The end of a quoted value, behind the quote; fails when it is not one. */
static const char *
behind_quotes(const char *c)
{
	assert_int_equal(*c++, '"');
	for (; *c != '"'; c++) {
		assert_int_not_equal(*c, '\0');
		c += *c == '\\';
	}
	return c + 1;
}

TEST(a_value_is_cut_inside_its_quotes)
{
	static const char bytes[] = { 'a', '"', '\\', '\n', ' ' };
	struct np_log log = { .level = NP_LOG_INFO, .sink = note_line, .ctx = &lines };
	char value[400];

	for (size_t i = 0; i < LEN(bytes); i++) {
		memset(value, bytes[i], sizeof(value));
		value[sizeof(value) - 1] = '\0';
		for (size_t at = 0; at < 8; at++) {
			struct np_event e;
			const char *end;

			memset(value, 'b', at);
			np_event_begin(&e, "x");
			np_event_text(&e, "key", value);
			np_event_number(&e, "n", 7);
			np_log_event(&log, NP_LOG_INFO, &e, "%s %s", value, value);
			end = behind_quotes(last_line + strlen("event=x key="));
			assert_in_range(end - last_line, 120, 128 + strlen("event=x key="));
			assert_int_equal(strncmp(end, " n=7 msg=\"b", at > 0 ? 11 : 10), 0);
			end = behind_quotes(end + strlen(" n=7 msg="));
			assert_int_equal(*end, '\0');
		}
	}
}

TEST(a_field_without_room_is_left_out)
{
	struct np_log log = { .level = NP_LOG_INFO, .sink = note_line, .ctx = &lines };
	struct np_event e;
	char value[200];

	memset(value, '"', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	np_event_begin(&e, "x");
	for (int i = 0; i < 100; i++) {
		np_event_text(&e, "key", value);
		assert_int_equal(e.len, strlen(e.line));
		assert_true(e.len < sizeof(e.line));
		assert_int_equal(e.line[e.len - 1], '"');
	}
	lines = 0;
	np_log_event(&log, NP_LOG_INFO, &e, "no room");
	assert_int_equal(lines, 1);
	assert_string_equal(last_line, e.line);
	np_log_event(&log, NP_LOG_DEBUG, &e, "above the level");
	np_log_event(NULL, NP_LOG_ERROR, &e, "nobody listens");
	log.sink = NULL;
	np_log_event(&log, NP_LOG_ERROR, &e, "nobody listens");
	assert_int_equal(lines, 1);
}

/* ---- Numbers ---- */

struct number {
	const char *text;
	int64_t value;
};

static void
assert_numbers(int (*parse)(const char *, int64_t *), const struct number *n, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int64_t v = 0;

		fail_if(parse(n[i].text, &v) != 0 || v != n[i].value, "%s: %lld", n[i].text,
			(long long)v);
	}
}

static void
assert_garbage(int (*parse)(const char *, int64_t *), const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int64_t v = 0;

		fail_if(parse(texts[i], &v) == 0, "'%s' was taken for %lld", texts[i],
			(long long)v);
	}
}

TEST(counts_have_suffixes)
{
	static const struct number good[] = {
		{ "0", 0 },
		{ "64", 64 },
		{ "+5", 5 },
		{ "-5", -5 },
		{ "007", 7 },
		{ "3k", 3000 },
		{ "3K", 3072 },
		{ "2m", 2000000 },
		{ "2M", 2097152 },
		{ "1g", 1000000000 },
		{ "1G", 1073741824 },
		{ "-1K", -1024 },
		{ "9223372036854775807", INT64_MAX },
		{ "-9223372036854775808", INT64_MIN },
	};
	static const char *const bad[] = { "",
					   "k",
					   "-",
					   "+-5",
					   " 5",
					   "5 ",
					   "5kk",
					   "5kB",
					   "64Q",
					   "0x10",
					   "1.5",
					   "1e3",
					   "--5",
					   "9223372036854775808",
					   "9223372036854775807k",
					   "10000000000G" };

	assert_numbers(np_parse_count, good, LEN(good));
	assert_garbage(np_parse_count, bad, LEN(bad));
}

static int
length_as_it_is(const char *text, int64_t *out)
{
	uint32_t less_ms = 0;
	int rc = np_parse_length(text, out, &less_ms);

	assert_true(less_ms < 1000);
	return rc;
}

static int
length_ms(const char *text, int64_t *out)
{
	uint32_t less_ms = 0;
	int rc = np_parse_length(text, out, &less_ms);

	*out = 1000 * *out - less_ms;
	return rc;
}

TEST(lengths_are_counts_or_durations)
{
	/* In milliseconds, those of a time. */
	static const struct number good[] = {
		{ "10", 10000 },
		{ "10s", 10000 },
		{ "1m30s", 90000 },
		{ "1h", 3600000 },
		{ "1h5s", 3605000 },
		{ "2h3m4s", 7384000 },
		{ "1h30m", 5400000 },
		{ "0.5", 500 },
		{ ".5", 500 },
		{ "10.25", 10250 },
		{ "1.5s", 1500 },
		{ "500ms", 500 },
		{ "1m0.5s", 60500 },
		{ "1s5ms", 1005 },
		{ "1500ms", 1500 },
		{ "0.25h", 900000 },
		{ "0.3333333333333", 333 },
		{ "0.9996", 1000 },
		{ "0.0000000009", 1 },
		{ "0.0001", 1 }, /* 0 would be no limit */
		{ "0.1ms", 1 },
		{ "1ms", 1 },
		{ "0.0", 0 },
		{ "0ms", 0 },
	};
	static const struct number counts[] = { { "-1000000", -1000000 }, { "-1m", -1000000 } };
	static const char *const bad[] = { "s",
					   "h",
					   "5s5s",
					   "5s1m",
					   "1m1h",
					   "-10s",
					   "1h-5s",
					   "1d2s",
					   "10ss",
					   "0.",
					   ".",
					   ".s",
					   "1.s",
					   "-0.5",
					   "-1.5s",
					   "1.5k",
					   "1.5 ",
					   "1..5",
					   "1.5.5s",
					   "1s0.5",
					   "1ms1s",
					   "1us",
					   "1e3s",
					   "9223372036854775807h",
					   "9223372036854775807m1s" };

	assert_numbers(length_ms, good, LEN(good));
	assert_numbers(length_as_it_is, counts, LEN(counts));
	assert_garbage(length_as_it_is, bad, LEN(bad));
}

TEST(whole_numbers_have_no_suffix)
{
	static const struct number good[] = { { "0", 0 }, { "-12", -12 }, { "65535", 65535 } };
	static const char *const bad[] = { "", "5k", "5 ", "x", "9223372036854775808" };

	assert_numbers(np_parse_int, good, LEN(good));
	assert_garbage(np_parse_int, bad, LEN(bad));
}

TEST(link_rates_are_spelt_as_tc_does)
{
	static const struct {
		const char *text;
		double bps;
	} good[] = {
		{ "100mbit", 100e6 },
		{ "2.5gbit", 2.5e9 },
		{ "500Kbit", 500e3 },
		{ "1.0GBIT", 1e9 },
	};
	static const char *const bad[] = {
		"",       "100",     "mbit",    "0mbit", "0.0mbit",
		".5gbit", "1.gbit",  "-1mbit",  "1mbi",  "100mbits",
		"1 mbit", "1e3mbit", "0x1mbit", "nan",   "9999999999kbit",
	};
	double bps;

	for (size_t i = 0; i < LEN(good); i++) {
		assert_int_equal(np_parse_rate(good[i].text, &bps), 0);
		assert_true(bps == good[i].bps);
	}
	for (size_t i = 0; i < LEN(bad); i++) {
		fail_if(np_parse_rate(bad[i], &bps) == 0, "\"%s\" is taken for %g", bad[i], bps);
	}
}

static void
assert_rate(char letter, const char *name, double amount, double seconds, double want)
{
	const struct np_unit *unit = np_unit(letter);

	assert_string_equal(unit->name, name);
	fail_if(fabs(np_rate(unit, amount, seconds) - want) > 1e-9 * want, "-f %c: %g", letter,
		np_rate(unit, amount, seconds));
}

TEST(significant_digits_need_no_exponent)
{
	static const struct {
		double value;
		int digits;
		const char *text;
	} rows[] = { { 999.7, 3, "1000" },     { 12345.6, 4, "12350" }, { 99.96, 3, "100" },
		     { 0.123456, 3, "0.123" }, { 0, 3, "0" },           { 94.149, 4, "94.15" } };

	for (size_t i = 0; i < LEN(rows); i++) {
		char text[32];

		snprintf(text, sizeof(text), "%.12g",
			 np_significant(rows[i].value, rows[i].digits));
		assert_string_equal(text, rows[i].text);
	}
	assert_true(isnan(np_significant((double)NAN, 3)));
}

TEST(rates_are_netperfs)
{
	assert_rate('G', "GBytes", 4294967296.0, 2, 2);
	assert_rate('M', "MBytes", 4194304, 2, 2);
	assert_rate('K', "KBytes", 4096, 2, 2);
	assert_rate('B', "Bytes", 4096, 2, 2048);
	assert_rate('g', "10^9bits", 1e9, 2, 4);
	assert_rate('m', "10^6bits", 1e6, 2, 4);
	assert_rate('k', "10^3bits", 1e3, 2, 4);
	/* Bytes a second, whatever its name says. */
	assert_rate('b', "10^0bits", 4096, 2, 2048);
	assert_rate('x', "Trans", 500, 2, 250);
	/* The other way round: time for each one. */
	assert_rate('u', "Usec", 500, 2, 4000);
	assert_rate('?', "KBytes", 2048, 1, 2);
	assert_rate('m', "10^6bits", 1e6, 0, 0);
	assert_rate('u', "Usec", 0, 2, 0);
}

/* ---- Rings ---- */

TEST(buffers_stand_aligned_and_come_round)
{
	static const size_t sizes[][4] = { { 1, 1, 0, 0 },      { 2, 100, 8, 0 },
					   { 3, 1, 4096, 3 },   { 5, 4096, 4096, 0 },
					   { 7, 65507, 16, 9 }, { 4, 10, 64, 1000 } };

	for (size_t i = 0; i < LEN(sizes); i++) {
		size_t align = sizes[i][2] > 0 ? sizes[i][2] : 1, offset = sizes[i][3];
		FREED_BY(np_ring_free) struct np_ring ring;
		const struct np_slot *slot;

		assert_int_equal(np_ring_make(&ring, sizes[i][0], sizes[i][1], align, offset, NULL),
				 NP_OK);
		assert_int_equal(ring.width, sizes[i][0]);
		assert_int_equal(ring.size, sizes[i][1]);
		slot = ring.slots;
		for (size_t n = 0; n < ring.width; n++) {
			assert_int_equal(((uintptr_t)slot->buf - offset) % align, 0);
			for (size_t at = 0; at < ring.size; at++) {
				assert_int_equal(slot->buf[at], "netperf"[at % 8]);
			}
			memset(slot->buf, 'x', ring.size);
			slot = slot->next;
			assert_true((slot == ring.slots) == (n + 1 == ring.width));
		}
	}
}

/* Where netperf's do, as processors copy to just behind a page more slowly. */
TEST(buffers_begin_where_netperfs_do)
{
	static const size_t sizes[] = { 65536, 131072, 300000 };
	void *volatile freed = malloc(1 << 20);

	free(freed); /* glibc maps nothing as small behind that */
	for (size_t n = 0; n < LEN(sizes); n++) {
		FREED_BY(np_ring_free) struct np_ring ring;

		assert_int_equal(np_ring_make(&ring, 8, sizes[n], 8, 0, NULL), NP_OK);
		for (size_t i = 0; i < ring.width; i++) {
			uintptr_t at = (uintptr_t)ring.slots[i].buf;

			assert_int_equal(n == 0 ? at % 64 : at % 4096,
					 n == 0 ? 0 : 2 * sizeof(size_t));
		}
	}
}

TEST(no_alignment_is_one_of_a_byte)
{
	/* One byte more makes large buffers of these. */
	assert_int_equal(np_ring_bytes(8, 4095, 0, 0), np_ring_bytes(8, 4095, 1, 0));
	assert_int_equal(np_ring_bytes(8, 131071, 0, 0), np_ring_bytes(8, 131071, 1, 0));
}

TEST(a_ring_has_limits)
{
	static const size_t bad[][4] = { { 0, 1, 8, 0 },
					 { 1, 0, 8, 0 },
					 { 1, 1, 3, 0 },
					 { 1, NP_RING_MAX, 8, 0 },
					 { 1, 1, (size_t)NP_RING_MAX * 2, 0 },
					 { 1, 1, 1, (size_t)NP_RING_MAX + 1 },
					 { (size_t)1 << 26, 1, 1, 0 },
					 { NP_RING_MAX, 1, 1, 0 },
					 { SIZE_MAX, SIZE_MAX, 1, 0 },
					 { 2, SIZE_MAX / 2 + 1, 1, 0 },
					 { 65536, 65536, 1, 0 } };

	for (size_t i = 0; i < LEN(bad); i++) {
		FREED_BY(np_ring_free) struct np_ring ring;
		struct np_err err;

		assert_int_equal(
		    np_ring_make(&ring, bad[i][0], bad[i][1], bad[i][2], bad[i][3], &err),
		    NP_EUSAGE);
		assert_null(ring.slots);
	}
}

/* A file with that text; its name is in path. */
TEST(a_file_fills_the_buffers_one_after_another)
{
	struct np_ring ring;
	struct np_err err;
	char path[32];

	temp_file(path, "0123456", strlen("0123456"), 0600);
	assert_int_equal(np_ring_make(&ring, 3, 5, 8, 0, &err), NP_OK);
	assert_int_equal(np_ring_fill(&ring, 0, path, &err), NP_OK);
	assert_memory_equal(ring.slots[0].buf, "01234", 5);
	assert_memory_equal(ring.slots[1].buf, "56012", 5);
	assert_memory_equal(ring.slots[2].buf, "34560", 5);
	unlink(path);
	assert_int_equal(np_ring_fill(&ring, 0, path, &err), NP_ESYS);
	assert_int_equal(err.sys, ENOENT);
	assert_has(err.msg, path);
	temp_file(path, "", strlen(""), 0600);
	assert_int_equal(np_ring_fill(&ring, 0, path, &err), NP_ESYS);
	assert_has(err.msg, "is empty");
	unlink(path);
	assert_int_equal(np_ring_fill(&ring, 0, "/", &err), NP_ESYS);
	assert_int_equal(err.sys, EISDIR);
	np_ring_free(&ring);
	np_ring_free(&ring);
}

/* Fill two buffers of five bytes from a FIFO whose writer comes later, and pauses. */
static int
fill_from_fifo(struct np_ring *ring, const char *first, const char *second, struct np_err *err)
{
	char path[32];
	pid_t writer;
	int rc;

	temp_file(path, "", 0, 0600);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	writer = fork();
	if (writer == 0) {
		int fd;

		alarm(10); /* without a reader */
		poll(NULL, 0, 200);
		fd = open(path, O_WRONLY);
		_exit(write(fd, first, strlen(first)) < 0 || poll(NULL, 0, 100) != 0 ||
		      write(fd, second, strlen(second)) < 0);
	}
	assert_int_equal(np_ring_make(ring, 2, 5, 8, 0, err), NP_OK);
	rc = np_ring_fill(ring, 0, path, err);
	assert_int_equal(waitpid(writer, NULL, 0), writer);
	unlink(path);
	return rc;
}

TEST(a_fifo_fills_the_buffers)
{
	struct np_ring ring;
	struct np_err err;

	assert_int_equal(fill_from_fifo(&ring, "0123", "456789", &err), NP_OK);
	assert_memory_equal(ring.slots[0].buf, "01234", 5);
	assert_memory_equal(ring.slots[1].buf, "56789", 5);
	np_ring_free(&ring);
	assert_int_equal(fill_from_fifo(&ring, "0123", "45", &err), NP_ESYS);
	assert_has(err.msg, "can't be read again");
	np_ring_free(&ring);
}

TEST(a_ring_of_zeros_is_one_buffer_that_can_not_be_written)
{
	FREED_BY(np_ring_free) struct np_ring ring;
	static const char zeros[5000];
	struct np_err err;
	FREED_BY(close_fd) int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	assert_int_equal(np_ring_make(&ring, 3, sizeof(zeros), 8192, 3, &err), NP_OK);
	assert_int_equal(np_ring_zero(&ring, 8192, 3, &err), NP_OK);
	for (size_t i = 0; i < ring.width; i++) {
		const struct np_slot *s = &ring.slots[i];

		assert_ptr_equal(s->buf, ring.slots->buf);
		assert_int_equal((uintptr_t)s->buf % 8192, 3);
		assert_memory_equal(s->buf, zeros, sizeof(zeros));
		assert_int_equal(read(fd, s->buf, sizeof(zeros)), -1);
		assert_int_equal(errno, EFAULT);
	}
}

TEST(what_others_wrote_does_nothing_to_who_reads_it)
{
	/* clang-format off */
	static const struct {
		const char *text, *clean, *printable;
	} rows[] = {
		{ "", "", "" },
		{ " a~", " a~", " a~" },
		{ "a\x1b[2Jb\nc\x7f", "a?[2Jb?c?", "a?[2Jb?c?" },
		{ "\xc2\x9b|\x9b|", "??|?|", "??|?|" },                  /* CSI: character and byte */
		{ "\xc4\x9b", "\xc4\x9b", "??" },                       /* a letter with that byte */
		{ "\xc2\x80\xc2\x9f\xc2\xa0", "????\xc2\xa0", "??????" },
		{ "\xd8\x9c", "??", "??" },                              /* U+061C */
		{ "\xe2\x80\x8a|\xe2\x80\x8b|\xe2\x80\x8d|", "\xe2\x80\x8a|???|???|",
		  "???|???|???|" },                               /* U+200A, U+200B, U+200D */
		{ "\xe2\x80\x8e\xe2\x80\x8f", "??????", "??????" },     /* U+200E, U+200F */
		{ "\xe2\x80\xa8\xe2\x80\xa9", "??????", "??????" },     /* U+2028, U+2029 */
		{ "\xe2\x80\xaa\xe2\x80\xae", "??????", "??????" },     /* U+202A, U+202E */
		{ "\xe2\x81\xa0\xe2\x81\xa6\xe2\x81\xa9", "?????????", "?????????" },
		{ "\xef\xbb\xbf", "???", "???" },                  /* U+FEFF */
		{ "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", "????" },
		{ "\xc0\x9b|\xed\xa0\x80|\xf5\x80|\xe2\x82", "??|???|??|??", "??|???|??|??" },
	};
	/* clang-format on */
	char have[32], *line = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&line, &size);

	for (size_t i = 0; i < LEN(rows); i++) {
		strcpy(have, rows[i].text);
		assert_int_equal(np_text_clean(have), strcmp(rows[i].text, rows[i].clean) == 0);
		assert_string_equal(have, rows[i].clean);
		strcpy(have, rows[i].text);
		np_text_printable(have);
		assert_string_equal(have, rows[i].printable);
	}
	assert_non_null(out);
	np_text_line(out, "%s %d", "a\nb\xc4\x9b", 1);
	np_text_line(out, "%09999d", 1);
	fclose(out);
	assert_int_equal(size, strlen("a?b?? 1\n") + NP_TEXT_LINE);
	assert_memory_equal(line, "a?b?? 1\n000", 11);
	free(line);
}

/* ---- Descriptors ---- */

TEST(no_more_descriptors_are_received_than_have_a_place)
{
	FREED_BY(close_both) int pair[2];
	int both[2], fd, before, after;
	char byte = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	both[0] = both[1] = pair[0];
	assert_true(pass_descriptors(pair[0], &byte, 1, both, 2));
	before = dup(pair[0]); /* the least number that is free */
	close(before);
	assert_int_equal(np_fds_receive(pair[1], &byte, 1, &fd, 1, 0), 1);
	np_fds_close(fd);
	after = dup(pair[0]);
	assert_int_equal(after, before);
	close(after);
}

/* ---- Limits ---- */

#ifdef __GLIBC__ /* elsewhere setrlimit() has another type */
/* In place of the C library's: as where a filter of system calls forbids it. */
int
setrlimit(__rlimit_resource_t which, const struct rlimit *limit)
{
	(void)which;
	(void)limit;
	errno = EPERM;
	return -1;
}

TEST(a_limit_that_can_not_be_raised_stays_as_it_is)
{
	struct rlimit at;

	assert_int_equal(prlimit(0, RLIMIT_NOFILE, NULL, &at), 0);
	at.rlim_cur = 64;
	assert_int_equal(prlimit(0, RLIMIT_NOFILE, &at, NULL), 0);
	assert_int_equal(np_fds_raise_limit(100), 64);
}
#endif

TEST_MAIN()
