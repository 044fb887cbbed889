/*
 * How many lines strangers can have written to the log.
 */
#include "netserver/lines.h"

#include "base/clock.h"
#include "tests/lib/check.h"

static unsigned
taken(struct ns_lines *l, uint64_t now)
{
	unsigned n = 0;

	while (ns_lines_take(l, NULL, now)) {
		n++;
	}
	return n;
}

TEST(lines_come_at_a_rate)
{
	struct ns_lines l = { 0 };
	uint64_t now = 1000 * NP_SEC;

	assert_int_equal(taken(&l, now), 2 * NS_LINES);
	assert_int_equal(taken(&l, now + NP_SEC), NS_LINES);
	assert_int_equal(taken(&l, now + 3600 * NP_SEC), 2 * NS_LINES);
	assert_int_equal(l.left_out, 3);
}

struct heard {
	int lines, counts;
	char last[NP_LOG_EVENT];
};

static void
hear(void *ctx, enum np_log_level level, bool is_event, const char *line)
{
	struct heard *h = ctx;

	h->lines++;
	h->counts += is_event && strstr(line, "event=lines-not-logged") != NULL;
	snprintf(h->last, sizeof(h->last), "%s", line);
}

TEST(what_is_left_out_is_counted)
{
	struct heard h = { .lines = 0 };
	struct np_log log = { .level = NP_LOG_INFO, .sink = hear, .ctx = &h };
	struct ns_lines l = { 0 };
	struct ns_limited limited;

	ns_limit_log(&limited, &log, &l);
	for (int i = 0; i < 5 * NS_LINES; i++) {
		np_log(&log, NP_LOG_INFO, "noise");
	}
	assert_in_range(h.lines, 2 * NS_LINES, 5 * NS_LINES - 1);
	l.share.all.due_ns = 0; /* some time later */
	l.left_out = 4711;
	h.counts = 0;
	np_log(&log, NP_LOG_ERROR, "a fault");
	assert_int_equal(h.counts, 1);
	assert_string_equal(h.last, "a fault");
	assert_int_equal(l.told, 4711);
}

/* A client's wish for more words is limited, the operator's is not. */
TEST(the_operator_gets_all_he_asks_for)
{
	enum np_log_level levels[] = { NP_LOG_INFO, NP_LOG_DEBUG };

	for (size_t i = 0; i < LEN(levels); i++) {
		struct heard h = { .lines = 0 };
		struct np_log log = { .level = levels[i], .sink = hear, .ctx = &h };
		struct ns_lines l = { .share.all.due_ns = UINT64_MAX / 2 };
		struct ns_limited limited;

		ns_limit_log(&limited, &log, &l);
		log.level = NP_LOG_DEBUG;
		np_log(&log, NP_LOG_DEBUG, "details");
		np_log(&log, NP_LOG_INFO, "news");
		assert_int_equal(h.lines, levels[i] == NP_LOG_DEBUG);
	}
}

TEST_MAIN()
